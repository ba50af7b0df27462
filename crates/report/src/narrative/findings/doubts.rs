//! What is not certain.

use inferometer_analysis::Verdict;

use super::page::{Family, MeasuredBy, Page, Row, highest, leading};
use super::sentence::{Fragment, fragment, say};
use super::summary::warm_cache;
use super::thresholds::{PRINTABLE_SHARE, SAME_CHOICE};
use crate::narrative::Sentence;
use crate::narrative::facts::standing::Standing;

pub(super) fn findings(page: &Page<'_>) -> Vec<Sentence> {
    let of_family = |family| {
        let rules = [rival, same_spot, warm_spot];
        rules.into_iter().filter_map(move |rule| rule(page, family))
    };
    let of_families = page.families.iter().flat_map(of_family);
    let rules = [cut, uncertified, single_runs, widest, simulated];
    let marked = [Verdict::Invalid, Verdict::Degraded].into_iter();
    let marked = marked.filter_map(|verdict| with_verdict(page, verdict));
    marked.chain(of_families).chain(rules.into_iter().filter_map(|rule| rule(page))).collect()
}

/// A sentence with more names is a table.
const NAMES_MOST: usize = 5;

/// The names of the first rows, and whether there are others.
fn names<'p>(page: &Page<'_>, rows: impl Iterator<Item = &'p Row>) -> Option<Fragment> {
    let names: Vec<&str> = rows.filter_map(|row| row.name.as_deref()).collect();
    let (first, others) = names.split_first()?;
    let listed = others
        .iter()
        .take(NAMES_MOST - 1)
        .try_fold(fragment!(page, "{*}", *first)?, |listed, name| {
            fragment!(page, "{}, {*}", listed, *name)
        })?;
    fragment!(page, "{}{}", listed, if NAMES_MOST < names.len() { " and others" } else { "" })
}

/// Rows whose numbers cannot be relied on as they are.
fn with_verdict(page: &Page<'_>, verdict: Verdict) -> Option<Sentence> {
    let (count, all) = (page.whole(verdict.key())?, page.whole("levels")?);
    let lead = match verdict {
        Verdict::Invalid => "An invalid run, which counts nowhere, is in ",
        Verdict::Valid | Verdict::Degraded => "Numbers hold with a reservation in ",
    };
    let levels = if page.value(all) <= 1.0 { " level: " } else { " levels: " };
    let rows = names(page, page.rows.iter().filter(|row| row.verdict == Some(verdict)))?;
    say!(page, "{}{=} of {=}{}{}.", lead, count, all, levels, rows)
}

/// Rows that a time limit ended: what is known of them is of the quick requests.
fn cut(page: &Page<'_>) -> Option<Sentence> {
    let rows = || page.rows.iter().filter(|row| row.standing == Standing::Cut);
    let words = "{~}A time limit ended runs before their answers had come{}{}: nothing is compared \
                 with what was cut.";
    let names = names(page, rows())?;
    say!(page, words, (rows().next()?, "attempted_requests"), page.there(), names)
}

/// The level next to the peak, where they cannot be told apart.
fn rival(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let found = family.findings.peak.found()?;
    let best = leading(page, page.rows_of(family), &found.quantity, highest)?;
    let interval = |place: usize| page.fact(place).interval;
    let (row, second, end) = match (best.rivals.first(), best.next) {
        (_, Some((row, next))) if interval(best.place).and(interval(next)).is_none() => {
            (row, next, " have no intervals: whether they differ is not known.")
        }
        (Some((row, rival)), _) if page.overlap(best.place, *rival) => {
            (*row, *rival, " cannot be told apart: their intervals overlap.")
        }
        (Some((row, rival)), _) => (*row, *rival, " are the same."),
        (None, _) => return None,
    };
    say!(page, "{>} at {} and {} at {}{}", best.place, best.row, second, row, end)
}

/// The choice of the sweet spot, where a set drawn again may choose otherwise.
fn same_spot(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let spot = page.row_at(family, family.findings.sweet_spot.found()?.level)?;
    let same = page.when(spot, "sweet_spot_same", |same| same < SAME_CHOICE)?;
    let words = "The sweet spot at {} is chosen again by {>} of the sets that the uncertainty of these \
                 numbers allows.";
    say!(page, words, spot, same)
}

/// A sweet spot that was measured with a warm cache.
fn warm_spot(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let spot = page.row_at(family, family.findings.sweet_spot.found()?.level)?;
    let warm = warm_cache(page, family)?;
    let verb = if warm.is_sure { ", describes" } else { ", probably describes" };
    let words = "{~}The sweet spot at {}, with its TTFT p99 of {>}{} a warm prefix cache; for new \
                 prompts it is not known.";
    say!(page, words, warm.evidence, spot, (spot, "ttft.p99"), verb)
}

/// Rows whose p99 has too few requests behind it.
fn uncertified(page: &Page<'_>) -> Option<Sentence> {
    let floor = page.whole("certified_from")?;
    let requests = |row: &Row| page.at(row, "requests");
    let lacks = |row: &&Row| {
        let few = || Some(page.value(requests(row)?) < page.value(floor));
        row.certified.map(|certified| !certified).or_else(few).unwrap_or(false)
    };
    let has_tail = |row: &&Row| page.at(row, "ttft.p99").is_some();
    let poor: Vec<&Row> = page.rows.iter().filter(lacks).filter(has_tail).collect();
    let counts = poor.iter().filter_map(|row| requests(row));
    let fewest = counts.min_by(|a, b| page.value(*a).total_cmp(&page.value(*b)))?;
    let lead = match (poor.as_slice(), page.rows.len()) {
        ([_], 1) => fragment!(page, "p99 rests on ")?,
        ([one], _) => fragment!(page, "p99 of {*} rests on ", *one)?,
        (some, all) if some.len() == all => {
            fragment!(page, "No p99 of this page is certified: the fewest it rests on is ")?
        }
        _ => fragment!(page, "Not every p99 is certified: the fewest it rests on is ")?,
    };
    // Requests that resemble each other count less than their number.
    let is_enough = page.value(floor) <= page.value(fewest);
    let alike = if is_enough { " that resemble their neighbours" } else { "" };
    say!(page, "{}{>}{}; {=} independent ones are needed.", lead, fewest, alike, floor)
}

fn single_runs(page: &Page<'_>) -> Option<Sentence> {
    let runs = page.whole("runs").filter(|runs| page.value(*runs) <= 1.0)?;
    let lead = match page.subject.measured_by {
        MeasuredBy::Run => "There is ",
        MeasuredBy::Suite(_) | MeasuredBy::Sweep | MeasuredBy::Repeat | MeasuredBy::Others => {
            "Of a level there is "
        }
    };
    let end = if page.value(runs) < 1.0 {
        " run that counts, so nothing is known of it."
    } else {
        " run only: intervals come from within it, and how much runs differ is not known."
    };
    say!(page, "{}{=}{}", lead, runs, end)
}

/// The level whose throughput is least certain, where there are several runs.
fn widest(page: &Page<'_>) -> Option<Sentence> {
    page.whole("runs").filter(|runs| 1.0 < page.value(*runs))?;
    (1 < page.rows.len()).then_some(())?;
    let (row, width) = page.largest("half_width", |width| PRINTABLE_SHARE <= width)?;
    say!(page, "Output throughput is known to within {>} or better; the widest is {*}.", width, row)
}

fn simulated(page: &Page<'_>) -> Option<Sentence> {
    page.subject.simulated.then_some(())?;
    say!(page, "All of this is simulated: it is about a model of a server, not about one.")
}
