//! `aiperf profile`: its summary, `profile_export_aiperf.json`, and its lines, one for each request.

mod requests;

use inferometer_analysis::sheet::{
    CountsFrom, Form, Grain, LatencyKind, Sheet, SheetLatency, SheetRate, SheetSource, Tool,
};

use super::mapping::{Mapping, Shape, plain_rank};
use super::records::read_objects;
use super::tree::Node;
use super::vllm::own;
use super::{ImportError, Imported};
pub(super) use requests::read as read_requests;

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

fn sheet(node: &Node, line: u32) -> Sheet {
    let mut found = Mapping::new(node, String::new());
    let mut sheet = Sheet {
        source: SheetSource {
            tool: Tool::AiPerf,
            form: Form::Document,
            // An export of ours says who measured; that tool says its version.
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
        verdict: found.name(own::VERDICT).as_deref().and_then(own::verdict),
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
        ..Sheet::default()
    };
    let no_errors = matches!(found.find("error_summary"), Some(Node::List(all)) if all.is_empty());
    sheet.failed = found.count("error_request_count.avg").or_else(|| no_errors.then_some(0));
    for (path, kind, from, grain) in LATENCIES {
        let empty = SheetLatency::new(kind, from, grain);
        sheet.latencies.extend(latency(&mut found, path, empty));
    }
    load(&mut found, &mut sheet);
    if matches!(found.find("all_at_once"), Some(Node::Flag(true))) {
        sheet.max_concurrency = None;
    }
    for doubt in ["was_cancelled", "is_complete"] {
        let usual = doubt == "is_complete";
        if let Some(Node::Flag(said)) = found.find(doubt)
            && *said != usual
        {
            sheet.metadata.push((doubt.to_owned(), said.to_string()));
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

fn latency(found: &mut Mapping<'_>, path: &str, empty: SheetLatency) -> Option<SheetLatency> {
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
fn load(found: &mut Mapping<'_>, sheet: &mut Sheet) {
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
        .map(SheetRate::PerSecond)
        .or_else(|| sheet.max_concurrency.map(|_| SheetRate::Unlimited));
    sheet.burstiness = match arrivals.and_then(|path| found.name(&path)).as_deref() {
        Some("poisson") => Some(1.0),
        Some("constant") => Some(f64::INFINITY),
        Some("gamma") => smoothness.and_then(|path| found.figure(&path)),
        _ => None,
    };
}
