//! The JSON document: exactly one on standard output, with all that scripts rely on.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use inferometer_model::Outcome;
use serde_json::Value;

use support::{Engine, inferometer, output, text};

fn document(arguments: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "4ms", "--gap", "2ms"]);
    let url = engine.url();
    let mut all = vec!["run", &url, "--json", "--output-tokens", "8"];
    all.extend(arguments);
    let ran = output(&all, folder.path());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let mut documents = serde_json::Deserializer::from_slice(&ran.stdout).into_iter::<Value>();
    let document = documents.next().unwrap().unwrap();
    assert!(documents.next().is_none(), "one document and nothing else");
    for file in ["manifest", "journal", "summary"] {
        let path = document["files"][file].as_str().unwrap();
        assert!(folder.path().join(path).exists(), "{path}");
    }
    document
}

#[test]
fn a_closed_loop_gives_every_promised_key() {
    let document = document(&["--requests", "30", "--concurrency", "4", "--metadata", "site=lab"]);
    assert_eq!(document["schema"], "inferometer.summary/1");
    assert!(["valid", "degraded"].contains(&document["verdict"].as_str().unwrap()));
    for outcome in Outcome::all() {
        let wanted = if outcome == Outcome::Ok { 30 } else { 0 };
        assert_eq!(document["outcomes"][outcome.key()], wanted, "{outcome}");
    }
    for metric in ["ttft", "ttft_schedule", "icl", "itl", "tpot", "e2e", "send_lag"] {
        let values = &document["metrics"][format!("{metric}_ms")];
        for statistic in ["mean", "std", "p50", "p90", "p95", "p99"] {
            assert!(values[statistic].is_f64(), "{metric}.{statistic}: {values}");
        }
        assert!(0 < values["n"].as_u64().unwrap(), "{metric}");
    }
    for metric in ["request", "input", "output", "total", "per_user", "peak_output"] {
        let value = &document["metrics"][format!("{metric}_throughput")]["value"];
        // A run shorter than a second has no busiest second.
        let short = document["window"]["duration_s"].as_f64().unwrap() < 1.0;
        let is_peak = metric == "peak_output";
        let positive = value.as_f64().is_some_and(|value| 0.0 < value);
        assert!(positive || (is_peak && short && value.is_null()), "{metric}: {value}");
    }
    for print in ["workload", "plan"] {
        assert_eq!(document[print]["fingerprint"].as_str().unwrap().len(), 32);
    }
    assert_eq!(document["run"]["metadata"]["site"], "lab");
    assert!(document["client"].is_object() && document["warnings"].is_array());
}

#[test]
fn what_is_missing_is_null_with_a_reason() {
    let document = document(&["--requests", "4", "--rate", "50", "--no-stream"]);
    for metric in ["ttft_ms", "icl_ms", "itl_ms", "tpot_ms"] {
        let values = &document["metrics"][metric];
        assert!(values["p50"].is_null() && values["n"] == 0, "{metric}: {values}");
        assert!(values["reason"].as_str().unwrap().contains("not streamed"), "{metric}");
    }
    assert!(document["metrics"]["e2e_ms"]["p50"].is_f64());
    let per_user = &document["metrics"]["per_user_throughput"];
    assert!(per_user["value"].is_null(), "an open loop has no users");
    assert!(!per_user["reason"].as_str().unwrap().is_empty());
}

#[test]
fn a_dry_run_sends_nothing_and_names_the_plan() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["run", "http://127.0.0.1:9", "--dry-run", "--json"];
    let ran = output(&arguments, folder.path());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(document["plan"]["fingerprint"].as_str().unwrap().len(), 32);
    assert!(!folder.path().join("runs").exists());
}

/// The page of a plan, by the names of its lines.
fn dry_run(arguments: &[&str]) -> impl Fn(&str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let all = [&["run", "--dry-run"], arguments].concat();
    let ran = output(&all, folder.path());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let page = text(&ran.stdout);
    move |name: &str| {
        let mut lines =
            page.lines().skip_while(|line| line.split_whitespace().next() != Some(name));
        let first = lines.next().unwrap().trim_start()[name.len()..].trim();
        // A long line goes on below itself.
        let more = lines.take_while(|line| line.starts_with("    ")).map(str::trim);
        [first].into_iter().chain(more).collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn a_dry_run_says_the_load_in_plain_words() {
    let page = dry_run(&["--rate", "20", "--burstiness", "0.5", "--max-concurrency", "64"]);
    assert_eq!(
        page("load"),
        "open loop, 20 requests/s, gamma arrivals (burstiness 0.5), at most 64 in flight \
         (capped-open)"
    );
    assert_eq!((page("requests"), page("warm-up")), ("100".to_owned(), "none".to_owned()));
    let page = dry_run(&["--think-time", "2s", "--duration", "1m", "--requests", "30"]);
    assert_eq!(page("load"), "closed loop, 8 in flight, think time 2 s");
    assert_eq!(page("requests"), "30 or more (until 30 requests and 60 s are both reached)");
    let ramp = ["--ramp", "2..20:60s,20..5:30s", "--arrivals", "constant", "--warm-up", "16"];
    let page = dry_run(&ramp);
    assert_eq!(
        page("load"),
        "open loop, linear ramp from 2 to 20 requests/s over 60 s, then 20 to 5 requests/s over \
         30 s, evenly spaced"
    );
    assert_eq!(page("requests"), "1,035 in 1 m 30 s");
    assert_eq!(page("warm-up"), "16 requests before the run, not counted");
    let page = dry_run(&["--rate", "inf", "--max-concurrency", "3"]);
    assert_eq!(page("load"), "closed loop, 3 in flight");
    let page = dry_run(&["--rate", "unlimited", "--requests", "7"]);
    assert_eq!(page("load"), "open loop, everything at once");
}

/// Faults: 111.
#[test]
fn a_key_reaches_no_file_and_no_page() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "1ms", "--gap", "1ms"]);
    let key = "sk-inferometer-test-0123456789";
    let ran = inferometer()
        .args(["run", &engine.url(), "--requests", "4", "--output-tokens", "2"])
        .args(["--header", "X-Token: header-secret-42", "--metadata", &format!("note={key}")])
        .env("OPENAI_API_KEY", key)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let mut places = vec![ran.stdout, ran.stderr];
    let run = support::latest_run(folder.path());
    for file in std::fs::read_dir(run.path()).unwrap() {
        places.push(std::fs::read(file.unwrap().path()).unwrap());
    }
    assert!(5 <= places.len(), "manifest, journal and summary were searched");
    for place in &places {
        for secret in [key, "header-secret-42"] {
            let found = place.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "a secret was written down");
        }
    }
    let manifest = String::from_utf8(std::fs::read(run.path().join("manifest.json")).unwrap());
    assert!(manifest.unwrap().contains("X-Token"), "names are kept");
}

#[test]
fn the_block_has_the_published_labels() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "2ms", "--gap", "1ms"]);
    let url = engine.url();
    let ran = output(
        &["run", &url, "-q", "--format", "vllm", "--requests", "8", "--output-tokens", "6"],
        folder.path(),
    );
    let block = text(&ran.stdout);
    // The block has no place for doubt, so the doubt stands beside it.
    assert!(text(&ran.stderr).contains("8 of 8 requests ok"), "{}", text(&ran.stderr));
    let labels: Vec<&str> =
        block.lines().map(|line| line.split_once(':').map_or(line, |(label, _)| label)).collect();
    assert_eq!(
        labels,
        [
            "============ Serving Benchmark Result ============",
            "Successful requests",
            "Benchmark duration (s)",
            "Total input tokens",
            "Total generated tokens",
            "Request throughput (req/s)",
            "Output token throughput (tok/s)",
            "Total Token throughput (tok/s)",
            "---------------Time to First Token----------------",
            "Mean TTFT (ms)",
            "Median TTFT (ms)",
            "P99 TTFT (ms)",
            "-----Time per Output Token (excl. 1st token)------",
            "Mean TPOT (ms)",
            "Median TPOT (ms)",
            "P99 TPOT (ms)",
            "---------------Inter-token Latency----------------",
            "Mean ITL (ms)",
            "Median ITL (ms)",
            "P99 ITL (ms)",
            "==================================================",
        ]
    );
    let value = |label: &str| {
        let line = block.lines().find(|line| line.starts_with(label)).unwrap();
        line[41..].trim().parse::<f64>().unwrap()
    };
    assert!((value("Successful requests:") - 8.0).abs() < f64::EPSILON);
    assert!((value("Total generated tokens:") - 48.0).abs() < f64::EPSILON);
}
