//! What the server runs out of, as far as its own numbers show it.

use super::page::{Family, Page, Row};
use super::saturation::saturated;
use super::scaling::level;
use super::thresholds::{HELD_BACK, KV_FULL, QUEUE_SHARE, READINGS_FEWEST};
use super::words::Saying;
use crate::narrative::Sentence;

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
    /// It was asked too seldom.
    Unseen {
        readings: usize,
    },
    Silent,
}

impl Limit {
    pub(super) fn of(page: &Page<'_>, row: &Row) -> Self {
        let kv = page.at(row, "kv_usage", Some("max"));
        let waiting = page.at(row, "waiting", Some("max"));
        // What was seen once is certain, however few the readings.
        if let Some(kv) = kv.filter(|kv| KV_FULL <= page.value(*kv)) {
            return Self::KvCache(kv);
        }
        let Some(readings) = page.at(row, "readings", None) else { return Self::Silent };
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
            _ => Self::Silent,
        }
    }
}

/// A server that runs fewer than are in flight, all along.
pub(super) struct HeldBack {
    pub(super) users: usize,
    pub(super) running: usize,
    pub(super) readings: usize,
}

impl HeldBack {
    pub(super) fn of(page: &Page<'_>, row: &Row) -> Option<Self> {
        let users = page.at(row, "concurrency", None)?;
        let enough = |readings: f64| READINGS_FEWEST <= readings;
        let readings = page.when(row, ("readings", None), enough)?;
        let below = |bound: usize| {
            let bound = page.value(bound);
            move |running: f64| 0.0 < running && running < HELD_BACK * bound
        };
        let in_flight = page.at(row, "concurrency_mean", None)?;
        page.when(row, ("running", Some("mean")), below(in_flight))?;
        let running = page.when(row, ("running", Some("max")), below(users))?;
        page.when(row, ("waiting", Some("max")), |waiting| 1.0 <= waiting)?;
        Some(Self { users, running, readings })
    }
}

/// The level at which the limit shows: the one past saturation, else the highest.
pub(super) fn limited<'p>(page: &'p Page<'_>, family: &'p Family) -> Option<&'p Row> {
    let past = saturated(page, family).map(|flat| flat.after);
    past.or_else(|| page.rows_of(family).last())
}

pub(super) fn limit(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    saturated(page, family)?;
    let row = limited(page, family)?;
    let saying = Saying::on(page.facts);
    Some(match Limit::of(page, row) {
        Limit::KvCache(kv) => {
            let saying = saying.say("The KV cache runs out: up to ").link(kv);
            level(page, saying.say(" full at "), row)?.say(".").done()
        }
        Limit::Queue { waiting, readings } => {
            let saying = saying.say("Requests queue in the server: up to ").link(waiting);
            let saying = level(page, saying.say(" waiting at "), row)?;
            seen(saying, readings)
        }
        Limit::Neither { kv_usage, waiting, readings } => {
            let saying = level(page, saying.say("At "), row)?;
            let saying = saying.say(" the KV cache was at most ").link(kv_usage).say(" full and ");
            seen(saying.number(waiting).say(" waited at most"), readings)
        }
        Limit::Unseen { readings } => {
            let saying = level(page, saying.say("What limits it at "), row)?;
            let saying = saying.say(" is not known: the server was read ").bare(readings);
            saying.say(" times during a run, which is too seldom.").done()
        }
        Limit::Silent => {
            let saying = saying.say("What limits it at ");
            level(page, saying, row)?.say(" is not known: the server does not say.").done()
        }
    })
}

fn seen(saying: Saying<'_>, readings: usize) -> Sentence {
    saying.say(", as far as ").bare(readings).say(" readings of a run show.").done()
}
