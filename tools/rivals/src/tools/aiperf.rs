//! `aiperf profile`.

use std::ffi::OsString;

use serde_json::Value;

use super::{INPUT_TOKENS, number, percentiles};
use crate::program::{Run, words};
use crate::tokenizer;
use crate::tool::{Load, Report};

pub(crate) fn arguments(load: &Load) -> Result<Vec<OsString>, String> {
    let requests = load.extent.requests()?;
    let mut line = words(["profile", "--model", load.model, "--url", &load.url]);
    line.extend(words(["--endpoint-type", "completions", "--tokenizer", tokenizer::NAME]));
    line.extend(words(["--artifact-dir", ".", "--ui", "none"]));
    line.extend(words(["--no-gpu-telemetry", "--no-server-metrics"]));
    for (flag, value) in [
        ("--isl", INPUT_TOKENS.to_string()),
        ("--osl", load.output_tokens.to_string()),
        ("--concurrency", load.concurrency.to_string()),
        ("--request-count", requests.to_string()),
    ] {
        line.extend(words([flag, &value]));
    }
    if load.streamed {
        line.push("--streaming".into());
    }
    Ok(line)
}

pub(crate) fn report(run: &Run) -> Result<Report, String> {
    let document = run.json("profile_export_aiperf.json")?;
    let metric =
        |name: &str| percentiles(&document, &format!("/{name}/p50"), &format!("/{name}/p99"));
    let notes = errors(&document);
    let report = Report {
        completed: number(&document, "/request_count/avg"),
        failed: number(&document, "/error_request_count/avg"),
        requests_per_s: number(&document, "/request_throughput/avg"),
        tokens_per_s: number(&document, "/output_token_throughput/avg"),
        ttft_ms: metric("time_to_first_token"),
        // Its `inter_token_latency` is a mean per answer; every event here is one token.
        itl_ms: metric("inter_chunk_latency"),
        send_lag_ms: None,
        cpu_us_per_token: None,
        tokens_per_read: None,
        notes,
    };
    Ok(report.with_failures_noted())
}

fn errors(document: &Value) -> Vec<String> {
    let listed = document["error_summary"].as_array().into_iter().flatten();
    listed.filter_map(|error| Some(error.pointer("/error_details/message")?.to_string())).collect()
}
