//! A result as llm-d's Benchmark Report, version 0.2, in JSON, which its YAML readers read too.
//!
//! The report takes the figures of many tools and names the tool; what they mean follows from
//! that. So a latency is written where a reader takes it for no more than it is.

use inferometer_analysis::tool_result::{
    CountsFrom, Grain, LatencyKind, Mark, ResultLatency, ResultRate, Tool, ToolResult,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{ExportError, cut, mean, measured_by, moment};
use crate::import::llm_d::{FAILURES_NOT_COUNTED, VERDICT, meaning};

const VERSION: &str = "0.2";
/// For what the report insists on and a result does not know.
const UNKNOWN: &str = "unknown";

/// The percentiles that a report has room for.
const RANKS: [&str; 11] = ["0.1", "1", "5", "10", "25", "50", "75", "90", "95", "99", "99.9"];

/// The whole file.
pub fn document(result: &ToolResult) -> Result<String, ExportError> {
    let report = Report {
        version: VERSION,
        run: run(result),
        scenario: Scenario { stack: stack(result), load: load(result) },
        results: json!({ "request_performance": { "aggregate": {
            "requests": requests(result),
            "latency": latencies(result),
            "throughput": throughput(result),
        }}}),
    };
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}

#[derive(Serialize)]
struct Report {
    version: &'static str,
    run: Value,
    scenario: Scenario,
    results: Value,
}

#[derive(Serialize)]
struct Scenario {
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<[Value; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<Value>,
}

/// A map without the entries that are missing: a report's readers refuse some nulls.
fn known<const N: usize>(entries: [(&str, Option<Value>); N]) -> Value {
    let entries = entries.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(entries.collect::<Map<String, Value>>())
}

fn run(result: &ToolResult) -> Value {
    let time = known([
        ("start", result.started.as_deref().and_then(moment).map(Value::from)),
        ("duration", result.duration_s.map(|s| Value::from(format!("PT{s}S")))),
    ]);
    let invalid = result.marks.contains(&Mark::Invalid);
    let remarks = [
        Some(format!("measured by {}", measured_by(&result.source))),
        result.source.simulated.then(|| "no server was measured".to_owned()),
        cut(result),
        invalid.then(|| "judged invalid by the tool that measured it".to_owned()),
    ];
    let description = remarks.into_iter().flatten().collect::<Vec<_>>().join("; ");
    known([
        ("uid", Some(Value::from(result.source.name.as_str()))),
        ("time", Some(time)),
        ("description", Some(Value::from(description))),
        ("keywords", keywords(result)),
    ])
}

/// What a report has no field for.
fn keywords(result: &ToolResult) -> Option<Value> {
    let is_uncounted = result.completed.is_some() && result.failed.is_none();
    let words = [
        result.source.simulated.then(|| "simulated".to_owned()),
        is_uncounted.then(|| FAILURES_NOT_COUNTED.to_owned()),
        result.verdict.map(|verdict| format!("{VERDICT}{verdict}")),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    (!words.is_empty()).then(|| json!(words))
}

/// The server, of which only the model and its spread are known.
fn stack(result: &ToolResult) -> Option<[Value; 1]> {
    let model = result.model.as_deref()?;
    let standardized = known([
        ("kind", Some(Value::from("generic"))),
        ("tool", Some(Value::from(UNKNOWN))),
        ("tool_version", Some(Value::from(UNKNOWN))),
        ("model", Some(json!({ "name": model }))),
        ("accelerator", result.tensor_parallel.map(|tp| json!({ "parallelism": { "tp": tp } }))),
    ]);
    Some([json!({
        "metadata": { "label": "server", "cfg_id": UNKNOWN },
        "standardized": standardized,
        "native": {},
    })])
}

/// `None` where the length of prompts is not known: a report has no load without it.
fn load(result: &ToolResult) -> Option<Value> {
    let length = |tokens: f64| json!({ "distribution": "other", "value": tokens });
    // JSON has no infinity, and the report's readers take this word for it.
    let (rate, endless) = match result.request_rate {
        Some(ResultRate::PerSecond(rate)) => (Some(Value::from(rate)), None),
        Some(ResultRate::Unlimited) => (None, Some(Value::from("inf"))),
        None => (None, None),
    };
    let concurrency = result.max_concurrency.map(Value::from).or(endless);
    let standardized = known([
        ("tool", Some(Value::from(load_tool(result)))),
        ("tool_version", Some(Value::from(result.source.version.as_deref().unwrap_or(UNKNOWN)))),
        ("source", Some(Value::from(UNKNOWN))),
        ("input_seq_len", Some(length(mean(result.input_tokens, result.completed)?))),
        ("output_seq_len", mean(result.output_tokens, result.completed).map(length)),
        ("rate_qps", rate),
        ("concurrency", concurrency),
    ]);
    Some(json!({ "metadata": {}, "standardized": standardized, "native": {} }))
}

/// In the report's own words for tools.
fn load_tool(result: &ToolResult) -> &str {
    match result.source.tool {
        Tool::Vllm => "vllm-benchmark",
        Tool::LlmD => result.backend.as_deref().unwrap_or(UNKNOWN),
        tool @ (Tool::Inferometer
        | Tool::Sglang
        | Tool::GuideLlm
        | Tool::AiPerf
        | Tool::GenaiBench) => tool.key(),
    }
}

/// Requests that were planned and neither completed nor failed are incomplete, so that a run that
/// was cut short is seen to be one.
fn requests(result: &ToolResult) -> Option<Value> {
    let ended = result.completed? + result.failed.unwrap_or(0);
    let total = result.requests_planned.map_or(ended, |planned| planned.max(ended));
    let lengths = |tokens| mean(tokens, result.completed).map(|mean| single("count", mean));
    Some(known([
        ("total", Some(Value::from(total))),
        ("failures", result.failed.map(Value::from)),
        ("incomplete", (ended < total).then(|| Value::from(total - ended))),
        ("input_length", lengths(result.input_tokens)),
        ("output_length", lengths(result.output_tokens)),
    ]))
}

fn latencies(result: &ToolResult) -> Value {
    let of = |units, kind| statistics(units, latency_of(result, kind)?);
    known([
        ("time_to_first_token", of("ms", LatencyKind::Ttft)),
        ("time_per_output_token", of("ms/token", LatencyKind::Tpot)),
        ("inter_token_latency", of("ms/token", LatencyKind::Itl)),
        ("request_latency", of("ms", LatencyKind::E2e)),
    ])
}

/// The latency that a reader takes for what it is; else one of which he takes something for
/// unknown, as its place in the report may hold many things. That is never a latency from the
/// schedule.
fn latency_of(result: &ToolResult, kind: LatencyKind) -> Option<&ResultLatency> {
    let (from, grain) = meaning(kind, load_tool(result));
    let of_kind = || result.latencies.iter().filter(|latency| latency.kind == kind);
    let exact = of_kind().find(|latency| (latency.from, latency.grain) == (from, grain));
    exact.or_else(|| {
        of_kind().find(|latency| {
            latency.from != CountsFrom::Schedule
                && [latency.from, CountsFrom::Unknown].contains(&from)
                && [latency.grain, Grain::Unknown].contains(&grain)
        })
    })
}

fn throughput(result: &ToolResult) -> Value {
    let input = result.total_token_throughput.zip(result.output_throughput);
    let input = input.map(|(total, output)| total - output).filter(|input| *input >= 0.0);
    let tokens = |rate: Option<f64>| rate.map(|rate| single("tokens/s", rate));
    known([
        ("input_token_rate", tokens(input)),
        ("output_token_rate", tokens(result.output_throughput)),
        ("total_token_rate", tokens(result.total_token_throughput)),
        ("request_rate", result.request_throughput.map(|rate| single("queries/s", rate))),
    ])
}

fn single(units: &str, mean: f64) -> Value {
    json!({ "units": units, "mean": mean })
}

/// `None` without a mean, on which a report insists.
fn statistics(units: &str, latency: &ResultLatency) -> Option<Value> {
    let mut statistics = known([
        ("mean", Some(latency.mean_ms?.into())),
        ("stddev", latency.std_ms.map(Value::from)),
        ("min", latency.min_ms.map(Value::from)),
        ("max", latency.max_ms.map(Value::from)),
        ("units", Some(units.into())),
    ]);
    for rank in RANKS {
        if let Some(value) = latency.percentile_ms(rank) {
            statistics[format!("p{}", rank.replace('.', "p"))] = value.into();
        }
    }
    Some(statistics)
}
