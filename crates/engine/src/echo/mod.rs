//! The echo mode: answers as fast as one core can, to find the floor and the ceiling of a client.
//!
//! Answers are built once for each kind of request and then only copied to sockets. A body is not
//! parsed; a few keys are looked for in its bytes. No truth is kept.

use std::collections::HashMap;
use std::io::BufRead;
use std::rc::Rc;

use crate::clock::{Clock, Moment};
use crate::faults::Fault;
use crate::framing::Write;
use crate::generation::{
    AnswerJson, Detail, Identity, Schedule, StreamShape, TokenStream, Words, whole_answer,
};
use crate::http::Request;
use crate::options::{EngineOptions, Pacing};
use crate::server::Housekeeping;
use crate::server::{AfterAnswer, Context, Next, NextWrite, Reply, Service, Written};
use crate::truth::Api;

/// All that an answer depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) api: Api,
    pub(crate) stream: bool,
    pub(crate) usage: bool,
    pub(crate) tokens: u32,
}

/// An answer, ready for the socket.
#[derive(Clone, Debug)]
pub(crate) enum Built {
    Whole(Rc<Vec<u8>>),
    Stream(Rc<Script>),
}

/// A streamed answer and where its writes end.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ends: Vec<usize>,
}

/// Answers built so far, up to a total size.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    built: HashMap<Key, Built>,
    bytes: usize,
}

impl Cache {
    pub(crate) fn answer(&mut self, key: Key, options: &EngineOptions, clock: &Clock) -> Built {
        if let Some(built) = self.built.get(&key) {
            return built.clone();
        }
        let built = build(key, options, clock.wall_seconds());
        self.bytes += built.bytes();
        // Starting over is crude, but a client with that many kinds of request is none of ours.
        if CACHE_BYTES < self.bytes {
            self.built.clear();
            self.bytes = built.bytes();
        }
        self.built.insert(key, built.clone());
        built
    }
}

impl Built {
    fn bytes(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.len(),
            Self::Stream(script) => script.bytes.len() + script.ends.len() * size_of::<usize>(),
        }
    }
}

fn build(key: Key, options: &EngineOptions, created_s: u64) -> Built {
    let identity = Identity { id: 0, created_s, model: options.model_id() };
    // The prompt is not looked at, so its length is not known.
    let json = AnswerJson::new(key.api, &identity, 0, Detail::default());
    let words = Words::new(options.seed, 0);
    if !key.stream {
        return Built::Whole(Rc::new(whole_answer(&json, words, key.tokens, None).bytes));
    }
    let pacing = Pacing { tokens: key.tokens, ..options.pacing };
    let shape = StreamShape::new(key.api, &pacing, key.usage, options.faults);
    // Due moments are ignored: every write follows the one before it.
    let schedule = Schedule::new(Moment::from_ns(0), &pacing, options.seed, 0);
    let mut stream = TokenStream::new(shape, json, schedule, words);
    let byte_wise = options.faults.contains(Fault::ByteWise);
    let mut script = Script { bytes: Vec::new(), ends: Vec::new() };
    let mut write = Write::default();
    while stream.next_write(&mut write) {
        let start = script.bytes.len();
        script.bytes.extend_from_slice(&write.bytes);
        let end = script.bytes.len();
        let first_end = if byte_wise { start + 1 } else { end };
        script.ends.extend(first_end..=end);
    }
    Built::Stream(Rc::new(script))
}

const CACHE_BYTES: usize = 256 << 20;

/// What a body asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScannedBody {
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    pub(crate) max_tokens: Option<u32>,
}

/// Looks through a body from quote to quote.
pub(crate) fn scan(body: &[u8]) -> ScannedBody {
    let mut asked = ScannedBody::default();
    let mut rest = body;
    // On a slice this is the C library's memchr, and it cannot fail.
    while rest.skip_until(b'"').is_ok_and(|skipped| 0 < skipped) {
        // The first letter spares most strings of a body all comparisons.
        match rest.first() {
            Some(b's') => asked.stream |= is_true(value_of(rest, b"stream\"")),
            Some(b'i') => asked.include_usage |= is_true(value_of(rest, b"include_usage\"")),
            Some(b'm') => {
                let value = value_of(rest, b"max_tokens\"")
                    .or_else(|| value_of(rest, b"max_completion_tokens\""));
                asked.max_tokens = value.and_then(whole_number).or(asked.max_tokens);
            }
            Some(_) | None => {}
        }
    }
    asked
}

/// What follows `key` and its colon, if `rest` starts with them.
fn value_of<'a>(rest: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let after_key = rest.strip_prefix(key)?.trim_ascii_start();
    Some(after_key.strip_prefix(b":")?.trim_ascii_start())
}

fn is_true(value: Option<&[u8]>) -> bool {
    value.is_some_and(|value| value.starts_with(b"true"))
}

/// The digits at the start of `value`; a sign, as in -1, gives nothing.
fn whole_number(value: &[u8]) -> Option<u32> {
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    str::from_utf8(&value[..digits]).ok()?.parse().ok()
}

/// Answers as fast as it can.
#[derive(Debug)]
pub(crate) struct Echo {
    cache: Cache,
    /// Its ledger stays empty but for refused connections.
    house: Housekeeping,
}

/// A streamed answer that is being written.
#[derive(Debug)]
pub(crate) struct EchoAnswer {
    script: Rc<Script>,
    sent: usize,
    writes_made: usize,
}

impl Echo {
    pub(crate) fn new(options: EngineOptions) -> Self {
        Self { cache: Cache::default(), house: Housekeeping::new(options) }
    }

    fn generate(&mut self, api: Api, body: &[u8], clock: &Clock) -> Reply<EchoAnswer> {
        let asked = scan(body);
        let options = &self.house.options;
        let tokens = asked.max_tokens.unwrap_or(options.pacing.tokens);
        let key = Key {
            api,
            stream: asked.stream,
            // An answer in one piece always reports usage.
            usage: asked.stream && asked.include_usage,
            tokens: tokens.clamp(1, options.limits.tokens),
        };
        match self.cache.answer(key, options, clock) {
            Built::Whole(bytes) => Reply::Plain(bytes),
            Built::Stream(script) => {
                Reply::Generated(EchoAnswer { script, sent: 0, writes_made: 0 })
            }
        }
    }
}

impl Service for Echo {
    type Answer = EchoAnswer;

    const KEEPS_TRUTH: bool = false;

    fn answer(&mut self, request: &Request<'_>, context: Context<'_>) -> Reply<EchoAnswer> {
        match self.house.route(request, context.clock) {
            Ok(api) => self.generate(api, request.body, context.clock),
            Err(reply) => Reply::Plain(reply),
        }
    }

    fn next<'a>(&mut self, answer: &'a mut EchoAnswer) -> Next<'a> {
        match answer.script.ends.get(answer.writes_made) {
            Some(&end) => {
                Next::Write(NextWrite { bytes: &answer.script.bytes[answer.sent..end], due: None })
            }
            None => Next::End,
        }
    }

    fn wrote(&mut self, answer: &mut EchoAnswer, written: &Written) {
        answer.sent += written.bytes;
        if answer.script.ends.get(answer.writes_made) == Some(&answer.sent) {
            answer.writes_made += 1;
        }
    }

    fn completed(&mut self, _answer: EchoAnswer) -> AfterAnswer {
        AfterAnswer::Keep
    }

    fn abandoned(&mut self, _answer: EchoAnswer, _clock: &Clock) {}

    fn refused_connection(&mut self) {
        self.house.ledger.refused_connection();
    }
}

#[cfg(test)]
mod cache_tests {
    use super::*;

    #[test]
    fn an_answer_is_built_once() {
        let options = EngineOptions::default();
        let mut cache = Cache::default();
        let key = Key { api: Api::Chat, stream: true, usage: false, tokens: 3 };
        let clock = Clock::start();
        let mut answer = || cache.answer(key, &options, &clock);
        let (first, second) = (answer(), answer());
        let (Built::Stream(first), Built::Stream(second)) = (first, second) else {
            panic!("a stream was asked for");
        };
        assert!(Rc::ptr_eq(&first, &second));
        // Three tokens, the [DONE] and the last chunk.
        assert_eq!(first.ends.len(), 5);
        assert_eq!(first.ends.last(), Some(&first.bytes.len()));
    }
}

#[cfg(test)]
mod scan_tests {
    use super::*;

    #[test]
    fn keys_are_found_with_and_without_white_space() {
        let compact = br#"{"max_tokens":16,"stream":true,"stream_options":{"include_usage":true}}"#;
        let spaced = br#"{ "max_completion_tokens" : 16 , "stream" : true,
            "stream_options": {"include_usage": true}}"#;
        let all = ScannedBody { stream: true, include_usage: true, max_tokens: Some(16) };
        assert_eq!(scan(compact), all);
        assert_eq!(scan(spaced), all);
    }

    #[test]
    fn a_prompt_that_quotes_a_request_is_not_one() {
        let body = br#"{"prompt":"say \"stream\":true, \"max_tokens\": 9","role":"stream"}"#;
        assert_eq!(scan(body), ScannedBody::default());
    }

    #[test]
    fn what_is_not_asked_for_is_not_found() {
        assert_eq!(scan(br#"{"stream":false,"max_tokens":null}"#), ScannedBody::default());
        assert_eq!(scan(br#"{"max_tokens":-1,"stream"#), ScannedBody::default());
        assert_eq!(scan(b""), ScannedBody::default());
    }
}
