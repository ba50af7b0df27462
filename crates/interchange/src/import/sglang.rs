//! The JSON lines of SGLang's `bench_serving`.

use inferometer_analysis::tool_result::{
    CountsFrom, Form, Grain, LatencyKind, ResultLatency, ResultRate, ResultRequest, ResultSource,
    Tool, ToolResult,
};

use super::mapping::{self, Mapping, plain_rank};
use super::records::{Node, read_objects};
use super::{ImportError, Imported};

const LATENCIES: [(&str, LatencyKind, CountsFrom); 4] = [
    ("ttft_ms", LatencyKind::Ttft, CountsFrom::Send),
    ("tpot_ms", LatencyKind::Tpot, CountsFrom::Output),
    ("itl_ms", LatencyKind::Itl, CountsFrom::Output),
    ("e2e_latency_ms", LatencyKind::E2e, CountsFrom::Send),
];

pub(super) fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let check = |node: &Node| match node.at("output_throughput") {
        Some(_) => Ok(()),
        None => Err("has no figures of a benchmark".to_owned()),
    };
    read_objects(text, check, sheet)
}

fn sheet(node: &Node, line: u32) -> ToolResult {
    let mut found = Mapping::new(node, format!("line {line}"));
    let either =
        |found: &mut Mapping<'_>, names: [&str; 2]| names.iter().find_map(|name| found.count(name));
    let mut sheet = ToolResult {
        source: ResultSource {
            tool: Tool::Sglang,
            form: Form::Document,
            name: found.name("tag").unwrap_or_default(),
            line: Some(line),
            version: found.name("server_info.version"),
            ..ResultSource::default()
        },
        model: found.name("server_info.served_model_name").or_else(|| found.name("model")),
        tensor_parallel: found.small_count("server_info.tp_size"),
        backend: found.name("backend"),
        request_rate: rate(&mut found),
        max_concurrency: found.small_count("max_concurrency"),
        completed: found.count("completed"),
        duration_s: found.figure("duration"),
        input_tokens: either(&mut found, ["total_input_tokens", "total_input"]),
        output_tokens: either(&mut found, ["total_output_tokens", "total_output"]),
        request_throughput: found.figure("request_throughput"),
        output_throughput: found.figure("output_throughput"),
        total_token_throughput: found.figure("total_throughput"),
        peak_output_throughput: found.figure("max_output_tokens_per_s"),
        peak_concurrent_requests: found.count("max_concurrent_requests"),
        ..ToolResult::default()
    };
    sheet.burstiness = match sheet.request_rate {
        Some(ResultRate::PerSecond(_)) => Some(1.0),
        Some(ResultRate::Unlimited) | None => None,
    };
    for (suffix, kind, from) in LATENCIES {
        let empty = ResultLatency::new(kind, from, grain(kind, sheet.backend.as_deref()));
        sheet.latencies.extend(latency(&mut found, suffix, empty));
    }
    let dataset = found.name("dataset_name");
    sheet.metadata.extend(dataset.map(|name| ("dataset_name".to_owned(), name)));
    sheet.requests = requests(&mut found);
    if let Some(requests) = &sheet.requests {
        let failed = requests.iter().filter(|request| request.error.as_deref() != Some(""));
        sheet.failed = Some(failed.count() as u64);
        sheet.requests_planned = Some(requests.len() as u64);
    }
    found.finish(sheet)
}

/// Its own API reports how many tokens an event brought, and later versions divide by it; which
/// version wrote the file is not known.
fn grain(kind: LatencyKind, backend: Option<&str>) -> Grain {
    match (kind, backend) {
        (LatencyKind::Ttft | LatencyKind::Tpot | LatencyKind::E2e, _) => Grain::Request,
        (LatencyKind::Itl, None | Some("sglang" | "sglang-native")) => Grain::Unknown,
        (LatencyKind::Itl, Some(_)) => Grain::Chunk,
    }
}

/// `inf`, or a recording's own moments, which have no one rate.
fn rate(found: &mut Mapping<'_>) -> Option<ResultRate> {
    match found.find("request_rate")?.text() {
        Some("inf" | "Infinity") => Some(ResultRate::Unlimited),
        Some("trace") => None,
        Some(_) | None => {
            let rate = found.figure("request_rate").filter(|rate| *rate > 0.0);
            rate.map(ResultRate::PerSecond)
        }
    }
}

fn latency(
    found: &mut Mapping<'_>,
    suffix: &str,
    mut empty: ResultLatency,
) -> Option<ResultLatency> {
    empty.mean_ms = found.figure(&format!("mean_{suffix}"));
    empty.std_ms = found.figure(&format!("std_{suffix}"));
    empty.max_ms = found.figure(&format!("max_{suffix}"));
    let median = found.figure(&format!("median_{suffix}"));
    empty.percentiles_ms.extend(median.map(|value| ("50".to_owned(), value)));
    for key in ["p90", "p95", "p99"] {
        let value = found.figure(&format!("{key}_{suffix}"));
        empty.percentiles_ms.extend(plain_rank(key).zip(value));
    }
    let figures = [empty.mean_ms, empty.std_ms, empty.max_ms];
    let is_known = figures.iter().any(Option::is_some) || !empty.percentiles_ms.is_empty();
    is_known.then_some(empty)
}

/// With `--output-details`: lists of one length, of which a failed request has zeros.
fn requests(found: &mut Mapping<'_>) -> Option<Vec<ResultRequest>> {
    let lists = ["input_lens", "output_lens", "ttfts", "itls", "errors", "generated_texts"];
    let [inputs, outputs, ttfts, gaps, errors, texts] =
        lists.map(|name| found.find(name).map_or(&[][..], Node::items));
    let n = errors.len();
    if n == 0 {
        return None;
    }
    if [inputs, outputs, ttfts, gaps].iter().any(|list| list.len() != n) {
        found.note("errors", "is not as long as the other lists of requests");
        return None;
    }
    let request = |place: usize| {
        let error = errors[place].text().unwrap_or_default();
        let is_good = error.is_empty();
        let seconds = |node: &Node| mapping::figure(node).ok();
        ResultRequest {
            input_tokens: mapping::count(&inputs[place]).ok(),
            output_tokens: mapping::count(&outputs[place]).ok().filter(|_| is_good),
            ttft_s: seconds(&ttfts[place]).filter(|_| is_good),
            gaps_s: gaps[place].items().iter().filter_map(seconds).collect(),
            text: texts.get(place).and_then(Node::text).map(str::to_owned),
            error: Some(error.to_owned()),
            ..ResultRequest::default()
        }
    };
    Some((0..n).map(request).collect())
}
