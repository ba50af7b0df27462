//! Requests as the network may bring them: cut anywhere, glued together, large, or waiting.

use crate::client::{Engine, chat_body, request_text};

#[test]
fn requests_sent_together_are_answered_in_order() {
    let engine = Engine::instant();
    let mut client = engine.client();
    let mut sent = String::new();
    for tokens in 1..=3 {
        let fields = format!(r#""stream":true,"max_tokens":{tokens},"paced":{{"gap_ms":1}}"#);
        sent += &request_text("POST", "/v1/chat/completions", &chat_body(&fields));
    }
    sent += &request_text("GET", "/health", "");
    client.send(sent.as_bytes());
    for tokens in 1..=3 {
        assert_eq!(client.response().events().0.len(), 1 + tokens);
    }
    assert_eq!(client.response().status, 200);
}

#[test]
fn a_request_may_be_cut_at_every_byte() {
    let engine = Engine::instant();
    let mut client = engine.client();
    let text = request_text("POST", "/v1/chat/completions", &chat_body(r#""max_tokens":2"#));
    for byte in text.as_bytes() {
        client.send(&[*byte]);
    }
    assert_eq!(client.response().json()["usage"]["completion_tokens"], 2);
}

#[test]
fn a_request_may_be_cut_at_any_one_place() {
    let engine = Engine::instant();
    let mut client = engine.client();
    let text = request_text("POST", "/v1/chat/completions", &chat_body(r#""max_tokens":2"#));
    // The second half is glued to a whole second request.
    for cut in 0..text.len() {
        client.send(&text.as_bytes()[..cut]);
        client.send(format!("{}{}", &text[cut..], request_text("GET", "/health", "")).as_bytes());
        assert_eq!(client.response().json()["usage"]["completion_tokens"], 2, "cut at {cut}");
        assert_eq!(client.response().body, b"", "cut at {cut}");
    }
}

#[test]
fn a_long_prompt_is_counted_to_its_last_word() {
    let engine = Engine::instant();
    let mut client = engine.client();
    let prompt = "word ".repeat(400_000);
    let body = format!(r#"{{"prompt":"{prompt}","max_tokens":1}}"#);
    let answer = client.request("POST", "/v1/completions", &body).json();
    assert_eq!(answer["usage"]["prompt_tokens"], 400_000);
    assert_eq!(client.get("/health").status, 200);
}

#[test]
fn a_client_that_asks_before_sending_its_body_is_told_to_go_on() {
    let engine = Engine::instant();
    let mut client = engine.client();
    let body = chat_body(r#""max_tokens":3"#);
    let length = body.len();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: {length}\r\n\r\n"
    );
    client.send(head.as_bytes());
    assert_eq!(client.response().status, 100);
    let (first, second) = body.split_at(length / 2);
    client.send(first.as_bytes());
    client.send(second.as_bytes());
    assert_eq!(client.response().json()["usage"]["completion_tokens"], 3);
}

#[test]
fn a_client_that_sends_far_ahead_is_held_back_and_still_answered() {
    let engine = Engine::instant();
    let mut client = engine.client();
    let one = request_text("POST", "/v1/completions", r#"{"prompt":"x","max_tokens":1}"#);
    let count = 5_000;
    let mut sender = client.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        std::io::Write::write_all(&mut sender, one.repeat(count).as_bytes()).unwrap();
    });
    for _ in 0..count {
        assert_eq!(client.response().status, 200);
    }
    sending.join().unwrap();
}
