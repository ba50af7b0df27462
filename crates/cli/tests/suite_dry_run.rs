//! What a dry run of a suite tells: requests, tokens, time and money, as far as they are known.

use crate::support;

use std::fs;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use support::suites::{SMALL, dry_run, folder_with, only_set};
use support::{inferometer, output, text};

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
    for part in ["First", "Second (c=4)", "3 runs, 12 requests", "it would cost"] {
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
    assert_eq!(document["cost_parts"], json!({ "time": null }));
    let page = output(&["suite", "s.toml", "http://h:1", "--dry-run"], folder.path());
    assert!(support::words(&page.stdout).contains("depends on the server"));

    // What tokens cost is known of any server.
    let price = ["--price", "2/h,1000000/M-in,2000000/M-out"];
    let priced = dry_run(&[&["s.toml", "http://h:1"], &price[..]].concat(), folder.path());
    assert_eq!(priced["cost"], Value::Null);
    let parts = json!({ "time": null, "input_tokens": 2_000.0, "output_tokens": 400.0 });
    assert_eq!(priced["cost_parts"], parts);
    let arguments = [&["suite", "s.toml", "http://h:1", "--dry-run"], &price[..]].concat();
    let page = support::words(&output(&arguments, folder.path()).stdout);
    assert!(page.contains("its tokens would cost 2,400.00"), "{page}");
}

/// What would be simulated for hours is counted and no more, and what is too long for one level is
/// too long for many together.
#[test]
fn a_dry_run_keeps_nobody_waiting() {
    let scenario = |name: &str, load: &str| {
        format!(
            "[[scenario]]\nname = \"{name}\"\npurpose = \"p\"\n[scenario.workload]\n\
             input_tokens = 100\noutput_tokens = 100\n[scenario.load]\n{load}\n"
        )
    };
    let rate = scenario("Rate", "rate = 1000\nduration = \"24h\"");
    let long = scenario("Long", "concurrency = 8\nrequests = 1000000000");
    let time = scenario("Time", "concurrency = 1000\nduration = \"10h\"");
    let short = scenario("Short", "concurrency = 2\nrequests = 4");
    let folder = folder_with("s.toml", &[rate, long, time, short].concat());
    let document = dry_run(&["s.toml", "--repeat", "1000"], folder.path());
    let levels = document["levels"].as_array().unwrap();
    let known: Vec<(&Value, &Value)> =
        levels.iter().map(|level| (&level["too_long"], &level["requests"])).collect();
    let (yes, no) = (json!(true), json!(false));
    let requests = [json!(86_400_000), json!(1_000_000_000), Value::Null, json!(4)];
    let wanted: Vec<(&Value, &Value)> =
        [&yes, &yes, &yes, &no].into_iter().zip(&requests).collect();
    assert_eq!(known, wanted);
    assert_eq!((&levels[0]["time_s"], &levels[3]["simulated"]), (&json!(86_400.0), &yes));
    assert_eq!((&document["requests"], &document["time_s"]), (&Value::Null, &Value::Null));

    let page = output(&["suite", "s.toml", "--repeat", "2", "--dry-run"], folder.path());
    let page = text(&page.stdout);
    assert!(page.contains("note: `Long`: not simulated: too long"), "{page}");
    assert!(page.contains("per run"), "{page}");
}

/// The lengths that a dry run counts are those that the run draws.
#[test]
fn a_dry_run_draws_what_the_run_draws() {
    let drawn = SMALL.replace("input_tokens = 100", "input_tokens = \"100±50%\"");
    let folder = folder_with("s.toml", &drawn);
    let document = dry_run(&["s.toml", "--virtual"], folder.path());
    let ran = output(&["suite", "s.toml", "--virtual", "--json", "-q"], folder.path());
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let set = only_set(folder.path());
    let run: Value =
        serde_json::from_slice(&fs::read(set.join("points/0/summary.json")).unwrap()).unwrap();
    assert_eq!(document["levels"][0]["input_tokens"], run["tokens"]["input_total"]);
    assert_ne!(run["tokens"]["input_total"], 400, "lengths were drawn");
}

#[test]
fn levels_that_are_never_reached_are_told() {
    let few = SMALL.replace("concurrencies = [2, 4]", "concurrencies = [2, 4, 8, 16]");
    let folder = folder_with("s.toml", &few);
    let document = dry_run(&["s.toml", "http://h:1"], folder.path());
    let notes = document["notes"].as_array().unwrap();
    assert_eq!(notes.len(), 1);
    let note = notes[0].as_str().unwrap();
    assert!(note.contains("`Second` has 4 requests, fewer than 8, 16 at once"), "{note}");
    assert_eq!(dry_run(&["quick", "http://h:1"], folder.path())["notes"], json!([]));
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

/// A simulation that was cut has no numbers to tell.
#[test]
fn a_dry_run_that_is_stopped_tells_nothing() {
    let long = "[[scenario]]\nname = \"Long\"\npurpose = \"p\"\n[scenario.workload]\n\
                input_tokens = 16\noutput_tokens = 1000\n[scenario.load]\nconcurrency = 1\n\
                requests = 4900\n";
    let folder = folder_with("s.toml", long);
    let mut ran = inferometer()
        .args(["suite", "s.toml", "--dry-run", "-q"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let listens = || {
        let status = fs::read_to_string(format!("/proc/{}/status", ran.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
        caught & (1 << (Signal::SIGINT as i32 - 1)) != 0
    };
    while !listens() {
        std::thread::yield_now();
    }
    assert_eq!(ran.try_wait().unwrap(), None, "it ended by itself");
    kill(Pid::from_raw(i32::try_from(ran.id()).unwrap()), Signal::SIGINT).unwrap();
    let ran = ran.wait_with_output().unwrap();
    assert_eq!(ran.status.code(), Some(130), "{}", text(&ran.stderr));
    assert!(ran.stdout.is_empty(), "{}", text(&ran.stdout));
}
