//! Every framing fault: its bytes are as announced, and a careful reader still gets everything.

use inferometer_engine::{EngineOptions, Fault, Mode};
use serde_json::Value;

use crate::client::{Engine, Response, at_once};

/// Streams four tokens with the faults, over the chat API.
fn stream(faults: &[Fault]) -> Response {
    let names: Vec<String> = faults.iter().map(|fault| format!("\"{fault}\"")).collect();
    let fields = format!(
        r#""stream":true,"max_tokens":4,"stream_options":{{"include_usage":true}},"paced":{{"faults":[{}]}}"#,
        names.join(",")
    );
    let engine = Engine::instant();
    let response = engine.client().chat(&fields);
    assert_eq!(response.status, 200);
    response
}

fn completion_tokens(events: &[Value]) -> Vec<u64> {
    events.iter().filter_map(|event| event["usage"]["completion_tokens"].as_u64()).collect()
}

#[test]
fn all_faults_but_those_of_content_leave_the_events_as_they_are() {
    let (plain, _) = stream(&[]).events();
    for &fault in Fault::ALL {
        let (events, done) = stream(&[fault]).events();
        assert_eq!(done, fault != Fault::NoDone, "{fault}");
        let role_or_usage = [Fault::RoleFirst, Fault::UsageOnLastChoice].contains(&fault);
        if !role_or_usage {
            let timeless =
                |events: &[Value]| events.iter().map(|e| e["choices"].clone()).collect::<Vec<_>>();
            assert_eq!(timeless(&events), timeless(&plain), "{fault}");
        }
    }
}

#[test]
fn byte_wise_writes_one_byte_at_a_time() {
    let engine = Engine::instant();
    let fields = r#""stream":true,"max_tokens":2,"paced":{"faults":["byte-wise"]}"#;
    let response = engine.client().chat(fields);
    assert_eq!(response.events().0.len(), 3);
    let truth = engine.truth_at_rest();
    let writes = &truth.requests[0].writes;
    assert!(writes.iter().all(|write| write.bytes == 1));
    assert_eq!(writes.len(), response.wire_bytes);
    let ends = writes.iter().filter(|write| write.events == 1).count();
    assert_eq!(ends, 4, "role, two tokens and [DONE] each end in a byte of their own");
}

#[test]
fn byte_wise_takes_apart_an_answer_in_one_piece_too() {
    let engine = Engine::instant();
    let response = engine.client().chat(r#""max_tokens":2,"paced":{"faults":["byte-wise"]}"#);
    let truth = engine.truth_at_rest();
    let writes = &truth.requests[0].writes;
    assert_eq!(writes.len(), response.wire_bytes);
    assert_eq!(writes.iter().map(|write| write.tokens).sum::<u32>(), 2);
    assert_eq!(writes.last().unwrap().tokens, 2);
}

#[test]
fn several_events_come_in_one_chunk() {
    let response = stream(&[Fault::SeveralEvents]);
    let per_chunk: Vec<usize> =
        response.chunks.iter().map(|chunk| crate::sse::decode(chunk).len()).collect();
    // The role and three tokens; then the last token, usage and [DONE].
    assert_eq!(per_chunk, [4, 3]);
}

#[test]
fn line_ends_are_as_asked() {
    let crlf = stream(&[Fault::Crlf]);
    assert!(crlf.text().ends_with("data: [DONE]\r\n\r\n"));
    assert_eq!(crlf.text().matches('\n').count(), crlf.text().matches("\r\n").count());
    let cr = stream(&[Fault::Cr]);
    assert!(cr.text().ends_with("data: [DONE]\r\r"));
    assert!(!cr.text().contains('\n'));
}

#[test]
fn comments_go_ahead_of_every_event_and_one_leaves_at_once() {
    let response = stream(&[Fault::Comments]);
    assert_eq!(response.chunks[0], b": keep-alive\n\n");
    // The early one, and one for each of role, four tokens, usage and [DONE].
    assert_eq!(response.text().matches(": keep-alive\n\n").count(), 8);
    assert_eq!(response.text().matches(": keep-alive\n\ndata: ").count(), 7);
}

#[test]
fn early_parts_leave_long_before_the_first_token() {
    let engine = Engine::instant();
    let mut client = engine.client();
    let fields = r#""stream":true,"paced":{"ttft_ms":9000,"faults":["comments","role-first"]}"#;
    let body = crate::client::chat_body(fields);
    let text = crate::client::request_text("POST", "/v1/chat/completions", &body);
    client.send(text.as_bytes());
    client.take_through(b"\r\n\r\n");
    client.take_through(b": keep-alive\n\n\r\n");
    let role = String::from_utf8(client.take_through(b"\n\n\r\n")).unwrap();
    assert!(role.contains(": keep-alive"), "{role}");
    assert!(role.contains(r#""delta":{"role":"assistant"}"#), "{role}");
    let truth = engine.truth();
    assert_eq!(truth.requests[0].writes.len(), 2);
    assert!(truth.requests[0].writes.iter().all(|write| write.due_ns.is_none()));
}

#[test]
fn the_role_comes_alone_and_first() {
    let response = stream(&[Fault::RoleFirst]);
    let (events, _) = response.events();
    let delta = events[0]["choices"][0]["delta"].as_object().unwrap();
    assert_eq!(delta.len(), 1);
    assert_eq!(crate::sse::decode(&response.chunks[0]).len(), 1);
    assert_eq!(events[1]["choices"][0]["delta"].get("role"), None);
}

#[test]
fn usage_rides_on_the_last_choice_asked_for_or_not() {
    let (events, _) = stream(&[Fault::UsageOnLastChoice]).events();
    assert_eq!(completion_tokens(&events), [4]);
    let last = events.last().unwrap();
    assert_eq!(last["choices"][0]["finish_reason"], "length");
    assert_eq!(last["usage"]["completion_tokens"], 4);

    let engine = Engine::instant();
    let fields = r#""stream":true,"max_tokens":4,"paced":{"faults":["usage-on-last-choice"]}"#;
    let (events, _) = engine.client().chat(fields).events();
    assert_eq!(completion_tokens(&events), [4]);
}

#[test]
fn without_done_the_stream_just_ends() {
    assert!(!stream(&[Fault::NoDone]).text().contains("[DONE]"));
}

#[test]
fn an_event_over_two_lines_is_one_event() {
    let response = stream(&[Fault::MultiLine]);
    let (events, _) = response.events();
    assert_eq!(response.text().matches("data: ").count(), 2 * events.len() + 1);
}

#[test]
fn the_byte_order_mark_is_the_first_thing_in_the_body() {
    let response = stream(&[Fault::Bom]);
    assert!(response.body.starts_with(b"\xef\xbb\xbfdata: "));
    assert_eq!(response.text().matches('\u{feff}').count(), 1);
}

#[test]
fn faults_add_up() {
    let all_legal = [
        Fault::ByteWise,
        Fault::SeveralEvents,
        Fault::Crlf,
        Fault::Comments,
        Fault::RoleFirst,
        Fault::UsageOnLastChoice,
        Fault::MultiLine,
        Fault::Bom,
    ];
    let (events, done) = stream(&all_legal).events();
    assert!(done);
    assert_eq!(events.len(), 5);
    assert_eq!(completion_tokens(&events), [4]);
}

#[test]
fn the_options_faults_apply_where_a_request_names_none() {
    let faults = [Fault::NoDone].into_iter().collect();
    let options = EngineOptions { faults, pacing: at_once(), ..EngineOptions::new(Mode::Paced) };
    let engine = Engine::start(options);
    let mut client = engine.client();
    assert!(!client.chat(r#""stream":true"#).events().1);
    assert!(client.chat(r#""stream":true,"paced":{"faults":[]}"#).events().1);
}
