//! What `vllm bench serve` would have reported for the same events.
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

use std::collections::BTreeMap;

use inferometer_model::endpoint::Api;
use inferometer_model::record::{Carried, Read};
use inferometer_model::spec::{Arrivals, LoadShape, Rate};
use inferometer_model::{Moment, Observations, Outcome, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::judge::Threshold;
use crate::metric::{self, LatencyOrigin, Metric};
use crate::record::{Extremes, InputTokens, Measured, Output, OutputTokens, Ruler};
use crate::statistics::{Percentile, Probability, Sample};
use crate::summary::Summary;
use crate::tool_result::{
    CountsFrom, Grain, LatencyKind, ResultLatency, ResultRequest, ToolResult,
};

/// The values of the block "Serving Benchmark Result", in its order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// By the run's SLOs on the TTFT, TPOT and E2E of each request; missing where there is none, or
    /// another one.
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
    /// What the pass over the records found, with the counts and the load.
    pub(crate) fn new(measured: &Measured) -> Self {
        let tokens = &measured.tokens;
        let tokens_total = tokens.input_total as f64 + tokens.output_total as f64;
        let duration_s = measured.vllm.duration_s;
        let per_second = |count: f64| duration_s.filter(|_| 0 < measured.ok).map(|s| count / s);
        let (max_concurrency, request_rate) = match &measured.shape {
            LoadShape::Closed { concurrency, .. } => (Some(*concurrency), None),
            LoadShape::Open { rate: Rate::Steady { per_s }, cap, .. } => (*cap, Some(*per_s)),
            // A ramp and a trace have no one rate, and everything at once has none at all.
            LoadShape::Open { cap, .. } => (*cap, None),
        };
        Self {
            completed: measured.ok,
            failed: measured.attempted - measured.ok,
            max_concurrency: max_concurrency.map(std::num::NonZeroU32::get),
            request_rate,
            total_input_tokens: tokens.input_total,
            total_output_tokens: tokens.output_total,
            request_throughput: per_second(measured.ok as f64),
            output_throughput: per_second(tokens.output_total as f64),
            total_token_throughput: per_second(tokens_total),
            ..measured.vllm.clone()
        }
    }
}

impl VllmLatency {
    fn from_values(values: Vec<f64>) -> Self {
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

/// This tool's part of the one pass over the records.
pub(crate) struct Pass {
    api: Api,
    /// Disorder is counted where our own metrics are made; here it only leaves a value out.
    ruler: Ruler,
    extremes: Extremes,
    buckets: Buckets,
    limits: Option<Vec<(Threshold, AnswerLatency)>>,
    good: u64,
    latencies: Latencies,
}

/// Milliseconds of the requests that succeeded.
#[derive(Default)]
struct Latencies {
    ttft: Vec<f64>,
    tpot: Vec<f64>,
    e2el: Vec<f64>,
}

impl Latencies {
    /// What goodput is judged by, where both are known.
    fn add(&mut self, ttft: Option<f64>, e2el: Option<f64>, output_tokens: u64) -> Option<Answer> {
        self.ttft.extend(ttft);
        self.e2el.extend(e2el);
        let (ttft, e2el) = ttft.zip(e2el)?;
        let tpot = (1 < output_tokens).then(|| (e2el - ttft) / (output_tokens - 1) as f64);
        self.tpot.extend(tpot);
        Some(Answer { ttft, tpot: tpot.unwrap_or(0.0), e2el })
    }
}

/// What goodput is judged by, in milliseconds. A request of one token has a TPOT of zero there.
#[derive(Clone, Copy, Debug)]
struct Answer {
    ttft: f64,
    tpot: f64,
    e2el: f64,
}

type AnswerLatency = fn(&Answer) -> f64;

impl Pass {
    pub(crate) fn new(observations: &Observations, error_ns: u64) -> Self {
        let ok = observations.records.iter().filter(|record| record.ending.outcome == Outcome::Ok);
        let mut extremes = Extremes::default();
        // That tool's clock runs from the start of its schedule, and the first request comes a gap
        // later.
        let shape = &observations.manifest.spec.load.shape;
        if let LoadShape::Open { arrivals: Arrivals::Stretched { .. }, .. } = shape
            && let Some(began) = observations.ending.began
        {
            extremes.add(began, began);
        }
        Self {
            api: observations.manifest.spec.api,
            ruler: Ruler::new(error_ns),
            extremes,
            buckets: Buckets::new(ok.filter_map(start).min().unwrap_or_default()),
            limits: goodput_limits(observations),
            good: 0,
            latencies: Latencies::default(),
        }
    }

    pub(crate) fn add_attempt(&mut self, record: &RequestRecord) {
        let begun = record.sent.map_or(record.intended, |sent| sent.min(record.intended));
        self.extremes.add(begun, record.ending.at);
    }

    pub(crate) fn add_ok(&mut self, record: &RequestRecord, output_tokens: u64) {
        let buckets = &mut self.buckets;
        let seen = Seen::read(self.api, record, |at| buckets.add_chunk(at));
        let Some(Seen { start, first: Some(first), end: Some(end) }) = seen else { return };
        self.buckets.add_request(start, end);
        let (ttft, e2el) = (self.ruler.ms(start, first), self.ruler.ms(start, end));
        let answer = self.latencies.add(ttft, e2el, output_tokens);
        if let (Some(answer), Some(limits)) = (answer, &self.limits) {
            let is_good = limits.iter().all(|(slo, latency)| slo.is_met_by(latency(&answer)));
            self.good += u64::from(is_good);
        }
    }

    /// The duration, the goodput, the peaks and the latencies.
    pub(crate) fn finish(mut self, observations: &Observations) -> VllmResult {
        self.buckets.flush_chunks();
        let duration_s = self.extremes.duration_s();
        let good = self.limits.map(|_| self.good as f64);
        VllmResult {
            duration_s,
            request_goodput: good.zip(duration_s).map(|(good, duration_s)| good / duration_s),
            max_output_tokens_per_s: self.buckets.chunks.values().max().copied(),
            max_concurrent_requests: self.buckets.most_requests(),
            ttft_ms: VllmLatency::from_values(self.latencies.ttft),
            tpot_ms: VllmLatency::from_values(self.latencies.tpot),
            itl_ms: VllmLatency::from_values(chunk_gaps(observations, &mut self.ruler)),
            e2el_ms: VllmLatency::from_values(self.latencies.e2el),
            ..VllmResult::default()
        }
    }
}

/// `None` where no SLO applies to each request, or one that the tool has no limit for. Its latencies
/// count from the sending, whatever ours count from.
fn goodput_limits(observations: &Observations) -> Option<Vec<(Threshold, AnswerLatency)>> {
    let latency = |metric: &Metric| -> Option<AnswerLatency> {
        match metric {
            ttft if *ttft == metric::TTFT => Some(|answer| answer.ttft),
            tpot if *tpot == metric::TPOT => Some(|answer| answer.tpot),
            e2e if *e2e == metric::E2E => Some(|answer| answer.e2el),
            _ => None,
        }
    };
    let slos = observations.manifest.spec.slos.iter();
    let limits: Vec<_> = slos
        .filter_map(|slo| Threshold::from_slo(slo, LatencyOrigin::Sent).ok())
        .filter(Threshold::is_per_request)
        .map(|slo| Some((slo, latency(slo.quantity.metric())?)))
        .collect::<Option<_>>()?;
    (!limits.is_empty()).then_some(limits)
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
    fn read(api: Api, record: &RequestRecord, mut on_chunk: impl FnMut(Moment)) -> Option<Self> {
        let mut seen = Self { start: start(record)?, first: None, end: None };
        for event in &record.events {
            let Some(read) = record.reads.get(event.read as usize) else { continue };
            let at = read.at();
            if event.carried.contains(Carried::CHOICE) {
                seen.first = seen.first.or(Some(at));
                on_chunk(at);
            }
            let ends_latency = if api == Api::Completions {
                event.carried.contains(Carried::CHOICE)
            } else {
                !event.carried.contains(Carried::DONE)
            };
            if ends_latency {
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

/// Whole seconds since the first start. Only seconds in which something happened are kept, so a
/// wrong moment costs no memory.
#[derive(Default)]
struct Buckets {
    first_start: Moment,
    chunks: BTreeMap<u64, u64>,
    /// How the number of requests changes with each second.
    requests: BTreeMap<u64, i64>,
    /// Chunks of one second mostly come one after another; the map is updated once.
    second: u64,
    chunks_in_second: u64,
}

impl Buckets {
    fn new(first_start: Moment) -> Self {
        Self { first_start, ..Self::default() }
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

/// What that tool takes with `--metric-percentiles`, `--goodput` and `--save-detailed`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VllmOptions {
    /// As written, in any order. One that is no [`Rank`] is passed over: whoever reads arguments
    /// refuses it.
    pub percentiles: Vec<String>,
    /// The most milliseconds that a good request takes; of a kind that stands twice, the last. That
    /// tool has none of ITL, and with one there is no goodput. Where it is empty, the run's own
    /// SLOs on each request are what counts.
    pub goodput: Vec<(LatencyKind, f64)>,
    pub detail: bool,
}

/// A percentile by its rank, named as that tool names it: `99` for `99.0`, and `99.9`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rank {
    pub name: String,
    pub probability: Probability,
}

impl Rank {
    /// `None` of what is no number from 0 to 100.
    pub fn parse(written: &str) -> Option<Self> {
        let rank: f64 = written.trim().parse().ok()?;
        let probability = Probability::new(rank / 100.0)?;
        // A whole number is written without its point; minus zero is zero.
        Some(Self { name: (rank + 0.0).to_string(), probability })
    }
}

impl ToolResult {
    /// By the definitions of `vllm bench serve`, with all that it can be asked for. Making the run's
    /// summary is most of the work.
    pub fn of_vllm_summed(
        summary: &Summary,
        observations: &Observations,
        asked: &VllmOptions,
    ) -> Self {
        let ranks: Vec<Rank> =
            asked.percentiles.iter().filter_map(|written| Rank::parse(written)).collect();
        let mut sheet = Self::of_vllm(summary);
        let mut reading = Reading::new(observations);
        let rows = observations.records.iter().map(|record| reading.row(record));
        if asked.detail {
            sheet.requests = Some(rows.collect());
        } else {
            rows.for_each(drop);
        }
        // Else it is that of the run's own SLOs.
        if !asked.goodput.is_empty() {
            sheet.request_goodput = sheet.duration_s.and_then(|s| reading.good(&asked.goodput, s));
        }
        sheet.latencies = reading.into_latencies(&ranks);
        sheet
    }
}

/// That tool's word for the API; ours where it has none.
pub(crate) fn backend(api: Api) -> &'static str {
    api.facts().vllm_backend.unwrap_or(api.name())
}

/// What grows while the records are read.
struct Reading {
    api: Api,
    ruler: Ruler,
    output: Output,
    answers: Vec<Answer>,
    latencies: Latencies,
    itl: Vec<f64>,
}

impl Reading {
    fn new(observations: &Observations) -> Self {
        let mapping = observations.ending.client.mapping;
        Self {
            api: observations.manifest.spec.api,
            ruler: Ruler::new(mapping.map_or(0, |mapping| mapping.error_ns_max)),
            output: Output::default(),
            answers: Vec::new(),
            latencies: Latencies::default(),
            itl: Vec::new(),
        }
    }

    fn row(&mut self, record: &RequestRecord) -> ResultRequest {
        let is_ok = record.ending.outcome == Outcome::Ok;
        let mut row = ResultRequest {
            queued_s: self.ruler.ms(record.intended, record.admitted).map(|ms| ms / 1e3),
            input_tokens: Some(InputTokens::from_record(record).count),
            output_tokens: is_ok.then(|| self.output_tokens(record)),
            error: Some(if is_ok { String::new() } else { error(record) }),
            ..ResultRequest::default()
        };
        let (mut before, mut gaps_ms) = (None, Vec::with_capacity(record.events.len()));
        let ruler = &mut self.ruler;
        let seen = Seen::read(self.api, record, |at| {
            gaps_ms.extend(before.and_then(|before| ruler.ms(before, at)));
            before = Some(at);
        });
        let Some(Seen { start, first, end }) = seen else { return row };
        let ttft_ms = first.and_then(|first| ruler.ms(start, first));
        let e2el_ms = end.filter(|_| first.is_some()).and_then(|end| ruler.ms(start, end));
        if let Some(output_tokens) = row.output_tokens {
            self.itl.extend(&gaps_ms);
            self.answers.extend(self.latencies.add(ttft_ms, e2el_ms, output_tokens));
        }
        row.start_s = Some(start.as_nanos() as f64 / 1e9);
        row.ttft_s = ttft_ms.map(|ms| ms / 1e3);
        row.e2e_s = e2el_ms.filter(|_| is_ok).map(|ms| ms / 1e3);
        row.gaps_s = gaps_ms.into_iter().map(|ms| ms / 1e3).collect();
        row
    }

    fn output_tokens(&mut self, record: &RequestRecord) -> u64 {
        if !self.api.generates() {
            return 0;
        }
        // Disorder is counted where our own metrics are made.
        self.output.read(record, &mut Ruler::new(0));
        OutputTokens::from_record(record, &self.output).count
    }

    /// Good requests per second; `None` where that tool has no such limit.
    fn good(&self, goodput: &[(LatencyKind, f64)], duration_s: f64) -> Option<f64> {
        let most = |kind| goodput.iter().rev().find(|(named, _)| *named == kind).map(|(_, ms)| *ms);
        if most(LatencyKind::Itl).is_some() {
            return None;
        }
        let is_within = |ms: f64, kind| most(kind).is_none_or(|most| ms <= most);
        let good = self.answers.iter().filter(|answer| {
            is_within(answer.ttft, LatencyKind::Ttft)
                && is_within(answer.tpot, LatencyKind::Tpot)
                && is_within(answer.e2el, LatencyKind::E2e)
        });
        Some(good.count() as f64 / duration_s)
    }

    fn into_latencies(self, ranks: &[Rank]) -> Vec<ResultLatency> {
        let Latencies { ttft, tpot, e2el } = self.latencies;
        let latencies = [
            (ttft, LatencyKind::Ttft, CountsFrom::Send, Grain::Request),
            (tpot, LatencyKind::Tpot, CountsFrom::Output, Grain::Request),
            (self.itl, LatencyKind::Itl, CountsFrom::Output, Grain::Chunk),
            (e2el, LatencyKind::E2e, CountsFrom::Send, Grain::Request),
        ];
        let known = latencies.into_iter().filter_map(|(values, kind, from, grain)| {
            Some(latency(&Sample::new(values)?, ranks, ResultLatency::new(kind, from, grain)))
        });
        known.collect()
    }
}

/// The median is always there, asked for or not.
fn latency(sample: &Sample, ranks: &[Rank], empty: ResultLatency) -> ResultLatency {
    let median = Rank::parse("50");
    let asked = median.iter().chain(ranks);
    ResultLatency {
        n: Some(sample.count()),
        mean_ms: Some(sample.mean()),
        std_ms: Some(sample.std_population()),
        min_ms: Some(sample.min()),
        max_ms: Some(sample.max()),
        percentiles_ms: asked
            .map(|rank| (rank.name.clone(), sample.quantile(rank.probability)))
            .collect(),
        has_p50: ranks.iter().any(|rank| rank.name == "50"),
        ..empty
    }
}

/// Why it failed: our word for it, the status where it says more, and the server's words.
fn error(record: &RequestRecord) -> String {
    let ending = &record.ending;
    let status = record.head.map(|head| head.status).filter(|status| *status != 200);
    let status = status.map(|status| format!(" {status}")).unwrap_or_default();
    let cause = ending.cause.map_or_else(|| ending.outcome.help(), |cause| cause.text());
    let detail = ending.message.as_deref().unwrap_or(cause);
    format!("{}{status}: {detail}", ending.outcome)
}

#[cfg(test)]
mod tests;
