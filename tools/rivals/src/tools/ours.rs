//! `inferometer run`.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{INPUT_TOKENS, number, percentiles};
use crate::program::{Run, words};
use crate::tool::{Extent, Load, Report};

pub(crate) fn version(binary: &Path) -> Result<String, String> {
    let output = Command::new(binary)
        .arg("--version")
        .output()
        .map_err(|error| format!("{} does not start: {error}", binary.display()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    Ok(said.split_whitespace().nth(1).unwrap_or("?").to_owned())
}

pub(crate) fn arguments(load: &Load) -> Vec<OsString> {
    let mut line = shape(load);
    line.extend(words::<String>(["--concurrency".into(), load.concurrency.to_string()]));
    line
}

/// The same requests at a constant rate, whatever is in flight.
pub(crate) fn open_loop_arguments(load: &Load, rate_per_s: u32) -> Vec<OsString> {
    let mut line = shape(load);
    line.extend(words::<String>(["--rate".into(), rate_per_s.to_string()]));
    line
}

fn shape(load: &Load) -> Vec<OsString> {
    let extent = match load.extent {
        Extent::Requests(requests) => ["--requests".to_owned(), requests.to_string()],
        Extent::Seconds(seconds) => ["--duration".to_owned(), format!("{seconds}s")],
    };
    let mut line = words(["run", &load.url, "--api", "completions"]);
    line.extend(words(["--json", "--quiet", "--output", "runs"]));
    line.extend(words::<String>([
        "--input-tokens".into(),
        INPUT_TOKENS.to_string(),
        "--output-tokens".into(),
        load.output_tokens.to_string(),
    ]));
    line.extend(words(extent));
    line.extend(words(load.flags.iter().cloned()));
    if !load.streamed {
        line.push("--no-stream".into());
    }
    line
}

pub(crate) fn report(run: &Run) -> Result<Report, String> {
    let document: Value = serde_json::from_str(&run.stdout)
        .map_err(|_| run.succeeded().err().unwrap_or_else(|| "printed no JSON".to_owned()))?;
    let metric = |name: &str| {
        let place = |percentile: &str| format!("/metrics/{name}/{percentile}");
        percentiles(&document, &place("p50"), &place("p99"))
    };
    let completed = number(&document, "/outcomes/ok");
    let scheduled = number(&document, "/scheduled");
    let tokens_per_s = number(&document, "/metrics/output_throughput/value");
    let cores = number(&document, "/client/cores_used").zip(tokens_per_s);
    // The first read with output of every answer, and those after it.
    let reads = number(&document, "/metrics/ttft_ms/n").zip(number(&document, "/metrics/icl_ms/n"));
    let tokens = number(&document, "/tokens/output_total");
    let report = Report {
        completed,
        failed: scheduled.zip(completed).map(|(scheduled, completed)| scheduled - completed),
        requests_per_s: number(&document, "/metrics/request_throughput/value"),
        tokens_per_s,
        cpu_us_per_token: cores.map(|(cores, tokens_per_s)| cores * 1e6 / tokens_per_s),
        tokens_per_read: tokens.zip(reads).map(|(tokens, (first, later))| tokens / (first + later)),
        ttft_ms: metric("ttft_ms"),
        itl_ms: metric("itl_ms"),
        send_lag_ms: metric("send_lag_ms"),
        notes: warnings(&document),
    };
    Ok(report.with_failures_noted())
}

/// What the run says against itself; notes are not held against anybody.
fn warnings(document: &Value) -> Vec<String> {
    let listed = document.pointer("/warnings").and_then(Value::as_array).into_iter().flatten();
    listed
        .filter(|warning| warning["severity"] != "note")
        .filter_map(|warning| {
            let severity = warning["severity"].as_str()?;
            Some(format!("{severity}: {}", warning["key"].as_str()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_warnings_that_matter_reach_the_table() {
        let document = json!({"warnings": [
            {"severity": "note", "key": "few-requests"},
            {"severity": "degraded", "key": "sent-late"},
        ]});
        assert_eq!(warnings(&document), ["degraded: sent-late"]);
    }
}
