//! The truth: it agrees with what a client sees, stays within its bounds and notes who left.

use inferometer_engine::truth::{Api, Ended, RequestTruth};
use inferometer_engine::{EngineOptions, Limits, Mode};

use crate::client::{Engine, at_once, chat_body, request_text};

fn sum(
    request: &RequestTruth,
    of: impl Fn(&inferometer_engine::truth::WriteTruth) -> u32,
) -> usize {
    request.writes.iter().map(|write| of(write) as usize).sum()
}

#[expect(clippy::disallowed_methods, reason = "the test is a client with a clock of its own")]
fn client_now_ns() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
    now.tv_sec().cast_unsigned() * 1_000_000_000 + now.tv_nsec().cast_unsigned()
}

#[test]
fn it_counts_what_the_client_received() {
    let engine = Engine::instant();
    let mut client = engine.client();
    let fields = r#""stream":true,"max_tokens":9,"stream_options":{"include_usage":true},
        "paced":{"tokens_per_write":2,"faults":["comments"]}"#;
    let streamed = client.chat(fields);
    let whole = client.complete(r#""max_tokens":7"#);
    let truth = engine.truth_at_rest();
    assert_eq!(truth.clock, "CLOCK_MONOTONIC");
    let [first, second] = truth.requests.as_slice() else { panic!("{truth:?}") };

    assert_eq!((first.ordinal, first.api, first.streamed), (0, Api::Chat, true));
    assert_eq!((first.prompt_tokens, first.tokens, first.ended), (3, 9, Ended::Complete));
    assert_eq!(sum(first, |write| write.bytes), streamed.wire_bytes);
    assert_eq!(sum(first, |write| write.events), crate::sse::decode(&streamed.body).len());
    assert_eq!(sum(first, |write| write.tokens), 9);
    // The chunks, and the empty one that ends the body.
    assert_eq!(first.writes.len(), streamed.chunks.len() + 1);

    assert_eq!((second.ordinal, second.api, second.streamed), (1, Api::Completions, false));
    assert_eq!(sum(second, |write| write.bytes), whole.wire_bytes);
    assert_eq!((sum(second, |write| write.events), sum(second, |write| write.tokens)), (0, 7));
}

#[test]
fn no_write_is_made_before_it_is_due_and_moments_are_in_order() {
    let engine = Engine::instant();
    let mut client = engine.client();
    let fields = r#""stream":true,"max_tokens":20,"paced":{"ttft_ms":3,"gap_ms":1,"jitter":0.5}"#;
    let sent = client_now_ns();
    client.chat(fields);
    let read = client_now_ns();
    let truth = engine.truth_at_rest();
    let request = &truth.requests[0];
    let received = request.received_kernel_ns.unwrap_or(request.received_user_ns);
    let error = request.received_mapping_error_ns.unwrap_or(0);
    assert!(sent <= received + error && received <= request.received_user_ns + error);
    assert!(request.writes.windows(2).all(|pair| pair[0].after_ns <= pair[1].before_ns));
    let mut previous_due = received;
    for write in &request.writes {
        assert!(write.before_ns <= write.after_ns);
        if let Some(due) = write.due_ns {
            assert!(due <= write.before_ns, "{write:?}");
            let (low, high) = if previous_due == received {
                (1_500_000, 4_500_000)
            } else {
                (500_000, 1_500_000)
            };
            assert!((low..=high).contains(&(due - previous_due)), "{write:?} after {previous_due}");
            previous_due = due;
        }
    }
    let last = request.writes.last().unwrap();
    assert!(last.before_ns <= read, "the client cannot have read what was not written");
    let lateness = truth.lateness;
    assert_eq!((lateness.count, lateness.held_up_by_client), (20, 0));
    assert!(lateness.p50_ns <= lateness.p99_ns && lateness.p99_ns <= lateness.max_ns);
}

#[test]
fn an_answer_in_one_piece_is_due_with_its_last_token() {
    let engine = Engine::instant();
    engine.client().chat(r#""max_tokens":5,"paced":{"ttft_ms":2,"gap_ms":1}"#);
    let truth = engine.truth_at_rest();
    let request = &truth.requests[0];
    let received = request.received_kernel_ns.unwrap_or(request.received_user_ns);
    assert_eq!(request.writes[0].due_ns, Some(received + 6_000_000));
}

#[test]
#[cfg(target_os = "linux")]
fn the_kernel_says_when_a_request_came() {
    let engine = Engine::instant();
    let mut client = engine.client();
    // The kernel starts stamping a moment after it was first asked to.
    for _ in 0..10_000 {
        client.request("DELETE", "/truth", "");
        let sent = client_now_ns();
        client.chat(r#""max_tokens":1"#);
        let truth = engine.truth();
        let request = &truth.requests[0];
        if let Some(kernel) = request.received_kernel_ns {
            let error = request.received_mapping_error_ns.unwrap();
            assert!(sent <= kernel + error && kernel <= request.received_user_ns + error);
            return;
        }
    }
    panic!("no request was stamped");
}

#[test]
fn a_client_that_leaves_is_noted_and_its_request_ends() {
    let engine = Engine::instant();
    let mut client = engine.client();
    let body = chat_body(r#""stream":true,"max_tokens":1000,"paced":{"gap_ms":1000}"#);
    client.send(request_text("POST", "/v1/chat/completions", &body).as_bytes());
    client.take_through(b"\n\n");
    assert_eq!(engine.truth().requests[0].ended, Ended::Running);
    client.leave();
    let truth = engine.truth_at_rest();
    assert_eq!(truth.requests[0].ended, Ended::Aborted);
    assert_eq!(sum(&truth.requests[0], |write| write.tokens), 1);
}

#[test]
fn a_client_that_leaves_before_the_first_token_is_noted_too() {
    let engine = Engine::instant();
    let mut client = engine.client();
    let body = chat_body(r#""stream":true,"paced":{"ttft_ms":9000}"#);
    client.send(request_text("POST", "/v1/chat/completions", &body).as_bytes());
    engine.truth_when(|truth| truth.requests.len() == 1);
    client.leave();
    let truth = engine.truth_at_rest();
    assert_eq!((truth.requests[0].ended, truth.requests[0].writes.len()), (Ended::Aborted, 0));
}

#[test]
fn a_client_that_does_not_read_splits_writes_and_is_not_blamed_on_the_engine() {
    let engine = Engine::instant();
    let mut client = engine.client();
    let body = chat_body(r#""stream":true,"max_tokens":100000,"paced":{"events_per_write":100}"#);
    client.send(request_text("POST", "/v1/chat/completions", &body).as_bytes());
    // Between two looks at the truth the engine visits every connection that can go on; when
    // nothing was written meanwhile, the socket is full.
    let mut written = 0;
    engine.truth_when(|truth| {
        let Some(request) = truth.requests.first() else { return false };
        let before = std::mem::replace(&mut written, sum(request, |write| write.bytes));
        0 < before && before == written
    });
    let response = client.response();
    let truth = engine.truth_at_rest();
    let request = &truth.requests[0];
    assert_eq!(request.ended, Ended::Complete);
    assert_eq!(sum(request, |write| write.bytes), response.wire_bytes);
    assert_eq!(sum(request, |write| write.events), crate::sse::decode(&response.body).len());
    assert_eq!(sum(request, |write| write.tokens), 100_000);
    assert!(response.chunks.len() + 1 < request.writes.len(), "some write was taken in parts");
    assert!(0 < truth.lateness.held_up_by_client);
}

#[test]
fn the_request_id_is_kept_with_the_request() {
    let engine = Engine::instant();
    let mut client = engine.client();
    let body = chat_body(r#""max_tokens":1"#);
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nX-Request-ID: run-7/12\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    client.send((head + &body).as_bytes());
    assert_eq!(client.response().status, 200);
    assert_eq!(engine.truth_at_rest().requests[0].request_id.as_deref(), Some("run-7/12"));
}

#[test]
fn what_does_not_fit_is_dropped_and_counted_and_deleting_makes_room() {
    let limits = Limits { requests_kept: 2, writes_kept: 5, ..Limits::default() };
    let options = EngineOptions { limits, pacing: at_once(), ..EngineOptions::new(Mode::Paced) };
    let engine = Engine::start(options);
    let mut client = engine.client();
    for _ in 0..3 {
        // Two tokens, [DONE], the last chunk.
        assert_eq!(client.complete(r#""stream":true,"max_tokens":2"#).events().0.len(), 2);
    }
    let truth = engine.truth_at_rest();
    assert_eq!((truth.requests.len(), truth.requests_dropped), (2, 1));
    let kept: usize = truth.requests.iter().map(|request| request.writes.len()).sum();
    assert_eq!((kept, truth.writes_dropped), (5, 7));

    assert_eq!(client.request("DELETE", "/truth", "").status, 200);
    client.complete(r#""stream":true,"max_tokens":2"#);
    let truth = engine.truth_at_rest();
    assert_eq!((truth.requests.len(), truth.requests_dropped, truth.writes_dropped), (1, 0, 0));
    assert_eq!((truth.requests[0].ordinal, truth.requests[0].writes.len()), (3, 4));
}

#[test]
fn requests_that_cannot_be_carried_out_leave_no_truth() {
    let engine = Engine::instant();
    assert_eq!(engine.client().chat(r#""max_tokens":-1"#).status, 400);
    assert_eq!(engine.truth().requests.len(), 0);
}
