//! What changes from level to level, from which level on more users bring nothing, and what the
//! server runs out of, as far as its own numbers show it.

use std::cmp::Ordering;

use inferometer_model::campaign::Level;

use super::page::{Family, Page, Row};
use super::sentence::{Fragment, fragment, say};
use super::thresholds::{
    GAIN_SMALL, HELD_BACK, KV_FULL, PRINTABLE_SHARE, QUEUE_SHARE, READINGS_FEWEST,
};
use crate::narrative::Sentence;
use crate::narrative::facts::standing::Standing;

pub(super) fn findings(page: &Page<'_>) -> Vec<Sentence> {
    let of_family = |family: &Family| {
        let rules: [fn(&Page<'_>, &Family) -> Option<Sentence>; 9] =
            [not_reached, ends, per_user, latencies, saturation, kept_up, sweet_spot, knee, limit];
        rules.into_iter().filter_map(|rule| rule(page, family)).collect::<Vec<_>>()
    };
    page.families.iter().flat_map(of_family).collect()
}

/// Levels whose name says more users than there were.
fn not_reached(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let missed = page.every_row_of(family).filter(|row| row.standing == Standing::NotReached);
    let missed: Vec<&Row> = missed.collect();
    let (first, others) = missed.split_first()?;
    let listed = others.iter().try_fold(in_flight(page, first)?, |listed, row| {
        fragment!(page, "{}, {}", listed, in_flight(page, row)?)
    })?;
    say!(page, "Never reached: {}. Such a level is in no comparison.", listed)
}

/// `c=500 (at most 100 in flight, for there were 100 requests in all)`.
fn in_flight(page: &Page<'_>, row: &Row) -> Option<Fragment> {
    let (peak, users) = ((row, "concurrency_peak"), page.at(row, "concurrency")?);
    match page.when(row, "requests", |requests| requests < page.value(users)) {
        Some(requests) => {
            let words = "{} (at most {=} in flight, for there were {} in all)";
            fragment!(page, words, row, peak, requests)
        }
        None => fragment!(page, "{} (at most {=} in flight)", row, peak),
    }
}

fn ends(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let times = page.at(page.rows_of(family).last()?, "throughput_times")?;
    let course = from_to(page, family, "output_throughput")?;
    say!(page, "Output throughput {}, {=} times as much.", course, times)
}

fn per_user(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    say!(page, "Per-user throughput {}.", from_to(page, family, "per_user_throughput")?)
}

/// `rises from 97.72 tok/s at c=2 to 387.1 tok/s at c=32`.
fn from_to(page: &Page<'_>, family: &Family, quantity: &str) -> Option<Fragment> {
    let (first, last) = (page.rows_of(family).next()?, page.rows_of(family).last()?);
    let (before, after) = (page.at(first, quantity)?, page.at(last, quantity)?);
    let verb = match page.value(before).total_cmp(&page.value(after)) {
        _ if page.overlap(before, after) => "goes",
        Ordering::Less => "rises",
        Ordering::Greater => "falls",
        Ordering::Equal => "stays,",
    };
    fragment!(page, "{} from {>} at {} to {} at {}", verb, before, first, after, last)
}

fn latencies(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let (first, last) = (page.rows_of(family).next()?, page.rows_of(family).last()?);
    let (low, high) = (page.at(first, "tpot.p99")?, page.at(last, "tpot.p99")?);
    let times = page.at(last, "tpot_times")?;
    let has_grown = 1.0 < page.value(times) && !page.overlap(low, high);
    let words = "TPOT p99 is {>} at {} and {} at {}{}.";
    let end = if has_grown {
        fragment!(page, ", {=} times as long", times)?
    } else {
        Fragment::default()
    };
    say!(page, words, low, first, high, last, end)
}

/// Whether the server keeps up with the request rates.
fn kept_up(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let found = family.findings.saturation.found()?;
    let row = |rate: Option<f64>| page.every_row_at(family, Level::Rate(rate?));
    let rate = |row: &Row| page.at(row, "asked_rate");
    let kept = row(found.highest_served).and_then(rate);
    let missed = row(found.lowest_missed);
    let share = missed.and_then(|row| {
        page.when(row, "served_share", |share| share < 1.0).filter(|_| !found.missed_piling_up)
    });
    let lead = match kept {
        Some(kept) => fragment!(page, "The server keeps up with {>}", kept)?,
        None => fragment!(page, "The server keeps up with no rate that was asked")?,
    };
    match (missed.and_then(rate), share) {
        (Some(missed), Some(share)) => say!(page, "{}; of {} it serves {}.", lead, missed, share),
        (Some(missed), None) => say!(page, "{}; at {} requests pile up.", lead, missed),
        (None, _) => say!(page, "{}, the highest rate that was asked.{~}", lead, kept?),
    }
}

fn sweet_spot(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let spot = page.row_at(family, family.findings.sweet_spot.found()?.level)?;
    let (user, all) = ((spot, "per_user_throughput"), (spot, "output_throughput"));
    let words = "At {} per-user throughput is {>} and output throughput is {}: {} of the peak of all \
                 levels.";
    say!(page, words, spot, user, all, (spot, "share_of_peak"))
}

fn knee(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let knee = page.row_at(family, family.findings.knee.found()?.level)?;
    let throughput = (knee, "output_throughput");
    say!(page, "The curve of throughput bends at {} ({>}).", knee, throughput)
}

/// A step after which throughput stays.
#[derive(Clone, Copy)]
pub(super) struct Flat<'p> {
    before: &'p Row,
    after: &'p Row,
    /// The place of its gain or its loss.
    change: usize,
    /// Whether the intervals allow no gain that counts.
    is_certain: bool,
}

/// The first step up that brings less than it should, and after which no level brings it either.
pub(super) fn flat<'p>(page: &'p Page<'_>, family: &'p Family) -> Option<Flat<'p>> {
    let rows: Vec<&Row> = page.rows_of(family).collect();
    let steps = rows.windows(2).enumerate();
    let found = steps.filter_map(|(place, two)| {
        let doublings = (f64::from(two[1].concurrency?) / f64::from(two[0].concurrency?)).log2();
        let small = (1.0 + GAIN_SMALL).powf(doublings);
        let change = page.at(two[1], "throughput_gain");
        let change = change.or_else(|| page.at(two[1], "throughput_loss"))?;
        let own = page.at(two[0], "output_throughput")?;
        let later = rows[place + 1..].iter();
        let later = later.filter_map(|row| page.at(row, "output_throughput"));
        let later: Vec<usize> = later.collect();
        let is_flat = later.iter().all(|other| page.value(*other) < small * page.value(own));
        let is_certain = later.iter().all(|other| most_gained(page, own, *other) < small);
        is_flat.then_some(Flat { before: two[0], after: two[1], change, is_certain })
    });
    // A certain bend is worth more than an uncertain one before it.
    let found: Vec<Flat<'_>> = found.collect();
    found.iter().find(|flat| flat.is_certain).or(found.first()).copied()
}

/// How many times as much the other may be, as far as the intervals allow.
fn most_gained(page: &Page<'_>, own: usize, other: usize) -> f64 {
    let low = page.fact(own).interval.map_or(page.value(own), |(low, _)| low);
    let high = page.fact(other).interval.map_or(page.value(other), |(_, high)| high);
    if 0.0 < low { high / low } else { f64::INFINITY }
}

fn saturated<'p>(page: &'p Page<'_>, family: &'p Family) -> Option<Flat<'p>> {
    flat(page, family).filter(|flat| flat.is_certain)
}

fn saturation(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let Some(found) = flat(page, family) else { return still_rising(page, family) };
    let Flat { before, after, change, is_certain } = found;
    let effect = match page.fact(change).about.quantity.as_str() {
        _ if page.value(change) < PRINTABLE_SHARE => fragment!(page, "adds nothing{~}", change)?,
        "throughput_loss" => fragment!(page, "takes {>} from it", change)?,
        _ => fragment!(page, "adds {>}", change)?,
    };
    if !is_certain {
        let words = "Whether output throughput saturates at {} cannot be told: the step to {} {}, and \
                     the intervals allow a gain that counts.";
        return say!(page, words, before, after, effect);
    }
    let lead = "Output throughput saturates at {}: going on to {} {}";
    match page.at(after, "per_user_loss") {
        Some(loss) => {
            say!(page, &format!("{lead} and each user loses {{}}."), before, after, effect, loss)
        }
        None => say!(page, &format!("{lead}."), before, after, effect),
    }
}

/// What the last step has brought, where the intervals show that it has.
pub(super) fn last_gain<'p>(page: &'p Page<'_>, family: &'p Family) -> Option<(&'p Row, usize)> {
    let mut rows = page.rows_of(family).rev();
    let (last, before) = (rows.next()?, rows.next()?);
    let throughput = |row| page.at(row, "output_throughput");
    let is_seen = !page.overlap(throughput(before)?, throughput(last)?);
    Some((last, page.at(last, "throughput_gain").filter(|_| is_seen)?))
}

fn still_rising(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let (last, gain) = last_gain(page, family)?;
    let words = "The last step, to {}, still adds {>} of output throughput: the limit lies higher than \
                 was measured.";
    say!(page, words, last, gain)
}

/// What limits a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    KvCache(usize),
    Queue {
        waiting: usize,
        readings: usize,
    },
    /// Both were looked at.
    Neither {
        kv_usage: usize,
        waiting: usize,
        readings: usize,
    },
    /// The server was read too seldom.
    Unseen {
        readings: usize,
    },
    NotReported,
}

impl Limit {
    pub(super) fn find(page: &Page<'_>, row: &Row) -> Self {
        let kv = page.at(row, "kv_usage.max");
        let waiting = page.at(row, "waiting.max");
        // What was seen once is certain, however few the readings.
        if let Some(kv) = kv.filter(|kv| KV_FULL <= page.value(*kv)) {
            return Self::KvCache(kv);
        }
        let Some(readings) = page.at(row, "readings") else { return Self::NotReported };
        if page.value(readings) < READINGS_FEWEST {
            return Self::Unseen { readings };
        }
        let users = f64::from(row.concurrency.unwrap_or(1));
        let is_queue = |waiting: f64| 1.0 <= waiting && QUEUE_SHARE * users <= waiting;
        if let Some(waiting) = waiting.filter(|waiting| is_queue(page.value(*waiting))) {
            return Self::Queue { waiting, readings };
        }
        match (kv, waiting) {
            (Some(kv_usage), Some(waiting)) => Self::Neither { kv_usage, waiting, readings },
            _ => Self::NotReported,
        }
    }
}

/// A server that runs fewer requests than are in flight, all along.
pub(super) struct HeldBack {
    pub(super) users: usize,
    pub(super) running: usize,
    pub(super) readings: usize,
}

impl HeldBack {
    pub(super) fn find(page: &Page<'_>, row: &Row) -> Option<Self> {
        let users = page.at(row, "concurrency")?;
        let readings = page.when(row, "readings", |readings| READINGS_FEWEST <= readings)?;
        let below = |bound: usize| {
            let bound = page.value(bound);
            move |running: f64| 0.0 < running && running < HELD_BACK * bound
        };
        let in_flight = page.at(row, "concurrency_mean")?;
        page.when(row, "running.mean", below(in_flight))?;
        let running = page.when(row, "running.max", below(users))?;
        page.when(row, "waiting.max", |waiting| 1.0 <= waiting)?;
        Some(Self { users, running, readings })
    }
}

/// The level at which the limit shows: the one past saturation, else the highest.
pub(super) fn limited<'p>(page: &'p Page<'_>, family: &'p Family) -> Option<&'p Row> {
    let past = saturated(page, family).map(|flat| flat.after);
    past.or_else(|| page.rows_of(family).last())
}

fn limit(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    saturated(page, family)?;
    let row = limited(page, family)?;
    match Limit::find(page, row) {
        Limit::KvCache(kv) => say!(page, "The KV cache runs out: up to {>} full at {}.", kv, row),
        Limit::Queue { waiting, readings } => {
            let words = "Requests queue in the server: up to {>} waiting at {}, as far as {=} readings \
                         of a run show.";
            say!(page, words, waiting, row, readings)
        }
        Limit::Neither { kv_usage, waiting, readings } => {
            let words = "At {} the KV cache was at most {>} full and {} waited at most, as far as {=} \
                         readings of a run show.";
            say!(page, words, row, kv_usage, waiting, readings)
        }
        Limit::Unseen { readings } => {
            let words = "What limits it at {} is not known: the server was read {=} times during a \
                         run, which is too seldom.";
            say!(page, words, row, readings)
        }
        Limit::NotReported => {
            say!(page, "What limits it at {} is not known: the server does not say.", row)
        }
    }
}
