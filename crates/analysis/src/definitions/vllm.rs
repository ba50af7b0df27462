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
use inferometer_model::record::{Carried, Event, Read};
use inferometer_model::records::TimeOrder;
use inferometer_model::spec::{Arrivals, LoadShape, Rate};
use inferometer_model::{Moment, Observations, Outcome, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::judge::Threshold;
use crate::metric::{self, LatencyOrigin};
use crate::record::{Extremes, InputTokens, Output, OutputTokens, Ruler, Tokens};
use crate::statistics::{Percentile, Probability, Sample};
use crate::summary::Summary;
use crate::tool_result::{
    CountsFrom, Grain, LatencyKind, ResultLatency, ResultRequest, ToolResult,
};

/// The latencies of that tool, in its order: what they count from, and what one value is.
pub const LATENCIES: [(LatencyKind, CountsFrom, Grain); 4] = [
    (LatencyKind::Ttft, CountsFrom::Send, Grain::Request),
    (LatencyKind::Tpot, CountsFrom::Output, Grain::Request),
    (LatencyKind::Itl, CountsFrom::Output, Grain::Chunk),
    (LatencyKind::E2e, CountsFrom::Send, Grain::Request),
];

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
    /// Standard deviation of the population (n, not n − 1).
    pub std: Option<f64>,
    pub p90: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
}

impl VllmLatency {
    fn from_sample(sample: Option<Sample>) -> Self {
        let Some(sample) = sample else { return Self::default() };
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
    /// Seconds are counted from here. Only seconds in which something happened are kept, so a wrong
    /// timestamp costs no memory.
    first_start: Moment,
    chunks: BTreeMap<u64, u64>,
    /// How the number of requests in flight changes with each second.
    requests: BTreeMap<u64, i64>,
    /// The SLOs on each request, and the index of the latency that each is about.
    limits: Option<Vec<(Threshold, usize)>>,
    good: u64,
    /// TTFT, TPOT and E2EL of the requests that succeeded, in milliseconds.
    latencies: [Vec<f64>; 3],
    /// The gaps between the chunks of each answer.
    gaps: Vec<f64>,
}

impl Pass {
    /// Reads the records of a run.
    pub(crate) fn gather(
        records: &TimeOrder<'_>,
        observations: &Observations,
        first_start: Option<Moment>,
    ) -> Self {
        let mut pass = Self::new(observations, first_start);
        let (mut output, generates) = (Output::default(), pass.api.generates());
        for record in records {
            pass.add_attempt(&record);
            if record.ending.outcome == Outcome::Ok {
                output.read(&record, &mut Ruler::new(0));
                let tokens = OutputTokens::count(&record, &output, generates);
                pass.add_ok(&record, tokens.count);
            }
        }
        pass
    }

    fn new(observations: &Observations, first_start: Option<Moment>) -> Self {
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
            ruler: Ruler::from_observations(observations),
            extremes,
            first_start: first_start.unwrap_or_default(),
            chunks: BTreeMap::new(),
            requests: BTreeMap::new(),
            limits: goodput_limits(observations),
            good: 0,
            latencies: std::array::from_fn(|_| Vec::with_capacity(observations.records.len())),
            gaps: Vec::new(),
        }
    }

    fn add_attempt(&mut self, record: &RequestRecord) {
        let begun = record.sent.map_or(record.intended, |sent| sent.min(record.intended));
        self.extremes.add(begun, record.ending.at);
    }

    fn add_ok(&mut self, record: &RequestRecord, output_tokens: u64) {
        if record.sent.is_some() {
            self.gaps.extend(chunk_gaps(record, &mut self.ruler));
        }
        let Some((start, Some(first), Some(end))) = span(self.api, record) else { return };
        let first_ns = self.first_start.as_nanos();
        let second = |at: Moment| at.as_nanos().saturating_sub(first_ns) / 1_000_000_000;
        for at in chunk_times(record) {
            *self.chunks.entry(second(at)).or_default() += 1;
        }
        *self.requests.entry(second(start)).or_default() += 1;
        *self.requests.entry(second(end) + 1).or_default() -= 1;
        let (ttft, e2el) = (self.ruler.ms(start, first), self.ruler.ms(start, end));
        self.latencies[0].extend(ttft);
        self.latencies[2].extend(e2el);
        let Some((ttft, e2el)) = ttft.zip(e2el) else { return };
        let tpot = (1 < output_tokens).then(|| (e2el - ttft) / (output_tokens - 1) as f64);
        self.latencies[1].extend(tpot);
        // A request of one token has a TPOT of zero there.
        let answer = [ttft, tpot.unwrap_or(0.0), e2el];
        let is_within = |(slo, latency): &(Threshold, usize)| slo.is_met_by(answer[*latency]);
        self.good += u64::from(self.limits.iter().flatten().all(is_within));
    }

    /// The result of a run with so many requests attempted and answered.
    pub(crate) fn finish(
        self,
        observations: &Observations,
        tokens: &Tokens,
        (attempted, ok): (u64, u64),
    ) -> VllmResult {
        let (max_concurrency, request_rate) = match &observations.manifest.spec.load.shape {
            LoadShape::Closed { concurrency, .. } => (Some(*concurrency), None),
            LoadShape::Open { rate: Rate::Steady { per_s }, cap, .. } => (*cap, Some(*per_s)),
            // A ramp and a trace have no one rate, and everything at once has none at all.
            LoadShape::Open { cap, .. } => (*cap, None),
        };
        let tokens_total = tokens.input_total as f64 + tokens.output_total as f64;
        let duration_s = self.extremes.duration_s();
        let per_second = |count: f64| duration_s.filter(|_| 0 < ok).map(|s| count / s);
        let good = self.limits.as_ref().map(|_| self.good as f64);
        let running = self.requests.values().scan(0_i64, |running, change| {
            *running += change;
            Some(*running)
        });
        let max_concurrent_requests = running.max().and_then(|most| u64::try_from(most).ok());
        let max_output_tokens_per_s = self.chunks.values().max().copied();
        let [ttft, tpot, e2el] = self.latencies;
        // Each list is dropped before the next is sorted.
        let latencies = [ttft, tpot, self.gaps, e2el]
            .map(|values| VllmLatency::from_sample(Sample::new(values)));
        let [ttft_ms, tpot_ms, itl_ms, e2el_ms] = latencies;
        VllmResult {
            completed: ok,
            failed: attempted - ok,
            max_concurrency: max_concurrency.map(std::num::NonZeroU32::get),
            request_rate,
            duration_s,
            total_input_tokens: tokens.input_total,
            total_output_tokens: tokens.output_total,
            request_throughput: per_second(ok as f64),
            request_goodput: good.zip(duration_s).map(|(good, duration_s)| good / duration_s),
            output_throughput: per_second(tokens.output_total as f64),
            max_output_tokens_per_s,
            max_concurrent_requests,
            total_token_throughput: per_second(tokens_total),
            ttft_ms,
            tpot_ms,
            itl_ms,
            e2el_ms,
        }
    }

    /// In the order of [`LATENCIES`].
    fn samples(self) -> [Option<Sample>; 4] {
        let [ttft, tpot, e2el] = self.latencies.map(Sample::new);
        [ttft, tpot, Sample::new(self.gaps), e2el]
    }
}

/// `None` where no SLO applies to each request, or one that the tool has no limit for. Its latencies
/// count from the sending, whatever ours count from.
fn goodput_limits(observations: &Observations) -> Option<Vec<(Threshold, usize)>> {
    let judged = [&metric::TTFT, &metric::TPOT, &metric::E2E];
    let slos = observations.manifest.spec.slos.iter();
    let limits: Vec<_> = slos
        .filter_map(|slo| Threshold::from_slo(slo, LatencyOrigin::Sent).ok())
        .filter(Threshold::is_per_request)
        .map(|slo| Some((slo, judged.iter().position(|it| *it == slo.quantity.metric())?)))
        .collect::<Option<_>>()?;
    (!limits.is_empty()).then_some(limits)
}

/// When a request started, when its first chunk came, and when its latency ends. `None` for a request
/// that was never sent.
fn span(api: Api, record: &RequestRecord) -> Option<(Moment, Option<Moment>, Option<Moment>)> {
    let end = if api == Api::Completions {
        chunk_times(record).next_back()
    } else {
        times(record, |event| !event.carried.contains(Carried::DONE)).next_back()
    };
    Some((start(record)?, chunk_times(record).next(), end))
}

/// That tool starts its clock before it dials.
pub(crate) fn start(record: &RequestRecord) -> Option<Moment> {
    let sent = record.sent?;
    let dial = record.connection.and_then(|connection| connection.dial);
    Some(dial.map_or(sent, |dial| dial.started.min(sent)))
}

fn chunk_times(record: &RequestRecord) -> impl DoubleEndedIterator<Item = Moment> + Clone {
    times(record, |event| event.carried.contains(Carried::CHOICE))
}

/// When the events of a kind came.
fn times(
    record: &RequestRecord,
    is_kind: fn(&Event) -> bool,
) -> impl DoubleEndedIterator<Item = Moment> + Clone {
    let events = record.events.iter().filter(move |event| is_kind(event));
    events.filter_map(|event| record.reads.get(event.read as usize).map(Read::at))
}

/// The gaps between the chunks of one answer, in milliseconds.
fn chunk_gaps(record: &RequestRecord, ruler: &mut Ruler) -> impl Iterator<Item = f64> {
    let times = chunk_times(record);
    times.clone().zip(times.skip(1)).filter_map(|(before, at)| ruler.ms(before, at))
}

/// A percentile by its rank, named as that tool names it: `99` for `99.0`, and `99.9`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rank {
    pub name: String,
    pub probability: Probability,
}

impl Rank {
    /// `None` unless it is a number from 0 to 100.
    pub fn parse(written: &str) -> Option<Self> {
        let rank: f64 = written.trim().parse().ok()?;
        let probability = Probability::new(rank / 100.0)?;
        // A whole number is written without its point; minus zero is zero.
        Some(Self { name: (rank + 0.0).to_string(), probability })
    }
}

impl ToolResult {
    /// The result by the definitions of `vllm bench serve`, with any percentiles
    /// (`--metric-percentiles`) and, for `--save-detailed`, with every request. A percentile that is
    /// no [`Rank`] is ignored.
    pub fn of_vllm_summed(
        summary: &Summary,
        observations: &Observations,
        percentiles: &[String],
        has_requests: bool,
    ) -> Self {
        let ranks: Vec<Rank> = percentiles.iter().filter_map(|rank| Rank::parse(rank)).collect();
        let api = observations.manifest.spec.api;
        let ok = observations.records.iter().filter(|it| it.ending.outcome == Outcome::Ok);
        let mut pass = Pass::new(observations, ok.filter_map(|record| start(&record)).min());
        let mut output = Output::default();
        let mut rows = Vec::new();
        for record in &observations.records {
            output.read(&record, &mut Ruler::new(0));
            let output_tokens = OutputTokens::count(&record, &output, api.generates()).count;
            if record.ending.outcome == Outcome::Ok {
                pass.add_ok(&record, output_tokens);
            }
            if has_requests {
                rows.push(row(api, &record, output_tokens, &mut pass.ruler));
            }
        }
        let latencies = LATENCIES.into_iter().zip(pass.samples());
        let latencies = latencies.filter_map(|((kind, from, grain), sample)| {
            Some(latency(&sample?, &ranks, ResultLatency::new(kind, from, grain)))
        });
        let requests = has_requests.then_some(rows);
        Self { requests, latencies: latencies.collect(), ..Self::of_vllm(summary) }
    }
}

/// That tool's name of the API; ours where it has none.
pub(crate) fn backend(api: Api) -> &'static str {
    api.facts().vllm_backend.unwrap_or(api.name())
}

/// One request as that tool lists it.
fn row(api: Api, record: &RequestRecord, output_tokens: u64, ruler: &mut Ruler) -> ResultRequest {
    let is_ok = record.ending.outcome == Outcome::Ok;
    let row = ResultRequest {
        queued_s: ruler.ms(record.intended, record.admitted).map(|ms| ms / 1e3),
        input_tokens: Some(InputTokens::from_record(record).count),
        output_tokens: is_ok.then_some(output_tokens),
        error: Some(if is_ok { String::new() } else { error(record) }),
        ..ResultRequest::default()
    };
    let Some((start, first, end)) = span(api, record) else { return row };
    let end = end.filter(|_| is_ok && first.is_some());
    ResultRequest {
        start_s: Some(start.as_nanos() as f64 / 1e9),
        ttft_s: first.and_then(|first| ruler.ms(start, first)).map(|ms| ms / 1e3),
        e2e_s: end.and_then(|end| ruler.ms(start, end)).map(|ms| ms / 1e3),
        gaps_s: chunk_gaps(record, ruler).map(|ms| ms / 1e3).collect(),
        ..row
    }
}

/// The median is always there, whether it was requested or not.
fn latency(sample: &Sample, ranks: &[Rank], empty: ResultLatency) -> ResultLatency {
    let median = Rank::parse("50");
    let percentile = |rank: &Rank| (rank.name.clone(), sample.quantile(rank.probability));
    let has_p50 = ranks.iter().any(|rank| rank.name == "50");
    let found = empty.with_sample(sample, median.iter().chain(ranks).map(percentile));
    ResultLatency { has_p50, ..found }
}

/// Why it failed: the outcome, the status where it adds something, and the server's message.
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
