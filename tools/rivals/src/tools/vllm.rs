//! `vllm bench serve`, in Python and in Rust: they take the same words and write the same keys.

use std::ffi::OsString;

use super::{INPUT_TOKENS, number, percentiles};
use crate::bench::Bench;
use crate::program::{Run, words};
use crate::tokenizer;
use crate::tool::{Load, Report};

const RESULT: &str = "result.json";

pub(crate) fn arguments(load: &Load, bench: &Bench) -> Result<Vec<OsString>, String> {
    let requests = load.extent.requests()?;
    let mut line = words(["bench", "serve", "--backend", "openai", "--base-url", &load.url]);
    line.extend(words(["--endpoint", "/v1/completions", "--model", load.model]));
    line.push("--tokenizer".into());
    line.push(tokenizer::place(&bench.folder).into());
    line.extend(words(["--dataset-name", "random", "--disable-tqdm"]));
    line.extend(words(["--percentile-metrics", "ttft,itl", "--metric-percentiles", "50,99"]));
    line.extend(words(["--save-result", "--result-dir", ".", "--result-filename", RESULT]));
    for (flag, value) in [
        ("--random-input-len", INPUT_TOKENS.to_string()),
        ("--random-output-len", load.output_tokens.to_string()),
        ("--num-prompts", requests.to_string()),
        ("--max-concurrency", load.concurrency.to_string()),
    ] {
        line.extend(words([flag, &value]));
    }
    Ok(line)
}

pub(crate) fn report(load: &Load, run: &Run) -> Result<Report, String> {
    let document = run.json(RESULT)?;
    let mut notes = Vec::new();
    if !load.streamed {
        notes.push("has streams only".to_owned());
    }
    let report = Report {
        completed: number(&document, "/completed"),
        failed: number(&document, "/failed"),
        requests_per_s: number(&document, "/request_throughput"),
        tokens_per_s: number(&document, "/output_throughput"),
        ttft_ms: percentiles(&document, "/p50_ttft_ms", "/p99_ttft_ms"),
        itl_ms: percentiles(&document, "/p50_itl_ms", "/p99_itl_ms"),
        send_lag_ms: None,
        cpu_us_per_token: None,
        tokens_per_read: None,
        notes,
    };
    Ok(report.with_failures_noted())
}
