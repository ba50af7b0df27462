//! The speed and accuracy of this client on this machine, from records of loads against an engine whose
//! ground truth is known.
//!
//! [`Level`] is one concurrency: how much the client can handle. [`FidelityRow`] compares the client's
//! measurements with what the engine did. [`PacingRow`] compares when requests were sent with when they
//! were planned. [`StreamMemory`] is the memory of a stream. A [`Calibration`] holds them all.

use std::collections::HashMap;

use inferometer_model::observations::{CalibrationFacts, ErrorFacts};
use inferometer_model::record::Event;
use inferometer_model::{Moment, Outcome, RequestId, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::client::{DiallingFigures, share};
use crate::record::{Concurrency, Flight, Output, OutputTokens, Ruler, Widths, ns_to_ms};
use crate::statistics::{Percentile, Sample};
use crate::summary::{DocumentError, read_document, write_document};

/// The form of the document. Adding keys leaves it; changing what a key means raises it.
pub const SCHEMA: &str = "inferometer.calibration/1";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    pub schema: String,
    /// RFC 3339, UTC.
    pub when: String,
    pub tool_version: String,
    pub machine: Machine,
    pub method: Method,
    pub capacity: Capacity,
    pub ladder: Ladder,
    pub fidelity: Vec<FidelityRow>,
    pub pacing: Vec<PacingRow>,
    pub memory: StreamMemory,
    /// What was left out or made smaller, and why.
    pub notes: Vec<String>,
}

/// What the numbers hold for: another machine or kernel has others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    pub cpu_model: Option<String>,
    pub cpus: Option<u32>,
    pub memory_bytes: Option<u64>,
    pub os: String,
    pub architecture: String,
    pub kernel: Option<String>,
}

/// How it was measured, as far as it is not in the rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// The short version: fewer levels, less time.
    pub quick: bool,
    /// Threads that drove the load.
    pub drivers: u32,
    /// About how long every prompt was.
    pub input_tokens: u32,
    /// Tokens of every answer on the ladder, one-shot or streamed.
    pub ladder_tokens: u32,
    /// The TTFT of the engine that fidelity is measured against.
    pub ttft_ms: f64,
}

impl Calibration {
    /// The document as it is stored: indented, with a line feed at its end.
    pub fn to_json_bytes(&self) -> Vec<u8> {
        write_document(self)
    }

    /// Reads a stored document. Keys that this version does not know are ignored.
    pub fn from_json_bytes(bytes: &[u8]) -> Result<Self, DocumentError> {
        let calibration: Self = read_document(bytes, SCHEMA)?;
        let Capacity { requests_per_s, events_per_s } = calibration.capacity;
        // Loads are divided by these.
        if [requests_per_s, events_per_s].iter().all(|rate| rate.is_finite() && 0.0 < *rate) {
            Ok(calibration)
        } else {
            Err(DocumentError::Capacity)
        }
    }
}

/// The same levels twice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ladder {
    pub one_shot: Vec<Level>,
    pub streamed: Vec<Level>,
}

/// The capacity of the client: its best levels.
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

/// From the release of a request until its answer was read, so that everything that the client adds is
/// included.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelLatency {
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
}

impl Ladder {
    /// The best of each kind, or `None` when one of them has no level that worked.
    pub fn capacity(&self) -> Option<Capacity> {
        let best = |levels: &[Level], rate: fn(&Level) -> Option<f64>| {
            levels.iter().filter_map(rate).reduce(f64::max).filter(|rate| 0.0 < *rate)
        };
        Some(Capacity {
            requests_per_s: best(&self.one_shot, |level| level.requests_per_s)?,
            events_per_s: best(&self.streamed, |level| level.events_per_s)?,
        })
    }
}

impl Level {
    /// `records` are all of a closed loop with `concurrency` slots.
    pub fn from_records(concurrency: u32, records: &[RequestRecord]) -> Self {
        let is_ok = |record: &&RequestRecord| record.ending.outcome == Outcome::Ok;
        let ok = || records.iter().filter(is_ok);
        // From when all slots are past their first request, as long as all of them are full.
        let first = records.iter().filter(|record| is_first(record, concurrency));
        let from = first.map(|record| record.ending.at).max();
        let to = records.iter().map(|record| record.admitted).max();
        let steady = from.zip(to).filter(|(from, to)| from < to);
        let is_steady = |at: Moment| steady.is_some_and(|(from, to)| from < at && at <= to);
        let (mut requests, mut tokens, mut events) = (0.0, 0.0, 0.0);
        for record in ok() {
            let read_at = |event: &Event| Some(record.reads.get(event.read as usize)?.user);
            let is_inside = |event: &&Event| read_at(event).is_some_and(is_steady);
            let inside = record.events.iter().filter(is_inside).count() as f64;
            if 0.0 < inside {
                let mut output = Output::default();
                output.read(record, &mut Ruler::new(0));
                let share = inside / record.events.len() as f64;
                events += inside;
                requests += share;
                tokens += share * OutputTokens::from_record(record, &output).count as f64;
            }
        }
        let ended = || ok().filter(|record| is_steady(record.ending.at));
        let latencies = ended().filter_map(|record| {
            let took = record.ending.at.as_nanos().checked_sub(record.admitted.as_nanos());
            took.map(ns_to_ms)
        });
        let steady_s = steady.map(|(from, to)| to.nanos_after(from) as f64 / 1e9);
        let rate = |count: f64| steady_s.map(|seconds| count / seconds);
        Self {
            concurrency,
            requests: records.len() as u64,
            success: share(ok().count() as u64, records.len() as u64),
            steady_requests: ended().count() as u64,
            steady_s,
            requests_per_s: rate(requests),
            tokens_per_s: rate(tokens),
            events_per_s: rate(events),
            latency_ms: Sample::new(latencies.collect()).map(|sample| LevelLatency {
                p50: sample.percentile(Percentile::P50),
                p95: sample.percentile(Percentile::P95),
                p99: sample.percentile(Percentile::P99),
            }),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PacingRow {
    /// The requested rate.
    pub rate_per_s: f64,
    /// All requests of the plan.
    pub requests: u64,
    /// Requests that this machine could not hold in flight.
    pub not_sent: u64,
    /// Share of all that ended `ok`.
    pub success: Option<f64>,
    /// The rate of the plan: a few seconds of Poisson arrivals do not have exactly the requested one.
    pub planned_per_s: Option<f64>,
    pub sent_per_s: Option<f64>,
    pub delay_ms: Option<SendDelay>,
    /// Standard deviation over mean of the gaps between planned times; 1 for Poisson arrivals.
    pub planned_gap_cv: Option<f64>,
    /// The same of the times at which requests were sent.
    pub sent_gap_cv: Option<f64>,
}

/// Sent less intended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendDelay {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

impl PacingRow {
    /// `records` are all of an open loop at `rate_per_s`, besides those that were not sent.
    pub fn from_records(rate_per_s: f64, records: &[RequestRecord], not_sent: u64) -> Self {
        let requests = records.len() as u64 + not_sent;
        let ok = records.iter().filter(|record| record.ending.outcome == Outcome::Ok).count();
        let departures =
            || records.iter().filter_map(|record| record.sent.map(|sent| (record.intended, sent)));
        let delays = departures().map(|(intended, sent)| sent.nanos_after(intended) as f64 / 1e6);
        let planned = rate_and_variation(records.iter().map(|record| record.intended));
        let sent = rate_and_variation(departures().map(|(_, sent)| sent));
        Self {
            rate_per_s,
            requests,
            not_sent,
            success: share(ok as u64, requests),
            planned_per_s: planned.map(|(per_s, _)| per_s),
            sent_per_s: sent.map(|(per_s, _)| per_s),
            delay_ms: Sample::new(delays.collect()).map(|sample| SendDelay {
                p50: sample.percentile(Percentile::P50),
                p99: sample.percentile(Percentile::P99),
                max: sample.max(),
            }),
            planned_gap_cv: planned.map(|(_, variation)| variation),
            sent_gap_cv: sent.map(|(_, variation)| variation),
        }
    }
}

/// The rate of events at these times, and the standard deviation over the mean of their gaps.
fn rate_and_variation(moments: impl Iterator<Item = Moment>) -> Option<(f64, f64)> {
    let mut moments: Vec<Moment> = moments.collect();
    moments.sort_unstable();
    let gaps = moments.windows(2).map(|pair| pair[1].nanos_after(pair[0]) as f64);
    let gaps_ns = Sample::new(gaps.collect())?;
    let mean = gaps_ns.mean();
    (0.0 < mean).then(|| (1e9 / mean, gaps_ns.std_population() / mean))
}

/// One sample of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySample {
    pub at: Moment,
    pub resident_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamMemory {
    /// Streams that should be in flight at once.
    pub streams: u32,
    /// Streams that the engine had when the sample was taken.
    pub in_flight: u64,
    pub resident_bytes_before: u64,
    pub resident_bytes: Option<u64>,
    /// The difference for each stream in flight; `None` where memory cannot be sampled.
    pub bytes_per_stream: Option<f64>,
}

impl StreamMemory {
    /// Takes the sample at which the engine had the most streams, and of several such the largest.
    pub fn from_drives(
        streams: u32,
        resident_bytes_before: u64,
        looks: &[MemorySample],
        truths: &[TrueAnswer],
    ) -> Self {
        let flights: Vec<Flight> = truths.iter().filter_map(flight).collect();
        let in_flight = |at_ns: u64| {
            let at_once = |flight: &&Flight| flight.from_ns <= at_ns && at_ns < flight.to_ns;
            flights.iter().filter(at_once).count() as u64
        };
        let counted = looks.iter().map(|look| (in_flight(look.at.as_nanos()), look.resident_bytes));
        let best = counted.max().filter(|(in_flight, _)| 0 < *in_flight);
        Self {
            streams,
            in_flight: best.map_or(0, |(in_flight, _)| in_flight),
            resident_bytes_before,
            resident_bytes: best.map(|(_, resident)| resident),
            bytes_per_stream: best.map(|(in_flight, resident)| {
                resident.saturating_sub(resident_bytes_before) as f64 / in_flight as f64
            }),
        }
    }
}

impl Calibration {
    /// The facts that a run's verdict needs, without unsound rows.
    pub fn facts(&self) -> CalibrationFacts {
        let sound = self.fidelity.iter().filter(|row| row.is_sound());
        let errors = sound.filter_map(|row| {
            let error = row.error?;
            Some(ErrorFacts {
                streams: row.streams,
                kernel_stamps: row.kernel_stamps,
                ttft_ms_p50: error.ttft_ms.p50,
                ttft_ms_p99: error.ttft_ms.p99,
                itl_ms_p50: error.itl_ms.p50,
                itl_ms_p99: error.itl_ms.p99,
            })
        });
        CalibrationFacts {
            when: self.when.clone(),
            drivers: self.method.drivers,
            requests_per_s: self.capacity.requests_per_s,
            events_per_s: self.capacity.events_per_s,
            errors: errors.collect(),
        }
    }
}

/// The ground truth of one answer, on the clock of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrueAnswer {
    pub id: RequestId,
    /// When the request reached the engine's machine.
    pub received: Moment,
    /// The time of the write that completed each event, in their order.
    pub events: Vec<Moment>,
}

/// The measurement error for a number of streams in flight.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FidelityRow {
    pub streams: u32,
    /// Between two tokens of a stream, as set for the engine.
    pub gap_ms: f64,
    pub kernel_stamps: bool,
    /// Tokens of every stream.
    pub tokens: u32,
    /// The most that the engine had in flight at once.
    pub in_flight: Option<u64>,
    /// Answers that were compared, each slot's first included.
    pub requests: u64,
    /// Answers that were not, because they failed or their events did not match.
    pub requests_unmatched: u64,
    /// Gaps between tokens that were compared.
    pub gaps: u64,
    /// Gaps that the client could not see, because the stream's first tokens came together.
    pub gaps_unseen: u64,
    /// `None` when there was nothing to compare.
    pub error: Option<FidelityError>,
    /// The widest that an arrival of several events admits to be; zero when none was coalesced.
    pub width_ms_max: Option<f64>,
    /// How late the engine was. The comparison is with what it did, but an engine that is late by more
    /// than a gap writes several tokens at once, which is easy to measure.
    pub engine_late_ms_p99: Option<f64>,
    /// CPU time of the client, over all of its threads, for each token of all streams.
    pub cpu_us_per_token: Option<f64>,
    /// The connections, which were opened before the first request.
    pub dialling: Option<DiallingFigures>,
}

/// Reported less true.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FidelityError {
    pub ttft_ms: AbsoluteError,
    pub itl_ms: AbsoluteError,
}

/// Percentiles of the error's size, whichever its sign.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AbsoluteError {
    pub p50: f64,
    pub p99: f64,
}

impl FidelityRow {
    /// Compares `records` with the engine's answers; both are all of a closed loop with as many slots
    /// as the row has streams. The row holds what was asked for and how late the engine was.
    #[must_use]
    pub fn compare(mut self, records: &[RequestRecord], answers: &[TrueAnswer]) -> Self {
        let by_id: HashMap<RequestId, &TrueAnswer> =
            answers.iter().map(|truth| (truth.id, truth)).collect();
        let (mut ttft_errors_ms, mut itl_errors_ms) = (Vec::new(), Vec::new());
        let mut widest_ms = 0.0_f64;
        for record in records {
            let tokens =
                by_id.get(&record.id).and_then(|truth| Some((truth, tokens(record, truth)?)));
            let (Some((truth, tokens)), Some(sent)) = (tokens, record.sent) else {
                self.requests_unmatched += 1;
                continue;
            };
            self.requests += 1;
            let (reported, written) = tokens[0];
            let true_ns = written.nanos_after(truth.received);
            ttft_errors_ms.push((reported.nanos_after(sent) - true_ns) as f64 / 1e6);
            let errors = token_gap_errors_ms(&tokens);
            self.gaps_unseen += (tokens.len() - 1).saturating_sub(errors.len()) as u64;
            itl_errors_ms.extend(errors);
            // How far back the record itself admits that its bytes may lie.
            let (mut ruler, mut output) = (Ruler::new(0), Output::default());
            output.read(record, &mut ruler);
            let mut widths = Widths::default();
            widths.add_ok(record, &output, &mut ruler);
            widest_ms = widest_ms.max(widths.largest_ms());
        }
        let flights: Vec<Flight> = answers.iter().filter_map(flight).collect();
        self.in_flight = Concurrency::sweep(flights).map(|swept| swept.peak);
        self.gaps = itl_errors_ms.len() as u64;
        self.width_ms_max = (0 < self.requests).then_some(widest_ms);
        let errors = AbsoluteError::from_errors(ttft_errors_ms)
            .zip(AbsoluteError::from_errors(itl_errors_ms));
        self.error = errors.map(|(ttft_ms, itl_ms)| FidelityError { ttft_ms, itl_ms });
        self
    }

    /// Whether the row shows the client's accuracy with so many streams: the engine kept its pace, and
    /// nearly all gaps could be compared.
    pub fn is_sound(&self) -> bool {
        const UNSEEN_SHARE_MAX: f64 = 0.01;
        let unseen = share(self.gaps_unseen, self.gaps + self.gaps_unseen);
        self.engine_late_ms_p99.is_none_or(|late| late <= self.gap_ms)
            && unseen.is_some_and(|unseen| unseen <= UNSEEN_SHARE_MAX)
    }
}

/// Whether it is the first request of one of the slots: it is among the first ids, or had to open a
/// connection. With several driver threads, one may be past its first before another has begun.
fn is_first(record: &RequestRecord, slots: u32) -> bool {
    let opened = record.connection.is_some_and(|connection| !connection.reused);
    opened || record.id.0 < u64::from(slots)
}

fn flight(truth: &TrueAnswer) -> Option<Flight> {
    let (from_ns, to_ns) = (truth.received.as_nanos(), truth.events.last()?.as_nanos());
    (from_ns <= to_ns).then_some(Flight { from_ns, to_ns })
}

/// When each output event of an answer arrived, and when the engine wrote it; at least one. `None` where
/// they do not match.
fn tokens(record: &RequestRecord, truth: &TrueAnswer) -> Option<Vec<(Moment, Moment)>> {
    if record.ending.outcome != Outcome::Ok || record.events.len() != truth.events.len() {
        return None;
    }
    let pairs = record.events.iter().zip(&truth.events).filter(|(event, _)| event.is_output());
    let tokens =
        pairs.map(|(event, truth)| Some((record.reads.get(event.read as usize)?.at(), *truth)));
    tokens.collect::<Option<Vec<_>>>().filter(|tokens| !tokens.is_empty())
}

/// The errors of the gaps between tokens, measured as the metric does: the events of one arrival share
/// the time since the arrival before. The events of the first arrival have no gap.
fn token_gap_errors_ms(tokens: &[(Moment, Moment)]) -> Vec<f64> {
    let mut errors = Vec::with_capacity(tokens.len());
    let mut before: Option<Moment> = None;
    let mut last_write = tokens[0].1;
    for arrival in tokens.chunk_by(|left, right| left.0 == right.0) {
        for (reported, written) in arrival {
            if let Some(before) = before {
                let shared = reported.nanos_after(before) as f64 / arrival.len() as f64;
                errors.push((shared - written.nanos_after(last_write) as f64) / 1e6);
            }
            last_write = *written;
        }
        before = Some(arrival[0].0);
    }
    errors
}

impl AbsoluteError {
    fn from_errors(errors: Vec<f64>) -> Option<Self> {
        let sizes = Sample::new(errors.into_iter().map(f64::abs).collect())?;
        Some(Self {
            p50: sizes.percentile(Percentile::P50),
            p99: sizes.percentile(Percentile::P99),
        })
    }
}

#[cfg(test)]
mod tests;
