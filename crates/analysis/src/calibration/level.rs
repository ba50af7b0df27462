//! One level of the ladder: a closed loop against a server that answers at once.

use inferometer_model::record::Event;
use inferometer_model::{Moment, Outcome, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::arrivals::Output;
use crate::client::share;
use crate::ruler::{Ruler, ns_to_ms};
use crate::sample::{Percentile, Sample};
use crate::tokens::OutputTokens;

/// The same levels twice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ladder {
    pub one_shot: Vec<Level>,
    pub streamed: Vec<Level>,
}

/// What the client can take at most: its best levels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// One-shot answers.
    pub requests_per_s: f64,
    /// Stream events of every kind, also those that only end a stream.
    pub events_per_s: f64,
}

/// One number of requests in flight.
///
/// Rates are of the *steady* time alone: it begins when every slot has ended its first request,
/// which had to open a connection, and ends when the last request was let go, so that all slots
/// were full. What was taken in during that time counts: a request that reaches over its edge
/// counts with the share of its events that lie inside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Level {
    pub concurrency: u32,
    /// All requests of the level, also those outside of the steady time.
    pub requests: u64,
    /// Share of them that ended `ok`.
    pub success: Option<f64>,
    /// Requests that ended `ok` in the steady time.
    pub steady_requests: u64,
    pub steady_s: Option<f64>,
    pub requests_per_s: Option<f64>,
    pub tokens_per_s: Option<f64>,
    pub events_per_s: Option<f64>,
    pub latency_ms: Option<LevelLatency>,
}

/// From letting a request go until its answer was taken in, so that all that the client adds is
/// inside.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelLatency {
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
}

impl Ladder {
    /// The best of each kind, or `None` when one of them has no level that worked.
    pub fn capacity(&self) -> Option<Capacity> {
        let best = |rates: Vec<Option<f64>>| rates.into_iter().flatten().reduce(f64::max);
        let requests = self.one_shot.iter().map(|level| level.requests_per_s).collect();
        let events = self.streamed.iter().map(|level| level.events_per_s).collect();
        let capacity = Capacity { requests_per_s: best(requests)?, events_per_s: best(events)? };
        (0.0 < capacity.requests_per_s && 0.0 < capacity.events_per_s).then_some(capacity)
    }
}

impl Level {
    /// `records` are all of a closed loop with `concurrency` slots.
    pub fn of(concurrency: u32, records: &[RequestRecord]) -> Self {
        let is_ok = |record: &&RequestRecord| record.ending.outcome == Outcome::Ok;
        let ok = records.iter().filter(is_ok).count() as u64;
        let steady = SteadyTime::of(concurrency, records);
        let mut counts = Counts::default();
        if let Some(steady) = steady {
            records.iter().filter(is_ok).for_each(|record| counts.add(record, steady));
        }
        let steady_s = steady.map(SteadyTime::seconds);
        let rate = |count: f64| steady_s.map(|seconds| count / seconds);
        Self {
            concurrency,
            requests: records.len() as u64,
            success: share(ok, records.len() as u64),
            steady_requests: counts.ended,
            steady_s,
            requests_per_s: rate(counts.requests),
            tokens_per_s: rate(counts.tokens),
            events_per_s: rate(counts.events),
            latency_ms: Sample::new(counts.latency_ms).map(|sample| LevelLatency {
                p50: sample.percentile(Percentile::P50),
                p95: sample.percentile(Percentile::P95),
                p99: sample.percentile(Percentile::P99),
            }),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct SteadyTime {
    from: Moment,
    to: Moment,
}

impl SteadyTime {
    /// `None` when the slots were never all past their first request and full.
    fn of(concurrency: u32, records: &[RequestRecord]) -> Option<Self> {
        // The first request of a slot is among the first ids, or it had to open a connection:
        // where several threads drive, one may be past its first before another has begun.
        let is_first = |record: &&RequestRecord| {
            let opened = record.connection.is_some_and(|connection| !connection.reused);
            opened || record.id.0 < u64::from(concurrency)
        };
        let from = records.iter().filter(is_first).map(|record| record.ending.at).max()?;
        let to = records.iter().map(|record| record.admitted).max()?;
        (from < to).then_some(Self { from, to })
    }

    fn holds(self, moment: Moment) -> bool {
        self.from < moment && moment <= self.to
    }

    fn seconds(self) -> f64 {
        self.to.nanos_after(self.from) as f64 / 1e9
    }
}

#[derive(Debug, Default)]
struct Counts {
    ended: u64,
    requests: f64,
    tokens: f64,
    events: f64,
    latency_ms: Vec<f64>,
}

impl Counts {
    fn add(&mut self, record: &RequestRecord, steady: SteadyTime) {
        let taken_in = |event: &&Event| {
            let read = record.reads.get(event.read as usize);
            read.is_some_and(|read| steady.holds(read.user))
        };
        let inside = record.events.iter().filter(taken_in).count() as f64;
        if 0.0 < inside {
            let mut output = Output::default();
            output.read(record, &mut Ruler::new(0));
            let share = inside / record.events.len() as f64;
            self.events += inside;
            self.requests += share;
            self.tokens += share * OutputTokens::of(record, &output).count as f64;
        }
        if steady.holds(record.ending.at) {
            self.ended += 1;
            let took = record.ending.at.as_nanos().checked_sub(record.admitted.as_nanos());
            self.latency_ms.extend(took.map(ns_to_ms));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Given;

    /// Two slots; each request takes `took` ms and the next leaves at once.
    fn answers(took: &[u64]) -> Vec<RequestRecord> {
        let mut free = [0, 0];
        took.iter()
            .enumerate()
            .map(|(id, took)| {
                let slot = usize::from(free[1] < free[0]);
                let at = free[slot];
                free[slot] += took;
                Given::ok(id as u64)
                    .moments(at, at, at)
                    .arrival(at + took, &[Some(2)])
                    .usage(10, 2)
                    .record()
            })
            .collect()
    }

    #[test]
    fn rates_are_of_the_time_when_all_slots_were_busy() {
        // Both slots end their first request at 100 ms at the latest; the last leaves at 300 ms.
        let level = Level::of(2, &answers(&[50, 100, 50, 100, 100, 100, 100, 100]));
        assert_eq!((level.requests, level.success), (8, Some(1.0)));
        assert_eq!(level.steady_s, Some(0.2));
        assert_eq!(level.steady_requests, 4, "two end at 200 ms and two at 300 ms");
        assert_eq!(level.requests_per_s, Some(20.0));
        assert_eq!(level.tokens_per_s, Some(40.0));
        assert_eq!(level.events_per_s, Some(20.0));
        let latency = level.latency_ms.unwrap();
        assert!((latency.p50 - 100.0).abs() < 1e-9 && (latency.p99 - 100.0).abs() < 1e-9);
    }

    #[test]
    fn a_stream_over_the_edge_counts_with_what_lies_inside() {
        let first = Given::ok(0).arrival(100, &[Some(1)]).usage(10, 1).record();
        let over_the_edge = Given::ok(1)
            .moments(100, 100, 100)
            .arrival(150, &[Some(2)])
            .arrival(250, &[Some(2)])
            .usage(10, 4)
            .record();
        let last = Given::ok(2).moments(200, 200, 200).arrival(300, &[Some(1)]).record();
        let level = Level::of(1, &[first, over_the_edge, last]);
        assert_eq!((level.steady_s, level.steady_requests), (Some(0.1), 0));
        assert_eq!(level.requests_per_s, Some(5.0));
        assert_eq!(level.events_per_s, Some(10.0));
        assert_eq!(level.tokens_per_s, Some(20.0));
    }

    #[test]
    fn a_failure_is_in_the_share_and_not_in_the_rate() {
        let mut records = answers(&[100, 100, 100, 100, 100, 100]);
        records[3].ending.outcome = Outcome::Truncated;
        let level = Level::of(2, &records);
        assert_eq!(level.success, Some(5.0 / 6.0));
        assert_eq!(level.steady_requests, 1);
    }

    #[test]
    fn a_level_that_never_was_steady_has_no_rate() {
        let level = Level::of(2, &answers(&[100, 100]));
        assert_eq!((level.requests, level.requests_per_s, level.latency_ms), (2, None, None));
        assert_eq!(Level::of(2, &[]).success, None);
    }

    #[test]
    fn the_capacity_is_that_of_the_best_levels() {
        let level = |took: u64| Level::of(2, &answers(&[took; 10]));
        let ladder = Ladder {
            one_shot: vec![level(10), level(5), Level::of(2, &[])],
            streamed: vec![level(20)],
        };
        let capacity = ladder.capacity().unwrap();
        assert!((capacity.requests_per_s - 400.0).abs() < 1e-6);
        assert!((capacity.events_per_s - 100.0).abs() < 1e-6);
        assert_eq!(Ladder { streamed: vec![], ..ladder }.capacity(), None);
    }
}
