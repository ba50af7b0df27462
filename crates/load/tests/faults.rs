//! What goes wrong on the wire, and the one outcome that each fault must have.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::sync::Arc;
use std::time::Duration;

use inferometer_load::target::Credentials;
use inferometer_load::{SystemClock, Target, probe};
use inferometer_model::Clock;
use inferometer_model::Content;
use inferometer_model::endpoint::Api;
use inferometer_model::observations::Connections;
use inferometer_model::outcome::{Cause, Outcome, Stage};
use inferometer_model::record::Event;
use inferometer_model::spec::Limits;
use inferometer_model::{RequestRecord, Secret};

use support::{Scripted, Step, target_with};

pub(crate) const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                           transfer-encoding: chunked\r\n\r\n";
pub(crate) const TOKEN: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
pub(crate) const FINISH: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
pub(crate) const DONE: &str = "data: [DONE]\n\n";

pub(crate) fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// A chunked stream of these parts, one chunk each, without its final chunk.
pub(crate) fn stream(parts: &[&str]) -> String {
    parts.iter().fold(STREAM_HEAD.to_owned(), |text, part| text + &chunk(part))
}

pub(crate) fn whole_stream(parts: &[&str]) -> String {
    stream(parts) + "0\r\n\r\n"
}

pub(crate) fn write(text: &str) -> Step {
    Step::Write(text.as_bytes().to_vec())
}

pub(crate) fn short_limits() -> Limits {
    Limits {
        connect: Duration::from_secs(5),
        first_token: Duration::from_millis(300),
        idle: Duration::from_millis(300),
        total: Duration::from_secs(20),
        drain: Duration::from_secs(1),
    }
}

fn attempt(script: Vec<Step>) -> RequestRecord {
    let server = Scripted::serve(vec![script]);
    let target = target_with(server.address, Api::Chat, true, short_limits());
    probe(&target, SystemClock::new(), &Content::text("hello"), 8).unwrap().record
}

fn said(text: &str) -> RequestRecord {
    attempt(vec![write(text)])
}

#[track_caller]
pub(crate) fn assert_ended(
    record: &RequestRecord,
    outcome: Outcome,
    cause: impl Into<Option<Cause>>,
) {
    let ending = &record.ending;
    assert_eq!((ending.outcome, ending.cause), (outcome, cause.into()), "{ending:?}");
}

pub(crate) fn outputs(record: &RequestRecord) -> usize {
    record.events.iter().filter(|event| Event::is_output(event)).count()
}

/// Faults: 1.
#[test]
fn refused_connections_are_transport_errors() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let target = target_with(address, Api::Chat, true, short_limits());
    let record = probe(&target, SystemClock::new(), &Content::text("hello"), 8).unwrap().record;
    assert_ended(&record, Outcome::TransportError, Cause::Refused);
    assert_eq!(record.ending.stage, Stage::Connect);
    assert_eq!(record.sent, None);
}

/// Faults: 3, 4, 5.
#[test]
fn resets_keep_what_came_before_them() {
    let record = attempt(vec![Step::Reset]);
    assert_ended(&record, Outcome::TransportError, Cause::Reset);
    assert_eq!(record.ending.stage, Stage::Headers);

    let record = attempt(vec![write(STREAM_HEAD), Step::Reset]);
    assert_eq!(record.ending.outcome, Outcome::TransportError);
    assert_eq!(outputs(&record), 0);

    let record = attempt(vec![write(&stream(&[TOKEN, TOKEN, TOKEN])), Step::Reset]);
    assert_ended(&record, Outcome::TransportError, Cause::Reset);
    assert_eq!((record.ending.stage, outputs(&record)), (Stage::Stream, 3));
}

/// Faults: 6, 7.
#[test]
fn a_stream_that_just_ends_is_truncated() {
    let record = said(&whole_stream(&[TOKEN, TOKEN, TOKEN]));
    assert_ended(&record, Outcome::Truncated, Cause::NoFinishReason);
    assert_eq!(outputs(&record), 3);

    let record = said(&stream(&[TOKEN, FINISH, DONE]));
    assert_ended(&record, Outcome::Truncated, Cause::NoFinalChunk);
    assert!(record.done.seen, "[DONE] is not enough");

    let record = said(STREAM_HEAD);
    assert_ended(&record, Outcome::Truncated, Cause::NoFinalChunk);
}

/// Faults: 7.
#[test]
fn done_is_not_necessary() {
    let record = said(&whole_stream(&[TOKEN, FINISH]));
    assert_ended(&record, Outcome::Ok, None);
    assert!(!record.done.seen);
}

/// Faults: 63.
#[test]
fn an_answer_without_a_token_is_whole_and_has_no_output() {
    let record = said(&whole_stream(&[FINISH, DONE]));
    assert_ended(&record, Outcome::Ok, None);
    assert_eq!(outputs(&record), 0);
}

/// Faults: 8, 10, 45.
#[test]
fn silence_meets_the_limit_of_its_stage() {
    let record = attempt(vec![Step::Stall]);
    assert_ended(&record, Outcome::TimeoutFirstToken, None);

    let pings = chunk(": ping\n\n");
    let record = attempt(vec![write(&(STREAM_HEAD.to_owned() + &pings)), Step::Stall]);
    assert_ended(&record, Outcome::TimeoutFirstToken, None);
    assert_eq!(record.comments, 1);

    let record = attempt(vec![write(&stream(&[TOKEN])), Step::Stall]);
    assert_ended(&record, Outcome::TimeoutIdle, None);
    assert_eq!(outputs(&record), 1, "what came before the silence is kept");
}

/// A pause is a gap between two tokens, and no fault.
/// Faults: 9.
#[test]
fn a_pause_within_the_limit_is_one_long_gap() {
    let pause_ms = 150;
    let script = vec![
        write(&stream(&[TOKEN, TOKEN])),
        Step::Pause(pause_ms),
        write(&(chunk(TOKEN) + &chunk(TOKEN) + &chunk(FINISH) + "0\r\n\r\n")),
    ];
    let server = Scripted::serve(vec![script]);
    let target = target_with(server.address, Api::Chat, true, Limits::default());
    let record = probe(&target, SystemClock::new(), &Content::text("hello"), 8).unwrap().record;
    assert_ended(&record, Outcome::Ok, None);
    let arrivals: Vec<_> = record
        .events
        .iter()
        .filter(|event| event.is_output())
        .map(|event| record.reads[event.read as usize].at())
        .collect();
    let gaps = arrivals.windows(2).map(|pair| pair[1].since(pair[0]).unwrap());
    // The kernel stamps an arrival a little after the write that caused it returned.
    let long = gaps.filter(|gap| Duration::from_millis(pause_ms - 5) <= *gap);
    assert_eq!((arrivals.len(), long.count()), (4, 1));
}

/// A server that sends a byte now and then is alive, but not for ever.
/// Faults: 11.
#[test]
fn a_trickle_of_bytes_meets_the_limit_of_the_whole_answer() {
    let bytes = stream(&[TOKEN]) + &chunk(": still here\n").repeat(1_000);
    let trickle = bytes.bytes().flat_map(|byte| [Step::Write(vec![byte]), Step::Pause(1)]);
    let server = Scripted::serve(vec![trickle.collect()]);
    let limits = Limits { total: Duration::from_millis(400), ..Limits::default() };
    let target = target_with(server.address, Api::Chat, true, limits);
    let record = probe(&target, SystemClock::new(), &Content::text("hello"), 8).unwrap().record;
    assert_ended(&record, Outcome::TimeoutTotal, None);
    let took = record.ending.at.since(record.admitted).unwrap();
    assert!(limits.total <= took && took < limits.total * 10, "{took:?}");
}

/// What a network holds back and then delivers together is one arrival of several tokens.
/// Faults: 19, 41.
#[test]
fn tokens_that_come_in_clumps_are_all_there() {
    let clump = chunk(TOKEN).repeat(4);
    let script = vec![
        write(&(STREAM_HEAD.to_owned() + &clump)),
        Step::Pause(40),
        write(&(clump + &chunk(FINISH) + "0\r\n\r\n")),
    ];
    let record = attempt(script);
    assert_ended(&record, Outcome::Ok, None);
    let reads: Vec<u32> =
        record.events.iter().filter(|event| event.is_output()).map(|event| event.read).collect();
    assert_eq!(reads.len(), 8);
    assert!(reads.iter().collect::<std::collections::BTreeSet<_>>().len() <= 2, "{reads:?}");
}

/// Times that a server claims are its own matter.
/// Faults: 82.
#[test]
fn timestamps_of_the_server_are_not_used() {
    let future = TOKEN.replace("{\"choices\"", "{\"created\":99999999999,\"choices\"");
    assert_ne!(future, TOKEN);
    let head = STREAM_HEAD
        .replace("transfer-encoding", "date: Fri, 31 Dec 2199 23:59:59 GMT\r\ntransfer-encoding");
    let told = said(&(head + &chunk(&future) + &chunk(FINISH) + "0\r\n\r\n"));
    let silent = said(&whole_stream(&[TOKEN, FINISH]));
    assert_ended(&told, Outcome::Ok, None);
    assert_eq!(told.events, silent.events, "the facts are the same");
    let latest = SystemClock::new().now() + Duration::from_mins(10);
    assert!(told.ending.at < latest && told.reads.iter().all(|read| read.at() < latest));
}

/// Faults: 25, 26, 27, 28.
#[test]
fn statuses_have_their_outcomes_and_the_servers_words() {
    let answer = |status: &str| {
        let body = r#"{"error":{"message":"the words"}}"#;
        said(&format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ))
    };
    for (status, outcome) in [
        ("401 Unauthorized", Outcome::HttpError),
        ("404 Not Found", Outcome::HttpError),
        ("500 Internal Server Error", Outcome::HttpError),
        ("429 Too Many Requests", Outcome::Rejected),
        ("503 Service Unavailable", Outcome::Rejected),
    ] {
        let record = answer(status);
        assert_ended(&record, outcome, None);
        let message = record.ending.message.unwrap();
        assert!(message.starts_with(&status[..3]) && message.contains("the words"), "{message}");
    }
    let record = said("HTTP/1.1 302 Found\r\nlocation: http://x/\r\ncontent-length: 0\r\n\r\n");
    assert_ended(&record, Outcome::HttpError, Cause::Redirect);
}

/// Faults: 24, 30, 31.
#[test]
fn what_is_not_an_answer_is_a_protocol_error() {
    let ok_with = |headers: &str, body: &str| {
        said(&format!("HTTP/1.1 200 OK\r\n{headers}content-length: {}\r\n\r\n{body}", body.len()))
    };
    let record = ok_with("content-type: text/html\r\n", "<html><title>Log in</title>");
    assert_ended(&record, Outcome::ProtocolError, Cause::ContentType);
    let record = ok_with("content-type: text/event-stream\r\ncontent-encoding: gzip\r\n", "xx");
    assert_ended(&record, Outcome::ProtocolError, Cause::ContentEncoding);
    for coding in ["gzip", "gzip, chunked"] {
        let record = said(&format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: {coding}\r\n\r\n\
             0\r\n\r\n"
        ));
        assert_ended(&record, Outcome::ProtocolError, Cause::ContentEncoding);
    }
    let record = said("HTTP/1.1 204 No Content\r\n\r\n");
    assert_ended(&record, Outcome::ProtocolError, Cause::UnexpectedAnswer);
    assert_eq!(record.ending.message.as_deref(), Some("204 No Content"));
    let record = ok_with("content-type: application/json\r\n", "{\"object\":\"list\"}");
    assert_ended(&record, Outcome::ProtocolError, Cause::UnexpectedAnswer);
    let record = said(&(STREAM_HEAD.to_owned() + "zz\r\nxx\r\n"));
    assert_ended(&record, Outcome::ProtocolError, Cause::BadFraming);
    let record = said("SSH-2.0-OpenSSH_9.6\r\n\r\n");
    assert_ended(&record, Outcome::ProtocolError, Cause::Headers);
}

/// Faults: 32.
#[test]
fn headers_are_bounded() {
    let big = format!("HTTP/1.1 200 OK\r\nx-big: {}\r\n\r\n", "x".repeat(1 << 20));
    assert_ended(&said(&big), Outcome::ProtocolError, Cause::Headers);
    let many = "x-many: 1\r\n".repeat(10_000);
    assert_ended(
        &said(&format!("HTTP/1.1 200 OK\r\n{many}\r\n")),
        Outcome::ProtocolError,
        Cause::Headers,
    );
}

/// Faults: 33.
#[test]
fn informational_answers_are_skipped() {
    let early = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n";
    let record = said(&(early.to_owned() + &whole_stream(&[TOKEN, FINISH, DONE])));
    assert_ended(&record, Outcome::Ok, None);
    assert_eq!(record.head.unwrap().status, 200);
}

/// Faults: 47, 48, 49.
#[test]
fn errors_inside_a_stream_are_stream_errors() {
    for event in [
        "data: {\"error\":\"out of memory\"}\n\n",
        "data: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\n",
        "data: {\"choices\":[{\"index\":0,\"error\":{\"message\":\"out of memory\"}}]}\n\n",
        "event: error\ndata: {\"message\":\"out of memory\"}\n\n",
        "event: error\ndata: CUDA out of memory\n\n",
    ] {
        let record = said(&whole_stream(&[TOKEN, event, DONE]));
        assert_ended(&record, Outcome::StreamError, Cause::ErrorEvent);
        assert!(record.ending.message.unwrap().contains("out of memory"));
        assert_eq!(record.events.iter().filter(|event| event.is_output()).count(), 1);
    }
}

/// Faults: 50, 51, 52, 53, 54.
#[test]
fn hostile_events_are_refused_within_bounds() {
    let record = said(&whole_stream(&[TOKEN, "data: {\"choices\":[\n\n"]));
    assert_ended(&record, Outcome::ProtocolError, Cause::BadJson);
    let deep = format!("data: {}\n\n", "[".repeat(10_000));
    assert_ended(&said(&whole_stream(&[&deep])), Outcome::ProtocolError, Cause::JsonTooDeep);
    let line = format!("data: {}", "x".repeat(2 << 20));
    assert_ended(&said(&stream(&[&line])), Outcome::ProtocolError, Cause::LineTooLarge);
    let lines = format!("data: {}\n", "x".repeat(1 << 19)).repeat(20);
    assert_ended(&said(&stream(&[&lines])), Outcome::ProtocolError, Cause::EventTooLarge);
}

/// Faults: 29.
#[test]
fn a_body_shorter_than_promised_is_truncated() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n";
    let record = said(&format!("{head}{TOKEN}{FINISH}"));
    assert_ended(&record, Outcome::Truncated, Cause::NoFinalChunk);

    let head = head.replace("9999", &TOKEN.len().to_string());
    let record = said(&format!("{head}{TOKEN}{FINISH}"));
    assert_ended(&record, Outcome::Truncated, Cause::NoFinishReason);
}

#[test]
fn a_whole_answer_where_a_stream_was_asked_is_read_as_one() {
    let body = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#;
    let record = said(&format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    ));
    assert_ended(&record, Outcome::Ok, None);
    assert_eq!(outputs(&record), 1);
}

#[test]
fn every_read_is_stamped_and_moments_are_in_order() {
    let record = said(&whole_stream(&[TOKEN, FINISH, DONE]));
    assert_ended(&record, Outcome::Ok, None);
    let sent = record.sent.unwrap();
    assert!(record.intended <= record.admitted && record.admitted <= sent);
    for read in &record.reads {
        assert!(sent <= read.user && read.at() <= read.user && read.turn <= read.user);
        if cfg!(target_os = "linux") {
            assert!(read.kernel.is_some(), "loopback gives kernel stamps");
        }
    }
    assert_eq!(record.ending.at, record.reads.last().unwrap().at());
}

#[test]
fn a_server_that_closes_after_its_answer_is_found_out() {
    let answer = whole_stream(&[TOKEN, FINISH, DONE]);
    let connections = |script: Vec<Step>| {
        let server = Scripted::serve(vec![script]);
        let target = target_with(server.address, Api::Chat, true, short_limits());
        probe(&target, SystemClock::new(), &Content::text("hello"), 8).unwrap().connections
    };
    assert_eq!(connections(vec![write(&answer)]), Connections::New);
    assert_eq!(connections(vec![write(&answer), Step::NextRequest]), Connections::Reuse);
}

#[test]
fn an_error_status_keeps_its_outcome_although_its_body_stalls() {
    let head = "HTTP/1.1 503 Service Unavailable\r\ntransfer-encoding: chunked\r\n\r\n";
    let server =
        Scripted::serve(vec![vec![write(&(head.to_owned() + &chunk("busy"))), Step::Stall]]);
    let target = target_with(server.address, Api::Chat, true, Limits::default());
    let record = probe(&target, SystemClock::new(), &Content::text("hello"), 8).unwrap().record;
    assert_ended(&record, Outcome::Rejected, None);
    assert!(record.ending.message.unwrap().contains("busy"));
}

/// Faults: 12.
#[test]
fn a_request_on_a_connection_that_is_just_being_closed_fails_and_is_not_repeated() {
    let answer = whole_stream(&[TOKEN, FINISH, DONE]);
    let closing = vec![write(&answer), Step::NextRequest, Step::Reset];
    let server = Scripted::serve(vec![closing, vec![write(&answer)]]);
    let target = target_with(server.address, Api::Chat, true, short_limits());
    let records = support::drive_all(&target, 3);
    assert_ended(&records[0], Outcome::Ok, None);
    let broken = &records[1];
    assert!(broken.connection.unwrap().reused);
    // A machine that is too busy to notice at once cannot say what the server knew.
    let at_once = broken.ending.at <= broken.sent.unwrap() + Duration::from_millis(20);
    let cause = if at_once { Cause::StalePool } else { Cause::Reset };
    assert_ended(broken, Outcome::TransportError, cause);
    assert_ended(&records[2], Outcome::Ok, None);
}

/// Faults: 12.
#[test]
fn a_reset_long_after_sending_is_not_a_stale_connection() {
    let answer = whole_stream(&[TOKEN, FINISH, DONE]);
    // The second request is taken, thought about, and broken.
    let script = vec![write(&answer), Step::NextRequest, Step::Pause(100), Step::Reset];
    let server = Scripted::serve(vec![script]);
    let records =
        support::drive_all(&target_with(server.address, Api::Chat, true, short_limits()), 2);
    assert_ended(&records[0], Outcome::Ok, None);
    assert!(records[1].connection.unwrap().reused);
    assert_ended(&records[1], Outcome::TransportError, Cause::Reset);
}

/// Faults: 111.
#[test]
fn what_a_server_echoes_is_redacted_and_bounded() {
    let key = Secret::new("sk-0123456789-abcdefghij");
    let echoed = format!(
        "data: {{\"model\":\"{0}\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"a\"}},\
         \"finish_reason\":\"{0}\"}}]}}\n\n",
        key.expose()
    );
    let long = "m".repeat(100_000);
    let long_name = echoed.replace(key.expose(), &long);
    for stream in [whole_stream(&[&echoed]), whole_stream(&[&long_name])] {
        let server = Scripted::serve(vec![vec![write(&stream)]]);
        let target = target_with(server.address, Api::Chat, true, short_limits());
        let credentials = Credentials::new(Some(&key), &[]).unwrap();
        let target = Arc::new(Target { credentials, ..(*target).clone() });
        let record = probe(&target, SystemClock::new(), &Content::text("hello"), 8).unwrap().record;
        assert_ended(&record, Outcome::Ok, None);
        let kept = format!("{record:?}");
        assert!(!kept.contains("0123456789-abc"), "{kept}");
        assert!(kept.len() < 5_000, "names are bounded");
    }
    // A key that stands across the bound of a kept message must not survive in part.
    let body = format!("{}{}", "x".repeat(4_090), key.expose());
    let reply = format!(
        "HTTP/1.1 500 Internal Server Error\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let server = Scripted::serve(vec![vec![write(&reply)]]);
    let target = target_with(server.address, Api::Chat, true, short_limits());
    let credentials = Credentials::new(Some(&key), &[]).unwrap();
    let target = Arc::new(Target { credentials, ..(*target).clone() });
    let record = probe(&target, SystemClock::new(), &Content::text("hello"), 8).unwrap().record;
    let message = record.ending.message.unwrap();
    assert!(message.len() <= 4_096 && !message.contains("sk-"), "{}", &message[4_000..]);
}
