//! The first lines of a page: what was measured, and the few numbers that matter.

use inferometer_analysis::Verdict;

use super::page::{
    Family, Hardware, Leading, MeasuredBy, Page, Row, Searched, highest, is_same, leading, lowest,
};
use super::scenario::suspicion;
use super::sentence::{Fragment, fragment, say};
use super::thresholds::INTERACTIVE_MS;
use crate::narrative::Sentence;

pub(super) fn findings(page: &Page<'_>) -> Vec<Sentence> {
    let mut found: Vec<Sentence> = subject(page).into_iter().chain(verdict(page)).collect();
    found.extend(page.searched.iter().filter_map(|search| searched(page, search)));
    for family in &page.families {
        found.extend(sweet_spot(page, family));
        found.extend(peak(page, family));
    }
    let rest = [best_tpot, longest_ttft, run_throughput, repeated, failures, contaminated];
    found.extend(rest.into_iter().filter_map(|rule| rule(page)));
    found
}

fn subject(page: &Page<'_>) -> Option<Sentence> {
    let model = page.subject.model.as_deref()?;
    let verb = if page.subject.simulated { "simulated" } else { "measured" };
    let gpus = match (&page.subject.hardware, page.whole("gpus")) {
        (Some(Hardware::Gpus(name)), Some(gpus)) => {
            fragment!(page, " on {=}× {*}", gpus, name.as_str())?
        }
        _ => Fragment::default(),
    };
    let engine = match &page.subject.hardware {
        Some(Hardware::Pretended(what)) => {
            let words = " It ran on the embedded engine, which pretends to be {*}.";
            fragment!(page, words, what.as_str())?
        }
        _ => Fragment::default(),
    };
    say!(page, "{*} was {}{}{}{}", model, verb, gpus, extent(page)?, engine)
}

/// ` by the suite standard with 6 scenarios at 10 levels and 250 requests.`
fn extent(page: &Page<'_>) -> Option<Fragment> {
    let requests = page.whole("requests")?;
    let is_one = |place: usize| page.value(place) <= 1.0;
    match (&page.subject.measured_by, page.whole("levels")) {
        (MeasuredBy::Suite(name), Some(levels)) => {
            let scenarios = page.whole("scenarios")?;
            let noun = if is_one(scenarios) { "scenario" } else { "scenarios" };
            let at = if page.value(scenarios) < page.value(levels) {
                fragment!(page, " at {=} levels", levels)?
            } else {
                Fragment::default()
            };
            let words = " by the suite {*} with {=} {}{} and {>}.";
            fragment!(page, words, name.as_str(), scenarios, noun, at, requests)
        }
        (MeasuredBy::Sweep, Some(levels)) => {
            let noun = if is_one(levels) { "level" } else { "levels" };
            fragment!(page, " at {=} {} with {>} in all.", levels, noun, requests)
        }
        (MeasuredBy::Repeat, _) => fragment!(page, " with {>} in all.", requests),
        _ => fragment!(page, " with {>}.", requests),
    }
}

fn verdict(page: &Page<'_>) -> Option<Sentence> {
    let verdict = page.subject.verdict?;
    let some = |quantity| page.whole(quantity).filter(|place| 0.0 < page.value(*place));
    let are = |place: usize| if page.value(place) <= 1.0 { "is" } else { "are" };
    let counts = (some("degraded"), some("invalid"), page.whole("levels"));
    let levels = |all| if page.value(all) <= 1.0 { "level" } else { "levels" };
    let detail = match (verdict, counts) {
        (Verdict::Valid, _) | (_, (None, None, _) | (_, _, None)) => Fragment::default(),
        (_, (Some(degraded), None, Some(all))) => {
            let words = ": {=} of {=} {} {} degraded";
            fragment!(page, words, degraded, all, levels(all), are(degraded))?
        }
        (_, (Some(degraded), Some(invalid), Some(all))) => {
            let words = ": of {=} {} {=} had an invalid run and {=} {} degraded";
            fragment!(page, words, all, levels(all), invalid, degraded, are(degraded))?
        }
        (_, (None, Some(invalid), Some(all))) => {
            fragment!(page, ": of {=} {} {=} had an invalid run", all, levels(all), invalid)?
        }
    };
    say!(page, "The result is {*}{}.", verdict.key(), detail)
}

fn searched(page: &Page<'_>, found: &Searched) -> Option<Sentence> {
    let row = page.rows.get(found.row)?;
    let level = page.at(row, "asked_rate").or_else(|| page.at(row, "concurrency"))?;
    let end = if found.confirmed { "." } else { ", which no further run has confirmed." };
    let words = "The highest level that meets {$} is {*}{~}{}";
    say!(page, words, found.goals.as_str(), row, level, end)
}

fn sweet_spot(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let spot = page.row_at(family, family.findings.sweet_spot.found()?.level)?;
    let lead = if is_interactive(page, spot)? {
        "The interactive sweet spot is "
    } else {
        "The best level for each user by the rule of the sweet spot is "
    };
    let share = page.at(spot, "share_of_peak").filter(|_| is_lowest(page, family, spot));
    let lowest = match share {
        Some(share) => {
            let words =
                " It is the lowest level that was measured, with {} of the peak throughput.";
            fragment!(page, words, share)?
        }
        None => Fragment::default(),
    };
    let (user, ttft, tpot) =
        ((spot, "per_user_throughput"), (spot, "ttft.p99"), (spot, "tpot.p99"));
    let words = "{}{} with {>} per user, a TTFT p99 of {} and a TPOT p99 of {}.{}";
    say!(page, words, lead, spot, user, ttft, tpot, lowest)
}

/// Whether an answer begins soon enough; `None` where TTFT is not known.
pub(super) fn is_interactive(page: &Page<'_>, row: &Row) -> Option<bool> {
    Some(page.value(page.at(row, "ttft.p99")?) <= INTERACTIVE_MS)
}

/// Whether no lower level could have been chosen.
pub(super) fn is_lowest(page: &Page<'_>, family: &Family, row: &Row) -> bool {
    page.rows_of(family).next().is_some_and(|first| first.name == row.name)
}

/// A prefix cache that has improved the numbers of a family.
pub(super) struct WarmCache {
    /// The server reports it; otherwise only its speed shows it.
    pub(super) is_sure: bool,
    pub(super) evidence: Option<usize>,
}

pub(super) fn warm_cache(page: &Page<'_>, family: &Family) -> Option<WarmCache> {
    let is_sure = page.rows_of(family).any(|row| row.contaminated);
    let evidence = page.rows_of(family).find_map(|row| suspicion(page, row));
    (is_sure || evidence.is_some()).then_some(WarmCache { is_sure, evidence })
}

/// The most that any row of the page has.
pub(super) fn whole_peak<'p>(page: &'p Page<'_>) -> Option<Leading<'p>> {
    leading(page, compared(page), "output_throughput", highest)
}

fn compared<'p>(page: &'p Page<'_>) -> impl Iterator<Item = &'p Row> {
    page.rows.iter().filter(|row| row.is_whole())
}

fn peak(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let found = family.findings.peak.found()?;
    let own = leading(page, page.rows_of(family), &found.quantity, highest)?;
    // Other scenarios may have more, and another server too.
    let is_other = |row: &Row| !page.rows_of(family).any(|own| own.name == row.name);
    let others = compared(page).filter(|row| is_other(row));
    let above = leading(page, others, &found.quantity, highest).filter(|other| {
        page.value(own.place) < page.value(other.place) || is_same(page, own.place, other.place)
    });
    let of = match (&above, page.families.len()) {
        (None, _) => Fragment::default(),
        (Some(_), 1) => fragment!(page, "of the scaling levels ")?,
        (Some(_), _) => fragment!(page, "of {*} ", family.name.as_str())?,
    };
    let rival = match own.rivals.first() {
        Some((rival, other)) if page.overlap(own.place, *other) => {
            fragment!(page, "{~}; its interval overlaps that of {}", *other, *rival)?
        }
        Some((rival, other)) => fragment!(page, "{~}, the same as at {}", *other, *rival)?,
        None => Fragment::default(),
    };
    let rest = match above.filter(|_| page.families.len() == 1) {
        Some(other) if is_same(page, own.place, other.place) => {
            fragment!(page, ". About as much has {*}: {}", other.row, other.place)?
        }
        Some(other) => {
            let words = ". The highest of all is {}{}{*}";
            fragment!(page, words, other.place, page.there(), other.row)?
        }
        None => Fragment::default(),
    };
    let words = "The highest throughput {}is {>} at {}{}{}.";
    say!(page, words, of, own.place, own.row, rival, rest)
}

fn best_tpot(page: &Page<'_>) -> Option<Sentence> {
    let found = leading(page, compared(page), "tpot.mean", lowest)?;
    found.next?;
    say!(page, "The lowest TPOT mean{}.", found.named(page)?)
}

fn longest_ttft(page: &Page<'_>) -> Option<Sentence> {
    let found = leading(page, compared(page), "ttft.mean", highest)?;
    found.next?;
    let named = found.named(page)?;
    match page.at(found.row, "input_tokens").filter(|_| found.rivals.is_empty()) {
        Some(input) => say!(page, "The longest TTFT mean{}, with {=} input tokens.", named, input),
        None => say!(page, "The longest TTFT mean{}.", named),
    }
}

/// The headline of a single run.
fn run_throughput(page: &Page<'_>) -> Option<Sentence> {
    let [row] = page.rows.as_slice() else { return None };
    let (ttft, tpot) = ((row, "ttft.p50"), (row, "tpot.p50"));
    let words = "Output throughput is {>}, the TTFT median {} and the TPOT median {}.";
    say!(page, words, (row, "output_throughput"), ttft, tpot)
}

fn repeated(page: &Page<'_>) -> Option<Sentence> {
    let MeasuredBy::Repeat = page.subject.measured_by else { return None };
    let [row] = page.rows.as_slice() else { return None };
    let runs = page.whole("runs").filter(|runs| 1.0 < page.value(*runs))?;
    let words = "Over {=} runs the mean output throughput is known to within {>}.";
    say!(page, words, runs, (row, "half_width"))
}

fn failures(page: &Page<'_>) -> Option<Sentence> {
    let failed = page.whole("failed_requests").filter(|failed| 0.0 < page.value(*failed))?;
    let all = page.whole("attempted_requests").or_else(|| page.whole("requests"))?;
    say!(page, "{=} of {>} failed; latencies and throughput are of the others.", failed, all)
}

/// The row that a warm cache has answered most: as the server reports it, else by its speed.
fn contaminated(page: &Page<'_>) -> Option<Sentence> {
    page.whole("levels")?;
    let share = |row: &Row| page.at(row, "cached_share.max").filter(|_| row.contaminated);
    if let Some((row, share)) = worst(page, share) {
        let words = "The prefix cache answered prompts that were to be new, up to {>} of the input{}{*}: \
                     what follows from TTFT there describes a warm cache.";
        return say!(page, words, share, page.there(), row);
    }
    let (row, times) = worst(page, |row| suspicion(page, row))?;
    let words = "A prefix cache has probably answered prompts: prefill{}{*} is {>} times as fast as \
                 that of {*}.";
    say!(page, words, page.there(), row, times, row.cold.as_deref()?)
}

fn worst<'p>(
    page: &'p Page<'_>,
    evidence: impl Fn(&Row) -> Option<usize>,
) -> Option<(&'p Row, usize)> {
    let found = page.rows.iter().filter_map(|row| Some((row, evidence(row)?)));
    found.max_by(|(_, a), (_, b)| page.value(*a).total_cmp(&page.value(*b)))
}
