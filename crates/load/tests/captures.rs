//! Raw replies of real servers, replayed over a real socket and compared with what an independent
//! reader made of them (`captures/make_expected.py`).

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use inferometer_load::answer::{AnswerReader, Framing};
use inferometer_load::{SystemClock, probe};
use inferometer_model::Content;
use inferometer_model::RequestRecord;
use inferometer_model::endpoint::Api;
use inferometer_model::record::{Carried, Event};
use serde::Deserialize;

use support::{Scripted, Step, target};

#[derive(Deserialize)]
struct Expected {
    api: String,
    stream: bool,
    status: u16,
    texts: Vec<String>,
    reasoning: Vec<String>,
    finish_reasons: Vec<Option<String>>,
    usage: Option<ExpectedUsage>,
    data_events: usize,
    comments: u32,
    output_events: usize,
    silent_events: usize,
    role_events: usize,
    marked_tokens: Option<u32>,
    done: bool,
    outcome: String,
    error_message: Option<String>,
}

#[derive(Deserialize)]
struct ExpectedUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/captures")
}

/// Every capture of an answer, with what it should say.
fn captures() -> Vec<(String, Vec<u8>, Expected)> {
    let expected = std::fs::read(folder().join("expected.json")).unwrap();
    let expected: BTreeMap<String, Expected> = serde_json::from_slice(&expected).unwrap();
    expected
        .into_iter()
        .filter(|(_, expected)| expected.api != "models")
        .map(|(name, expected)| {
            let raw = std::fs::read(folder().join(format!("{name}.raw"))).unwrap();
            (name, raw, expected)
        })
        .collect()
}

fn api(expected: &Expected) -> Api {
    Api::all().find(|api| api.name() == expected.api).unwrap()
}

fn replay(script: Vec<Step>, expected: &Expected) -> RequestRecord {
    let server = Scripted::serve(vec![script]);
    let target = target(server.address, api(expected), expected.stream);
    probe(&target, SystemClock::new(), &Content::text("hello"), 24).unwrap().record
}

fn count(record: &RequestRecord, of: impl Fn(&Event) -> bool) -> usize {
    record.events.iter().filter(|event| of(event)).count()
}

fn check(name: &str, record: &RequestRecord, expected: &Expected) {
    let ending = &record.ending;
    assert_eq!(ending.outcome.key(), expected.outcome, "{name}: {ending:?}");
    assert_eq!(record.head.unwrap().status, expected.status, "{name}");
    if let Some(words) = &expected.error_message {
        let message = ending.message.as_deref().unwrap_or_default();
        assert!(message.contains(words.as_str()), "{name}: {message:?} lacks {words:?}");
    }
    let usage = record.usage.map(|usage| (usage.prompt_tokens, usage.completion_tokens));
    let wanted = expected.usage.as_ref();
    let wanted = wanted.map(|usage| (usage.prompt_tokens, usage.completion_tokens));
    assert_eq!(usage, wanted, "{name}: usage");
    for (choice, reason) in expected.finish_reasons.iter().enumerate() {
        let finish = record.finishes.iter().find(|finish| usize::from(finish.choice) == choice);
        let found = finish.map(|finish| finish.reason.name());
        assert_eq!(found, reason.as_deref(), "{name}: finish of choice {choice}");
    }
    if expected.stream {
        check_stream(name, record, expected);
    }
}

fn check_stream(name: &str, record: &RequestRecord, expected: &Expected) {
    assert_eq!(record.comments, expected.comments, "{name}: comments");
    assert_eq!(record.done.seen, expected.done, "{name}: [DONE]");
    assert_eq!(count(record, Event::is_output), expected.output_events, "{name}: output events");
    assert_eq!(count(record, Event::is_silent), expected.silent_events, "{name}: silent events");
    let is_role_only = |event: &Event| event.carried.contains(Carried::ROLE) && !event.is_output();
    assert_eq!(count(record, is_role_only), expected.role_events, "{name}: role events");
    let marked: Vec<u32> = record.events.iter().filter_map(|event| event.tokens).collect();
    let marked = (!marked.is_empty()).then(|| marked.iter().sum());
    assert_eq!(marked, expected.marked_tokens, "{name}: tokens that the server marked");
}

#[test]
fn real_answers_are_understood_whole() {
    let captures = captures();
    assert!(68 <= captures.len(), "the fixtures are there");
    for (name, raw, expected) in captures {
        check(&name, &replay(vec![Step::Write(raw)], &expected), &expected);
    }
}

/// Faults: 39, 40.
#[test]
fn real_answers_are_understood_byte_by_byte() {
    for (name, raw, expected) in captures() {
        let bytes = raw.iter().map(|byte| Step::Write(vec![*byte])).collect();
        check(&name, &replay(bytes, &expected), &expected);
    }
}

/// The text itself, through the answer reader alone, at several read sizes.
#[test]
fn real_streams_decode_to_their_text() {
    for (name, raw, expected) in captures().into_iter().filter(|(_, _, e)| e.status == 200) {
        let body = dechunked(&raw);
        let framing = if expected.stream { Framing::EventStream } else { Framing::Whole };
        for size in [1, 7, 64, body.len().max(1)] {
            let mut reader = AnswerReader::new(api(&expected), framing).keeping_text();
            let mut ended = Ok(());
            for part in body.chunks(size) {
                ended = ended.and_then(|()| reader.push(part, 0));
            }
            let _ = ended.and_then(|()| reader.end(0));
            let answer = reader.into_answer();
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let texts: Vec<String> = answer.texts.iter().map(|t| text(&t.content)).collect();
            let reasoning: Vec<String> = answer.texts.iter().map(|t| text(&t.reasoning)).collect();
            assert_eq!(texts, expected.texts, "{name} in reads of {size}");
            assert_eq!(reasoning, expected.reasoning, "{name} in reads of {size}");
            // Other APIs have events that say nothing worth keeping.
            let keeps_all = matches!(api(&expected), Api::Chat | Api::Completions);
            if expected.stream && expected.outcome == "ok" && keeps_all {
                let mut events: Vec<u32> = Vec::new();
                events.extend(answer.events.iter().map(|event| event.read));
                assert!(expected.data_events <= events.len(), "{name}: an event was lost");
            }
        }
    }
}

/// llama.cpp sends its times and what came from its cache; the raw text is the other reader.
#[test]
fn the_times_of_real_answers_are_those_in_their_text() {
    let mut found = 0;
    for (name, raw, expected) in captures().into_iter().filter(|(_, _, e)| e.status == 200) {
        let body = dechunked(&raw);
        let framing = if expected.stream { Framing::EventStream } else { Framing::Whole };
        let mut reader = AnswerReader::new(api(&expected), framing);
        let _ = reader.push(&body, 0).and_then(|()| reader.end(0));
        let answer = reader.into_answer();
        let text = String::from_utf8_lossy(&body).into_owned();
        let stated = |key: &str| {
            let rest = text.rsplit_once(&format!("\"{key}\":"))?.1;
            let end = rest.find([',', '}'])?;
            rest[..end].parse::<f64>().ok()
        };
        let ms = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
        let report = answer.server.unwrap_or_default();
        let near = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (Some(one), Some(other)) => (one - other).abs() < 1e-6,
            (one, other) => one == other,
        };
        assert!(near(ms(report.prefill), stated("prompt_ms")), "{name}: {report:?}");
        assert!(near(ms(report.decode), stated("predicted_ms")), "{name}: {report:?}");
        assert_eq!((report.queue, report.dropped), (None, 0), "{name}");
        if let Some(cached) = stated("cache_n") {
            found += 1;
            let usage = answer.usage.and_then(|usage| usage.cached_tokens);
            assert!(near(usage.map(|tokens| tokens as f64), Some(cached)), "{name}");
        }
    }
    assert!(3 <= found, "captures with times are there");
}

/// The body after the headers, without chunk framing if it has any.
fn dechunked(raw: &[u8]) -> Vec<u8> {
    let head_end = raw.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8_lossy(&raw[..head_end]).to_ascii_lowercase();
    let mut rest = &raw[head_end..];
    if !head.contains("transfer-encoding: chunked") {
        return rest.to_vec();
    }
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        let data = &rest[end + 2..];
        body.extend_from_slice(&data[..size.min(data.len())]);
        rest = data.get(size + 2..).unwrap_or_default();
    }
    body
}
