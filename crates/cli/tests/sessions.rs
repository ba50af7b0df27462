//! Sessions in virtual time, where every moment and every cached token is known beforehand; and the
//! same against the live engine.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::fs;
use std::path::Path;

use inferometer_model::outcome::Cause;
use inferometer_model::{Moment, Outcome, RequestRecord};
use serde_json::Value;

use support::{latest_run, observations, output, text};

fn run(command: &str, folder: &Path, arguments: &[&str]) -> Value {
    let ran = output(&[&[command, "--quiet", "--json"], arguments].concat(), folder);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

fn ms(later: Moment, earlier: Moment) -> f64 {
    later.since(earlier).unwrap().as_secs_f64() * 1e3
}

/// Two steps with two sub-agents of two steps between them; 64 tokens of system prompt, tasks of 36,
/// and 20 more with each later step.
const AGENT: [&str; 20] = [
    "--agent-steps",
    "2",
    "--agent-subagents",
    "2",
    "--agent-subagent-steps",
    "2",
    "--agent-growth",
    "20",
    "--agent-tool-time",
    "100ms",
    "--prefix-tokens",
    "64",
    "--input-tokens",
    "36",
    "--output-tokens",
    "12",
    "--requests",
    "60",
    "--seed",
    "3",
];

/// The prompt of each turn, how much of it was in an earlier prompt or answer, and how much of that
/// the cache holds: whole blocks of sixteen, without the last token of an answer. Nothing comes after
/// that one, so the engine never computes it, and the block that it would fill stays unnamed.
fn expected(turn: u16, first_session: bool) -> (u64, u64, u64) {
    let system = if first_session && turn == 0 { 0 } else { 64 };
    let context = 100 + 12;
    match turn {
        0 | 1 | 3 => (100, system, system / 16 * 16),
        _ => (context + 20, context, (context - 1) / 16 * 16),
    }
}

#[test]
fn agents_keep_their_order_and_their_times_in_a_simulation() {
    let folder = tempfile::tempdir().unwrap();
    let load = ["--engine-step", "10ms", "--concurrency", "1"];
    let document = run("simulate", folder.path(), &[&AGENT[..], &load].concat());
    let records = observations(folder.path()).records.into_held();
    assert_eq!(records.len(), 60);
    let (mut achievable, mut cached, mut prompts) = (0, 0, 0);
    for (session, turns) in (0..).zip(records.chunks(6)) {
        let ended = |turn: usize| turns[turn].ending.at;
        // The sub-agents begin when the task is answered and one tool has run; the last step waits for
        // the last of them.
        for (turn, after) in [(1, 0), (3, 0), (2, 1), (4, 3)] {
            let gap = ms(turns[turn].intended, ended(after));
            let tool = if turn % 2 == 0 { 100.0 } else { 0.0 };
            assert!((gap - tool).abs() < 0.001, "turn {turn}: {gap}");
        }
        let joined = ended(2).max(ended(4));
        assert!((ms(turns[5].intended, joined) - 100.0).abs() < 0.001);
        for (turn, record) in (0..).zip(turns) {
            let (prompt, shared, held) = expected(turn, session == 0);
            let usage = record.usage.unwrap();
            assert_eq!(usage.prompt_tokens, Some(prompt), "turn {turn}");
            assert_eq!(usage.cached_tokens, Some(held), "{session}/{turn}");
            achievable += shared;
            cached += held;
            prompts += prompt;
        }
    }
    let found = &document["sessions"];
    assert_eq!((&found["begun"], &found["complete"]), (&10.into(), &10.into()));
    let reuse = &found["reuse"];
    assert_eq!(reuse["prompt_tokens"], prompts);
    assert_eq!(reuse["achievable_tokens"], achievable);
    assert_eq!(reuse["cached_tokens"], cached);
    // The task, a sub-agent's two requests and the last step; a tool after each but the first answer.
    assert_eq!(found["critical_requests_mean"], 4.0);
    assert!((found["tools_ms"]["mean"].as_f64().unwrap() - 200.0).abs() < 0.001, "{found}");
    let times = ["e2e_ms", "model_ms", "tools_ms", "waiting_ms"];
    let [e2e, model, tools, waiting] = times.map(|key| found[key]["mean"].as_f64().unwrap());
    assert!((e2e - model - tools - waiting).abs() < 1e-6, "{found}");
    let whole = ms(records[5].ending.at, records[0].sent.unwrap());
    assert!((whole - 200.0 - model).abs() < 15.0, "sessions are alike: {whole} {model}");
}

#[test]
fn the_live_engine_caches_what_sessions_share() {
    let folder = tempfile::tempdir().unwrap();
    let load = ["--engine-step", "1ms", "--concurrency", "2", "--telemetry", "off"];
    let document = run("run", folder.path(), &[&AGENT[..], &load].concat());
    let records = observations(folder.path()).records.into_held();
    assert_eq!(records.len(), 60);
    assert!(records.iter().all(|record| record.ending.outcome == Outcome::Ok));
    let sum =
        |count: fn(&RequestRecord) -> Option<u64>| records.iter().filter_map(count).sum::<u64>();
    let reuse = &document["sessions"]["reuse"];
    let cached = sum(|record| record.usage?.cached_tokens);
    assert_eq!(reuse["cached_tokens"], cached);
    // The server is silent about a request that found nothing, which counts all the same.
    assert!(records.iter().any(|record| record.usage.unwrap().cached_tokens.is_none()));
    assert_eq!(reuse["requests"], 60);
    assert_eq!(reuse["prompt_tokens"], sum(|record| record.usage?.prompt_tokens));
    assert!(0 < cached && cached <= reuse["achievable_tokens"].as_u64().unwrap(), "{reuse}");
    for turns in records.chunks(6) {
        let joined = turns[2].ending.at.max(turns[4].ending.at);
        assert!((ms(turns[5].intended, joined) - 100.0).abs() < 0.5);
    }
}

#[test]
fn a_failed_request_ends_what_waits_for_it_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    // The left branch asks for more than the engine can hold.
    let file = r#"{"session":"a","id":"task","input_tokens":100,"output_tokens":4}
{"session":"a","id":"left","after":["task"],"context":null,"input_tokens":9000,"output_tokens":4}
{"session":"a","id":"deeper","after":["left"],"input_tokens":10,"output_tokens":4}
{"session":"a","id":"right","after":["task"],"context":null,"input_tokens":50,"output_tokens":4}
{"session":"a","id":"sum","after":["task","deeper","right"],"input_tokens":10,"output_tokens":4}
{"session":"b","id":"alone","input_tokens":20,"output_tokens":4}
"#;
    fs::write(folder.path().join("s.jsonl"), file).unwrap();
    let flags = ["--sessions", "s.jsonl", "--requests", "6", "--concurrency", "1"];
    let engine = ["--engine-step", "10ms", "--max-model-len", "4096"];
    let document = run("simulate", folder.path(), &[&flags[..], &engine].concat());
    let run = observations(folder.path());
    let ended: Vec<(u64, Outcome)> =
        run.records.iter().map(|record| (record.id.0, record.ending.outcome)).collect();
    let ok = Outcome::Ok;
    assert_eq!(ended, [(0, ok), (1, Outcome::HttpError), (3, ok), (5, ok)]);
    let lost: Vec<(u64, u64, Cause)> =
        run.not_sent.iter().map(|part| (part.first.0, part.count, part.cause)).collect();
    let cause = Cause::ConversationBroken;
    assert!(lost == [(2, 1, cause), (4, 1, cause)], "{lost:?}");
    let found = &document["sessions"];
    let counts = ["begun", "complete", "failed"].map(|key| found[key].as_u64().unwrap());
    assert_eq!(counts, [2, 1, 1]);
}

#[test]
fn recorded_sessions_come_at_their_times_and_a_saved_plan_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = r#"{"session":"late","id":1,"at":12,"input_tokens":20,"output_tokens":4}
{"session":"early","id":"a","at":10,"input_tokens":20,"output_tokens":4}
{"session":"early","id":"beside","after":[],"delay":0.5,"input_tokens":20,"output_tokens":4}
{"session":"early","id":"both","after":["a","beside"],"delay":0.25,"input_tokens":20,"output_tokens":4}
"#;
    fs::write(folder.path().join("s.jsonl"), file).unwrap();
    let flags = ["--sessions", "s.jsonl", "--speed", "2", "--seed", "5"];
    let simulate = |arguments: &[&str]| {
        let engine = ["--engine-step", "10ms"];
        let document = run("simulate", folder.path(), &[arguments, &engine].concat());
        let journal = fs::read(latest_run(folder.path()).path().join("requests.journal")).unwrap();
        (document, journal)
    };
    let (first, journal) = simulate(&flags);
    let records = observations(folder.path()).records.into_held();
    let begun = records[0].intended;
    let intended: Vec<f64> = records.iter().map(|record| ms(record.intended, begun)).collect();
    assert_eq!((intended[0], intended[1], intended[3]), (0.0, 500.0, 1_000.0));
    assert!((ms(records[2].intended, records[1].ending.at) - 250.0).abs() < 0.001);
    let saved = ["plan", "--save", "p.jsonl"];
    let saved = output(&[&saved[..], &flags].concat(), folder.path());
    assert_eq!(saved.status.code(), Some(0), "{}", text(&saved.stderr));
    let (again, replayed) = simulate(&["--plan", "p.jsonl"]);
    assert_eq!(again["plan"]["fingerprint"], first["plan"]["fingerprint"]);
    assert!(journal == replayed, "the same requests at the same moments");
    fs::write(folder.path().join("t.jsonl"), file.replace("\"at\"", "\"x\"")).unwrap();
    let refused = output(&["plan", "--sessions", "t.jsonl"], folder.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("t.jsonl, line 1: unknown field `x`"));
    fs::write(folder.path().join("u.jsonl"), file.replace(",\"at\":12", "")).unwrap();
    let refused = output(&["plan", "--sessions", "u.jsonl"], folder.path());
    assert!(text(&refused.stderr).contains("does not say when its sessions began"));
}
