//! The experiment file as users meet it: what it comes to, what wins over it, and what is refused.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use support::{Engine, inferometer, output, text};

const FILE: &str = r#"
[target]
url = "http://127.0.0.1:9/team"
api = "completions"
model = "tiny"

[workload]
input_tokens = 300
output_tokens = "20±50%"
seed = 7
stream = false

[workload.body]
temperature = 0.5
stop = ["END"]
extra = { user = "me" }

[load]
concurrency = 3
think_time = "2s"
requests = 12
warm_up = 1

[slo]
e2e = "500ms"
"tpot.p99" = "50ms"

[repeat]
runs = 2
cool_down = "1m"

[limits]
connect = "3s"

[metadata]
site = "lab"
gpus = 8
"#;

fn folder_with(file: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("e.toml"), file).unwrap();
    folder
}

/// The plan that the words come to.
#[track_caller]
fn planned(folder: &Path, words: &[&str]) -> Value {
    let ran = output(&[&["run", "--dry-run", "--json"], words].concat(), folder);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

/// Exit code 2, and words on standard error that hold all these parts.
#[track_caller]
fn assert_refused(file: &str, words: &[&str], parts: &[&str]) {
    let folder = folder_with(file);
    let ran = output(&[&["run", "e.toml", "--dry-run"], words].concat(), folder.path());
    let said = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(2), "{said}");
    assert_eq!(text(&ran.stdout), "");
    for part in parts {
        assert!(said.contains(part), "{said:?} lacks {part:?}");
    }
}

#[test]
fn a_file_is_a_whole_experiment() {
    let folder = folder_with(FILE);
    let plan = planned(folder.path(), &["e.toml"]);
    let spec = &plan["spec"];
    assert_eq!(spec["target"]["url"], "http://127.0.0.1:9/team");
    assert_eq!((&spec["api"], &spec["model"]), (&json!("completions"), &json!("tiny")));
    let wanted = json!({ "synthetic": { "input": 300, "output": "20±50%", "prefix": null } });
    assert_eq!(spec["workload"]["source"], wanted);
    assert_eq!(spec["workload"]["streaming"], false);
    let fields = json!({ "temperature": 0.5, "stop": ["END"], "user": "me" });
    assert_eq!(spec["workload"]["body"]["fields"], fields);
    assert_eq!(spec["seed"], 7);
    assert_eq!(spec["load"]["shape"]["closed"]["concurrency"], 3);
    assert_eq!(spec["load"]["extent"], json!({ "requests": 12 }));
    assert_eq!(spec["load"]["warm_up"], 1);
    assert_eq!(spec["slos"], json!(["e2e<500ms", "tpot.p99<50ms"]));
    assert_eq!(spec["limits"]["connect"]["secs"], 3);
    assert_eq!(spec["metadata"], json!({ "site": "lab", "gpus": "8" }));
    assert_eq!(plan["repeat"], json!({ "runs": 2, "cool_down_s": 60.0 }));
}

#[test]
fn a_file_and_the_same_flags_are_the_same_plan() {
    let file = "[workload]\ninput_tokens = 64\noutput_tokens = 8\nseed = 3\n[load]\nrate = 5\nrequests = 9\n";
    let folder = folder_with(file);
    let lengths = ["--input-tokens", "64", "--output-tokens", "8", "--seed", "3"];
    let typed = [&lengths[..], &["--rate", "5", "--requests", "9"]].concat();
    let (by_file, by_flags) = (planned(folder.path(), &["e.toml"]), planned(folder.path(), &typed));
    assert_eq!(by_file, by_flags);
}

#[test]
fn flags_win_over_the_file() {
    let folder = folder_with(FILE);
    let words = [
        "http://127.0.0.1:8",
        "-e",
        "e.toml",
        "--rate",
        "5",
        "--seed",
        "9",
        "--stream",
        "--duration",
        "4s",
        "--temperature",
        "0.9",
        "--slo",
        "e2e<3s",
        "--metadata",
        "site=field",
        "--repeat",
        "1",
    ];
    let plan = planned(folder.path(), &words);
    let spec = &plan["spec"];
    assert_eq!(spec["target"]["url"], "http://127.0.0.1:8");
    assert_eq!(spec["api"], "completions", "what no flag speaks of stays");
    // The file's loop and end are of another kind.
    assert_eq!(spec["load"]["shape"]["open"]["rate"]["steady"]["per_s"], 5.0);
    assert_eq!(spec["load"]["extent"]["duration"]["secs"], 4);
    assert_eq!(spec["load"]["warm_up"], 1);
    assert_eq!(spec["seed"], 9);
    assert_eq!(spec["workload"]["streaming"], true);
    assert_eq!(spec["workload"]["body"]["fields"]["temperature"], 0.9);
    assert_eq!(spec["workload"]["body"]["fields"]["user"], "me");
    assert_eq!(spec["slos"], json!(["e2e<3s"]));
    assert_eq!(plan["repeat"]["runs"], 1);
    assert_eq!(spec["metadata"], json!({ "site": "field", "gpus": "8" }));
}

#[test]
fn set_reaches_every_table_and_flags_win_over_it() {
    let folder = folder_with(FILE);
    let sets = [
        "e.toml",
        "--set",
        "load.rate=inf",
        "--set",
        "slo.e2e=300ms",
        "--set",
        "slo.ttft.p99=1s",
        "--set",
        "workload.body.extra.user=you",
        "--set",
        "limits.idle=9s",
        "--seed",
        "1",
        "--set",
        "workload.seed=2",
    ];
    let spec = &planned(folder.path(), &sets)["spec"];
    assert_eq!(spec["load"]["shape"]["open"]["rate"], "unlimited");
    assert_eq!(spec["slos"], json!(["e2e<300ms", "tpot.p99<50ms", "ttft.p99<1s"]));
    assert_eq!(spec["workload"]["body"]["fields"]["user"], "you");
    assert_eq!(spec["limits"]["idle"]["secs"], 9);
    assert_eq!(spec["seed"], 1);
}

#[test]
fn a_misspelt_key_is_named_with_its_line_and_the_nearest() {
    let file = "[workload]\ninput_tokens = 5\noutptu_tokens = 5\n";
    assert_refused(file, &[], &["e.toml:3", "outptu_tokens", "did you mean `output_tokens`?"]);
    let file = "[workload.body]\ncolour = 1\n";
    assert_refused(file, &[], &["e.toml:2", "colour", "[workload.body]", "temperature", "top_k"]);
    assert_refused("[lod]\nrate = 1\n", &[], &["e.toml:1", "table `lod`", "did you mean `load`?"]);
    let file = "[[workload.mix]]\nweight = 1\n\n[[workload.mix]]\nwieght = 2\n";
    assert_refused(file, &[], &["e.toml:5", "wieght", "did you mean `weight`?"]);
    assert_refused("", &["--set", "load.rat=5"], &["--set load.rat: ", "did you mean `rate`?"]);
}

#[test]
fn a_wrong_kind_of_value_is_told_what_was_expected() {
    let refused = |file: &str, parts: &[&str]| assert_refused(file, &[], parts);
    refused(
        "[load]\nrequests = \"many\"\n",
        &["e.toml:2", "load.requests", "whole number", "many"],
    );
    refused(
        "[load]\nconcurrency = 2.5\n",
        &["e.toml:2", "load.concurrency", "whole number", "2.5"],
    );
    refused("[load]\nconcurrency = 0\n", &["e.toml:2", "load.concurrency", "at least 1"]);
    refused("[load]\nduration = 30\n", &["e.toml:2", "load.duration", "text"]);
    refused("[load]\nduration = \"30\"\n", &["e.toml:2", "load.duration", "30s"]);
    refused("[load]\narrivals = \"even\"\n", &["e.toml:2", "constant, poisson, gamma", "even"]);
    refused("[workload]\nstream = 1\n", &["e.toml:2", "workload.stream", "true or false"]);
    refused("[workload]\ninput_tokens = \"few\"\n", &["e.toml:2", "few", "uniform:256..1024"]);
    refused("[workload.body]\nstop = \"x\"\n", &["e.toml:2", "workload.body.stop", "a list"]);
    refused("[workload.body]\n\nlora = [\"a\", 1]\n", &["e.toml:3", "lora.1", "text"]);
    refused("load = 3\n", &["e.toml:1", "`load` must be a table"]);
    refused("[target]\nurl = \"ftp://h\"\n", &["e.toml:2", "ftp"]);
    refused("[slo]\nttft = \"soon\"\n", &["e.toml:2", "soon", "ttft<500ms"]);
}

#[test]
fn a_contradiction_within_a_file_names_its_lines() {
    let file = "[load]\nconcurrency = 3\nrate = 5\n";
    let parts =
        ["set one", "`load.concurrency` is set at e.toml:2", "`load.rate` is set at e.toml:3"];
    assert_refused(file, &[], &parts);
}

#[test]
fn what_is_no_toml_is_shown_with_its_place() {
    let file = "[load]\nrequests = 3\nduration = 30s\n";
    assert_refused(file, &[], &["e.toml:3:", " 3 | duration = 30s", "^", "hint:", "quotes"]);
    assert_refused("[load\n", &[], &["e.toml:1:"]);
    assert_refused("a = 1\na = 2\n", &[], &["e.toml:2:", "duplicate"]);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for words in [&["nowhere.toml"][..], &["--experiment", "nowhere.toml"]] {
        let ran = output(&[&["run"], words].concat(), folder.path());
        assert_eq!(ran.status.code(), Some(2));
        assert!(text(&ran.stderr).contains("nowhere.toml"), "{}", text(&ran.stderr));
    }
    let folder = folder_with("");
    let ran = output(&["run", "e.toml", "-e", "e.toml"], folder.path());
    assert_eq!(ran.status.code(), Some(2));
    assert!(text(&ran.stderr).contains("give one"), "{}", text(&ran.stderr));
}

#[test]
fn files_that_a_file_names_lie_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(inner.join("e.toml"), "[workload.body]\ntools = \"t.json\"\n").unwrap();
    std::fs::write(inner.join("t.json"), r#"[{ "type": "function" }]"#).unwrap();
    let spec = &planned(folder.path(), &["inner/e.toml"])["spec"];
    assert_eq!(spec["workload"]["body"]["fields"]["tools"], json!([{ "type": "function" }]));
    std::fs::write(inner.join("t.json"), "{}").unwrap();
    let ran = output(&["run", "inner/e.toml", "--dry-run"], folder.path());
    assert_eq!(ran.status.code(), Some(2));
    let said = text(&ran.stderr);
    assert!(said.contains("t.json") && said.contains("list of tool definitions"), "{said}");
}

#[test]
fn the_schema_is_one_json_document() {
    let folder = tempfile::tempdir().unwrap();
    let ran = output(&["schema"], folder.path());
    assert!(ran.status.success());
    let schema: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["additionalProperties"], false);
    for table in
        ["target", "workload", "load", "slo", "repeat", "sweep", "client", "limits", "metadata"]
    {
        assert_eq!(schema["properties"][table]["type"], "object", "{table}");
    }
    let rate = &schema["properties"]["load"]["properties"]["rate"];
    assert_eq!(rate["type"], json!(["number", "string"]));
    assert!(!text(&ran.stdout).contains("null"), "what is not set is absent");
}

#[test]
fn repeated_runs_are_one_set() {
    let folder = folder_with("[repeat]\nruns = 2\ncool_down = \"50ms\"\n[workload]\nseed = 5\n");
    let engine = Engine::start(&["--ttft", "2ms", "--gap", "1ms"]);
    let size = ["--requests", "4", "--output-tokens", "2", "-q", "--json"];
    let url = engine.url();
    let ran = output(&[&["run", &url, "-e", "e.toml"], &size[..]].concat(), folder.path());
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let set: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let [first, second] = &set["points"].as_array().unwrap()[..] else { panic!("{set}") };
    assert_ne!(first["plan_fingerprint"], second["plan_fingerprint"], "a seed of its own");
    assert_eq!(first["workload_fingerprint"], second["workload_fingerprint"], "the same question");
    let points = folder.path().join("runs").join(set["set"].as_str().unwrap()).join("points");
    for number in ["0", "1"] {
        assert!(points.join(number).join("summary.json").exists(), "{number}");
    }
    assert_eq!(std::fs::read_dir(folder.path().join("runs")).unwrap().count(), 1);
}

#[test]
fn ctrl_c_ends_the_rest_between_runs_and_keeps_what_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "2ms", "--gap", "1ms"]);
    let mut run = inferometer()
        .args(["run", &engine.url(), "--json", "--requests", "4", "--output-tokens", "2"])
        .args(["--repeat", "3", "--cool-down", "1h"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("resting for 1 h")), "it rests");
    kill(Pid::from_raw(i32::try_from(run.id()).unwrap()), Signal::SIGINT).unwrap();
    assert!(lines.any(|line| line.contains("sweep --resume")), "it says how to go on");
    let ended = run.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    assert_eq!(text(&ended.stdout), "");
    let set = std::fs::read_dir(folder.path().join("runs")).unwrap().next().unwrap().unwrap();
    let summary = std::fs::read(set.path().join("points/0/summary.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    assert_eq!(summary["run"]["partial"], false);
}
