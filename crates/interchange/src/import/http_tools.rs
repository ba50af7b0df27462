//! Short results: the JSON documents of oha and k6, which measure any HTTP server, of inference-perf,
//! `InferenceX` (`InferenceMAX` before) and `LLMPerf`, and the text of `MLPerf`'s load generator.

use std::collections::BTreeMap;

use inferometer_analysis::tool_result::{
    CountsFrom, Grain, LatencyKind, ResultLatency, ResultRate, Tool, ToolResult,
};

use super::{
    ImportError, Imported, Mapping, Records, count, document_source, newlines, plain_rank,
    read_objects,
};
use crate::json::Json;

/// One result for each object of a text, filled from its paths.
fn read_with(
    text: &str,
    tool: Tool,
    fill: fn(&mut Mapping<'_>, &mut ToolResult),
) -> Result<Vec<Imported>, ImportError> {
    let read = |json: &Json, line| {
        let mut found = Mapping::new(json, String::new());
        let mut result = found.result(tool, line);
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
        let whole =
            found.latency("latencyPercentiles", 1e3, plain_rank, of_requests(LatencyKind::E2e));
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
        result.completed = all.map(|all| all.saturating_sub(result.failed.unwrap_or(0)));
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

/// Throughputs are given for each GPU, and times in seconds.
pub(super) fn read_inference_x(text: &str) -> Result<Vec<Imported>, ImportError> {
    const LATENCIES: [(&str, LatencyKind, CountsFrom, Grain); 4] = [
        ("ttft", LatencyKind::Ttft, CountsFrom::Send, Grain::Request),
        ("tpot", LatencyKind::Tpot, CountsFrom::Output, Grain::Request),
        ("itl", LatencyKind::Itl, CountsFrom::Output, Grain::Chunk),
        ("e2el", LatencyKind::E2e, CountsFrom::Send, Grain::Request),
    ];
    read_with(text, Tool::InferenceX, |found, result| {
        result.model = found.name("model");
        result.backend = found.name("framework");
        result.max_concurrency = found.small_count("conc");
        let tp = found.small_count("tp");
        result.tensor_parallel = tp.or_else(|| found.small_count("decode_tp"));
        let [prefill, decode] =
            ["num_prefill_gpu", "num_decode_gpu"].map(|it| found.small_count(it));
        let is_split = found.is_set("is_multinode");
        let (all, decode) = match (prefill.zip(decode), tp) {
            (Some((prefill, decode)), _) if is_split => (prefill.checked_add(decode), Some(decode)),
            _ => (tp, tp),
        };
        let mut total = |path: &str, gpus: Option<u32>| {
            Some(found.figure(path)? * f64::from(gpus.filter(|gpus| 0 < *gpus)?))
        };
        result.total_token_throughput = total("tput_per_gpu", all);
        result.output_throughput = total("output_tput_per_gpu", decode);
        for key in ["hw", "precision", "isl", "osl", "spec_decoding", "image"] {
            let text = found.name(key).or_else(|| found.count(key).map(|count| count.to_string()));
            result.metadata.extend(text.map(|text| (key.to_owned(), text)));
        }
        for (name, kind, from, grain) in LATENCIES {
            let mut ms = |statistic: &str| {
                found.figure(&format!("{statistic}_{name}")).map(|seconds| seconds * 1e3)
            };
            let empty = ResultLatency::new(kind, from, grain);
            let mut latency = ResultLatency { mean_ms: ms("mean"), std_ms: ms("std"), ..empty };
            for (rank, key) in [("50", "median"), ("90", "p90"), ("95", "p95"), ("99", "p99")] {
                let value = ms(key);
                latency.percentiles_ms.extend(value.map(|value| (rank.to_owned(), value)));
            }
            let is_known = latency.mean_ms.is_some() || !latency.percentiles_ms.is_empty();
            result.latencies.extend(is_known.then_some(latency));
        }
    })
}

pub(super) fn read_llmperf(text: &str) -> Result<Vec<Imported>, ImportError> {
    const STATISTICS: [(&str, &str); 10] = [
        ("mean", "mean"),
        ("std", "stddev"),
        ("min", "min"),
        ("max", "max"),
        ("25", "quantiles_p25"),
        ("50", "quantiles_p50"),
        ("75", "quantiles_p75"),
        ("90", "quantiles_p90"),
        ("95", "quantiles_p95"),
        ("99", "quantiles_p99"),
    ];
    const LATENCIES: [(&str, LatencyKind); 2] =
        [("results_ttft_s", LatencyKind::Ttft), ("results_end_to_end_latency_s", LatencyKind::E2e)];
    read_with(text, Tool::LlmPerf, |found, result| {
        let per_minute = found.figure("results_num_completed_requests_per_min");
        result.request_throughput = per_minute.map(|requests| requests / 60.0);
        for (name, kind) in LATENCIES {
            let ms =
                |key: &str| found.figure(&format!("{name}_{key}")).map(|seconds| seconds * 1e3);
            let latency = of_requests(kind).with(&STATISTICS, ms);
            result.latencies.extend(latency.filter(|latency| latency.mean_ms.is_some()));
        }
    })
}

/// One result for each summary in a text.
pub(super) fn read_mlperf(text: &str) -> Result<Vec<Imported>, ImportError> {
    let mut records = Records::default();
    let mut line = 1;
    for (number, part) in text.split("MLPerf Results Summary").enumerate() {
        if 0 < number && !records.are_too_many() {
            records.push(read_mlperf_summary(part, line));
        }
        line += newlines(part);
    }
    records.finish()
}

/// Lines such as `99.00 percentile first token latency (ns)   : 1760966679`.
fn read_mlperf_summary(text: &str, line: u32) -> ToolResult {
    const STATISTICS: [(&str, &str); 8] = [
        ("mean", "mean"),
        ("min", "min"),
        ("max", "max"),
        ("50", "50.00 percentile"),
        ("90", "90.00 percentile"),
        ("95", "95.00 percentile"),
        ("99", "99.00 percentile"),
        ("99.9", "99.90 percentile"),
    ];
    const LATENCIES: [(&str, LatencyKind, CountsFrom); 3] = [
        ("latency", LatencyKind::E2e, CountsFrom::Schedule),
        ("first token latency", LatencyKind::Ttft, CountsFrom::Schedule),
        ("time to output token", LatencyKind::Tpot, CountsFrom::Output),
    ];
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let lines: BTreeMap<String, &str> =
        lines.map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim())).collect();
    let number = |name: &str| {
        let value: f64 = lines.get(name)?.parse().ok()?;
        (value.is_finite() && 0.0 <= value).then_some(value)
    };
    let word = |name: &str| lines.get(name).map(|word| (*word).to_owned());
    let mut result =
        ToolResult { source: document_source(Tool::MlPerf, line), ..ToolResult::default() };
    result.source.name = word("sut name").unwrap_or_default();
    let first = |names: [&str; 2]| names.into_iter().find_map(number);
    result.request_throughput = first(["completed samples per second", "samples per second"]);
    result.output_throughput = first(["completed tokens per second", "tokens per second"]);
    let is_server = word("scenario").is_some_and(|scenario| scenario == "Server");
    result.request_rate = number("target_qps").filter(|_| is_server).map(ResultRate::PerSecond);
    for name in ["scenario", "mode", "result is"] {
        result.metadata.extend(word(name).map(|word| (name.to_owned(), word)));
    }
    for (name, kind, from) in LATENCIES {
        let ms = |statistic: &str| number(&format!("{statistic} {name} (ns)")).map(|ns| ns / 1e6);
        let latency = ResultLatency::new(kind, from, Grain::Request).with(&STATISTICS, ms);
        result
            .latencies
            .extend(latency.filter(|it| it.mean_ms.is_some() || !it.percentiles_ms.is_empty()));
    }
    result
}
