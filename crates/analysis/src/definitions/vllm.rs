//! What `vllm bench serve` would have said of the same events.
//!
//! - A chunk is an event with an entry in `choices`, be it empty or a role.
//! - TTFT is first chunk − start; ITL is every gap between chunks, pooled, with events of one read
//!   at the same moment; E2EL ends with the last chunk, and on chat with the last message of any
//!   kind, so usually the one with the usage.
//! - TPOT is (E2EL − TTFT) / (output tokens − 1), for more than one token.
//! - The start is the moment at which the client takes the request up: its dialling counts, its
//!   waiting for a slot does not.
//! - Throughputs are over the whole wall time, which begins with the schedule where it was stretched
//!   as that tool's are, and else with the first request; the standard deviation is the population's.
//! - The peaks are over whole-second buckets from the first start: chunks that came in one, and
//!   requests that touched one.
//!
//! Two things are ours. A success is our `ok`: an error inside a stream stays a failure here. And
//! nothing is null, where that tool prints zero.

mod goodput;
mod whole;

use std::collections::BTreeMap;

use inferometer_model::endpoint::Api;
use inferometer_model::record::{Carried, Event, Read};
use inferometer_model::spec::{Arrivals, LoadShape, Rate};
use inferometer_model::{Moment, Observations, Outcome, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::measured::Measured;
use crate::ruler::Ruler;
use crate::sample::{Percentile, Sample};
use crate::throughput::Extremes;
use goodput::{Answer, Goodput};
pub(crate) use whole::backend;
pub use whole::{Rank, VllmAsked};

/// The values of the block "Serving Benchmark Result", in its order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VllmResult {
    pub completed: u64,
    pub failed: u64,
    /// Null on an open loop: no cap.
    pub max_concurrency: Option<u32>,
    /// Null on a closed loop: an infinite rate.
    pub request_rate: Option<f64>,
    pub duration_s: Option<f64>,
    pub total_input_tokens: u64,
    pub total_output_tokens: u64,
    pub request_throughput: Option<f64>,
    /// By the run's promises of TTFT, TPOT and E2E; missing where none or another one was made of
    /// each request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_goodput: Option<f64>,
    pub output_throughput: Option<f64>,
    /// Chunks, not tokens.
    pub max_output_tokens_per_s: Option<u64>,
    pub max_concurrent_requests: Option<u64>,
    pub total_token_throughput: Option<f64>,
    pub ttft_ms: VllmLatency,
    pub tpot_ms: VllmLatency,
    pub itl_ms: VllmLatency,
    pub e2el_ms: VllmLatency,
}

/// All null when there is nothing to take them of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VllmLatency {
    pub mean: Option<f64>,
    pub median: Option<f64>,
    /// Of the population (n, not n − 1).
    pub std: Option<f64>,
    pub p90: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
}

impl VllmResult {
    pub(crate) fn of(measured: &Measured) -> Self {
        let gathered = &measured.vllm;
        let duration_s = gathered.extremes.duration_s();
        let tokens = &measured.tokens;
        let tokens_total = tokens.input_total as f64 + tokens.output_total as f64;
        let per_second = |count: f64| duration_s.filter(|_| 0 < measured.ok).map(|s| count / s);
        let (max_concurrency, request_rate) = match &measured.shape {
            LoadShape::Closed { concurrency, .. } => (Some(*concurrency), None),
            LoadShape::Open { rate: Rate::Steady { per_s }, cap, .. } => (*cap, Some(*per_s)),
            // A ramp and a trace have no one rate, and everything at once has none at all.
            LoadShape::Open {
                rate: Rate::Ramp { .. } | Rate::Recorded(_) | Rate::Unlimited,
                cap,
                ..
            } => (*cap, None),
        };
        let max_concurrency = max_concurrency.map(std::num::NonZeroU32::get);
        Self {
            completed: measured.ok,
            failed: measured.attempted - measured.ok,
            max_concurrency,
            request_rate,
            duration_s,
            total_input_tokens: tokens.input_total,
            total_output_tokens: tokens.output_total,
            request_throughput: per_second(measured.ok as f64),
            request_goodput: gathered
                .good
                .zip(duration_s)
                .map(|(good, duration_s)| good as f64 / duration_s),
            output_throughput: per_second(tokens.output_total as f64),
            max_output_tokens_per_s: gathered.most_chunks,
            max_concurrent_requests: gathered.most_requests,
            total_token_throughput: per_second(tokens_total),
            ttft_ms: gathered.ttft_ms,
            tpot_ms: gathered.tpot_ms,
            itl_ms: gathered.itl_ms,
            e2el_ms: gathered.e2el_ms,
        }
    }
}

impl VllmLatency {
    fn of(values: Vec<f64>) -> Self {
        let Some(sample) = Sample::new(values) else { return Self::default() };
        let at = |percentile| Some(sample.percentile(percentile));
        Self {
            mean: Some(sample.mean()),
            median: at(Percentile::P50),
            std: Some(sample.std_population()),
            p90: at(Percentile::P90),
            p95: at(Percentile::P95),
            p99: at(Percentile::P99),
        }
    }
}

/// What the pass over the records came to.
#[derive(Debug)]
pub(crate) struct Gathered {
    extremes: Extremes,
    /// Requests that kept the run's promises.
    good: Option<u64>,
    most_chunks: Option<u64>,
    most_requests: Option<u64>,
    ttft_ms: VllmLatency,
    tpot_ms: VllmLatency,
    itl_ms: VllmLatency,
    e2el_ms: VllmLatency,
}

/// This tool's part of the one pass over the records.
pub(crate) struct Pass {
    api: Api,
    /// Disorder is counted where our own metrics are made; here it only leaves a value out.
    ruler: Ruler,
    extremes: Extremes,
    buckets: Buckets,
    goodput: Option<Goodput>,
    ttft: Vec<f64>,
    tpot: Vec<f64>,
    e2el: Vec<f64>,
}

impl Pass {
    pub(crate) fn new(observations: &Observations, error_ns: u64) -> Self {
        let ok = observations.records.iter().filter(|record| record.ending.outcome == Outcome::Ok);
        Self {
            api: observations.manifest.spec.api,
            ruler: Ruler::new(error_ns),
            extremes: extremes_of_schedule(observations),
            buckets: Buckets::from(ok.filter_map(start).min().unwrap_or_default()),
            goodput: Goodput::of(observations),
            ttft: Vec::new(),
            tpot: Vec::new(),
            e2el: Vec::new(),
        }
    }

    pub(crate) fn add_attempt(&mut self, record: &RequestRecord) {
        let begun = record.sent.map_or(record.intended, |sent| sent.min(record.intended));
        self.extremes.add(begun, record.ending.at);
    }

    pub(crate) fn add_ok(&mut self, record: &RequestRecord, output_tokens: u64) {
        let buckets = &mut self.buckets;
        let seen = Seen::of(self.api, record, |at| buckets.add_chunk(at));
        let Some(Seen { start, first: Some(first), end: Some(end) }) = seen else { return };
        self.buckets.add_request(start, end);
        let ttft = self.ruler.ms(start, first);
        let e2el = self.ruler.ms(start, end);
        self.ttft.extend(ttft);
        self.e2el.extend(e2el);
        let (Some(ttft), Some(e2el)) = (ttft, e2el) else { return };
        let tpot = (1 < output_tokens).then(|| (e2el - ttft) / (output_tokens - 1) as f64);
        self.tpot.extend(tpot);
        if let Some(goodput) = &mut self.goodput {
            goodput.add(&Answer { ttft, tpot: tpot.unwrap_or(0.0), e2el });
        }
    }

    pub(crate) fn finish(mut self, observations: &Observations) -> Gathered {
        self.buckets.flush_chunks();
        Gathered {
            extremes: self.extremes,
            good: self.goodput.as_ref().map(Goodput::count),
            most_chunks: self.buckets.chunks.values().max().copied(),
            most_requests: self.buckets.most_requests(),
            ttft_ms: VllmLatency::of(self.ttft),
            tpot_ms: VllmLatency::of(self.tpot),
            itl_ms: VllmLatency::of(chunk_gaps(observations, &mut self.ruler)),
            e2el_ms: VllmLatency::of(self.e2el),
        }
    }
}

/// That tool's clock runs from the start of its schedule, and the first request comes a gap later.
fn extremes_of_schedule(observations: &Observations) -> Extremes {
    let mut extremes = Extremes::default();
    let shape = &observations.manifest.spec.load.shape;
    if let LoadShape::Open { arrivals: Arrivals::Stretched { .. }, .. } = shape
        && let Some(began) = observations.ending.began
    {
        extremes.add(began, began);
    }
    extremes
}

/// Gathered by themselves, so that a long run's memory holds one list of gaps at a time.
fn chunk_gaps(observations: &Observations, ruler: &mut Ruler) -> Vec<f64> {
    let ok = observations.records.iter().filter(|record| record.ending.outcome == Outcome::Ok);
    let sent: Vec<&RequestRecord> = ok.filter(|record| record.sent.is_some()).collect();
    let mut gaps = Vec::with_capacity(sent.iter().map(|record| record.events.len()).sum());
    for record in sent {
        let chunks = record.events.iter().filter(|event| event.carried.contains(Carried::CHOICE));
        let mut before = None;
        for at in chunks.filter_map(|event| record.reads.get(event.read as usize).map(Read::at)) {
            gaps.extend(before.and_then(|before| ruler.ms(before, at)));
            before = Some(at);
        }
    }
    gaps
}

/// The moments of one request that its latencies lie between.
struct Seen {
    start: Moment,
    /// Of the first chunk.
    first: Option<Moment>,
    end: Option<Moment>,
}

impl Seen {
    /// `None` of a request that was never sent.
    fn of(api: Api, record: &RequestRecord, mut on_chunk: impl FnMut(Moment)) -> Option<Self> {
        let mut seen = Self { start: start(record)?, first: None, end: None };
        for event in &record.events {
            let Some(read) = record.reads.get(event.read as usize) else { continue };
            let at = read.at();
            if event.carried.contains(Carried::CHOICE) {
                seen.first = seen.first.or(Some(at));
                on_chunk(at);
            }
            if ends_latency(api, event) {
                seen.end = Some(at);
            }
        }
        Some(seen)
    }
}

/// That tool starts its clock before it dials.
fn start(record: &RequestRecord) -> Option<Moment> {
    let sent = record.sent?;
    let dial = record.connection.and_then(|connection| connection.dial);
    Some(dial.map_or(sent, |dial| dial.started.min(sent)))
}

fn ends_latency(api: Api, event: &Event) -> bool {
    if api == Api::Completions {
        event.carried.contains(Carried::CHOICE)
    } else {
        !event.carried.contains(Carried::DONE)
    }
}

/// Whole seconds since the first start. Only seconds in which something happened are kept, so a
/// wrong moment costs no memory.
struct Buckets {
    first_start: Moment,
    chunks: BTreeMap<u64, u64>,
    /// How the number of requests changes with each second.
    requests: BTreeMap<u64, i64>,
    /// Chunks of one second mostly come one after another; the map is told once.
    second: u64,
    chunks_in_second: u64,
}

impl Buckets {
    fn from(first_start: Moment) -> Self {
        Self {
            first_start,
            chunks: BTreeMap::new(),
            requests: BTreeMap::new(),
            second: 0,
            chunks_in_second: 0,
        }
    }

    fn add_chunk(&mut self, at: Moment) {
        let second = self.second_of(at);
        if second != self.second {
            self.flush_chunks();
            self.second = second;
        }
        self.chunks_in_second += 1;
    }

    fn flush_chunks(&mut self) {
        if 0 < self.chunks_in_second {
            *self.chunks.entry(self.second).or_default() += self.chunks_in_second;
            self.chunks_in_second = 0;
        }
    }

    fn add_request(&mut self, start: Moment, end: Moment) {
        *self.requests.entry(self.second_of(start)).or_default() += 1;
        *self.requests.entry(self.second_of(end) + 1).or_default() -= 1;
    }

    fn most_requests(&self) -> Option<u64> {
        let running = self.requests.values().scan(0_i64, |running, change| {
            *running += change;
            Some(*running)
        });
        running.max().and_then(|most| u64::try_from(most).ok())
    }

    fn second_of(&self, at: Moment) -> u64 {
        at.as_nanos().saturating_sub(self.first_start.as_nanos()) / 1_000_000_000
    }
}

#[cfg(test)]
mod tests;
