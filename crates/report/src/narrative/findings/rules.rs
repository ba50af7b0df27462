//! The rules of each section with their thresholds.

use std::cmp::Ordering;

use inferometer_analysis::{Better, Metric, Quantity, Verdict, metric};
use inferometer_model::spec::SourceKind;
use inferometer_model::study::{Level, Prompts};

use super::{Family, MeasuredBy, Page, Row, say};
use crate::narrative::Sentence;
use crate::narrative::facts::Overload;
use crate::texts::text as words;

/// p99 over median of TTFT: the slowest of a hundred waits as long again as a usual request takes.
const TAIL_LONG: f64 = 2.0;

/// Mean over median of TTFT: half as much again is more than one slow request in fifty can add,
/// unless that one is very slow.
const SKEW_LARGE: f64 = 1.5;

/// p99 above median of TPOT: nearer than this, answers are read at the same speed.
const SPREAD_STEADY: f64 = 0.05;

/// p99 above median of TPOT: a reader who has two answers side by side sees a fifth.
const SPREAD_WIDE: f64 = 0.20;

/// p99 over median of ITL: one step of a batch does not take five times the usual for being larger;
/// something else ran in between.
const PAUSES_LONG: f64 = 5.0;

/// The best second over the mean: above this there were times of much less.
const PEAK_APART: f64 = 1.3;

/// Servers preempt when no block is free; between two scrapes the fullest moment is missed.
const KV_FULL: f64 = 0.95;

/// Throughput gained by twice the users: below a tenth the server is saturated for all that
/// matters.
const GAIN_SMALL: f64 = 0.10;

/// A level this near the peak is as good for throughput.
const SHARE_OF_PEAK: f64 = 0.95;

/// Share of the input: below one part in a hundred a prefix cache has found a chat template, not
/// prompts.
const CACHED: f64 = 0.01;

/// Readings of a gauge inside a run: with fewer, a state that lasted for a tenth of the run may be in
/// none of them.
const READINGS_FEWEST: f64 = 10.0;

/// The longest gap over the median of ITL: one gap of a run is always long, so the threshold is higher
/// than that of p99.
const PAUSE_SINGLE: f64 = 10.0;

/// Requests that are sent together as the run begins, as a share of all: from a tenth on they reach
/// down to p90.
const BURST: f64 = 0.10;

/// Waiting requests as a share of those in flight: fewer are on their way in, and delay nothing.
const QUEUE_SHARE: f64 = 0.10;

/// How often a resampled set must choose the same level before the choice is called certain.
const SAME_CHOICE: f64 = 0.95;

/// A share that prints as `< 0.1 %` is too small to state.
const PRINTABLE_SHARE: f64 = 0.001;

/// Running requests below this share of those in flight, in the mean and at most: the server holds
/// some back.
const HELD_BACK: f64 = 0.9;

/// A sentence that lists more rows is a table.
const RIVALS_MOST: usize = 2;
const NAMES_MOST: usize = 5;

type PageRule = fn(&Page<'_>) -> Option<Sentence>;
type RowRule = fn(&Page<'_>, &Row<'_>) -> Option<Sentence>;
type FamilyRule = fn(&Page<'_>, &Family<'_>) -> Option<Sentence>;

/// The sentences of the rules about each family in turn.
fn by_family(page: &Page<'_>, rules: &[FamilyRule]) -> Vec<Sentence> {
    let mut found = Vec::new();
    for family in &page.families {
        found.extend(rules.iter().filter_map(|rule| rule(page, family)));
    }
    found
}

// The first lines of a page: the subject, and the few numbers that matter.

pub(super) fn summary(page: &Page<'_>) -> Vec<Sentence> {
    let rest: [PageRule; 6] = [
        |page| extreme(page, "The lowest TPOT mean", metric::TPOT.mean(), Better::Lower),
        |page| extreme(page, "The longest TTFT mean", metric::TTFT.mean(), Better::Higher),
        run_throughput,
        repeated,
        failures,
        warm_answers,
    ];
    let mut found: Vec<Sentence> = subject(page).into_iter().chain(verdict(page)).collect();
    found.extend(page.searched.iter().filter_map(|(row, limit)| {
        let row = page.rows.get(*row)?;
        let level = page.at(row, "asked_rate").or_else(|| page.at(row, "concurrency"))?;
        let end = if limit.confirmed { "." } else { "; no further run has confirmed it." };
        let goals = limit.goals.join(" and ");
        say!(page, row => words("searched"), goals.as_str(), level, end)
    }));
    found.extend(by_family(page, &[interactive_spot, peak]));
    found.extend(rest.into_iter().filter_map(|rule| rule(page)));
    found
}

fn subject(page: &Page<'_>) -> Option<Sentence> {
    // Several servers may have several models and machines.
    let several = page.set.is_some_and(|set| 1 < set.conditions.len() && set.suite.is_none());
    let first = page.first.filter(|_| !several)?;
    let verb = if page.is_simulated() { "simulated" } else { "measured" };
    let server = first.system.server.as_ref();
    let pretended = server.and_then(|server| server.pretended.as_deref());
    let machine = server.and_then(|server| server.machine.as_ref());
    let gpus = machine.filter(|_| pretended.is_none()).map_or(&[][..], |machine| &machine.gpus);
    let gpu = gpus.first().filter(|first| gpus.iter().all(|gpu| gpu.name == first.name));
    let gpus = gpu.and_then(|gpu| say!(page, " on {=gpus}× {*}", gpu.name.as_str()));
    let extent = if let MeasuredBy::Suite(name) = page.measured_by() {
        say!(page, " by the suite {*} with {scenarios}, {levels} and {>requests}.", name)
    } else {
        say!(page, "[ at {levels}] with {>requests}.")
    };
    let engine = pretended.and_then(|profile| {
        say!(page, " It ran on the embedded engine, which simulates {*}.", profile)
    });
    say!(page, "{*} was {}{}{}{}", first.run.model.as_str(), verb, gpus, extent?, engine)
}

fn verdict(page: &Page<'_>) -> Option<Sentence> {
    let of_run = || page.first.map(|run| run.verdict);
    let verdict = page.set.map(|set| set.verdict).or_else(of_run)?;
    let detail = if verdict < Verdict::Degraded { None } else { say!(page, words("degraded")) };
    say!(page, "The result is {*}{}.", verdict.key(), detail)
}

fn interactive_spot(page: &Page<'_>, family: &Family<'_>) -> Option<Sentence> {
    let spot = page.sweet_spot(family)?;
    let lowest =
        if is_lowest(page, family, spot) { say!(page, spot => words("lowest-spot")) } else { None };
    say!(page, spot => words("interactive-spot"), lowest)
}

/// Whether no lower level could have been chosen.
fn is_lowest(page: &Page<'_>, family: &Family<'_>, row: &Row<'_>) -> bool {
    page.rows_of(family).next().is_some_and(|first| first.name() == row.name())
}

/// A prefix cache that has improved the numbers of a family: `true` where the server reports it,
/// `false` where only its speed shows it, and the fact that does.
fn warm_cache(page: &Page<'_>, family: &Family<'_>) -> Option<(bool, Option<usize>)> {
    let is_sure = page.rows_of(family).any(Row::is_contaminated);
    let evidence = page.rows_of(family).find_map(|row| suspicion(page, row));
    (is_sure || evidence.is_some()).then_some((is_sure, evidence))
}

fn peak(page: &Page<'_>, family: &Family<'_>) -> Option<Sentence> {
    let quantity = &family.findings.peak.found()?.quantity;
    let own = page.leading(page.rows_of(family), quantity, Better::Higher)?;
    // Other scenarios may have more, and another server too.
    let is_other = |row: &&Row<'_>| !page.rows_of(family).any(|own| own.name() == row.name());
    let others = page.compared().filter(is_other);
    let above = page.leading(others, quantity, Better::Higher).filter(|other| {
        page.value(own.place) < page.value(other.place) || page.is_same(own.place, other.place)
    });
    let of = match (&above, page.families.len()) {
        (None, _) => None,
        (Some(_), 1) => say!(page, "of the scaling levels "),
        (Some(_), _) => say!(page, "of {*} ", family.name),
    };
    let rival = own.rivals.first().and_then(|(rival, other)| {
        say!(page, *rival => "{~}; {level} cannot be distinguished from it", *other)
    });
    let rest = above.filter(|_| page.families.len() == 1);
    let rest = rest.and_then(|it| say!(page, it.row => "; {*name} has {}", it.place));
    say!(page, own.row => "The highest throughput {}is {>} at {level}{}{}.", of, own.place, rival, rest)
}

/// The row with the lowest or the highest value; none where too many cannot be distinguished from it.
fn extreme(page: &Page<'_>, title: &str, quantity: Quantity, order: Better) -> Option<Sentence> {
    let found = page.leading(page.compared(), quantity, order)?;
    found.next.filter(|_| found.rivals.len() <= RIVALS_MOST)?;
    let mut rivals = Sentence::default();
    for (row, place) in &found.rivals {
        let lead = if rivals.text.is_empty() { "; not distinguishable from it: " } else { ", " };
        rivals.append(say!(page, *row => "{}{*name} ({})", lead, *place)?);
    }
    say!(page, found.row => words("extreme"), title, found.place, page.there(), rivals)
}

/// The headline of a single run.
fn run_throughput(page: &Page<'_>) -> Option<Sentence> {
    let [row] = page.rows.as_slice() else { return None };
    say!(page, row => words("run-throughput"))
}

fn repeated(page: &Page<'_>) -> Option<Sentence> {
    let (MeasuredBy::Repeat, [row]) = (page.measured_by(), page.rows.as_slice()) else {
        return None;
    };
    let runs = page.whole("runs").filter(|runs| 1.0 < page.value(*runs))?;
    say!(page, row => words("repeated"), runs)
}

fn failures(page: &Page<'_>) -> Option<Sentence> {
    (0.0 < page.count("failed_requests")).then_some(())?;
    let all = page.whole("attempted_requests").or_else(|| page.whole("requests"))?;
    say!(page, words("failures"), all)
}

/// The row that a warm cache has answered most: as the server reports it, else by its speed.
fn warm_answers(page: &Page<'_>) -> Option<Sentence> {
    page.whole("levels")?;
    let reported =
        |row: &Row<'_>| page.at(row, "cached_share.max").filter(|_| row.is_contaminated());
    if let Some((row, share)) = page.largest(reported) {
        return say!(page, row => words("warm-answers"), share, page.there());
    }
    let (row, times) = page.largest(|row| suspicion(page, row))?;
    say!(page, row => words("fast-answers"), page.there(), times, row.cold?)
}

// The findings of one scenario: failures first, then the first token, the tokens after it, throughput
// and the cache.

pub(super) fn scenario(page: &Page<'_>, row: &Row<'_>) -> Vec<Sentence> {
    let rules: [RowRule; 14] = [
        row_failures,
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
    ];
    let above = ABOVE.iter().filter_map(|(quantity, least, sentence)| {
        page.when(row, quantity, |value| *least <= value)?;
        say!(page, row => words(sentence))
    });
    rules.into_iter().filter_map(|rule| rule(page, row)).chain(above).collect()
}

/// The sentences about numbers that are at least this large.
const ABOVE: [(&str, f64, &str); 4] = [
    ("preemptions", 1.0, "preemptions"),
    ("kv_usage.max", KV_FULL, "kv-full"),
    ("peak_times", PEAK_APART, "peak-apart"),
    (metric::ATTAINMENT.name, 0.0, "met-slos"),
];

fn row_failures(page: &Page<'_>, row: &Row<'_>) -> Option<Sentence> {
    page.when(row, "failed_requests", |failed| 0.0 < failed)?;
    say!(page, row => words("row-failures"), failure_class(page, row))
}

fn failure_class(page: &Page<'_>, row: &Row<'_>) -> Option<Sentence> {
    say!(page, "; the most frequent class is {$}", row.failure_class()?)
}

/// A row whose name states more users than there were.
fn not_reached(page: &Page<'_>, row: &Row<'_>) -> Option<Sentence> {
    row.is_short().then_some(())?;
    say!(page, row => words("not-reached"))
}

/// Requests of an open loop that come faster than they are answered.
fn overload(page: &Page<'_>, row: &Row<'_>) -> Option<Sentence> {
    let reason = match row.overload()? {
        Overload::PilingUp => "requests come faster than they end, and pile up",
        Overload::Behind if page.at(row, "served_share").is_some() => {
            "it serves {served_share} of the rate"
        }
        Overload::Behind => "it falls behind",
        Overload::TimedOut => "some requests timed out before their first token",
    };
    let reason = say!(page, row => reason)?;
    say!(page, row => words("overload"), reason)
}

/// The cache hits that the server reports.
fn cached(page: &Page<'_>, row: &Row<'_>) -> Option<Sentence> {
    page.when(row, "cached_share", |share| CACHED <= share)?;
    let sentence = if row.is_contaminated() { "cached-though-new" } else { "cached" };
    say!(page, row => words(sentence)).or_else(|| say!(page, row => words("cached")))
}

/// The evidence of prefill speed where the server reports no cache hits.
fn too_fast(page: &Page<'_>, row: &Row<'_>) -> Option<Sentence> {
    let times = suspicion(page, row)?;
    let cold = page.named_at(row.cold, metric::PP.name)?;
    say!(page, row => words("too-fast"), times, cold, row.cold)
}

/// How many times faster prefill is than that of a row without a cache, where only that shows it.
fn suspicion(page: &Page<'_>, row: &Row<'_>) -> Option<usize> {
    row.cold.filter(|_| !row.is_contaminated())?;
    page.at(row, "pp_times")
}

/// Whether some of the prompts were in the prefix cache.
fn is_warm(page: &Page<'_>, row: &Row<'_>) -> bool {
    cached(page, row).is_some() || too_fast(page, row).is_some()
}

fn prefill(page: &Page<'_>, row: &Row<'_>) -> Option<Sentence> {
    (row.key.concurrency == Some(1) && !is_warm(page, row)).then_some(())?;
    say!(page, row => words("prefill"))
}

fn ttft_tail(page: &Page<'_>, row: &Row<'_>) -> Option<Sentence> {
    let (p99, median) = (page.at(row, metric::TTFT.p99())?, page.at(row, metric::TTFT.p50())?);
    if !is_long_tailed(page, row) {
        let above = above_median(page, row, &metric::TTFT)?;
        return say!(page, row => "TTFT p99 is {>ttft.p99}{}.", above);
    }
    if page.overlap(p99, median) {
        return say!(page, row => words("ttft-tail-by-chance"));
    }
    let causes: [RowRule; 3] = [queueing, burst, held_back];
    let has_cause = is_warm(page, row) || causes.iter().any(|rule| rule(page, row).is_some());
    let end = if has_cause { "" } else { "; what these requests waited for is not known" };
    say!(page, row => words("ttft-tail"), end)
}

/// `, 8.1 % above its median of 135.27 ms`; `None` where the two cannot be distinguished.
fn above_median(page: &Page<'_>, row: &Row<'_>, metric: &'static Metric) -> Option<Sentence> {
    let spread = page.at(row, format!("{}_spread", metric.name))?;
    let median = page.at(row, metric.p50())?;
    let is_apart =
        !page.overlap(page.at(row, metric.p99())?, median) && PRINTABLE_SHARE <= page.value(spread);
    is_apart.then_some(())?;
    say!(page, ", {} above its median of {}", spread, median)
}

fn ttft_skew(page: &Page<'_>, row: &Row<'_>) -> Option<Sentence> {
    let (mean, median) = (page.at(row, metric::TTFT.mean())?, page.at(row, metric::TTFT.p50())?);
    page.when(row, "ttft_skew", |skew| SKEW_LARGE <= skew && !page.overlap(mean, median))?;
    let end = if is_warm(page, row) {
        "as where some prompts are in the cache and some are not."
    } else {
        "some requests took far longer than the usual one."
    };
    say!(page, row => words("ttft-skew"), end)
}

fn is_long_tailed(page: &Page<'_>, row: &Row<'_>) -> bool {
    page.when(row, "ttft_tail", |tail| TAIL_LONG <= tail).is_some()
}

fn queueing(page: &Page<'_>, row: &Row<'_>) -> Option<Sentence> {
    page.when(row, "waiting.max", |waiting| 1.0 <= waiting)?;
    is_long_tailed(page, row).then_some(())?;
    say!(page, row => words("queueing"))
}

fn burst(page: &Page<'_>, row: &Row<'_>) -> Option<Sentence> {
    let users = page.when(row, "concurrency", |users| 1.0 < users)?;
    let share = page.value(users) / page.value(page.at(row, "requests")?);
    let is_burst = row.is_closed() && (BURST..1.0).contains(&share) && is_long_tailed(page, row);
    is_burst.then_some(())?;
    say!(page, row => words("burst"))
}

/// A server that runs fewer requests than are in flight, for the whole run.
fn held_back(page: &Page<'_>, row: &Row<'_>) -> Option<Sentence> {
    page.when(row, "readings", |readings| READINGS_FEWEST <= readings)?;
    let is_below = |quantity: &str, bound: &str| {
        let bound = page.value(page.at(row, bound)?);
        page.when(row, quantity, |running| 0.0 < running && running < HELD_BACK * bound)
    };
    is_below("running.mean", metric::CONCURRENCY_MEAN.name)?;
    is_below("running.max", "concurrency")?;
    page.when(row, "waiting.max", |waiting| 1.0 <= waiting)?;
    say!(page, row => words("held-back"))
}

fn decode(page: &Page<'_>, row: &Row<'_>) -> Option<Sentence> {
    let (p99, median) = (page.at(row, metric::TPOT.p99())?, page.at(row, metric::TPOT.p50())?);
    let is_apart = !page.overlap(p99, median);
    if page.when(row, "tpot_tail", |tail| TAIL_LONG <= tail && is_apart).is_some() {
        return say!(page, row => words("decode-tail"));
    }
    let spread = page.value(page.at(row, "tpot_spread")?);
    let above = above_median(page, row, &metric::TPOT);
    // Steady: from enough requests, and no long gap between tokens.
    let is_certified = row.is_certified(metric::TPOT.p99()) == Some(true);
    let pauses = long_pauses(page, row).or_else(|| longest_pause(page, row));
    if spread <= SPREAD_STEADY && is_certified && pauses.is_none() {
        let above = above.or_else(|| say!(page, row => " and its median {tpot.p50}"))?;
        return say!(page, row => "Decode is steady: TPOT p99 is {>tpot.p99}{}.", above);
    }
    let is_wide = SPREAD_WIDE <= spread && is_apart;
    let end = if is_wide { ": some answers come slower than others." } else { "." };
    say!(page, row => "TPOT p99 is {>tpot.p99}{}{}", above?, end)
}

/// How many times its median ITL p99 is, where answers pause.
fn long_pauses(page: &Page<'_>, row: &Row<'_>) -> Option<usize> {
    let (p99, median) = (page.at(row, metric::ITL.p99())?, page.at(row, metric::ITL.p50())?);
    page.when(row, "itl_tail", |tail| PAUSES_LONG <= tail && !page.overlap(p99, median))
}

/// How many times the median the longest gap is, where that is far.
fn longest_pause(page: &Page<'_>, row: &Row<'_>) -> Option<usize> {
    page.when(row, "itl_max_times", |times| PAUSE_SINGLE <= times)
}

fn pauses(page: &Page<'_>, row: &Row<'_>) -> Option<Sentence> {
    long_pauses(page, row)?;
    let is_alone = matches!(row.key.concurrency, Some(0 | 1));
    let end = if is_alone { "" } else { ", as they do while other prompts are prefilled" };
    say!(page, row => words("pauses"), end)
}

/// A pause that p99 does not show.
fn single_pause(page: &Page<'_>, row: &Row<'_>) -> Option<Sentence> {
    longest_pause(page, row).filter(|_| long_pauses(page, row).is_none())?;
    say!(page, row => words("single-pause"))
}

// The changes from level to level, the level from which on more users add nothing, and the resource
// that the server runs out of, as far as its own numbers show it.

pub(super) fn scaling(page: &Page<'_>) -> Vec<Sentence> {
    let rules: [FamilyRule; 9] = [
        levels_not_reached,
        |page, family| {
            let course = from_to(page, family, metric::OUTPUT_THROUGHPUT.name)?;
            say!(page, page.rows_of(family).last()? => words("throughput-course"), course)
        },
        |page, family| {
            let course = from_to(page, family, metric::PER_USER_THROUGHPUT.name)?;
            say!(page, "Per-user throughput {}.", course)
        },
        latencies,
        saturation,
        kept_up,
        |page, family| say!(page, page.sweet_spot(family)? => words("spot-share")),
        |page, family| {
            let knee = page.row_at(family, family.findings.knee.found()?.level)?;
            say!(page, knee => "The throughput curve bends at {level} ({>output_throughput}).")
        },
        |page, family| {
            let row = flat(page, family).filter(|flat| flat.is_certain)?.after;
            say!(page, row => words(limit(page, row).0))
        },
    ];
    by_family(page, &rules)
}

/// Levels whose name states more users than there were.
fn levels_not_reached(page: &Page<'_>, family: &Family<'_>) -> Option<Sentence> {
    let mut listed = Sentence::default();
    for row in page.every_row_of(family).filter(|row| row.is_short()) {
        let separator = if listed.text.is_empty() { "" } else { ", " };
        listed.append(say!(page, row => words("level-not-reached"), separator)?);
    }
    (!listed.text.is_empty()).then_some(())?;
    say!(page, "Levels that were not reached: {}. They are in no comparison.", listed)
}

/// `rises from 97.72 tok/s at c=2 to 387.1 tok/s at c=32`.
fn from_to(page: &Page<'_>, family: &Family<'_>, quantity: &str) -> Option<Sentence> {
    let (first, last) = (page.rows_of(family).next()?, page.rows_of(family).last()?);
    let (before, after) = (page.at(first, quantity)?, page.at(last, quantity)?);
    let verb = match page.value(before).total_cmp(&page.value(after)) {
        _ if page.overlap(before, after) => "goes",
        Ordering::Less => "rises",
        Ordering::Greater => "falls",
        Ordering::Equal => "stays,",
    };
    say!(page, "{} from {>} at {} to {} at {}", verb, before, first, after, last)
}

fn latencies(page: &Page<'_>, family: &Family<'_>) -> Option<Sentence> {
    let (first, last) = (page.rows_of(family).next()?, page.rows_of(family).last()?);
    let (low, high) = (page.at(first, metric::TPOT.p99())?, page.at(last, metric::TPOT.p99())?);
    let times = page.at(last, "tpot_times")?;
    let has_grown = 1.0 < page.value(times) && !page.overlap(low, high);
    let end = if has_grown { say!(page, ", {=} times as long", times) } else { None };
    say!(page, "TPOT p99 is {>} at {} and {} at {}{}.", low, first, high, last, end)
}

/// Whether the server keeps up with the request rates.
fn kept_up(page: &Page<'_>, family: &Family<'_>) -> Option<Sentence> {
    let found = family.findings.saturation.found()?;
    let row = |rate: Option<f64>| {
        let level = Level::Rate(rate?);
        page.every_row_of(family).find(|row| row.level() == Some(level))
    };
    let rate = |row: &Row<'_>| page.at(row, "asked_rate");
    let kept = row(found.highest_served).and_then(rate);
    let missed = row(found.lowest_missed);
    let share = missed.and_then(|row| {
        page.when(row, "served_share", |share| share < 1.0).filter(|_| !found.missed_piling_up)
    });
    let lead = match kept {
        Some(kept) => say!(page, "The server keeps up with {>}", kept)?,
        None => say!(page, "The server keeps up with none of the rates")?,
    };
    match (missed.and_then(rate), share) {
        (Some(missed), Some(share)) => say!(page, "{}; of {} it serves {}.", lead, missed, share),
        (Some(missed), None) => say!(page, "{}; at {} requests pile up.", lead, missed),
        (None, _) => say!(page, "{}, the highest rate of the sweep.{~}", lead, kept?),
    }
}

/// A step after which throughput does not grow.
#[derive(Clone, Copy)]
struct Flat<'p, 'a> {
    before: &'p Row<'a>,
    after: &'p Row<'a>,
    /// The index of its gain or its loss.
    change: usize,
    /// Whether the intervals allow no relevant gain.
    is_certain: bool,
}

/// The first step up that adds less than it should, and after which no level adds it either.
fn flat<'p, 'a>(page: &'p Page<'a>, family: &Family<'_>) -> Option<Flat<'p, 'a>> {
    let rows: Vec<&Row<'a>> = page.rows_of(family).collect();
    let found = rows.windows(2).enumerate().filter_map(|(place, two)| {
        let [low, high] = [two[0], two[1]].map(|row| row.key.concurrency.map(f64::from));
        let small = (1.0 + GAIN_SMALL).powf((high? / low?).log2());
        let change = page.at(two[1], "throughput_gain");
        let change = change.or_else(|| page.at(two[1], "throughput_loss"))?;
        let own = page.at(two[0], metric::OUTPUT_THROUGHPUT.name)?;
        let later = rows[place + 1..].iter();
        let later = later.filter_map(|row| page.at(row, metric::OUTPUT_THROUGHPUT.name));
        let later: Vec<usize> = later.collect();
        let is_flat = later.iter().all(|other| page.value(*other) < small * page.value(own));
        // How many times as much the other may be, as far as the intervals allow.
        let low = page.fact(own).interval.map_or(page.value(own), |(low, _)| low);
        let is_certain = later.iter().all(|other| {
            let high = page.fact(*other).interval.map_or(page.value(*other), |(_, high)| high);
            0.0 < low && high / low < small
        });
        is_flat.then_some(Flat { before: two[0], after: two[1], change, is_certain })
    });
    // A certain bend is worth more than an uncertain one before it.
    let found: Vec<Flat<'_, '_>> = found.collect();
    found.iter().find(|flat| flat.is_certain).or(found.first()).copied()
}

fn saturation(page: &Page<'_>, family: &Family<'_>) -> Option<Sentence> {
    let Some(Flat { before, after, change, is_certain }) = flat(page, family) else {
        let (last, gain) = last_gain(page, family)?;
        return say!(page, last => words("not-saturated"), gain);
    };
    let effect = match page.fact(change).about.quantity.as_str() {
        _ if page.value(change) < PRINTABLE_SHARE => "adds nothing{~}",
        "throughput_loss" => "costs {>}",
        _ => "adds {>}",
    };
    let effect = say!(page, effect, change)?;
    if !is_certain {
        return say!(page, words("saturation-uncertain"), before, after, effect);
    }
    say!(page, after => words("saturation"), before, effect)
}

/// The gain of the last step, where the intervals show one.
fn last_gain<'p, 'a>(page: &'p Page<'a>, family: &Family<'_>) -> Option<(&'p Row<'a>, usize)> {
    let mut rows = page.rows_of(family).rev();
    let (last, before) = (rows.next()?, rows.next()?);
    let throughput = |row| page.at(row, metric::OUTPUT_THROUGHPUT.name);
    let is_seen = !page.overlap(throughput(before)?, throughput(last)?);
    Some((last, page.at(last, "throughput_gain").filter(|_| is_seen)?))
}

/// What limits a level, and what to do about it where that is clear, by their names in `sentences.txt`.
fn limit(page: &Page<'_>, row: &Row<'_>) -> (&'static str, Option<&'static str>) {
    // One reading is certain, however few there are.
    if page.when(row, "kv_usage.max", |usage| KV_FULL <= usage).is_some() {
        return ("limit-cache", Some("more-cache"));
    }
    let usage = page.at(row, "kv_usage.max");
    let waiting = page.at(row, "waiting.max").map(|waiting| page.value(waiting));
    let users = f64::from(row.key.concurrency.unwrap_or(1));
    let is_queue = |waiting: f64| 1.0 <= waiting && QUEUE_SHARE * users <= waiting;
    match (page.at(row, "readings"), usage, waiting) {
        (None, _, _) => ("limit-not-reported", None),
        (Some(readings), _, _) if page.value(readings) < READINGS_FEWEST => {
            ("limit-rarely-scraped", None)
        }
        (_, usage, Some(waiting)) if is_queue(waiting) => {
            // A queue alone may wait for prefill, which no limit on running requests would shorten.
            let is_held_back = usage.is_some() && held_back(page, row).is_some();
            ("limit-queue", is_held_back.then_some("more-at-once"))
        }
        (_, Some(_), Some(_)) => ("limit-not-seen", None),
        _ => ("limit-not-reported", None),
    }
}

// What is not certain.

pub(super) fn uncertainty(page: &Page<'_>) -> Vec<Sentence> {
    let rules: [PageRule; 5] = [cut, uncertified, single_runs, widest, |page| {
        page.is_simulated().then_some(())?;
        say!(page, "All of this is simulated: no real server was measured.")
    }];
    let marked = [Verdict::Invalid, Verdict::Degraded].into_iter().filter_map(|verdict| {
        let rows = page.rows.iter().filter(|row| row.found.verdict() == verdict);
        say!(page, words(&format!("{}-levels", verdict.key())), names(page, rows)?)
    });
    let by_family = by_family(page, &[rival, same_spot, warm_spot]);
    marked.chain(by_family).chain(rules.into_iter().filter_map(|rule| rule(page))).collect()
}

/// The names of the first rows, and whether there are others.
fn names<'p, 'a: 'p>(page: &Page<'_>, rows: impl Iterator<Item = &'p Row<'a>>) -> Option<Sentence> {
    let mut listed = Sentence::default();
    for (place, row) in rows.filter(|row| row.name().is_some()).enumerate() {
        if place == NAMES_MOST {
            return say!(page, "{} and others", listed);
        }
        listed.append(say!(page, row => "{}{*name}", if place == 0 { "" } else { ", " })?);
    }
    Some(listed).filter(|listed| !listed.text.is_empty())
}

/// Rows that a time limit ended: their numbers are of the quick requests.
fn cut(page: &Page<'_>) -> Option<Sentence> {
    let rows = || page.rows.iter().filter(|row| row.is_cut());
    say!(page, rows().next()? => words("cut"), page.there(), names(page, rows())?)
}

/// The level next to the peak, where they cannot be distinguished.
fn rival(page: &Page<'_>, family: &Family<'_>) -> Option<Sentence> {
    let found = family.findings.peak.found()?;
    let best = page.leading(page.rows_of(family), &found.quantity, Better::Higher)?;
    let interval = |place: usize| page.fact(place).interval;
    let (row, second, end) = match (best.rivals.first(), best.next) {
        (_, Some((row, next))) if interval(best.place).and(interval(next)).is_none() => {
            (row, next, "have no intervals: whether they differ is not known")
        }
        (Some((row, rival)), _) if page.overlap(best.place, *rival) => {
            (*row, *rival, "cannot be distinguished: their intervals overlap")
        }
        (Some((row, rival)), _) => (*row, *rival, "are the same"),
        (None, _) => return None,
    };
    say!(page, "{>} at {} and {} at {} {}.", best.place, best.row, second, row, end)
}

/// The choice of the sweet spot, where a resampled set may choose otherwise.
fn same_spot(page: &Page<'_>, family: &Family<'_>) -> Option<Sentence> {
    let spot = page.sweet_spot(family)?;
    page.when(spot, "sweet_spot_same", |same| same < SAME_CHOICE)?;
    say!(page, spot => words("same-spot"))
}

/// A sweet spot that was measured with a warm cache.
fn warm_spot(page: &Page<'_>, family: &Family<'_>) -> Option<Sentence> {
    let (is_sure, evidence) = warm_cache(page, family)?;
    let verb = if is_sure { "describes" } else { "probably describes" };
    say!(page, page.sweet_spot(family)? => words("warm-spot"), evidence, verb)
}

/// Whether the p99 of a row come from enough requests.
fn is_certified(row: &Row<'_>) -> Option<bool> {
    let quantities = [metric::TTFT.p99(), metric::TPOT.p99()];
    quantities.into_iter().find_map(|quantity| row.is_certified(quantity))
}

/// Rows whose p99 has too few requests.
fn uncertified(page: &Page<'_>) -> Option<Sentence> {
    let floor = page.count("certified_from");
    let lacks = |row: &&Row<'_>| {
        let has_few = page.when(row, "requests", |requests| requests < floor).is_some();
        page.at(row, metric::TTFT.p99()).is_some() && !is_certified(row).unwrap_or(!has_few)
    };
    let poor = || page.rows.iter().filter(lacks);
    let fewest = page.fewest_requests(poor())?;
    let of = names(page, poor()).and_then(|names| say!(page, " for {}", names));
    // Requests that resemble each other count less than their number.
    let alike = if floor <= page.value(fewest) { ", which resemble their neighbours" } else { "" };
    say!(page, words("uncertified"), of, fewest, alike)
}

fn single_runs(page: &Page<'_>) -> Option<Sentence> {
    page.whole("runs").filter(|runs| page.value(*runs) <= 1.0)?;
    let each = if page.set.is_some() { " per level" } else { "" };
    say!(page, "With {runs}{} the variation between runs is not known.", each)
}

/// The level whose throughput is least certain, where there are several runs.
fn widest(page: &Page<'_>) -> Option<Sentence> {
    (1.0 < page.count("runs") && 1 < page.rows.len()).then_some(())?;
    let width = |row: &Row<'_>| page.when(row, "half_width", |width| PRINTABLE_SHARE <= width);
    say!(page, page.largest(width)?.0 => words("widest"))
}

// What to do, each with its reason.

pub(super) fn advice(page: &Page<'_>) -> Vec<Sentence> {
    let rules: [PageRule; 4] = [smaller_prefill, fresh_prompts, repeat, more_requests];
    let first = failing(page).into_iter().chain(lower_rate(page));
    let by_family = by_family(page, &[interactive, throughput, raise_limit, further]);
    first.chain(by_family).chain(rules.into_iter().filter_map(|rule| rule(page))).collect()
}

fn interactive(page: &Page<'_>, family: &Family<'_>) -> Option<Sentence> {
    let spot = page.sweet_spot(family)?;
    let is_default = family.findings.sweet_spot.found()?.default_slos;
    let lead = if is_default { "For interactive use keep to " } else { "Within the SLOs keep to " };
    let (warm, evidence) = match warm_cache(page, family) {
        Some((true, evidence)) => (", with a warm prefix cache; new prompts take longer", evidence),
        Some((false, evidence)) => {
            (", probably with a warm prefix cache; new prompts then take longer", evidence)
        }
        None => ("", None),
    };
    let hint = if is_default { say!(page, " Set your own SLOs with `--slo`.") } else { None };
    say!(page, spot => words("interactive"), lead, evidence, warm, hint)
}

/// The lowest level near the peak: higher levels cost users and add nothing.
fn throughput(page: &Page<'_>, family: &Family<'_>) -> Option<Sentence> {
    let peak =
        page.leading(page.rows_of(family), metric::OUTPUT_THROUGHPUT.name, Better::Higher)?.row;
    let is_near =
        |row: &&Row<'_>| page.when(row, "share_of_peak", |share| SHARE_OF_PEAK <= share).is_some();
    let chosen = page.rows_of(family).find(is_near)?;
    let lead = say!(page, chosen => "For throughput use {level}: {>output_throughput}")?;
    if chosen.name() == peak.name() {
        return say!(page, "{}, the most of these levels.", lead);
    }
    let per_user = |row| page.at(row, metric::PER_USER_THROUGHPUT.name);
    let instead = per_user(chosen).zip(per_user(peak)).and_then(|(own, other)| {
        say!(page, "; per-user throughput is {} instead of {}", own, other)
    });
    say!(page, chosen => "{} is {share_of_peak} of the peak at {}{}.", lead, peak, instead)
}

/// More of what the server runs out of, at the level past saturation, else at the highest.
fn raise_limit(page: &Page<'_>, family: &Family<'_>) -> Option<Sentence> {
    let past = flat(page, family).filter(|flat| flat.is_certain).map(|flat| flat.after);
    let row = past.or_else(|| page.rows_of(family).last())?;
    say!(page, row => words(limit(page, row).1?))
}

/// Higher levels where the curve has not bent yet.
fn further(page: &Page<'_>, family: &Family<'_>) -> Option<Sentence> {
    if flat(page, family).is_some() {
        return None;
    }
    let (last, gain) = last_gain(page, family)?;
    let highest = page.every_row_of(family).filter_map(|row| row.key.concurrency).max()?;
    // A level that was not reached needs more requests, not more users.
    let how = if last.key.concurrency == Some(highest) {
        say!(page, "{$}", higher_levels(highest).as_str())?
    } else {
        say!(page, "with more requests than users")?
    };
    say!(page, last => words("further"), gain, how)
}

fn failing(page: &Page<'_>) -> Option<Sentence> {
    let failed = |row: &Row<'_>| page.when(row, "failed_requests", |failed| 0.0 < failed);
    let (row, failed) = page.largest(failed)?;
    // A run has no name.
    let place = say!(page, row => "{}{*name}", page.there());
    say!(page, words("failing"), failed, place, failure_class(page, row))
}

/// A lower rate where requests of an open loop come faster than they are answered.
fn lower_rate(page: &Page<'_>) -> Option<Sentence> {
    // The lowest rate: higher ones are overloaded all the more.
    let found = page.rows.iter().filter_map(|row| Some((row, row.overload()?)));
    let rate =
        |row: &Row<'_>| page.at(row, "asked_rate").map_or(f64::INFINITY, |place| page.value(place));
    let (row, overload) = found.min_by(|(a, _), (b, _)| rate(a).total_cmp(&rate(b)))?;
    // A level of a sweep is its rate.
    let is_suite = matches!(page.measured_by(), MeasuredBy::Suite(_));
    let place = if is_suite { say!(page, row => " in {*name}") } else { None };
    let why = match overload {
        Overload::PilingUp => "requests pile up, and latencies grow for as long as they come",
        Overload::Behind => "the server falls behind, and latencies grow for as long as it does",
        Overload::TimedOut => "requests time out before their first token",
    };
    say!(page, row => words("lower-rate"), place, why)
}

fn smaller_prefill(page: &Page<'_>) -> Option<Sentence> {
    let has_others = |row: &Row<'_>| row.key.concurrency.is_some_and(|users| 1 < users);
    let (row, _) = page.largest(|row| long_pauses(page, row).filter(|_| has_others(row)))?;
    let place = say!(page, row => ",{}{*name}", page.there());
    say!(page, row => words("smaller-prefill"), place)
}

fn fresh_prompts(page: &Page<'_>) -> Option<Sentence> {
    let (row, evidence) = page.rows.iter().find_map(|row| {
        let reported = page.at(row, "cached_share").filter(|_| row.is_contaminated());
        Some((row, reported.or_else(|| suspicion(page, row))?))
    })?;
    let suite = page.set.and_then(|set| set.suite.as_ref());
    let (advice, flag) = match (page.first?.workload.source, suite.map(|suite| suite.prompts)) {
        // The source has no others, whatever the seed.
        (SourceKind::VllmRandom, _) => (
            "Restart the server between runs, or disable its prefix cache, because the prompts are the \
             same in every run",
            "--restart COMMAND",
        ),
        // All scenarios of the suite draw from one seed.
        (_, Some(Prompts::Same)) => {
            ("Send different prompts in each scenario, because they share them", "--prompts fresh")
        }
        (_, Some(Prompts::Fresh) | None) => (
            "Measure again with prompts that the server has not seen (another seed), or restart it \
             before",
            "--seed N",
        ),
    };
    let who = say!(page, row => "{*name}").or_else(|| say!(page, "this run"));
    let probably = if row.is_contaminated() { "" } else { "probably " };
    let command = again_with(page.measured_by(), flag);
    say!(page, words("fresh-prompts"), evidence, advice, who, probably, command.as_str())
}

fn repeat(page: &Page<'_>) -> Option<Sentence> {
    // Without noise a simulation repeats itself.
    page.whole("runs").filter(|runs| page.value(*runs) <= 1.0 && !page.is_simulated())?;
    let command = again_with(page.measured_by(), "--repeat 5");
    say!(page, words("repeat"), command.as_str())
}

fn more_requests(page: &Page<'_>) -> Option<Sentence> {
    let floor = page.whole("certified_from")?;
    let poor = page.rows.iter().filter(|row| is_certified(row) == Some(false));
    let fewest = page.fewest_requests(poor)?;
    (page.value(fewest) < page.value(floor)).then_some(())?;
    let advice = say!(page, words("more-requests"), fewest)?;
    // The scenarios of a suite set their number of requests.
    if let MeasuredBy::Suite(name) = page.measured_by() {
        return say!(page, words("more-requests-of-suite"), advice, own_suite(name).as_str());
    }
    let flag = format!("--requests {}", page.fact(floor).printed);
    let command = again_with(page.measured_by(), &flag);
    say!(page, "{} ({$}).", advice, command.as_str())
}

/// The command that measures the same again, with one more flag.
fn again_with(by: MeasuredBy<'_>, flag: &str) -> String {
    match by {
        MeasuredBy::Suite(name) => format!("inferometer suite {} {flag}", shell_word(name)),
        MeasuredBy::Sweep => format!("inferometer sweep {flag}"),
        MeasuredBy::Repeat | MeasuredBy::Run => format!("inferometer run {flag}"),
        MeasuredBy::Simulation => format!("inferometer simulate {flag}"),
    }
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

    #[test]
    fn every_sentence_that_a_rule_names_is_written_and_none_besides() {
        let rules = include_str!("rules.rs");
        let code = rules.split("mod tests").next().unwrap();
        for (name, _) in
            include_str!("sentences.txt").lines().map(|it| it.split_once(": ").unwrap())
        {
            let is_level = name.ends_with("-levels");
            assert!(is_level || code.contains(&format!("\"{name}\"")), "{name} is in no rule");
        }
        for part in code.split("words(\"").skip(1) {
            let name = part.split('"').next().unwrap();
            assert!(!words(name).is_empty(), "{name} is no sentence");
        }
        let named =
            ABOVE.map(|(.., name)| name).into_iter().chain(["invalid-levels", "degraded-levels"]);
        assert!(named.into_iter().all(|name| !words(name).is_empty()));
    }

    /// The command line is another crate, whose tests run these commands.
    #[test]
    fn these_are_all_the_commands() {
        let again = |by| again_with(by, "--repeat 5");
        assert_eq!(again(MeasuredBy::Suite("code")), "inferometer suite code --repeat 5");
        assert_eq!(again(MeasuredBy::Sweep), "inferometer sweep --repeat 5");
        assert_eq!(again(MeasuredBy::Run), "inferometer run --repeat 5");
        assert_eq!(again(MeasuredBy::Repeat), again(MeasuredBy::Run));
        let more = again_with(MeasuredBy::Simulation, "--requests 662");
        assert_eq!(more, "inferometer simulate --requests 662");
        assert_eq!(own_suite("code"), "inferometer suite --show code > mine.toml");
        assert_eq!(higher_levels(32), "inferometer sweep --concurrencies 64,128");
    }

    #[test]
    fn a_name_that_a_shell_would_read_otherwise_is_not_printed() {
        for name in ["my suite", "$(id)", "-x", "a;b", ""] {
            let command = again_with(MeasuredBy::Suite(name), "--seed N");
            assert_eq!(command, "inferometer suite NAME --seed N");
        }
    }
}
