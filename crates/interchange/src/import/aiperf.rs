//! `aiperf profile`: its summary, `profile_export_aiperf.json`, and its lines, one for each request.

use inferometer_analysis::tool_result::{
    CountsFrom, Form, Grain, LatencyKind, ResultLatency, ResultRate, ResultRequest, ResultSource,
    Tool, ToolResult,
};

use super::mapping::{self, Mapping, Shape, plain_rank, shown};
use super::records::{Node, Records, each_object, read_objects};
use super::{ImportError, Imported, vllm};

/// Its names of latencies. What it calls inter-token latency is one mean for each answer.
const LATENCIES: [(&str, LatencyKind, CountsFrom, Grain); 5] = [
    ("time_to_first_token", LatencyKind::Ttft, CountsFrom::Send, Grain::Request),
    ("inter_token_latency", LatencyKind::Tpot, CountsFrom::Output, Grain::Request),
    ("inter_chunk_latency", LatencyKind::Itl, CountsFrom::Output, Grain::Chunk),
    ("request_latency", LatencyKind::E2e, CountsFrom::Send, Grain::Request),
    ("effective_latency", LatencyKind::E2e, CountsFrom::Schedule, Grain::Request),
];

pub(super) fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    read_objects(text, check, sheet)
}

fn check(node: &Node) -> Result<(), String> {
    let figures = ["request_throughput.avg", "request_latency.avg", "request_count.avg"];
    if figures.iter().any(|path| node.at(path).is_some()) {
        Ok(())
    } else {
        Err("has no figures of a benchmark".to_owned())
    }
}

fn sheet(node: &Node, line: u32) -> ToolResult {
    let mut found = Mapping::new(node, String::new());
    let mut sheet = ToolResult {
        source: ResultSource {
            tool: Tool::AiPerf,
            form: Form::Document,
            // Our exports name the tool that measured; that tool gives its version.
            version: found.name("aiperf_version").or_else(|| found.name("measured_by")),
            name: found.name("benchmark_id").unwrap_or_default(),
            line: Some(line),
            simulated: matches!(found.find("simulated"), Some(Node::Flag(true))),
        },
        model: found
            .name("input_config.models.items.0.name")
            .or_else(|| found.name("input_config.endpoint.model_names.0")),
        tokenizer: found.name("input_config.tokenizer.name"),
        backend: found.name("input_config.endpoint.type"),
        started: found.name("start_time"),
        verdict: found.name(vllm::VERDICT).as_deref().and_then(vllm::verdict),
        completed: found.count("request_count.avg"),
        duration_s: seconds(&mut found, "benchmark_duration"),
        input_tokens: found.count("total_isl.avg"),
        output_tokens: found
            .count("total_osl.avg")
            .or_else(|| found.count("total_output_tokens.avg")),
        request_throughput: found.figure("request_throughput.avg"),
        request_goodput: found.figure("goodput.avg"),
        output_throughput: found.figure("output_token_throughput.avg"),
        total_token_throughput: found.figure("total_token_throughput.avg"),
        peak_concurrent_requests: found.count("effective_concurrency.max"),
        ..ToolResult::default()
    };
    let no_errors = matches!(found.find("error_summary"), Some(Node::List(all)) if all.is_empty());
    sheet.failed = found.count("error_request_count.avg").or_else(|| no_errors.then_some(0));
    for (path, kind, from, grain) in LATENCIES {
        let empty = ResultLatency::new(kind, from, grain);
        sheet.latencies.extend(latency(&mut found, path, empty));
    }
    load(&mut found, &mut sheet);
    if matches!(found.find("all_at_once"), Some(Node::Flag(true))) {
        sheet.max_concurrency = None;
    }
    for doubt in ["was_cancelled", "is_complete"] {
        let usual = doubt == "is_complete";
        if let Some(Node::Flag(flag)) = found.find(doubt)
            && *flag != usual
        {
            sheet.metadata.push((doubt.to_owned(), flag.to_string()));
        }
    }
    let reason = found.name("incomplete_reason");
    sheet.metadata.extend(reason.map(|reason| ("incomplete_reason".to_owned(), reason)));
    found.pass_over(&["schema_version", "run_info", "end_time", "input_config.artifacts"]);
    for path in ["request_throughput", "request_count", "total_isl", "total_osl", "goodput"] {
        found.pass_over(&[&format!("{path}.unit")]);
    }
    for path in ["output_token_throughput", "total_token_throughput", "error_request_count"] {
        found.pass_over(&[&format!("{path}.unit")]);
    }
    found.finish(sheet)
}

fn latency(found: &mut Mapping<'_>, path: &str, empty: ResultLatency) -> Option<ResultLatency> {
    let to_ms = unit_in_ms(found, path)?;
    found.latency(path, Shape { to_ms, rank: plain_rank }, empty)
}

fn seconds(found: &mut Mapping<'_>, path: &str) -> Option<f64> {
    let to_ms = unit_in_ms(found, path)?;
    found.figure(&format!("{path}.avg")).map(|value| value * to_ms / 1e3)
}

/// What a metric's values must be multiplied by; nothing where the metric is missing.
fn unit_in_ms(found: &mut Mapping<'_>, path: &str) -> Option<f64> {
    found.find(path)?;
    let unit = found.name(&format!("{path}.unit"))?;
    let in_ms = in_ms(&unit);
    if in_ms.is_none() {
        found.note(&format!("{path}.unit"), "is not a unit of time that is known here");
    }
    in_ms
}

fn in_ms(unit: &str) -> Option<f64> {
    match unit {
        "ms" => Some(1.0),
        "s" | "sec" | "seconds" => Some(1e3),
        "us" | "µs" => Some(1e-3),
        "ns" => Some(1e-6),
        _ => None,
    }
}

/// The phases that were measured; before they had names, there was one.
fn load(found: &mut Mapping<'_>, sheet: &mut ToolResult) {
    let phases = found.find("input_config.phases").map_or(&[][..], Node::items);
    let is_measured = |phase: &&Node| {
        phase.get("kind").or_else(|| phase.get("name")).and_then(Node::text) == Some("profiling")
    };
    let measured: Vec<usize> = phases
        .iter()
        .enumerate()
        .filter(|(_, phase)| is_measured(phase))
        .map(|(place, _)| place)
        .collect();
    let at = match measured.as_slice() {
        [only] => format!("input_config.phases.{only}"),
        [] => "input_config.loadgen".to_owned(),
        // They have no one load.
        _ => return,
    };
    let mut first = |names: &[&str]| {
        let path = names.iter().map(|name| format!("{at}.{name}"));
        path.into_iter().find(|path| found.find(path).is_some())
    };
    let rate = first(&["rate", "request_rate"]);
    let concurrency = first(&["concurrency"]);
    let planned = first(&["requests", "request_count"]);
    let arrivals = first(&["type", "arrival_pattern", "request_rate_mode"]);
    let smoothness = first(&["smoothness", "arrival_smoothness"]);
    sheet.max_concurrency = concurrency.and_then(|path| found.small_count(&path));
    sheet.requests_planned = planned.and_then(|path| found.count(&path));
    let per_s = rate.and_then(|path| found.figure(&path)).filter(|rate| *rate > 0.0);
    sheet.request_rate = per_s
        .map(ResultRate::PerSecond)
        .or_else(|| sheet.max_concurrency.map(|_| ResultRate::Unlimited));
    sheet.burstiness = match arrivals.and_then(|path| found.name(&path)).as_deref() {
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
        if let Err(reason) = object.and_then(|node| run.take(&node, line)) {
            records.break_off(line, reason);
        }
        true
    });
    if let Some(sheet) = run.into_sheet() {
        records.push(sheet);
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
    fn take(&mut self, node: &Node, line: u32) -> Result<(), String> {
        let start_s = moment(node, "request_start_ns").ok_or("has no `request_start_ns`")?;
        let metrics = node.at("metrics").ok_or("has no `metrics`")?;
        let phase = node.at("metadata.phase_kind").or_else(|| node.at("metadata.benchmark_phase"));
        if phase.and_then(Node::text).is_some_and(|phase| phase != "profiling") {
            self.warm_ups += 1;
            return Ok(());
        }
        self.first_line.get_or_insert(line);
        let mut request = ResultRequest { start_s: Some(start_s), ..ResultRequest::default() };
        request.error = Some(error(node));
        request.input_tokens = tokens(metrics, "input_sequence_length");
        request.output_tokens = tokens(metrics, "output_sequence_length");
        request.ttft_s = values_ms(metrics, "time_to_first_token").first().map(|ms| ms / 1e3);
        request.e2e_s = values_ms(metrics, "request_latency").first().map(|ms| ms / 1e3);
        let gaps_ms = values_ms(metrics, "inter_chunk_latency");
        request.gaps_s = gaps_ms.iter().map(|ms| ms / 1e3).collect();
        let end_s = moment(node, "request_end_ns").filter(|end| start_s <= *end);
        self.turned_back += u64::from(end_s.is_none() && node.at(END).is_some());
        if request.error.as_deref() == Some("") {
            for (values, (name, _, from, _)) in self.latencies.iter_mut().zip(LATENCIES) {
                let found = values_ms(metrics, name);
                if found.is_empty() && from == CountsFrom::Schedule {
                    // Most lines have only the moments of it.
                    let issued_s = moment(node, "credit_issued_ns");
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

    fn into_sheet(self) -> Option<ToolResult> {
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
        let source = ResultSource {
            tool: Tool::AiPerf,
            form: Form::Requests,
            line: Some(line),
            ..ResultSource::default()
        };
        let mut sheet = ToolResult {
            source,
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
            sheet
                .latencies
                .extend(mapping::sample_latency(values, ResultLatency::new(kind, from, grain)));
        }
        if self.warm_ups > 0 {
            sheet.unmapped.push(format!("{} lines of warm-up requests", self.warm_ups));
        }
        if self.turned_back > 0 {
            let count = self.turned_back;
            let reason = "is none or before its beginning";
            sheet.unmapped.push(format!("{END} of {count} lines, which {reason}"));
        }
        sheet.requests = Some(self.requests);
        Some(sheet)
    }
}

/// Empty where the request succeeded.
fn error(node: &Node) -> String {
    if let Some(error) = node.at("error") {
        let message = error.get("message").and_then(Node::text).or_else(|| error.text());
        return message.map_or_else(|| "failed".to_owned(), shown);
    }
    match node.at("metadata.was_cancelled") {
        Some(Node::Flag(true)) => "cancelled".to_owned(),
        _ => String::new(),
    }
}

fn moment(node: &Node, key: &str) -> Option<f64> {
    mapping::figure(node.at("metadata")?.get(key)?).ok().map(|ns| ns / 1e9)
}

fn tokens(metrics: &Node, name: &str) -> Option<u64> {
    mapping::count(metrics.get(name)?.get("value")?).ok()
}

/// One value of most metrics, and a list of those that have one for each gap.
fn values_ms(metrics: &Node, name: &str) -> Vec<f64> {
    let Some(metric) = metrics.get(name) else { return Vec::new() };
    let Some(to_ms) = metric.get("unit").and_then(Node::text).and_then(in_ms) else {
        return Vec::new();
    };
    let Some(value) = metric.get("value") else { return Vec::new() };
    let all = if let Node::List(items) = value { items } else { std::slice::from_ref(value) };
    all.iter().filter_map(|value| mapping::figure(value).ok()).map(|value| value * to_ms).collect()
}
