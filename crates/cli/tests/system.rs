//! What a run knows of its machines: the client's, the server's, and what it is told.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::net::SocketAddr;

use serde_json::{Value, json};

use support::{http, output, server_saying, text};

/// A server of few words that says what it is.
fn named_server() -> SocketAddr {
    server_saying(|path| match path {
        "/v1/models" => {
            let list = json!({"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 4096}]});
            http("200 OK", "application/json", &list.to_string())
        }
        "/version" => http("200 OK", "application/json", r#"{"version":"0.11.0"}"#),
        "/v1/chat/completions" => {
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
        }
        _ => http("404 Not Found", "application/json", "{}"),
    })
}

fn system_of(address: SocketAddr, arguments: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://{address}");
    let asked = ["run", &url, "--json", "-q", "--no-stream", "--prompt", "Hi.", "--requests", "3"];
    let ran = output(&[&asked[..], &["--output-tokens", "2"], arguments].concat(), folder.path());
    let document: Value =
        serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{}", text(&ran.stderr)));
    document["system"].clone()
}

#[test]
fn a_server_is_known_by_its_own_words_and_its_machine_only_where_it_is_seen() {
    let system = system_of(named_server(), &[]);
    let server = &system["server"];
    assert_eq!((&server["software"], &server["version"]), (&json!("vLLM"), &json!("0.11.0")));
    assert_eq!(server["context_tokens"], 4096);
    // The listener is this test, which is no server of models that we know: it might pass on.
    assert_eq!((&server["known_by"], &server["machine"]), (&Value::Null, &Value::Null));
    let local = system_of(named_server(), &["--server-info", "local"]);
    assert_eq!(local["server"]["machine"], local["client"]);
    assert!(system["client"]["kernel"].is_string());
    assert_eq!((&server["start_command"], &server["gpus_used"]), (&Value::Null, &Value::Null));
}

#[test]
fn what_is_told_of_a_server_goes_before_what_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server.toml");
    let told = "start_command = \"vllm serve m --tensor-parallel-size 4\"\n\
                [machine]\ngpu_driver = \"6.16.6\"\n[[machine.gpus]]\nname = \"MI100\"\n";
    std::fs::write(&file, told).unwrap();
    let system = system_of(named_server(), &["--server-info", file.to_str().unwrap()]);
    let server = &system["server"];
    assert_eq!((&server["known_by"], &server["gpus_used"]), (&json!("told"), &json!(4)));
    assert_eq!(server["machine"]["gpus"][0]["name"], "MI100");
    assert_eq!(server["machine"]["kernel"], Value::Null, "only what was told");
    assert_eq!(server["version"], "0.11.0");
}

#[test]
fn wrong_words_about_a_server_are_refused_before_anything_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://{}", named_server());
    for (told, wanted) in [("echo 'gpu = 4'", "unknown key `gpu`"), ("exit 3", "exit status: 3")] {
        let asked = ["run", &url, "-q", "--no-stream", "--server-info", told];
        let ran = output(&asked, folder.path());
        assert_eq!(ran.status.code(), Some(2));
        assert!(text(&ran.stderr).contains(wanted), "{}", text(&ran.stderr));
    }
    let engine = output(&["run", "-q", "--server-info", "local"], folder.path());
    assert!(
        text(&engine.stderr).contains("--server-info describes another machine's server"),
        "{}",
        text(&engine.stderr)
    );
    let runs = std::fs::read_dir(folder.path().join("runs")).into_iter().flatten();
    assert_eq!(runs.count(), 0);
}

#[test]
fn an_engine_says_what_it_pretends_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let asked =
        ["simulate", "--json", "-q", "--requests", "3", "--profile", "mi100x4-devstral-24b"];
    let ran = output(&asked, folder.path());
    let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let server = &document["system"]["server"];
    assert_eq!(server["gpus_used"], 4);
    assert!(server["pretended"].as_str().unwrap().contains("MI100"), "{server}");
    assert_eq!(server["machine"], Value::Null);
}

#[test]
fn this_machine_can_be_shown_and_sent_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let shown = output(&["system"], folder.path());
    assert!(text(&shown.stdout).contains("Kernel"), "{}", text(&shown.stdout));
    let document: Value =
        serde_json::from_slice(&output(&["system", "--json"], folder.path()).stdout).unwrap();
    assert_eq!(document["schema"], "inferometer.system/1");
    assert!(document["machine"]["memory_bytes"].as_u64().unwrap() > 0);
}
