//! What `suite` understands: built-in suites and files, what may be said beside them, what is
//! refused, and what a dry run tells.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod support;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use support::{output, text};

const NAMES: [&str; 8] =
    ["standard", "quick", "chat", "rag", "code", "agent", "long-context", "methodology"];

/// Two scenarios that are quickly simulated.
const SMALL: &str = "\
[defaults.load]
requests = 4
[[scenario]]
name = \"First\"
category = \"Latency\"
purpose = \"One by one.\"
[scenario.workload]
input_tokens = 100
output_tokens = 10
[scenario.load]
concurrency = 1
[[scenario]]
name = \"Second\"
category = \"Throughput\"
purpose = \"More at once.\"
[scenario.workload]
input_tokens = 200
output_tokens = 20
[scenario.sweep]
concurrencies = [2, 4]
";

fn dry_run(arguments: &[&str], folder: &Path) -> Value {
    let ran = output(&[&["suite"], arguments, &["--dry-run", "--json"]].concat(), folder);
    assert!(ran.status.success(), "{arguments:?}: {}", text(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

fn asked(document: &Value) -> &Value {
    &document["campaign"]["question"]
}

fn folder_with(name: &str, content: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(name), content).unwrap();
    folder
}

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
        assert!(page.contains(&hash[..12]) && page.contains(suite["title"].as_str().unwrap()));
    }
    assert_eq!((&suites[0]["runs"], &suites[0]["requests"]), (&json!(10), &json!(265)));
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

/// The promise of its name, on the profile that it is played on when nobody asks for another.
#[test]
fn the_quick_suite_takes_less_than_a_minute_on_the_embedded_engine() {
    let folder = tempfile::tempdir().unwrap();
    let document = dry_run(&["quick"], folder.path());
    assert_eq!(document["time_from"], "simulation");
    let time_s = document["time_s"].as_f64().unwrap();
    assert!((20.0..45.0).contains(&time_s), "{time_s} s, and starting it takes some more");
    let levels = document["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 10);
    assert!(levels.iter().all(|level| level["failing"] == 0));
    let few = levels.iter().filter(|level| level["requests"].as_u64().unwrap() < 30);
    assert_eq!(few.count(), 1, "only long answers are too slow for thirty of them");
}

#[test]
fn a_dry_run_counts_requests_tokens_time_and_money() {
    let folder = folder_with("s.toml", SMALL);
    let price = ["--price", "3600/h,1000000/M-in,2000000/M-out"];
    let document = dry_run(&[&["s.toml", "--repeat", "2"], &price[..]].concat(), folder.path());
    assert_eq!(document["runs"], 6);
    assert_eq!(document["requests"], 24);
    assert_eq!(document["input_tokens"], 2 * (4 * 100 + 2 * 4 * 200));
    assert_eq!(document["output_tokens"], 2 * (4 * 10 + 2 * 4 * 20));
    let time_s = document["time_s"].as_f64().unwrap();
    let cost = document["cost"].as_f64().unwrap();
    assert!((cost - (time_s + 4_000.0 + 2.0 * 400.0)).abs() < 1e-6, "{cost} for {time_s} s");
    let levels = document["levels"].as_array().unwrap();
    let places: Vec<(&Value, &Value)> =
        levels.iter().map(|level| (&level["scenario"], &level["level"])).collect();
    let (first, second) = (json!("First"), json!("Second"));
    let level = |number: u32| json!({ "concurrency": number });
    assert_eq!(places, [(&first, &json!("as_asked")), (&second, &level(2)), (&second, &level(4))]);
    let page = output(&["suite", "s.toml", "--dry-run", "--price", "1/h"], folder.path());
    // Lines are broken where they are full.
    let page = text(&page.stdout).replace('\n', " ");
    for part in ["First", "4 at once", "3 runs, 12 requests", "it would cost"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!folder.path().join("runs").exists(), "nothing was made");
}

#[test]
fn a_server_of_somebody_else_is_not_guessed_at() {
    let folder = folder_with("s.toml", SMALL);
    let document = dry_run(&["s.toml", "http://h:1", "--price", "2/h"], folder.path());
    assert_eq!(document["input_tokens"], 2_000);
    assert_eq!((&document["time_s"], &document["cost"]), (&Value::Null, &Value::Null));
    let page = output(&["suite", "s.toml", "http://h:1", "--dry-run"], folder.path());
    assert!(text(&page.stdout).contains("depends on the server"));
}

#[test]
fn the_turns_of_conversations_are_read_again() {
    let talk = "[[scenario]]\nname = \"Talk\"\ncategory = \"Chat\"\npurpose = \"Turns.\"\n\
                [scenario.workload]\nturns = 3\ninput_tokens = 10\noutput_tokens = 5\n\
                prefix_tokens = 100\n[scenario.load]\nconcurrency = 1\nrequests = 6\n";
    let folder = folder_with("s.toml", talk);
    let planned = dry_run(&["s.toml", "http://h:1"], folder.path());
    // Twice a system message and 10, then all of it with 15 more, then with 15 more again.
    assert_eq!(planned["input_tokens"], 2 * (110 + 125 + 140));
    let simulated = dry_run(&["s.toml"], folder.path());
    assert_eq!(simulated["input_tokens"], planned["input_tokens"]);
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
    let two = ["suite", "http://h:1", "http://h:2", "--dry-run"];
    assert_refused(&two, folder.path(), &["is no suite", "first"]);
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
    for (file, wanted) in [
        (unknown.as_str(), &["s.toml:6", "input_tokns", "did you mean `input_tokens`"][..]),
        ("titel = \"x\"\n", &["s.toml:1", "unknown key `titel`", "did you mean `title`"]),
        (&twice, &["s.toml:6", "`A.`", "scenario 1"]),
        ("scenario = []\n", &["s.toml", "no scenarios", "[[scenario]]"]),
        ("name = \"x\"\n", &["s.toml", "no scenarios"]),
        ("[scenario]\nname = \"a\"\n", &["s.toml:1", "write [[scenario]]"]),
        ("[[scenario]]\nname = \"a\"\ncategory = \"c\"\n", &["s.toml:1", "no `purpose`"]),
        (&seed, &["s.toml:6", "--seed"]),
        (&loads, &["s.toml:6", "two loads"]),
        (&waves, &["s.toml:6", "waves"]),
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
    assert_refused(&["suite", "nowhere.toml"], folder.path(), &["suite nowhere.toml", "No such"]);
    assert_refused(&["suite", "quick", "--price", "5", "--dry-run"], folder.path(), &["2.50/h"]);
    assert_refused(&["suite", "quick", "--price", "5/h"], folder.path(), &["--dry-run"]);
    let resumed = ["suite", "--resume", "x", "--prompts", "same"];
    assert_refused(&resumed, folder.path(), &["--prompts beside --resume"]);
}

#[test]
fn files_lie_beside_the_suite_and_count_by_what_they_hold() {
    let suite = "[[scenario]]\nname = \"Data\"\ncategory = \"c\"\npurpose = \"p\"\n\
                 [scenario.workload]\ndataset = \"lines.txt\"\noutput_tokens = 5\n";
    let folder = tempfile::tempdir().unwrap();
    let hash = |place: &str, lines: &str| {
        let inside = folder.path().join(place);
        fs::create_dir_all(&inside).unwrap();
        fs::write(inside.join("s.toml"), suite).unwrap();
        fs::write(inside.join("lines.txt"), lines).unwrap();
        let document = dry_run(&[&format!("{place}/s.toml"), "http://h:1"], folder.path());
        asked(&document)["hash"].as_str().unwrap().to_owned()
    };
    let here = hash("here", "one\ntwo\n");
    assert_eq!(hash("there", "one\ntwo\n"), here);
    assert_ne!(hash("there", "one\nthree\n"), here);
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
