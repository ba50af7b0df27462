//! What `matrix` understands without putting anything up: built-in matrices and files, and what is
//! refused.

use crate::support;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use support::{output, text};

/// One cell that fits its GPU, and one that does not.
const SMALL: &str = r#"
[matrix]
title = "Small and large"
currency = "EUR"
concurrency = [2]

[[preset]]
name = "one"
gpus = 1
price_per_hour = 3600
engine = { hardware = "v100-pcie-16gb", dtype = "half", max_model_len = 2048 }

[[model]]
name = "meta-llama/Llama-3.2-3B-Instruct"
label = "3B"

[[model]]
name = "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B"
label = "32B"

[workload]
input_tokens = 32
output_tokens = 8

[load]
requests = 6
"#;

fn dry_run(arguments: &[&str], folder: &Path) -> Value {
    let arguments = [&["matrix", "--dry-run", "--json"], arguments].concat();
    let ran = output(&arguments, folder);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert!(!folder.join("runs").exists(), "nothing was made");
    serde_json::from_slice(&ran.stdout).expect("a document")
}

#[track_caller]
fn assert_refused(arguments: &[&str], folder: &Path, wanted: &[&str]) {
    let ran = output(&[&["matrix"], arguments].concat(), folder);
    assert_eq!(ran.status.code(), Some(2), "{arguments:?}: {}", text(&ran.stdout));
    let said = text(&ran.stderr);
    for part in wanted {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!folder.join("runs").exists(), "nothing was made");
}

#[test]
fn a_dry_run_tells_time_and_cost_and_what_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    let found = dry_run(&["small.toml", "--repeat", "2"], folder.path());
    assert_eq!(found["schema"], "inferometer.matrix-outline/1");
    assert_eq!((&found["runs"], &found["requests"]), (&json!(2), &json!(12)));
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells[0]["name"], "one · 3B");
    assert_eq!((&cells[0]["requests"], &cells[0]["cannot_be"]), (&json!(6), &Value::Null));
    // A second of it costs one.
    let (time, cost) = (cells[0]["time_s"].as_f64().unwrap(), cells[0]["cost"].as_f64().unwrap());
    assert!(0.0 < time && (time - cost).abs() < 1e-9, "{time} {cost}");
    let whole = found["cost"].as_f64().unwrap();
    assert!((whole - 2.0 * cost).abs() < 1e-9, "{whole}");
    let reason = cells[1]["cannot_be"][0].as_str().unwrap();
    assert!(reason.contains("does not fit") && reason.contains("GiB are needed"), "{reason}");
    assert_eq!((&cells[1]["time_s"], &cells[1]["cost"]), (&Value::Null, &Value::Null));
    let page = output(&["matrix", "small.toml", "--dry-run"], folder.path());
    // Lines are broken where they are full.
    let page = text(&page.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    let parts =
        ["Small and large", "one · 3B", "may be used", "EUR", "2 cells (1 of", "--repeat 5"];
    for part in parts {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn servers_rest_between_each_other_and_not_between_their_loads() {
    let folder = tempfile::tempdir().unwrap();
    let rests = SMALL.replace("concurrency = [2]", "concurrency = [1, 2]\ncool_down = \"100s\"");
    fs::write(folder.path().join("rests.toml"), rests).unwrap();
    let found = dry_run(&["rests.toml", "--repeat", "3"], folder.path());
    assert_eq!(found["runs"], 6);
    let once = found["cells"][0]["time_s"].as_f64().unwrap();
    let rest = found["time_s"].as_f64().unwrap() - 3.0 * once;
    assert!((rest - 200.0).abs() < 1e-3, "three servers have two rests: {rest}");
}

#[test]
fn the_plan_is_told_first_and_runs_with_failed_requests_are_measured_again() {
    let folder = tempfile::tempdir().unwrap();
    // Some prompts have no room.
    let tight = SMALL.replace("concurrency = [2]", "concurrency = [2]\ncontexts = [128]");
    let tight = tight.replace(", max_model_len = 2048", "");
    let tight = tight.replace("input_tokens = 32", "input_tokens = \"uniform:118..140\"");
    fs::write(folder.path().join("tight.toml"), tight).unwrap();
    let only = ["matrix", "tight.toml", "--virtual", "--only", "model=3B"];
    let ran = output(&only, folder.path());
    let said = text(&ran.stderr);
    let (plan, cell) = (said.find("plan: 1 cell, 1 run, 6 requests"), said.find("cell 1 of 1"));
    assert!(plan.is_some() && plan < cell, "{said}");
    let resume = ["matrix", "--resume", "latest"];
    let left = output(&resume, folder.path());
    assert!(text(&left.stderr).contains("already complete"), "{}", text(&left.stderr));
    let again = output(&[&resume[..], &["--retry-failed"]].concat(), folder.path());
    let said = text(&again.stderr);
    assert!(said.contains("requests that failed") && said.contains("measured again"), "{said}");
    let set = fs::read_dir(folder.path().join("runs")).unwrap().next().unwrap().unwrap().path();
    assert!(set.join("abandoned/0-0").is_dir() && set.join("points/0").is_dir());
    assert!(set.join("summary.json").is_file());
}

#[test]
fn what_is_always_refused_is_not_offered() {
    let folder = tempfile::tempdir().unwrap();
    let help = text(&output(&["matrix", "--help"], folder.path()).stdout);
    for word in ["--require", "--undecided", "--junit", "--step-summary", "vllm"] {
        assert!(!help.contains(word), "{word}: {help}");
    }
    assert!(help.contains("--format") && help.contains("requests failed"), "{help}");
}

#[test]
fn built_in_matrices_are_listed_shown_and_the_same_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let ran = output(&["matrix", "--list", "--json"], folder.path());
    let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let found: Vec<(&Value, &Value)> = document["matrices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|matrix| (&matrix["name"], &matrix["cells"]))
        .collect();
    let known = [("r3", 256), ("r3-concurrency", 1), ("current", 15)];
    let known = known.map(|(name, cells)| (json!(name), json!(cells)));
    assert!(found.into_iter().eq(known.iter().map(|(name, cells)| (name, cells))));
    let page = text(&output(&["matrix", "--list"], folder.path()).stdout);
    assert!(page.contains("r3-concurrency") && page.contains("cannot be deployed"), "{page}");
    let shown = output(&["matrix", "--show", "r3"], folder.path());
    fs::write(folder.path().join("r3.toml"), &shown.stdout).unwrap();
    // A few short requests, so that this is quick.
    let few = ["--only", "preset=H100X1,context=2048,strategy=tensor", "--set", "load.requests=2"];
    let few = [&few[..], &["--seed", "1"]].concat();
    let built_in = dry_run(&[&["r3"], &few[..]].concat(), folder.path());
    let own = dry_run(&[&["r3.toml"], &few[..]].concat(), folder.path());
    assert_eq!(built_in, own);
    assert_eq!(own["cells"].as_array().unwrap().len(), 4);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("small.toml"), SMALL).unwrap();
    assert_refused(&["r4"], path, &["no matrix is called `r4`", "r3"]);
    assert_refused(&["none.toml"], path, &["matrix none.toml"]);
    assert_refused(&["--show", "r33"], path, &["did you mean `r3`"]);
    assert_refused(&["small.toml", "--only", "model=8B"], path, &["--only", "8B"]);
    assert_refused(&["small.toml", "--repeat", "5000"], path, &["matrix.repeat", "1000"]);
    assert_refused(&["small.toml", "--lanes", "0"], path, &["matrix.lanes", "at least 1"]);
    let engine = "engine = { hardware = \"v100-pcie-16gb\", dtype = \"half\" }";
    let deployed = SMALL.replace(engine, "");
    let deployed = format!("{deployed}[deploy]\ncommand = \"serve {{model}} {{port}}\"\n");
    fs::write(path.join("deployed.toml"), deployed).unwrap();
    assert_refused(&["deployed.toml", "--virtual"], path, &["virtual time", "[engine]"]);
    let found = dry_run(&["deployed.toml"], path);
    assert_eq!((&found["time_s"], &found["cost"]), (&Value::Null, &Value::Null));
    assert_eq!(found["requests"], 12);
}

#[test]
fn the_schema_of_a_matrix_is_one_json_document() {
    let folder = tempfile::tempdir().unwrap();
    let ran = output(&["schema", "--matrix"], folder.path());
    let schema: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(schema["title"], "Matrix");
    assert!(schema["properties"]["preset"]["items"]["properties"]["gpus"].is_object());
}
