//! A result as `aiperf profile` sums one up: `profile_export_aiperf.json`, of its schema 1.4.
//!
//! What it calls inter-token latency is one mean for each answer, so it takes our TPOT; our gaps
//! between chunks are its inter-chunk latency. A gap for each token has no place there, and neither
//! has a TTFT that counts from the schedule.

use std::collections::BTreeMap;

use inferometer_analysis::Verdict;
use inferometer_analysis::sheet::{
    CountsFrom, Grain, LatencyKind, Sheet, SheetLatency, SheetRate, Tool,
};
use serde::Serialize;

use super::{ExportError, cut, mean, meant, measured_by, moment, names_a_tool};

const SCHEMA_VERSION: &str = "1.4";
/// Kinds of errors that are listed; a server may fail in endless ways.
const ERRORS_MAX: usize = 100;
/// For what that tool's readers insist on and a sheet does not know.
const UNKNOWN: &str = "unknown";

/// The whole file.
pub fn document(sheet: &Sheet) -> Result<String, ExportError> {
    let mut text = serde_json::to_string_pretty(&Document::of(sheet))
        .map_err(|error| ExportError::Write(error.into()))?;
    text.push('\n');
    Ok(text)
}

/// That tool's keys; those of ours are `measured_by`, `simulated`, `inferometer_verdict` and
/// `all_at_once`.
#[derive(Serialize)]
struct Document<'a> {
    schema_version: &'static str,
    benchmark_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    aiperf_version: Option<&'a str>,
    /// Where another tool did.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured_by: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    simulated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    inferometer_verdict: Option<&'static str>,
    /// That tool has no such load: its phase then names as many at once as there are.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    all_at_once: bool,
    #[serde(flatten)]
    metrics: Metrics,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_config: Option<InputConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_complete: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    incomplete_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_summary: Option<Vec<ErrorCount<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_time: Option<String>,
}

impl<'a> Document<'a> {
    fn of(sheet: &'a Sheet) -> Self {
        let incomplete_reason = cut(sheet);
        let source = &sheet.source;
        let version = source.version.as_deref();
        let is_its_own = source.tool == Tool::AiPerf && !version.is_some_and(names_a_tool);
        let is_endless = sheet.request_rate == Some(SheetRate::Unlimited);
        let is_judged = sheet.requests_planned.is_some() && sheet.completed.is_some();
        Self {
            schema_version: SCHEMA_VERSION,
            benchmark_id: &source.name,
            aiperf_version: version.filter(|_| is_its_own),
            measured_by: (!is_its_own).then(|| measured_by(source)),
            simulated: source.simulated,
            inferometer_verdict: sheet.verdict.map(Verdict::key),
            all_at_once: is_endless && sheet.max_concurrency.is_none(),
            metrics: Metrics::of(sheet),
            input_config: InputConfig::of(sheet),
            is_complete: is_judged.then_some(incomplete_reason.is_none()),
            incomplete_reason,
            error_summary: errors(sheet),
            start_time: sheet.started.as_deref().and_then(moment),
        }
    }
}

#[derive(Serialize)]
struct Metrics(BTreeMap<&'static str, Metric>);

#[derive(Serialize)]
struct Metric {
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    avg: Option<f64>,
    #[serde(flatten)]
    percentiles: BTreeMap<String, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    std: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
}

impl Metric {
    fn of_latency(latency: &SheetLatency) -> Self {
        Self {
            unit: "ms",
            avg: latency.mean_ms,
            percentiles: latency
                .percentiles_ms
                .iter()
                .map(|(rank, ms)| (format!("p{rank}"), *ms))
                .collect(),
            min: latency.min_ms,
            max: latency.max_ms,
            std: latency.std_ms,
            count: latency.n,
        }
    }

    fn single(unit: &'static str, value: f64) -> Self {
        let (min, max, std, count) = (None, None, None, None);
        Self { unit, avg: Some(value), percentiles: BTreeMap::new(), min, max, std, count }
    }
}

impl Metrics {
    fn of(sheet: &Sheet) -> Self {
        let count = |count: Option<u64>| count.map(|count| count as f64);
        let single = [
            ("request_throughput", "requests/sec", sheet.request_throughput),
            ("goodput", "requests/sec", sheet.request_goodput),
            ("output_token_throughput", "tokens/sec", sheet.output_throughput),
            ("total_token_throughput", "tokens/sec", sheet.total_token_throughput),
            ("request_count", "requests", count(sheet.completed)),
            ("error_request_count", "requests", count(sheet.failed.filter(|failed| 0 < *failed))),
            ("input_sequence_length", "tokens", mean(sheet.input_tokens, sheet.completed)),
            ("output_sequence_length", "tokens", mean(sheet.output_tokens, sheet.completed)),
            ("total_isl", "tokens", count(sheet.input_tokens)),
            ("total_osl", "tokens", count(sheet.output_tokens)),
            ("benchmark_duration", "sec", sheet.duration_s),
        ];
        let single = single
            .into_iter()
            .filter_map(|(name, unit, value)| Some((name, Metric::single(unit, value?))));
        let latencies = LATENCIES.into_iter().filter_map(|(name, kind, from, grain)| {
            Some((name, Metric::of_latency(meant(sheet, kind, from, grain)?)))
        });
        Self(single.chain(latencies).collect())
    }
}

const LATENCIES: [(&str, LatencyKind, CountsFrom, Grain); 5] = [
    ("time_to_first_token", LatencyKind::Ttft, CountsFrom::Send, Grain::Request),
    ("inter_token_latency", LatencyKind::Tpot, CountsFrom::Output, Grain::Request),
    ("inter_chunk_latency", LatencyKind::Itl, CountsFrom::Output, Grain::Chunk),
    ("request_latency", LatencyKind::E2e, CountsFrom::Send, Grain::Request),
    ("effective_latency", LatencyKind::E2e, CountsFrom::Schedule, Grain::Request),
];

/// What was asked. That tool's readers take it only whole, with a server and a data set.
#[derive(Serialize)]
struct InputConfig<'a> {
    models: Items<'a>,
    endpoint: Endpoint,
    datasets: [Dataset; 1],
    phases: [Phase; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    tokenizer: Option<Named<'a>>,
}

#[derive(Serialize)]
struct Items<'a> {
    items: [Named<'a>; 1],
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct Endpoint {
    urls: [&'static str; 1],
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
}

#[derive(Serialize)]
struct Dataset {
    name: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct Phase {
    name: &'static str,
    kind: &'static str,
    #[serde(rename = "type")]
    arrivals: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrency: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    smoothness: Option<f64>,
}

impl<'a> InputConfig<'a> {
    /// `None` where the model or the load is not known, or is none that the tool has.
    fn of(sheet: &'a Sheet) -> Option<Self> {
        Some(Self {
            models: Items { items: [Named { name: sheet.model.as_deref()? }] },
            endpoint: Endpoint {
                urls: [UNKNOWN],
                kind: sheet.backend.as_deref().and_then(endpoint_type),
            },
            datasets: [Dataset { name: UNKNOWN, kind: "synthetic" }],
            phases: [Phase::of(sheet)?],
            tokenizer: sheet.tokenizer.as_deref().map(|name| Named { name }),
        })
    }
}

impl Phase {
    fn of(sheet: &Sheet) -> Option<Self> {
        let (arrivals, rate, smoothness) = match (sheet.request_rate?, sheet.burstiness) {
            (SheetRate::Unlimited, _) => ("concurrency", None, None),
            (SheetRate::PerSecond(rate), Some(shape)) if shape.is_infinite() => {
                ("constant", Some(rate), None)
            }
            (SheetRate::PerSecond(rate), Some(shape)) if (shape - 1.0).abs() < f64::EPSILON => {
                ("poisson", Some(rate), None)
            }
            (SheetRate::PerSecond(rate), Some(shape)) => ("gamma", Some(rate), Some(shape)),
            (SheetRate::PerSecond(_), None) => return None,
        };
        // All at once is as many at once as there are.
        let all = sheet.requests_planned.and_then(|planned| u32::try_from(planned).ok());
        let concurrency = match sheet.max_concurrency {
            None if rate.is_none() => Some(all?),
            cap => cap,
        };
        let requests = sheet.requests_planned;
        Some(Self {
            name: "profiling",
            kind: "profiling",
            arrivals,
            requests,
            concurrency,
            rate,
            smoothness,
        })
    }
}

/// In that tool's words, of those of ours and of vLLM's client.
fn endpoint_type(backend: &str) -> Option<&'static str> {
    Some(match backend {
        "completions" | "openai" | "vllm" => "completions",
        "chat" | "openai-chat" => "chat",
        "responses" => "responses",
        "messages" => "messages",
        "embeddings" | "openai-embeddings" => "embeddings",
        _ => return None,
    })
}

#[derive(Serialize)]
struct ErrorCount<'a> {
    error_details: ErrorDetails<'a>,
    count: u64,
}

#[derive(Serialize)]
struct ErrorDetails<'a> {
    message: &'a str,
}

/// `None` where it is not known how requests failed.
fn errors(sheet: &Sheet) -> Option<Vec<ErrorCount<'_>>> {
    if sheet.failed? == 0 {
        return Some(Vec::new());
    }
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let errors = sheet.requests.as_ref()?.iter().filter_map(|row| row.error.as_deref());
    for message in errors.filter(|message| !message.is_empty()) {
        *counts.entry(message).or_default() += 1;
    }
    let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let listed = counts.into_iter().take(ERRORS_MAX);
    Some(
        listed
            .map(|(message, count)| ErrorCount { error_details: ErrorDetails { message }, count })
            .collect(),
    )
}
