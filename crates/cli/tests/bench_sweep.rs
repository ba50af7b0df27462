//! `bench sweep serve`: servers are started and ended, every pair is measured, and the files are
//! where vLLM's tools look for them.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod support;

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use support::{output, text};

/// One that nobody had a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The engine as a server of a sweep.
fn engine(port: u16) -> String {
    format!("{} engine --mode paced --gap 1ms --port {port}", env!("CARGO_BIN_EXE_inferometer"))
}

fn bench(port: u16) -> String {
    format!(
        "vllm bench serve --base-url http://127.0.0.1:{port} --model paced --tokenizer \
         vocabulary:1000,10 --random-input-len 8 --random-output-len 4 --num-prompts 6"
    )
}

fn sweep(folder: &Path, serve: &str, bench: &str, more: &[&str]) -> Output {
    let arguments = ["bench", "sweep", "serve", "--serve-cmd", serve, "--bench-cmd", bench];
    output(&[&arguments[..], &["-e", "e"], more].concat(), folder)
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn every_server_is_measured_under_every_load_and_ended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("s.json"), r#"[{"ttft": "1ms"}, {"ttft": "30ms"}]"#).unwrap();
    fs::write(path.join("b.json"), r#"{"few": {"max_concurrency": 2}}"#).unwrap();
    let port = free_port();
    let files = ["--serve-params", "s.json", "--bench-params", "b.json", "--num-runs", "1"];
    let files = [&files[..], &["--after-bench-cmd", "true"]].concat();
    let ran = sweep(path, &engine(port), &bench(port), &files);
    let said = text(&ran.stderr);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{said}");
    let page = text(&ran.stdout);
    let experiment = path.join("results/e");
    for (ttft, least_ms) in [("1ms", 1.0), ("30ms", 30.0)] {
        let pair = experiment.join(format!("SERVE--ttft={ttft}-BENCH--few"));
        assert!(page.contains(&format!("SERVE--ttft={ttft}-BENCH--few")), "{page}");
        let run = json(&pair.join("run=0.json"));
        assert_eq!((&run["ttft"], &run["run_number"]), (&ttft.into(), &0.into()));
        assert_eq!((&run["_benchmark_name"], &run["completed"]), (&"few".into(), &6.into()));
        assert!(least_ms <= run["mean_ttft_ms"].as_f64().unwrap(), "{run}");
        assert!(run["mean_e2el_ms"].is_number(), "asked for, as vLLM's sweep does");
        assert_eq!(json(&pair.join("summary.json")), Value::Array(vec![run]));
    }
    let csv = fs::read_to_string(experiment.join("summary.csv")).unwrap();
    assert_eq!(csv.lines().count(), 3, "{csv}");
    assert!(TcpListener::bind(("127.0.0.1", port)).is_ok(), "no server is left behind");
    let again = sweep(path, &engine(port), &bench(port), &[&files[..], &["--resume"]].concat());
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert!(!text(&again.stderr).contains("starting"), "all of it is there");
    assert_eq!(text(&again.stdout), page, "and comes to the same");
}

#[test]
fn a_dry_run_shows_the_commands_and_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("s.json"), r#"[{"max_num_seqs": 4}, {"max_num_seqs": 8}]"#).unwrap();
    fs::write(path.join("b.json"), r#"[{"max_concurrency": 4}, {"max_concurrency": 8}]"#).unwrap();
    let files = ["--serve-params", "s.json", "--bench-params", "b.json", "--dry-run"];
    let linked = [&files[..], &["--link-vars", "max_num_seqs=max_concurrency"]].concat();
    let ran = sweep(path, "vllm serve m --port 8123", "vllm bench serve --model m", &linked);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let page = text(&ran.stdout);
    for part in [
        "server: vllm serve m --port 8123 --max-num-seqs 8",
        "awaited on http://127.0.0.1:8123",
        "3 × bench serve --model m --max-concurrency 8",
        "6 runs",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!path.join("results").exists(), "nothing was made");
}

#[test]
fn servers_that_cannot_be_measured_are_told_with_their_last_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let port = free_port();
    let dying = format!("sh -c 'echo out of memory; exit 9' --port {port}");
    let ran = sweep(path, &dying, &bench(port), &[]);
    let said = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(3), "{said}");
    assert!(said.contains("exit status: 9") && said.contains("  out of memory"), "{said}");
    let ran = sweep(path, &dying, &bench(port), &["--resume", "--continue-on-error"]);
    assert_eq!(ran.status.code(), Some(3), "{}", text(&ran.stderr));
    let noted = json(&path.join("results/e/SERVE-default.failure.json"));
    assert!(noted["error"].as_str().unwrap().contains("exit status: 9"), "{noted}");
    let missing = sweep(path, "no-such-program", &bench(port), &["--resume"]);
    assert!(text(&missing.stderr).contains("no-such-program"), "{}", text(&missing.stderr));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let ran = sweep(path, &engine(port), &bench(port), &["--resume"]);
    let said = text(&ran.stderr);
    assert!(ran.status.code() == Some(3) && said.contains("listens on"), "{said}");
}

#[test]
fn wrong_input_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("bad.json"), r#"[{"a": [1]}]"#).unwrap();
    let refused = |serve: &str, bench: &str, more: &[&str], reason: &str| {
        let ran = sweep(path, serve, bench, more);
        let said = text(&ran.stderr);
        assert!(ran.status.code() == Some(2) && said.contains(reason), "{reason}: {said}");
    };
    refused("vllm serve 'm", "vllm bench serve", &[], "a quote is not closed");
    refused("vllm serve m", "vllm bench latency", &[], "no `bench serve`");
    refused("vllm serve m", "vllm bench serve", &["--serve-params", "no.json"], "no such file");
    refused("vllm serve m", "vllm bench serve", &["--serve-params", "bad.json"], "`a`: [1]");
    refused("vllm serve m", "vllm bench serve", &["--num-runs", "0"], "nothing would be measured");
    refused("vllm serve m", "vllm bench serve", &["--resume"], "not there to be resumed");
    assert!(!path.join("results").exists());
}
