//! What to do, each with its reason.

use super::commands::{self, MoreRequests};
use super::limit::{HeldBack, Limit, limited};
use super::order::{highest, leading};
use super::page::{Drawn, Family, MeasuredBy, Overload, Page, Row};
use super::saturation::{flat, last_gain};
use super::scaling::level;
use super::scenario::{long_pauses, suspicion};
use super::summary::{is_interactive, is_lowest, warmth, whole_peak};
use super::thresholds::SHARE_OF_PEAK;
use super::words::Saying;
use crate::narrative::Sentence;

pub(super) fn findings(page: &Page<'_>) -> Vec<Sentence> {
    let mut advice: Vec<Sentence> = failing(page).into_iter().chain(lower_rate(page)).collect();
    for family in &page.families {
        let rules = [interactive, throughput, limit, further];
        advice.extend(rules.into_iter().filter_map(|rule| rule(page, family)));
    }
    let rules = [pauses, fresh_prompts, repeat, more_requests];
    advice.extend(rules.into_iter().filter_map(|rule| rule(page)));
    advice
}

fn interactive(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let spot = page.row_at(family, family.findings.sweet_spot.found()?.level)?;
    let is_interactive = is_interactive(page, spot)?;
    let lead =
        if is_interactive { "For interactive use keep to " } else { "Where users wait, keep to " };
    let saying = level(page, Saying::on(page.facts).say(lead), spot)?
        .say(": per-user throughput is ")
        .link(page.at(spot, "per_user_throughput", None)?)
        .say(" and TTFT p99 is ")
        .number(page.at(spot, "ttft", Some("p99"))?);
    let saying = match warmth(page, family) {
        Some(warm) => {
            let saying = warm.evidence.into_iter().fold(saying, Saying::rests_on);
            saying.say(if warm.is_sure {
                ", with a warm prefix cache; new prompts take longer"
            } else {
                ", probably with a warm prefix cache; new prompts then take longer"
            })
        }
        None => saying,
    };
    if is_interactive && !is_lowest(page, family, spot) {
        return Some(saying.say(".").done());
    }
    let saying =
        saying.say(". It is the best of the measured levels by the rule: hold it against ");
    Some(saying.say("your own limit (").code(commands::PROMISE).say(").").done())
}

/// The lowest level that comes near the peak: what lies above costs users and brings nothing.
fn throughput(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let peak = leading(page, page.rows_of(family), ("output_throughput", None), highest)?.row;
    let near = |row: &&Row| {
        page.when(row, ("share_of_peak", None), |share| SHARE_OF_PEAK <= share).is_some()
    };
    let chosen = page.rows_of(family).find(near)?;
    let saying = level(page, Saying::on(page.facts).say("For throughput use "), chosen)?
        .say(": ")
        .link(page.at(chosen, "output_throughput", None)?);
    if chosen.name == peak.name {
        let is_all = whole_peak(page).is_some_and(|whole| whole.row.name == peak.name);
        let end =
            if is_all { ", the most that was measured." } else { ", the most of these levels." };
        return Some(saying.say(end).done());
    }
    let saying = saying.say(" is ").number(page.at(chosen, "share_of_peak", None)?);
    let saying = level(page, saying.say(" of the peak at "), peak)?;
    let per_user = |row| page.at(row, "per_user_throughput", None);
    Some(match per_user(chosen).zip(per_user(peak)) {
        Some((own, other)) => saying
            .say("; per-user throughput is ")
            .number(own)
            .say(" instead of ")
            .number(other)
            .say(".")
            .done(),
        None => saying.say(".").done(),
    })
}

fn limit(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let row = limited(page, family)?;
    let saying = Saying::on(page.facts);
    match Limit::of(page, row) {
        Limit::KvCache(kv) => {
            let saying =
                saying.say("Give the KV cache more room: it was ").link(kv).say(" full at ");
            let saying = level(page, saying, row)?.say(" (vLLM: ");
            let saying = saying.code("--gpu-memory-utilization").say(", ");
            Some(saying.code("--kv-cache-dtype").say(", or a smaller model).").done())
        }
        // A queue alone may wait for prefill, which no limit on running requests would shorten.
        Limit::Queue { .. } => {
            let held = HeldBack::of(page, row)?;
            page.at(row, "kv_usage", Some("max"))?;
            let saying = saying.say("Let more requests run at once: at ");
            let saying = level(page, saying, row)?.say(" the server ran at most ");
            let saying = saying.bare(held.running).say(" though the KV cache had room, as far as ");
            let saying = saying.bare(held.readings).say(" readings of a run show (vLLM: ");
            Some(saying.code("--max-num-seqs").say(").").done())
        }
        Limit::Neither { .. } | Limit::Unseen { .. } | Limit::Silent => None,
    }
}

/// A curve that has not bent yet asks for more.
fn further(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    if flat(page, family).is_some() {
        return None;
    }
    let (last, gain) = last_gain(page, family)?;
    let highest = page.every_row_of(family).filter_map(|row| row.concurrency).max()?;
    let saying = Saying::on(page.facts).say("Measure higher levels: the step to ");
    let saying = level(page, saying, last)?.say(" still added ").link(gain).say(" (");
    // A level that was asked and not reached needs more requests, not more users.
    if last.concurrency == Some(highest) {
        return Some(saying.code(&commands::higher_levels(highest)).say(").").done());
    }
    Some(saying.say("with more requests than users).").done())
}

fn failing(page: &Page<'_>) -> Option<Sentence> {
    let worst = page.rows.iter().filter_map(|row| {
        Some((row, page.when(row, ("failed_requests", None), |failed| 0.0 < failed)?))
    });
    let (row, failed) = worst.max_by(|(_, a), (_, b)| page.value(*a).total_cmp(&page.value(*b)))?;
    let saying = Saying::on(page.facts).say("Look at the failures first: ").link(failed);
    let saying = match row.name.as_deref() {
        Some(name) => saying.say(" failed").say(page.there()).name(name),
        None => saying.say(" failed"),
    };
    Some(match &row.failure {
        Some(failure) => {
            let most = if failure.is_most { ", most of them as " } else { ", more as " };
            let end = if failure.is_most { "." } else { " than in any other way." };
            saying.say(most).code(&failure.class).say(end).done()
        }
        None => saying.say(".").done(),
    })
}

/// Where requests come at their own times, faster than they are answered.
fn lower_rate(page: &Page<'_>) -> Option<Sentence> {
    let rate = |row: &Row| page.at(row, "asked_rate", None);
    // The lowest rate: what lies above it is overloaded all the more.
    let found = page.rows.iter().filter_map(|row| Some((row, row.overload?)));
    let lowest = |row: &Row| rate(row).map_or(f64::INFINITY, |place| page.value(place));
    let (row, overload) = found.min_by(|(a, _), (b, _)| lowest(a).total_cmp(&lowest(b)))?;
    let saying = Saying::on(page.facts).say("Lower the rate");
    let saying = match rate(row) {
        Some(rate) => saying.say(" to less than ").number(rate),
        None => saying.rests_on(page.at(row, "attempted_requests", None)?),
    };
    // A level of a sweep is its rate.
    let is_suite = matches!(page.subject.measured_by, MeasuredBy::Suite(_));
    let saying = match row.name.as_deref().filter(|_| is_suite) {
        Some(name) => saying.say(" in ").name(name),
        None => saying,
    };
    let why = match overload {
        Overload::PilingUp => ": requests pile up, and latencies grow for as long as they come.",
        Overload::Behind => ": the server falls behind, and latencies grow for as long as it does.",
        Overload::TimedOut => ": requests wait in vain for their first token.",
    };
    Some(saying.say(why).done())
}

fn pauses(page: &Page<'_>) -> Option<Sentence> {
    let found = page.rows.iter().filter(|row| row.concurrency.is_some_and(|users| 1 < users));
    let tails = found.filter_map(|row| Some((row, long_pauses(page, row)?)));
    let (row, tail) = tails.max_by(|(_, a), (_, b)| page.value(*a).total_cmp(&page.value(*b)))?;
    let saying = Saying::on(page.facts)
        .say("Where pauses disturb, let prompts be prefilled in smaller pieces: ITL p99 is ")
        .number(page.at(row, "itl", Some("p99"))?)
        .say(", ")
        .bare(tail)
        .say(" times its median");
    let saying = match row.name.as_deref() {
        Some(name) => saying.say(",").say(page.there()).name(name),
        None => saying,
    };
    Some(saying.say(" (vLLM: ").code("--max-num-batched-tokens").say(").").done())
}

fn fresh_prompts(page: &Page<'_>) -> Option<Sentence> {
    let evidence = page.rows.iter().find_map(|row| {
        let said = page.at(row, "cached_share", None).filter(|_| row.contaminated);
        Some((row, said.or_else(|| suspicion(page, row))?))
    });
    let (row, evidence) = evidence?;
    let by = &page.subject.measured_by;
    let saying = Saying::on(page.facts).rests_on(evidence);
    let (saying, command) = match page.subject.prompts {
        Some(Drawn::Shared) => {
            let words = "Let each scenario send prompts of its own: they share them, and ";
            (saying.say(words), Some(commands::fresh_prompts(by)))
        }
        Some(Drawn::SameInEveryRun) => {
            let words = "Restart the server between runs, or switch its prefix cache off, for the \
                         prompts are the same in every run: ";
            (saying.say(words), Some(commands::restart(by)))
        }
        Some(Drawn::Fresh) => {
            let words = "Measure again with prompts that the server has not seen (another seed), or \
                         restart it before: ";
            (saying.say(words), Some(commands::other_seed(by)))
        }
        None => {
            let words = "Measure again with prompts that the server has not seen, or restart it \
                         before: ";
            (saying.say(words), None)
        }
    };
    let saying = match row.name.as_deref() {
        Some(name) => saying.name(name),
        None => saying.say("this run"),
    };
    let is_sure = row.contaminated;
    let saying =
        saying.say(if is_sure { " met a warm cache" } else { " probably met a warm cache" });
    Some(match command {
        Some(command) => saying.say(" (").code(&command).say(").").done(),
        None => saying.say(".").done(),
    })
}

fn repeat(page: &Page<'_>) -> Option<Sentence> {
    let runs = page.whole("runs").filter(|runs| page.value(*runs) <= 1.0)?;
    let saying = Saying::on(page.facts)
        .say("Repeat it, so that runs can be compared: so far there is ")
        .bare(runs)
        .say(if page.value(runs) < 1.0 { " runs (" } else { " run (" })
        .code(&commands::repeat(&page.subject.measured_by))
        .say(").");
    Some(saying.done())
}

fn more_requests(page: &Page<'_>) -> Option<Sentence> {
    if let MeasuredBy::Others = page.subject.measured_by {
        return None;
    }
    let floor = page.whole("certified_from")?;
    let counts = page.rows.iter().filter(|row| row.certified == Some(false));
    let counts = counts.filter_map(|row| page.at(row, "requests", None));
    let fewest = counts.min_by(|a, b| page.value(*a).total_cmp(&page.value(*b)))?;
    (page.value(fewest) < page.value(floor)).then_some(())?;
    let saying = Saying::on(page.facts)
        .say("Send at least ")
        .number(floor)
        .say(" where p99 matters: so far it rests on as few as ")
        .bare(fewest);
    let requests = &page.fact(floor).printed;
    Some(match commands::more_requests(&page.subject.measured_by, requests) {
        MoreRequests::Flag(command) => saying.say(" (").code(&command).say(").").done(),
        MoreRequests::OwnSuite(command) => saying
            .say(". Raise ")
            .code("requests")
            .say(" in a suite of your own; ")
            .code(&command)
            .say(" writes one to begin with.")
            .done(),
    })
}
