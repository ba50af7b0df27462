//! The first lines of a page: who was measured, and the few numbers that matter.

use inferometer_analysis::Verdict;

use super::page::{Family, Hardware, MeasuredBy, Page, Row};
use super::scaling::level;
use super::scenario::suspicion;
use super::words::Saying;
use crate::narrative::Sentence;

pub(super) fn findings(page: &Page<'_>) -> Vec<Sentence> {
    let mut said: Vec<Sentence> = subject(page).into_iter().chain(verdict(page)).collect();
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
    let saying = Saying::on(page.facts).say("The highest throughput is ");
    let saying = saying.link(page.at(peak, &found.quantity, None)?).say(" at ");
    Some(level(page, saying, peak)?.say(".").done())
}

/// Among the rows of a page with several.
fn extreme<'p>(
    page: &'p Page<'_>,
    (quantity, statistic): (&str, Option<&str>),
    wanted: fn(&f64, &f64) -> std::cmp::Ordering,
) -> Option<(&'p Row, usize)> {
    let found = page.rows.iter().filter_map(|row| Some((row, page.at(row, quantity, statistic)?)));
    let best = found.max_by(|(_, a), (_, b)| wanted(&page.value(*a), &page.value(*b)));
    best.filter(|_| 1 < page.rows.len())
}

fn best_tpot(page: &Page<'_>) -> Option<Sentence> {
    let least = |a: &f64, b: &f64| b.total_cmp(a);
    let (row, tpot) = extreme(page, ("tpot", Some("mean")), least)?;
    let saying = Saying::on(page.facts).say("The lowest TPOT mean is ").link(tpot);
    Some(saying.say(" in ").name(row.name.as_deref()?).say(".").done())
}

fn longest_ttft(page: &Page<'_>) -> Option<Sentence> {
    let (row, ttft) = extreme(page, ("ttft", Some("mean")), f64::total_cmp)?;
    let saying = Saying::on(page.facts).say("The longest TTFT mean is ").link(ttft);
    let saying = saying.say(" in ").name(row.name.as_deref()?);
    Some(match page.at(row, "input_tokens", None) {
        Some(input) => saying.say(", with prompts of ").number(input).say(".").done(),
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
            .say(" times as fast as one request alone.")
            .done(),
    })
}
