//! What one scenario shows: failures first, then the first token, the tokens after it, throughput
//! and the cache.

use super::page::{Overload, Page, Row};
use super::scaling::HeldBack;
use super::sentence::{Fragment, fragment, say};
use super::thresholds::{
    BURST, CACHED, KV_FULL, PAUSE_SINGLE, PAUSES_LONG, PEAK_APART, PRINTABLE_SHARE, SKEW_LARGE,
    SPREAD_STEADY, SPREAD_WIDE, TAIL_LONG,
};
use crate::narrative::Sentence;
use crate::narrative::facts::standing::Standing;

pub(super) fn findings(page: &Page<'_>, row: &Row) -> Vec<Sentence> {
    let rules: [fn(&Page<'_>, &Row) -> Option<Sentence>; 18] = [
        failures,
        not_reached,
        overload,
        cached,
        too_fast,
        prefill,
        ttft_tail,
        ttft_skew,
        queueing,
        burst,
        held_back,
        decode,
        pauses,
        single_pause,
        preemptions,
        kv_full,
        throughput,
        slos,
    ];
    rules.into_iter().filter_map(|rule| rule(page, row)).collect()
}

fn failures(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let failed = page.when(row, "failed_requests", |failed| 0.0 < failed)?;
    let class = match &row.failure {
        Some(failure) => {
            fragment!(page, "; the most frequent class is {$}", failure.class.as_str())?
        }
        None => Fragment::default(),
    };
    let words = "{=} of {>} failed{}. Latencies and throughput are of the others.";
    say!(page, words, failed, (row, "attempted_requests"), class)
}

/// A row whose name says more users than there were.
fn not_reached(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    (row.standing == Standing::NotReached).then_some(())?;
    let words = "At most {=} of the {=} users were ever in flight: this row describes fewer than its \
                 name says.";
    say!(page, words, (row, "concurrency_peak"), (row, "concurrency"))
}

/// Requests that come at their own times, faster than they are answered.
fn overload(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let overload = row.overload?;
    let all = page.at(row, "attempted_requests")?;
    let lead = match page.at(row, "asked_rate") {
        Some(rate) => fragment!(page, "At {} the server is overloaded: ", rate)?,
        None => fragment!(page, "{~}The server is overloaded: ", all)?,
    };
    let what = match (overload, page.at(row, "served_share")) {
        (Overload::PilingUp, _) => {
            fragment!(page, "requests come faster than they end, and pile up")?
        }
        (Overload::Behind, Some(share)) => fragment!(page, "it serves {} of it", share)?,
        (Overload::Behind, None) => fragment!(page, "it falls behind")?,
        (Overload::TimedOut, _) => fragment!(
            page,
            "requests came at their own times, and some waited in vain for a first token"
        )?,
    };
    say!(page, "{}{}. Its latencies depend on how long the run lasts.", lead, what)
}

/// What the server itself reports about its prefix cache.
fn cached(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let share = page.when(row, "cached_share", |share| CACHED <= share)?;
    match page.at(row, "pp").filter(|_| row.contaminated) {
        Some(pp) => {
            let words = "{>} of the input came from the prefix cache though every prompt was to be \
                         new: TTFT and a prefill speed of {} describe a warm cache.";
            say!(page, words, share, pp)
        }
        None => say!(page, "{>} of the input came from the prefix cache.", share),
    }
}

/// What prefill speed shows of the cache where the server reports nothing.
fn too_fast(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let times = suspicion(page, row)?;
    let other = row.cold.as_deref()?;
    let cold = page.of_row(Some(other), "pp")?;
    let words = "Prefill speed is {>}, {=} times the {} of {*}: the prompts were probably in the \
                 server's prefix cache.";
    say!(page, words, (row, "pp"), times, cold, other)
}

/// How many times faster than a row without a cache, where only that shows it.
pub(super) fn suspicion(page: &Page<'_>, row: &Row) -> Option<usize> {
    row.cold.as_ref()?;
    page.at(row, "pp_times").filter(|_| !row.contaminated)
}

fn prefill(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let is_cold = cached(page, row).is_none() && too_fast(page, row).is_none();
    (row.concurrency == Some(1) && is_cold).then_some(())?;
    let words = "One request at a time waits for no other, so the TTFT mean of {>} is what a prompt \
                 of {} costs; prefill speed is {}.";
    say!(page, words, (row, "ttft.mean"), (row, "input_tokens"), (row, "pp"))
}

fn ttft_tail(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let (p99, median) = (page.at(row, "ttft.p99")?, page.at(row, "ttft.p50")?);
    if is_long_tailed(page, row) && page.overlap(p99, median) {
        let words = "TTFT p99 is {>} and its median {}; their intervals overlap, so the tail may be \
                     chance.";
        return say!(page, words, p99, median);
    }
    if let Some(tail) = page.when(row, "ttft_tail", |tail| TAIL_LONG <= tail) {
        let is_reported = page.at(row, "waiting.max").is_some();
        let end = match (has_cause(page, row), is_reported) {
            (true, _) => "",
            (false, true) => "; what these requests waited for is not known",
            (false, false) => {
                "; what these requests waited for is not known, for the server says nothing of its \
                 queue"
            }
        };
        let words = "TTFT p99 is {>}, {=} times its median of {}{}.";
        return say!(page, words, p99, tail, median, end);
    }
    say!(page, "TTFT p99 is {>}{}.", p99, above_median(page, row, "ttft")?)
}

/// `, 8.1 % above its median of 135.27 ms`; `None` where the two cannot be told apart.
fn above_median(page: &Page<'_>, row: &Row, metric: &str) -> Option<Fragment> {
    let of = |statistic: &str| page.at(row, &format!("{metric}{statistic}"));
    let (spread, median) = (of("_spread")?, of(".p50")?);
    let is_apart = !page.overlap(of(".p99")?, median) && PRINTABLE_SHARE <= page.value(spread);
    is_apart.then_some(())?;
    fragment!(page, ", {} above its median of {}", spread, median)
}

fn has_cause(page: &Page<'_>, row: &Row) -> bool {
    [queueing, burst, held_back, cached, too_fast].iter().any(|rule| rule(page, row).is_some())
}

fn ttft_skew(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let (mean, median) = (page.at(row, "ttft.mean")?, page.at(row, "ttft.p50")?);
    let large = |skew: f64| SKEW_LARGE <= skew && !page.overlap(mean, median);
    let skew = page.when(row, "ttft_skew", large)?;
    let is_warm = cached(page, row).is_some() || too_fast(page, row).is_some();
    let end = if is_warm {
        "as where some prompts are in the cache and some are not."
    } else {
        "some requests took far longer than the usual one."
    };
    say!(page, "The TTFT mean of {>} is {=} times the median: {}", mean, skew, end)
}

fn is_long_tailed(page: &Page<'_>, row: &Row) -> bool {
    page.when(row, "ttft_tail", |tail| TAIL_LONG <= tail).is_some()
}

fn queueing(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let waiting = page.when(row, "waiting.max", |waiting| 1.0 <= waiting)?;
    is_long_tailed(page, row).then_some(())?;
    say!(page, "The server had up to {>} in its queue, and TTFT counts that wait.", waiting)
}

fn burst(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let users = page.when(row, "concurrency", |users| 1.0 < users)?;
    let requests = page.at(row, "requests")?;
    let share = page.value(users) / page.value(requests);
    let is_burst = row.is_closed && (BURST..1.0).contains(&share) && is_long_tailed(page, row);
    is_burst.then_some(())?;
    let words = "{=} of {>} left together at the start, and prompts that arrive together wait for \
                 each other.";
    say!(page, words, users, requests)
}

fn held_back(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let HeldBack { users, running, readings } = HeldBack::find(page, row)?;
    let words = "Of {=} in flight the server ran at most {=} at once, as far as {=} readings of a \
                 run show; the others waited.";
    say!(page, words, users, running, readings)
}

fn decode(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let (p99, median) = (page.at(row, "tpot.p99")?, page.at(row, "tpot.p50")?);
    let is_apart = !page.overlap(p99, median);
    if let Some(tail) = page.when(row, "tpot_tail", |tail| TAIL_LONG <= tail && is_apart) {
        let words = "TPOT p99 is {>}, {=} times its median of {}: some answers come far slower than \
                     others.";
        return say!(page, words, p99, tail, median);
    }
    let spread = page.value(page.at(row, "tpot_spread")?);
    let above = above_median(page, row, "tpot");
    if spread <= SPREAD_STEADY && is_steady(page, row) {
        let above = above.or_else(|| fragment!(page, " and its median {}", median))?;
        return say!(page, "Decode is steady: TPOT p99 is {>}{}.", p99, above);
    }
    let is_wide = SPREAD_WIDE <= spread && is_apart;
    let end = if is_wide { ": some answers come slower than others." } else { "." };
    say!(page, "TPOT p99 is {>}{}{}", p99, above?, end)
}

/// Whether nothing speaks against it: enough requests, and no long gap between tokens.
fn is_steady(page: &Page<'_>, row: &Row) -> bool {
    let pauses = long_pauses(page, row).or_else(|| longest_pause(page, row));
    row.tpot_certified == Some(true) && pauses.is_none()
}

/// How many times its median ITL p99 is, where answers pause.
pub(super) fn long_pauses(page: &Page<'_>, row: &Row) -> Option<usize> {
    let (p99, median) = (page.at(row, "itl.p99")?, page.at(row, "itl.p50")?);
    page.when(row, "itl_tail", |tail| PAUSES_LONG <= tail && !page.overlap(p99, median))
}

/// How many times the median the longest gap is, where that is far.
fn longest_pause(page: &Page<'_>, row: &Row) -> Option<usize> {
    page.when(row, "itl_max_times", |times| PAUSE_SINGLE <= times)
}

/// A pause that p99 does not show.
fn single_pause(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    if long_pauses(page, row).is_some() {
        return None;
    }
    let times = longest_pause(page, row)?;
    let words = "Answers pause now and then: the longest gap between tokens is {}, {=} times the ITL \
                 median of {}.";
    say!(page, words, (row, "itl.max"), times, (row, "itl.p50"))
}

fn pauses(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let end = match row.concurrency {
        Some(0 | 1) => ": answers pause.",
        _ => ": answers pause, as they do while other prompts are prefilled.",
    };
    let (tail, median) = (long_pauses(page, row)?, (row, "itl.p50"));
    say!(page, "ITL p99 is {}, {=} times its median of {}{}", (row, "itl.p99"), tail, median, end)
}

fn preemptions(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let count = page.when(row, "preemptions", |count| 1.0 <= count)?;
    let words = "The server preempted requests (at most {>} in a run): their tokens so far had to be \
                 computed again.";
    say!(page, words, count)
}

fn kv_full(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let share = page.when(row, "kv_usage.max", |share| KV_FULL <= share)?;
    say!(page, "The KV cache was up to {>} full.", share)
}

fn slos(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let met = page.at(row, "attainment")?;
    match page.at(row, "goodput") {
        Some(goodput) => {
            say!(page, "{>} of the requests met every SLO: a goodput of {}.", met, goodput)
        }
        None => say!(page, "{>} of the requests met every SLO.", met),
    }
}

fn throughput(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let times = page.when(row, "peak_times", |times| PEAK_APART <= times)?;
    let (mean, peak) = ((row, "output_throughput"), (row, "peak_output_throughput"));
    let words = "Output throughput is {>}; in the best second it was {}, {=} times as much.";
    say!(page, words, mean, peak, times)
}
