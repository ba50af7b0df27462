//! `bench serve` against an engine whose pace is known: the other client's flags, block and file.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::path::Path;
use std::process::Output;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use support::{Engine, http, inferometer, latest_run, observations, output, server_hearing, text};

fn bench(engine: &Engine, folder: &Path, flags: &[&str]) -> Output {
    let port = engine.address.port().to_string();
    let place = ["bench", "serve", "--port", &port, "--skip-tokenizer-init", "--num-prompts", "12"];
    output(&[&place[..], flags].concat(), folder)
}

/// A run may be invalid on a busy machine; it is a run all the same.
#[track_caller]
fn block(ran: &Output) -> String {
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    text(&ran.stdout)
}

#[track_caller]
fn value(block: &str, label: &str) -> f64 {
    said(block, label).parse().unwrap()
}

/// What stands behind a label, in the column where scripts look for it.
#[track_caller]
fn said<'b>(block: &'b str, label: &str) -> &'b str {
    let line = block.lines().find(|line| line.starts_with(label));
    let line = line.unwrap_or_else(|| panic!("no {label:?} in {block}"));
    assert_eq!(line.find(line[label.len()..].trim()), Some(41), "{line:?} is not aligned");
    line[label.len()..].trim()
}

const SHORT: [&str; 4] = ["--random-input-len", "16", "--random-output-len", "8"];

#[test]
fn the_block_has_every_label_and_the_engines_pace() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "40ms", "--gap", "10ms"]);
    let flags = [
        "--max-concurrency",
        "4",
        "--percentile-metrics",
        "ttft,tpot,itl,e2el",
        "--metric-percentiles",
        "50,99.9",
        "--goodput",
        "ttft:10000",
        "e2el:1",
    ];
    let ran = bench(&engine, folder.path(), &[&SHORT[..], &flags].concat());
    let printed = block(&ran);
    assert!(
        printed.starts_with(
            "Starting main benchmark run...\nTraffic request rate: inf\n\
         Burstiness factor: 1.0 (Poisson process)\nMaximum request concurrency: 4\n"
        ),
        "{printed}"
    );
    for (label, wanted) in [
        ("Successful requests:", "12"),
        ("Failed requests:", "0"),
        ("Total generated tokens:", "96"),
        ("Request goodput (req/s):", "0.00"),
    ] {
        assert_eq!(said(&printed, label), wanted, "{label} in {printed}");
    }
    assert!((39.0..80.0).contains(&value(&printed, "Median TTFT (ms):")), "{printed}");
    assert!((9.0..20.0).contains(&value(&printed, "P50 ITL (ms):")), "{printed}");
    assert!((9.0..20.0).contains(&value(&printed, "Mean TPOT (ms):")), "{printed}");
    assert!(109.0 < value(&printed, "P99.9 E2EL (ms):"), "{printed}");
    assert!(printed.ends_with(&format!("{}\n", "=".repeat(50))));
    assert!(!printed.contains("Request rate configured"), "there was none");
    let observed = observations(folder.path());
    assert_eq!(observed.records.len(), 12);
    let fields = &observed.manifest.spec.workload.body.fields;
    assert_eq!((&fields["ignore_eos"], &fields["repetition_penalty"]), (&true.into(), &1.0.into()));
}

#[test]
fn the_file_has_the_other_tools_keys_and_is_appended_to() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "5ms", "--gap", "1ms"]);
    let flags = [
        "--request_rate",
        "200",
        "--save_detailed",
        "--append-result",
        "--result_dir",
        "results",
        "--metadata",
        "zone=b",
        "arch=a",
        "--model",
        "some/name-7B",
        "--served-model-name",
        "paced",
        "--label",
        "mine",
    ];
    let flags = [&SHORT[..], &flags].concat();
    block(&bench(&engine, folder.path(), &flags));
    let made: Vec<_> = std::fs::read_dir(folder.path().join("results")).unwrap().collect();
    let name = made[0].as_ref().unwrap().file_name().into_string().unwrap();
    assert!(name.starts_with("mine-200.0qps-name-7B-2"), "{name}");
    assert_eq!(Path::new(&name).extension().unwrap(), "json");
    let named = [&flags[..], &["--result-filename", &name]].concat();
    let printed = block(&bench(&engine, folder.path(), &named));
    assert_eq!(said(&printed, "Request rate configured (RPS):"), "200.00");
    // Twelve at two hundred a second, the last at exactly 60 ms.
    let observed = observations(folder.path());
    let began = observed.ending.began.unwrap();
    let last = observed.records.iter().map(|record| record.intended).max().unwrap();
    assert_eq!(last.since(began), Some(Duration::from_millis(60)));
    let written = std::fs::read_to_string(folder.path().join("results").join(&name)).unwrap();
    let results: Vec<Value> =
        written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(results.len(), 2);
    for result in &results {
        assert_eq!(result["model_id"], "some/name-7B");
        assert_eq!((&result["backend"], &result["label"]), (&"openai".into(), &"mine".into()));
        assert_eq!((&result["zone"], &result["request_rate"]), (&"b".into(), &200.0.into()));
        assert_eq!((&result["completed"], &result["num_prompts"]), (&12.into(), &12.into()));
        assert_eq!(result["ttfts"].as_array().unwrap().len(), 12);
        assert!(result["p99_ttft_ms"].is_number() && result.get("mean_e2el_ms").is_none());
    }
    let place = |key: &str| written.find(&format!("\"{key}\"")).unwrap();
    assert!(place("num_prompts") < place("zone") && place("zone") < place("arch"));
    assert_eq!(
        latest_run(folder.path()).read().unwrap().observations.manifest.spec.model.unwrap(),
        "paced"
    );
}

#[test]
fn our_page_stands_beside_or_instead_of_the_block() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "5ms", "--gap", "1ms"]);
    let both = [&SHORT[..], &["--backend", "openai-chat", "--definitions", "both"]].concat();
    let printed = block(&bench(&engine, folder.path(), &both));
    let (block_part, page) = printed.split_once(&"=".repeat(50)).unwrap();
    assert!(
        block_part.contains("Serving Benchmark Result") && page.contains("files  runs/"),
        "{printed}"
    );
    let ours = [&SHORT[..], &["--definitions", "inferometer", "--disable-tqdm"]].concat();
    let ran = bench(&engine, folder.path(), &ours);
    let page = block(&ran);
    assert!(!page.contains("Serving Benchmark Result") && page.contains("files  runs/"), "{page}");
}

#[test]
fn requests_are_named_and_carry_what_was_typed() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "5ms", "--gap", "1ms"]);
    let flags = [
        "--request-id-prefix",
        "mine-",
        "--temperature",
        "0.5",
        "--seed",
        "7",
        "--num-warmups",
        "2",
        "--extra-body",
        r#"{"temperature": 0.1, "min_tokens": 2}"#,
        "--trust-remote-code",
        "--ramp-up-strategy",
        "linear",
        "--ramp-up-start-rps",
        "50",
        "--ramp-up-end-rps",
        "500",
    ];
    let ran = bench(&engine, folder.path(), &[&SHORT[..], &flags].concat());
    let printed = block(&ran);
    assert!(
        printed.contains("Traffic ramp-up strategy: linear.\nWill increase RPS from 50 to 500")
    );
    assert!(text(&ran.stderr).contains("note: --trust-remote-code changes nothing"));
    let sent = engine.truth().requests;
    let named = |request: &&_| {
        let request: &&inferometer_engine::truth::RequestTruth = request;
        request.request_id.as_deref().is_some_and(|id| id.starts_with("mine-"))
    };
    assert_eq!(sent.iter().filter(named).count(), 12);
    let spec = observations(folder.path()).manifest.spec;
    assert_eq!((spec.seed, spec.load.warm_up), (7, 2));
    assert_eq!(spec.workload.body.fields["temperature"], 0.1, "the extra body wins");
}

#[test]
fn a_server_without_a_profiler_is_told_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let none = server_hearing(|head| {
        if head.starts_with("POST /start_profile") {
            return http("404 Not Found", "text/plain", "no such route");
        }
        let answer = r#"{"choices":[{"index":0,"text":"a","finish_reason":"stop"}]}"#;
        http("200 OK", "text/event-stream", &format!("data: {answer}\n\ndata: [DONE]\n\n"))
    });
    let port = none.port().to_string();
    let arguments = [
        "bench",
        "serve",
        "--port",
        &port,
        "--model",
        "m",
        "--skip-tokenizer-init",
        "--profile",
        "--num-prompts",
        "2",
    ];
    let ran = output(&arguments, folder.path());
    let words = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(3), "{words}");
    assert!(words.contains("/start_profile answered HTTP 404"), "{words}");
}

#[test]
fn a_server_is_not_left_profiling_when_the_run_cannot_be_made() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&heard);
    let server = server_hearing(move |head| {
        let asked = head.lines().next().unwrap_or_default().to_owned();
        if asked.starts_with("POST /start_profile") {
            // Where the run is to be stored there is suddenly something else.
            let _ = std::fs::remove_dir_all(&runs);
            std::fs::write(&runs, "").unwrap();
        }
        shared.lock().unwrap().push(asked);
        let answer = r#"{"choices":[{"index":0,"text":"a","finish_reason":"stop"}]}"#;
        http("200 OK", "text/event-stream", &format!("data: {answer}\n\ndata: [DONE]\n\n"))
    });
    let port = server.port().to_string();
    let arguments = [
        &["bench", "serve", "--port", &port, "--model", "m", "--skip-tokenizer-init"][..],
        &["--profile", "--num-prompts", "2"],
    ]
    .concat();
    let ran = output(&arguments, folder.path());
    assert!(!ran.status.success(), "{}", text(&ran.stdout));
    let heard = heard.lock().unwrap().clone();
    let asked = |path: &str| heard.iter().any(|line| line.starts_with(&format!("POST {path}")));
    assert!(asked("/start_profile") && asked("/stop_profile"), "{heard:?}");
}

#[test]
fn what_is_typed_counts_last_and_is_told_as_there() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "5ms", "--gap", "1ms"]);
    let port = engine.address.port().to_string();
    let flags = [
        &["bench", "serve", "--port", &port, "--skip-tokenizer-init", "--num-prompts", "900"][..],
        &["--num-prompts", "13", "--dataset-name", "prefix_repetition", "--output-len", "4"],
        &["--prefix-repetition-num-prefixes", "4", "--ready-check-timeout-sec", "5"],
        &["--save-result", "--result-filename", "kept.json", "--disable-tqdm"],
    ]
    .concat();
    let mut command = inferometer();
    let command = command.args(flags).env("SAVE_TO_PYTORCH_BENCHMARK_FORMAT", "1");
    let ran = command.current_dir(folder.path()).output().unwrap();
    let printed = block(&ran);
    assert!(
        printed.starts_with(
            "Starting initial single prompt test run...\nInitial test run completed.\n\
             Starting main benchmark run...\n"
        ),
        "{printed}"
    );
    let notes = text(&ran.stderr);
    assert!(notes.contains("note: SAVE_TO_PYTORCH_BENCHMARK_FORMAT changes nothing"), "{notes}");
    let kept = std::fs::read_to_string(folder.path().join("kept.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!((&kept["num_prompts"], &kept["completed"]), (&13.into(), &12.into()));
}

#[test]
fn the_first_failures_are_told_beside_the_block() {
    let folder = tempfile::tempdir().unwrap();
    let server = server_hearing(|head| {
        if head.contains("mine-") {
            return http("500 Internal Server Error", "text/plain", "out of paper");
        }
        let answer = r#"{"choices":[{"index":0,"text":"a","finish_reason":"stop"}]}"#;
        http("200 OK", "text/event-stream", &format!("data: {answer}\n\ndata: [DONE]\n\n"))
    });
    let port = server.port().to_string();
    let arguments = [
        &["bench", "serve", "--port", &port, "--model", "m", "--skip-tokenizer-init"][..],
        &["--max-concurrency", "1", "--num-prompts", "15", "--request-id-prefix", "mine"],
    ]
    .concat();
    let ran = output(&arguments, folder.path());
    let words = text(&ran.stderr);
    let told = words.lines().filter(|line| line.starts_with("Error ")).collect::<Vec<_>>();
    assert_eq!(told.len(), 10, "{words}");
    assert!(told[9].starts_with("Error 9: ") && told[9].contains("out of paper"), "{words}");
}

#[track_caller]
fn assert_refused(flags: &[&str], code: i32, parts: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let ran = output(&[&["bench", "serve", "--port", "9"], flags].concat(), folder.path());
    let words = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(code), "{words}");
    for part in parts {
        assert!(words.contains(part), "{words:?} lacks {part:?}");
    }
    assert!(ran.stdout.is_empty() && !folder.path().join("runs").exists());
}

#[test]
fn what_cannot_be_done_is_refused_by_name_before_anything_is_sent() {
    assert_refused(&["--plot-timeline"], 2, &["--plot-timeline", "inferometer report"]);
    assert_refused(&["--hf_name", "o/n"], 2, &["--hf-name", "--dataset-path ORG/NAME"]);
    assert_refused(&["--probe-request-rate", "2"], 2, &["--probe-request-rate", "second run"]);
    assert_refused(&["--dataset-name", "hf"], 2, &["hf", "--dataset-path"]);
    assert_refused(&["--backend", "vllm-rerank"], 2, &["random-rerank"]);
    assert_refused(&["--tokenizer-mode", "mistral"], 2, &["tokenizer.json"]);
    assert_refused(&["--goodput", "itl:5"], 2, &["--goodput"]);
    assert_refused(&["--backend", "openai-responses"], 2, &["openai-responses", "--api"]);
    assert_refused(&["--nosuch"], 2, &["--nosuch"]);
    assert_refused(&["--model", "./nosuch"], 2, &["--skip-tokenizer-init"]);
    assert_refused(&["--skip-tokenizer-init"], 3, &["hint:"]);
}
