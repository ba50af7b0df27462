//! Suites: one engine through each round, stopped and gone on with, verified and listed.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::fs;
use std::path::Path;
use std::time::Duration;

use inferometer_model::spec::EngineTable;
use inferometer_model::study::Prompts;
use serde_json::Value;

use support::suites::{Asks, Common, stored, summary};
use support::{Engine, output, text};

const SCENARIOS: [Asks; 2] = [
    Asks { name: "Alone", input: "256", output: "8", requests: 6, concurrency: &[1] },
    Asks { name: "Scaling", input: "128", output: "8", requests: 6, concurrency: &[2, 4] },
];

/// An engine with steps of a millisecond and all the same prompts, so that its cache shows.
fn common(runs: u32) -> Common {
    let engine = EngineTable { step: Some(Duration::from_millis(1)), ..EngineTable::default() };
    Common { engine, url: None, vllm_random: false, prompts: Prompts::Same, runs }
}

/// In virtual time, where nothing is left to chance.
fn go_on(folder: &Path) -> String {
    let (code, said) = resumed(folder);
    assert_eq!(code, Some(0), "{said}");
    said
}

fn go_on_live(folder: &Path) -> String {
    let (code, said) = resumed(folder);
    // A machine that is busy with other things may spoil a run over the wire.
    assert!(matches!(code, Some(0 | 4)), "{said}");
    said
}

fn resumed(folder: &Path) -> (Option<i32>, String) {
    let ran = output(&["suite", "--resume", "latest", "--trust"], folder);
    (ran.status.code(), text(&ran.stdout) + &text(&ran.stderr))
}

/// Takes away what was played from a point on, as if it had been stopped there.
fn stopped_before(set: &Path, point: u32, points: u32) {
    fs::remove_file(set.join("summary.json")).unwrap();
    for number in point..points {
        fs::remove_dir_all(set.join(format!("points/{number}"))).unwrap();
    }
}

fn run(set: &Path, point: u32) -> Value {
    let bytes = fs::read(set.join(format!("points/{point}/summary.json"))).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// What the first runs of a set took from the prefix cache.
fn cached(set: &Path) -> Vec<f64> {
    let share = |point| {
        let run = run(set, point);
        let by_usage = run["workload"]["audit"]["cache"]["share"].as_f64();
        by_usage.or_else(|| run["server"]["prefix_hit_share"].as_f64()).unwrap()
    };
    (0..3).map(share).collect()
}

fn target(set: &Path, point: u32) -> String {
    run(set, point)["run"]["target"].as_str().unwrap().to_owned()
}

#[test]
fn a_suite_that_was_stopped_goes_on_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let set = stored(folder.path(), common(2).study(&SCENARIOS), true);
    let said = go_on(folder.path());
    assert!(said.contains("[3/6] Scaling, c=4, round 1 of 2: …"), "{said}");
    let whole = fs::read(set.join("summary.json")).unwrap();
    let shares = cached(&set);
    assert!(shares[0] < 0.01 && 0.5 < shares[1] && 0.5 < shares[2], "{shares:?}");

    for point in [1, 3, 5] {
        stopped_before(&set, point, 6);
        let verified = output(&["verify", "latest"], folder.path());
        let words = text(&verified.stderr);
        assert!(words.contains("resume with: inferometer suite --resume"), "{words}");
        let said = go_on(folder.path());
        // A round begins with a new engine, and needs nothing played again.
        assert_eq!(said.contains("playing the stored runs"), point != 3, "{point}: {said}");
        assert!(whole == fs::read(set.join("summary.json")).unwrap(), "stopped before {point}");
    }
    let verified = output(&["verify", "latest"], folder.path());
    assert_eq!(verified.status.code(), Some(0), "{}", text(&verified.stdout));
    assert!(text(&verified.stdout).contains("6 runs add up"), "{}", text(&verified.stdout));
    let said = go_on(folder.path());
    assert!(said.contains("already complete"), "{said}");
}

#[test]
fn a_live_engine_is_kept_through_each_round_and_says_when_it_was_not() {
    let folder = tempfile::tempdir().unwrap();
    let set = stored(folder.path(), common(2).study(&SCENARIOS), false);
    go_on_live(folder.path());
    let targets: Vec<String> = (0..6).map(|point| target(&set, point)).collect();
    let rounds: Vec<&[String]> = targets.chunks(3).collect();
    for round in &rounds {
        assert!(round.iter().all(|target| *target == round[0]), "{targets:?}");
    }
    assert_ne!(rounds[0][0], rounds[1][0]);
    let played = summary(&set);
    let shares = cached(&set);
    assert!(shares[0] < 0.01 && 0.5 < shares[1] && 0.5 < shares[2], "{shares:?}");
    let keys = |set: &Value| set["warnings"].to_string();
    assert!(!keys(&played).contains("engine-anew"), "{}", keys(&played));

    stopped_before(&set, 5, 6);
    let said = go_on_live(folder.path());
    assert!(said.contains("the engine is new"), "{said}");
    let played = summary(&set);
    assert!(keys(&played).contains("engine-anew"), "{}", keys(&played));
}

#[test]
fn a_server_of_others_is_asked_once_for_all_scenarios() {
    let engine = Engine::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let nothing = EngineTable::default();
    let common = Common { url: Some(engine.url()), engine: nothing, ..common(1) };
    let set = stored(folder.path(), common.study(&SCENARIOS), false);
    go_on_live(folder.path());
    assert_eq!(target(&set, 0), target(&set, 2));
    let (requests, warm_ups) = (18, 3);
    let asked = engine.truth().requests.len();
    let probes = asked - requests - warm_ups;
    assert!((1..=6).contains(&probes), "{probes} questions before the runs");
}

#[test]
fn a_suite_is_listed_by_its_name_and_compared_row_by_row() {
    let folder = tempfile::tempdir().unwrap();
    let set = stored(folder.path(), common(1).study(&SCENARIOS), true);
    let listed = text(&output(&["runs"], folder.path()).stdout);
    assert!(listed.contains("suite own") && listed.contains("2 scenarios"), "{listed}");
    let required = ["sweep", "--resume", "latest", "--require", "ttft.p99<1s"];
    let refused = output(&required, folder.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("inferometer require SET/N"), "{refused:?}");

    let page = go_on(folder.path());
    assert!(page.contains("suite `own`") && page.contains("Scaling (c=4)"), "{page}");
    let listed = output(&["runs", "--json"], folder.path());
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["sets"][0]["suite"], "own", "{listed}");

    let name = set.file_name().unwrap().to_str().unwrap();
    let compared = output(&["compare", name, name, "--force"], folder.path());
    // A run says nothing about itself, so nothing can be decided.
    assert_eq!(compared.status.code(), Some(4), "{}", text(&compared.stderr));
    assert!(text(&compared.stdout).contains("Scaling (c=4)"), "{}", text(&compared.stdout));
}
