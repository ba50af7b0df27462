//! The mode `serve` on the wire: named events, choices side by side, errors and what follows them.

use std::collections::BTreeMap;
use std::time::Duration;

use inferometer_engine::{ApiKey, Limits};
use serde_json::{Value, json};

use crate::client::{Client, Response, chat_body, request_text};
use crate::serving::{serving, wait_for_metric};

/// Names and JSON of events that have names.
fn named_events(response: &Response) -> Vec<(String, Value)> {
    assert_eq!(response.status, 200);
    let text = response.text().strip_suffix("\n\n").unwrap();
    let event = |event: &str| {
        let (name, data) = event.split_once("\ndata: ").unwrap();
        let name = name.strip_prefix("event: ").unwrap();
        (name.to_owned(), serde_json::from_str(data).unwrap())
    };
    text.split("\n\n").map(event).collect()
}

/// One name for a run of equal ones.
fn kinds(events: &[(String, Value)]) -> Vec<&str> {
    let mut kinds: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    kinds.dedup();
    kinds
}

fn post(client: &mut Client, path: &str, body: &Value) -> Response {
    client.request("POST", path, &body.to_string())
}

#[test]
fn a_streamed_response_says_what_a_whole_one_says() {
    let engine = serving(|_| {});
    let mut client = engine.client();
    let mut body = json!({"input": "one two", "max_output_tokens": 6, "ignore_eos": true});
    let whole = post(&mut client, "/v1/responses", &body).json();
    body["stream"] = json!(true);
    let events = named_events(&post(&mut client, "/v1/responses", &body));
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(kinds(&events), expected);
    for (number, (name, event)) in events.iter().enumerate() {
        assert_eq!((&event["type"], &event["sequence_number"]), (&json!(name), &json!(number)));
    }
    let deltas: Vec<&str> =
        events.iter().filter_map(|(_, event)| event["delta"].as_str()).collect();
    assert_eq!(deltas.len(), 6);
    let text = &whole["output"][0]["content"][0]["text"];
    assert_eq!(&json!(deltas.concat()), text);
    let last = &events.last().unwrap().1["response"];
    assert_eq!(&last["output"][0]["content"][0]["text"], text);
    assert_eq!((&last["status"], &whole["status"]), (&json!("incomplete"), &json!("incomplete")));
    assert_eq!(last["usage"]["output_tokens"], 6);
    assert_eq!(last["usage"]["input_tokens"], whole["usage"]["input_tokens"]);
}

#[test]
fn a_streamed_message_says_what_a_whole_one_says() {
    let engine = serving(|_| {});
    let mut client = engine.client();
    let mut body = json!({"messages": [{"role": "user", "content": "one"}], "max_tokens": 5,
        "model": "tiny", "ignore_eos": true});
    let whole = post(&mut client, "/v1/messages", &body).json();
    body["stream"] = json!(true);
    let events = named_events(&post(&mut client, "/v1/messages", &body));
    let expected = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(kinds(&events), expected);
    let texts: Vec<&str> =
        events.iter().filter_map(|(_, event)| event["delta"]["text"].as_str()).collect();
    assert_eq!(texts.len(), 5);
    assert_eq!(json!(texts.concat()), whole["content"][0]["text"]);
    let end = &events[events.len() - 2].1;
    assert_eq!(
        (&end["delta"]["stop_reason"], &end["usage"]["output_tokens"]),
        (&json!("max_tokens"), &json!(5))
    );
    assert_eq!(whole["usage"]["output_tokens"], 5);
}

/// The text and the reason of the end of each choice of a streamed chat.
fn chat_choices(response: &Response) -> BTreeMap<u64, (String, Vec<String>)> {
    let mut choices: BTreeMap<u64, (String, Vec<String>)> = BTreeMap::new();
    let (events, done) = response.events();
    assert!(done);
    for choice in events.iter().filter_map(|event| event["choices"].get(0)) {
        let (text, ends) = choices.entry(choice["index"].as_u64().unwrap()).or_default();
        text.push_str(choice["delta"]["content"].as_str().unwrap());
        ends.extend(choice["finish_reason"].as_str().map(str::to_owned));
    }
    choices
}

#[test]
fn choices_that_stream_side_by_side_are_those_of_the_whole_answer() {
    let engine = serving(|_| {});
    let mut client = engine.client();
    let fields = r#""max_tokens":4,"n":3,"ignore_eos":true"#;
    let whole = client.chat(fields).json();
    let streamed = client
        .chat(&format!(r#"{fields},"stream":true,"stream_options":{{"include_usage":true}}"#));
    let choices = chat_choices(&streamed);
    assert_eq!(choices.len(), 3);
    for (index, (text, ends)) in choices {
        let same = whole["choices"].as_array().unwrap().iter().find(|c| c["index"] == index);
        assert_eq!(same.unwrap()["message"]["content"], text);
        assert_eq!((text.split(' ').count(), ends), (4, vec!["length".to_owned()]));
    }
    assert_eq!(streamed.events().0.last().unwrap()["usage"]["completion_tokens"], 12);
}

#[test]
fn a_reader_who_comes_late_misses_nothing() {
    let engine = serving(|options| options.serve.step = Some(Duration::from_micros(20)));
    let mut watcher = engine.client();
    let mut client = engine.client();
    let body = chat_body(r#""max_tokens":8000,"n":6,"ignore_eos":true,"stream":true"#);
    client.send(request_text("POST", "/v1/chat/completions", &body).as_bytes());
    wait_for_metric(&mut watcher, "vllm:generation_tokens_total", "48000.0");
    for (text, ends) in chat_choices(&client.response()).values() {
        assert_eq!((text.split(' ').count(), ends.as_slice()), (8000, &["length".to_owned()][..]));
    }
    assert_eq!(client.get("/health").status, 200);
}

#[test]
fn a_request_that_is_refused_does_not_end_its_connection() {
    let engine = serving(|_| {});
    let mut client = engine.client();
    for bad in ["no JSON", r#"{"prompt":"a","max_tokens":-1}"#, r#"{"prompt":[]}"#] {
        assert_eq!(client.request("POST", "/v1/completions", bad).status, 400, "{bad}");
        assert_eq!(client.complete(r#""max_tokens":1"#).status, 200);
    }
}

#[test]
fn requests_that_are_sent_ahead_are_answered_in_order() {
    let engine = serving(|_| {});
    let mut client = engine.client();
    let mut sent = String::new();
    for tokens in 1..=3 {
        let fields = format!(r#""max_tokens":{tokens},"ignore_eos":true,"stream":true"#);
        sent += &request_text("POST", "/v1/chat/completions", &chat_body(&fields));
        sent += &request_text("POST", "/v1/chat/completions", &chat_body(r#""n":0"#));
    }
    client.send((sent + &request_text("GET", "/health", "")).as_bytes());
    for tokens in 1..=3 {
        assert_eq!(chat_choices(&client.response())[&0].0.split(' ').count(), tokens);
        assert_eq!(client.response().status, 400);
    }
    assert_eq!(client.response().body, b"");
}

fn with_headers(client: &mut Client, path: &str, headers: &str, body: &str) -> Response {
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\n{headers}content-length: {length}\r\n\r\n");
    client.send((head + body).as_bytes());
    client.response()
}

#[test]
fn one_right_key_of_two_is_enough() {
    let engine = serving(|options| options.serve.api_key = ApiKey::new("right"));
    let mut client = engine.client();
    let body = chat_body(r#""max_tokens":1"#);
    let path = "/v1/chat/completions";
    let (right, wrong) = ("authorization: Bearer right\r\n", "x-api-key: wrong\r\n");
    assert_eq!(with_headers(&mut client, path, wrong, &body).status, 401);
    for headers in [format!("{right}{wrong}"), format!("{wrong}{right}"), right.to_owned()] {
        assert_eq!(with_headers(&mut client, path, &headers, &body).status, 200, "{headers}");
    }
    let swapped = "x-api-key: right\r\nauthorization: Bearer wrong\r\n";
    assert_eq!(with_headers(&mut client, path, swapped, &body).status, 200);
    let both_wrong = "x-api-key: wrong\r\nauthorization: Bearer wrong\r\n";
    assert_eq!(with_headers(&mut client, path, both_wrong, &body).status, 401);
}

#[test]
fn the_name_in_the_header_is_in_the_answers_id() {
    let engine = serving(|_| {});
    let mut client = engine.client();
    let mut id = |path: &str, header: &str, body: &str| {
        let response = with_headers(&mut client, path, header, body);
        response.json()["id"].as_str().unwrap().to_owned()
    };
    let header = "X-Request-Id: job-7\r\n";
    let chat = chat_body(r#""max_tokens":1,"request_id":"other""#);
    assert_eq!(id("/v1/chat/completions", header, &chat), "chatcmpl-job-7");
    assert_eq!(id("/v1/chat/completions", "", &chat), "chatcmpl-other");
    let prompt = r#"{"prompt":"a","max_tokens":1}"#;
    assert_eq!(id("/v1/completions", header, prompt), "cmpl-job-7");
    assert_eq!(id("/v1/embeddings", header, r#"{"input":"a"}"#), "embd-job-7");
    let long = format!("x-request-id: {}\r\n", "r".repeat(300));
    assert_eq!(id("/v1/completions", &long, prompt).len(), "cmpl-".len() + 16);
}

#[test]
fn the_words_of_an_echo_are_where_their_probabilities_say() {
    let engine = serving(|_| {});
    let mut client = engine.client();
    let mut body = json!({"prompt": "bana mika", "echo": true, "logprobs": 0, "max_tokens": 3,
        "ignore_eos": true});
    let whole = post(&mut client, "/v1/completions", &body).json();
    let choice = &whole["choices"][0];
    let text = choice["text"].as_str().unwrap();
    let places = |choice: &Value| -> Vec<(usize, String)> {
        let told = &choice["logprobs"];
        let offsets = told["text_offset"].as_array().unwrap().iter();
        let words = told["tokens"].as_array().unwrap().iter();
        let place = |(at, word): (&Value, &Value)| {
            (usize::try_from(at.as_u64().unwrap()).unwrap(), word.as_str().unwrap().to_owned())
        };
        offsets.zip(words).map(place).collect()
    };
    let seen = places(choice);
    assert_eq!(seen.len(), 5);
    for (at, word) in &seen {
        assert!(text[*at..].trim_start().starts_with(word), "{word} is not at {at} of {text:?}");
    }
    body["stream"] = json!(true);
    let (events, _) = post(&mut client, "/v1/completions", &body).events();
    let streamed: Vec<_> = events.iter().flat_map(|event| places(&event["choices"][0])).collect();
    assert_eq!(streamed, seen);
    body["stream"] = json!(false);
    body["max_tokens"] = json!(0);
    let alone = post(&mut client, "/v1/completions", &body).json();
    assert_eq!(alone["choices"][0]["text"], "bana mika");
    assert_eq!(places(&alone["choices"][0]), seen[..2]);
}

#[test]
fn what_would_be_too_much_work_is_refused() {
    let engine = serving(|options| options.serve.step = Some(Duration::from_micros(50)));
    let mut client = engine.client();
    let prompt = vec!["word"; 250].join(" ");
    let mut body = json!({"prompt": prompt, "n": 16_384, "max_tokens": 1});
    let all = post(&mut client, "/v1/completions", &body).json();
    assert_eq!(all["choices"].as_array().unwrap().len(), 16_384);
    body["prompt"] = json!(vec!["word"; 2_000].join(" "));
    assert_eq!(post(&mut client, "/v1/completions", &body).status, 400);
    let search = json!({"prompt": "a", "n": 16_384, "max_tokens": 1_000, "ignore_eos": true,
        "stop": ["x"]});
    assert_eq!(post(&mut client, "/v1/completions", &search).status, 400);
    let models = client.get("/v1/models").json();
    let longest = models["data"][0]["max_model_len"].as_u64().unwrap();
    let full = json!({ "input": vec![20; usize::try_from(longest).unwrap()] });
    assert_eq!(post(&mut client, "/v1/embeddings", &full).status, 400);
    client.send(b"POST /tokenize HTTP/1.1\r\ncontent-length: 67108864\r\n\r\n");
    assert_eq!(client.response().status, 413);
}

#[test]
fn a_full_queue_is_told_in_the_words_of_each_api() {
    let limits = Limits { waiting: 0, ..Limits::default() };
    let engine = serving(|options| options.limits = limits);
    let mut client = engine.client();
    let body = r#"{"messages":[{"role":"user","content":"one"}],"max_tokens":3}"#;
    let message = client.request("POST", "/v1/messages", body);
    assert_eq!((message.status, &message.json()["type"]), (503, &json!("error")));
    let chat = client.request("POST", "/v1/chat/completions", body);
    assert_eq!((chat.status, &chat.json()["error"]["code"]), (503, &json!(503)));
}
