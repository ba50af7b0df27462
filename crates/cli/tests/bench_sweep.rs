//! `bench sweep serve`: servers are started and ended, every pair is measured, and the files are
//! where vLLM's tools look for them.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{ExitStatus, Output, Stdio};
use std::time::Duration;

use inferometer_load::SystemClock;
use inferometer_model::Clock;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use support::{inferometer, output, text};

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
        "vllm bench serve --base-url http://127.0.0.1:{port} --model paced --skip-tokenizer-init \
         --random-input-len 8 --random-output-len 4 --num-prompts 6"
    )
}

fn sweep(folder: &Path, serve: &str, bench: &str, more: &[&str]) -> Output {
    let arguments = ["bench", "sweep", "serve", "--serve-cmd", serve, "--bench-cmd", bench];
    output(&[&arguments[..], &["-e", "e"], more].concat(), folder)
}

/// One run that takes minutes; the signals come as soon as it sends.
fn stopped(folder: &Path, serve: &str, port: u16, signals: &[Signal]) -> (ExitStatus, String) {
    let long = format!("{} --num-prompts 1000 --max-concurrency 1", once(&bench(port)));
    let mut sweep = inferometer()
        .args(["bench", "sweep", "serve", "--serve-cmd", serve, "--bench-cmd", &long, "-e", "e"])
        .args(["--num-runs", "1"])
        .current_dir(folder)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(sweep.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("measuring") {
        assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "{said}");
    }
    for signal in signals {
        kill(Pid::from_raw(i32::try_from(sweep.id()).unwrap()), *signal).unwrap();
    }
    // The run holds the other end, too: this is the end of both.
    stderr.read_to_string(&mut said).unwrap();
    (sweep.wait().unwrap(), said)
}

/// The flags that a long run sets itself are left out.
fn once(bench: &str) -> String {
    bench.replace("--num-prompts 6", "").replace("output-len 4", "output-len 64")
}

/// A killed process gives its port back a moment later.
fn is_given_back(port: u16) -> bool {
    let clock = SystemClock::new();
    while TcpListener::bind(("127.0.0.1", port)).is_err() {
        if Duration::from_secs(10) < Duration::from_nanos(clock.now().as_nanos()) {
            return false;
        }
        std::thread::yield_now();
    }
    true
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
    let resumed = [&files[..], &["--resume"]].concat();
    let again = || sweep(path, &engine(port), &bench(port), &resumed);
    let same = again();
    assert_eq!(same.status.code(), ran.status.code(), "{}", text(&same.stderr));
    assert!(!text(&same.stderr).contains("starting"), "all of it is there");
    assert_eq!(text(&same.stdout), page, "and comes to the same");

    let pair = experiment.join("SERVE--ttft=1ms-BENCH--few");
    let mut run = json(&pair.join("run=0.json"));
    run["inferometer_verdict"] = "invalid".into();
    fs::write(pair.join("run=0.json"), run.to_string()).unwrap();
    assert_eq!(again().status.code(), Some(4), "an invalid run stays one");

    let summary = pair.join("summary.json");
    let imported = output(&["import", summary.to_str().unwrap(), "--json"], path);
    let name = "\"configuration\": \"ttft=1ms\"";
    assert!(text(&imported.stdout).contains(name), "{}", text(&imported.stdout));
}

#[test]
fn a_run_that_was_stopped_is_made_again_and_so_is_one_that_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let port = free_port();
    let (status, said) = stopped(path, &engine(port), port, &[Signal::SIGTERM]);
    assert_eq!(status.code(), Some(143), "{said}");
    assert!(TcpListener::bind(("127.0.0.1", port)).is_ok(), "no server is left behind");
    let experiment = path.join("results/e");
    for name in ["run=0.json", "run=0.part.json", "summary.json"] {
        assert!(!experiment.join(name).exists(), "{name}: {said}");
    }
    let resume = |runs: &str| {
        let more = ["--resume", "--after-bench-cmd", "true", "--num-runs", runs];
        let ran = sweep(path, &engine(port), &bench(port), &more);
        assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
        json(&experiment.join("summary.json"))
    };
    let one = resume("1");
    assert_eq!(one[0]["completed"], 6);
    fs::write(experiment.join("run=1.failure.json"), "{}").unwrap();
    let two = resume("2");
    assert_eq!((two.as_array().unwrap().len(), &two[0]), (2, &one[0]));
    assert_eq!((&two[1]["run_number"], &two[1]["completed"]), (&1.into(), &6.into()));
    assert!(!experiment.join("run=1.failure.json").exists(), "it is over");
}

#[test]
fn a_user_who_will_not_wait_leaves_no_server_behind() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let slow = engine(port).replace("--gap 1ms", "--gap 400ms");
    let signals = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
    let (status, said) = stopped(folder.path(), &slow, port, &signals);
    assert!(matches!(status.code(), Some(130 | 143)), "{status}");
    assert!(said.contains("leaving at once"), "{said}");
    assert!(is_given_back(port));
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
fn keys_are_not_shown_and_names_are_not_obeyed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("s.json"), r#"{"\u001b[2J": {"max_num_batched_tokens": 512}}"#).unwrap();
    let serve = "vllm serve m --api-key sk-12345 --chat-template \u{1b}[2J";
    let bench = "vllm bench serve --model m --header 'Authorization=Bearer sk-12345'";
    let most = ["--dry-run", "--num-runs", "4294967295", "--serve-params", "s.json"];
    let ran = sweep(path, serve, bench, &most);
    let page = text(&ran.stdout);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert!(!page.contains("sk-12345") && !page.contains('\u{1b}'), "{page}");
    for part in ["--api-key ***", "Authorization=***", "--max-num-batched-tokens 512"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let port = free_port();
    let dying = format!("sh -c 'echo api_key sk-12345; exit 9' --api-key sk-12345 --port {port}");
    let ran = sweep(path, &dying, bench, &[]);
    let said = text(&ran.stderr);
    assert!(said.contains("  api_key [redacted]") && !said.contains("sk-12345"), "{said}");
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
    assert!(said.contains("status 9") && said.contains("  out of memory"), "{said}");
    let ran = sweep(path, &dying, &bench(port), &["--resume", "--continue-on-error"]);
    assert_eq!(ran.status.code(), Some(3), "{}", text(&ran.stderr));
    let noted = json(&path.join("results/e/SERVE-default.failure.json"));
    assert!(noted["error"].as_str().unwrap().contains("status 9"), "{noted}");
    let missing = sweep(path, "no-such-program", &bench(port), &["--resume"]);
    assert!(text(&missing.stderr).contains("no-such-program"), "{}", text(&missing.stderr));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let ran = sweep(path, &engine(port), &bench(port), &["--resume"]);
    let said = text(&ran.stderr);
    assert!(ran.status.code() == Some(3) && said.contains("listens on"), "{said}");
}

#[test]
fn a_server_finds_all_of_our_environment() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let telling = "sh -c 'test ${#HF_TOKEN} = 15 && echo it is there; exit 9'";
    let ran = inferometer()
        .args(["bench", "sweep", "serve", "--serve-cmd", &format!("{telling} --port {port}")])
        .args(["--bench-cmd", &bench(port), "-e", "e"])
        .env("HF_TOKEN", "hf_sesame123456")
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = text(&ran.stderr);
    assert!(said.contains("  it is there") && !said.contains("hf_sesame"), "{said}");
}

/// Faults: 94.
#[test]
fn somebody_who_listens_in_the_place_of_the_server_is_not_measured() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let port = free_port();
    let serve = format!("sh -c 'touch started; exec sleep 1000' --port {port}");
    let sweep = inferometer()
        .args(["bench", "sweep", "serve", "--serve-cmd", &serve, "--bench-cmd", &bench(port)])
        .args(["-e", "e"])
        .current_dir(path)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let clock = SystemClock::new();
    while !path.join("started").exists() {
        assert!(clock.now().as_nanos() < 60_000_000_000, "the server never started");
        std::thread::yield_now();
    }
    let stranger = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let ran = sweep.wait_with_output().unwrap();
    let said = text(&ran.stderr);
    assert!(ran.status.code() == Some(3) && said.contains("was not started by us"), "{said}");
    stranger.set_nonblocking(true).unwrap();
    assert!(stranger.accept().is_err(), "nobody asked the stranger");
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
    refused("vllm serve m", "vllm bench serve", &["--resume"], "cannot be resumed");

    let serve = "vllm serve m";
    refused(serve, "vllm bench serve --no-such-flag", &[], "--no-such-flag");
    refused(serve, "vllm bench serve --model m --backend tgi", &[], "--backend tgi is not known");
    refused(serve, "vllm bench serve --help", &[], "asks for help");
    fs::write(path.join("load.json"), r#"{"slow": {"request_rate": "low"}}"#).unwrap();
    refused(serve, "vllm bench serve", &["--bench-params", "load.json"], "--bench-cmd with slow");
    fs::write(path.join("key.json"), r#"[{"api_key": "sk-1"}]"#).unwrap();
    refused(serve, "vllm bench serve", &["--serve-params", "key.json"], "VLLM_API_KEY");
    fs::write(path.join("same.json"), r#"[{"model": "a/b"}, {"model": "a_b"}]"#).unwrap();
    refused(serve, "vllm bench serve", &["--bench-params", "same.json"], "would share");
    fs::write(path.join("s.json"), r#"[{"max_num_seqs": 4}]"#).unwrap();
    fs::write(path.join("b.json"), r#"[{"max_concurrency": 8}]"#).unwrap();
    let files = ["--serve-params", "s.json", "--bench-params", "b.json", "--link-vars"];
    let linked = |link: &'static str| [&files[..], &[link]].concat();
    let typo = linked("max_num_seq=max_concurrency");
    refused(serve, "vllm bench serve", &typo, "no combination of --serve-params has");
    let none = linked("max_num_seqs=max_concurrency");
    refused(serve, "vllm bench serve", &none, "leaves no pair");
    assert!(!path.join("results").exists());
}
