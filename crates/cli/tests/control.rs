//! What ends a run early, and what is called around it.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicU64, Ordering};

use inferometer_model::Outcome;
use inferometer_model::journal::RunStop;
use serde_json::Value;

use support::{Engine, http, observations, output, server_hearing, text};

const ENDLESS: [&str; 6] = ["-c", "4", "--duration", "10m", "--output-tokens", "3"];

fn run(url: &str, arguments: &[&str], folder: &Path) -> Output {
    output(&[&["run", url, "-q"], arguments].concat(), folder)
}

#[test]
fn a_missed_slo_ends_a_run_which_is_stored_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "20ms", "--gap", "1ms"]);
    for conditions in
        [&["--abort-on", "ttft.p50>5ms"][..], &["--slo", "ttft.p50<5ms", "--abort-on", "slo"]]
    {
        let ran = run(&engine.url(), &[&ENDLESS, conditions].concat(), folder.path());
        let (page, said) = (text(&ran.stdout), text(&ran.stderr));
        assert_eq!(ran.status.code(), Some(99), "{page}{said}");
        assert!(said.contains("stopping this run by --abort-on ttft.p50"), "{said}");
        assert!(page.contains("stopped by --abort-on, because an SLO was missed"), "{page}");
        let observations = observations(folder.path());
        assert_eq!(observations.ending.stop, RunStop::SloMissed);
        let counts = observations.outcome_counts();
        assert_eq!(counts[&Outcome::Cancelled], 0, "what was in flight could finish");
        assert_eq!(observations.records.len(), usize::try_from(counts[&Outcome::Ok]).unwrap());
    }
}

/// A server that answers one of three requests with an error.
fn failing_at_times() -> std::net::SocketAddr {
    let asked = AtomicU64::new(0);
    server_hearing(move |head| {
        // Questions before the run are answered.
        let is_measured = head.contains("x-request-id: inferometer-2");
        if is_measured && asked.fetch_add(1, Ordering::Relaxed) % 3 == 0 {
            return http("500 Internal Server Error", "text/plain", "no");
        }
        let answer = r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
        http("200 OK", "text/event-stream", &format!("data: {answer}\n\ndata: [DONE]\n\n"))
    })
}

#[test]
fn an_error_budget_ends_a_run_only_when_it_is_spent() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://{}", failing_at_times());
    let load = ["-m", "m", "-c", "1", "--telemetry", "off", "-n", "90"];
    let ran = run(&url, &[&load[..], &["--abort-on", "error_rate>5%"]].concat(), folder.path());
    assert_eq!(ran.status.code(), Some(99), "{}", text(&ran.stderr));
    let stopped = observations(folder.path());
    assert_eq!(stopped.ending.stop, RunStop::ErrorBudget);
    assert!((20..90).contains(&stopped.records.len()) && 0 < stopped.not_sent_count());
    run(&url, &[&load[..], &["--abort-on", "error_rate>60%"]].concat(), folder.path());
    assert_eq!(observations(folder.path()).ending.stop, RunStop::PlanDone);
}

#[test]
fn each_level_of_a_sweep_is_stopped_for_itself() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "20ms", "--gap", "1ms"]);
    let arguments =
        ["--duration", "10m", "--concurrencies", "2,4", "--json", "--output-tokens", "2"];
    let condition = ["--abort-on", "ttft.p50>5ms"];
    let ran = output(
        &[&["sweep", &engine.url(), "-q"], &arguments[..], &condition].concat(),
        folder.path(),
    );
    let set: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let levels = set["conditions"][0]["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 2, "{set}");
    assert!(levels.iter().all(|level| level["partial"] == 1), "{set}");
}

#[test]
fn conditions_that_cannot_be_watched_are_refused_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&[]);
    for (condition, why) in [
        ("saturation", "needs an open loop"),
        ("slo", "needs an SLO of the run"),
        ("output_throughput<5", "watches error_rate"),
        ("soon", "is not a condition"),
    ] {
        let ran = run(&engine.url(), &["--abort-on", condition], folder.path());
        assert_eq!(ran.status.code(), Some(2), "{condition}");
        assert!(text(&ran.stderr).contains(why), "{}", text(&ran.stderr));
    }
    let simulated = output(&["simulate", "--abort-on", "error_rate>5%"], folder.path());
    assert_eq!(simulated.status.code(), Some(2));
    assert!(text(&simulated.stderr).contains("virtual time"), "{}", text(&simulated.stderr));
    assert!(engine.truth().requests.is_empty());
}

#[test]
fn a_hook_empties_the_cache_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--mode", "serve", "--step", "1ms"]);
    let cached = |hooks: &[&str]| {
        let load =
            ["-n", "4", "-c", "1", "--input-tokens", "256", "--seed", "7", "--output-tokens", "2"];
        let ran = run(&engine.url(), &[&load[..], hooks].concat(), folder.path());
        assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
        let records = observations(folder.path()).records;
        records.iter().filter_map(|record| record.usage?.cached_tokens).sum::<u64>()
    };
    let new = cached(&[]);
    assert!(new + 500 < cached(&[]), "the same prompts are found again");
    assert_eq!(cached(&["--before-run", "/reset_prefix_cache"]), new);
    let url = format!("{}/reset_prefix_cache", engine.url());
    assert_eq!(cached(&["--before-run", &url]), new);
}

#[test]
fn hooks_may_be_commands_and_one_that_fails_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "1ms", "--gap", "1ms"]);
    let file = folder.path().join("called");
    let touch = format!("echo \"$INFEROMETER_URL\" >> {}", file.display());
    let load = ["-n", "3", "--output-tokens", "2"];
    let hooks = ["--before-run", &touch, "--after-run", &touch];
    let ran = run(&engine.url(), &[&load[..], &hooks].concat(), folder.path());
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{0}\n{0}\n", engine.url()));
    let spec = observations(folder.path()).manifest.spec;
    assert_eq!(spec.control.after_run[0].text(), touch, "it is stored with the run");

    let before = std::fs::read_dir(folder.path().join("runs")).unwrap().count();
    let ran = run(
        &engine.url(),
        &[&load[..], &["--before-run", "/start_profile"]].concat(),
        folder.path(),
    );
    let said = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(3), "{said}");
    assert!(said.contains("--before-run /start_profile answered HTTP 404"), "{said}");
    assert_eq!(std::fs::read_dir(folder.path().join("runs")).unwrap().count(), before);
    assert_eq!(
        engine
            .truth()
            .requests
            .iter()
            .filter(|it| it.request_id.as_deref().is_some_and(|id| id.starts_with("inferometer-2")))
            .count(),
        3
    );

    let ran = run(
        &engine.url(),
        &[&load[..], &["--after-run", "echo oops; exit 3"]].concat(),
        folder.path(),
    );
    let said = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(3), "{said}");
    assert!(
        said.contains("--after-run `echo oops; exit 3` ended with") && said.contains("oops"),
        "{said}"
    );
    assert_eq!(observations(folder.path()).records.len(), 3, "the run is stored");
}
