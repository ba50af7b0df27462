//! The mode `serve`: streams, endings, errors, keys, cancellation.

use std::time::Duration;

use inferometer_engine::truth::{Api, Ended};
use inferometer_engine::{ApiKey, EngineOptions, Limits, ServeOptions};

use crate::client::{Client, Engine, Response, chat_body};

pub(crate) fn serving(change: impl FnOnce(&mut EngineOptions)) -> Engine {
    let step = Some(Duration::from_millis(1));
    let serve = ServeOptions { step, ..ServeOptions::default() };
    let mut options =
        EngineOptions { model: Some("tiny".to_owned()), serve, ..EngineOptions::default() };
    change(&mut options);
    Engine::start(options)
}

const USAGE: &str = r#""stream":true,"stream_options":{"include_usage":true}"#;

/// The value of the first sample of a metric.
fn metric(client: &mut Client, name: &str) -> String {
    let text = client.get("/metrics").text().to_owned();
    let line = text.lines().find(|line| line.starts_with(&format!("{name}{{")));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).rsplit(' ').next().unwrap().to_owned()
}

pub(crate) fn wait_for_metric(client: &mut Client, name: &str, expected: &str) {
    for _ in 0..100_000 {
        if metric(client, name) == expected {
            return;
        }
    }
    panic!("{name} never became {expected}");
}

fn error_of(response: &Response) -> String {
    response.json()["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_chat_stream_has_its_tokens_and_tells_them() {
    let engine = serving(|_| {});
    let fields = format!(r#""max_tokens":5,"ignore_eos":true,{USAGE}"#);
    let response = engine.client().chat(&fields);
    assert_eq!(response.status, 200);
    let (events, done) = response.events();
    assert!(done);
    let contents = events
        .iter()
        .filter_map(|event| event["choices"][0]["delta"]["content"].as_str())
        .filter(|content| !content.is_empty())
        .count();
    assert_eq!(contents, 5);
    let usage = &events.last().unwrap()["usage"];
    assert_eq!(usage["completion_tokens"], 5);
    let prompt = usage["prompt_tokens"].as_u64().unwrap();
    assert_eq!(usage["total_tokens"], prompt + 5);
    let finish: Vec<_> =
        events.iter().filter_map(|event| event["choices"][0]["finish_reason"].as_str()).collect();
    assert_eq!(finish, ["length"]);
}

#[test]
fn the_truth_has_every_write_with_its_due_moment_and_the_steps() {
    let engine = serving(|_| {});
    let fields = format!(r#""max_tokens":7,"ignore_eos":true,{USAGE}"#);
    let response = engine.client().chat(&fields);
    let truth = engine.truth_at_rest();
    let request = &truth.requests[0];
    assert_eq!((request.api, request.streamed, request.tokens), (Api::Chat, true, 7));
    assert_eq!(request.ended, Ended::Complete);
    assert_eq!(request.writes.iter().map(|write| write.tokens).sum::<u32>(), 7);
    let bytes: usize = request.writes.iter().map(|write| write.bytes as usize).sum();
    assert_eq!(bytes, response.wire_bytes);
    let (events, _) = response.events();
    let told: u32 = request.writes.iter().map(|write| write.events).sum();
    assert_eq!(told as usize, events.len() + 1);
    let dues: Vec<u64> = request.writes.iter().filter_map(|write| write.due_ns).collect();
    // Steps of one millisecond each, on the dot, however late the engine may have been.
    assert!(dues.windows(2).all(|pair| pair[1] - pair[0] == 1_000_000), "{dues:?}");
    assert!(
        request.writes.iter().all(|write| write.due_ns.is_none_or(|due| due <= write.before_ns))
    );
    let steps = truth.steps.unwrap();
    assert_eq!(steps.count, 7);
    assert!(steps.max_ns.is_some());
}

#[test]
fn the_same_prompt_gets_the_same_answer_and_the_second_one_from_the_cache() {
    let engine = serving(|_| {});
    let mut client = engine.client();
    let words = vec!["word"; 100].join(" ");
    let body = format!(r#"{{"prompt":"{words}","max_tokens":20,"ignore_eos":true}}"#);
    let first = client.request("POST", "/v1/completions", &body).json();
    let second = client.request("POST", "/v1/completions", &body).json();
    assert_eq!(first["choices"][0]["text"], second["choices"][0]["text"]);
    assert!(
        first["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().is_none_or(|n| n == 0)
    );
    let cached = second["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap();
    let prompt = second["usage"]["prompt_tokens"].as_u64().unwrap();
    assert_eq!(cached, (prompt - 1) / 16 * 16);
}

#[test]
fn an_answer_ends_by_itself_and_sooner_at_a_stop_string() {
    let engine = serving(|options| options.serve.step = Some(Duration::from_micros(50)));
    let mut client = engine.client();
    let whole = client.complete(r#""seed":4,"max_tokens":4000"#).json();
    assert_eq!(whole["choices"][0]["finish_reason"], "stop");
    let text = whole["choices"][0]["text"].as_str().unwrap();
    let word = text.split_whitespace().nth(3).unwrap();
    let stopped = client.complete(&format!(r#""seed":4,"stop":["{word}"]"#)).json();
    assert_eq!(stopped["choices"][0]["finish_reason"], "stop");
    assert_eq!(stopped["choices"][0]["stop_reason"], word);
    let cut = stopped["choices"][0]["text"].as_str().unwrap();
    assert!(text.starts_with(cut) && !cut.contains(word), "{cut:?}");
    assert!(stopped["usage"]["completion_tokens"].as_u64().unwrap() <= 4);
}

#[test]
fn every_choice_is_a_request_of_the_scheduler() {
    let engine = serving(|_| {});
    let mut client = engine.client();
    let body = r#"{"prompt":["one two","three"],"n":2,"max_tokens":3,"ignore_eos":true}"#;
    let answer = client.request("POST", "/v1/completions", body).json();
    let choices = answer["choices"].as_array().unwrap();
    assert_eq!(choices.len(), 4);
    assert_ne!(choices[0]["text"], choices[1]["text"]);
    assert_eq!(answer["usage"]["completion_tokens"], 12);
    assert_eq!(metric(&mut client, "vllm:generation_tokens_total"), "12.0");
}

#[test]
fn a_client_that_leaves_frees_its_blocks() {
    let engine = serving(|_| {});
    let mut watcher = engine.client();
    let mut client = engine.client();
    let body = chat_body(r#""max_tokens":5000,"n":3,"ignore_eos":true,"stream":true"#);
    client.send(crate::client::request_text("POST", "/v1/chat/completions", &body).as_bytes());
    client.take_through(b"content");
    wait_for_metric(&mut watcher, "vllm:num_requests_running", "3.0");
    assert_ne!(metric(&mut watcher, "vllm:kv_cache_usage_perc"), "0.0");
    client.leave();
    wait_for_metric(&mut watcher, "vllm:num_requests_running", "0.0");
    assert_eq!(metric(&mut watcher, "vllm:kv_cache_usage_perc"), "0.0");
    assert_eq!(engine.truth_at_rest().requests[0].ended, Ended::Aborted);
}

#[test]
fn only_who_has_the_key_gets_in_and_the_key_is_told_to_nobody() {
    let engine = serving(|options| options.serve.api_key = ApiKey::new("s3cret-key"));
    let mut client = engine.client();
    let ask = |client: &mut Client, header: &str| {
        let body = chat_body(r#""max_tokens":1"#);
        let length = body.len();
        client.send(
            format!(
                "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n{header}\
                 content-length: {length}\r\n\r\n{body}"
            )
            .as_bytes(),
        );
        client.response()
    };
    for header in ["", "authorization: Bearer wrong\r\n", "authorization: s3cret-key\r\n"] {
        let response = ask(&mut client, header);
        assert_eq!(response.status, 401, "{header}");
        assert!(!response.text().contains("s3cret"));
    }
    assert_eq!(ask(&mut client, "authorization: Bearer s3cret-key\r\n").status, 200);
    assert_eq!(ask(&mut client, "x-api-key: s3cret-key\r\n").status, 200);
    assert_eq!(client.get("/v1/models").status, 401);
    for open in ["/health", "/ping", "/version", "/metrics", "/truth"] {
        let response = client.get(open);
        assert_eq!(response.status, 200, "{open}");
        assert!(!String::from_utf8_lossy(&response.body).contains("s3cret"), "{open}");
    }
}

#[test]
fn what_cannot_be_answered_is_refused_as_a_real_server_would() {
    let engine = serving(|_| {});
    let mut client = engine.client();
    assert_eq!(client.get("/nowhere").status, 404);
    assert_eq!(client.get("/v1/completions").status, 405);
    assert_eq!(client.request("POST", "/v1/completions", "no JSON").status, 400);
    let unknown = client.chat(r#""model":"other""#);
    assert_eq!(unknown.status, 404);
    assert!(error_of(&unknown).contains("other"), "{}", error_of(&unknown));
    assert_eq!(client.chat(r#""max_tokens":0"#).status, 400);
    assert_eq!(client.get("/steps").status, 404);
    assert_eq!(engine.truth().requests.len(), 0);
}

#[test]
fn a_queue_that_is_full_says_so() {
    let limits = Limits { waiting: 1, ..Limits::default() };
    let engine = serving(|options| options.limits = limits);
    let mut client = engine.client();
    let full = client.complete(r#""n":2,"max_tokens":1"#);
    assert_eq!(full.status, 503);
    assert!(error_of(&full).contains("waiting"), "{}", error_of(&full));
    assert_eq!(client.complete(r#""max_tokens":1"#).status, 200);
}

#[test]
fn a_fast_engine_does_in_a_moment_what_would_take_it_long() {
    let engine = serving(|options| {
        options.serve.step = Some(Duration::from_millis(20));
        options.serve.speed = 100.0;
    });
    let fields = r#""max_tokens":50,"ignore_eos":true,"stream":true"#;
    engine.client().chat(fields);
    let truth = engine.truth_at_rest();
    let dues: Vec<u64> = truth.requests[0].writes.iter().filter_map(|write| write.due_ns).collect();
    // 20 ms of the engine are 200 µs of the wall.
    assert!(dues.windows(2).all(|pair| pair[1] - pair[0] == 200_000), "{dues:?}");
}

#[test]
fn the_vocabulary_counts_as_the_engine_does() {
    let engine = serving(|_| {});
    let mut client = engine.client();
    let tokens = client.request("POST", "/tokenize", r#"{"prompt":"one two three"}"#).json();
    let count = tokens["count"].as_u64().unwrap();
    let answer = client.complete(r#""max_tokens":1"#).json();
    assert_eq!(answer["usage"]["prompt_tokens"], count);
    let ids = tokens["tokens"].to_string();
    let text = client.request("POST", "/detokenize", &format!(r#"{{"tokens":{ids}}}"#)).json();
    // Words that it does not have are given another, which is then the same word for ever.
    let again = format!(r#"{{"prompt":{}}}"#, text["prompt"]);
    let tokens_again = client.request("POST", "/tokenize", &again).json();
    assert_eq!(tokens_again["tokens"], tokens["tokens"]);
    let tokenizer = client.get("/tokenizer.json").json();
    assert!(tokenizer["model"]["vocab"].as_object().is_some());
    assert_eq!(client.get("/tokenizer_config.json").status, 200);
}

#[test]
fn the_other_apis_answer_too() {
    let engine = serving(|_| {});
    let mut client = engine.client();
    let responses = r#"{"input":"one two","max_output_tokens":3,"ignore_eos":true}"#;
    let response = client.request("POST", "/v1/responses", responses).json();
    assert_eq!(
        (&response["object"], &response["status"]),
        (&"response".into(), &"incomplete".into())
    );
    let text = response["output"][0]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text.split(' ').count(), 3);
    assert_eq!(response["usage"]["output_tokens"], 3);
    let messages = r#"{"messages":[{"role":"user","content":"one"}],"max_tokens":3,
        "model":"tiny","ignore_eos":true}"#;
    let message = client.request("POST", "/v1/messages", messages).json();
    assert_eq!(
        (&message["type"], &message["stop_reason"]),
        (&"message".into(), &"max_tokens".into())
    );
    assert_eq!(message["content"][0]["text"].as_str().unwrap().split(' ').count(), 3);
    let embeddings = r#"{"input":["one two","three"]}"#;
    let vectors = client.request("POST", "/v1/embeddings", embeddings).json();
    assert_eq!(vectors["data"].as_array().unwrap().len(), 2);
    assert_eq!(vectors["data"][1]["embedding"].as_array().unwrap().len(), 1024);
    assert_eq!(vectors["usage"]["prompt_tokens"], 3);
}
