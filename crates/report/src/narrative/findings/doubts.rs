//! What is not certain.

use inferometer_analysis::Verdict;

use super::order::{highest, leading};
use super::page::{Family, MeasuredBy, Page, Row};
use super::scaling::level;
use super::summary::warmth;
use super::thresholds::{PRINTABLE_SHARE, SAME_CHOICE};
use super::words::Saying;
use crate::narrative::Sentence;
use crate::narrative::facts::standing::Standing;

pub(super) fn findings(page: &Page<'_>) -> Vec<Sentence> {
    let of_family = |family| {
        let rules = [rival, same_spot, warm_spot];
        rules.into_iter().filter_map(move |rule| rule(page, family))
    };
    let told_apart = page.families.iter().flat_map(of_family);
    let rules = [cut, uncertified, single_runs, widest, simulated];
    let marked = [Verdict::Invalid, Verdict::Degraded].into_iter();
    let marked = marked.filter_map(|verdict| with_verdict(page, verdict));
    marked.chain(told_apart).chain(rules.into_iter().filter_map(|rule| rule(page))).collect()
}

/// Which rows are not to be relied on as they stand.
fn with_verdict(page: &Page<'_>, verdict: Verdict) -> Option<Sentence> {
    let count = page.whole(verdict.key())?;
    let rows = page.rows.iter().filter(|row| row.verdict == Some(verdict));
    let names: Vec<&str> = rows.filter_map(|row| row.name.as_deref()).collect();
    let saying = Saying::on(page.facts).say(match verdict {
        Verdict::Invalid => "An invalid run, which counts nowhere, is in ",
        Verdict::Valid | Verdict::Degraded => "Numbers hold with a reservation in ",
    });
    let all = page.whole("levels")?;
    let saying = saying.bare(count).say(" of ").bare(all);
    let saying = saying.say(if page.value(all) <= 1.0 { " level: " } else { " levels: " });
    let (first, others) = names.split_first()?;
    let listed = others.iter().take(NAMES_MOST - 1);
    let saying = listed.fold(saying.name(first), |saying, name| saying.say(", ").name(name));
    let end = if NAMES_MOST < names.len() { " and others." } else { "." };
    Some(saying.say(end).done())
}

/// A sentence with more names is a table.
const NAMES_MOST: usize = 5;

/// Rows that a limit of time ended: what is known of them is of the quick requests.
fn cut(page: &Page<'_>) -> Option<Sentence> {
    let rows = page.rows.iter().filter(|row| row.standing == Standing::Cut);
    let rows: Vec<&Row> = rows.collect();
    let (first, others) = rows.split_first()?;
    let saying = Saying::on(page.facts).rests_on(page.at(first, "attempted_requests", None)?);
    let saying =
        saying.say("A limit of time ended runs before their answers had come").say(page.there());
    let names = others.iter().take(NAMES_MOST - 1).filter_map(|row| row.name.as_deref());
    let saying = saying.name(first.name.as_deref()?);
    let saying = names.fold(saying, |saying, name| saying.say(", ").name(name));
    let more = if NAMES_MOST < rows.len() { " and others" } else { "" };
    Some(saying.say(more).say(": nothing is compared with what was cut.").done())
}

/// The level next to the peak, where they cannot be told apart.
fn rival(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let found = family.findings.peak.found()?;
    let best = leading(page, page.rows_of(family), (&found.quantity, None), highest)?;
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
    let saying = level(page, Saying::on(page.facts).link(best.place).say(" at "), best.row)?;
    let saying = saying.say(" and ").number(second).say(" at ");
    Some(level(page, saying, row)?.say(end).done())
}

/// The choice of the sweet spot, where a set drawn again may choose otherwise.
fn same_spot(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let spot = page.row_at(family, family.findings.sweet_spot.found()?.level)?;
    let same = page.when(spot, ("sweet_spot_same", None), |same| same < SAME_CHOICE)?;
    let saying = Saying::on(page.facts).say("The sweet spot at ");
    let saying = level(page, saying, spot)?.say(" is chosen again by ").link(same);
    Some(saying.say(" of the sets that the doubt of these numbers allows.").done())
}

/// A sweet spot that a cache has helped to.
fn warm_spot(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let spot = page.row_at(family, family.findings.sweet_spot.found()?.level)?;
    let warm = warmth(page, family)?;
    let verb = if warm.is_sure { ", describes" } else { ", probably describes" };
    let saying = Saying::on(page.facts);
    let saying = warm.evidence.into_iter().fold(saying, Saying::rests_on).say("The sweet spot at ");
    let saying = level(page, saying, spot)?.say(", with its TTFT p99 of ");
    let saying = saying.link(page.at(spot, "ttft", Some("p99"))?);
    Some(saying.say(verb).say(" a warm prefix cache; for new prompts it is not known.").done())
}

/// Rows whose p99 has too few requests behind it.
fn uncertified(page: &Page<'_>) -> Option<Sentence> {
    let floor = page.whole("certified_from")?;
    let requests = |row: &Row| page.at(row, "requests", None);
    let lacks = |row: &&Row| {
        let few = || Some(page.value(requests(row)?) < page.value(floor));
        row.certified.map(|certified| !certified).or_else(few).unwrap_or(false)
    };
    let has_tail = |row: &&Row| page.at(row, "ttft", Some("p99")).is_some();
    let poor: Vec<&Row> = page.rows.iter().filter(lacks).filter(has_tail).collect();
    let counts = poor.iter().filter_map(|row| requests(row));
    let fewest = counts.min_by(|a, b| page.value(*a).total_cmp(&page.value(*b)))?;
    let saying = Saying::on(page.facts);
    // Requests that resemble each other count less than their number.
    let enough = page.value(floor) <= page.value(fewest);
    let saying = match (poor.as_slice(), page.rows.len()) {
        ([_], 1) => saying.say("p99 rests on ").link(fewest),
        ([one], _) => {
            let saying = saying.say("p99 of ").name(one.name.as_deref()?).say(" rests on ");
            saying.link(fewest)
        }
        (some, all) if some.len() == all => {
            saying.say("No p99 of this page is certified: the fewest it rests on is ").link(fewest)
        }
        _ => saying.say("Not every p99 is certified: the fewest it rests on is ").link(fewest),
    };
    let end = if enough { " that resemble their neighbours; " } else { "; " };
    Some(saying.say(end).bare(floor).say(" independent ones are needed.").done())
}

fn single_runs(page: &Page<'_>) -> Option<Sentence> {
    let runs = page.whole("runs").filter(|runs| page.value(*runs) <= 1.0)?;
    let what = match page.subject.measured_by {
        MeasuredBy::Run => "There is ",
        MeasuredBy::Suite(_) | MeasuredBy::Sweep | MeasuredBy::Repeat | MeasuredBy::Others => {
            "Of a level there is "
        }
    };
    let saying = Saying::on(page.facts).say(what).bare(runs);
    let end = if page.value(runs) < 1.0 {
        " run that counts, so nothing is known of it."
    } else {
        " run only: intervals come from within it, and how much runs differ is not known."
    };
    Some(saying.say(end).done())
}

/// Where throughput is known least, where there are several runs.
fn widest(page: &Page<'_>) -> Option<Sentence> {
    page.whole("runs").filter(|runs| 1.0 < page.value(*runs))?;
    (1 < page.rows.len()).then_some(())?;
    let widths = page.rows.iter().filter_map(|row| Some((row, page.at(row, "half_width", None)?)));
    let most = widths.max_by(|(_, a), (_, b)| page.value(*a).total_cmp(&page.value(*b)));
    let (row, width) = most.filter(|(_, width)| PRINTABLE_SHARE <= page.value(*width))?;
    let saying = Saying::on(page.facts)
        .say("Output throughput is known to within ")
        .link(width)
        .say(" or better; the widest is ")
        .name(row.name.as_deref()?)
        .say(".");
    Some(saying.done())
}

fn simulated(page: &Page<'_>) -> Option<Sentence> {
    page.subject.simulated.then(|| {
        let words = "All of this is simulated: it is about a model of a server, not about one.";
        Saying::on(page.facts).say(words).done()
    })
}
