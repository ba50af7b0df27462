//! The JSON documents of oha and k6, which measure any HTTP server, and of inference-perf.

use inferometer_analysis::tool_result::{
    CountsFrom, Grain, LatencyKind, ResultLatency, Tool, ToolResult,
};

use super::{ImportError, Imported, Mapping, count, document_source, plain_rank, read_objects};
use crate::json::Json;

/// One result for each object of a text, filled from its paths.
fn read_with(
    text: &str,
    tool: Tool,
    fill: fn(&mut Mapping<'_>, &mut ToolResult),
) -> Result<Vec<Imported>, ImportError> {
    let read = |json: &Json, line| {
        let mut found = Mapping::new(json, String::new());
        let source = document_source(tool, line);
        let mut result = ToolResult { source, ..ToolResult::default() };
        fill(&mut found, &mut result);
        found.finish(result)
    };
    read_objects(text, |_| true, "is no result", read)
}

fn of_requests(kind: LatencyKind) -> ResultLatency {
    ResultLatency::new(kind, CountsFrom::Send, Grain::Request)
}

pub(super) fn read_oha(text: &str) -> Result<Vec<Imported>, ImportError> {
    read_with(text, Tool::Oha, |found, result| {
        let sum = |json: Option<&Json>, is_counted: fn(&str) -> bool| -> u64 {
            let entries = json.map_or(&[][..], Json::entries).iter();
            let counted = entries.filter(|(key, _)| is_counted(key));
            counted.filter_map(|(_, value)| count(value).ok()).sum()
        };
        let statuses = found.find("statusCodeDistribution");
        let good = sum(statuses, |status| status.starts_with('2'));
        let bad = sum(statuses, |status| !status.starts_with('2'));
        result.completed = Some(good);
        result.failed = Some(bad + sum(found.find("errorDistribution"), |_| true));
        result.duration_s = found.positive("summary.total");
        result.request_throughput = found.figure("summary.requestsPerSec");
        let rank = |key: &str| plain_rank(key);
        let whole = found.latency("latencyPercentiles", 1e3, rank, of_requests(LatencyKind::E2e));
        if let Some(mut whole) = whole {
            let mut ms = |path: &str| found.figure(path).map(|seconds| seconds * 1e3);
            whole.mean_ms = ms("summary.average");
            whole.min_ms = ms("summary.fastest");
            whole.max_ms = ms("summary.slowest");
            result.latencies.push(whole);
        }
    })
}

pub(super) fn read_k6(text: &str) -> Result<Vec<Imported>, ImportError> {
    read_with(text, Tool::K6, |found, result| {
        let all = found.count("metrics.http_reqs.count");
        result.failed = found.count("metrics.http_req_failed.passes");
        result.completed = all.map(|all| all.saturating_sub(result.failed.unwrap_or(0)));
        result.request_throughput = found.figure("metrics.http_reqs.rate");
        result.max_concurrency = found.small_count("metrics.vus_max.value");
        let rank = |key: &str| match key {
            "med" => Some("50".to_owned()),
            key => plain_rank(&key.replace(['(', ')'], "")),
        };
        let path = "metrics.http_req_duration";
        result.latencies.extend(found.latency(path, 1.0, rank, of_requests(LatencyKind::E2e)));
    })
}

pub(super) fn read_inference_perf(text: &str) -> Result<Vec<Imported>, ImportError> {
    const LATENCIES: [(&str, LatencyKind); 3] = [
        ("request_latency", LatencyKind::E2e),
        ("time_to_first_token", LatencyKind::Ttft),
        ("time_per_output_token", LatencyKind::Tpot),
    ];
    read_with(text, Tool::InferencePerf, |found, result| {
        result.completed = found.count("successes.count");
        result.failed = found.count("failures.count");
        let mut rate = |name: &str| found.figure(&format!("successes.throughput.{name}_per_sec"));
        result.request_throughput = rate("requests");
        result.output_throughput = rate("output_tokens");
        result.total_token_throughput = rate("total_tokens");
        for (name, kind) in LATENCIES {
            let mut empty = of_requests(kind);
            if kind == LatencyKind::Tpot {
                empty.from = CountsFrom::Output;
            }
            let path = format!("successes.latency.{name}");
            let rank =
                |key: &str| if key == "median" { Some("50".to_owned()) } else { plain_rank(key) };
            result.latencies.extend(found.latency(&path, 1e3, rank, empty));
        }
    })
}
