//! Streams of APIs that no capture shows, written after their documentation, and hostile ones of
//! every API.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod documented;
mod hostile;
use crate::support;
mod wire;

use inferometer_load::answer::{Answer, AnswerReader, Failure, Framing};
use inferometer_model::endpoint::Api;

fn read_in_parts(api: Api, framing: Framing, parts: &[&[u8]]) -> (Answer, Result<(), Failure>) {
    let mut reader = AnswerReader::new(api, framing).keeping_text();
    let mut ended = Ok(());
    for part in parts {
        ended = ended.and_then(|()| reader.push(part, 0));
    }
    let ended = ended.and_then(|()| reader.end(0));
    (reader.into_answer(), ended)
}

fn read(api: Api, stream: &str) -> (Answer, Result<(), Failure>) {
    read_in_parts(api, framing(api), &[stream.as_bytes()])
}

fn framing(api: Api) -> Framing {
    if api.facts().streams_lines {
        Framing::JsonLines
    } else if api.generates() {
        Framing::EventStream
    } else {
        Framing::Whole
    }
}

fn whole(api: Api, body: &str) -> (Answer, Result<(), Failure>) {
    read_in_parts(api, Framing::Whole, &[body.as_bytes()])
}

fn events(documents: &[&str]) -> String {
    let texts: Vec<String> = documents.iter().map(|json| format!("data:{json}\n\n")).collect();
    texts.concat()
}

fn named(events: &[(&str, &str)]) -> String {
    let text = |(name, json): &(&str, &str)| format!("event: {name}\ndata: {json}\n\n");
    events.iter().map(text).collect::<Vec<_>>().concat()
}

fn tokens(answer: &Answer) -> Vec<Option<u32>> {
    answer.events.iter().map(|event| event.tokens).collect()
}

fn outputs(answer: &Answer) -> usize {
    answer.events.iter().filter(|event| event.is_output()).count()
}

fn finish(answer: &Answer) -> &str {
    let [finish] = answer.finishes.as_slice() else { panic!("{:?}", answer.finishes) };
    finish.reason.name()
}
