//! `AIPerf`: `profile_export_aiperf.json` (schema 1.4) and its lines, one for each request, are read; the
//! former is written.
//!
//! What it calls inter-token latency is one mean for each answer, so it takes our TPOT; our gaps
//! between chunks are its inter-chunk latency. A gap for each token has no key there, and neither
//! has a TTFT that counts from the schedule.

use std::collections::BTreeMap;

use inferometer_analysis::Verdict;
use inferometer_analysis::tool_result::{
    CountsFrom, Form, Grain, LatencyKind, ResultLatency, ResultRate, ResultRequest, ResultSource,
    Tool, ToolResult,
};

use crate::export::{ExportError, cut, mean, meant, measured_by, moment, names_a_tool, pretty};
use crate::import::{
    ImportError, Imported, Mapping, Records, count_at, document_source, each_object, figure,
    figure_at, plain_rank, read_objects, sample_latency, shown, unit_in_ms,
};
use crate::json::{Json, object};
use crate::vllm::read::{VERDICT, verdict};

/// Its names of latencies, for reading and for writing. What it calls inter-token latency is one mean for each answer.
pub(crate) const LATENCIES: [(&str, LatencyKind, CountsFrom, Grain); 5] = [
    ("time_to_first_token", LatencyKind::Ttft, CountsFrom::Send, Grain::Request),
    ("inter_token_latency", LatencyKind::Tpot, CountsFrom::Output, Grain::Request),
    ("inter_chunk_latency", LatencyKind::Itl, CountsFrom::Output, Grain::Chunk),
    ("request_latency", LatencyKind::E2e, CountsFrom::Send, Grain::Request),
    ("effective_latency", LatencyKind::E2e, CountsFrom::Schedule, Grain::Request),
];

pub(crate) fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let figures = ["request_throughput.avg", "request_latency.avg", "request_count.avg"];
    let is_result = |json: &Json| figures.iter().any(|path| json.at(path).is_some());
    read_objects(text, is_result, "has no figures of a benchmark", read_summary)
}

fn read_summary(json: &Json, line: u32) -> ToolResult {
    let mut found = Mapping::new(json, String::new());
    let mut result = found.result(Tool::AiPerf, line);
    result.source.simulated = found.is_set("simulated");
    result.verdict = found.name(VERDICT).as_deref().and_then(verdict);
    result.duration_s = found
        .factor_to_ms("benchmark_duration", "unit")
        .and_then(|to_ms| found.figure("benchmark_duration.avg").map(|value| value * to_ms / 1e3));
    let no_errors = matches!(found.find("error_summary"), Some(Json::List(all)) if all.is_empty());
    result.failed = found.count("error_request_count.avg").or_else(|| no_errors.then_some(0));
    for (path, kind, from, grain) in LATENCIES {
        let Some(to_ms) = found.factor_to_ms(path, "unit") else { continue };
        let empty = ResultLatency::new(kind, from, grain);
        result.latencies.extend(found.latency(path, to_ms, plain_rank, empty));
    }
    load(&mut found, &mut result);
    if found.is_set("all_at_once") {
        result.max_concurrency = None;
    }
    for (key, usual) in [("was_cancelled", false), ("is_complete", true)] {
        if let Some(Json::Flag(flag)) = found.find(key)
            && *flag != usual
        {
            result.metadata.push((key.to_owned(), flag.to_string()));
        }
    }
    found.describe(&mut result, "incomplete_reason", "incomplete_reason");
    found.finish(result)
}

/// The phases that were measured; before they had names, there was one.
fn load(found: &mut Mapping<'_>, result: &mut ToolResult) {
    let phases = found.find("input_config.phases").map_or(&[][..], Json::items);
    let is_measured = |phase: &Json| {
        phase.get("kind").or_else(|| phase.get("name")).and_then(Json::text) == Some("profiling")
    };
    let measured: Vec<_> = phases.iter().enumerate().filter(|(_, it)| is_measured(it)).collect();
    let at = match measured.as_slice() {
        [(only, _)] => format!("input_config.phases.{only}"),
        [] => "input_config.loadgen".to_owned(),
        // They have no one load.
        _ => return,
    };
    let mut first = |names: &[&str]| {
        names.iter().map(|name| format!("{at}.{name}")).find(|path| found.find(path).is_some())
    };
    let rate = first(&["rate", "request_rate"]);
    let concurrency = first(&["concurrency"]);
    let planned = first(&["requests", "request_count"]);
    let arrivals = first(&["type", "arrival_pattern", "request_rate_mode"]);
    let smoothness = first(&["smoothness", "arrival_smoothness"]);
    result.max_concurrency = concurrency.and_then(|path| found.small_count(&path));
    result.requests_planned = planned.and_then(|path| found.count(&path));
    let per_s = rate.and_then(|path| found.positive(&path));
    result.request_rate = per_s
        .map(ResultRate::PerSecond)
        .or_else(|| result.max_concurrency.map(|_| ResultRate::Unlimited));
    result.burstiness = match arrivals.and_then(|path| found.name(&path)).as_deref() {
        Some("poisson") => Some(1.0),
        Some("constant") => Some(f64::INFINITY),
        Some("gamma") => smoothness.and_then(|path| found.figure(&path)),
        _ => None,
    };
}

const END: &str = "metadata.request_end_ns";

/// All lines are one result.
pub(crate) fn read_requests(text: &str) -> Result<Vec<Imported>, ImportError> {
    let (mut records, mut run) = (Records::default(), Run::default());
    each_object(text, |line, object| {
        if let Err(reason) = object.and_then(|json| run.take(&json, line)) {
            records.break_off(line, reason);
        }
        true
    });
    if let Some(line) = run.first_line {
        records.push(run.into_result(line));
    }
    records.finish()
}

/// The requests that were measured, as they come.
#[derive(Debug, Default)]
struct Run {
    first_line: Option<u32>,
    /// Milliseconds, in the order of [`LATENCIES`].
    latencies: [Vec<f64>; LATENCIES.len()],
    requests: Vec<ResultRequest>,
    warm_ups: u64,
    /// Lines whose end is missing or before their beginning.
    turned_back: u64,
    /// Beginning and end of each request, in seconds of the epoch.
    spans: Vec<(f64, f64)>,
}

impl Run {
    fn take(&mut self, json: &Json, line: u32) -> Result<(), String> {
        let start_s = epoch_s(json, "request_start_ns").ok_or("has no `request_start_ns`")?;
        let metrics = json.at("metrics").ok_or("has no `metrics`")?;
        let phase = json.at("metadata.phase_kind").or_else(|| json.at("metadata.benchmark_phase"));
        if phase.and_then(Json::text).is_some_and(|phase| phase != "profiling") {
            self.warm_ups += 1;
            return Ok(());
        }
        self.first_line.get_or_insert(line);
        let seconds = |name: &str| values_ms(metrics, name).into_iter().map(|ms| ms / 1e3);
        let tokens = |name: &str| count_at(metrics.get(name)?, "value");
        let request = ResultRequest {
            start_s: Some(start_s),
            error: Some(error(json)),
            input_tokens: tokens("input_sequence_length"),
            output_tokens: tokens("output_sequence_length"),
            ttft_s: seconds("time_to_first_token").next(),
            e2e_s: seconds("request_latency").next(),
            gaps_s: seconds("inter_chunk_latency").collect(),
            ..ResultRequest::default()
        };
        let end_s = epoch_s(json, "request_end_ns").filter(|end| start_s <= *end);
        self.turned_back += u64::from(end_s.is_none() && json.at(END).is_some());
        for (values, (name, _, from, _)) in self.latencies.iter_mut().zip(LATENCIES) {
            if !request.is_ok() {
                continue;
            }
            let found = values_ms(metrics, name);
            if found.is_empty() && from == CountsFrom::Schedule {
                // Most lines have only the timestamps of it.
                let issued_s = epoch_s(json, "credit_issued_ns");
                let span = issued_s.zip(end_s).filter(|(issued, end)| issued <= end);
                values.extend(span.map(|(issued, end)| (end - issued) * 1e3));
            }
            values.extend(found);
        }
        self.requests.push(request);
        self.spans.push((start_s, end_s.unwrap_or(start_s)));
        Ok(())
    }

    fn into_result(self, line: u32) -> ToolResult {
        let good = || self.requests.iter().filter(|request| request.is_ok());
        let completed = good().count() as u64;
        let total = |tokens: fn(&ResultRequest) -> Option<u64>| {
            let sum = good().map(tokens).try_fold(0_u64, |sum, tokens| sum.checked_add(tokens?));
            sum.filter(|_| completed > 0)
        };
        let input_tokens = total(|request| request.input_tokens);
        let output_tokens = total(|request| request.output_tokens);
        let first_s = self.spans.iter().map(|span| span.0).reduce(f64::min);
        let last_s = self.spans.iter().map(|span| span.1).reduce(f64::max);
        let duration_s = first_s.zip(last_s).map(|(first, last)| last - first);
        let per_s = |count: u64| duration_s.filter(|s| *s > 0.0).map(|s| count as f64 / s);
        let all_tokens = input_tokens.zip(output_tokens).map(|(a, b)| a.saturating_add(b));
        let latencies = self.latencies.into_iter().zip(LATENCIES);
        let latencies = latencies.filter_map(|(values, (_, kind, from, grain))| {
            sample_latency(values, ResultLatency::new(kind, from, grain))
        });
        let mut result = ToolResult {
            source: ResultSource { form: Form::Requests, ..document_source(Tool::AiPerf, line) },
            completed: Some(completed),
            failed: Some(self.requests.len() as u64 - completed),
            duration_s,
            input_tokens,
            output_tokens,
            request_throughput: per_s(completed),
            output_throughput: output_tokens.and_then(per_s),
            total_token_throughput: all_tokens.and_then(per_s),
            latencies: latencies.collect(),
            ..ToolResult::default()
        };
        if self.warm_ups > 0 {
            result.unmapped.push(format!("{} lines of warm-up requests", self.warm_ups));
        }
        if self.turned_back > 0 {
            let reason = "is missing or before its beginning";
            result.unmapped.push(format!("{END} of {} lines, which {reason}", self.turned_back));
        }
        result.requests = Some(self.requests);
        result
    }
}

/// Empty where the request succeeded.
fn error(json: &Json) -> String {
    if let Some(error) = json.at("error") {
        let message = error.get("message").and_then(Json::text).or_else(|| error.text());
        return message.map_or_else(|| "failed".to_owned(), shown);
    }
    match json.at("metadata.was_cancelled") {
        Some(Json::Flag(true)) => "cancelled".to_owned(),
        _ => String::new(),
    }
}

/// Seconds of the epoch.
fn epoch_s(json: &Json, key: &str) -> Option<f64> {
    figure_at(json.at("metadata")?, key).map(|ns| ns / 1e9)
}

/// One value of most metrics, and a list of those that have one for each gap.
fn values_ms(metrics: &Json, name: &str) -> Vec<f64> {
    let metric = metrics.get(name);
    let to_ms = metric.and_then(|metric| unit_in_ms(metric.get("unit")?.text()?));
    let value = metric.and_then(|metric| metric.get("value"));
    let Some((to_ms, value)) = to_ms.zip(value) else { return Vec::new() };
    let all = if let Json::List(items) = value { items } else { std::slice::from_ref(value) };
    all.iter().filter_map(|value| figure(value).ok()).map(|value| value * to_ms).collect()
}

const SCHEMA_VERSION: &str = "1.4";
/// Kinds of errors that are listed; a server may fail in endless ways.
const ERRORS_MAX: usize = 100;
/// For what that tool's readers insist on and a result does not know.
const UNKNOWN: &str = "unknown";

/// The whole file.
pub fn document(result: &ToolResult) -> Result<String, ExportError> {
    pretty(&summary(result))
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
        (VERDICT, result.verdict.map(Verdict::key).into()),
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
