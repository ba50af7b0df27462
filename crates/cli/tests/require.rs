//! Limits as a gate: exit codes, what the pages say, and what CI reads.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use support::{Engine, inferometer, latest_run, output, text};

/// 50 tokens per second for each of eight, exactly: 400 in all.
const EXPERIMENT: [&str; 6] = ["simulate", "-q", "--engine-step", "20ms", "--requests", "1000"];

fn simulate(folder: &Path, more: &[&str]) -> Output {
    output(&[&EXPERIMENT[..], more].concat(), folder)
}

fn document(ran: &Output) -> Value {
    serde_json::from_slice(&ran.stdout).unwrap()
}

fn stored(folder: &Path) -> usize {
    fs::read_dir(folder.join("runs")).map_or(0, Iterator::count)
}

#[test]
fn what_is_kept_passes_and_what_is_broken_exits_with_99() {
    let folder = tempfile::tempdir().unwrap();
    let kept = ["--require", "error_rate<1%", "output_throughput>300"];
    let ran = simulate(folder.path(), &kept);
    let page = text(&ran.stdout);
    assert_eq!(ran.status.code(), Some(0), "{page}");
    let section = page.split("\nrequirements\n").nth(1).unwrap();
    assert!(section.starts_with("PASS  error_rate<1%"), "{page}");
    let broken = ["--require", "error_rate<1%", "--require", "output_throughput>500"];
    let ran = simulate(folder.path(), &broken);
    assert_eq!(ran.status.code(), Some(99), "{}", text(&ran.stderr));
    assert!(text(&ran.stdout).contains("FAIL  output_throughput>500"));
    assert_eq!(stored(folder.path()), 2, "both are stored");
}

#[test]
fn without_a_number_so_many_requests_are_sent_that_the_gate_can_pass() {
    let folder = tempfile::tempdir().unwrap();
    // The example of the README, in virtual time: a busy machine may spoil the numbers of a client.
    let gate = ["--require", "ttft.p99<500ms", "error_rate<1%", "--junit", "junit.xml"];
    let server = ["simulate", "--hardware", "h100", "--engine-model", "llama-3.1-8b"];
    let ran = output(&[&server[..], &gate].concat(), folder.path());
    let (page, said) = (text(&ran.stdout), text(&ran.stderr));
    assert_eq!(ran.status.code(), Some(0), "{page}{said}");
    assert!(said.contains("1,000 requests are sent, because ttft.p99<500ms needs"), "{said}");
    let few = ["simulate", "--engine-step", "20ms", "--require", "error_rate<1%"];
    let ran = output(&[&few[..], &["--requests", "50"]].concat(), folder.path());
    assert_eq!(ran.status.code(), Some(99), "as many as the user wants");
    let ran = output(&few, folder.path());
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stdout));
    assert!(text(&ran.stderr).contains("390 requests are sent"), "{}", text(&ran.stderr));
}

/// The example of the README on a live server. A busy machine may spoil it, if the run says so.
#[test]
fn the_gate_of_the_readme_passes_on_a_live_server_unless_the_client_is_named() {
    const ABOUT_CLIENT: [&str; 8] = [
        "delivered-load",
        "send-lag",
        "client-lag",
        "arrival-width",
        "client-loop",
        "client-capacity",
        "clock",
        "client-machine",
    ];
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "20ms", "--gap", "2ms"]);
    let gate = ["--require", "ttft.p99<500ms", "error_rate<1%", "--junit", "junit.xml", "--json"];
    let load = ["--concurrency", "16", "--output-tokens", "8"];
    let ran = output(&[&["run", &engine.url()], &load[..], &gate].concat(), folder.path());
    assert!(text(&ran.stderr).contains("1,000 requests are sent"), "{}", text(&ran.stderr));
    let found = document(&ran);
    assert_eq!(found["outcomes"]["ok"], 1_000);
    assert_eq!(found["requirements"].as_array().unwrap().len(), 2);
    assert!(fs::read_to_string(folder.path().join("junit.xml")).unwrap().contains("error_rate"));
    let warnings = found["warnings"].as_array().unwrap();
    let is_grave = |warning: &&Value| warning["severity"] != "note";
    let is_spoiled = warnings
        .iter()
        .filter(is_grave)
        .any(|it| it["check"].as_str().is_some_and(|check| ABOUT_CLIENT.contains(&check)));
    match ran.status.code() {
        Some(0) => {}
        // A client without time for its work misses latencies, and fails no request.
        Some(4 | 99) if is_spoiled => {
            let errors = &found["requirements"][1];
            assert_ne!(errors["verdict"], "fail", "{errors:#}");
        }
        other => panic!("{other:?}: {:#} {:#}", found["requirements"], found["warnings"]),
    }
}

#[test]
fn what_could_not_be_shown_is_not_met_unless_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    // Too few requests for a p99, however far below the limit they all are.
    let few = ["simulate", "-q", "--engine-step", "20ms", "--requests", "300"];
    let required = ["--require", "ttft.p99<50ms", "--json"];
    let simulate = |folder: &Path, more: &[&str]| output(&[&few[..], more].concat(), folder);
    let ran = simulate(folder.path(), &required);
    assert_eq!(ran.status.code(), Some(99), "{}", text(&ran.stderr));
    let found = &document(&ran)["requirements"][0];
    assert_eq!((&found["verdict"], &found["limit"]), (&"undecided".into(), &50.0.into()));
    assert!(found["reason"].as_str().unwrap().contains("p99 needs 662 "), "{found}");
    let ran = simulate(folder.path(), &[&required[..], &["--undecided", "pass"]].concat());
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
}

#[test]
fn a_summary_knows_nothing_of_what_was_required_of_it() {
    let folder = tempfile::tempdir().unwrap();
    simulate(folder.path(), &["--require", "error_rate<1%"]);
    let kept = latest_run(folder.path()).read_summary().unwrap().unwrap();
    assert!(!text(&kept).contains("\"requirements\""));
    let verified = output(&["verify", "latest"], folder.path());
    assert_eq!(verified.status.code(), Some(0), "{}", text(&verified.stderr));
}

#[test]
fn repeated_runs_are_judged_together() {
    let folder = tempfile::tempdir().unwrap();
    let repeated = ["--repeat", "3", "--require", "ttft.mean<500ms", "output_throughput>300"];
    let ran = simulate(folder.path(), &repeated);
    let page = text(&ran.stdout);
    assert_eq!(ran.status.code(), Some(0), "{page}");
    assert_eq!(page.matches("\nrequirements").count(), 1, "{page}");
    assert!(page.contains("requirements of 3 runs, by the interval between them"), "{page}");
    let ran = simulate(folder.path(), &["--repeat", "2", "--json", "--require", "e2e.mean<1ms"]);
    assert_eq!(ran.status.code(), Some(99));
    let document = document(&ran);
    assert_eq!(document["points"].as_array().unwrap().len(), 2);
    assert_eq!(document["requirements"][0]["verdict"], "fail");
}

#[test]
fn an_invalid_run_passes_nothing_and_says_that_it_is_invalid() {
    let folder = tempfile::tempdir().unwrap();
    // No prompt fits, so that every request fails.
    let refused = ["--input-tokens", "5000", "--max-model-len", "1000"];
    let ran = simulate(folder.path(), &[&refused[..], &["--require", "error_rate<100%"]].concat());
    assert_eq!(ran.status.code(), Some(4), "{}{}", text(&ran.stdout), text(&ran.stderr));
    let page = text(&ran.stdout);
    assert!(page.contains("UNDECIDED  error_rate<100%"), "{page}");
    assert!(page.contains("the run is invalid"), "{page}");
}

#[test]
fn ci_reads_junit_and_a_step_summary() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("summary.md"), "before\n").unwrap();
    let ran = inferometer()
        .args(EXPERIMENT)
        .args(["--slo", "ttft<500ms", "--slo", "e2e.mean<1ms", "--junit", "junit.xml"])
        .args(["--require", "attainment>=95%", "output_throughput>500"])
        .env("GITHUB_STEP_SUMMARY", folder.path().join("summary.md"))
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(99), "{}", text(&ran.stderr));
    let junit = fs::read_to_string(folder.path().join("junit.xml")).unwrap();
    for part in [
        "<testsuites name=\"inferometer\" tests=\"5\" failures=\"2\"",
        "name=\"output_throughput&gt;500\">\n      <failure",
        "name=\"e2e.mean&lt;1ms\">\n      <failure",
        "name=\"attainment&gt;=95%\">",
        "name=\"ttft&lt;500ms of each request\">\n      <skipped",
    ] {
        assert!(junit.contains(part), "{part} is not in {junit}");
    }
    let summary = fs::read_to_string(folder.path().join("summary.md")).unwrap();
    assert!(
        summary.starts_with("before\n## Inferometer: simulated: no server was measured"),
        "{summary}"
    );
    assert!(summary.contains("| ❌ fail | output\\_throughput\\>500 |"), "{summary}");
}

#[test]
fn a_step_summary_is_written_for_requirements_only() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("summary.md");
    let mut command = inferometer();
    command.args(EXPERIMENT).env("GITHUB_STEP_SUMMARY", &place).current_dir(folder.path());
    assert!(command.output().unwrap().status.success());
    assert!(!place.exists(), "nothing was required");
}

#[test]
fn a_file_that_cannot_be_written_is_named_and_takes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["--junit", "no/such/junit.xml", "--step-summary", "no/such/summary.md"];
    let ran = simulate(folder.path(), &[&files[..], &["--require", "error_rate<1%"]].concat());
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran.stderr));
    let said = text(&ran.stderr);
    for part in ["no/such/junit.xml could not be written", "no/such/summary.md", "hint: "] {
        assert!(said.contains(part), "{said}");
    }
    assert!(text(&ran.stdout).contains("PASS  error_rate<1%"), "the page is shown");
    assert_eq!(output(&["verify", "latest"], folder.path()).status.code(), Some(0));
    let missed = [&files[..2], &["--require", "output_throughput>500"]].concat();
    assert_eq!(simulate(folder.path(), &missed).status.code(), Some(99), "the worse of the two");
}

#[test]
fn what_can_never_be_judged_is_refused_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    for (required, words) in [
        (&["--require", "tfft.p99<500ms"][..], "nearest is `ttft`"),
        (&["--require", "ttft<500ms"], "write ttft.p99 instead of ttft"),
        (&["--require", "attainment>=95%"], "--slo 'ttft<500ms'"),
        (&["--require", "ttft.p99<500"], "such as 500ms"),
        (&["--require", "ttft.p99>500ms"], "lower is better"),
        (&["--require", "ttft.p99<1s", "--no-stream"], "not streamed"),
        (&["--require", "soon"], "is not a limit"),
        (&["--require", "ttft.p99"], "write ttft<500ms, ttft.p99<500ms"),
        (&["--require", "error_rate<500%"], "above 100%"),
        (&["--require", "error_rate<1%", "--records", "none"], "--require needs records"),
        (&["--undecided", "maybe"], "possible values: pass, fail"),
    ] {
        let ran = simulate(folder.path(), required);
        let said = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{required:?}: {said}");
        assert!(said.contains(words), "{required:?}: {said}");
        // A server that nobody must ask: the port is closed.
        let measured = output(&[&["run", "http://127.0.0.1:9"], required].concat(), folder.path());
        assert_eq!(measured.status.code(), Some(2), "{}", text(&measured.stderr));
    }
    assert_eq!(stored(folder.path()), 0);
}

#[test]
fn a_real_run_is_held_against_its_limits() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["run", "-q", "--requests", "12", "--output-tokens", "4", "--json"];
    let required = ["--require", "error_rate<50%", "request_throughput>0.001"];
    let ran = output(&[&arguments[..], &required].concat(), folder.path());
    let found = &document(&ran)["requirements"];
    assert_eq!(found.as_array().unwrap().len(), 2, "{}", text(&ran.stderr));
    assert_eq!(found[1]["quantity"], "request_throughput");
    assert_ne!(found[1]["verdict"], "fail", "{found}");
}

#[test]
fn stored_runs_are_held_against_limits_later() {
    let folder = tempfile::tempdir().unwrap();
    simulate(folder.path(), &[]);
    simulate(folder.path(), &["--seed", "2"]);
    let require = |words: &[&str]| output(&[&["require"], words].concat(), folder.path());
    let one = require(&["latest", "error_rate<1%", "output_throughput>500", "--json"]);
    assert_eq!(one.status.code(), Some(99), "{}", text(&one.stderr));
    assert_eq!(document(&one)["requirements"][1]["verdict"], "fail");
    let ids: Vec<String> = fs::read_dir(folder.path().join("runs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let both = require(&[&ids[0], &ids[1], "ttft.mean<100ms", "--junit", "both.xml"]);
    assert_eq!(both.status.code(), Some(0), "{}", text(&both.stderr));
    assert!(text(&both.stdout).starts_with("requirements of 2 runs"), "{}", text(&both.stdout));
    let junit = fs::read_to_string(folder.path().join("both.xml")).unwrap();
    assert_eq!(junit.matches("<testsuite name=").count(), 3, "{junit}");
    let document = document(&require(&[&ids[0], &ids[1], "ttft.mean<100ms", "--json"]));
    assert_eq!(document["schema"], "inferometer.requirements/1");
    assert_eq!(document["requirements"][0]["runs"], 2);
}

#[test]
fn the_command_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    simulate(folder.path(), &[]);
    let other = ["simulate", "-q", "--engine-step", "20ms", "--requests", "40", "--rate", "9"];
    assert!(output(&other, folder.path()).status.success());
    let ids: Vec<String> = fs::read_dir(folder.path().join("runs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for (words, said) in [
        (&["latest"][..], "nothing is required"),
        (&["error_rate<1%"], "no run is named"),
        (&["nobody", "error_rate<1%"], "nobody"),
        (&["latest", "error_rate<"], "is not a limit"),
        (&["latest", "goodput>1"], "--slo 'ttft<500ms'"),
        (&[&ids[0], &ids[1], "error_rate<1%"], "different workloads"),
    ] {
        let ran = output(&[&["require"], words].concat(), folder.path());
        assert_eq!(ran.status.code(), Some(2), "{words:?}: {}", text(&ran.stderr));
        assert!(text(&ran.stderr).contains(said), "{words:?}: {}", text(&ran.stderr));
    }
}

#[test]
fn the_runs_of_a_set_are_judged_together_and_a_sweep_has_no_one_value() {
    let folder = tempfile::tempdir().unwrap();
    let ran = simulate(folder.path(), &["--repeat", "3"]);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let judged = output(&["require", "latest", "output_throughput>300", "--json"], folder.path());
    assert_eq!(judged.status.code(), Some(0), "{}", text(&judged.stderr));
    assert_eq!(document(&judged)["runs"].as_array().unwrap().len(), 3);
    let sweep = ["sweep", "--virtual", "--concurrencies", "1,2", "--requests", "5", "-q"];
    output(&sweep, folder.path());
    let refused = output(&["require", "latest", "output_throughput>300"], folder.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("is a sweep: a threshold is for one load"),
        "{}",
        text(&refused.stderr)
    );
}
