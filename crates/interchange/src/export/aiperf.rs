//! A result as `aiperf profile` sums one up: `profile_export_aiperf.json`, of its schema 1.4.
//!
//! What it calls inter-token latency is one mean for each answer, so it takes our TPOT; our gaps
//! between chunks are its inter-chunk latency. A gap for each token has no place there, and neither
//! has a TTFT that counts from the schedule.

use std::collections::BTreeMap;

use inferometer_analysis::Verdict;
use inferometer_analysis::tool_result::{ResultLatency, ResultRate, Tool, ToolResult};

use super::{ExportError, cut, mean, meant, measured_by, moment, names_a_tool};
use crate::import::aiperf::LATENCIES;
use crate::json::{Json, object};

const SCHEMA_VERSION: &str = "1.4";
/// Kinds of errors that are listed; a server may fail in endless ways.
const ERRORS_MAX: usize = 100;
/// For what that tool's readers insist on and a result does not know.
const UNKNOWN: &str = "unknown";

/// The whole file.
pub fn document(result: &ToolResult) -> Result<String, ExportError> {
    Ok(serde_json::to_string_pretty(&summary(result))? + "\n")
}

/// That tool's keys; those of ours are `measured_by` (where another tool measured), `simulated`,
/// `inferometer_verdict` and `all_at_once`: that tool has no such load, so its phase then names as many
/// at once as there are.
fn summary(result: &ToolResult) -> Json {
    let incomplete_reason = cut(result);
    let source = &result.source;
    let version = source.version.as_deref();
    let is_its_own = source.tool == Tool::AiPerf && !version.is_some_and(names_a_tool);
    let is_endless = result.request_rate == Some(ResultRate::Unlimited);
    let is_judged = result.requests_planned.is_some() && result.completed.is_some();
    let mut members = vec![
        ("schema_version", Json::from(SCHEMA_VERSION)),
        ("benchmark_id", source.name.as_str().into()),
        ("aiperf_version", version.filter(|_| is_its_own).into()),
        ("measured_by", (!is_its_own).then(|| measured_by(source)).into()),
        ("simulated", source.simulated.then_some(true).into()),
        ("inferometer_verdict", result.verdict.map(Verdict::key).into()),
        ("all_at_once", (is_endless && result.max_concurrency.is_none()).then_some(true).into()),
    ];
    members.extend(metrics(result));
    members.extend([
        ("input_config", input_config(result).into()),
        ("is_complete", is_judged.then_some(incomplete_reason.is_none()).into()),
        ("incomplete_reason", incomplete_reason.into()),
        ("error_summary", errors(result).into()),
        ("start_time", result.started.as_deref().and_then(moment).into()),
    ]);
    Json::Map(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// In the order of their names.
fn metrics(result: &ToolResult) -> BTreeMap<&'static str, Json> {
    let count = |count: Option<u64>| count.map(|count| count as f64);
    let single = [
        ("request_throughput", "requests/sec", result.request_throughput),
        ("goodput", "requests/sec", result.request_goodput),
        ("output_token_throughput", "tokens/sec", result.output_throughput),
        ("total_token_throughput", "tokens/sec", result.total_token_throughput),
        ("request_count", "requests", count(result.completed)),
        ("error_request_count", "requests", count(result.failed.filter(|failed| 0 < *failed))),
        ("input_sequence_length", "tokens", mean(result.input_tokens, result.completed)),
        ("output_sequence_length", "tokens", mean(result.output_tokens, result.completed)),
        ("total_isl", "tokens", count(result.input_tokens)),
        ("total_osl", "tokens", count(result.output_tokens)),
        ("benchmark_duration", "sec", result.duration_s),
    ];
    let single = single
        .into_iter()
        .filter_map(|(name, unit, value)| Some((name, object! {"unit": unit, "avg": value?})));
    let latencies = LATENCIES.into_iter().filter_map(|(name, kind, from, grain)| {
        Some((name, latency_metric(meant(result, kind, from, grain)?)))
    });
    single.chain(latencies).collect()
}

fn latency_metric(latency: &ResultLatency) -> Json {
    let ranks = latency.percentiles_ms.iter().map(|(rank, ms)| (format!("p{rank}"), *ms));
    let ranks: BTreeMap<String, f64> = ranks.collect();
    let named = |(name, value): (&str, Json)| (name.to_owned(), value);
    let first = [("unit", "ms".into()), ("avg", latency.mean_ms.into())].map(named);
    let last = [
        ("min", latency.min_ms.into()),
        ("max", latency.max_ms.into()),
        ("std", latency.std_ms.into()),
        ("count", latency.n.into()),
    ];
    let ranks = ranks.into_iter().map(|(rank, ms)| (rank, ms.into()));
    Json::Map(first.into_iter().chain(ranks).chain(last.map(named)).collect())
}

/// What was asked. That tool's readers take it only whole, with a server and a data set. `None` where
/// the model or the load is not known, or is none that the tool has.
fn input_config(result: &ToolResult) -> Option<Json> {
    let named = |name: &str| object! {"name": name};
    let kind = result.backend.as_deref().and_then(endpoint_type);
    Some(object! {
        "models": object! {"items": vec![named(result.model.as_deref()?)]},
        "endpoint": object! {"urls": vec![Json::from(UNKNOWN)], "type": kind},
        "datasets": vec![object! {"name": UNKNOWN, "type": "synthetic"}],
        "phases": vec![phase(result)?],
        "tokenizer": result.tokenizer.as_deref().map(named),
    })
}

fn phase(result: &ToolResult) -> Option<Json> {
    let (arrivals, rate, smoothness) = match (result.request_rate?, result.burstiness) {
        (ResultRate::Unlimited, _) => ("concurrency", None, None),
        (ResultRate::PerSecond(rate), Some(shape)) if shape.is_infinite() => {
            ("constant", Some(rate), None)
        }
        (ResultRate::PerSecond(rate), Some(shape)) if (shape - 1.0).abs() < f64::EPSILON => {
            ("poisson", Some(rate), None)
        }
        (ResultRate::PerSecond(rate), Some(shape)) => ("gamma", Some(rate), Some(shape)),
        (ResultRate::PerSecond(_), None) => return None,
    };
    // All at once is as many at once as there are.
    let all = result.requests_planned.and_then(|planned| u32::try_from(planned).ok());
    let concurrency = match result.max_concurrency {
        None if rate.is_none() => Some(all?),
        cap => cap,
    };
    Some(object! {
        "name": "profiling",
        "kind": "profiling",
        "type": arrivals,
        "requests": result.requests_planned,
        "concurrency": concurrency,
        "rate": rate,
        "smoothness": smoothness,
    })
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

/// `None` where it is not known how requests failed.
fn errors(result: &ToolResult) -> Option<Vec<Json>> {
    if result.failed? == 0 {
        return Some(Vec::new());
    }
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let errors = result.requests.as_ref()?.iter().filter_map(|row| row.error.as_deref());
    for message in errors.filter(|message| !message.is_empty()) {
        *counts.entry(message).or_default() += 1;
    }
    let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let listed = counts.into_iter().take(ERRORS_MAX);
    let error = |(message, count): (&str, u64)| {
        object! {"error_details": object! {"message": message}, "count": count}
    };
    Some(listed.map(error).collect())
}
