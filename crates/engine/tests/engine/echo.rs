//! The echo mode: many answers, no truth.

use inferometer_engine::{EngineOptions, Mode};

use crate::client::{Engine, chat_body, request_text};

fn echo() -> Engine {
    Engine::start(EngineOptions { mode: Mode::Echo, ..EngineOptions::default() })
}

#[test]
fn one_connection_serves_a_thousand_requests() {
    let engine = echo();
    let mut client = engine.client();
    for n in 0..1_000 {
        let response = client.chat(&format!(r#""max_tokens":{}"#, 1 + n % 7));
        assert_eq!(response.json()["usage"]["completion_tokens"], 1 + n % 7);
    }
}

#[test]
fn streams_have_the_tokens_that_were_asked_for_one_event_per_write() {
    let engine = echo();
    let mut client = engine.client();
    for tokens in [1, 3, 200] {
        let fields = format!(
            r#""max_tokens":{tokens},"stream":true,"stream_options":{{"include_usage":true}}"#
        );
        let response = client.complete(&fields);
        let (events, done) = response.events();
        assert!(done);
        assert_eq!(events.len(), tokens + 1);
        assert_eq!(events[tokens]["usage"]["completion_tokens"], tokens);
        assert_eq!(response.chunks.len(), tokens + 2);
    }
    let (events, _) = client.chat(r#""max_tokens":2,"stream":true"#).events();
    assert_eq!(events.len(), 3);
}

#[test]
fn a_stream_larger_than_the_socket_takes_arrives_whole() {
    let engine = echo();
    let mut client = engine.client();
    let body = chat_body(r#""max_tokens":100000,"stream":true"#);
    client.send(request_text("POST", "/v1/chat/completions", &body).as_bytes());
    // While this one is not read, others are served.
    assert_eq!(engine.client().get("/health").status, 200);
    assert_eq!(client.response().chunks.len(), 100_001);
}

#[test]
fn nothing_is_looked_at_and_nothing_is_kept() {
    let engine = echo();
    let mut client = engine.client();
    let response = client.request("POST", "/v1/completions", "this is not JSON");
    assert_eq!((response.status, &response.json()["model"]), (200, &"echo".into()));
    assert_eq!(client.chat(r#""model":"another""#).status, 200);
    assert_eq!(client.get("/nowhere").status, 404);
    let of_another_mode = client.get("/metrics");
    assert_eq!(of_another_mode.status, 404);
    assert!(of_another_mode.text().contains("in mode echo"), "{}", of_another_mode.text());
    let truth = engine.truth();
    assert_eq!((truth.mode, truth.requests.len()), (Mode::Echo, 0));
}
