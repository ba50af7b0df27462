//! `aiperf profile`: its summary, `profile_export_aiperf.json`, and its lines, one for each request.

use inferometer_analysis::tool_result::{
    CountsFrom, Form, Grain, LatencyKind, ResultLatency, ResultRate, ResultRequest, ResultSource,
    Tool, ToolResult,
};

use super::mapping::{self, Mapping, Shape, plain_rank, shown, unit_in_ms};
use super::records::{Records, each_object, read_objects};
use super::{ImportError, Imported, document, vllm};
use crate::json::Json;

/// Its names of latencies, for reading and for writing. What it calls inter-token latency is one mean for each answer.
pub(crate) const LATENCIES: [(&str, LatencyKind, CountsFrom, Grain); 5] = [
    ("time_to_first_token", LatencyKind::Ttft, CountsFrom::Send, Grain::Request),
    ("inter_token_latency", LatencyKind::Tpot, CountsFrom::Output, Grain::Request),
    ("inter_chunk_latency", LatencyKind::Itl, CountsFrom::Output, Grain::Chunk),
    ("request_latency", LatencyKind::E2e, CountsFrom::Send, Grain::Request),
    ("effective_latency", LatencyKind::E2e, CountsFrom::Schedule, Grain::Request),
];

pub(super) fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let check = |json: &Json| {
        let figures = ["request_throughput.avg", "request_latency.avg", "request_count.avg"];
        let is_result = figures.iter().any(|path| json.at(path).is_some());
        is_result.then_some(()).ok_or_else(|| "has no figures of a benchmark".to_owned())
    };
    read_objects(text, check, read_summary)
}

fn read_summary(json: &Json, line: u32) -> ToolResult {
    let mut found = Mapping::new(json, String::new());
    let mut result = ToolResult {
        source: ResultSource {
            // Our exports name the tool that measured; that tool gives its version.
            version: found.first(&["aiperf_version", "measured_by"], Mapping::name),
            name: found.name("benchmark_id").unwrap_or_default(),
            simulated: found.is_set("simulated"),
            ..document(Tool::AiPerf, line)
        },
        model: found.first(
            &["input_config.models.items.0.name", "input_config.endpoint.model_names.0"],
            Mapping::name,
        ),
        tokenizer: found.name("input_config.tokenizer.name"),
        backend: found.name("input_config.endpoint.type"),
        started: found.name("start_time"),
        verdict: found.name(vllm::VERDICT).as_deref().and_then(vllm::verdict),
        completed: found.count("request_count.avg"),
        input_tokens: found.count("total_isl.avg"),
        output_tokens: found.first(&["total_osl.avg", "total_output_tokens.avg"], Mapping::count),
        request_throughput: found.figure("request_throughput.avg"),
        request_goodput: found.figure("goodput.avg"),
        output_throughput: found.figure("output_token_throughput.avg"),
        total_token_throughput: found.figure("total_token_throughput.avg"),
        peak_concurrent_requests: found.count("effective_concurrency.max"),
        ..ToolResult::default()
    };
    result.duration_s = found
        .factor_to_ms("benchmark_duration", "unit")
        .and_then(|to_ms| found.figure("benchmark_duration.avg").map(|value| value * to_ms / 1e3));
    let no_errors = matches!(found.find("error_summary"), Some(Json::List(all)) if all.is_empty());
    result.failed = found.count("error_request_count.avg").or_else(|| no_errors.then_some(0));
    for (path, kind, from, grain) in LATENCIES {
        let Some(to_ms) = found.factor_to_ms(path, "unit") else { continue };
        let (shape, empty) =
            (Shape { to_ms, rank: plain_rank }, ResultLatency::new(kind, from, grain));
        result.latencies.extend(found.latency(path, shape, empty));
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
    found.pass_over(&["schema_version", "run_info", "end_time", "input_config.artifacts"]);
    found.pass_over(&["request_throughput.unit", "request_count.unit", "error_request_count.unit"]);
    found.pass_over(&["total_isl.unit", "total_osl.unit", "goodput.unit"]);
    found.pass_over(&["output_token_throughput.unit", "total_token_throughput.unit"]);
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
    let mut records = Records::default();
    let mut run = Run::default();
    each_object(text, |line, object| {
        if let Err(reason) = object.and_then(|json| run.take(&json, line)) {
            records.break_off(line, reason);
        }
        true
    });
    if let Some(result) = run.into_result() {
        records.push(result);
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
    /// Lines whose end is no moment, or one before their beginning.
    turned_back: u64,
    /// Seconds of the epoch.
    first_start: Option<f64>,
    last_end: Option<f64>,
}

impl Run {
    fn take(&mut self, json: &Json, line: u32) -> Result<(), String> {
        let start_s = moment(json, "request_start_ns").ok_or("has no `request_start_ns`")?;
        let metrics = json.at("metrics").ok_or("has no `metrics`")?;
        let phase = json.at("metadata.phase_kind").or_else(|| json.at("metadata.benchmark_phase"));
        if phase.and_then(Json::text).is_some_and(|phase| phase != "profiling") {
            self.warm_ups += 1;
            return Ok(());
        }
        self.first_line.get_or_insert(line);
        let seconds = |name: &str| values_ms(metrics, name).into_iter().map(|ms| ms / 1e3);
        let tokens = |name: &str| mapping::count(metrics.get(name)?.get("value")?).ok();
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
        let end_s = moment(json, "request_end_ns").filter(|end| start_s <= *end);
        self.turned_back += u64::from(end_s.is_none() && json.at(END).is_some());
        if request.error.as_deref() == Some("") {
            for (values, (name, _, from, _)) in self.latencies.iter_mut().zip(LATENCIES) {
                let found = values_ms(metrics, name);
                if found.is_empty() && from == CountsFrom::Schedule {
                    // Most lines have only the moments of it.
                    let issued_s = moment(json, "credit_issued_ns");
                    let span = issued_s.zip(end_s).filter(|(issued, end)| issued <= end);
                    values.extend(span.map(|(issued, end)| (end - issued) * 1e3));
                }
                values.extend(found);
            }
        }
        self.requests.push(request);
        let end_s = end_s.unwrap_or(start_s);
        self.first_start = Some(self.first_start.map_or(start_s, |first| first.min(start_s)));
        self.last_end = Some(self.last_end.map_or(end_s, |last| last.max(end_s)));
        Ok(())
    }

    fn into_result(self) -> Option<ToolResult> {
        let line = self.first_line?;
        let good = || self.requests.iter().filter(|request| request.error.as_deref() == Some(""));
        let completed = good().count() as u64;
        let total = |tokens: fn(&ResultRequest) -> Option<u64>| {
            let sum = good().map(tokens).try_fold(0_u64, |sum, tokens| sum.checked_add(tokens?));
            sum.filter(|_| completed > 0)
        };
        let input_tokens = total(|request| request.input_tokens);
        let output_tokens = total(|request| request.output_tokens);
        let duration_s = self.first_start.zip(self.last_end).map(|(first, last)| last - first);
        let per_s = |count: u64| duration_s.filter(|s| *s > 0.0).map(|s| count as f64 / s);
        let mut result = ToolResult {
            source: ResultSource { form: Form::Requests, ..document(Tool::AiPerf, line) },
            completed: Some(completed),
            failed: Some(self.requests.len() as u64 - completed),
            duration_s,
            input_tokens,
            output_tokens,
            request_throughput: per_s(completed),
            output_throughput: output_tokens.and_then(per_s),
            total_token_throughput: input_tokens
                .zip(output_tokens)
                .and_then(|(input, output)| per_s(input.saturating_add(output))),
            ..ToolResult::default()
        };
        for (values, (_, kind, from, grain)) in self.latencies.into_iter().zip(LATENCIES) {
            let empty = ResultLatency::new(kind, from, grain);
            result.latencies.extend(mapping::sample_latency(values, empty));
        }
        if self.warm_ups > 0 {
            result.unmapped.push(format!("{} lines of warm-up requests", self.warm_ups));
        }
        if self.turned_back > 0 {
            let count = self.turned_back;
            let reason = "is none or before its beginning";
            result.unmapped.push(format!("{END} of {count} lines, which {reason}"));
        }
        result.requests = Some(self.requests);
        Some(result)
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

fn moment(json: &Json, key: &str) -> Option<f64> {
    mapping::figure(json.at("metadata")?.get(key)?).ok().map(|ns| ns / 1e9)
}

/// One value of most metrics, and a list of those that have one for each gap.
fn values_ms(metrics: &Json, name: &str) -> Vec<f64> {
    let metric = metrics.get(name);
    let to_ms = metric.and_then(|metric| unit_in_ms(metric.get("unit")?.text()?));
    let value = metric.and_then(|metric| metric.get("value"));
    let Some((to_ms, value)) = to_ms.zip(value) else { return Vec::new() };
    let all = if let Json::List(items) = value { items } else { std::slice::from_ref(value) };
    all.iter().filter_map(|value| mapping::figure(value).ok()).map(|value| value * to_ms).collect()
}
