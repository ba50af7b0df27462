//! `audit`, `judge`, `bundle` and the conformance corpus, as a user meets them.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]
#![expect(clippy::print_stdout, reason = "a test says why it is skipped")]

use crate::support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Output, Stdio};

use inferometer_analysis::compliance::{AUDIT_COMMITMENT, AUDIT_DRAWN, commitment, seed_of_nonces};
use inferometer_engine::corpus::{Case, corpus};
use inferometer_model::record::Carried;
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use serde_json::Value;
use support::deployments::{by_shell, engine_at_port};
use support::{Engine, inferometer, latest_run, observations, output, text, words};

fn example(name: &str) -> String {
    format!("{}/../../examples/published/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn audit(folder: &Path, file: &str) -> (Option<i32>, Value) {
    let ran = output(&["audit", file, "--json"], folder);
    (ran.status.code(), serde_json::from_slice(&ran.stdout).unwrap())
}

/// The keys of the findings of one source, with how grave they are.
fn audited(folder: &Path, file: &str) -> (Option<i32>, Vec<(String, String)>) {
    let (code, json) = audit(folder, file);
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let findings = json["sources"][0]["findings"].as_array().unwrap().iter();
    let findings = findings.map(|it| (word(&it["key"]), word(&it["severity"]))).collect();
    (code, findings)
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

/// The published pages, where they are at hand: they are not ours to copy.
#[test]
fn the_published_pages_show_what_is_wrong_with_them() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference");
    if !pages.is_dir() {
        println!("skipped: the published pages are not at hand");
        return;
    }
    // Page, rule, severity, row or line, and what is said of it.
    let expected = [
        (
            "suite-report.md",
            "warm-cache",
            "invalid",
            "(c=2), c=2",
            "a median of 90.37 ms mixes cold",
        ),
        ("suite-report.md", "warm-cache", "invalid", "(c=4), c=4", "4.70 times the 1,892"),
        ("suite-report.md", "warm-cache", "invalid", "(c=32), c=32", "22.35 times the 1,892"),
        ("rate-sweep-page.md", "cut", "invalid", "1, unlimited rate", "1,015 of 2,000 requests"),
        ("rate-sweep-page.md", "cut", "invalid", "2, unlimited rate", "1,015 of 2,000 requests"),
        ("matrix-report.md", "lost-requests", "invalid", "4.2.3 Llama-8B", "63 of 100 requests"),
        ("matrix-report.md", "lost-requests", "invalid", "4.2.3 Llama-8B", "64 of 100 requests"),
        ("matrix-report.md", "lost-requests", "invalid", "4.3.3 Llama-3.1", "65 of 100 requests"),
        ("matrix-report.md", "lost-requests", "invalid", "4.4.3 Llama-3.1", "80 of 100 requests"),
        ("methodology.txt", "claim", "invalid", "line 37", "typical time is 40.66 ms at c=100"),
        ("serving-results.txt", "no-spread", "note", "c=512", "0.3 % more than those of"),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (page, rule, severity, about, text) in expected {
        let file = pages.join(page).display().to_string();
        let (code, json) = audit(folder.path(), &file);
        let findings = json["sources"][0]["findings"].as_array().unwrap();
        let finding = findings.iter().find(|it| it["key"] == rule).unwrap();
        let evidence = finding["evidence"].as_array().unwrap();
        let word = |it: &Value, key: &str| it[key].as_str().unwrap().to_owned();
        let is_expected =
            |it: &&Value| word(it, "about").contains(about) && word(it, "text").contains(text);
        assert!(evidence.iter().any(|it| is_expected(&it)), "{page}, {about}: {finding:#}");
        assert_eq!(
            (finding["severity"].as_str(), code),
            match severity {
                "note" => (Some("note"), Some(0)),
                grave => (Some(grave), Some(4)),
            },
            "{page}"
        );
    }
}

/// Figures of ten kinds, none of which is wrong: simulated and live, runs and sets, and other formats.
#[test]
fn ten_clean_results_raise_no_alarm() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "4ms", "--gap", "1ms"]);
    let live = |rest: &str| format!("{} --output-tokens 8 {rest}", engine.url());
    let results = [
        "simulate --concurrency 1 --requests 700".to_owned(),
        "simulate --concurrency 64 --requests 1000".to_owned(),
        "simulate --rate 5 --requests 700 --arrivals constant".to_owned(),
        "simulate --concurrency 8 --requests 700 --input-tokens 128±50% --output-tokens 256±50%"
            .to_owned(),
        "simulate --concurrency 32 --requests 700 --hardware mi300x --engine-model llama-3.1-8b"
            .to_owned(),
        format!("run {}", live("--concurrency 4 --requests 200")),
        format!("run {}", live("--concurrency 1 --requests 150 --api completions")),
        format!("run {}", live("--concurrency 8 --requests 200 --no-stream")),
        format!("sweep {}", live("--concurrencies 2,4 --requests 150")),
    ];
    let check = |about: &str, file: &str| {
        let (code, findings) = audited(folder.path(), file);
        let alarms: Vec<_> = findings.iter().filter(|(_, severity)| severity != "note").collect();
        assert!(code == Some(0) && alarms.is_empty(), "{about}: {alarms:?}");
    };
    for command in results {
        let words = format!("{command} --quiet");
        let ran = output(&words.split_whitespace().collect::<Vec<_>>(), folder.path());
        // A busy machine may make a run degraded or invalid; its figures are true all the same.
        assert!(matches!(ran.status.code(), Some(0 | 4)), "{command}: {}", text(&ran.stderr));
        check(&command, "latest");
    }
    let ran = output(&["export", "latest/0", "--format", "vllm", "--to", "v.json"], folder.path());
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    check("an export for vLLM", "v.json");
}

/// Results of other tools that measured well, with too few requests for a percentile.
#[test]
fn imports_of_short_runs_raise_no_other_alarm() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["aiperf-summary.json", "guidellm-concurrent.json", "guidellm-poisson.json"] {
        let file = format!("{}/../interchange/tests/foreign/{name}", env!("CARGO_MANIFEST_DIR"));
        let (code, findings) = audited(folder.path(), &file);
        let alarms = findings.iter().filter(|(_, severity)| severity != "note");
        let keys: Vec<_> = alarms.map(|(key, _)| key.as_str()).collect();
        assert_eq!((code, keys), (Some(0), vec!["few-samples"]), "{name}");
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
    // A third of the cases fail, which makes a run degraded; only a client that was starved of processor
    // time may make it invalid.
    let summary = latest_run(folder.path()).read_summary().unwrap().unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    let is_grave = |warning: &&Value| warning["severity"] == "invalid";
    let grave: Vec<&Value> =
        summary["warnings"].as_array().unwrap().iter().filter(is_grave).collect();
    let client = ["send-lag", "client-lag", "arrival-width", "client-loop", "client-capacity"];
    let is_starved = |it: &&Value| client.contains(&it["check"].as_str().unwrap_or_default());
    assert!(grave.iter().all(is_starved), "{grave:?}");
    let code = if grave.is_empty() { 0 } else { 4 };
    assert_eq!(ran.status.code(), Some(code), "{}", text(&ran.stderr));
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
            let reason = record.finishes.last().map(|finish| finish.reason.name());
            assert_eq!(reason, expect.finish_reason.as_deref(), "{name}");
        }
        if let Some(text) = &expect.text {
            let content = record.events.iter().filter(|it| it.carried.contains(Carried::CONTENT));
            let bytes: u32 = content.map(|event| event.text_bytes).sum();
            assert_eq!(bytes as usize, text.len(), "{name}");
        }
        if let Some(events) = expect.events {
            assert_eq!(record.events.len(), events as usize, "{name}: {:?}", record.events);
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
    // By the definitions of what `bench serve` prints, the role would be the first token.
    let ours = ["judge", "--only", "role-first", "--quiet", "--json", "--preset", "inferometer"];
    let judged: Value = serde_json::from_slice(&output(&ours, folder.path()).stdout).unwrap();
    let load = &judged["loads"][0];
    assert!(load["grade"] == "A" || load["is_untimed"] == true, "{load}");
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
    assert!(text(&ran.stderr).contains("sha256 of its summary.json"), "{}", text(&ran.stderr));
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
        assert_eq!(code, Some(4), "byte {at}: {said}");
    }
}

/// Every place where a user may type something private has a word that begins with `secret-`.
#[test]
fn a_redacted_bundle_holds_no_private_word_and_is_verified_all_the_same() {
    let engine = Engine::start(&["--ttft", "1ms", "--gap", "1ms"]);
    let (url, elsewhere) = (engine.url(), format!("http://localhost:{}", engine.address.port()));
    let metrics = format!("replica={elsewhere}/secret-metrics");
    let gpus = format!("dcgm={elsewhere}/secret-gpus");
    let words = [
        "--requests",
        "8",
        "--quiet",
        "--output-tokens",
        "4",
        "--prompt",
        "secret-prompt words",
        "--tokenizer",
        "secret-tokenizer",
        "--metadata",
        "secret-key=secret-value",
        "--header",
        "X-Secret-Header: secret-header",
        "--stop",
        "secret-stop",
        "--metrics-url",
        &metrics,
        "--gpu-telemetry",
        &gpus,
        "--server-info",
        "secret-info.json",
    ];
    let serve = by_shell(&format!("WORD=secret-serve; exec {}", engine_at_port()));
    for (about, command, name) in [
        ("a run", [&["run", &url, "--concurrency", "2"][..], &words].concat(), "latest"),
        ("a set", [&["sweep", &url, "--concurrencies", "1,2"][..], &words].concat(), "latest"),
        ("a point", [&["sweep", &url, "--concurrencies", "1,2"][..], &words].concat(), "latest/1"),
        (
            "a dataset",
            vec!["run", &url, "--requests", "3", "--dataset", "secret-data.txt", "--quiet"],
            "latest",
        ),
        ("a deployment", vec!["run", "--requests", "6", "--quiet", "--serve", &serve], "latest"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        write_tokenizer(&at.join("secret-tokenizer"));
        fs::write(at.join("secret-data.txt"), "secret-line one\nsecret-line two\n").unwrap();
        fs::write(at.join("secret-info.json"), output(&["system", "--json"], at).stdout).unwrap();
        let ran = output(&command, at);
        assert!(matches!(ran.status.code(), Some(0 | 4)), "{about}: {}", text(&ran.stderr));
        let ran = output(&["bundle", name, "--redact", "--to", "out"], at);
        assert_eq!(ran.status.code(), Some(0), "{about}: {}", text(&ran.stderr));
        let bytes = fs::read(at.join("out")).unwrap();
        let own = [at.file_name().unwrap().to_str().unwrap(), &engine.address.to_string()];
        for word in ["secret", "Secret", "localhost", "127.0.0.1"].iter().chain(&own) {
            let place = bytes.windows(word.len()).position(|it| it == word.as_bytes());
            let around = place.map(|place| {
                text_of(&bytes[place.saturating_sub(200)..bytes.len().min(place + 200)])
            });
            assert_eq!(around, None, "{about}: {word}");
        }
        fs::rename(at.join("runs"), at.join("away")).unwrap();
        let ran = output(&["verify", "out"], at);
        let said = words_of(&ran);
        assert!(ran.status.code() == Some(0) && said.contains("redacted"), "{about}: {said}");
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn words_of(ran: &Output) -> String {
    words(&ran.stdout) + &words(&ran.stderr)
}

/// A tokenizer of a thousand words and of those that tests type.
fn write_tokenizer(folder: &Path) {
    let words = ["<unk>", "secret-prompt", "secret-line", "words", "one", "two"];
    let words = words.map(str::to_owned).into_iter().chain((0..1000).map(|it| format!("w{it:03}")));
    let vocabulary: serde_json::Map<String, Value> =
        words.zip(0..).map(|(word, id)| (word, Value::from(id))).collect();
    let tokenizer = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
        "added_tokens": [{
            "id": 0, "content": "<unk>", "special": true, "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": false,
        }],
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
    });
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
}

/// The bundle in the repository, which was made elsewhere. Where summaries change on purpose,
/// `INFEROMETER_REWRITE_DOCS=1` makes it anew.
#[test]
fn the_bundle_of_the_repository_verifies_and_a_flipped_byte_of_it_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let committed = example("../embedded-run.inferometer");
    if std::env::var_os("INFEROMETER_REWRITE_DOCS").is_some() {
        let run =
            ["run", "--requests", "6", "--concurrency", "2", "--output-tokens", "8", "--quiet"];
        let ran = output(&run, folder.path());
        assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
        let made = output(&["bundle", "latest", "--redact", "--to", &committed], folder.path());
        assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    }
    let bytes = fs::read(&committed).unwrap();
    let verify = |bytes: &[u8]| {
        fs::write(folder.path().join("it.inferometer"), bytes).unwrap();
        let ran = output(&["verify", "it.inferometer"], folder.path());
        (ran.status.code(), words_of(&ran))
    };
    let (code, said) = verify(&bytes);
    assert!(code == Some(0) && said.contains("6 records add up"), "{said}");
    for at in [0, 30, 200, bytes.len() / 2, bytes.len() - 1] {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        let (code, said) = verify(&flipped);
        assert_eq!(code, Some(4), "byte {at}: {said}");
    }
}

#[test]
fn an_audited_run_draws_its_seed_and_shows_which_rules_it_kept() {
    let folder = tempfile::tempdir().unwrap();
    let refused = output(&["run", "--audit", "--seed", "7"], folder.path());
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    let mut asks = inferometer();
    asks.args(["run", "--audit-nonce", "-", "--requests", "5", "--quiet", "--full"]);
    asks.current_dir(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut asks = asks.stderr(Stdio::piped()).spawn().unwrap();
    // The commitment is there before the auditor has said a word, and so before anything is measured.
    let mut heard = BufReader::new(asks.stderr.take().unwrap());
    let mut line = String::new();
    heard.read_line(&mut line).unwrap();
    let committed = line.trim().strip_prefix("commitment: sha256 ").unwrap().to_owned();
    assert!(!folder.path().join("runs").exists());
    asks.stdin.take().unwrap().write_all(b"the auditor\n").unwrap();
    let page = words(&asks.wait_with_output().unwrap().stdout);
    assert!(page.contains("Compliance") && page.contains("and the auditor"), "{page}");
    assert!(page.contains("broken") && page.contains("kept"), "{page}");
    let spec = observations(folder.path()).manifest.spec;
    let drawn = &spec.metadata[AUDIT_DRAWN];
    assert_eq!(
        (&spec.metadata[AUDIT_COMMITMENT], commitment(drawn)),
        (&committed, committed.clone())
    );
    assert_eq!(spec.seed, seed_of_nonces(drawn, "the auditor"));
}
