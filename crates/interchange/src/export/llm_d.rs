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
/// For what the report insists on and a sheet does not know.
const UNKNOWN: &str = "unknown";

/// The percentiles that a report has room for, and its names of them.
const RANKS: [(&str, &str); 11] = [
    ("0.1", "p0p1"),
    ("1", "p1"),
    ("5", "p5"),
    ("10", "p10"),
    ("25", "p25"),
    ("50", "p50"),
    ("75", "p75"),
    ("90", "p90"),
    ("95", "p95"),
    ("99", "p99"),
    ("99.9", "p99p9"),
];

/// The whole file.
pub fn document(sheet: &ToolResult) -> Result<String, ExportError> {
    let report = Report {
        version: VERSION,
        run: run(sheet),
        scenario: Scenario { stack: stack(sheet), load: load(sheet) },
        results: json!({ "request_performance": { "aggregate": {
            "requests": requests(sheet),
            "latency": latencies(sheet),
            "throughput": throughput(sheet),
        }}}),
    };
    let mut text =
        serde_json::to_string_pretty(&report).map_err(|error| ExportError::Write(error.into()))?;
    text.push('\n');
    Ok(text)
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

fn run(sheet: &ToolResult) -> Value {
    let time = known([
        ("start", sheet.started.as_deref().and_then(moment).map(Value::from)),
        ("duration", sheet.duration_s.map(|s| Value::from(format!("PT{s}S")))),
    ]);
    let simulated = sheet.source.simulated;
    let invalid = sheet.marks.contains(&Mark::Invalid);
    let remarks = [
        simulated.then(|| "no server was measured".to_owned()),
        cut(sheet),
        invalid.then(|| "judged invalid by the tool that measured it".to_owned()),
    ];
    let remarks: Vec<String> = remarks.into_iter().flatten().collect();
    let by = format!("measured by {}", measured_by(&sheet.source));
    let description = [vec![by], remarks].concat().join("; ");
    known([
        ("uid", Some(Value::from(sheet.source.name.as_str()))),
        ("time", Some(time)),
        ("description", Some(Value::from(description))),
        ("keywords", keywords(sheet)),
    ])
}

/// What a report has no field for.
fn keywords(sheet: &ToolResult) -> Option<Value> {
    let is_uncounted = sheet.completed.is_some() && sheet.failed.is_none();
    let words: Vec<String> = [
        sheet.source.simulated.then(|| "simulated".to_owned()),
        is_uncounted.then(|| FAILURES_NOT_COUNTED.to_owned()),
        sheet.verdict.map(|verdict| format!("{VERDICT}{verdict}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!words.is_empty()).then(|| json!(words))
}

/// The server, of which only the model and its spread are known.
fn stack(sheet: &ToolResult) -> Option<[Value; 1]> {
    let model = sheet.model.as_deref()?;
    let standardized = known([
        ("kind", Some(Value::from("generic"))),
        ("tool", Some(Value::from(UNKNOWN))),
        ("tool_version", Some(Value::from(UNKNOWN))),
        ("model", Some(json!({ "name": model }))),
        ("accelerator", sheet.tensor_parallel.map(|tp| json!({ "parallelism": { "tp": tp } }))),
    ]);
    Some([json!({
        "metadata": { "label": "server", "cfg_id": UNKNOWN },
        "standardized": standardized,
        "native": {},
    })])
}

/// `None` where the length of prompts is not known: a report has no load without it.
fn load(sheet: &ToolResult) -> Option<Value> {
    let length = |tokens: f64| json!({ "distribution": "other", "value": tokens });
    let rate = match sheet.request_rate {
        Some(ResultRate::PerSecond(rate)) => Some(Value::from(rate)),
        Some(ResultRate::Unlimited) | None => None,
    };
    // JSON has no infinity, and the report's readers take this word for it.
    let is_endless = sheet.request_rate == Some(ResultRate::Unlimited);
    let concurrency =
        sheet.max_concurrency.map(Value::from).or_else(|| is_endless.then(|| Value::from("inf")));
    let standardized = known([
        ("tool", Some(Value::from(load_tool(sheet)))),
        ("tool_version", Some(Value::from(sheet.source.version.as_deref().unwrap_or(UNKNOWN)))),
        ("source", Some(Value::from(UNKNOWN))),
        ("input_seq_len", Some(length(mean(sheet.input_tokens, sheet.completed)?))),
        ("output_seq_len", mean(sheet.output_tokens, sheet.completed).map(length)),
        ("rate_qps", rate),
        ("concurrency", concurrency),
    ]);
    Some(json!({ "metadata": {}, "standardized": standardized, "native": {} }))
}

/// In the report's own words for tools.
fn load_tool(sheet: &ToolResult) -> &str {
    match sheet.source.tool {
        Tool::Vllm => "vllm-benchmark",
        Tool::LlmD => sheet.backend.as_deref().unwrap_or(UNKNOWN),
        tool @ (Tool::Inferometer
        | Tool::Sglang
        | Tool::GuideLlm
        | Tool::AiPerf
        | Tool::GenaiBench) => tool.key(),
    }
}

/// Requests that were planned and neither completed nor failed are incomplete, so that a run that
/// was cut short is seen to be one.
fn requests(sheet: &ToolResult) -> Option<Value> {
    let ended = sheet.completed? + sheet.failed.unwrap_or(0);
    let total = sheet.requests_planned.map_or(ended, |planned| planned.max(ended));
    let lengths = |tokens| mean(tokens, sheet.completed).map(|mean| single("count", mean));
    Some(known([
        ("total", Some(Value::from(total))),
        ("failures", sheet.failed.map(Value::from)),
        ("incomplete", (ended < total).then(|| Value::from(total - ended))),
        ("input_length", lengths(sheet.input_tokens)),
        ("output_length", lengths(sheet.output_tokens)),
    ]))
}

fn latencies(sheet: &ToolResult) -> Value {
    let of = |units, kind| statistics(units, latency_of(sheet, kind)?);
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
fn latency_of(sheet: &ToolResult, kind: LatencyKind) -> Option<&ResultLatency> {
    let (from, grain) = meaning(kind, load_tool(sheet));
    let of_kind = || sheet.latencies.iter().filter(|latency| latency.kind == kind);
    let exact = of_kind().find(|latency| (latency.from, latency.grain) == (from, grain));
    exact.or_else(|| {
        of_kind().find(|latency| {
            latency.from != CountsFrom::Schedule
                && [latency.from, CountsFrom::Unknown].contains(&from)
                && [latency.grain, Grain::Unknown].contains(&grain)
        })
    })
}

fn throughput(sheet: &ToolResult) -> Value {
    let input = sheet.total_token_throughput.zip(sheet.output_throughput);
    let input = input.map(|(total, output)| total - output).filter(|input| *input >= 0.0);
    let tokens = |rate: Option<f64>| rate.map(|rate| single("tokens/s", rate));
    known([
        ("input_token_rate", tokens(input)),
        ("output_token_rate", tokens(sheet.output_throughput)),
        ("total_token_rate", tokens(sheet.total_token_throughput)),
        ("request_rate", sheet.request_throughput.map(|rate| single("queries/s", rate))),
    ])
}

fn single(units: &str, mean: f64) -> Value {
    json!({ "units": units, "mean": mean })
}

/// `None` without a mean, on which a report insists.
fn statistics(units: &str, latency: &ResultLatency) -> Option<Value> {
    let mut statistics = Map::new();
    let mut say = |key: &str, value: Option<f64>| {
        statistics.extend(value.map(|value| (key.to_owned(), Value::from(value))));
    };
    say("mean", Some(latency.mean_ms?));
    say("stddev", latency.std_ms);
    say("min", latency.min_ms);
    for (rank, name) in RANKS {
        say(name, latency.percentile_ms(rank));
    }
    say("max", latency.max_ms);
    statistics.insert("units".to_owned(), Value::from(units));
    Some(Value::Object(statistics))
}
