//! genai-bench: one JSON file for each scenario and load.

use inferometer_analysis::tool_result::{
    CountsFrom, Grain, LatencyKind, ResultLatency, ResultRate, ResultRequest, Tool, ToolResult,
};

use super::mapping::{self, Mapping, Shape, plain_rank, shown};
use super::records::read_objects;
use super::{ImportError, Imported, document};
use crate::json::Json;

pub(super) fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let check = |json: &Json| {
        let is_result = json.at("aggregated_metrics").is_some();
        is_result.then_some(()).ok_or_else(|| "has no `aggregated_metrics`".to_owned())
    };
    read_objects(text, check, read_document)
}

/// What genai-bench writes next to its results.
pub(super) fn refuse(_: &str) -> Result<Vec<Imported>, ImportError> {
    let looks_like = "the file is genai-bench's description of an experiment; give the result files \
                      beside it";
    Err(ImportError::NothingRecognised { looks_like: looks_like.to_owned() })
}

fn read_document(json: &Json, line: u32) -> ToolResult {
    let mut found = Mapping::new(json, String::new());
    let of = |name: &str| format!("aggregated_metrics.{name}");
    let per_minute = found.figure(&of("requests_per_minute")).map(|rate| rate / 60.0);
    let mut result = ToolResult {
        source: document(Tool::GenaiBench, line),
        completed: found.count(&of("num_completed_requests")),
        failed: found.count(&of("num_error_requests")),
        requests_planned: found.count(&of("num_requests")),
        duration_s: found.positive(&of("run_duration")),
        input_tokens: found.count(&of("stats.num_input_tokens.sum")),
        output_tokens: found.count(&of("stats.num_output_tokens.sum")),
        request_throughput: found.figure(&of("requests_per_second")).or(per_minute),
        output_throughput: found.figure(&of("mean_output_throughput_tokens_per_s")),
        total_token_throughput: found.figure(&of("mean_total_tokens_throughput_tokens_per_s")),
        ..ToolResult::default()
    };
    // What it calls concurrency is a rate where the load was open.
    if found.figure(&of("arrival_requests_per_second")).is_some() {
        result.request_rate = found.positive(&of("num_concurrency")).map(ResultRate::PerSecond);
    } else {
        result.max_concurrency = found.small_count(&of("num_concurrency"));
        result.request_rate = result.max_concurrency.map(|_| ResultRate::Unlimited);
    }
    for (name, kind, from) in [
        ("ttft", LatencyKind::Ttft, CountsFrom::Send),
        ("tpot", LatencyKind::Tpot, CountsFrom::Output),
        ("e2e_latency", LatencyKind::E2e, CountsFrom::Send),
    ] {
        let empty = ResultLatency::new(kind, from, Grain::Request);
        let seconds = Shape { to_ms: 1e3, rank: plain_rank };
        result.latencies.extend(found.latency(&of(&format!("stats.{name}")), seconds, empty));
    }
    found.describe(&mut result, &of("scenario"), "scenario");
    result.requests = requests(&mut found, &result);
    found.pass_over(&[&of("error_codes_frequency"), &of("error_rate"), &of("iteration_type")]);
    found.finish(result)
}

fn requests(found: &mut Mapping<'_>, result: &ToolResult) -> Option<Vec<ResultRequest>> {
    let path = "individual_request_metrics";
    let all = found.find(path)?.items();
    let requests: Vec<ResultRequest> = all.iter().map(request).collect();
    let good = requests.iter().filter(|request| request.error.as_deref() == Some("")).count();
    if result.completed != Some(good as u64) {
        found.note(path, "does not hold every request that completed");
        return None;
    }
    Some(requests)
}

fn request(json: &Json) -> ResultRequest {
    let figure = |key: &str| json.at(key).and_then(|value| mapping::figure(value).ok());
    let count = |key: &str| json.at(key).and_then(|value| mapping::count(value).ok());
    let error = match (json.at("error_code"), json.at("error_message").and_then(Json::text)) {
        (None, _) => String::new(),
        (Some(_), Some(message)) => shown(message),
        (Some(code), None) => {
            code.number().map_or_else(|| "failed".to_owned(), |code| format!("code {code}"))
        }
    };
    ResultRequest {
        input_tokens: count("num_input_tokens"),
        output_tokens: count("num_output_tokens"),
        ttft_s: figure("ttft"),
        e2e_s: figure("e2e_latency"),
        error: Some(error),
        ..ResultRequest::default()
    }
}
