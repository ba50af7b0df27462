//! The JSON lines of SGLang's `bench_serving`.

use inferometer_analysis::tool_result::{
    CountsFrom, Grain, LatencyKind, ResultLatency, ResultRate, ResultRequest, ResultSource, Tool,
    ToolResult,
};

use super::mapping::{self, Mapping, plain_rank};
use super::records::read_objects;
use super::{ImportError, Imported, document};
use crate::json::Json;

const LATENCIES: [(&str, LatencyKind, CountsFrom); 4] = [
    ("ttft_ms", LatencyKind::Ttft, CountsFrom::Send),
    ("tpot_ms", LatencyKind::Tpot, CountsFrom::Output),
    ("itl_ms", LatencyKind::Itl, CountsFrom::Output),
    ("e2e_latency_ms", LatencyKind::E2e, CountsFrom::Send),
];

pub(super) fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let check = |line: &Json| {
        let is_result = line.at("output_throughput").is_some();
        is_result.then_some(()).ok_or_else(|| "has no figures of a benchmark".to_owned())
    };
    read_objects(text, check, read_line)
}

fn read_line(json: &Json, line: u32) -> ToolResult {
    let mut found = Mapping::new(json, format!("line {line}"));
    let mut result = ToolResult {
        source: ResultSource {
            name: found.name("tag").unwrap_or_default(),
            version: found.name("server_info.version"),
            ..document(Tool::Sglang, line)
        },
        model: found.first(&["server_info.served_model_name", "model"], Mapping::name),
        tensor_parallel: found.small_count("server_info.tp_size"),
        backend: found.name("backend"),
        request_rate: rate(&mut found),
        max_concurrency: found.small_count("max_concurrency"),
        completed: found.count("completed"),
        duration_s: found.figure("duration"),
        input_tokens: found.first(&["total_input_tokens", "total_input"], Mapping::count),
        output_tokens: found.first(&["total_output_tokens", "total_output"], Mapping::count),
        request_throughput: found.figure("request_throughput"),
        output_throughput: found.figure("output_throughput"),
        total_token_throughput: found.figure("total_throughput"),
        peak_output_throughput: found.figure("max_output_tokens_per_s"),
        peak_concurrent_requests: found.count("max_concurrent_requests"),
        ..ToolResult::default()
    };
    let has_rate = matches!(result.request_rate, Some(ResultRate::PerSecond(_)));
    result.burstiness = has_rate.then_some(1.0);
    for (suffix, kind, from) in LATENCIES {
        // Its own API reports how many tokens an event brought, and later versions divide by it;
        // which version wrote the file is not known.
        let grain = match (kind, result.backend.as_deref()) {
            (LatencyKind::Ttft | LatencyKind::Tpot | LatencyKind::E2e, _) => Grain::Request,
            (LatencyKind::Itl, None | Some("sglang" | "sglang-native")) => Grain::Unknown,
            (LatencyKind::Itl, Some(_)) => Grain::Chunk,
        };
        let empty = ResultLatency::new(kind, from, grain);
        result.latencies.extend(latency(&mut found, suffix, empty));
    }
    found.describe(&mut result, "dataset_name", "dataset_name");
    result.requests = requests(&mut found);
    if let Some(requests) = &result.requests {
        let failed = requests.iter().filter(|request| request.error.as_deref() != Some(""));
        result.failed = Some(failed.count() as u64);
        result.requests_planned = Some(requests.len() as u64);
    }
    found.finish(result)
}

/// `inf`, or a recording's own moments, which have no one rate.
fn rate(found: &mut Mapping<'_>) -> Option<ResultRate> {
    match found.find("request_rate")?.text() {
        Some("inf" | "Infinity") => Some(ResultRate::Unlimited),
        Some("trace") => None,
        Some(_) | None => found.positive("request_rate").map(ResultRate::PerSecond),
    }
}

fn latency(
    found: &mut Mapping<'_>,
    suffix: &str,
    mut empty: ResultLatency,
) -> Option<ResultLatency> {
    let mut statistic = |name: &str| found.figure(&format!("{name}_{suffix}"));
    empty.mean_ms = statistic("mean");
    empty.std_ms = statistic("std");
    empty.max_ms = statistic("max");
    empty.percentiles_ms.extend(statistic("median").map(|value| ("50".to_owned(), value)));
    for key in ["p90", "p95", "p99"] {
        empty.percentiles_ms.extend(plain_rank(key).zip(statistic(key)));
    }
    let figures = [empty.mean_ms, empty.std_ms, empty.max_ms];
    let is_known = figures.iter().any(Option::is_some) || !empty.percentiles_ms.is_empty();
    is_known.then_some(empty)
}

/// With `--output-details`: lists of one length, of which a failed request has zeros.
fn requests(found: &mut Mapping<'_>) -> Option<Vec<ResultRequest>> {
    let lists = ["input_lens", "output_lens", "ttfts", "itls", "errors", "generated_texts"];
    let [inputs, outputs, ttfts, gaps, errors, texts] =
        lists.map(|name| found.find(name).map_or(&[][..], Json::items));
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
        let seconds = |value: &Json| mapping::figure(value).ok();
        ResultRequest {
            input_tokens: mapping::count(&inputs[place]).ok(),
            output_tokens: mapping::count(&outputs[place]).ok().filter(|_| is_good),
            ttft_s: seconds(&ttfts[place]).filter(|_| is_good),
            gaps_s: gaps[place].items().iter().filter_map(seconds).collect(),
            text: texts.get(place).and_then(Json::text).map(str::to_owned),
            error: Some(error.to_owned()),
            ..ResultRequest::default()
        }
    };
    Some((0..n).map(request).collect())
}
