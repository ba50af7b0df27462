//! Answers that are judged and kept, against an engine that knows which of its answers are right.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::Path;

use inferometer_model::answer::Validity;
use serde_json::{Value, json};

use crate::support::{Engine, latest_run, observations, output, text};

/// An engine that answers so many of ten questions right.
fn engine(share: &str) -> Engine {
    Engine::start(&["--mode", "serve", "--step", "2ms", "--right-answers", share])
}

/// So many different sums, with the answers as a school book has them.
fn sums(folder: &Path, count: u32) {
    let line = |n: u32| {
        let (one, other) = (n % 7 + 2, n + 10);
        let answer = format!("{one} times {other} is #### {}", one * other);
        json!({"prompt": format!("What is {one} * {other} ?"), "answer": answer, "output_tokens": 16})
    };
    let lines: Vec<String> = (0..count).map(|n| format!("{}\n", line(n))).collect();
    std::fs::write(folder.join("sums.jsonl"), lines.concat()).unwrap();
}

fn run(folder: &Path, engine: &Engine, more: &[&str]) -> Value {
    let asked = ["run", &engine.url(), "--json", "-q", "--concurrency", "8", "--seed", "5"];
    let ran = output(&[&asked[..], more].concat(), folder);
    let document = serde_json::from_slice(&ran.stdout);
    document.unwrap_or_else(|error| panic!("{error}: {}", text(&ran.stderr)))
}

/// The engine's own count of its right answers, but to probes.
fn right(engine: &Engine) -> u64 {
    let is_probe = |id: &Option<String>| id.as_ref().is_some_and(|id| id.contains("-probe-"));
    let requests = engine.truth().requests;
    let measured = requests.iter().filter(|it| !is_probe(&it.request_id));
    measured.filter(|it| it.right == Some(true)).count() as u64
}

#[test]
fn accuracy_under_load_is_the_engines_own() {
    let folder = tempfile::tempdir().unwrap();
    sums(folder.path(), 150);
    let engine = engine("0.8");
    let asked = ["--dataset", "sums.jsonl", "--expect", "numeric", "--requests", "300"];
    let document = run(folder.path(), &engine, &asked);
    let (answers, accuracy) = (&document["answers"], &document["metrics"]["accuracy"]);
    assert_eq!((&answers["compared"], &answers["questions"]), (&json!(300), &json!(150)));
    assert_eq!(answers["correct"], right(&engine), "{answers}");
    let value = accuracy["value"].as_f64().unwrap();
    assert!((0.7..0.9).contains(&value), "{accuracy}");
    let low = accuracy["interval"]["low"].as_f64().or_else(|| accuracy["interval"][0].as_f64());
    assert!(low.is_some_and(|low| 0.6 < low && low < value), "{accuracy}");
    let shown = output(&["verify", "latest", "--full"], folder.path());
    let page = text(&shown.stdout);
    assert!(page.contains("Answers") && page.contains("150 questions in all"), "{page}");
    let gate = |limit: &str| {
        let asked = [&asked[..], &["--require", limit]].concat();
        let url = engine.url();
        let all = [&["run", &url, "-q", "--seed", "5"][..], &asked].concat();
        output(&all, folder.path()).status.code()
    };
    assert_eq!(gate("accuracy>0.5"), Some(0));
    assert_ne!(gate("accuracy>95%"), Some(0));
}

#[test]
fn a_server_that_breaks_answers_is_seen_in_a_comparison() {
    let folder = tempfile::tempdir().unwrap();
    sums(folder.path(), 200);
    let asked = ["--dataset", "sums.jsonl", "--expect", "numeric", "--requests", "200"];
    for share in ["1", "0.5"] {
        run(folder.path(), &engine(share), &asked);
    }
    let runs = output(&["runs", "--json"], folder.path());
    let runs: Value = serde_json::from_slice(&runs.stdout).unwrap();
    let id = |place: usize| runs["runs"][place]["id"].as_str().unwrap().to_owned();
    let compared = output(&["compare", &id(1), &id(0), "--json"], folder.path());
    let compared: Value = serde_json::from_slice(&compared.stdout).unwrap();
    let said = compared.to_string();
    assert!(said.contains("\"accuracy\""), "{said}");
}

#[test]
fn every_form_is_judged_as_the_engine_made_it() {
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
        "required": ["city", "people"],
        "additionalProperties": false,
    });
    let format = json!({"type": "json_schema", "json_schema": {"name": "s", "schema": schema}});
    let tool = json!({"type": "function", "function": {"name": "find", "parameters": schema}});
    let bodies = [
        (json!({"response_format": format}), Validity::NotJson),
        (json!({"tools": [tool], "tool_choice": "required"}), Validity::BadArguments),
    ];
    for (body, broken) in bodies {
        for stream in ["--stream=true", "--stream=false"] {
            let folder = tempfile::tempdir().unwrap();
            let engine = engine("0.7");
            let body = body.to_string();
            let asked =
                ["--extra-body", &body, "--requests", "100", "--output-tokens", "64", stream];
            let document = run(folder.path(), &engine, &asked);
            let answers = &document["answers"];
            assert_eq!(answers["judged"], 100, "{body}: {answers}");
            assert_eq!(answers["valid"], right(&engine), "{body}: {answers}");
            let wrong = 100 - right(&engine);
            assert!(0 < wrong && wrong < 60, "{wrong}");
            assert_eq!(answers["invalid"], json!({broken.name(): wrong}), "{body}");
            assert_eq!(document["metrics"]["accuracy"]["value"], Value::Null);
        }
    }
}

#[test]
fn an_answer_that_ended_at_its_length_is_named_so() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine("1");
    let body = json!({"response_format": {"type": "json_schema", "json_schema": {
        "schema": {"type": "object", "properties": {"a": {"type": "string", "minLength": 99}}},
    }}})
    .to_string();
    let asked = ["--extra-body", &body, "--requests", "10", "--output-tokens", "8"];
    let document = run(folder.path(), &engine, &asked);
    assert_eq!(document["answers"]["invalid"], json!({"cut": 10}));
}

#[test]
fn answers_are_kept_within_their_share_and_bound_and_leave_a_redacted_bundle() {
    let folder = tempfile::tempdir().unwrap();
    sums(folder.path(), 100);
    let engine = engine("0.5");
    let asked = ["--dataset", "sums.jsonl", "--expect", "numeric", "--requests", "200"];
    run(folder.path(), &engine, &[&asked[..], &["--keep-answers", "25%"]].concat());
    let kept = std::fs::read_to_string(latest_run(folder.path()).path().join("answers.jsonl"));
    let kept: Vec<Value> =
        kept.unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!((20..80).contains(&kept.len()), "{}", kept.len());
    let records = observations(folder.path()).records;
    for answer in &kept {
        let id = answer["id"].as_u64().unwrap();
        let record = records.iter().find(|record| record.id.0 == id).unwrap();
        assert_eq!(answer["correct"].as_bool(), record.grade.unwrap().is_correct);
        assert!(answer["content"].as_str().unwrap().starts_with("The answer is"), "{answer}");
    }
    let one = latest_run(folder.path()).answer(records.iter().next().unwrap().id);
    assert_eq!(one.is_some(), kept.iter().any(|answer| answer["id"] == 0));

    let plain = output(&["bundle", "latest", "--to", "plain"], folder.path());
    assert!(plain.status.success(), "{}", text(&plain.stderr));
    let redacted = output(&["bundle", "latest", "--redact", "--to", "redacted"], folder.path());
    assert!(redacted.status.success(), "{}", text(&redacted.stderr));
    let holds = |file: &str| {
        let bytes = std::fs::read(folder.path().join(file)).unwrap();
        String::from_utf8_lossy(&bytes).contains("The answer is")
    };
    assert!(holds("plain") && !holds("redacted"));
    let verified = output(&["verify", "redacted"], folder.path());
    assert!(verified.status.success(), "{}", text(&verified.stderr));
}

#[test]
fn what_cannot_be_judged_is_refused_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |more: &[&str]| {
        let ran = output(&[&["run", "--requests", "2"], more].concat(), folder.path());
        assert_eq!(ran.status.code(), Some(2), "{}", text(&ran.stderr));
        text(&ran.stderr)
    };
    assert!(refused(&["--expect", "numeric"]).contains("nothing to compare"));
    assert!(refused(&["--expect", "regex:("]).contains("no regular expression"));
    assert!(refused(&["--expect", "fuzzy"]).contains("is not known"));
    assert!(!folder.path().join("runs").exists());
}
