//! Steps that are reconstructed over real sockets, compared with the log of the engine's scheduler.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use support::{Engine, get, output, text};

/// The requests of ours that got a token in each step, by the scheduler's own log.
fn logged(engine: &Engine) -> Vec<BTreeSet<u64>> {
    // The engine numbers its requests in the order in which they come.
    let others = ["inferometer-probe", "inferometer-warm-up"];
    let own = |id: Option<&str>| {
        let id = id.filter(|id| !others.iter().any(|other| id.starts_with(other)))?;
        id.rsplit('-').next()?.parse().ok()
    };
    let truth = engine.truth();
    let names: BTreeMap<u64, u64> = truth
        .requests
        .iter()
        .filter_map(|it| Some((it.ordinal, own(it.request_id.as_deref())?)))
        .collect();
    assert!(!names.is_empty(), "no request of the run is known");
    // Prompt tokens that are not computed, and output tokens that are due.
    let mut left: BTreeMap<u64, (i64, i64)> = BTreeMap::new();
    let mut steps = Vec::new();
    for line in text(&get(engine.address, "/steps")).lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if let Some(arrival) = line.get("arrival") {
            let number = |key: &str| arrival[key].as_i64().unwrap();
            let id = arrival["id"].as_u64().unwrap();
            left.insert(id, (number("prompt_tokens"), number("max_tokens")));
        }
        let Some(step) = line.get("step") else { continue };
        let pairs =
            |key: &str| -> Vec<(u64, i64)> { serde_json::from_value(step[key].clone()).unwrap() };
        for (id, cached) in pairs("admitted") {
            left.get_mut(&id).unwrap().0 -= cached;
        }
        let mut members = BTreeSet::new();
        for (id, tokens) in pairs("scheduled") {
            let (prompt, output) = left.get_mut(&id).unwrap();
            *prompt -= tokens;
            if *prompt <= 0 && 0 < *output {
                *output -= 1;
                members.extend(names.get(&id));
            }
        }
        if !members.is_empty() {
            steps.push(members);
        }
    }
    steps
}

/// The share of the engine's steps that were found with exactly their members, in order.
fn share_found(truth: &[BTreeSet<u64>], found: &[BTreeSet<u64>]) -> f64 {
    let (mut place, mut right) = (0, 0);
    for members in truth {
        if let Some(ahead) = found.iter().skip(place).take(12).position(|it| it == members) {
            place += ahead + 1;
            right += 1;
        }
    }
    f64::from(right) / truth.len() as f64
}

fn anatomy(folder: &Path) -> Value {
    let ran = output(&["anatomy", "latest", "--format", "json"], folder);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

fn run(engine: &Engine, folder: &Path, concurrency: &str, requests: &str) {
    let load = ["run", &engine.url(), "--concurrency", concurrency, "--requests", requests];
    let lengths = ["--input-tokens", "uniform:50..300", "--output-tokens", "uniform:20..60"];
    let ran = output(&[&load[..], &lengths, &["--quiet", "--seed", "4"]].concat(), folder);
    // On a busy machine the run may be invalid, which its steps need not be.
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
}

const SERVE: [&str; 5] = ["--mode", "serve", "--profile", "h100-llama-3.1-8b", "--log-steps"];

/// A row of the table in `docs/anatomy.md`, and whether the confidence is deserved: on a busy machine, engine and
/// client are late themselves, and fewer steps are found.
fn compared(way: &[&str], concurrency: &str, requests: &str) -> (String, bool) {
    let folder = tempfile::tempdir().unwrap();
    // At a tenth of its speed, so that a busy machine delays little against a step.
    let engine = Engine::start(&[&SERVE[..], &["--speed", "0.1"], way].concat());
    run(&engine, folder.path(), concurrency, requests);
    let truth = logged(&engine);
    let found = anatomy(folder.path());
    let members: Vec<BTreeSet<u64>> = serde_json::from_value(found["members"].clone()).unwrap();
    let share = share_found(&truth, &members);
    let confidence = found["anatomy"]["confidence"].as_str().unwrap_or("refused");
    let (steps, percent) = (truth.len(), 100.0 * share);
    // Few requests with single tokens leave no room for a mistake.
    let is_simple = way.is_empty() && ["1", "4"].contains(&concurrency);
    let way = way.join(" ");
    (
        format!("| `{way}` | {concurrency} | {steps} | {percent:.1} % | {confidence} |"),
        0.98 <= share || confidence != "high" && !is_simple,
    )
}

#[test]
fn steps_over_sockets_are_those_of_the_engine() {
    let ways: [&[&str]; 3] =
        [&[], &["--jitter", "0.2"], &["--tokens-per-write", "8", "--jitter", "0.2"]];
    let loads = [("1", "3"), ("4", "12"), ("16", "40"), ("64", "128")];
    let mut rows = Vec::new();
    for way in ways {
        std::thread::scope(|scope| {
            let all =
                loads.map(|(slots, requests)| scope.spawn(move || compared(way, slots, requests)));
            rows.extend(all.map(|one| one.join().unwrap()));
        });
    }
    let table = rows.iter().map(|row| row.0.as_str()).collect::<Vec<_>>().join("\n");
    // The table of docs/anatomy.md.
    fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("steps.md"), &table).unwrap();
    assert!(rows.iter().all(|row| row.1), "{table}");
}

#[test]
fn ttft_has_the_parts_that_the_server_reports() {
    let folder = tempfile::tempdir().unwrap();
    let timed = ["--request-times", "vllm", "--max-num-seqs", "4", "--speed", "0.5"];
    let engine = Engine::start(&[&SERVE[..], &timed].concat());
    run(&engine, folder.path(), "12", "48");
    let found = anatomy(folder.path());
    let first = &found["anatomy"]["first_token"];
    let (all, parts) = (first["mean_ms"].as_f64().unwrap(), &first["reported"]);
    let part = |key: &str| parts[key].as_f64();
    let known = ["queue_ms", "prefill_ms", "network_ms", "client_ms", "rest_ms"];
    let sum: f64 = known.iter().filter_map(|key| part(key)).sum();
    assert!((sum - part("mean_ms").unwrap()).abs() < 1e-6, "{first:#}");
    assert!((sum - all).abs() < 1e-6, "every request is timed: {first:#}");
    // Eight of twelve wait for a place.
    assert!(0.5 * all < part("queue_ms").unwrap(), "{first:#}");
    assert!(0.0 < part("prefill_ms").unwrap(), "{first:#}");
    let between = &found["anatomy"]["between_tokens"];
    let part = |key: &str| between[key].as_f64().unwrap();
    let parts = ["decode_ms", "prefill_ms", "stall_ms", "queue_ms", "delivery_ms"];
    let sum: f64 = parts.map(part).iter().sum();
    assert!((sum - part("mean_ms")).abs() < 1e-6, "{between:#}");
    // llama.cpp times the prefill and not the queue, which is then not zero but unknown.
    let folder = tempfile::tempdir().unwrap();
    let timed = ["--request-times", "llama.cpp", "--speed", "0.5"];
    let engine = Engine::start(&[&SERVE[..], &timed].concat());
    run(&engine, folder.path(), "4", "16");
    let parts = &anatomy(folder.path())["anatomy"]["first_token"]["reported"];
    assert!(parts["queue_ms"].is_null() && parts["prefill_ms"].is_number(), "{parts:#}");
}
