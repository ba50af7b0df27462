//! Wrong input, as people give it: a message that names the input and the remedy, and the right
//! exit code.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

use support::{Engine, http, output, server_saying, text};

/// The exit code and everything on standard error; standard output must stay empty.
#[track_caller]
fn refused(arguments: &[&str]) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let ran = output(arguments, folder.path());
    assert_eq!(text(&ran.stdout), "", "results only on standard output");
    let made = std::fs::read_dir(folder.path().join("runs")).map_or(0, Iterator::count);
    assert_eq!(made, 0, "no run may be made of wrong input");
    (ran.status.code().unwrap(), text(&ran.stderr))
}

#[track_caller]
fn assert_says(found: &(i32, String), code: i32, parts: &[&str]) {
    assert_eq!(found.0, code, "{}", found.1);
    for part in parts {
        assert!(found.1.contains(part), "{:?} lacks {part:?}", found.1);
    }
}

fn run_against(address: SocketAddr) -> (i32, String) {
    refused(&["run", &format!("http://{address}"), "-q"])
}

const MODELS: &str = r#"{"object":"list","data":[{"id":"tiny"}]}"#;

/// A server whose model list is fine and whose answers are these.
fn answering(reply: String) -> SocketAddr {
    server_saying(move |path| {
        if path.ends_with("/models") {
            http("200 OK", "application/json", MODELS)
        } else {
            reply.clone()
        }
    })
}

#[test]
fn flags_that_do_not_exist_are_usage_errors_with_the_nearest_name() {
    let found = refused(&["run", "--concurency", "3"]);
    assert_says(&found, 2, &["--concurency", "--concurrency"]);
    assert_says(&refused(&["ruin"]), 2, &["ruin", "run"]);
}

#[test]
fn what_is_below_zero_is_refused_for_that_and_not_taken_for_a_flag() {
    for (arguments, reason) in [
        (&["sweep", "--rates", "-1,2"][..], "-1"),
        (&["sweep", "--concurrencies", "-4..8*2"], "-4"),
        (&["compare", "a", "b", "--margin", "-3%"], "from zero to less than one"),
        (&["run", "--repeat", "2", "--cool-down", "-1s"], "must not be negative"),
        (&["run", "--duration", "-5s"], "must not be negative"),
        (&["run", "--repeat", "-1"], "from 1 to 1000"),
        (&["sweep", "--repeat", "-1"], "from 1 to 1000"),
        (&["matrix", "r3", "--repeat", "-1"], "from 1 to 1000"),
        (&["run", "--concurrency", "-2"], "from 1 to 1000000"),
        (&["run", "--repeat", "two"], "not a whole number"),
        (&["run", "--repeat", "two"], "from 1 to 1000"),
        (&["run", "--repeat", "9g"], "from 1 to 1000"),
        (&["run", "--seed", "-1"], "not a whole number"),
    ] {
        let found = refused(arguments);
        assert_says(&found, 2, &[arguments[arguments.len() - 2], reason]);
        assert!(!found.1.contains("'-- "), "{}", found.1);
    }
}

#[test]
fn contradictions_are_usage_errors() {
    let found = refused(&["run", "--rate", "3", "--concurrency", "4"]);
    assert_says(&found, 2, &["--rate", "--concurrency", "set one"]);
    let found = refused(&["run", "--requests", "3", "--until", "first"]);
    assert_says(&found, 2, &["--until", "--requests", "--duration"]);
    let found = refused(&["run", "--max-concurrency", "4"]);
    assert_says(&found, 2, &["--max-concurrency", "--rate", "--concurrency"]);
    let found = refused(&["run", "--rate", "inf", "--duration", "4s"]);
    assert_says(&found, 2, &["--rate inf", "--requests", "--max-concurrency"]);
    let found = refused(&["run", "--rate", "3", "--think-time", "1s"]);
    assert_says(&found, 2, &["--think-time", "--concurrency"]);
    let found = refused(&["run", "--rate", "3", "--burstiness", "-1"]);
    assert_says(&found, 2, &["--burstiness", "at least 0.01"]);
    let found = refused(&["run", "--ramp", "2-20:60s"]);
    assert_says(&found, 2, &["--ramp", "2-20:60s", "2..20:60s"]);
    let found = refused(&["run", "--ramp", "2..20:60s,20..-1:5s"]);
    assert_says(&found, 2, &["--ramp segment 2", "from zero to"]);
    assert_says(&refused(&["run", "--rate", "fast"]), 2, &["--rate", "fast", "inf"]);
    assert_says(&refused(&["run", "--rate", "0"]), 2, &["--rate", "above zero"]);
    assert_says(&refused(&["run", "--requests", "-1"]), 2, &["-1", "--requests"]);
    assert_says(&refused(&["run", "--total-timeout", "0s"]), 2, &["--total-timeout", "zero"]);
    let found = refused(&["run", "-q", "--rate", "0.001", "--duration", "1s"]);
    assert_says(&found, 2, &["no request falls", "--duration", "hint:"]);
    assert_says(&refused(&["run", "18103"]), 2, &["http://localhost:18103"]);
    assert_says(&refused(&["run", "--requests", "0"]), 2, &["--requests", "at least 1"]);
    assert_says(&refused(&["run", "--duration", "5"]), 2, &["5", "30s"]);
    assert_says(&refused(&["run", "--metadata", "x"]), 2, &["x", "key=value"]);
    assert_says(&refused(&["run", "ftp://h"]), 2, &["ftp", "http"]);
    assert_says(&refused(&["run", "--output", "/proc/nowhere"]), 2, &["/proc/nowhere"]);
}

/// Faults: 1.
#[test]
fn an_unreachable_server_is_named() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let found = run_against(address);
    assert_says(&found, 3, &["connection refused", &address.to_string(), "hint:"]);
    let found = refused(&["run", "http://no-such-host.invalid:8000", "-q"]);
    assert_says(&found, 3, &["no-such-host.invalid", "does not resolve"]);
}

#[test]
fn a_wrong_path_is_told_from_a_wrong_model() {
    let engine = Engine::start(&[]);
    let found = refused(&["run", &format!("{}/no/such/prefix", engine.url()), "-q"]);
    assert_says(&found, 3, &["/v1/models", "404", "base URL"]);
    let found = refused(&["run", &format!("{}/nowhere", engine.url()), "-q", "--model", "paced"]);
    assert_says(&found, 3, &["/nowhere/v1/chat/completions", "404", "hint:", "path"]);
    let found = refused(&["run", &engine.url(), "-q", "--model", "gpt-9"]);
    assert_says(&found, 3, &["gpt-9", "404", "--model"]);
}

/// Faults: 24.
#[test]
fn a_page_instead_of_a_stream_is_seen_through() {
    let html = http("200 OK", "text/html", "<html><title>Log in</title></html>");
    let found = run_against(answering(html.clone()));
    assert_says(&found, 3, &["protocol_error", "text/html", "Log in", "hint:", "proxy"]);
    let found = run_against(server_saying(move |_| html.clone()));
    assert_says(&found, 3, &["/v1/models", "text/html", "--model"]);
}

/// Faults: 25.
#[test]
fn a_missing_key_is_asked_for_and_a_wrong_one_is_not_repeated() {
    let refusing = || {
        server_saying(|_| {
            let body = r#"{"error":{"message":"Incorrect API key provided: sk-wrong-0123456789"}}"#;
            http("401 Unauthorized", "application/json", body)
        })
    };
    assert_says(&run_against(refusing()), 3, &["401", "--api-key-file", "OPENAI_API_KEY"]);
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, "sk-wrong-0123456789\n").unwrap();
    let url = format!("http://{}", refusing());
    let key = key.to_str().unwrap();
    let found = refused(&["run", &url, "-q", "--model", "m", "--api-key-file", key]);
    assert_says(&found, 3, &["401", "refused the key", "[redacted]"]);
    assert!(!found.1.contains("sk-wrong"), "{}", found.1);
    let found = refused(&["run", &url, "--api-key-file", "/no/such/file"]);
    assert_says(&found, 2, &["--api-key-file", "/no/such/file"]);
}

#[test]
fn an_empty_list_of_models_asks_for_a_name() {
    let empty = http("200 OK", "application/json", r#"{"object":"list","data":[]}"#);
    let found = run_against(server_saying(move |_| empty.clone()));
    assert_says(&found, 3, &["lists no model", "--model"]);
}

/// Faults: 56, 57.
#[test]
fn words_of_a_server_cannot_steer_the_terminal() {
    let hostile = http("500 Internal Server Error", "text/plain", "\u{1b}[2Jgone\u{7}");
    let found = run_against(answering(hostile));
    assert_says(&found, 3, &["\\u{1b}[2Jgone"]);
    assert!(!found.1.contains('\u{1b}'));
}

#[test]
fn unknown_runs_and_unknown_faults_are_named() {
    assert_says(&refused(&["verify", "20200101"]), 2, &["20200101"]);
    assert_says(&refused(&["recover", "latest"]), 2, &["latest"]);
    assert_says(
        &refused(&["engine", "--mode", "paced", "--fault", "bite-wise"]),
        2,
        &["bite-wise", "byte-wise"],
    );
}

#[test]
fn a_port_in_use_is_named_with_the_remedy() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    assert_says(&refused(&["engine", "--port", &port]), 2, &[&port, "--port"]);
}

/// Faults: 18, 75.
#[test]
fn more_streams_than_descriptors_are_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_inferometer");
    let ran = std::process::Command::new("sh")
        .args([
            "-c",
            "ulimit -n 256 && exec \"$0\" run --concurrency 500 --client-cores 1",
            program,
        ])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let found = (ran.status.code().unwrap(), text(&ran.stderr));
    assert_says(&found, 2, &["--concurrency 500", "descriptors", "184", "ulimit"]);
}

/// Faults: 18.
#[test]
fn without_descriptors_for_any_request_nothing_begins() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_inferometer");
    let command = "ulimit -n 64 && exec \"$0\" run --rate 5 --requests 3 --client-cores 1";
    let ran = std::process::Command::new("sh")
        .args(["-c", command, program])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let found = (ran.status.code().unwrap(), text(&ran.stderr));
    assert_says(&found, 2, &["descriptors", "no request", "ulimit"]);
}

#[test]
fn a_promise_that_whole_answers_cannot_keep_is_refused() {
    for promise in ["ttft<500ms", "ttfc<500ms", "tpot<50ms"] {
        let found = refused(&["run", "-q", "--no-stream", "--slo", promise]);
        assert_says(&found, 2, &[promise, "not streamed", "e2e"]);
    }
}

#[test]
fn an_api_without_the_fields_cannot_pin_its_output() {
    let found = refused(&["run", "-q", "--api", "messages", "--pin-output", "always"]);
    assert_says(&found, 2, &["--pin-output always", "messages", "no field"]);
}

/// Faults: 70.
#[test]
fn an_answer_that_is_not_the_one_to_measure_is_refused_before_the_run() {
    let body = r#"{"model":"tiny","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}"#;
    let whole = answering(http("200 OK", "application/json", body));
    assert_says(&run_against(whole), 3, &["stream", "whole", "--no-stream"]);
    let event = r#"data: {"model":"large","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
    let other = answering(http("200 OK", "text/event-stream", &format!("{event}\n\n")));
    assert_says(&run_against(other), 3, &["`tiny`", "`large`", "--model"]);
}

#[test]
fn a_warm_up_in_which_everything_fails_ends_with_the_reason() {
    let asked = AtomicU32::new(0);
    let event = r#"data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
    let stream = http("200 OK", "text/event-stream", &format!("{event}\n\n"));
    let broken = http("500 Internal Server Error", "text/plain", "out of memory");
    // Only the probe is answered.
    let address = server_saying(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => stream.clone(),
        _ => broken.clone(),
    });
    let url = format!("http://{address}");
    let found = refused(&["run", &url, "-q", "--model", "tiny", "--warm-up", "3"]);
    assert_says(&found, 3, &["3 warm-up requests", "http_error", "500", "out of memory", "hint:"]);
}
