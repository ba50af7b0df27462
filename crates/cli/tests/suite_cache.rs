//! The trap of a published suite: prompts that a server has seen before, in virtual time on the
//! profile that was fitted to it. What the client draws alike in every scenario the prefix cache
//! answers, and the set says so; with prompts of our own it does not happen.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::path::Path;

use inferometer_model::spec::EngineTable;
use inferometer_model::study::Prompts;
use serde_json::Value;

use support::suites::{Asks, Common, stored, summary};
use support::{output, text};

const SCALING: usize = 5;

/// The ten rows of the published suite.
const SCENARIOS: [Asks; 6] = [
    asks("Single User Latency", ("2048", "512"), 20, &[1]),
    asks("Short Context Throughput", ("512", "256"), 50, &[16]),
    asks("Long Context (16K)", ("16384", "1024"), 10, &[4]),
    asks("Decode Stress Test", ("128", "2048"), 5, &[1]),
    asks("Mixed Traffic", ("2048±50%", "512±50%"), 30, &[8]),
    asks("Concurrency Scaling", ("1024", "256"), 30, &[2, 4, 8, 16, 32]),
];

const fn asks(
    name: &'static str,
    (input, output): (&'static str, &'static str),
    requests: u64,
    concurrency: &'static [u32],
) -> Asks {
    Asks { name, input, output, requests, concurrency }
}

fn played(folder: &Path, vllm_random: bool, prompts: Prompts) -> Value {
    let engine =
        EngineTable { profile: Some("mi100x4-devstral-24b".to_owned()), ..EngineTable::default() };
    let common = Common { engine, url: None, vllm_random, prompts, runs: 1 };
    let set = stored(folder, common.study(&SCENARIOS), true);
    let ran = output(&["sweep", "--resume", "latest", "-q"], folder);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    summary(&set)
}

/// A quantity of a level of the scaling scenario, by its index.
fn scaling(set: &Value, place: usize, quantity: &str) -> f64 {
    level(set, SCALING, place, quantity)
}

fn level(set: &Value, condition: usize, place: usize, quantity: &str) -> f64 {
    set["conditions"][condition]["levels"][place]["quantities"][quantity]["mean"].as_f64().unwrap()
}

fn keys(set: &Value) -> Vec<&str> {
    let notices = set["warnings"].as_array().unwrap();
    notices.iter().map(|notice| notice["key"].as_str().unwrap()).collect()
}

#[test]
fn the_same_prompts_in_every_scenario_measure_the_prefix_cache_and_the_set_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let set = played(folder.path(), true, Prompts::Same);
    let alone = level(&set, 0, 0, "pp");
    let four = scaling(&set, 1, "pp");
    assert!(3.0 * alone < four, "prompts read at {four} tokens/s, and alone at {alone}");
    let (mean, median) = (scaling(&set, 0, "ttft.mean"), scaling(&set, 0, "ttft.p50"));
    assert!(1.5 * median < mean, "a third of the prompts is cold: {mean} over {median}");

    let warning =
        set["warnings"].as_array().unwrap().iter().find(|notice| notice["key"] == "warm-cache");
    let warning = warning.expect("the set warns");
    assert_eq!(warning["severity"], "degraded");
    assert_eq!(set["verdict"], "degraded");
    let words = warning["text"].as_str().unwrap();
    for evidence in [
        "Concurrency Scaling (c=4)",
        "and Single User Latency of",
        "Concurrency Scaling (c=2) is",
        "Single User Latency and later scenarios sent prompts with the same beginning",
    ] {
        assert!(words.contains(evidence), "{evidence}: {words}");
    }
    assert!(warning["remedy"].as_str().unwrap().contains("--prompts fresh"), "{warning}");

    let rows = set["suite"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 10);
    // The warm-up sends the first of the prompts, as the client of the published suite does.
    let first = rows[0]["cached_share"].as_f64().unwrap();
    assert!(first < 0.05, "of twenty prompts one is warm: {first}");
    let found = set["suite"]["contaminated"].as_array().unwrap();
    let two = found.iter().find(|found| found["row"] == 5).unwrap();
    assert_eq!((&two["suspected"], &two["cold"]), (&Value::from(false), &Value::from(0)));
    let share = two["cached_share"].as_f64().unwrap();
    assert!((0.5..0.95).contains(&share), "20 of 30 prompts are warm, the others in part: {share}");
}

#[test]
fn prompts_of_their_own_are_read_and_nothing_is_to_be_said() {
    let folder = tempfile::tempdir().unwrap();
    let set = played(folder.path(), false, Prompts::Fresh);
    assert!(!keys(&set).iter().any(|key| key.contains("cache")), "{:?}", keys(&set));
    assert_eq!(set["suite"]["contaminated"], Value::Array(Vec::new()));
    let rows = set["suite"]["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["cached_share"] == 0.0), "{rows:?}");
    let (alone, four) = (level(&set, 0, 0, "pp"), scaling(&set, 1, "pp"));
    assert!(four < alone, "four users wait for each other: {four} and {alone}");
}
