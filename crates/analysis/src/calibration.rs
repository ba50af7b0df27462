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
        let best = |rates: Vec<Option<f64>>| rates.into_iter().flatten().reduce(f64::max);
        let requests = self.one_shot.iter().map(|level| level.requests_per_s).collect();
        let events = self.streamed.iter().map(|level| level.events_per_s).collect();
        let capacity = Capacity { requests_per_s: best(requests)?, events_per_s: best(events)? };
        (0.0 < capacity.requests_per_s && 0.0 < capacity.events_per_s).then_some(capacity)
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
        let planned = Gaps::between(records.iter().map(|record| record.intended));
        let sent = Gaps::between(departures().map(|(_, sent)| sent));
        Self {
            rate_per_s,
            requests,
            not_sent,
            success: share(ok as u64, requests),
            planned_per_s: planned.as_ref().and_then(Gaps::per_second),
            sent_per_s: sent.as_ref().and_then(Gaps::per_second),
            delay_ms: Sample::new(delays.collect()).map(|sample| SendDelay {
                p50: sample.percentile(Percentile::P50),
                p99: sample.percentile(Percentile::P99),
                max: sample.max(),
            }),
            planned_gap_cv: planned.as_ref().and_then(Gaps::coefficient_of_variation),
            sent_gap_cv: sent.as_ref().and_then(Gaps::coefficient_of_variation),
        }
    }
}

/// Gaps between moments, in nanoseconds.
struct Gaps(Sample);

impl Gaps {
    fn between(moments: impl Iterator<Item = Moment>) -> Option<Self> {
        let mut moments: Vec<Moment> = moments.collect();
        moments.sort_unstable();
        let gaps = moments.windows(2).map(|pair| pair[1].nanos_after(pair[0]) as f64);
        Sample::new(gaps.collect()).map(Self)
    }

    fn per_second(&self) -> Option<f64> {
        let mean = self.0.mean();
        (0.0 < mean).then(|| 1e9 / mean)
    }

    fn coefficient_of_variation(&self) -> Option<f64> {
        let mean = self.0.mean();
        (0.0 < mean).then(|| self.0.std_population() / mean)
    }
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
        let counted = looks.iter().map(|look| (in_flight_at(look.at, truths), look.resident_bytes));
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

fn in_flight_at(at: Moment, truths: &[TrueAnswer]) -> u64 {
    let at_ns = at.as_nanos();
    let flights = truths.iter().filter_map(flight);
    flights.filter(|flight| flight.from_ns <= at_ns && at_ns < flight.to_ns).count() as u64
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

/// What was to be measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FidelityAsk {
    pub streams: u32,
    /// Between two tokens of a stream.
    pub gap_ms: f64,
    /// Tokens of every stream.
    pub tokens: u32,
    pub kernel_stamps: bool,
}

/// What the engine says of itself.
#[derive(Clone, Copy, Debug)]
pub struct EngineTruth<'a> {
    pub answers: &'a [TrueAnswer],
    /// How late it made its writes.
    pub late_ms_p99: Option<f64>,
}

/// Streams in flight, and how far what was reported of them is off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// `records` and the truth are all of a closed loop with as many slots as streams were asked.
    pub fn compare(asked: FidelityAsk, records: &[RequestRecord], truth: EngineTruth<'_>) -> Self {
        let by_id: HashMap<RequestId, &TrueAnswer> =
            truth.answers.iter().map(|truth| (truth.id, truth)).collect();
        let mut comparison = Comparison::default();
        // Where several threads drive, one may be past its first before another has begun.
        let is_first = |record: &RequestRecord| {
            let opened = record.connection.is_some_and(|connection| !connection.reused);
            opened || record.id.0 < u64::from(asked.streams)
        };
        for record in records.iter().filter(|record| !is_first(record)) {
            let truth = by_id.get(&record.id);
            match truth.and_then(|truth| Answer::compare(record, truth)) {
                Some(answer) => comparison.add(record, &answer),
                None => comparison.requests_unmatched += 1,
            }
        }
        let flights: Vec<Flight> = truth.answers.iter().filter_map(flight).collect();
        Self {
            streams: asked.streams,
            gap_ms: asked.gap_ms,
            kernel_stamps: asked.kernel_stamps,
            tokens: asked.tokens,
            in_flight: Concurrency::sweep(&flights).map(|swept| swept.peak),
            requests: comparison.requests,
            requests_unmatched: comparison.requests_unmatched,
            gaps: comparison.itl_errors_ms.len() as u64,
            gaps_unseen: comparison.gaps_unseen,
            engine_late_ms_p99: truth.late_ms_p99,
            width_ms_max: (0 < comparison.requests).then_some(comparison.width_ms_max),
            error: comparison.error(),
        }
    }
}

impl FidelityRow {
    /// Whether the row shows what the client can do with so many streams: the engine kept its pace,
    /// and hardly a gap went unseen. Otherwise its errors are of what little could be compared.
    pub fn is_sound(&self) -> bool {
        const UNSEEN_SHARE_MAX: f64 = 0.01;
        let unseen = share(self.gaps_unseen, self.gaps + self.gaps_unseen);
        self.engine_late_ms_p99.is_none_or(|late| late <= self.gap_ms)
            && unseen.is_some_and(|unseen| unseen <= UNSEEN_SHARE_MAX)
    }
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

/// An answer whose events could be laid beside the engine's.
#[derive(Debug)]
struct Answer {
    sent: Moment,
    received: Moment,
    first: Token,
    tokens: Vec<Token>,
}

impl Answer {
    fn compare(record: &RequestRecord, truth: &TrueAnswer) -> Option<Self> {
        let matched =
            record.ending.outcome == Outcome::Ok && record.events.len() == truth.events.len();
        let sent = record.sent.filter(|_| matched)?;
        let tokens: Option<Vec<Token>> = record
            .events
            .iter()
            .zip(&truth.events)
            .filter(|(event, _)| event.is_output())
            .map(|(event, truth)| {
                let read = record.reads.get(event.read as usize)?;
                Some(Token { reported: read.at(), truth: *truth })
            })
            .collect();
        let tokens = tokens?;
        let first = *tokens.first()?;
        Some(Self { sent, received: truth.received, first, tokens })
    }

    fn ttft_error_ms(&self) -> f64 {
        let reported = self.first.reported.nanos_after(self.sent);
        let truth = self.first.truth.nanos_after(self.received);
        (reported - truth) as f64 / 1e6
    }

    /// As the metric does: the events of one arrival share the time since the arrival before.
    /// Several events in the first arrival have no gap that would be reported.
    fn itl_errors_ms(&self) -> Vec<f64> {
        let arrivals: Vec<&[Token]> =
            self.tokens.chunk_by(|left, right| left.reported == right.reported).collect();
        let mut errors = Vec::with_capacity(self.tokens.len());
        let mut last_write = self.first.truth;
        for (index, arrival) in arrivals.iter().enumerate() {
            let before = index.checked_sub(1).map(|before| arrivals[before][0].reported);
            for token in *arrival {
                if let Some(before) = before {
                    let shared = token.reported.nanos_after(before) as f64 / arrival.len() as f64;
                    errors.push((shared - token.truth.nanos_after(last_write) as f64) / 1e6);
                }
                last_write = token.truth;
            }
        }
        errors
    }
}

#[derive(Debug, Default)]
struct Comparison {
    requests: u64,
    requests_unmatched: u64,
    ttft_errors_ms: Vec<f64>,
    itl_errors_ms: Vec<f64>,
    gaps_unseen: u64,
    width_ms_max: f64,
}

impl Comparison {
    fn add(&mut self, record: &RequestRecord, answer: &Answer) {
        self.requests += 1;
        self.ttft_errors_ms.push(answer.ttft_error_ms());
        let itl_errors_ms = answer.itl_errors_ms();
        self.gaps_unseen += (answer.tokens.len() - 1).saturating_sub(itl_errors_ms.len()) as u64;
        self.itl_errors_ms.extend(itl_errors_ms);
        self.width_ms_max = self.width_ms_max.max(width_ms_max(record));
    }

    fn error(self) -> Option<FidelityError> {
        let ttft_ms = AbsoluteError::from_errors(self.ttft_errors_ms)?;
        let itl_ms = AbsoluteError::from_errors(self.itl_errors_ms)?;
        Some(FidelityError { ttft_ms, itl_ms })
    }
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
