//! What one scenario shows: failures first, then the first token, the tokens after it, throughput
//! and the cache.

use super::limit::HeldBack;
use super::page::{Overload, Page, Row};
use super::thresholds::{
    BURST, CACHED, KV_FULL, PAUSE_SINGLE, PAUSES_LONG, PEAK_APART, PRINTABLE_SHARE, SKEW_LARGE,
    SPREAD_STEADY, SPREAD_WIDE, TAIL_LONG,
};
use super::words::Saying;
use crate::narrative::Sentence;
use crate::narrative::facts::standing::Standing;

const MEAN: Option<&str> = Some("mean");
const MEDIAN: Option<&str> = Some("p50");
const P99: Option<&str> = Some("p99");

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
        promises,
    ];
    rules.into_iter().filter_map(|rule| rule(page, row)).collect()
}

fn failures(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let failed = page.when(row, ("failed_requests", None), |failed| 0.0 < failed)?;
    let all = page.at(row, "attempted_requests", None)?;
    let saying = Saying::on(page.facts).bare(failed).say(" of ").link(all).say(" failed");
    let saying = match &row.failure {
        Some(failure) => saying.say("; the most frequent class is ").code(&failure.class).say("."),
        None => saying.say("."),
    };
    Some(saying.say(" Latencies and throughput are of the others.").done())
}

/// A row whose name promises more users than there were.
fn not_reached(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    (row.standing == Standing::NotReached).then_some(())?;
    let saying = Saying::on(page.facts)
        .say("At most ")
        .bare(page.at(row, "concurrency_peak", None)?)
        .say(" of the ")
        .bare(page.at(row, "concurrency", None)?)
        .say(" users were ever in flight: this row describes fewer than its name says.");
    Some(saying.done())
}

/// Requests that come at their own times, faster than they are answered.
fn overload(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let overload = row.overload?;
    let all = page.at(row, "attempted_requests", None)?;
    let (rate, share) = (page.at(row, "asked_rate", None), page.at(row, "served_share", None));
    let saying = Saying::on(page.facts);
    let saying = match rate {
        Some(rate) => saying.say("At ").number(rate).say(" the server is overloaded: "),
        None => saying.rests_on(all).say("The server is overloaded: "),
    };
    let saying = match (overload, share) {
        (Overload::PilingUp, _) => saying.say("requests come faster than they end, and pile up"),
        (Overload::Behind, Some(share)) => saying.say("it serves ").number(share).say(" of it"),
        (Overload::Behind, None) => saying.say("it falls behind"),
        (Overload::TimedOut, _) => saying
            .say("requests came at their own times, and some waited in vain for a first token"),
    };
    Some(saying.say(". Its latencies depend on how long the run lasts.").done())
}

/// What the server itself says of its prefix cache.
fn cached(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let share = page.when(row, ("cached_share", None), |share| CACHED <= share)?;
    let saying = Saying::on(page.facts).link(share).say(" of the input came from the prefix cache");
    let pp = page.at(row, "pp", None).filter(|_| row.contaminated);
    Some(match pp {
        Some(pp) => saying
            .say(" though every prompt was to be new: TTFT and a prefill speed of ")
            .number(pp)
            .say(" describe a warm cache.")
            .done(),
        None => saying.say(".").done(),
    })
}

/// What prefill speed says of the cache where the server says nothing.
fn too_fast(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let times = suspicion(page, row)?;
    let other = row.cold.as_deref()?;
    let cold = page.of_row(Some(other), "pp", None)?;
    let saying = Saying::on(page.facts)
        .say("Prefill speed is ")
        .link(page.at(row, "pp", None)?)
        .say(", ")
        .bare(times)
        .say(" times the ")
        .number(cold)
        .say(" of ")
        .name(other)
        .say(": the prompts were probably in the server's prefix cache.");
    Some(saying.done())
}

/// How many times faster than a row without a cache, where only that shows it.
pub(super) fn suspicion(page: &Page<'_>, row: &Row) -> Option<usize> {
    row.cold.as_ref()?;
    page.at(row, "pp_times", None).filter(|_| !row.contaminated)
}

fn prefill(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let is_cold = cached(page, row).is_none() && too_fast(page, row).is_none();
    (row.concurrency == Some(1) && is_cold).then_some(())?;
    let mean = page.at(row, "ttft", MEAN)?;
    let (input, speed) = (page.at(row, "input_tokens", None)?, page.at(row, "pp", None)?);
    let saying = Saying::on(page.facts)
        .say("One request at a time waits for no other, so the TTFT mean of ")
        .link(mean)
        .say(" is what a prompt of ")
        .number(input)
        .say(" costs; prefill speed is ")
        .number(speed)
        .say(".");
    Some(saying.done())
}

fn ttft_tail(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let (p99, median) = (page.at(row, "ttft", P99)?, page.at(row, "ttft", MEDIAN)?);
    let saying = Saying::on(page.facts).say("TTFT p99 is ").link(p99);
    if is_long_tailed(page, row) && page.overlap(p99, median) {
        let saying = saying.say(" and its median ").number(median);
        return Some(saying.say("; their intervals overlap, so the tail may be chance.").done());
    }
    if let Some(tail) = page.when(row, ("ttft_tail", None), |tail| TAIL_LONG <= tail) {
        let saying = saying.say(", ").bare(tail).say(" times its median of ").number(median);
        let is_heard = page.at(row, "waiting", Some("max")).is_some();
        let end = match (has_cause(page, row), is_heard) {
            (true, _) => ".",
            (false, true) => "; what these requests waited for is not known.",
            (false, false) => {
                "; what these requests waited for is not known, for the server says nothing of its \
                 queue."
            }
        };
        return Some(saying.say(end).done());
    }
    Some(beside_median(page, row, saying, ("ttft", median))?.say(".").done())
}

/// `…, 8.1 % above its median of 135.27 ms`; `None` where that is no news.
fn beside_median<'a>(
    page: &Page<'a>,
    row: &Row,
    saying: Saying<'a>,
    (of, median): (&str, usize),
) -> Option<Saying<'a>> {
    let spread = page.at(row, &format!("{of}_spread"), None)?;
    let is_same = page.overlap(page.at(row, of, P99)?, median);
    let is_apart = !is_same && PRINTABLE_SHARE <= page.value(spread);
    is_apart.then(|| saying.say(", ").number(spread).say(" above its median of ").number(median))
}

fn has_cause(page: &Page<'_>, row: &Row) -> bool {
    [queueing, burst, held_back, cached, too_fast].iter().any(|rule| rule(page, row).is_some())
}

fn ttft_skew(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let (mean, median) = (page.at(row, "ttft", MEAN)?, page.at(row, "ttft", MEDIAN)?);
    let large = |skew: f64| SKEW_LARGE <= skew && !page.overlap(mean, median);
    let skew = page.when(row, ("ttft_skew", None), large)?;
    let saying = Saying::on(page.facts)
        .say("The TTFT mean of ")
        .link(mean)
        .say(" is ")
        .bare(skew)
        .say(" times the median: ");
    let is_warm = cached(page, row).is_some() || too_fast(page, row).is_some();
    let end = if is_warm {
        "as where some prompts are in the cache and some are not."
    } else {
        "some requests took far longer than the usual one."
    };
    Some(saying.say(end).done())
}

fn is_long_tailed(page: &Page<'_>, row: &Row) -> bool {
    page.when(row, ("ttft_tail", None), |tail| TAIL_LONG <= tail).is_some()
}

fn queueing(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let waiting = page.when(row, ("waiting", Some("max")), |waiting| 1.0 <= waiting)?;
    is_long_tailed(page, row).then(|| {
        Saying::on(page.facts)
            .say("The server had up to ")
            .link(waiting)
            .say(" in its queue, and TTFT counts that wait.")
            .done()
    })
}

fn burst(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let users = page.when(row, ("concurrency", None), |users| 1.0 < users)?;
    let requests = page.at(row, "requests", None)?;
    let share = page.value(users) / page.value(requests);
    (row.is_closed && (BURST..1.0).contains(&share) && is_long_tailed(page, row)).then(|| {
        Saying::on(page.facts)
            .bare(users)
            .say(" of ")
            .link(requests)
            .say(" left together at the start, and prompts that arrive together wait for each other.")
            .done()
    })
}

fn held_back(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let held = HeldBack::of(page, row)?;
    let saying = Saying::on(page.facts)
        .say("Of ")
        .bare(held.users)
        .say(" in flight the server ran at most ")
        .bare(held.running)
        .say(" at once, as far as ")
        .bare(held.readings)
        .say(" readings of a run show; the others waited.");
    Some(saying.done())
}

fn decode(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let (p99, median) = (page.at(row, "tpot", P99)?, page.at(row, "tpot", MEDIAN)?);
    let is_told_apart = !page.overlap(p99, median);
    let long = |tail: f64| TAIL_LONG <= tail && is_told_apart;
    if let Some(tail) = page.when(row, ("tpot_tail", None), long) {
        let saying = Saying::on(page.facts).say("TPOT p99 is ").link(p99).say(", ").bare(tail);
        let saying = saying.say(" times its median of ").number(median);
        return Some(saying.say(": some answers come far slower than others.").done());
    }
    let spread = page.value(page.at(row, "tpot_spread", None)?);
    if spread <= SPREAD_STEADY && is_steady(page, row) {
        let steady = || Saying::on(page.facts).say("Decode is steady: TPOT p99 is ").link(p99);
        let beside = beside_median(page, row, steady(), ("tpot", median));
        let saying = beside.unwrap_or_else(|| steady().say(" and its median ").number(median));
        return Some(saying.say(".").done());
    }
    let saying = Saying::on(page.facts).say("TPOT p99 is ").link(p99);
    let saying = beside_median(page, row, saying, ("tpot", median))?;
    let end = if SPREAD_WIDE <= spread && is_told_apart {
        ": some answers come slower than others."
    } else {
        "."
    };
    Some(saying.say(end).done())
}

/// Whether nothing speaks against it: enough requests, and no long gap between tokens.
fn is_steady(page: &Page<'_>, row: &Row) -> bool {
    let pauses = long_pauses(page, row).or_else(|| longest_pause(page, row));
    row.tpot_certified == Some(true) && pauses.is_none()
}

/// How many times its median ITL p99 is, where answers pause.
pub(super) fn long_pauses(page: &Page<'_>, row: &Row) -> Option<usize> {
    let (p99, median) = (page.at(row, "itl", P99)?, page.at(row, "itl", MEDIAN)?);
    let long = |tail: f64| PAUSES_LONG <= tail && !page.overlap(p99, median);
    page.when(row, ("itl_tail", None), long)
}

/// How many times the median the longest gap is, where that is far.
fn longest_pause(page: &Page<'_>, row: &Row) -> Option<usize> {
    page.when(row, ("itl_max_times", None), |times| PAUSE_SINGLE <= times)
}

/// A pause that p99 does not show.
fn single_pause(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    if long_pauses(page, row).is_some() {
        return None;
    }
    let times = longest_pause(page, row)?;
    let saying = Saying::on(page.facts)
        .say("Answers pause now and then: the longest gap between tokens is ")
        .number(page.at(row, "itl", Some("max"))?)
        .say(", ")
        .bare(times)
        .say(" times the ITL median of ")
        .number(page.at(row, "itl", MEDIAN)?)
        .say(".");
    Some(saying.done())
}

fn pauses(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let end = match row.concurrency {
        Some(0 | 1) => ": answers pause.",
        _ => ": answers pause, as they do while other prompts are prefilled.",
    };
    let tail = long_pauses(page, row)?;
    let saying = Saying::on(page.facts)
        .say("ITL p99 is ")
        .number(page.at(row, "itl", P99)?)
        .say(", ")
        .bare(tail)
        .say(" times its median of ")
        .number(page.at(row, "itl", MEDIAN)?)
        .say(end);
    Some(saying.done())
}

fn preemptions(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let count = page.when(row, ("preemptions", None), |count| 1.0 <= count)?;
    let saying = Saying::on(page.facts)
        .say("The server preempted requests (at most ")
        .link(count)
        .say(" in a run): their tokens so far had to be computed again.");
    Some(saying.done())
}

fn kv_full(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let share = page.when(row, ("kv_usage", Some("max")), |share| KV_FULL <= share)?;
    Some(Saying::on(page.facts).say("The KV cache was up to ").link(share).say(" full.").done())
}

fn promises(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let kept = page.at(row, "attainment", None)?;
    let saying = Saying::on(page.facts).link(kept).say(" of the requests kept every promise");
    Some(match page.at(row, "goodput", None) {
        Some(goodput) => saying.say(": a goodput of ").number(goodput).say(".").done(),
        None => saying.say(".").done(),
    })
}

fn throughput(page: &Page<'_>, row: &Row) -> Option<Sentence> {
    let times = page.when(row, ("peak_times", None), |times| PEAK_APART <= times)?;
    let saying = Saying::on(page.facts)
        .say("Output throughput is ")
        .link(page.at(row, "output_throughput", None)?)
        .say("; in the best second it was ")
        .number(page.at(row, "peak_output_throughput", None)?)
        .say(", ")
        .bare(times)
        .say(" times as much.");
    Some(saying.done())
}
