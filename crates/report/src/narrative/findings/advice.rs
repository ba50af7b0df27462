//! What to do, each with its reason.

use super::page::{Drawn, Family, MeasuredBy, Overload, Page, Row, highest, leading};
use super::scaling::{HeldBack, Limit, flat, last_gain, limited};
use super::scenario::{long_pauses, suspicion};
use super::sentence::{Fragment, fragment, say};
use super::summary::{is_interactive, is_lowest, warm_cache, whole_peak};
use super::thresholds::SHARE_OF_PEAK;
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
    let warm = match warm_cache(page, family) {
        Some(warm) if warm.is_sure => {
            let words = "{~}, with a warm prefix cache; new prompts take longer";
            fragment!(page, words, warm.evidence)?
        }
        Some(warm) => {
            let words = "{~}, probably with a warm prefix cache; new prompts then take longer";
            fragment!(page, words, warm.evidence)?
        }
        None => Fragment::default(),
    };
    let (user, ttft) = ((spot, "per_user_throughput"), (spot, "ttft.p99"));
    let words = "{}{}: per-user throughput is {>} and TTFT p99 is {}{}";
    let advice = fragment!(page, words, lead, spot, user, ttft, warm)?;
    if is_interactive && !is_lowest(page, family, spot) {
        return say!(page, "{}.", advice);
    }
    let words = "{}. It is the best of the measured levels by the rule: hold it against your own limit \
                 ({$}).";
    say!(page, words, advice, SLO_FLAG)
}

/// The lowest level that comes near the peak: what lies above costs users and brings nothing.
fn throughput(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let peak = leading(page, page.rows_of(family), "output_throughput", highest)?.row;
    let is_near =
        |row: &&Row| page.when(row, "share_of_peak", |share| SHARE_OF_PEAK <= share).is_some();
    let chosen = page.rows_of(family).find(is_near)?;
    let lead =
        fragment!(page, "For throughput use {}: {>}", chosen, (chosen, "output_throughput"))?;
    if chosen.name == peak.name {
        let is_all = whole_peak(page).is_some_and(|whole| whole.row.name == peak.name);
        let most = if is_all { "that was measured" } else { "of these levels" };
        return say!(page, "{}, the most {}.", lead, most);
    }
    let share = (chosen, "share_of_peak");
    let per_user = |row| page.at(row, "per_user_throughput");
    match per_user(chosen).zip(per_user(peak)) {
        Some((own, other)) => {
            let words = "{} is {} of the peak at {}; per-user throughput is {} instead of {}.";
            say!(page, words, lead, share, peak, own, other)
        }
        None => say!(page, "{} is {} of the peak at {}.", lead, share, peak),
    }
}

fn limit(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let row = limited(page, family)?;
    match Limit::find(page, row) {
        Limit::KvCache(kv) => {
            let words = "Give the KV cache more room: it was {>} full at {} (vLLM: {$}, {$}, or a \
                         smaller model).";
            say!(page, words, kv, row, "--gpu-memory-utilization", "--kv-cache-dtype")
        }
        // A queue alone may wait for prefill, which no limit on running requests would shorten.
        Limit::Queue { .. } => {
            let held = HeldBack::find(page, row)?;
            page.at(row, "kv_usage.max")?;
            let words = "Let more requests run at once: at {} the server ran at most {=} though the KV \
                         cache had room, as far as {=} readings of a run show (vLLM: {$}).";
            say!(page, words, row, held.running, held.readings, "--max-num-seqs")
        }
        Limit::Neither { .. } | Limit::Unseen { .. } | Limit::NotReported => None,
    }
}

/// A curve that has not bent yet asks for more.
fn further(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    if flat(page, family).is_some() {
        return None;
    }
    let (last, gain) = last_gain(page, family)?;
    let highest = page.every_row_of(family).filter_map(|row| row.concurrency).max()?;
    // A level that was asked and not reached needs more requests, not more users.
    let how = if last.concurrency == Some(highest) {
        fragment!(page, "{$}", higher_levels(highest).as_str())?
    } else {
        fragment!(page, "with more requests than users")?
    };
    say!(page, "Measure higher levels: the step to {} still added {>} ({}).", last, gain, how)
}

/// ` in Name` or ` at Name`; nothing for a run, which has no name.
fn where_it_is(page: &Page<'_>, before: &str, row: &Row) -> Option<Fragment> {
    match row.name.as_deref() {
        Some(name) => fragment!(page, "{}{}{*}", before, page.there(), name),
        None => Some(Fragment::default()),
    }
}

fn failing(page: &Page<'_>) -> Option<Sentence> {
    let (row, failed) = page.largest("failed_requests", |failed| 0.0 < failed)?;
    let place = where_it_is(page, "", row)?;
    let class = match &row.failure {
        Some(failure) if failure.is_most => {
            fragment!(page, ", most of them as {$}", failure.class.as_str())?
        }
        Some(failure) => {
            fragment!(page, ", more as {$} than in any other way", failure.class.as_str())?
        }
        None => Fragment::default(),
    };
    say!(page, "Look at the failures first: {>} failed{}{}.", failed, place, class)
}

/// Where requests come at their own times, faster than they are answered.
fn lower_rate(page: &Page<'_>) -> Option<Sentence> {
    let rate = |row: &Row| page.at(row, "asked_rate");
    // The lowest rate: what lies above it is overloaded all the more.
    let found = page.rows.iter().filter_map(|row| Some((row, row.overload?)));
    let lowest = |row: &Row| rate(row).map_or(f64::INFINITY, |place| page.value(place));
    let (row, overload) = found.min_by(|(a, _), (b, _)| lowest(a).total_cmp(&lowest(b)))?;
    let rate = match rate(row) {
        Some(rate) => fragment!(page, " to less than {}", rate)?,
        None => fragment!(page, "{~}", (row, "attempted_requests"))?,
    };
    // A level of a sweep is its rate.
    let is_suite = matches!(page.subject.measured_by, MeasuredBy::Suite(_));
    let place = match row.name.as_deref().filter(|_| is_suite) {
        Some(name) => fragment!(page, " in {*}", name)?,
        None => Fragment::default(),
    };
    let why = match overload {
        Overload::PilingUp => "requests pile up, and latencies grow for as long as they come",
        Overload::Behind => "the server falls behind, and latencies grow for as long as it does",
        Overload::TimedOut => "requests wait in vain for their first token",
    };
    say!(page, "Lower the rate{}{}: {}.", rate, place, why)
}

fn pauses(page: &Page<'_>) -> Option<Sentence> {
    let found = page.rows.iter().filter(|row| row.concurrency.is_some_and(|users| 1 < users));
    let tails = found.filter_map(|row| Some((row, long_pauses(page, row)?)));
    let (row, tail) = tails.max_by(|(_, a), (_, b)| page.value(*a).total_cmp(&page.value(*b)))?;
    let words = "Where pauses disturb, let prompts be prefilled in smaller pieces: ITL p99 is {}, {=} \
                 times its median{} (vLLM: {$}).";
    let place = where_it_is(page, ",", row)?;
    say!(page, words, (row, "itl.p99"), tail, place, "--max-num-batched-tokens")
}

fn fresh_prompts(page: &Page<'_>) -> Option<Sentence> {
    let (row, evidence) = page.rows.iter().find_map(|row| {
        let reported = page.at(row, "cached_share").filter(|_| row.contaminated);
        Some((row, reported.or_else(|| suspicion(page, row))?))
    })?;
    let (advice, flag) = match page.subject.prompts {
        Some(Drawn::Shared) => (
            "Let each scenario send prompts of its own: they share them, and ",
            Some("--prompts fresh"),
        ),
        Some(Drawn::SameInEveryRun) => (
            "Restart the server between runs, or switch its prefix cache off, for the prompts are the \
             same in every run: ",
            Some("--restart COMMAND"),
        ),
        Some(Drawn::Fresh) => (
            "Measure again with prompts that the server has not seen (another seed), or restart it \
             before: ",
            Some("--seed N"),
        ),
        None => (
            "Measure again with prompts that the server has not seen, or restart it before: ",
            None,
        ),
    };
    let who = match row.name.as_deref() {
        Some(name) => fragment!(page, "{*}", name)?,
        None => fragment!(page, "this run")?,
    };
    let met = if row.contaminated { " met a warm cache" } else { " probably met a warm cache" };
    let how = match flag {
        Some(flag) => {
            fragment!(page, " ({$})", again_with(&page.subject.measured_by, flag).as_str())?
        }
        None => Fragment::default(),
    };
    say!(page, "{~}{}{}{}{}.", evidence, advice, who, met, how)
}

fn repeat(page: &Page<'_>) -> Option<Sentence> {
    let runs = page.whole("runs").filter(|runs| page.value(*runs) <= 1.0)?;
    let noun = if page.value(runs) < 1.0 { "runs" } else { "run" };
    let command = again_with(&page.subject.measured_by, "--repeat 5");
    let words = "Repeat it, so that runs can be compared: so far there is {=} {} ({$}).";
    say!(page, words, runs, noun, command.as_str())
}

fn more_requests(page: &Page<'_>) -> Option<Sentence> {
    if let MeasuredBy::Others = page.subject.measured_by {
        return None;
    }
    let floor = page.whole("certified_from")?;
    let counts = page.rows.iter().filter(|row| row.certified == Some(false));
    let counts = counts.filter_map(|row| page.at(row, "requests"));
    let fewest = counts.min_by(|a, b| page.value(*a).total_cmp(&page.value(*b)))?;
    (page.value(fewest) < page.value(floor)).then_some(())?;
    let words = "Send at least {} where p99 matters: so far it rests on as few as {=}";
    let advice = fragment!(page, words, floor, fewest)?;
    // The scenarios of a suite say themselves how many requests they send.
    if let MeasuredBy::Suite(name) = &page.subject.measured_by {
        let words = "{}. Raise {$} in a suite of your own; {$} writes one to begin with.";
        return say!(page, words, advice, "requests", own_suite(name).as_str());
    }
    let flag = format!("--requests {}", page.fact(floor).printed);
    let command = again_with(&page.subject.measured_by, &flag);
    say!(page, "{} ({$}).", advice, command.as_str())
}

/// The flag that sets a threshold to compare a level with.
const SLO_FLAG: &str = "--slo";

/// The command that measures the same again, with one more flag.
fn again_with(by: &MeasuredBy, flag: &str) -> String {
    let command = match by {
        MeasuredBy::Suite(name) => format!("suite {}", shell_word(name)),
        MeasuredBy::Sweep => "sweep".to_owned(),
        MeasuredBy::Repeat | MeasuredBy::Run => "run".to_owned(),
        MeasuredBy::Others => "suite standard".to_owned(),
    };
    format!("inferometer {command} {flag}")
}

/// The name of a suite, if a shell reads it as one word.
fn shell_word(name: &str) -> &str {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let is_word = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    if is_word && name.chars().all(is_plain) { name } else { "NAME" }
}

/// The command that writes a suite as a file, in which the number of requests can be raised.
fn own_suite(name: &str) -> String {
    format!("inferometer suite --show {} > mine.toml", shell_word(name))
}

/// The command that measures twice and four times the highest level so far.
fn higher_levels(highest: u32) -> String {
    let (twice, four_times) = (highest.saturating_mul(2), highest.saturating_mul(4));
    format!("inferometer sweep --concurrencies {twice},{four_times}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The command line is another crate, whose tests run these commands.
    #[test]
    fn these_are_all_the_commands() {
        let suite = MeasuredBy::Suite("code".to_owned());
        let again = |by| again_with(by, "--repeat 5");
        assert_eq!(again(&suite), "inferometer suite code --repeat 5");
        assert_eq!(again(&MeasuredBy::Sweep), "inferometer sweep --repeat 5");
        assert_eq!(again(&MeasuredBy::Run), "inferometer run --repeat 5");
        assert_eq!(again(&MeasuredBy::Others), "inferometer suite standard --repeat 5");
        assert_eq!(again(&MeasuredBy::Repeat), again(&MeasuredBy::Run));
        assert_eq!(own_suite("code"), "inferometer suite --show code > mine.toml");
        assert_eq!(higher_levels(32), "inferometer sweep --concurrencies 64,128");
        assert_eq!(SLO_FLAG, "--slo");
    }

    #[test]
    fn a_name_that_a_shell_would_read_otherwise_is_not_printed() {
        for name in ["my suite", "$(id)", "-x", "a;b", ""] {
            let command = again_with(&MeasuredBy::Suite(name.to_owned()), "--seed N");
            assert_eq!(command, "inferometer suite NAME --seed N");
        }
    }
}
