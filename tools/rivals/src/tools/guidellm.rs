//! `guidellm run`.

use std::ffi::OsString;
use std::path::Path;

use serde_json::json;

use super::{INPUT_TOKENS, number, percentiles};
use crate::bench::Bench;
use crate::program::{Run, words};
use crate::tokenizer;
use crate::tool::{Load, Report};

const RESULT: &str = "result.json";
const PROMPTS: &str = "prompts.jsonl";

pub(crate) fn arguments(
    load: &Load,
    bench: &Bench,
    folder: &Path,
) -> Result<Vec<OsString>, String> {
    let requests = load.extent.requests()?;
    std::fs::write(folder.join(PROMPTS), prompts(requests, load.output_tokens))
        .map_err(|error| format!("cannot write {PROMPTS}: {error}"))?;
    let backend = format!(
        "kind=openai_http,target={},model={},request_format=/v1/completions,stream={}",
        load.url, load.model, load.streamed
    );
    let tokenizer = format!("kind=hf_auto,model={}", tokenizer::place(&bench.folder).display());
    Ok(words([
        "run".to_owned(),
        "--disable-progress".to_owned(),
        "--backend".to_owned(),
        backend,
        "--profile".to_owned(),
        format!("kind=concurrent,streams={}", load.concurrency),
        "--constraint".to_owned(),
        format!("kind=max_requests,count={requests}"),
        "--tokenizer".to_owned(),
        tokenizer,
        "--data".to_owned(),
        format!("kind=json_file,path={PROMPTS}"),
        "--output".to_owned(),
        format!("kind=json,path={RESULT}"),
    ]))
}

/// Its own generator of prompts never ends on a tokenizer that does not know English.
fn prompts(requests: u32, output_tokens: u32) -> String {
    let lines: Vec<String> = (0..requests as usize)
        .map(|number| {
            let prompt = tokenizer::prompt(number, INPUT_TOKENS);
            json!({"prompt": prompt, "output_tokens_count": output_tokens}).to_string()
        })
        .collect();
    lines.join("\n")
}

pub(crate) fn report(run: &Run) -> Result<Report, String> {
    let document = run.json(RESULT)?;
    let metrics = document.pointer("/benchmarks/0/metrics").ok_or("reported no benchmark")?;
    let successful = |name: &str| {
        let place = |percentile: &str| format!("/{name}/successful/percentiles/{percentile}");
        percentiles(metrics, &place("p50"), &place("p99"))
    };
    let report = Report {
        completed: number(metrics, "/request_totals/successful"),
        failed: number(metrics, "/request_totals/errored"),
        requests_per_s: number(metrics, "/requests_per_second/successful/mean"),
        tokens_per_s: number(metrics, "/output_tokens_per_second/successful/mean"),
        ttft_ms: successful("time_to_first_token_ms"),
        itl_ms: successful("inter_token_latency_ms"),
        send_lag_ms: None,
        cpu_us_per_token: None,
        tokens_per_read: None,
        notes: Vec::new(),
    };
    Ok(report.with_failures_noted())
}
