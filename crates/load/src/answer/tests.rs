//! The answer reader on streams and bodies made by hand.

use super::*;

fn read_stream(stream: &str) -> (Answer, Result<(), Failure>) {
    let mut reader = AnswerReader::new(Api::Chat, Framing::EventStream);
    let ended = reader.push(stream.as_bytes(), 0).and_then(|()| reader.end(0));
    (reader.into_answer(), ended)
}

fn event(json: &str) -> String {
    format!("data: {json}\n\n")
}

/// Faults: 61.
#[test]
fn growing_usage_counts_the_tokens_of_each_event() {
    let chunk = |text: &str, total: u32, finish: &str| {
        event(&format!(
            r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":{finish}}}],"usage":{{"completion_tokens":{total}}}}}"#
        ))
    };
    let stream = chunk("", 0, "null") + &chunk("a", 1, "null") + &chunk("b", 4, "\"length\"");
    let (answer, ended) = read_stream(&stream);
    assert_eq!(ended, Ok(()));
    let tokens: Vec<_> = answer.events.iter().map(|event| event.tokens).collect();
    assert_eq!(tokens, [Some(0), Some(1), Some(3)]);
}

/// Faults: 61.
#[test]
fn usage_on_the_finish_alone_is_a_total() {
    let stream = event(r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#)
        + &event(
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}],"usage":{"completion_tokens":24}}"#,
        );
    let (answer, ended) = read_stream(&stream);
    assert_eq!(ended, Ok(()));
    assert_eq!(answer.events[1].tokens, None);
    assert_eq!(answer.usage.unwrap().completion_tokens, Some(24));
}

#[test]
fn done_without_a_finish_reason_is_truncated() {
    let stream = event(r#"{"choices":[{"delta":{"content":"a"}}]}"#) + "data: [DONE]\n\n";
    let (answer, ended) = read_stream(&stream);
    assert!(answer.done.seen);
    assert_eq!(ended, Err(Failure::new(Outcome::Truncated, Cause::NoFinishReason)));
}

/// Faults: 58.
#[test]
fn every_choice_that_appeared_must_finish() {
    let stream =
        event(r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}"#)
            + &event(r#"{"choices":[{"index":1,"delta":{"content":"b"}}]}"#);
    assert_eq!(read_stream(&stream).1.unwrap_err().outcome, Outcome::Truncated);
}

/// Faults: 48.
#[test]
fn an_error_event_keeps_what_came_before_it() {
    let stream =
        event(r#"{"choices":[{"delta":{"content":"a"}}]}"#) + "event: error\ndata: {\"x\":1}\n\n";
    let (answer, ended) = read_stream(&stream);
    assert_eq!(ended.unwrap_err().outcome, Outcome::StreamError);
    assert_eq!(answer.events.iter().filter(|event| event.is_output()).count(), 1);
}

/// Faults: 68.
#[test]
fn data_after_done_is_ignored_and_counted() {
    let chunk = event(r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#);
    let (answer, ended) = read_stream(&format!("{chunk}data: [DONE]\n\n{chunk}data: [DONE]\n\n"));
    assert_eq!(ended, Ok(()));
    assert_eq!(answer.done, DoneMark { seen: true, events_after: 1 });
    assert_eq!(answer.finishes.len(), 1);
}

#[test]
fn an_answer_without_choices_is_not_an_answer() {
    let mut reader = AnswerReader::new(Api::Chat, Framing::Whole);
    reader.push(br#"{"object":"list","data":[]}"#, 0).unwrap();
    assert_eq!(reader.end(0), Err(Failure::new(Outcome::ProtocolError, Cause::UnexpectedAnswer)));
}
