//! genai-bench: one JSON file for each scenario and load.

use inferometer_analysis::tool_result::{
    CountsFrom, Form, Grain, LatencyKind, ResultLatency, ResultRate, ResultRequest, ResultSource,
    Tool, ToolResult,
};

use super::mapping::{self, Mapping, Shape, plain_rank, shown};
use super::records::{Node, read_objects};
use super::{ImportError, Imported};

const LATENCIES: [(&str, LatencyKind, CountsFrom); 3] = [
    ("ttft", LatencyKind::Ttft, CountsFrom::Send),
    ("tpot", LatencyKind::Tpot, CountsFrom::Output),
    ("e2e_latency", LatencyKind::E2e, CountsFrom::Send),
];
const SECONDS: Shape = Shape { to_ms: 1e3, rank: plain_rank };

pub(super) fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let check = |node: &Node| match node.at("aggregated_metrics") {
        Some(_) => Ok(()),
        None => Err("has no `aggregated_metrics`".to_owned()),
    };
    read_objects(text, check, sheet)
}

fn sheet(node: &Node, line: u32) -> ToolResult {
    let mut found = Mapping::new(node, String::new());
    let of = |name: &str| format!("aggregated_metrics.{name}");
    let per_minute = found.figure(&of("requests_per_minute")).map(|rate| rate / 60.0);
    let mut sheet = ToolResult {
        source: ResultSource {
            tool: Tool::GenaiBench,
            form: Form::Document,
            line: Some(line),
            ..ResultSource::default()
        },
        completed: found.count(&of("num_completed_requests")),
        failed: found.count(&of("num_error_requests")),
        requests_planned: found.count(&of("num_requests")),
        duration_s: found.figure(&of("run_duration")).filter(|seconds| *seconds > 0.0),
        input_tokens: found.count(&of("stats.num_input_tokens.sum")),
        output_tokens: found.count(&of("stats.num_output_tokens.sum")),
        request_throughput: found.figure(&of("requests_per_second")).or(per_minute),
        output_throughput: found.figure(&of("mean_output_throughput_tokens_per_s")),
        total_token_throughput: found.figure(&of("mean_total_tokens_throughput_tokens_per_s")),
        ..ToolResult::default()
    };
    load(&mut found, &mut sheet);
    for (name, kind, from) in LATENCIES {
        let empty = ResultLatency::new(kind, from, Grain::Request);
        sheet.latencies.extend(found.latency(&of(&format!("stats.{name}")), SECONDS, empty));
    }
    let scenario = found.name(&of("scenario"));
    sheet.metadata.extend(scenario.map(|scenario| ("scenario".to_owned(), scenario)));
    sheet.requests = requests(&mut found, &sheet);
    found.pass_over(&[&of("error_codes_frequency"), &of("error_rate"), &of("iteration_type")]);
    found.finish(sheet)
}

/// What it calls concurrency is a rate where the load was open.
fn load(found: &mut Mapping<'_>, sheet: &mut ToolResult) {
    let arrivals = found.figure("aggregated_metrics.arrival_requests_per_second");
    if arrivals.is_some() {
        let asked = found.figure("aggregated_metrics.num_concurrency").filter(|rate| *rate > 0.0);
        sheet.request_rate = asked.map(ResultRate::PerSecond);
        return;
    }
    sheet.max_concurrency = found.small_count("aggregated_metrics.num_concurrency");
    sheet.request_rate = sheet.max_concurrency.map(|_| ResultRate::Unlimited);
}

fn requests(found: &mut Mapping<'_>, sheet: &ToolResult) -> Option<Vec<ResultRequest>> {
    let path = "individual_request_metrics";
    let all = found.find(path)?.items();
    let requests: Vec<ResultRequest> = all.iter().map(request).collect();
    let good = requests.iter().filter(|request| request.error.as_deref() == Some("")).count();
    if sheet.completed != Some(good as u64) {
        found.note(path, "does not hold every request that completed");
        return None;
    }
    Some(requests)
}

fn request(node: &Node) -> ResultRequest {
    let figure = |key: &str| node.at(key).and_then(|value| mapping::figure(value).ok());
    let count = |key: &str| node.at(key).and_then(|value| mapping::count(value).ok());
    let error = match (node.at("error_code"), node.at("error_message").and_then(Node::text)) {
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
