//! The client's own side: protocols, connections and cores, and what is refused before a run.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::collections::BTreeSet;

use serde_json::Value;

use support::{Engine, observations, output, text};

/// Refused with this code, in words that hold these parts; no run is made.
#[track_caller]
fn assert_refused(arguments: &[&str], code: i32, parts: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let ran = output(arguments, folder.path());
    let words = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(code), "{words}");
    for part in parts {
        assert!(words.contains(part), "{words:?} lacks {part:?}");
    }
    let made = std::fs::read_dir(folder.path().join("runs")).map_or(0, Iterator::count);
    assert_eq!(made, 0, "no run may be made");
}

#[test]
fn what_the_wire_cannot_do_is_refused() {
    assert_refused(&["run", "--http2"], 2, &["--http2", "embedded"]);
    let per_user = ["run", "--rate", "3", "--connections", "per-user"];
    assert_refused(&per_user, 2, &["per-user", "--concurrency"]);
    let both = ["run", "http://localhost:1", "--http2", "--connections", "per-user"];
    assert_refused(&both, 2, &["per-user", "--http2"]);
    assert_refused(&["run", "--insecure"], 2, &["--insecure", "https://"]);
    let insecure = ["run", "http://localhost:1", "--insecure"];
    assert_refused(&insecure, 2, &["--insecure", "https://"]);
}

#[test]
fn a_server_without_http2_is_named_as_one() {
    let engine = Engine::start(&[]);
    let url = engine.url();
    assert_refused(&["run", &url, "-q", "--http2"], 3, &["hint:", "--http2"]);
    let named = ["run", &url, "-q", "--http2", "--model", "paced"];
    assert_refused(&named, 3, &["protocol_error", "hint:", "--http2"]);
}

#[test]
fn cores_that_are_not_there_are_refused() {
    assert_refused(&["run", "--pin-cores", "60000"], 2, &["core 60000"]);
    assert_refused(&["run", "--client-cores", "0"], 2, &["--client-cores"]);
}

#[test]
fn the_drivers_that_were_asked_for_do_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "4ms", "--gap", "1ms"]);
    let arguments = ["--client-cores", "2", "--requests", "40", "--output-tokens", "4"];
    let url = engine.url();
    let ran = output(&[&["run", &url, "--json"], &arguments[..]].concat(), folder.path());
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(document["client"]["drivers"], 2);
    assert_eq!(document["outcomes"]["ok"], 40);
    let dialled: Vec<u32> = observations(folder.path())
        .records
        .iter()
        .map(|record| record.connection.unwrap().ordinal)
        .collect();
    // Drivers take turns in numbering their connections.
    assert!([0, 1].iter().all(|driver| dialled.iter().any(|ordinal| ordinal % 2 == *driver)));
}

#[test]
fn each_user_has_a_connection_where_that_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "2ms", "--gap", "1ms"]);
    let url = engine.url();
    let arguments = ["--connections", "per-user", "--concurrency", "3", "--requests", "30"];
    let size = ["--output-tokens", "2"];
    let ran = output(&[&["run", &url, "-q"], &arguments[..], &size].concat(), folder.path());
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let observations = observations(folder.path());
    let own: BTreeSet<u32> =
        observations.records.iter().map(|record| record.connection.unwrap().ordinal).collect();
    assert_eq!(own, BTreeSet::from([0, 1, 2]));
    assert_eq!(observations.ending.client.dialling.unwrap().connect_ns.len(), 3);
}

#[test]
fn connections_are_opened_before_the_run_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "20ms", "--gap", "1ms"]);
    let url = engine.url();
    let load = ["--concurrency", "80", "--requests", "800", "--output-tokens", "2"];
    let more = ["--ramp-up", "100ms", "--progress", "json", "--json"];
    let ran = output(&[&["run", &url], &load[..], &more].concat(), folder.path());
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    assert!(text(&ran.stderr).contains("\"event\":\"dialling\""), "{}", text(&ran.stderr));
    let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let dialling = &document["client"]["dialling"];
    assert_eq!((&dialling["wanted"], &dialling["opened"]), (&80.into(), &80.into()));
    assert!(dialling["connect_ms_p99"].as_f64() > Some(0.0), "{dialling}");
    assert_eq!(document["run"]["load"]["ramp_up_s"], 0.1);
    let found = observations(folder.path());
    assert!(found.records.iter().all(|record| record.connection.unwrap().reused));
    let began = found.ending.began.unwrap();
    // Slot k of 80 is free at k/80 of 100 ms.
    let first: BTreeSet<u64> = found
        .records
        .iter()
        .map(|record| record.intended.as_nanos() - began.as_nanos())
        .filter(|ns| ns % 1_250_000 == 0)
        .collect();
    assert!((0..80).all(|slot| first.contains(&(slot * 1_250_000))), "{first:?}");
}

#[test]
fn progress_is_shown_as_asked_and_says_what_was_measured() {
    let engine = Engine::start(&["--mode", "paced", "--ttft", "20ms", "--gap", "20ms"]);
    let url = engine.url();
    let run = |style: &str| {
        let folder = tempfile::tempdir().unwrap();
        // Long enough for the first second, in which the first answers end.
        let load = ["--concurrency", "2", "--requests", "12", "--output-tokens", "16"];
        let words = ["run", &url, "--progress", style, "--seed", "1"];
        let ran = output(&[&words[..], &load].concat(), folder.path());
        assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
        text(&ran.stderr)
    };
    let events: Vec<Value> =
        run("json").lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["event"].as_str()).collect();
    assert!(kinds.contains(&"measuring") && kinds.contains(&"finished"), "{kinds:?}");
    let last = events.iter().rfind(|event| event["event"] == "progress").unwrap();
    let (progress, live) = (&last["progress"], &last["progress"]["live"]);
    assert!(progress["ok"].as_u64() <= Some(12) && progress["share"].as_f64() <= Some(1.0));
    let gap = live["itl_ms"]["p50"].as_f64().unwrap();
    assert!((15.0..60.0).contains(&gap), "the engine writes every 20 ms: {live}");
    assert!(live["requests_per_s"].as_f64() > Some(0.0), "{live}");
    let page = run("live");
    assert!(page.contains("\nTTFT ") && page.contains("\nITL "), "{page:?}");
    let quiet = run("none");
    assert!(!quiet.contains("in flight"), "{quiet:?}");
}
