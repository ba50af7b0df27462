//! `wrk`: reads and discards. Beside a client of one-shot requests it is the mark to reach; on a
//! streamed endpoint it shows what the server itself can do.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::INPUT_TOKENS;
use crate::program::{Run, words};
use crate::tokenizer;
use crate::tool::{Extent, Load, Report};

pub(crate) fn version() -> Result<String, String> {
    let remedy = || "not installed; the system has a package `wrk`".to_owned();
    let output = Command::new("wrk").arg("--version").output().map_err(|_| remedy())?;
    let said = String::from_utf8_lossy(&output.stdout);
    Ok(said.split_whitespace().nth(1).unwrap_or("?").to_owned())
}

pub(crate) fn arguments(load: &Load, folder: &Path) -> Result<Vec<OsString>, String> {
    let Extent::Seconds(seconds) = load.extent else {
        return Err("wrk stops by time only".to_owned());
    };
    std::fs::write(folder.join("request.lua"), script(load))
        .map_err(|error| format!("cannot write request.lua: {error}"))?;
    let url = format!("{}/v1/completions", load.url);
    Ok(words([
        "--threads=1".to_owned(),
        format!("--connections={}", load.concurrency),
        format!("--duration={seconds}s"),
        "--script=request.lua".to_owned(),
        url,
    ]))
}

/// The request that our own client sends, byte for byte but for its prompt.
fn script(load: &Load) -> String {
    let mut body = json!({
        "model": load.model,
        "prompt": tokenizer::prompt(0, INPUT_TOKENS),
        "max_tokens": load.output_tokens,
        "stream": load.streamed,
    });
    if load.streamed {
        body["stream_options"] = json!({"include_usage": true});
    }
    format!(
        "wrk.method = \"POST\"\nwrk.headers[\"content-type\"] = \"application/json\"\n\
         wrk.body = [[{body}]]\n"
    )
}

pub(crate) fn report(load: &Load, run: &Run) -> Result<Report, String> {
    let after = |label: &str| {
        let line = run.stdout.lines().find_map(|line| line.trim().strip_prefix(label))?;
        Some(line.trim().to_owned())
    };
    let requests_per_s: f64 = after("Requests/sec:")
        .and_then(|number| number.parse().ok())
        .ok_or("printed no Requests/sec")?;
    let refused: f64 =
        after("Non-2xx or 3xx responses:").and_then(|number| number.parse().ok()).unwrap_or(0.0);
    let notes = after("Socket errors:").map(|errors| format!("socket errors: {errors}"));
    let report = Report {
        requests_per_s: Some(requests_per_s),
        // It counts requests; every answer has the tokens that were asked for.
        tokens_per_s: load.streamed.then_some(requests_per_s * f64::from(load.output_tokens)),
        failed: Some(refused),
        notes: notes.into_iter().collect(),
        ..Report::default()
    };
    Ok(report.with_failures_noted())
}
