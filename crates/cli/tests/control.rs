//! What ends a run early, and what is called around it.

use crate::support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use inferometer_engine::truth::{Ended, RequestTruth};
use inferometer_model::Outcome;
use inferometer_model::journal::RunStop;
use serde_json::Value;

use support::{Engine, get, http, observations, output, server_hearing, text, words};

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
        let (page, said) = (words(&ran.stdout), words(&ran.stderr));
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
        if is_measured {
            // A run of a second, in which the conditions are looked at.
            std::thread::sleep(Duration::from_millis(10));
        }
        if is_measured && asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(3) {
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

fn by_request_id(engine: &Engine, run: &str) -> BTreeMap<u64, RequestTruth> {
    let prefix = format!("inferometer-{run}-");
    let own = engine.truth().requests.into_iter().filter_map(|truth| {
        let id = truth.request_id.as_deref()?.strip_prefix(&prefix)?.parse().ok()?;
        Some((id, truth))
    });
    own.collect()
}

#[test]
fn a_share_of_requests_is_ended_by_the_client_and_the_engine_sees_it() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--mode", "serve", "--step", "4ms"]);
    let load =
        ["-n", "60", "-c", "6", "--input-tokens", "16", "--output-tokens", "40", "--seed", "3"];
    let cancel = ["--cancel", "25%", "--cancel-after", "5", "--json"];
    let ran = run(&engine.url(), &[&load[..], &cancel].concat(), folder.path());
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let observations = observations(folder.path());
    let counts = observations.outcome_counts();
    let abandoned = counts[&Outcome::Abandoned];
    assert!((5..=27).contains(&abandoned), "{counts:?}");
    assert_eq!(counts[&Outcome::Ok] + abandoned, 60, "{counts:?}");
    let truths = by_request_id(&engine, &observations.manifest.run);
    for record in &observations.records {
        let truth = &truths[&record.id.0];
        let is_left = record.ending.outcome == Outcome::Abandoned;
        assert_eq!(
            truth.ended,
            if is_left { Ended::Aborted } else { Ended::Complete },
            "{truth:?}"
        );
        let outputs = record.events.iter().filter(|event| event.is_output()).count();
        if is_left {
            assert!((5..15).contains(&outputs), "it left as soon as it had five: {outputs}");
            assert!(truth.tokens < 40, "the engine stopped generating: {truth:?}");
        }
    }
    let metrics = String::from_utf8(get(engine.address, "/metrics")).unwrap();
    let running = metrics.lines().find(|line| line.starts_with("vllm:num_requests_running{"));
    assert!(running.unwrap().ends_with(" 0.0") || running.unwrap().ends_with(" 0"), "{running:?}");
    let summary: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(
        summary["metrics"]["error_rate"]["value"], 0.0,
        "{}",
        summary["metrics"]["error_rate"]
    );
    let errors = summary["warnings"].as_array().unwrap();
    assert!(errors.iter().all(|notice| notice["key"] != "errors"), "{errors:?}");
}

#[test]
fn what_cannot_be_cancelled_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, why) in [
        (&["--cancel", "10%", "--no-stream"][..], "--cancel ends streams"),
        (&["--cancel", "10%", "--turns", "3"], "a session goes on from whole answers"),
        (&["--cancel-after", "3"], "--cancel-after"),
    ] {
        let ran = output(&[&["run", "-q"], arguments].concat(), folder.path());
        assert_eq!(ran.status.code(), Some(2), "{arguments:?}");
        assert!(text(&ran.stderr).contains(why), "{}", text(&ran.stderr));
    }
}

#[test]
fn a_header_names_the_session_of_each_request() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--mode", "serve", "--step", "1ms"]);
    let load =
        ["--turns", "3", "-n", "12", "-c", "2", "--input-tokens", "16", "--output-tokens", "2"];
    let header = ["--header", "X-Session-Id: {session}"];
    let ran = run(&engine.url(), &[&load[..], &header].concat(), folder.path());
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let observations = observations(folder.path());
    let truths = by_request_id(&engine, &observations.manifest.run);
    for record in &observations.records {
        let first = record.id.0 - u64::from(record.asked.turn);
        let expected = format!("inferometer-{}-{first}", observations.manifest.run);
        assert_eq!(truths[&record.id.0].session_id.as_ref(), Some(&expected));
    }
    assert_eq!(truths.len(), 12);
}

/// The requests of the run that an engine has answered, by their numbers.
fn numbers_at(engine: &Engine, run: &str) -> Vec<u64> {
    by_request_id(engine, run).into_keys().collect()
}

#[test]
fn requests_are_balanced_over_several_urls_and_each_has_a_row() {
    let folder = tempfile::tempdir().unwrap();
    let [fast, slow] = ["1ms", "8ms"].map(|gap| Engine::start(&["--ttft", "2ms", "--gap", gap]));
    let load = ["--replica", &slow.url(), "-n", "80", "-c", "4", "--output-tokens", "8", "--json"];
    let ran = run(&fast.url(), &load, folder.path());
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let observations = observations(folder.path());
    let name = &observations.manifest.run;
    let even: Vec<u64> = (0..80).step_by(2).collect();
    let odd: Vec<u64> = (1..80).step_by(2).collect();
    assert_eq!((numbers_at(&fast, name), numbers_at(&slow, name)), (even, odd), "in turn");
    let summary: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let rows = summary["urls"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["part"]), (2, &Value::from(fast.url())), "{rows:?}");
    for (row, engine) in rows.iter().zip([&fast, &slow]) {
        assert_eq!((&row["requests"], &row["ok"]), (&Value::from(40), &Value::from(40)));
        // Reported is true: the mean from the receipt of each request to its last write.
        let truths = by_request_id(engine, name);
        let took = truths.values().map(|truth| {
            let last = truth.writes.iter().rev().find(|write| 0 < write.tokens).unwrap();
            (last.before_ns - truth.received_user_ns) as f64 / 1e6
        });
        let mean = took.sum::<f64>() / 40.0;
        let reported = row["e2e_ms"]["mean"].as_f64().unwrap();
        assert!((reported / mean - 1.0).abs() < 0.5, "{reported} ms, and {mean} ms were true");
    }
    let uneven =
        summary["warnings"].as_array().unwrap().iter().find(|it| it["key"] == "urls-uneven");
    assert!(uneven.unwrap()["text"].as_str().unwrap().contains(&slow.url()), "{uneven:?}");
    let page = output(&["report", "latest"], folder.path());
    let page = std::fs::read_to_string(folder.path().join(text(&page.stdout).trim())).unwrap();
    assert!(page.contains("Base URLs") && page.contains(&slow.url()));
}

#[test]
fn a_session_stays_on_one_of_several_urls() {
    let folder = tempfile::tempdir().unwrap();
    let engines = [(); 2].map(|()| Engine::start(&["--mode", "serve", "--step", "1ms"]));
    let load =
        ["--turns", "2", "-n", "40", "-c", "2", "--input-tokens", "16", "--output-tokens", "2"];
    let replica = ["--replica", &engines[1].url()];
    let ran = run(&engines[0].url(), &[&load[..], &replica].concat(), folder.path());
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let observations = observations(folder.path());
    let at = [0, 1].map(|place: usize| numbers_at(&engines[place], &observations.manifest.run));
    assert_eq!(at[0].len() + at[1].len(), 40);
    assert!(at.iter().all(|numbers| 4 <= numbers.len()), "both are used: {at:?}");
    for numbers in at {
        assert!(numbers.iter().all(|id| numbers.contains(&(id ^ 1))), "{numbers:?}");
    }
}

#[test]
fn a_replica_that_does_not_answer_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&[]);
    let ran = run(&engine.url(), &["--replica", "http://127.0.0.1:1", "-n", "2"], folder.path());
    assert_eq!(ran.status.code(), Some(3), "{}", text(&ran.stderr));
    assert!(text(&ran.stderr).contains("127.0.0.1:1"), "{}", text(&ran.stderr));
    let alone = output(&["run", "-q", "--replica", "http://127.0.0.1:1"], folder.path());
    assert_eq!(alone.status.code(), Some(2), "{}", text(&alone.stderr));
}
