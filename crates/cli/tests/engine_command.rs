//! `inferometer engine`: what it lists, what it refuses, and what it says when it starts.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use support::{Engine, get, inferometer, output, text};

#[track_caller]
fn refused(arguments: &[&str], parts: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let ran = output(arguments, folder.path());
    let said = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(2), "{said}");
    for part in parts {
        assert!(said.contains(part), "{said:?} lacks {part:?}");
    }
}

#[test]
fn everything_that_can_be_played_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let ran = output(&["engine", "--list"], folder.path());
    assert!(ran.status.success());
    let listed = text(&ran.stdout);
    for known in ["h100", "mi300x", "llama-3.1-8b", "--profile", "--hardware", "--model"] {
        assert!(listed.contains(known), "{listed}");
    }
}

#[test]
fn flags_of_another_mode_are_refused_by_name() {
    refused(&["engine", "--ttft", "5ms"], &["--ttft", "mode serve", "--mode paced"]);
    refused(&["engine", "--mode", "paced", "--speed", "20"], &["--speed", "mode paced"]);
    refused(&["engine", "--mode", "echo", "--tp", "2"], &["--tp", "mode echo", "--mode serve"]);
}

#[test]
fn what_cannot_be_played_is_refused_with_the_reason() {
    refused(&["engine", "--profile", "h101"], &["h101"]);
    refused(&["engine", "--speed", "0"], &["speed"]);
    refused(&["engine", "--api-key-file", "nowhere"], &["--api-key-file nowhere"]);
    let large = ["engine", "--hardware", "h100", "--model", "llama-3.1-405b"];
    refused(&large, &["405", "GiB"]);
}

#[test]
fn it_says_what_is_served_and_serves_it() {
    let mut child = inferometer()
        .args(["engine", "--port", "0", "--until-stdin-closes", "--max-model-len", "4096"])
        .args(["--served-model-name", "tiny"])
        .env("INFEROMETER_ENGINE_API_KEY", "s3cret")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().rsplit('/').next().unwrap().parse().unwrap();
    assert!(text(&get(address, "/metrics")).contains(r#"model_name="tiny""#));
    let models = text(&get(address, "/v1/models"));
    assert!(!models.contains("tiny") && !models.contains("s3cret"), "{models}");
    drop(child.stdin.take());
    child.wait().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("4096") || said.contains("4,096"), "{said}");
    assert!(!said.contains("s3cret"), "{said}");
}

#[test]
fn the_mode_that_plays_a_server_is_measured_like_any_other() {
    let engine = Engine::start(&["--mode", "serve", "--speed", "50"]);
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["run", &engine.url(), "-q", "--json", "--requests", "5", "--concurrency", "5"];
    let ran = output(&arguments, folder.path());
    assert!(ran.status.code().is_some_and(|code| code == 0 || code == 4), "{}", text(&ran.stderr));
    let truth = engine.truth();
    assert!(5 <= truth.requests.len());
    assert!(truth.steps.is_some_and(|steps| 0 < steps.count));
}
