//! What a sweep understands: levels, servers and searches, in flags and files; and what it refuses.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::fs;

use serde_json::{Value, json};

use support::{output, text};

fn json_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn a_dry_run_shows_levels_runs_and_time() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["sweep", "--rates", "4,2,2", "--duration", "30s", "--repeat", "2"];
    let more = ["--cool-down", "10s", "--dry-run"];
    let ran = output(&[&arguments[..], &more].concat(), folder.path());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let page = text(&ran.stdout);
    let wanted =
        ["2 req/s", "4 req/s", "60", "120", "4 runs, 360 requests; 2 m 30 s", "are sorted"];
    for part in wanted {
        assert!(page.contains(part), "{part}: {page}");
    }
    let ran = output(&[&arguments[..], &more, &["--json"]].concat(), folder.path());
    let document = json_of(&ran.stdout);
    assert_eq!(document["requests"], 360);
    assert_eq!(document["campaign"]["question"]["levels"], json!([{"rate": 2.0}, {"rate": 4.0}]));
    assert!(!folder.path().join("runs").exists(), "nothing was made");
}

#[test]
fn a_file_says_what_is_swept() {
    let folder = tempfile::tempdir().unwrap();
    let file = "[sweep]\nconcurrencies = \"1..8*2\"\nwaves = 3\ntargets = [\"a=http://h:1\", \
                \"b=b.toml\"]\n[repeat]\nruns = 2\n[load]\nrate = 5\n";
    fs::write(folder.path().join("e.toml"), file).unwrap();
    fs::write(folder.path().join("b.toml"), "[target]\nurl = \"http://h:2\"\nmodel = \"m\"\n")
        .unwrap();
    let planned = |more: &[&str]| {
        let ran =
            output(&[&["sweep", "e.toml", "--dry-run", "--json"], more].concat(), folder.path());
        assert!(ran.status.success(), "{}", text(&ran.stderr));
        json_of(&ran.stdout)
    };
    let document = planned(&[]);
    assert_eq!(document["runs"], 16);
    assert_eq!(
        document["levels"][3],
        json!({"level": {"concurrency": 8}, "requests": 24, "time_s": null})
    );
    let conditions = document["campaign"]["conditions"].as_array().unwrap().clone();
    assert_eq!(conditions[0]["spec"]["target"]["url"], "http://h:1");
    assert_eq!(
        (&conditions[1]["name"], &conditions[1]["spec"]["model"]),
        (&json!("b"), &json!("m"))
    );
    let rates = planned(&["--rates", "1,inf"]);
    assert_eq!(rates["campaign"]["question"]["dimension"], "rate", "a flag chooses anew");
    assert_eq!(rates["campaign"]["question"]["waves"], Value::Null);

    fs::write(folder.path().join("b.toml"), "[workload]\nseed = 3\n").unwrap();
    let refused = output(&["sweep", "e.toml", "--dry-run"], folder.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("b.toml:1"), "{}", text(&refused.stderr));
}

#[test]
fn a_search_is_asked_for_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let find = ["sweep", "--virtual", "--find", "max rate where ttft.p99<500ms, tpot.p99<50ms"];
    let bounds = ["--from", "2", "--at-most", "64", "--resolution", "2%", "--dry-run", "--json"];
    let ran = output(&[&find[..], &bounds].concat(), folder.path());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let document = json_of(&ran.stdout);
    let question = &document["campaign"]["question"];
    assert_eq!(question["levels"], json!([]));
    assert_eq!(question["find"]["goals"], json!(["ttft.p99<500ms", "tpot.p99<50ms"]));
    assert_eq!(
        (&question["find"]["from"], &question["find"]["at_most"]),
        (&json!(2.0), &json!(64.0))
    );
    assert_eq!(question["find"]["resolution"], 0.02);
}

#[test]
fn wrong_input_is_refused_with_its_remedy() {
    let many: Vec<String> = (1..=300).map(|level: u32| level.to_string()).collect();
    let too_many = &many.join(",");
    let table: [(&[&str], &[&str]); 29] = [
        (&["--rates", "1", "--concurrencies", "2"], &["choose one"]),
        (&["--rates", "0,1"], &["above 0"]),
        (&["--rates=-1"], &["above 0"]),
        (&["--rates", "fast"], &["`fast`"]),
        (&["--rates", too_many], &["more than 200"]),
        (&["--concurrencies", "0"], &["whole numbers from 1"]),
        (&["--concurrencies", "1.5"], &["whole numbers"]),
        (&["--concurrencies", "inf"], &["whole numbers"]),
        (&["--rate", "5"], &["--rate", "--rates"]),
        (&["--concurrency", "5"], &["--concurrencies"]),
        (&["--rates", "5", "--waves", "3"], &["--waves"]),
        (&["--concurrencies", "5", "--waves", "3", "--requests", "9"], &["--waves", "--requests"]),
        (&["--rates", "inf", "--duration", "3s"], &["--requests"]),
        (&["--rates", "5", "--trace", "t.jsonl"], &["trace", "send times"]),
        (&["--fine-runs", "3"], &["--fine"]),
        (&["--rates", "5", "--fine"], &["fewer than two"]),
        (&["--at-most", "3"], &["--find"]),
        (&["--find", "max rate where ttft.p99<1s", "--at-most", "inf"], &["above 0"]),
        (&["--find", "max rate where ttft.p99<1s", "--from", "nan"], &["above 0"]),
        (&["--rates", "1,2", "--stop-at", "ttft.p99=2%"], &["--repeat"]),
        (&["--rates", "1,2", "--restart", ""], &["--restart is empty"]),
        (&["--rates", "1", "--dry-run", "--profile", "no-such"], &["no-such"]),
        (&["--find", "max rate"], &["max rate where"]),
        (&["--find", "max rate where ttf.p99<1s"], &["ttft"]),
        (&["--find", "max rate where ttft<1s"], &["ttft.p99"]),
        (&["--find", "max rate where ttft.p99<1s", "--concurrencies", "1,2"], &["--find"]),
        (&["--target", "a=http://h", "--target", "a=http://i"], &["twice"]),
        (&["http://h", "--target", "a=http://i"], &["--target NAME=http://h"]),
        (&["--resume", "latest", "--rates", "3"], &["--rates", "--resume"]),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (words, parts) in table {
        let ran = output(&[&["sweep"], words].concat(), folder.path());
        let said = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{words:?}: {said}");
        for part in parts {
            assert!(said.contains(part), "{words:?} lacks {part:?}: {said}");
        }
        assert_eq!(text(&ran.stdout), "", "{words:?}");
    }
    for (file, text) in [("a.toml", ""), ("b.toml", ""), ("open.toml", "[load]\nrate = 5\n")] {
        fs::write(folder.path().join(file), text).unwrap();
    }
    for (words, parts) in [
        (&["run", "--virtual", "--repeat", "2", "--restart", "true"][..], "--restart"),
        (&["run", "--repeat", "2", "--stop-at", "ttf.p99=2%"], "--stop-at"),
        (&["run", "--stop-at", "ttft.p99=2%"], "--repeat"),
        (&["run", "--repeat", "1", "--cool-down", "2s"], "--repeat"),
        (
            &["simulate", "a.toml", "b.toml", "--repeat", "3", "--stop-at", "ttft.p99=2%"],
            "one file",
        ),
        (&["sweep", "open.toml"], "--rates or --concurrencies"),
        (&["run", "--repeat", "2", "--format", "vllm"], "--format vllm"),
        (&["sweep", "--resume", "nothing"], "nothing"),
        (&["sweep", "--virtual", "--target", "a=http://h"], "virtual time"),
    ] {
        let ran = output(words, folder.path());
        assert_eq!(ran.status.code(), Some(2), "{words:?}: {}", text(&ran.stderr));
        assert!(text(&ran.stderr).contains(parts), "{words:?}: {}", text(&ran.stderr));
    }
    assert!(!folder.path().join("runs").exists(), "no set may be made of wrong input");
}

#[test]
fn levels_may_be_a_list_and_a_level_without_a_length_is_long_enough() {
    let folder = tempfile::tempdir().unwrap();
    let planned = |file: &str, more: &[&str]| {
        fs::write(folder.path().join("e.toml"), file).unwrap();
        let ran = output(&[&["sweep", "e.toml", "--dry-run"], more].concat(), folder.path());
        assert!(ran.status.success(), "{}", text(&ran.stderr));
        text(&ran.stdout)
    };
    let listed = planned("[sweep]\nrates = [1, 2.5, \"inf\"]\n", &["--json"]);
    let wanted = json!([{"rate": 1.0}, {"rate": 2.5}, "unlimited"]);
    assert_eq!(json_of(listed.as_bytes())["campaign"]["question"]["levels"], wanted);
    let default = planned("[sweep]\nconcurrencies = [2, 64]\n", &["--json"]);
    let document = json_of(default.as_bytes());
    let requests = |level: usize| document["levels"][level]["requests"].clone();
    assert_eq!((requests(0), requests(1)), (json!(100), json!(640)));
    let short = planned("[sweep]\nconcurrencies = 256\n[load]\nrequests = 100\n", &[]);
    assert!(short.contains("note") && short.contains("fewer than that"), "{short}");
}

#[test]
fn a_dry_run_says_what_is_asked_and_how_a_search_goes() {
    let folder = tempfile::tempdir().unwrap();
    let find = ["sweep", "--virtual", "--find", "max rate where ttft.p99<500ms", "--seed", "7"];
    let more = ["--warm-up", "5", "--repeat", "4", "--cool-down", "3s", "--dry-run"];
    let ran = output(&[&find[..], &more].concat(), folder.path());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let page = text(&ran.stdout);
    let wanted = [
        "goals     ttft.p99<500ms",
        "from 1, to 1000 at most",
        "at most 10 at a level",
        "5 requests before each run",
        "3 s between",
        "seed      7",
    ];
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in wanted {
        assert!(page.contains(part) || words.contains(part), "{part}: {page}");
    }
}
