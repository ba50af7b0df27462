//! The sheets of a run of our own: by our definitions, and by those of `vllm bench serve`.

use inferometer_model::Outcome;
use inferometer_model::spec::Arrivals;

use super::{
    CountsFrom, Form, Grain, LatencyKind, Mark, ResultLatency, ResultRate, ResultSource, Tool,
    ToolResult, extra,
};
use crate::definitions::vllm::{self, VllmLatency};
use crate::metric::{self, Distribution, Metric, Statistic};
use crate::run::{LoadFacts, RateFacts};
use crate::statistics::Percentile;
use crate::summary::Summary;

/// Our latencies with their meanings, best first.
pub(super) static LATENCIES: [(&Metric, LatencyKind, CountsFrom, Grain); 7] = [
    (&metric::TTFT_SCHEDULE, LatencyKind::Ttft, CountsFrom::Schedule, Grain::Request),
    (&metric::TTFT, LatencyKind::Ttft, CountsFrom::Send, Grain::Request),
    (&metric::TPOT, LatencyKind::Tpot, CountsFrom::Output, Grain::Request),
    (&metric::ITL, LatencyKind::Itl, CountsFrom::Output, Grain::Token),
    (&metric::ICL, LatencyKind::Itl, CountsFrom::Output, Grain::Chunk),
    (&metric::E2E_SCHEDULE, LatencyKind::E2e, CountsFrom::Schedule, Grain::Request),
    (&metric::E2E, LatencyKind::E2e, CountsFrom::Send, Grain::Request),
];

impl ToolResult {
    /// By our definitions, with the intervals that come from within the run.
    pub fn of(summary: &Summary) -> Self {
        let mut sheet = Self::facts_of(summary);
        for (metric, kind, from, grain) in LATENCIES {
            let Some(values) = summary.metrics.distribution(metric) else { continue };
            sheet.latencies.extend(latency(values, &ResultLatency::new(kind, from, grain)));
        }
        let scalar = |metric: &Metric| summary.metrics.scalar(metric);
        let value = |metric: &Metric| scalar(metric).and_then(|scalar| scalar.value);
        sheet.duration_s = summary.window.duration_s;
        sheet.request_throughput = value(&metric::REQUEST_THROUGHPUT);
        sheet.request_goodput = value(&metric::GOODPUT);
        sheet.output_throughput = value(&metric::OUTPUT_THROUGHPUT);
        sheet.total_token_throughput = value(&metric::TOTAL_THROUGHPUT);
        sheet.peak_output_throughput = value(&metric::PEAK_OUTPUT_THROUGHPUT);
        for (field, metric) in [
            ("request_throughput", &metric::REQUEST_THROUGHPUT),
            ("request_goodput", &metric::GOODPUT),
            ("output_throughput", &metric::OUTPUT_THROUGHPUT),
            ("total_token_throughput", &metric::TOTAL_THROUGHPUT),
        ] {
            let interval = scalar(metric).and_then(|scalar| scalar.interval);
            sheet.intervals.extend(interval.map(|interval| (field.to_owned(), interval)));
        }
        sheet.marks = Mark::found_in(&sheet, summary);
        sheet
    }

    /// By the definitions of `vllm bench serve`.
    pub fn of_vllm(summary: &Summary) -> Self {
        let result = &summary.vllm;
        let mut sheet = Self::facts_of(summary);
        sheet.backend = Some(vllm::backend(summary.run.api).to_owned());
        sheet.completed = Some(result.completed);
        sheet.failed = Some(result.failed);
        sheet.duration_s = result.duration_s;
        sheet.request_throughput = result.request_throughput;
        sheet.request_goodput = result.request_goodput;
        sheet.total_token_throughput = result.total_token_throughput;
        if summary.run.api.generates() {
            sheet.output_throughput = result.output_throughput;
            sheet.peak_output_throughput =
                result.max_output_tokens_per_s.map(|tokens| tokens as f64);
            sheet.peak_concurrent_requests = result.max_concurrent_requests;
        } else {
            sheet.count_inputs();
        }
        for (values, kind, from, grain) in [
            (&result.ttft_ms, LatencyKind::Ttft, CountsFrom::Send, Grain::Request),
            (&result.tpot_ms, LatencyKind::Tpot, CountsFrom::Output, Grain::Request),
            (&result.itl_ms, LatencyKind::Itl, CountsFrom::Output, Grain::Chunk),
            (&result.e2el_ms, LatencyKind::E2e, CountsFrom::Send, Grain::Request),
        ] {
            sheet.latencies.extend(vllm_latency(values, ResultLatency::new(kind, from, grain)));
        }
        sheet.marks = Mark::found_in(&sheet, summary);
        sheet
    }

    /// Of an API that generates nothing that tool tells the inputs instead. A request of ours is
    /// one.
    fn count_inputs(&mut self) {
        self.output_tokens = None;
        let inputs = self.completed.map(|inputs| inputs as f64);
        for (figure, value) in
            [(extra::INPUTS, inputs), (extra::INPUT_THROUGHPUT, self.request_throughput)]
        {
            self.further.extend(value.map(|value| (figure.key.to_owned(), value)));
        }
    }

    fn facts_of(summary: &Summary) -> Self {
        let (request_rate, max_concurrency) = load(&summary.run.load);
        Self {
            source: ResultSource {
                tool: Tool::Inferometer,
                form: Form::Run,
                version: Some(summary.run.tool_version.clone()),
                name: summary.run.id.clone(),
                line: None,
                simulated: summary.run.simulated.is_some(),
            },
            configuration: String::new(),
            model: Some(summary.run.model.clone()),
            tokenizer: summary.workload.tokenizer.as_ref().map(|facts| facts.name.clone()),
            backend: Some(summary.run.api.name().to_owned()),
            started: Some(summary.run.started.clone()),
            request_rate,
            burstiness: burstiness(&summary.run.load),
            max_concurrency,
            requests_planned: Some(summary.scheduled),
            completed: Some(summary.count(Outcome::Ok)),
            failed: Some(summary.attempted.saturating_sub(summary.count(Outcome::Ok))),
            input_tokens: Some(summary.tokens.input_total),
            output_tokens: Some(summary.tokens.output_total),
            verdict: Some(summary.verdict),
            metadata: summary.run.metadata.clone().into_iter().collect(),
            ..Self::default()
        }
    }
}

fn load(load: &LoadFacts) -> (Option<ResultRate>, Option<u32>) {
    match load {
        LoadFacts::Closed { concurrency, .. } => (Some(ResultRate::Unlimited), Some(*concurrency)),
        LoadFacts::Open { rate, max_concurrency, .. } => {
            let rate = match rate {
                RateFacts::Steady { per_s } => Some(ResultRate::PerSecond(*per_s)),
                RateFacts::Unlimited => Some(ResultRate::Unlimited),
                // They have no one rate.
                RateFacts::Ramp { .. } | RateFacts::Recorded { .. } => None,
            };
            (rate, *max_concurrency)
        }
    }
}

/// `None` where a schedule has no gaps to draw: of a closed loop and of a trace.
fn burstiness(load: &LoadFacts) -> Option<f64> {
    match load {
        LoadFacts::Closed { .. } | LoadFacts::Open { rate: RateFacts::Recorded { .. }, .. } => None,
        LoadFacts::Open { arrivals, .. } => Some(match arrivals {
            Arrivals::Constant => f64::INFINITY,
            Arrivals::Poisson => 1.0,
            Arrivals::Gamma { burstiness } | Arrivals::Stretched { burstiness } => *burstiness,
        }),
    }
}

const RANKS: [(Percentile, &str); 5] = [
    (Percentile::P50, "50"),
    (Percentile::P90, "90"),
    (Percentile::P95, "95"),
    (Percentile::P99, "99"),
    (Percentile::P999, "99.9"),
];

/// `None` when there is nothing to take it of.
fn latency(values: &Distribution, empty: &ResultLatency) -> Option<ResultLatency> {
    let mean_ms = Some(values.mean?);
    let at = |(percentile, rank): (Percentile, &str)| {
        values.percentile(percentile).map(|value| (rank.to_owned(), value))
    };
    let within = |(statistic, name): (Statistic, &str)| {
        values.intervals.get(statistic).map(|interval| (name.to_owned(), interval))
    };
    let ranks = RANKS.map(|(percentile, rank)| (Statistic::Percentile(percentile), rank));
    Some(ResultLatency {
        n: Some(values.n),
        mean_ms,
        std_ms: values.std,
        min_ms: values.min,
        max_ms: values.max,
        percentiles_ms: RANKS.into_iter().filter_map(at).collect(),
        intervals_ms: [(Statistic::Mean, "mean")]
            .into_iter()
            .chain(ranks)
            .filter_map(within)
            .collect(),
        ..*empty
    })
}

fn vllm_latency(values: &VllmLatency, empty: ResultLatency) -> Option<ResultLatency> {
    let mean_ms = Some(values.mean?);
    let ranks = [("50", values.median), ("90", values.p90), ("95", values.p95), ("99", values.p99)];
    let known = ranks.into_iter().filter_map(|(rank, value)| Some((rank.to_owned(), value?)));
    Some(ResultLatency { mean_ms, std_ms: values.std, percentiles_ms: known.collect(), ..empty })
}
