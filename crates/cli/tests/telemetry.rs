//! The server's own metrics beside a run: heard, silent, or left alone.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::net::SocketAddr;
use std::sync::Mutex;

use inferometer_model::Telemetry;
use serde_json::{Value, json};

use support::{Engine, http, observations, output, server_saying, text};

/// Answers each request with two tokens for a prompt of five, and has metrics that say so.
fn counting_server(metrics_path: &'static str) -> SocketAddr {
    let answers = Mutex::new(0_u64);
    server_saying(move |path| {
        let mut answers = answers.lock().unwrap();
        if path == metrics_path {
            let (prompt, generated) = (*answers * 5, *answers * 2);
            let text = format!(
                "vllm:num_requests_running 1\nvllm:kv_cache_usage_perc 0.5\n\
                 vllm:prompt_tokens_total{{engine=\"0\"}} {prompt}\n\
                 vllm:generation_tokens_total{{engine=\"0\"}} {generated}\n"
            );
            return http("200 OK", "text/plain; version=0.0.4", &text);
        }
        if path != "/v1/chat/completions" {
            return http("404 Not Found", "application/json", "{}");
        }
        *answers += 1;
        let body = json!({
            "id": "a", "object": "chat.completion", "created": 0, "model": "m",
            "choices": [{
                "index": 0,
                "message": { "role": "assistant", "content": "two words" },
                "finish_reason": "length",
            }],
            "usage": { "prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7 },
        });
        http("200 OK", "application/json", &body.to_string())
    })
}

/// The document of a short run, and what it stored of the server.
fn measured(address: SocketAddr, arguments: &[&str]) -> (Value, Telemetry) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://{address}");
    let load = ["--no-stream", "--prompt", "Hi.", "--output-tokens", "2", "--requests", "40"];
    let asked = ["run", &url, "--json", "-q", "--model", "m"];
    let ran = output(&[&asked[..], &load, arguments].concat(), folder.path());
    let document = serde_json::from_slice(&ran.stdout);
    (
        document.unwrap_or_else(|_| panic!("{}", text(&ran.stderr))),
        observations(folder.path()).telemetry,
    )
}

#[test]
fn the_scrapes_enclose_the_run_so_that_both_count_the_same() {
    let (document, telemetry) =
        measured(counting_server("/metrics"), &["--telemetry-every", "100ms"]);
    let server = &document["server"];
    assert_eq!(server["dialect"], "vllm_v1");
    assert_eq!(server["generation_tokens"]["total"], 80.0, "{server:#}");
    assert_eq!(server["tokens_apart"], json!({ "prompt": 0.0, "generation": 0.0 }));
    assert_eq!(server["swapped"], Value::Null);
    assert!(2 <= telemetry.recording().unwrap().samples.len());
}

#[test]
fn metrics_may_lie_elsewhere_or_nowhere() {
    let (document, _) = measured(counting_server("/m"), &["--metrics-path", "/m"]);
    assert_eq!(document["server"]["generation_tokens"]["total"], 80.0);
    let (document, _) = measured(counting_server("/m"), &[]);
    assert_eq!(document["server"], Value::Null);
    assert_eq!(document["server_missing"], "the server's metrics cannot be read: HTTP 404");
}

#[test]
fn metrics_are_left_alone_on_request() {
    let (document, _) = measured(counting_server("/metrics"), &["--telemetry", "off"]);
    assert_eq!(document["server_missing"], "the server's metrics were not requested");
    let folder = tempfile::tempdir().unwrap();
    let both = ["run", "--telemetry", "off", "--metrics-path", "/m"];
    let refused = output(&both, folder.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--telemetry off"), "{}", text(&refused.stderr));
}

#[test]
fn several_sources_are_added_up_and_each_has_a_row() {
    // Only the first answers requests; the second is a replica that others use.
    let (first, second) = (counting_server("/metrics"), counting_server("/m"));
    let other = format!("http://{second}/m");
    let (document, _) =
        measured(first, &["--metrics-url", &format!("http://{first}"), "--metrics-url", &other]);
    let server = &document["server"];
    assert_eq!(server["generation_tokens"]["total"], 80.0, "{server:#}");
    // The scrapes are those before and after so short a run, which the timeline has as well.
    assert_eq!(server["timeline"]["running"][0], 2.0, "{server:#}");
    let rows = server["sources"].as_array().unwrap();
    let name = |row: &Value| row["name"].as_str().unwrap().to_owned();
    assert_eq!(rows.iter().map(name).collect::<Vec<_>>(), [first.to_string(), second.to_string()]);
    assert_eq!(rows[0]["figures"]["generation_tokens"]["total"], 80.0);
    assert_eq!(rows[1]["figures"]["generation_tokens"]["total"], 0.0);
    let warnings = document["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|warning| warning["key"] == "replicas-uneven"), "{warnings:?}");

    let (document, _) =
        measured(first, &["--metrics-url", "http://127.0.0.1:1", "--metrics-url", &other]);
    assert_eq!(document["server"], Value::Null, "a replica is missing, so there is no total");
}

/// The engine times each request in its scheduler, reports it with the answer, and adds it to its
/// histograms: three witnesses of the same time. The client saw the tokens.
#[test]
fn reported_times_are_those_of_the_scheduler() {
    for (form, has_queue) in [("vllm", true), ("llama.cpp", false)] {
        let arguments =
            ["--mode", "serve", "--step", "20ms", "--request-times", form, "--max-num-seqs", "2"];
        let engine = Engine::start(&[&arguments[..], &["--reasoning-tokens", "3"]].concat());
        let folder = tempfile::tempdir().unwrap();
        let load = ["--concurrency", "4", "--requests", "24", "--output-tokens", "8"];
        let asked = ["run", &engine.url(), "--json", "-q", "--input-tokens", "16"];
        let ran = output(&[&asked[..], &load].concat(), folder.path());
        let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
        let metrics = &document["metrics"];
        let mean = |key: &str| metrics[key]["mean"].as_f64();
        assert_eq!(mean("server_queue_ms").is_some(), has_queue, "{form}: {metrics:#}");
        for record in &observations(folder.path()).records {
            let report = record.server.as_deref().unwrap();
            assert_eq!((report.dropped, report.reasoning_tokens), (0, Some(3)), "{form}");
            // Eight tokens of steps of 20 ms.
            let decode = report.decode.unwrap().as_secs_f64();
            assert!((decode - 0.14).abs() < 0.001, "{form}: {decode}");
            let prefill = report.prefill.unwrap().as_secs_f64();
            assert!((0.0199..0.0401).contains(&prefill), "{form}: {prefill}");
        }
        assert_eq!(document["reports"]["requests"], 24, "{form}");
        assert_eq!(metrics["reasoning_tokens"]["value"], 3.0, "{form}");
        assert_eq!(metrics["reasoning_share"]["value"], 0.375, "{form}");
        assert!(mean("ttfc_ms").unwrap() - mean("ttft_ms").unwrap() > 50.0, "{form}");
        if has_queue {
            // Two of four requests wait; the histogram has the same sum.
            let (reported, counted) =
                (mean("server_queue_ms").unwrap(), document["server"]["queue_ms_mean"].as_f64());
            assert!((reported - counted.unwrap()).abs() < 1e-3, "{reported} {counted:?}");
            assert!(50.0 < reported, "{reported}");
            let parts =
                [reported, mean("server_prefill_ms").unwrap(), mean("ttft_overhead_ms").unwrap()];
            let ttft = mean("ttft_ms").unwrap();
            assert!((parts.iter().sum::<f64>() - ttft).abs() < 1e-6, "{parts:?} {ttft}");
            assert!((0.0..ttft / 2.0).contains(&parts[2]), "{parts:?}");
        }
    }
}

/// The engine drafts tokens, reports the drafts of each answer, and counts all of them; the client sees
/// one event for each step.
#[test]
fn drafts_are_reported_as_the_engine_made_them() {
    let arguments = ["--mode", "serve", "--step", "4ms", "--request-times", "vllm"];
    let drafting = ["--num-speculative-tokens", "3", "--draft-acceptance", "0.6"];
    let engine = Engine::start(&[&arguments[..], &drafting].concat());
    let folder = tempfile::tempdir().unwrap();
    let load = ["--concurrency", "8", "--requests", "40", "--output-tokens", "64"];
    let asked = ["run", &engine.url(), "--json", "-q", "--input-tokens", "16"];
    let ran = output(&[&asked[..], &load].concat(), folder.path());
    let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
    for record in &observations(folder.path()).records {
        let drafts = record.server.as_deref().unwrap().speculation.clone().unwrap();
        let events = record.events.iter().filter(|event| event.is_output()).count() as u64;
        assert_eq!(events, 64 - drafts.accepted, "{drafts:?}");
        assert_eq!(drafts.histogram.iter().sum::<u64>(), drafts.steps.unwrap());
    }
    let (reported, counted) =
        (&document["reports"]["speculation"], &document["server"]["speculation"]);
    for key in ["steps", "drafted", "accepted"] {
        assert_eq!(reported[key], counted[key], "{reported} {counted}");
    }
    let positions = |it: &Value| -> Vec<f64> {
        it["by_position"].as_array().unwrap().iter().map(|it| it.as_f64().unwrap()).collect()
    };
    for (reported, counted) in positions(reported).into_iter().zip(positions(counted)) {
        assert!((reported - counted).abs() < 1e-9, "{reported} {counted}");
    }
    // Each is accepted if all before it are: 0.6, 0.36, 0.216, but for drafts that the end cuts short.
    for (found, wanted) in positions(reported).into_iter().zip([0.6, 0.36, 0.216]) {
        assert!((found - wanted).abs() < 0.05, "{found} {wanted}");
    }
    let value = |key: &str| document["metrics"][key]["value"].as_f64().unwrap();
    let (steps, accepted) = (reported["steps"].as_f64(), reported["accepted"].as_f64());
    let length = 1.0 + accepted.unwrap() / steps.unwrap();
    assert!((value("acceptance_length") - length).abs() < 1e-9);
    assert!((value("acceptance_rate") - 0.392).abs() < 0.04, "{}", value("acceptance_rate"));
}
