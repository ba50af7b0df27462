//! The shapes of answers, held against those that were captured from vLLM 0.32.

use std::rc::Rc;

use serde_json::{Value, json};

use super::super::{Serving, parse};
use super::{AnswerWriter, Finish, Identity, Usage};
use crate::serve::vocabulary::Vocabulary;
use crate::truth::Api;

mod completion;
mod others;

const IDENTITY: Identity<'static> = Identity { id: 0xab, created_s: 17, model: "tiny" };
const USAGE: Usage =
    Usage { prompt_tokens: 5, completion_tokens: 3, cached_tokens: 0, report: None };

fn wording(api: Api, body: &Value) -> AnswerWriter {
    let vocabulary = Vocabulary::standard();
    let serving = Serving { model: "tiny", max_model_len: 100, vocabulary };
    let ask = parse(api, body.to_string().as_bytes(), &serving).unwrap();
    AnswerWriter::new(Rc::new(ask), &IDENTITY, vocabulary)
}

fn chat(more: &Value) -> AnswerWriter {
    let mut body = json!({"messages": [{"role": "user", "content": "a b"}], "stream": true});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    wording(Api::Chat, &body)
}

fn completion(more: &Value) -> AnswerWriter {
    let mut body = json!({"prompt": "bana mika", "stream": true});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    wording(Api::Completions, &body)
}

fn ids() -> Vec<u32> {
    Vocabulary::standard().encode("zuzu bado mika")
}

/// The bytes of an answer of three tokens in every choice.
fn streamed(mut wording: AnswerWriter, finish: Finish) -> Vec<u8> {
    let mut out = Vec::new();
    wording.opening(&mut out);
    for (index, id) in (0..).zip(ids()) {
        for choice in 0..wording.ask.choices() {
            let finish = (index == 2).then_some(finish);
            wording.piece(choice, &[(index, id)], finish, &mut out);
        }
    }
    wording.closing(&USAGE, &mut out);
    out
}

/// Names and texts of the events; every chunk must hold exactly one.
fn events(bytes: &[u8]) -> Vec<(String, String)> {
    let text = str::from_utf8(bytes).unwrap();
    let (head, mut rest) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("transfer-encoding: chunked"), "{head}");
    let mut events = Vec::new();
    loop {
        let (length, behind) = rest.split_once("\r\n").unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        let (chunk, behind) = behind.split_at(length);
        rest = behind.strip_prefix("\r\n").unwrap();
        if length == 0 {
            assert_eq!(rest, "");
            return events;
        }
        let event = chunk.strip_suffix("\n\n").unwrap();
        let (name, data) = match event.split_once('\n') {
            Some((name, data)) => (name.strip_prefix("event: ").unwrap(), data),
            None => ("", event),
        };
        events.push((name.to_owned(), data.strip_prefix("data: ").unwrap().to_owned()));
    }
}

/// The events' JSON; `[DONE]` is checked and left out.
fn values(bytes: &[u8]) -> Vec<Value> {
    let mut texts: Vec<String> = events(bytes).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts.pop().unwrap(), "[DONE]");
    texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

fn whole(wording: &AnswerWriter, finish: Finish) -> Value {
    let one = (ids(), finish);
    let answered = vec![one; usize::from(wording.ask.choices())];
    let reply = wording.whole(&answered, &USAGE);
    let text = str::from_utf8(&reply).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
    serde_json::from_str(body).unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}
