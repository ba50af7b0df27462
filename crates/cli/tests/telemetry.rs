//! The server's own metrics beside a run: heard, silent, or left alone.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::net::SocketAddr;
use std::sync::Mutex;

use inferometer_model::Telemetry;
use serde_json::{Value, json};

use support::{http, observations, output, server_saying, text};

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
