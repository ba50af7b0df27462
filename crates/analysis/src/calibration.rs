//! How fast and how exact this client is on this machine, from records of drives against an engine
//! whose truth is known.
//!
//! [`Level`] is one rung of the ladder: how much the client can take. [`FidelityRow`] compares what
//! it reports with what the engine did. [`PacingRow`] compares when requests left with when they
//! should have. [`StreamMemory`] is what a stream costs. A [`Calibration`] holds them all, and
//! answers whether a load was within what was measured.

use std::collections::HashMap;

use inferometer_model::observations::{CalibrationFacts, ErrorFacts};
use inferometer_model::record::Event;
use inferometer_model::{Moment, Outcome, RequestId, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::client::share;
use crate::record::{Concurrency, Flight, Output, OutputTokens, Ruler, Widths, ns_to_ms};
use crate::statistics::{Percentile, Sample};

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

#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    #[error("it is not the JSON that was expected: {0}")]
    Json(#[from] serde_json::Error),
    #[error("it has the schema `{0}`, and this version reads `{SCHEMA}`")]
    Schema(String),
    #[error("it claims a capacity that no client has")]
    Capacity,
}

impl Calibration {
    /// The document as it is stored: indented, with a line feed at its end.
    ///
    /// # Panics
    ///
    /// Never: a calibration holds no map, and nothing else can fail.
    pub fn to_json_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).expect("a calibration has a JSON form");
        bytes.push(b'\n');
        bytes
    }

    /// Reads a stored document. Keys that this version does not know are passed over.
    pub fn from_json_bytes(bytes: &[u8]) -> Result<Self, CalibrationError> {
        let named: Named = serde_json::from_slice(bytes)?;
        if named.schema != SCHEMA {
            return Err(CalibrationError::Schema(named.schema));
        }
        let calibration: Self = serde_json::from_slice(bytes)?;
        let Capacity { requests_per_s, events_per_s } = calibration.capacity;
        // Loads are divided by these.
        if [requests_per_s, events_per_s].iter().all(|rate| rate.is_finite() && 0.0 < *rate) {
            Ok(calibration)
        } else {
            Err(CalibrationError::Capacity)
        }
    }
}

/// The schema is read first: a document of another form should say so, not complain of a field.
#[derive(Deserialize)]
struct Named {
    schema: String,
}

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
        let ok = records.iter().filter(is_ok).count() as u64;
        let steady = SteadyTime::from_records(concurrency, records);
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
    fn from_records(concurrency: u32, records: &[RequestRecord]) -> Option<Self> {
        let first = records.iter().filter(|record| is_first(record, concurrency));
        let from = first.map(|record| record.ending.at).max()?;
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
            self.tokens += share * OutputTokens::from_record(record, &output).count as f64;
        }
        if steady.holds(record.ending.at) {
            self.ended += 1;
            let took = record.ending.at.as_nanos().checked_sub(record.admitted.as_nanos());
            self.latency_ms.extend(took.map(ns_to_ms));
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PacingRow {
    /// The rate that was asked for.
    pub rate_per_s: f64,
    /// All requests of the plan.
    pub requests: u64,
    /// Those that this machine could not hold in flight.
    pub not_sent: u64,
    /// Share of all that ended `ok`.
    pub success: Option<f64>,
    /// The rate that the plan drew: of a few seconds of Poisson arrivals, not quite the asked one.
    pub planned_per_s: Option<f64>,
    pub sent_per_s: Option<f64>,
    pub delay_ms: Option<SendDelay>,
    /// Standard deviation over mean of the gaps between planned moments; 1 for Poisson arrivals.
    pub planned_gap_cv: Option<f64>,
    /// The same of the moments at which requests really left.
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

/// How many moments come in a second, and the standard deviation over the mean of the gaps between
/// them.
fn rate_and_variation(moments: impl Iterator<Item = Moment>) -> Option<(f64, f64)> {
    let mut moments: Vec<Moment> = moments.collect();
    moments.sort_unstable();
    let gaps = moments.windows(2).map(|pair| pair[1].nanos_after(pair[0]) as f64);
    let gaps_ns = Sample::new(gaps.collect())?;
    let mean = gaps_ns.mean();
    (0.0 < mean).then(|| (1e9 / mean, gaps_ns.std_population() / mean))
}

/// One look at the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySample {
    pub at: Moment,
    pub resident_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamMemory {
    /// Streams that were to be in flight at once.
    pub streams: u32,
    /// Streams that the engine really had at the moment of the look.
    pub in_flight: u64,
    pub resident_bytes_before: u64,
    pub resident_bytes: Option<u64>,
    /// The difference, for each stream in flight; `None` where memory cannot be looked at.
    pub bytes_per_stream: Option<f64>,
}

impl StreamMemory {
    /// Takes the look at which the engine had the most streams, and of several such the largest.
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
    /// The facts that a run's verdict needs. Rows that prove nothing are left out.
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

/// What the engine knows of one answer, on the clock of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrueAnswer {
    pub id: RequestId,
    /// When the request reached the engine's machine.
    pub received: Moment,
    /// The moment of the write that completed each event, in their order.
    pub events: Vec<Moment>,
}

/// Streams in flight, and how far what was reported of them is off.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FidelityRow {
    pub streams: u32,
    /// Between two tokens of a stream, as the engine was told.
    pub gap_ms: f64,
    pub kernel_stamps: bool,
    /// Tokens of every stream.
    pub tokens: u32,
    /// The most that the engine had in flight at once.
    pub in_flight: Option<u64>,
    /// Answers that were compared: each slot's first is left out, since connections open then.
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
    /// How late the engine itself was. The comparison is with what it did, but an engine that is
    /// late by more than a gap writes its tokens in heaps, and heaps are easy to report.
    pub engine_late_ms_p99: Option<f64>,
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
        for record in records.iter().filter(|record| !is_first(record, self.streams)) {
            let tokens =
                by_id.get(&record.id).and_then(|truth| Some((truth, tokens(record, truth)?)));
            let (Some((truth, tokens)), Some(sent)) = (tokens, record.sent) else {
                self.requests_unmatched += 1;
                continue;
            };
            self.requests += 1;
            let first = tokens[0];
            let true_ns = first.truth.nanos_after(truth.received);
            ttft_errors_ms.push((first.reported.nanos_after(sent) - true_ns) as f64 / 1e6);
            let errors = token_gap_errors_ms(&tokens);
            self.gaps_unseen += (tokens.len() - 1).saturating_sub(errors.len()) as u64;
            itl_errors_ms.extend(errors);
            widest_ms = widest_ms.max(width_ms_max(record));
        }
        let flights: Vec<Flight> = answers.iter().filter_map(flight).collect();
        self.in_flight = Concurrency::sweep(&flights).map(|swept| swept.peak);
        self.gaps = itl_errors_ms.len() as u64;
        self.width_ms_max = (0 < self.requests).then_some(widest_ms);
        let errors = AbsoluteError::from_errors(ttft_errors_ms)
            .zip(AbsoluteError::from_errors(itl_errors_ms));
        self.error = errors.map(|(ttft_ms, itl_ms)| FidelityError { ttft_ms, itl_ms });
        self
    }

    /// Whether the row shows what the client can do with so many streams: the engine kept its pace,
    /// and hardly a gap went unseen. Otherwise its errors are of what little could be compared.
    pub fn is_sound(&self) -> bool {
        const UNSEEN_SHARE_MAX: f64 = 0.01;
        let unseen = share(self.gaps_unseen, self.gaps + self.gaps_unseen);
        self.engine_late_ms_p99.is_none_or(|late| late <= self.gap_ms)
            && unseen.is_some_and(|unseen| unseen <= UNSEEN_SHARE_MAX)
    }
}

/// Whether it is the first request of one of so many slots: it is among the first ids, or had to open
/// a connection. Where several threads drive, one may be past its first before another has begun.
fn is_first(record: &RequestRecord, slots: u32) -> bool {
    let opened = record.connection.is_some_and(|connection| !connection.reused);
    opened || record.id.0 < u64::from(slots)
}

fn flight(truth: &TrueAnswer) -> Option<Flight> {
    let (from_ns, to_ns) = (truth.received.as_nanos(), truth.events.last()?.as_nanos());
    (from_ns <= to_ns).then_some(Flight { from_ns, to_ns })
}

/// One output event twice.
#[derive(Clone, Copy, Debug)]
struct Token {
    reported: Moment,
    truth: Moment,
}

/// The output events of an answer beside the engine's, at least one; `None` where they do not match.
fn tokens(record: &RequestRecord, truth: &TrueAnswer) -> Option<Vec<Token>> {
    if record.ending.outcome != Outcome::Ok || record.events.len() != truth.events.len() {
        return None;
    }
    let pairs = record.events.iter().zip(&truth.events).filter(|(event, _)| event.is_output());
    let tokens = pairs.map(|(event, truth)| {
        let read = record.reads.get(event.read as usize)?;
        Some(Token { reported: read.at(), truth: *truth })
    });
    tokens.collect::<Option<Vec<_>>>().filter(|tokens| !tokens.is_empty())
}

/// As the metric does: the events of one arrival share the time since the arrival before. Several
/// events in the first arrival have no gap that would be reported.
fn token_gap_errors_ms(tokens: &[Token]) -> Vec<f64> {
    let mut errors = Vec::with_capacity(tokens.len());
    let mut before: Option<Moment> = None;
    let mut last_write = tokens[0].truth;
    for arrival in tokens.chunk_by(|left, right| left.reported == right.reported) {
        for token in arrival {
            if let Some(before) = before {
                let shared = token.reported.nanos_after(before) as f64 / arrival.len() as f64;
                errors.push((shared - token.truth.nanos_after(last_write) as f64) / 1e6);
            }
            last_write = token.truth;
        }
        before = Some(arrival[0].reported);
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

/// How far back the record itself admits that its bytes may lie.
fn width_ms_max(record: &RequestRecord) -> f64 {
    let mut ruler = Ruler::new(0);
    let mut output = Output::default();
    output.read(record, &mut ruler);
    let mut widths = Widths::default();
    widths.add_ok(record, &output, &mut ruler);
    widths.largest_ms()
}

#[cfg(test)]
mod tests;
