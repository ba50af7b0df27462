//! The warm-up: sent before the run, counted nowhere in it, and stopped without a trace.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::path::Path;
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use support::{Engine, inferometer, observations, output, text};

#[test]
fn the_server_sees_a_warm_up_and_the_run_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "5ms", "--gap", "1ms"]);
    let url = engine.url();
    let arguments = ["--warm-up", "5", "--requests", "10", "--output-tokens", "4"];
    let ran = output(&[&["run", &url, "--json"], &arguments[..]].concat(), folder.path());
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let observations = observations(folder.path());
    let mut asked: Vec<String> =
        engine.truth().requests.into_iter().filter_map(|request| request.request_id).collect();
    asked.retain(|id| !id.starts_with("inferometer-probe"));
    // The warm-up is over before the run begins.
    let (before, during) = asked.split_at(5);
    for number in 0..5 {
        assert!(before.contains(&format!("inferometer-warm-up-{number}")), "{before:?}");
    }
    for number in 0..10 {
        let id = format!("inferometer-{}-{number}", observations.manifest.run);
        assert!(during.contains(&id), "{during:?} lacks {id}");
    }
    assert_eq!(during.len(), 10);
    assert_eq!(observations.records.len(), 10);
    let facts = observations.manifest.warm_up.unwrap();
    assert_eq!((facts.requests, facts.ok, facts.failed), (5, 5, 0));
    assert!(!facts.took.is_zero());
    let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(document["run"]["warm_up"]["requests"], 5);
    assert_eq!(document["scheduled"], 10);
}

#[test]
fn a_run_without_warm_up_has_no_facts_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "1ms", "--gap", "1ms"]);
    let ran = output(&["run", &engine.url(), "-q", "--requests", "2"], folder.path());
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    assert_eq!(observations(folder.path()).manifest.warm_up, None);
}

fn runs_in(folder: &Path) -> usize {
    std::fs::read_dir(folder.join("runs")).map_or(0, Iterator::count)
}

/// A warm-up that would take for ever, once this many of its requests have reached the engine. What
/// is in flight when it is stopped is cut at once.
fn warming_up(engine: &Engine, folder: &Path, asked: usize) -> Child {
    let mut run = inferometer()
        .args(["run", &engine.url(), "-q", "--warm-up", "1000", "--concurrency", "2"])
        .args(["--output-tokens", "2", "--drain-timeout", "0s"])
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    loop {
        let is_warm_up = |id: &String| id.starts_with("inferometer-warm-up");
        let truth = engine.truth().requests;
        let ids = truth.into_iter().filter_map(|request| request.request_id);
        if asked <= ids.filter(is_warm_up).count() {
            return run;
        }
        assert_eq!(run.try_wait().unwrap(), None, "the run ended before its warm-up");
        std::thread::yield_now();
    }
}

fn interrupt(run: &Child) {
    kill(Pid::from_raw(i32::try_from(run.id()).unwrap()), Signal::SIGINT).unwrap();
}

#[test]
fn an_interrupted_warm_up_leaves_no_run() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "20ms", "--gap", "1ms"]);
    let run = warming_up(&engine, folder.path(), 4);
    interrupt(&run);
    let ended = run.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", text(&ended.stderr));
    assert_eq!(text(&ended.stdout), "");
    assert_eq!(runs_in(folder.path()), 0);
}

/// Nothing of it ended well, which is not the server's fault here.
#[test]
fn a_warm_up_that_is_cut_is_interrupted_and_not_failed() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "1s"]);
    let run = warming_up(&engine, folder.path(), 2);
    interrupt(&run);
    let ended = run.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", text(&ended.stderr));
    assert_eq!(runs_in(folder.path()), 0);
}

#[test]
fn a_warm_up_may_last_for_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "5ms", "--gap", "1ms"]);
    let arguments = ["--warmup", "300ms", "-n", "3", "-c", "2", "--output-tokens", "2"];
    let ran = output(&[&["run", &engine.url()], &arguments[..]].concat(), folder.path());
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    assert!(text(&ran.stderr).contains("warming up for 300 ms"), "{}", text(&ran.stderr));
    let observations = observations(folder.path());
    let facts = observations.manifest.warm_up.unwrap();
    assert!(facts.took.as_millis() >= 300 && facts.requests == facts.ok, "{facts:?}");
    assert!((10..=120).contains(&facts.requests), "two at a time, 6 ms each: {facts:?}");
    assert_eq!(observations.records.len(), 3);
}
