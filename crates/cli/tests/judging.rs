//! `audit`, `judge`, `bundle` and the conformance corpus, as a user meets them.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::fs;
use std::path::Path;

use inferometer_engine::corpus::{Case, corpus};
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use serde_json::Value;
use support::{Engine, latest_run, observations, output, text, words};

fn example(name: &str) -> String {
    format!("{}/../../examples/published/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The keys of the findings of one source, with how grave they are.
fn audited(folder: &Path, file: &str) -> (Option<i32>, Vec<(String, String)>) {
    let ran = output(&["audit", file, "--json"], folder);
    let json: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let findings = json["sources"][0]["findings"].as_array().unwrap().iter();
    let findings = findings.map(|it| (word(&it["key"]), word(&it["severity"]))).collect();
    (ran.status.code(), findings)
}

fn found(findings: &[(String, String)], key: &str) -> Option<String> {
    findings.iter().find(|(known, _)| known == key).map(|(_, severity)| severity.clone())
}

#[test]
fn published_results_show_what_is_wrong_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let (code, suite) = audited(folder.path(), &example("mi100x4-devstral-24b.toml"));
    assert_eq!((code, found(&suite, "warm-cache").as_deref()), (Some(4), Some("invalid")));
    let (code, sweep) = audited(folder.path(), &example("mi300x-mistral-small-24b-v0.jsonl"));
    assert_eq!((code, found(&sweep, "cut").as_deref()), (Some(4), Some("invalid")));
    assert_eq!(found(&sweep, "rate-not-reached").as_deref(), Some("degraded"));

    // The forms of a matrix page and of a page in plain text, with figures of that kind.
    let matrix = "#### 4.1 Model-8B @10req at a time for 100 total requests\n<table><thead><tr>\
        <th>Preset</th><th>Gen TPS</th><th>Avg Latency (s)</th><th>Request Generation Level TPS</th>\
        <th>Errors</th></tr></thead><tbody><tr><td>one</td><td>367.05</td><td>19.59</td>\
        <td>39.50</td><td>65</td></tr><tr><td>two</td><td>492.47</td><td>9.52</td><td>52.81</td>\
        <td>0</td></tr></tbody></table>\n* Uses a fixed prompt\n";
    fs::write(folder.path().join("matrix.md"), matrix).unwrap();
    let (code, cells) = audited(folder.path(), "matrix.md");
    assert_eq!((code, found(&cells, "lost-requests").as_deref()), (Some(4), Some("invalid")));
    assert_eq!(found(&cells, "same-prompt").as_deref(), Some("degraded"));
    let method = "Concurrency Requests/sec Tokens/sec p50 (ms) p95 (ms) p99 (ms) Success Rate\n\
        100 1,006 1,00,635 40.66 109.12 134.01 100.0%\n2000 885 88,541 11.60 20.52 24.52 100.0%\n\n\
        The client has sub-millisecond overhead.\n";
    fs::write(folder.path().join("method.txt"), method).unwrap();
    let (code, client) = audited(folder.path(), "method.txt");
    assert_eq!((code, found(&client, "claim").as_deref()), (Some(4), Some("invalid")));
    assert_eq!(found(&client, "in-flight").as_deref(), Some("degraded"));
}

#[test]
fn ten_clean_runs_of_our_own_raise_no_alarm() {
    let folder = tempfile::tempdir().unwrap();
    let loads = [
        "--concurrency 1 --requests 700",
        "--concurrency 4 --requests 700",
        "--concurrency 16 --requests 700",
        "--concurrency 64 --requests 1000",
        "--rate 2 --requests 700",
        "--rate 5 --requests 700 --arrivals constant",
        "--concurrency 8 --requests 700 --input-tokens 2048 --output-tokens 64",
        "--concurrency 8 --requests 700 --input-tokens 128±50% --output-tokens 256±50%",
        "--concurrency 2 --requests 700 --output-tokens 16",
        "--concurrency 32 --requests 700 --hardware mi300x --engine-model llama-3.1-8b",
    ];
    for load in loads {
        let command = format!("simulate {load} --quiet");
        let ran = output(&command.split_whitespace().collect::<Vec<_>>(), folder.path());
        assert!(matches!(ran.status.code(), Some(0 | 4)), "{load}: {}", text(&ran.stderr));
        let (code, findings) = audited(folder.path(), "latest");
        let alarms: Vec<_> = findings.iter().filter(|(_, severity)| severity != "note").collect();
        assert!(code == Some(0) && alarms.is_empty(), "{load}: {alarms:?}");
    }
}

#[test]
fn an_audit_of_nothing_or_of_hostile_names_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let refused = output(&["audit", "no-such-thing"], folder.path());
    assert_eq!(refused.status.code(), Some(2));
    let toml = "[[row]]\nname = \"<script>alert(1)</script>\\u001b[2J | x\"\nconcurrency = 4\n\
                requests = 10\nfailed = 8\noutput_throughput = 5.0\n";
    fs::write(folder.path().join("hostile.toml"), toml).unwrap();
    for format in ["md", "html", "page"] {
        let ran = output(&["audit", "hostile.toml", "--format", format], folder.path());
        let page = text(&ran.stdout);
        // A tag is only text in a terminal, where control characters would do harm.
        assert!(format == "page" || !page.contains("<script>alert"), "{format}: {page}");
        assert!(!page.contains('\u{1b}'), "{format}: {page}");
        assert!(page.contains("8 of 10 requests failed"), "{format}: {page}");
    }
}

/// Plays every case of the corpus to our own client, in one run.
#[test]
fn our_client_reads_every_case_of_the_corpus_as_it_must() {
    let folder = tempfile::tempdir().unwrap();
    // What asks for the model before the run gets answers that any client can read.
    let ahead = 4;
    let plain = std::iter::repeat_n("plain", ahead);
    let names: Vec<&str> = plain.chain(corpus().iter().map(|case| case.name)).collect();
    let flags: Vec<String> = names.iter().map(|name| format!("--case={name}")).collect();
    let mut arguments = vec!["--mode", "corpus"];
    arguments.extend(flags.iter().map(String::as_str));
    let engine = Engine::start(&arguments);
    let requests = names.len().to_string();
    let ran = output(
        &[
            "run",
            &engine.url(),
            "--api",
            "chat",
            "--concurrency",
            "1",
            "--requests",
            &requests,
            "--output-tokens",
            "4",
            "--idle-timeout",
            "500ms",
            "--quiet",
        ],
        folder.path(),
    );
    // A third of the cases fail, which makes a run degraded; from half of them on it is invalid.
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let records: Vec<_> =
        observations(folder.path()).records.iter().map(std::borrow::Cow::into_owned).collect();
    let truth = engine.truth();
    let sent = &truth.requests[truth.requests.len() - records.len()..];
    let mut played = 0;
    for (record, truth) in records.iter().zip(sent) {
        let name = truth.case.as_deref().unwrap();
        let Case { expect, .. } = corpus().iter().find(|case| case.name == name).unwrap();
        assert_eq!(record.ending.outcome.key(), expect.outcome, "{name}: {:?}", record.ending);
        if let (true, Some(tokens)) = (expect.is_ok(), expect.output_tokens) {
            let usage = record.usage.and_then(|usage| usage.completion_tokens);
            assert_eq!(usage, Some(u64::from(tokens)), "{name}");
        }
        played += usize::from(!expect.is_ok());
    }
    let failing = corpus().iter().filter(|case| !case.expect.is_ok()).count();
    assert_eq!(played, failing, "every failing case was played");
}

#[test]
fn a_client_that_reports_what_it_did_not_measure_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let lie =
        r#"echo '{"completed": 8, "failed": 0, "mean_ttft_ms": 5, "request_throughput": 99}'"#;
    let judge = |arguments: &[&str]| {
        let ran =
            output(&[&["judge", "--only", "crlf", "--quiet"], arguments].concat(), folder.path());
        (ran.status.code(), words(&ran.stdout))
    };
    let (code, page) = judge(&["--", "sh", "-c", lie]);
    assert_eq!(code, Some(4), "{page}");
    assert!(page.contains("8 reported as successful, the server answered 0"), "{page}");
    assert!(page.contains("0 of 8 requests reached the server"), "{page}");
    let (code, page) = judge(&["--time-limit", "1s", "--", "sh", "-c", "sleep 60"]);
    assert!(code == Some(4) && page.contains("did not end within"), "{page}");
    let (code, page) = judge(&["--preset", "inferometer", "--badge", "badge.svg"]);
    assert_eq!(code, Some(0), "{page}");
    assert!(fs::read_to_string(folder.path().join("badge.svg")).unwrap().starts_with("<svg"));
    let refused = output(&["judge", "--preset", "nothing"], folder.path());
    assert!(refused.status.code() == Some(2) && text(&refused.stderr).contains("guidellm"));
}

#[test]
fn a_bundle_is_verified_elsewhere_and_a_flipped_byte_is_found() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let ran = output(&["run", "--requests", "5", "--concurrency", "2", "--quiet"], here.path());
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    fs::write(here.path().join("key.der"), key.as_ref()).unwrap();
    let bundle = there.path().join("run.inferometer");
    let to = bundle.display().to_string();
    let ran = output(&["bundle", "latest", "--key", "key.der", "--to", &to], here.path());
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let verify = || {
        let ran = output(&["verify", "run.inferometer"], there.path());
        (ran.status.code(), words(&ran.stdout) + &words(&ran.stderr))
    };
    let (code, said) = verify();
    assert!(code == Some(0) && said.contains("signed by ed25519 key"), "{said}");
    let bytes = fs::read(&bundle).unwrap();
    for at in (0..bytes.len()).step_by(bytes.len() / 12) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 4;
        fs::write(&bundle, &flipped).unwrap();
        let (code, said) = verify();
        assert!(matches!(code, Some(2 | 4)), "byte {at}: {said}");
    }
}

#[test]
fn a_redacted_bundle_holds_no_address_and_is_verified_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "1ms", "--gap", "1ms"]);
    let url = engine.url();
    let ran = output(
        &["run", &url, "--requests", "5", "--quiet", "--prompt", "my secret words"],
        folder.path(),
    );
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let ran = output(&["bundle", "latest", "--redact", "--to", "out"], folder.path());
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let bytes = fs::read(folder.path().join("out")).unwrap();
    let holds = |needle: &str| bytes.windows(needle.len()).any(|it| it == needle.as_bytes());
    assert!(
        !holds(&engine.address.to_string()) && !holds("my secret words") && !holds("127.0.0.1")
    );
    let before = latest_run(folder.path()).read_summary().unwrap().unwrap();
    assert!(String::from_utf8_lossy(&before).contains("ttft"), "the run itself is as it was");
    fs::rename(folder.path().join("runs"), folder.path().join("away")).unwrap();
    let ran = output(&["verify", "out"], folder.path());
    let said = words(&ran.stdout) + &words(&ran.stderr);
    assert!(ran.status.code() == Some(0) && said.contains("redacted"), "{said}");
}

#[test]
fn an_audited_run_draws_its_seed_and_shows_which_rules_it_kept() {
    let folder = tempfile::tempdir().unwrap();
    let refused = output(&["run", "--audit", "--seed", "7"], folder.path());
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    let ran = output(
        &["run", "--audit-nonce", "auditor", "--requests", "5", "--quiet", "--full"],
        folder.path(),
    );
    let page = words(&ran.stdout);
    assert!(page.contains("Compliance") && page.contains("of the nonce auditor"), "{page}");
    assert!(page.contains("broken") && page.contains("kept"), "{page}");
}
