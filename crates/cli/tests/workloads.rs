//! Workloads through the real binary, held against what the engine was really asked.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Output;

use inferometer_model::{Observations, Outcome};
use serde_json::{Value, json};

use support::{Engine, inferometer, observations, output, text};

const QUICK: [&str; 4] = ["--ttft", "1ms", "--gap", "1ms"];

fn engine() -> Engine {
    Engine::start(&["--mode", "paced", QUICK[0], QUICK[1], QUICK[2], QUICK[3]])
}

/// Runs against the engine, and gives the summary.
fn run(engine: &Engine, folder: &Path, arguments: &[&str]) -> Value {
    let url = engine.url();
    let ran = output(&[&["run", &url, "--json", "--quiet"], arguments].concat(), folder);
    // A busy machine may make a client too late to be believed; what was asked is the same.
    let is_measured = matches!(ran.status.code(), Some(0 | 4));
    assert!(is_measured, "{arguments:?}: {}", text(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

fn planned(folder: &Path, arguments: &[&str]) -> Value {
    let ran = output(&[&["plan", "--json"], arguments].concat(), folder);
    assert!(ran.status.success(), "{arguments:?}: {}", text(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

fn refused(folder: &Path, arguments: &[&str]) -> String {
    let ran: Output = output(arguments, folder);
    assert_eq!(ran.status.code(), Some(2), "{arguments:?}: {}", text(&ran.stderr));
    text(&ran.stderr)
}

/// A tokenizer that counts as the engine does: a word is a token, whatever word it is.
fn word_tokenizer(folder: &Path) -> String {
    let tokenizer = json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": { "type": "WhitespaceSplit" },
        "post_processor": null,
        "decoder": null,
        "model": {
            "type": "WordLevel",
            "vocab": words(folder).into_iter().zip(0_u32..).collect::<std::collections::BTreeMap<_, _>>(),
            "unk_token": "[unknown]",
        },
    });
    let path = folder.join("tokenizer.json");
    std::fs::write(&path, tokenizer.to_string()).unwrap();
    path.display().to_string()
}

/// The words that prompts are made of, as a saved plan has them.
fn words(folder: &Path) -> Vec<String> {
    planned(folder, &["--requests", "20", "--save", "words.jsonl"]);
    let saved = std::fs::read_to_string(folder.join("words.jsonl")).unwrap();
    let lines = saved.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let prompts = lines.filter_map(|line| line["prompt"].as_str().map(str::to_owned));
    let words = prompts.flat_map(|prompt| prompt.split(' ').map(str::to_owned).collect::<Vec<_>>());
    let words: std::collections::BTreeSet<String> = words.collect();
    std::iter::once("[unknown]".to_owned()).chain(words).collect()
}

/// How many words the engine was sent by each request of the run, by their order in the plan.
fn words_sent(engine: &Engine) -> Vec<u32> {
    let mut sent: Vec<(u64, u32)> = engine
        .truth()
        .requests
        .iter()
        .filter_map(|request| {
            let id = request.request_id.as_deref()?;
            let number = id.rsplit('-').next()?.parse().ok()?;
            let is_run = id.starts_with("inferometer-2");
            is_run.then_some((number, request.prompt_tokens))
        })
        .collect();
    sent.sort_unstable();
    sent.into_iter().map(|(_, words)| words).collect()
}

fn asked(observations: &Observations) -> Vec<u32> {
    observations.records.iter().map(|record| record.asked.input_tokens).collect()
}

#[test]
fn prompts_have_the_length_that_the_engine_counts() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine();
    let tokenizer = word_tokenizer(folder.path());
    let summary = run(
        &engine,
        folder.path(),
        &[
            "--tokenizer",
            &tokenizer,
            "--input-tokens",
            "uniform:3..80",
            "--output-tokens",
            "5±60%",
            "--requests",
            "40",
        ],
    );
    let observed = observations(folder.path());
    assert_eq!(asked(&observed), words_sent(&engine));
    let audit = &summary["workload"]["audit"];
    assert_eq!(audit["input"]["exact"], 40, "{audit}");
    assert_eq!(audit["output"]["exact"], 40, "{audit}");
    assert_eq!(summary["workload"]["input_length"], "exact");
    let lengths: std::collections::BTreeSet<u32> = asked(&observed).into_iter().collect();
    assert!(10 < lengths.len() && lengths.iter().all(|length| (3..=80).contains(length)));
}

#[test]
fn without_a_tokenizer_the_server_is_asked_how_it_counts() {
    let folder = tempfile::tempdir().unwrap();
    let summary = run(&engine(), folder.path(), &["--requests", "4", "--output-tokens", "2"]);
    let correction = &summary["workload"]["input_length"]["corrected"];
    assert_eq!(correction["tokens_per_word"], 1.0, "{summary}");
    assert_eq!(correction["overhead_tokens"], 0.0);
    assert_eq!(summary["workload"]["audit"]["input"]["exact"], 4);
}

#[test]
fn the_same_spec_and_seed_give_the_same_plan_for_any_number_of_cores() {
    let folder = tempfile::tempdir().unwrap();
    let prints = |more: &[&str]| {
        let flags = ["--turns", "uniform:1..5", "--rate", "9", "--requests", "300"];
        let seed: &[&str] = if more.contains(&"--seed") { &[] } else { &["--seed", "1"] };
        let plan = planned(folder.path(), &[&flags[..], seed, more].concat());
        assert_eq!(plan["fingerprint"], plan["plan"]["fingerprint"]);
        (plan["fingerprint"].clone(), plan["workload"]["fingerprint"].clone())
    };
    let first = prints(&[]);
    assert_eq!(first, prints(&["--client-cores", "2"]));
    let other_seed = prints(&["--seed", "2"]);
    assert_ne!(first.0, other_seed.0);
    assert_eq!(first.1, other_seed.1);
}

#[test]
fn a_conversation_carries_the_real_answers() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine();
    let flags = [
        "--turns",
        "3",
        "--input-tokens",
        "10",
        "--output-tokens",
        "4",
        "--prefix-tokens",
        "20",
        "--requests",
        "30",
        "--concurrency",
        "5",
        "--client-cores",
        "2",
    ];
    let summary = run(&engine, folder.path(), &flags);
    // Each turn: what was said, four words of an answer to each, and ten new ones.
    let expected: Vec<u32> = (0..30).map(|id| 30 + (id % 3) * (4 + 10)).collect();
    assert_eq!(words_sent(&engine), expected);
    let turns = summary["turns"].as_array().unwrap();
    assert_eq!(turns.len(), 3);
    for (turn, input) in turns.iter().zip([30.0, 44.0, 58.0]) {
        assert_eq!((&turn["requests"], &turn["input_tokens_mean"]), (&json!(10), &json!(input)));
    }
}

#[test]
fn a_conversation_that_the_time_cuts_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let flags = [
        "--turns",
        "1000",
        "--turn-think-time",
        "5ms",
        "--output-tokens",
        "2",
        "--concurrency",
        "3",
        "--duration",
        "500ms",
    ];
    let summary = run(&engine(), folder.path(), &flags);
    let warned = summary["warnings"].as_array().unwrap();
    for key in ["errors", "conversations-broken", "cut-at-limit", "partial"] {
        assert!(warned.iter().all(|notice| notice["key"] != key), "{warned:?}");
    }
    assert_eq!(summary["run"]["partial"], false);
    let observed = observations(folder.path());
    assert!(observed.records.iter().all(|record| record.ending.outcome == Outcome::Ok));
    assert!(0 < summary["time_over"].as_u64().unwrap());
    assert_eq!(
        summary["scheduled"].as_u64().unwrap(),
        summary["attempted"].as_u64().unwrap() + observed.not_sent_count()
    );
}

#[test]
fn a_dataset_is_asked_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine();
    let mut lines = String::new();
    for words in 1..=20 {
        let prompt = vec!["word"; words].join(" ");
        let body = json!({ "temperature": 0.5 });
        writeln!(lines, "{}", json!({"prompt": prompt, "output_tokens": 3, "body": body})).unwrap();
    }
    std::fs::write(folder.path().join("data.jsonl"), lines).unwrap();
    let flags = ["--dataset", "data.jsonl", "--requests", "40", "--concurrency", "4"];
    let summary = run(&engine, folder.path(), &flags);
    let mut sent = words_sent(&engine);
    assert_ne!(sent[..20], (1..=20).collect::<Vec<u32>>(), "shuffled");
    sent[..20].sort_unstable();
    sent[20..].sort_unstable();
    let every_prompt: Vec<u32> = (1..=20).collect();
    assert_eq!((&sent[..20], &sent[20..]), (&every_prompt[..], &every_prompt[..]), "in two passes");
    assert_eq!(summary["workload"]["files"][0]["items"], 20);
    assert_eq!(summary["workload"]["audit"]["output"]["exact"], 40);
    let warned = summary["warnings"].as_array().unwrap();
    assert!(warned.iter().any(|notice| notice["key"] == "repeated-prompts"), "{warned:?}");
}

#[test]
fn a_trace_is_played_at_its_moments_and_shares_its_prefixes() {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = String::new();
    for number in 0..40 {
        let line = json!({
            "timestamp": number * 27 % 50 + number * 20,
            "input_length": 600 + number,
            "output_length": 1 + number % 3,
            "hash_ids": [number % 4, 100 + number],
        });
        writeln!(lines, "{line}").unwrap();
    }
    std::fs::write(folder.path().join("trace.jsonl"), lines).unwrap();
    let engine = engine();
    let summary = run(&engine, folder.path(), &["--trace", "trace.jsonl", "--speed", "2"]);
    assert_eq!(
        (&summary["attempted"], &summary["run"]["load"]["kind"]),
        (&json!(40), &json!("open"))
    );
    let observed = observations(folder.path());
    assert_eq!(asked(&observed), words_sent(&engine));
    // Moments of the file at twice the speed, from its first one on and in order.
    let mut moments: Vec<u64> = (0..40).map(|number| number * 27 % 50 + number * 20).collect();
    moments.sort_unstable();
    let began = observed.ending.began.unwrap();
    for (record, moment) in observed.records.iter().zip(moments) {
        let intended = record.intended.nanos_after(began);
        assert_eq!(
            intended,
            i64::try_from(moment * 1_000_000 / 2).unwrap(),
            "request {}",
            record.id
        );
    }
    let plan = planned(folder.path(), &["--trace", "trace.jsonl", "--keep", "0.5"]);
    let kept = plan["requests"].as_u64().unwrap();
    assert!((5..35).contains(&kept), "{kept}");
}

#[test]
fn a_saved_plan_is_played_again_and_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine();
    let lengths = ["--input-tokens", "uniform:5..50", "--output-tokens", "3"];
    let flags = [&lengths[..], &["--requests", "25", "--seed", "1"]].concat();
    let plan = planned(folder.path(), &[&flags[..], &["--save", "plan.jsonl"]].concat());
    let summary = run(&engine, folder.path(), &["--plan", "plan.jsonl"]);
    assert_eq!(summary["plan"]["fingerprint"], plan["plan"]["fingerprint"]);
    assert_eq!(summary["workload"]["fingerprint"], plan["workload"]["fingerprint"]);
    let saved = std::fs::read_to_string(folder.path().join("plan.jsonl")).unwrap();
    let prompts = saved.lines().filter_map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        Some(u32::try_from(line["prompt"].as_str()?.split(' ').count()).unwrap())
    });
    assert_eq!(words_sent(&engine), prompts.collect::<Vec<_>>());
    let printed = output(&[&["plan", "--save", "-"], &flags[..]].concat(), folder.path());
    assert_eq!(text(&printed.stdout), saved, "printed or saved, the same lines");
    let contradiction = refused(folder.path(), &["run", "--plan", "plan.jsonl", "--rate", "5"]);
    assert!(contradiction.contains("--plan sends a saved plan as it is"), "{contradiction}");
}

#[test]
fn a_mix_has_its_parts_by_weight() {
    let folder = tempfile::tempdir().unwrap();
    let file = "[[workload.mix]]\nname = \"short\"\nweight = 3\ninput_tokens = 10\noutput_tokens = 2\n\
                [[workload.mix]]\nname = \"long\"\ninput_tokens = 60\noutput_tokens = 4\n";
    std::fs::write(folder.path().join("mix.toml"), file).unwrap();
    let engine = engine();
    let summary = run(&engine, folder.path(), &["-e", "mix.toml", "--requests", "80"]);
    let parts = summary["parts"].as_array().unwrap();
    let names: Vec<&Value> = parts.iter().map(|part| &part["part"]).collect();
    assert_eq!(names, ["short", "long"]);
    let short = parts[0]["requests"].as_u64().unwrap();
    assert!((45..75).contains(&short), "{short} of 80");
    let sent = words_sent(&engine);
    assert_eq!(sent.iter().filter(|words| **words == 10).count() as u64, short);
    assert_eq!(sent.iter().filter(|words| **words == 60).count() as u64, 80 - short);
}

#[test]
fn promises_are_judged_and_a_missed_one_is_an_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine();
    let url = engine.url();
    let judged = |slo: &str| {
        let arguments =
            ["run", &url, "--requests", "40", "--output-tokens", "3", "--json", "-q", "--slo", slo];
        let ran = inferometer().args(arguments).current_dir(folder.path()).output().unwrap();
        let summary: Value = serde_json::from_slice(&ran.stdout).unwrap();
        // An invalid run, as on a very busy machine, says so first.
        let code = ran.status.code();
        let code = if summary["verdict"] == "invalid" && code == Some(4) { None } else { code };
        (code, summary)
    };
    let (code, summary) = judged("e2e<60s");
    assert!(matches!(code, None | Some(0)), "{code:?}");
    assert_eq!(summary["metrics"]["attainment"]["value"], 1.0, "{}", summary["request_slos"]);
    let (code, summary) = judged("output_throughput>100000000");
    assert_eq!(summary["slos"][0]["verdict"], "missed");
    assert!(matches!(code, None | Some(99)), "{code:?}");
    let (code, summary) = judged("ttft.p99<60s");
    assert_eq!(summary["slos"][0]["verdict"], "undecided");
    assert!(matches!(code, None | Some(0)), "{code:?}");
    let unknown = refused(folder.path(), &["run", "--slo", "tttf<5ms"]);
    assert!(unknown.contains("ttft"), "{unknown}");
}

#[test]
fn prompts_are_fresh_unless_a_seed_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine();
    let url = engine.url();
    let seeds = |arguments: &[&str]| {
        let arguments = [&["run", &url, "--json", "--requests", "2"], arguments].concat();
        let ran = output(&arguments, folder.path());
        let summary: Value = serde_json::from_slice(&ran.stdout).unwrap();
        (summary["run"]["seed"].as_u64().unwrap(), text(&ran.stderr))
    };
    let ((first, said), (second, _)) = (seeds(&[]), seeds(&[]));
    assert_ne!(first, second, "a server may know the prompts of the first run");
    assert!(said.contains(&format!("seed {first} was drawn")), "{said}");
    let (seed, said) = seeds(&["--seed", "1"]);
    assert_eq!(seed, 1);
    assert!(!said.contains("was drawn"), "{said}");
}

#[test]
fn all_servers_of_a_study_share_the_seed_that_was_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (engine(), engine());
    let targets = [format!("a={}", one.url()), format!("b={}", other.url())];
    let [one, other] = &targets;
    let sweep = ["sweep", "--target", one, "--target", other, "--concurrencies", "1", "--json"];
    let ran = output(&[&sweep[..], &["--requests", "2"]].concat(), folder.path());
    let set: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let seed = set["seed"].as_u64().unwrap();
    assert!(text(&ran.stderr).contains(&format!("--seed {seed} repeats it")));
    let points = set["points"].as_array().unwrap();
    assert_eq!(points.len(), 2, "{set}");
    assert_eq!(points[0]["seed"], points[1]["seed"], "both servers get the same prompts");
    let stored = std::fs::read_dir(folder.path().join("runs")).unwrap().next().unwrap().unwrap();
    let stored = std::fs::read_to_string(stored.path().join("set.json")).unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(stored["campaign"]["seed"], seed, "--resume keeps it");
}

#[test]
fn a_check_says_what_the_endpoint_supports() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine();
    let ran = output(&["check", &engine.url(), "--json"], folder.path());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(document["problems"], 0, "{document}");
    let state = |subject: &str| {
        let findings = document["findings"].as_array().unwrap();
        let found = findings.iter().find(|finding| finding["subject"] == subject);
        found.map(|finding| finding["state"].as_str().unwrap().to_owned())
    };
    for subject in ["streaming", "token counts", "ignore_eos", "prompt length", "other APIs"] {
        assert_eq!(state(subject).as_deref(), Some("good"), "{subject}: {document}");
    }
    let nobody = output(&["check", "http://127.0.0.1:9"], folder.path());
    assert_eq!(nobody.status.code(), Some(3));
}

#[test]
fn files_that_cannot_be_used_are_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("bad.jsonl", "{\"prompt\":\"a\"}\n{\"prompt\":\n");
    write("empty.jsonl", "");
    write("trace.csv", "TIMESTAMP,ContextTokens\n2023-11-16 18:17:03.9799600,4\n");
    for (flags, words) in [
        (["--dataset", "bad.jsonl"], "line 2"),
        (["--dataset", "empty.jsonl"], "empty"),
        (["--dataset", "missing.jsonl"], "missing.jsonl"),
        (["--trace", "trace.csv"], "trace.csv"),
        (["--tokenizer", "bad.jsonl"], "bad.jsonl"),
        (["--tokenizer", "./nowhere"], "nowhere"),
        (["--plan", "bad.jsonl"], "line 1"),
    ] {
        let said = refused(folder.path(), &[&["plan"], &flags[..]].concat());
        assert!(said.contains(words), "{flags:?}: {said}");
    }
}

#[test]
fn the_server_counts_where_no_tokenizer_is_here() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&SERVING);
    let words = |count| vec!["word"; count].join(" ");
    let lines = [3, 8, 21].map(|count| json!({ "prompt": words(count) }).to_string());
    std::fs::write(folder.path().join("data.jsonl"), lines.join("\n")).unwrap();
    let url = engine.url();
    let flags = ["--api", "completions", "--dataset", "data.jsonl", "--keep-order"];
    let more = ["--requests", "3", "--output-tokens", "2", "--tokenizer", &url];
    let summary = run(&engine, folder.path(), &[&flags[..], &more].concat());
    assert_eq!(asked(&observations(folder.path())), words_sent(&engine));
    assert_eq!(summary["workload"]["audit"]["input"]["exact"], 3, "{summary}");
    assert_eq!(summary["workload"]["tokenizer"]["name"], "/tokenize of the server");
    let correction = &summary["workload"]["input_length"]["corrected"];
    assert_eq!(correction["tokens_per_word"], 1.0, "{summary}");
    let nowhere = refused(folder.path(), &["plan", "--tokenizer", "http://127.0.0.1:1"]);
    assert!(nowhere.contains("/tokenize failed"), "{nowhere}");
}

/// An engine that knows every API, and counts tokens.
const SERVING: [&str; 4] = ["--mode", "serve", "--profile", "h100-llama-3.1-8b"];

#[test]
fn a_batch_is_one_request_of_many_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&SERVING);
    let url = engine.url();
    let prompt = |words| json!({ "prompt": vec!["word"; words].join(" ") }).to_string();
    let lines = [3, 8, 21, 5, 9, 13].map(prompt).join("\n");
    std::fs::write(folder.path().join("data.jsonl"), lines).unwrap();
    let flags = ["--api", "embeddings", "--batch", "2", "--dataset", "data.jsonl", "--keep-order"];
    let more = ["--tokenizer", &url, "--requests", "3"];
    let summary = run(&engine, folder.path(), &[&flags[..], &more].concat());
    assert_eq!(asked(&observations(folder.path())), [11, 26, 22]);
    assert_eq!(summary["workload"]["audit"]["input"]["exact"], 3, "{summary}");

    let flags = ["plan", "--api", "rerank", "--batch", "3", "--input-tokens", "4"];
    let ran = output(&[&flags[..], &["--requests", "2", "--save", "-"]].concat(), folder.path());
    let line = text(&ran.stdout).lines().nth(1).unwrap().to_owned();
    let request: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(request["messages"].as_array().unwrap().len(), 4, "a query and three documents");
    assert_eq!(request["input_tokens"], 16);
    let chat = refused(folder.path(), &["plan", "--api", "chat", "--batch", "3"]);
    assert!(chat.contains("--batch") && chat.contains("embeddings"), "{chat}");
}

#[test]
fn pictures_of_several_sizes_and_recordings_arrive_as_they_were_planned() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine();
    let flags = ["--images", "2", "--image-size", "8x16,32x4=2", "--audio", "1"];
    let more = ["--audio-seconds", "2", "--requests", "6", "--output-tokens", "2"];
    run(&engine, folder.path(), &[&flags[..], &more].concat());
    let truth = engine.truth();
    let of_run = truth.requests.iter().filter(|request| {
        request.request_id.as_deref().is_some_and(|id| id.starts_with("inferometer-2"))
    });
    let mut sizes = std::collections::BTreeSet::new();
    let mut requests = 0;
    for request in of_run {
        requests += 1;
        let [one, other, recording] = request.media.as_slice() else { panic!("{request:?}") };
        sizes.extend([one, other].map(|picture| serde_json::to_string(picture).unwrap()));
        let recording = serde_json::to_value(recording).unwrap();
        assert_eq!(recording, json!({ "recording": { "milliseconds": 2000 } }));
    }
    assert_eq!(requests, 6);
    let known = [(8, 16), (32, 4)].map(|(width, height)| {
        serde_json::to_string(&json!({ "picture": { "width": width, "height": height } })).unwrap()
    });
    assert!(sizes.iter().all(|size| {
        known.iter().any(|known| {
            serde_json::from_str::<Value>(known).unwrap()
                == serde_json::from_str::<Value>(size).unwrap()
        })
    }));
    assert_eq!(sizes.len(), 2, "{sizes:?}");
    let refusal = refused(folder.path(), &["plan", "--api", "completions", "--audio", "1"]);
    assert!(refusal.contains("--audio") && refusal.contains("chat"), "{refusal}");
}
