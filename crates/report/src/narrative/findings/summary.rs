//! The first lines of a page: who was measured, and the few numbers that matter.

use std::cmp::Ordering;

use inferometer_analysis::Verdict;

use super::page::{Family, Hardware, MeasuredBy, Page, Row, Searched};
use super::scaling::level;
use super::scenario::suspicion;
use super::words::Saying;
use crate::narrative::Sentence;

pub(super) fn findings(page: &Page<'_>) -> Vec<Sentence> {
    let mut said: Vec<Sentence> = subject(page).into_iter().chain(verdict(page)).collect();
    said.extend(page.searched.iter().filter_map(|found| searched(page, found)));
    for family in &page.families {
        said.extend(sweet_spot(page, family));
        said.extend(peak(page, family));
    }
    let rest = [best_tpot, longest_ttft, run_throughput, repeated, failures, contaminated];
    said.extend(rest.into_iter().filter_map(|rule| rule(page)));
    said
}

fn subject(page: &Page<'_>) -> Option<Sentence> {
    let saying = Saying::on(page.facts).name(page.subject.model.as_deref()?);
    let verb = if page.subject.simulated { " was simulated" } else { " was measured" };
    let saying = saying.say(verb);
    let saying = match (&page.subject.hardware, page.whole("gpus")) {
        (Some(Hardware::Gpus(name)), Some(gpus)) => {
            saying.say(" on ").bare(gpus).say("× ").name(name)
        }
        (Some(Hardware::Pretended(what)), _) => {
            saying.say(" on the embedded engine, which pretends to be ").name(what)
        }
        _ => saying,
    };
    let requests = page.whole("requests")?;
    Some(match (&page.subject.measured_by, page.whole("scenarios")) {
        (MeasuredBy::Suite(name), Some(scenarios)) => saying
            .say(" by the suite ")
            .name(name)
            .say(" with ")
            .bare(scenarios)
            .say(" scenarios and ")
            .link(requests)
            .say(".")
            .done(),
        (MeasuredBy::Sweep, Some(levels)) => saying
            .say(" at ")
            .bare(levels)
            .say(" levels with ")
            .link(requests)
            .say(" in all.")
            .done(),
        (MeasuredBy::Repeat, _) => saying.say(" with ").link(requests).say(" in all.").done(),
        _ => saying.say(" with ").link(requests).say(".").done(),
    })
}

fn verdict(page: &Page<'_>) -> Option<Sentence> {
    let verdict = page.subject.verdict?;
    let saying = Saying::on(page.facts).say("The result is ").name(verdict.key());
    let (degraded, invalid) = (page.whole("degraded"), page.whole("invalid"));
    let some = |place: &usize| 0.0 < page.value(*place);
    let counts = (degraded.filter(some), invalid.filter(some), page.whole("scenarios"));
    Some(match (verdict, counts) {
        (Verdict::Valid, _) | (_, (None, None, _) | (_, _, None)) => saying.say(".").done(),
        (_, (Some(degraded), None, Some(all))) => saying
            .say(": ")
            .bare(degraded)
            .say(" of ")
            .bare(all)
            .say(" levels are degraded.")
            .done(),
        (_, (degraded, Some(invalid), Some(all))) => {
            let saying = saying.say(": of ").bare(all).say(" levels ").bare(invalid);
            let saying = saying.say(" had an invalid run");
            match degraded {
                Some(degraded) => saying.say(" and ").bare(degraded).say(" are degraded.").done(),
                None => saying.say(".").done(),
            }
        }
    })
}

fn searched(page: &Page<'_>, found: &Searched) -> Option<Sentence> {
    let row = page.rows.get(found.row)?;
    let level = page.at(row, "asked_rate", None).or_else(|| page.at(row, "concurrency", None))?;
    let saying = Saying::on(page.facts).say("The highest level that meets ").code(&found.goals);
    let saying = saying.say(" is ").name(row.name.as_deref()?).rests_on(level);
    let end = if found.confirmed { "." } else { ", which no further run has confirmed." };
    Some(saying.say(end).done())
}

fn sweet_spot(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let spot = page.row_at(family, family.findings.sweet_spot.found()?.level)?;
    let saying = level(page, Saying::on(page.facts).say("The interactive sweet spot is "), spot)?
        .say(" with ")
        .link(page.at(spot, "per_user_throughput", None)?)
        .say(" per user, a TTFT p99 of ")
        .number(page.at(spot, "ttft", Some("p99"))?)
        .say(" and a TPOT p99 of ")
        .number(page.at(spot, "tpot", Some("p99"))?)
        .say(".");
    Some(saying.done())
}

fn peak(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let found = family.findings.peak.found()?;
    let peak = page.row_at(family, found.level)?;
    let best = page.at(peak, &found.quantity, None)?;
    let saying = Saying::on(page.facts).say("The highest throughput is ").link(best).say(" at ");
    let saying = level(page, saying, peak)?;
    let others = page.rows_of(family).filter(|row| row.name != peak.name);
    let mut rivals = others.filter_map(|row| Some((row, page.at(row, &found.quantity, None)?)));
    Some(match rivals.rfind(|(_, other)| page.overlap(best, *other)) {
        Some((rival, other)) => {
            let saying = saying.rests_on(other).say("; its interval overlaps that of ");
            level(page, saying, rival)?.say(".").done()
        }
        None => saying.say(".").done(),
    })
}

/// The row that comes first by its number among several, and the next one.
fn extreme<'p>(
    page: &'p Page<'_>,
    (quantity, statistic): (&str, Option<&str>),
    order: fn(&f64, &f64) -> Ordering,
) -> Option<[(&'p Row, usize); 2]> {
    let found = page.rows.iter().filter_map(|row| Some((row, page.at(row, quantity, statistic)?)));
    let mut found: Vec<(&Row, usize)> = found.collect();
    found.sort_by(|(_, a), (_, b)| order(&page.value(*a), &page.value(*b)));
    found.first_chunk::<2>().copied()
}

/// `The lowest TPOT mean is …`, or where nobody can say which it is, the first two.
fn first_of<'a>(
    page: &Page<'a>,
    [(row, first), (rival, second)]: [(&Row, usize); 2],
    (which, what): (&str, &str),
) -> Option<Saying<'a>> {
    let (name, other) = (row.name.as_deref()?, rival.name.as_deref()?);
    let saying = Saying::on(page.facts);
    Some(if page.overlap(first, second) {
        let saying = saying.say(what).say(" is ").link(first).say(page.there()).name(name);
        let saying = saying.say(" and ").number(second).say(page.there()).name(other);
        saying.say("; their intervals overlap")
    } else {
        saying.say(which).say(what).say(" is ").link(first).say(page.there()).name(name)
    })
}

fn best_tpot(page: &Page<'_>) -> Option<Sentence> {
    let found = extreme(page, ("tpot", Some("mean")), f64::total_cmp)?;
    Some(first_of(page, found, ("The lowest ", "TPOT mean"))?.say(".").done())
}

fn longest_ttft(page: &Page<'_>) -> Option<Sentence> {
    let longest = |a: &f64, b: &f64| b.total_cmp(a);
    let found = extreme(page, ("ttft", Some("mean")), longest)?;
    let [(row, first), (_, second)] = found;
    let saying = first_of(page, found, ("The longest ", "TTFT mean"))?;
    let input = page.at(row, "input_tokens", None).filter(|_| !page.overlap(first, second));
    Some(match input {
        Some(input) => saying.say(", with ").bare(input).say(" input tokens.").done(),
        None => saying.say(".").done(),
    })
}

/// Of a run.
fn run_throughput(page: &Page<'_>) -> Option<Sentence> {
    let [row] = page.rows.as_slice() else { return None };
    let saying = Saying::on(page.facts)
        .say("Output throughput is ")
        .link(page.at(row, "output_throughput", None)?)
        .say(", the TTFT median ")
        .number(page.at(row, "ttft", Some("p50"))?)
        .say(" and the TPOT median ")
        .number(page.at(row, "tpot", Some("p50"))?)
        .say(".");
    Some(saying.done())
}

fn repeated(page: &Page<'_>) -> Option<Sentence> {
    let MeasuredBy::Repeat = page.subject.measured_by else { return None };
    let [row] = page.rows.as_slice() else { return None };
    let runs = page.whole("runs").filter(|runs| 1.0 < page.value(*runs))?;
    let width = page.at(row, "half_width", None)?;
    let saying = Saying::on(page.facts)
        .say("Over ")
        .bare(runs)
        .say(" runs the mean output throughput is known to within ")
        .link(width)
        .say(".");
    Some(saying.done())
}

fn failures(page: &Page<'_>) -> Option<Sentence> {
    let failed = page.whole("failed_requests").filter(|failed| 0.0 < page.value(*failed))?;
    let all = page.whole("attempted_requests").or_else(|| page.whole("requests"))?;
    let saying = Saying::on(page.facts).bare(failed).say(" of ").link(all);
    Some(saying.say(" failed; latencies and throughput are of the others.").done())
}

/// How many rows a warm cache has answered, by the server's word or by its speed.
fn contaminated(page: &Page<'_>) -> Option<Sentence> {
    let all = page.whole("scenarios")?;
    let share = |row: &Row| page.at(row, "cached_share", None).filter(|_| row.contaminated);
    let worst = page
        .rows
        .iter()
        .filter_map(|row| Some((row, share(row).or_else(|| suspicion(page, row))?)));
    let (row, evidence) =
        worst.max_by(|(_, a), (_, b)| page.value(*a).total_cmp(&page.value(*b)))?;
    let saying = Saying::on(page.facts).rests_on(all);
    let name = row.name.as_deref()?;
    Some(match page.fact(evidence).about.quantity.as_str() {
        "cached_share" => saying
            .say("The prefix cache answered prompts that were to be new, up to ")
            .link(evidence)
            .say(" of the input in ")
            .name(name)
            .say(": what follows from TTFT there describes a warm cache.")
            .done(),
        _ => saying
            .say("A prefix cache has probably answered prompts: prefill in ")
            .name(name)
            .say(" is ")
            .link(evidence)
            .say(" times as fast as without one.")
            .done(),
    })
}
