//! What `suite` understands: built-in suites and files, what may be said beside them, and
//! what is refused.

use crate::support;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use support::suites::{SMALL, asked, dry_run, folder_with};
use support::{output, text};

const NAMES: [&str; 8] =
    ["standard", "quick", "chat", "rag", "code", "agent", "long-context", "methodology"];

#[track_caller]
fn assert_refused(arguments: &[&str], folder: &Path, wanted: &[&str]) {
    let ran = output(arguments, folder);
    assert_eq!(ran.status.code(), Some(2), "{arguments:?}: {}", text(&ran.stdout));
    let said = text(&ran.stderr);
    for part in wanted {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!folder.join("runs").exists(), "nothing was made");
}

#[test]
fn the_list_names_every_suite_with_its_hash() {
    let folder = tempfile::tempdir().unwrap();
    let ran = output(&["suite", "--list", "--json"], folder.path());
    let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let suites = document["suites"].as_array().unwrap();
    let names: Vec<&str> = suites.iter().map(|suite| suite["name"].as_str().unwrap()).collect();
    assert_eq!(names, NAMES);
    let page = text(&output(&["suite", "--list"], folder.path()).stdout);
    for suite in suites {
        let hash = suite["hash"].as_str().unwrap();
        assert_eq!(hash.len(), 64);
        // A long title is broken over two lines.
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&hash[..12]) && words.contains(suite["title"].as_str().unwrap()));
    }
    assert_eq!((&suites[0]["runs"], &suites[0]["requests"]), (&json!(10), &json!(950)));
}

#[test]
fn every_built_in_suite_can_be_shown_and_is_the_same_from_a_file() {
    for name in NAMES {
        let folder = tempfile::tempdir().unwrap();
        let shown = output(&["suite", "--show", name], folder.path());
        fs::write(folder.path().join("mine.toml"), &shown.stdout).unwrap();
        // A server of somebody else is not simulated, so this is quick.
        let built_in = dry_run(&[name, "http://h:1"], folder.path());
        let own = dry_run(&["mine.toml", "http://h:1"], folder.path());
        assert_eq!(asked(&built_in), asked(&own), "{name}");
        assert_eq!(asked(&own)["changes"], json!([]));
        assert_eq!(own["time_s"].is_null(), own["time_from"].is_null(), "{name}");
    }
}

#[test]
fn the_first_word_may_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    for place in ["http://h:1", "h:1"] {
        let document = dry_run(&[place], folder.path());
        assert_eq!(asked(&document)["name"], "standard", "{place}");
        let target = &document["campaign"]["conditions"][0]["spec"]["target"];
        assert_eq!(target["url"], "http://h:1");
    }
    let suites = ["suite", "quick", "standard", "--dry-run"];
    assert_refused(&suites, folder.path(), &["`quick` and `standard` are two suites"]);
    let two = ["suite", "http://h:1", "http://h:2", "--dry-run"];
    assert_refused(&two, folder.path(), &["is not a suite", "first"]);
}

#[test]
fn what_holds_for_all_scenarios_may_be_said_and_is_told() {
    let folder = folder_with("s.toml", SMALL);
    let server = "[target]\nurl = \"http://h:1\"\n[limits]\nidle = \"20s\"\n";
    fs::write(folder.path().join("server.toml"), server).unwrap();
    let plain = dry_run(&["s.toml", "http://h:1"], folder.path());
    let changed = |arguments: &[&str]| {
        let document = dry_run(&[&["s.toml"], arguments].concat(), folder.path());
        let question = asked(&document);
        let is_other = question["hash"] != asked(&plain)["hash"];
        (is_other, question["changes"].clone())
    };
    for neutral in [
        &["http://other:2", "--seed", "3", "--model", "m", "--client-cores", "1"][..],
        &["--tp", "2", "--metadata", "a=b", "--virtual"],
        &["http://h:1", "--tokenizer", "vocabulary:1000,10"],
        &["http://h:1", "--idle-timeout", "1m"],
    ] {
        assert_eq!(changed(neutral), (false, json!([])), "{neutral:?}");
    }
    let vllm = ["--source", "vllm-random", "--tokenizer", "vocabulary:131072,1000"];
    for (arguments, changes) in [
        (&vllm[..], json!(["--source vllm-random"])),
        (&["--warm-up", "1"], json!(["--warm-up 1"])),
        (&["--slo", "ttft<1s"], json!(["--slo ttft<1s"])),
        (&["--prompts", "same"], json!(["--prompts same"])),
        (&["--repeat", "3"], json!(["--repeat 3"])),
        (&["--set", "workload.body.temperature=0.5"], json!(["--temperature 0.5"])),
        (&["http://h:1", "--api", "completions"], json!(["--api completions"])),
        (&["server.toml"], json!(["--idle-timeout 20s"])),
    ] {
        assert_eq!(changed(arguments), (true, changes), "{arguments:?}");
    }
}

#[test]
fn what_would_make_scenarios_alike_is_refused_by_name() {
    let folder = folder_with("load.toml", "[load]\nrate = 5\n");
    for (arguments, name) in [
        (&["--concurrency", "4"][..], "--concurrency"),
        (&["--requests", "4"], "--requests"),
        (&["--rate", "4"], "--rate"),
        (&["--input-tokens", "4"], "--input-tokens"),
        (&["--turns", "4"], "--turns"),
        (&["--set", "sweep.concurrencies=4"], "--concurrencies"),
        (&["load.toml"], "load.toml:2"),
    ] {
        let arguments = [&["suite", "standard"], arguments, &["--dry-run"]].concat();
        assert_refused(&arguments, folder.path(), &[name, "alike", "--show standard > mine.toml"]);
    }
    let arguments = ["suite", "chat", "--source", "vllm-random", "--dry-run"];
    assert_refused(&arguments, folder.path(), &["workload.turns", "One Conversation"]);
}

#[test]
fn a_file_that_says_something_wrong_is_told_where() {
    let scenario = "[[scenario]]\nname = \"a\"\ncategory = \"c\"\npurpose = \"p\"\n";
    let twice = format!("{scenario}{}", scenario.replace("\"a\"", "\"A.\""));
    let unknown = format!("{scenario}[scenario.workload]\ninput_tokns = 5\n");
    let seed = format!("{scenario}[scenario.workload]\nseed = 5\n");
    let loads =
        format!("{scenario}[scenario.load]\nrate = 1\n[scenario.sweep]\nconcurrencies = 2\n");
    let waves = format!("{scenario}[scenario.sweep]\nwaves = 3\n");
    let closed = format!("{scenario}[scenario.load]\nrate = 1\nthink_time = \"1s\"\n");
    let promise = format!("{scenario}[scenario.slo]\nttfft = \"1s\"\n");
    let server = format!("{scenario}[scenario.target]\nurl = \"http://h\"\n");
    let stop = format!("[repeat]\nruns = 2\nstop_at = \"often\"\n{scenario}");
    let slip = "[[scenari]]\nname = \"a\"\npurpose = \"p\"\n[scenario.load]\nrequests = 1\n";
    let slip = slip.repeat(2);
    let nameless = "[[scenario]]\npurpose = \"p\"\n";
    for (file, wanted) in [
        (slip.as_str(), &["s.toml:1", "unknown key `scenari`", "did you mean `scenario`"][..]),
        (nameless, &["s.toml:1", "scenario 1 has no `name`: what it is called"]),
        (&unknown, &["s.toml:6", "input_tokns", "did you mean `input_tokens`"]),
        ("titel = \"x\"\n", &["s.toml:1", "unknown key `titel`", "did you mean `title`"]),
        (&twice, &["s.toml:6", "`A.`", "scenario 1"]),
        ("scenario = []\n", &["s.toml", "no scenarios", "[[scenario]]"]),
        ("name = \"x\"\n", &["s.toml", "no scenarios"]),
        ("[scenario]\nname = \"a\"\n", &["s.toml:1", "write [[scenario]]"]),
        ("[[scenario]]\nname = \"a\"\ncategory = \"c\"\n", &["s.toml:1", "no `purpose`"]),
        (&seed, &["s.toml:6", "--seed"]),
        (&loads, &["s.toml:6", "two loads"]),
        (&waves, &["scenario `a`", "waves"]),
        (&closed, &["scenario `a`", "s.toml:7"]),
        (&promise, &["scenario `a`", "ttfft"]),
        (&server, &["s.toml:5", "`target`"]),
        (&stop, &["s.toml:3", "often"]),
        ("prompts = \"old\"\n", &["s.toml:1", "fresh, same"]),
        ("name = x\n", &["s.toml:1:8", "TOML"]),
    ] {
        let folder = folder_with("s.toml", file);
        assert_refused(&["suite", "s.toml", "--dry-run"], folder.path(), wanted);
    }
}

#[test]
fn a_suite_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let wanted = ["`standrad`", "did you mean `standard`"];
    assert_refused(&["suite", "standrad"], folder.path(), &wanted);
    assert_refused(&["suite", "--show", "kwick"], folder.path(), &["`kwick`", "quick"]);
    assert_refused(
        &["suite", "nowhere.toml"],
        folder.path(),
        &["suite nowhere.toml", "no such file"],
    );
    assert_refused(&["suite", "quick", "--price", "5", "--dry-run"], folder.path(), &["2.50/h"]);
    let resumed = ["suite", "--resume", "x", "--prompts", "same"];
    assert_refused(&resumed, folder.path(), &["--prompts cannot be combined with --resume"]);
}

#[test]
fn files_lie_beside_the_suite_and_count_by_what_they_hold() {
    let suite = "[[scenario]]\nname = \"Data\"\ncategory = \"c\"\npurpose = \"p\"\n\
                 [scenario.workload]\ndataset = \"lines.txt\"\noutput_tokens = 5\n";
    let folder = tempfile::tempdir().unwrap();
    let hash = |place: &str, suite: &str, lines: &str| {
        let inside = folder.path().join(place);
        fs::create_dir_all(&inside).unwrap();
        fs::write(inside.join("s.toml"), suite).unwrap();
        fs::write(inside.join("lines.txt"), lines).unwrap();
        let document = dry_run(&[&format!("{place}/s.toml"), "http://h:1"], folder.path());
        asked(&document)["hash"].as_str().unwrap().to_owned()
    };
    let here = hash("here", suite, "one\ntwo\n");
    assert_eq!(hash("there", suite, "one\ntwo\n"), here);
    assert_ne!(hash("there", suite, "one\nthree\n"), here);
    let named = format!("{suite}dataset_kind = \"text\"\n");
    assert_eq!(hash("there", &named, "one\ntwo\n"), here, "it is found, or it is named");
    let objects = "{\"prompt\": \"one\"}\n";
    let found = suite.replace("lines.txt", "lines.data");
    let lines = hash("there", suite, objects);
    fs::write(folder.path().join("there/lines.data"), objects).unwrap();
    assert_ne!(hash("there", &found, objects), lines, "the same bytes, read as another kind");
}

#[test]
fn a_scenario_without_a_category_has_its_name_for_one() {
    let folder = folder_with("s.toml", &SMALL.replace("category = \"Latency\"\n", ""));
    let document = dry_run(&["s.toml", "http://h:1"], folder.path());
    let scenarios = asked(&document)["scenarios"].as_array().unwrap();
    let words: Vec<&Value> = scenarios.iter().map(|scenario| &scenario["category"]).collect();
    assert_eq!(words, ["First", "Throughput"]);
}

#[test]
fn the_schema_of_a_suite_knows_the_tables_of_an_experiment() {
    let folder = tempfile::tempdir().unwrap();
    let ran = output(&["schema", "--suite"], folder.path());
    let schema: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let scenario = &schema["properties"]["scenario"]["items"]["properties"];
    assert!(scenario["workload"]["properties"]["input_tokens"].is_object());
    assert!(scenario["sweep"]["properties"]["concurrencies"].is_object());
    assert!(scenario["workload"]["properties"]["seed"].is_null(), "a suite has one seed");
}
