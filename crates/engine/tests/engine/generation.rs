//! Answers: what they say, how many tokens, and with which details.

use inferometer_engine::{EngineOptions, Mode, Pacing};
use serde_json::Value;

use crate::client::{Engine, at_once};

fn text_of(events: &[Value]) -> String {
    let choices = events.iter().filter_map(|event| event["choices"].get(0));
    let texts = choices.filter_map(|c| c["delta"]["content"].as_str().or(c["text"].as_str()));
    texts.collect()
}

#[test]
fn a_chat_stream_has_a_role_tokens_an_end_and_done() {
    let engine = Engine::instant();
    let response = engine.client().chat(r#""stream":true,"max_tokens":4"#);
    assert!(response.head.contains("content-type: text/event-stream; charset=utf-8\r\n"));
    let (events, done) = response.events();
    assert!(done);
    assert_eq!(events.len(), 5);
    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(text_of(&events).split(' ').count(), 5, "four words, each with a space ahead");
    for event in &events {
        assert_eq!(event["object"], "chat.completion.chunk");
        assert_eq!(event["id"], events[0]["id"]);
        assert_eq!(event["model"], "paced");
        assert_eq!(event.get("usage"), None);
    }
    let reasons: Vec<&Value> = events.iter().map(|e| &e["choices"][0]["finish_reason"]).collect();
    assert_eq!(reasons, [&Value::Null, &Value::Null, &Value::Null, &Value::Null, &"length".into()]);
    // Role and first token share a chunk; then one chunk per token, and one for [DONE].
    assert_eq!(response.chunks.len(), 5);
}

#[test]
fn usage_is_told_when_asked_for_and_continuously_when_asked_for_that() {
    let engine = Engine::instant();
    let mut client = engine.client();
    let fields = r#""stream":true,"max_tokens":3,"stream_options":{"include_usage":true}"#;
    let (events, _) = client.chat(fields).events();
    let last = events.last().unwrap();
    assert_eq!(last["choices"].as_array().unwrap().len(), 0);
    assert_eq!(last["usage"]["prompt_tokens"], 3);
    assert_eq!(last["usage"]["completion_tokens"], 3);
    assert_eq!(last["usage"]["total_tokens"], 6);

    let fields = r#""stream":true,"max_tokens":3,"return_token_ids":true,
        "stream_options":{"include_usage":true,"continuous_usage_stats":true}"#;
    let (events, _) = client.chat(fields).events();
    let told: Vec<u64> =
        events.iter().map(|e| e["usage"]["completion_tokens"].as_u64().unwrap()).collect();
    assert_eq!(told, [0, 1, 2, 3, 3]);
    let ids = events[1..4].iter().map(|e| e["choices"][0]["token_ids"].as_array().unwrap().len());
    assert_eq!(ids.sum::<usize>(), 3);
}

#[test]
fn a_completions_stream_has_text_and_no_role() {
    let engine = Engine::instant();
    let (events, done) = engine.client().complete(r#""stream":true,"max_tokens":2"#).events();
    assert!(done);
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["object"], "text_completion");
    assert!(events[0]["id"].as_str().unwrap().starts_with("cmpl-"));
    assert_eq!(events[1]["choices"][0]["finish_reason"], "length");
}

#[test]
fn an_answer_in_one_piece_has_the_same_tokens() {
    let engine = Engine::instant();
    let mut client = engine.client();
    let chat = client.chat(r#""max_tokens":6"#).json();
    let content = chat["choices"][0]["message"]["content"].as_str().unwrap();
    assert_eq!(content.split_whitespace().count(), 6);
    assert_eq!(
        (&chat["object"], &chat["usage"]["total_tokens"]),
        (&"chat.completion".into(), &9.into())
    );
    let ids = r#"{"prompt":[1,2,3,4],"max_tokens":2,"return_token_ids":true}"#;
    let completion = client.request("POST", "/v1/completions", ids).json();
    assert_eq!(completion["usage"]["prompt_tokens"], 4);
    assert_eq!(completion["choices"][0]["token_ids"].as_array().unwrap().len(), 2);
    assert_eq!(completion["choices"][0]["finish_reason"], "length");
}

#[test]
fn parts_of_messages_are_counted_word_by_word() {
    let engine = Engine::instant();
    let body = r#"{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":
        [{"type":"text","text":"one two"},{"type":"text","text":"three"}]}]}"#;
    let answer = engine.client().request("POST", "/v1/chat/completions", body).json();
    assert_eq!(answer["usage"]["prompt_tokens"], 5);
}

#[test]
fn the_same_seed_says_the_same_and_another_seed_something_else() {
    let say = |seed| {
        let options = EngineOptions { seed, pacing: at_once(), ..EngineOptions::new(Mode::Paced) };
        let engine = Engine::start(options);
        let (events, _) = engine.client().chat(r#""stream":true,"max_tokens":20"#).events();
        text_of(&events)
    };
    assert_eq!(say(1), say(1));
    assert_ne!(say(1), say(2));
}

#[test]
fn tokens_share_events_and_events_share_writes_as_asked() {
    let engine = Engine::instant();
    let mut client = engine.client();
    let fields = r#""stream":true,"max_tokens":7,"paced":{"tokens_per_write":3}"#;
    let response = client.complete(fields);
    let (events, _) = response.events();
    let words =
        |event: &Value| event["choices"][0]["text"].as_str().unwrap().split_whitespace().count();
    assert_eq!(events.iter().map(words).collect::<Vec<_>>(), [3, 3, 1]);

    let fields = r#""stream":true,"max_tokens":7,"paced":{"events_per_write":3}"#;
    let response = client.complete(fields);
    let per_chunk: Vec<usize> =
        response.chunks.iter().map(|chunk| crate::sse::decode(chunk).len()).collect();
    assert_eq!(per_chunk, [3, 3, 2]);
}

#[test]
fn a_model_id_that_needs_escaping_is_escaped() {
    let model = "models/\"odd\" \\ näme\n";
    let options = EngineOptions {
        model: Some(model.to_owned()),
        pacing: Pacing { tokens: 1, ..at_once() },
        ..EngineOptions::new(Mode::Paced)
    };
    let engine = Engine::start(options);
    let (events, _) = engine.client().chat(r#""stream":true"#).events();
    assert_eq!(events[0]["model"], model);
}
