//! Runs and sets against each other, through the real binary and in virtual time.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::fs;
use std::num::NonZeroU32;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use inferometer_model::study::{Condition, Question, Repetition, RunOrder, StudySpec};
use inferometer_store::{RunDirectory, RunStore};
use serde_json::Value;

use support::{output, text};

/// Simulates a closed loop of eight on an engine with this step, and gives the run's id.
fn run(folder: &Path, step: &str, seed: u64, more: &[&str]) -> String {
    let seed = seed.to_string();
    let load = ["--concurrency", "8", "--requests", "160", "--output-tokens", "uniform:4..60"];
    let engine = ["--engine-step", step, "--seed", &seed];
    let arguments = [&["simulate", "--quiet", "--json"][..], &load, &engine, more].concat();
    let ran = output(&arguments, folder);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
    document["run"]["id"].as_str().unwrap().to_owned()
}

/// Three runs with these seeds as the points of a set; gives its id.
fn set(folder: &Path, step: &str, seeds: [u64; 3]) -> String {
    let runs = seeds.map(|seed| run(folder, step, seed, &[]));
    let store = RunStore::open(folder.join("runs")).unwrap();
    let run = RunDirectory::at(folder.join("runs").join(&runs[0]));
    let spec = run.manifest().unwrap().spec;
    let study = StudySpec {
        question: Question::Repeat,
        conditions: vec![Condition { name: step.to_owned(), spec }],
        repetition: Repetition {
            runs: NonZeroU32::new(3).unwrap(),
            cool_down: Duration::ZERO,
            restart: None,
            stop_at: None,
        },
        order: RunOrder::Interleaved,
        seed: seeds[0],
    };
    let set = store.create_set(study, true, Vec::new(), None, 1_800_000_000_000_000_000).unwrap();
    fs::create_dir_all(set.path().join("points")).unwrap();
    for (number, run) in (0..).zip(&runs) {
        fs::rename(folder.join("runs").join(run), set.point(number).path()).unwrap();
    }
    set.id().to_owned()
}

fn compare(folder: &Path, arguments: &[&str]) -> Output {
    output(&[&["compare"], arguments].concat(), folder)
}

fn document(compared: &Output) -> Value {
    serde_json::from_slice(&compared.stdout).unwrap()
}

#[test]
fn a_slower_set_is_a_regression_and_exits_with_ten() {
    let folder = tempfile::tempdir().unwrap();
    let base = set(folder.path(), "10ms", [1, 2, 3]);
    let slow = set(folder.path(), "11ms", [4, 5, 6]);
    let compared = compare(folder.path(), &[&base, &slow, "--json"]);
    assert_eq!(compared.status.code(), Some(10), "{}", text(&compared.stderr));
    let found = document(&compared);
    assert_eq!(found["schema"], "inferometer.comparison/1");
    assert_eq!(found["primary"], "output_throughput");
    let outcome = &found["outcomes"][0];
    assert_eq!((&outcome["judgement"], &outcome["basis"]), (&"worse".into(), &"unpaired".into()));
    let ratio = outcome["change"]["value"].as_f64().unwrap();
    assert!((ratio - 10.0 / 11.0).abs() < 0.03, "{ratio}");

    let back = compare(folder.path(), &[&slow, &base]);
    assert_eq!(back.status.code(), Some(0), "{}", text(&back.stdout));
    assert!(text(&back.stdout).contains("BETTER  B against A"), "{}", text(&back.stdout));
    assert!(text(&back.stdout).contains("SIMULATED"), "{}", text(&back.stdout));
}

#[test]
fn the_same_seeds_are_paired_and_the_same_server_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = [(); 2].map(|()| set(folder.path(), "10ms", [1, 2, 3]));
    let compared = compare(folder.path(), &[&one, &two, "--json"]);
    assert_eq!(compared.status.code(), Some(0), "{}", text(&compared.stderr));
    let outcome = &document(&compared)["outcomes"][0];
    assert_eq!((&outcome["judgement"], &outcome["basis"]), (&"same".into(), &"paired".into()));
}

#[test]
fn single_runs_never_exit_with_ten_and_say_what_they_do_not_know() {
    let folder = tempfile::tempdir().unwrap();
    let base = run(folder.path(), "10ms", 1, &[]);
    let slow = run(folder.path(), "20ms", 2, &[]);
    let (base, slow) = (format!("base={base}"), format!("slow={slow}"));
    let compared = compare(folder.path(), &[&base, &slow, "--json"]);
    assert_eq!(compared.status.code(), Some(0), "{}", text(&compared.stderr));
    let found = document(&compared);
    assert_eq!(found["outcomes"][0]["basis"], "within_run");
    assert_eq!(found["outcomes"][0]["regression"], false);
    assert_eq!(found["sides"][1]["name"], "slow");
}

#[test]
fn another_workload_is_refused_with_its_difference_unless_forced() {
    let folder = tempfile::tempdir().unwrap();
    let base = run(folder.path(), "10ms", 1, &[]);
    let longer = run(folder.path(), "10ms", 1, &["--input-tokens", "1024"]);
    let refused = compare(folder.path(), &[&base, &longer]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("the length of prompts differs: 512 in the base, 1024 in B"), "{said}");
    assert!(said.contains("--force") && refused.stdout.is_empty(), "{said}");
    let forced = compare(folder.path(), &[&base, &longer, "--force"]);
    assert_eq!(forced.status.code(), Some(0), "{}", text(&forced.stderr));
    assert!(text(&forced.stdout).contains("FORCED"), "{}", text(&forced.stdout));
}

#[test]
fn what_cannot_be_compared_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let only = run(folder.path(), "10ms", 1, &[]);
    for (arguments, expected) in [
        (vec![&only[..]], "at least two sides"),
        (vec![&only, "nobody"], "there is no run `nobody`"),
        (vec![&only, &only, "--primary", "tftt.p99"], "the nearest is `ttft`"),
        (vec![&only, &only, "--margin", "much"], "such as 3% or 0.03"),
        (vec![&only, &only, "--gpus", "8", "--tp", "A=8"], "side `B` has no tensor-parallel size"),
        (vec!["x=latest", "x=latest"], "two sides are called `x`"),
    ] {
        let refused = compare(folder.path(), &arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        let said = text(&refused.stderr);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    let twice = compare(folder.path(), &[&only, &only]);
    assert_eq!(twice.status.code(), Some(2));
    assert!(
        text(&twice.stderr).contains("cannot be compared with itself"),
        "{}",
        text(&twice.stderr)
    );
}

#[test]
fn a_side_without_valid_runs_exits_with_four() {
    let folder = tempfile::tempdir().unwrap();
    let base = run(folder.path(), "10ms", 1, &[]);
    let other = run(folder.path(), "10ms", 2, &[]);
    let path = folder.path().join("runs").join(&other).join("summary.json");
    let mut summary: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    summary["verdict"] = "invalid".into();
    // As an earlier version would have written it.
    summary.as_object_mut().unwrap().remove("checksum").unwrap();
    fs::write(&path, summary.to_string()).unwrap();
    let compared = compare(folder.path(), &[&base, &other]);
    assert_eq!(compared.status.code(), Some(4), "{}", text(&compared.stderr));
    assert!(text(&compared.stdout).contains("no valid runs are left of B"));
}

#[test]
fn a_run_without_a_summary_is_computed_again() {
    let folder = tempfile::tempdir().unwrap();
    let base = run(folder.path(), "10ms", 1, &[]);
    let before = compare(folder.path(), &[&base, &base, "--force", "--json"]);
    fs::remove_file(folder.path().join("runs").join(&base).join("summary.json")).unwrap();
    let after = compare(folder.path(), &[&base, &base, "--force", "--json"]);
    assert_eq!(document(&before), document(&after));
}

#[test]
fn markdown_has_the_layouts_of_a_node() {
    let folder = tempfile::tempdir().unwrap();
    let base = set(folder.path(), "10ms", [1, 2, 3]);
    let half = set(folder.path(), "16ms", [1, 2, 3]);
    let layouts = ["--gpus", "8", "--tp", "A=8,B=4"];
    let sides = [base.as_str(), half.as_str()];
    let compared = compare(folder.path(), &[&sides[..], &layouts, &["--format", "md"]].concat());
    assert_eq!(compared.status.code(), Some(10), "slower alone, whatever a node of them gives");
    let page = text(&compared.stdout);
    for part in ["| **Output throughput", "1×8 A", "2×4 B", "| +25.0 % |", "scale linearly"] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn the_servers_of_one_sweep_are_the_sides_level_by_level() {
    let folder = tempfile::tempdir().unwrap();
    let targets = ["fast=embedded:h100-llama-3.1-8b-tp2", "slow=embedded:h100-llama-3.1-8b"];
    let load = ["--concurrencies", "4,8", "--requests", "80", "--output-tokens", "uniform:4..40"];
    let sweep = ["sweep", "--quiet", "--virtual", "--repeat", "2", "--noise", "0.02"];
    let servers = ["--target", targets[0], "--target", targets[1]];
    let swept = output(&[&sweep[..], &load, &servers].concat(), folder.path());
    assert_eq!(swept.status.code(), Some(0), "{}", text(&swept.stderr));
    let compared = compare(folder.path(), &["latest", "--json"]);
    assert_eq!(compared.status.code(), Some(10), "{}", text(&compared.stderr));
    let found = document(&compared);
    let names: Vec<&str> = found["sides"]
        .as_array()
        .unwrap()
        .iter()
        .map(|side| side["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["fast", "slow"]);
    assert_eq!(found["levels"].as_array().unwrap().len(), 2);
    assert_eq!(found["levels"][0]["level"]["concurrency"], 4);
    assert_eq!(found["outcomes"][0]["basis"], "paired");
}

#[test]
fn what_decides_nothing_says_so_aloud_and_does_not_pass() {
    let folder = tempfile::tempdir().unwrap();
    let base = set(folder.path(), "10ms", [1, 2, 3]);
    let other = set(folder.path(), "11ms", [4, 5, 6]);
    // A hundred and sixty requests are too few for a 99th percentile.
    let primary = ["--primary", "ttft.p99"];
    let compared = compare(folder.path(), &[&[&base[..], &other], &primary[..]].concat());
    assert_eq!(compared.status.code(), Some(4), "{}", text(&compared.stderr));
    let page = text(&compared.stdout);
    assert!(page.contains("NOTHING WAS DECIDED: TTFT p99"), "{page}");
    let compared = compare(folder.path(), &[&[&base[..], &other, "--json"], &primary[..]].concat());
    assert!(text(&compared.stderr).contains("NOTHING WAS DECIDED"), "{}", text(&compared.stderr));
    assert_eq!(document(&compared)["outcomes"][0]["judgement"], "not_compared");
}

#[test]
fn hardware_that_was_noted_is_compared() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = [(1, "gpu=H100"), (2, "gpu=A100")]
        .map(|(seed, gpu)| run(folder.path(), "10ms", seed, &["--metadata", gpu]));
    let compared = compare(folder.path(), &[&one, &two]);
    let page = text(&compared.stdout);
    assert!(page.contains("the hardware differs (`gpu`): H100 in the base, A100 in B"), "{page}");
}

#[test]
fn a_comparison_has_a_page_with_charts_of_the_changes() {
    let folder = tempfile::tempdir().unwrap();
    let base = run(folder.path(), "10ms", 1, &[]);
    let other = run(folder.path(), "8ms", 1, &[]);
    let sides = [format!("slow={base}"), format!("fast={other}")];
    let arguments = [sides[0].as_str(), &sides[1], "--to", "page.html"];
    let ran = compare(folder.path(), &arguments);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert_eq!(text(&ran.stdout).trim(), "page.html");
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    let sections = ["Changes by metric", "Largest increase: "];
    let charts = ["fast against slow", "Change of Output throughput", "<svg", "TPOT p99"];
    for wanted in charts.into_iter().chain(sections) {
        assert!(page.contains(wanted), "{wanted}");
    }
    assert_eq!(page.matches("id=\"notes").count(), 1, "one section of notes");
    assert!(page.contains("Content-Security-Policy"), "a page that may load nothing");
}
