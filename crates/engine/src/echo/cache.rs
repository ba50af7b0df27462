//! Answers that were built once, by what they depend on.

use std::collections::HashMap;
use std::rc::Rc;

use crate::clock::{Clock, Moment};
use crate::faults::Fault;
use crate::framing::Write;
use crate::generation::Dialect;
use crate::generation::{
    AnswerJson, Detail, Identity, Schedule, StreamShape, TokenStream, Words, whole_answer,
};
use crate::options::{EngineOptions, Pacing};

/// All that an answer depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) dialect: Dialect,
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
    let json = AnswerJson::new(key.dialect, &identity, 0, Detail::default());
    let words = Words::new(options.seed, 0);
    if !key.stream {
        return Built::Whole(Rc::new(whole_answer(&json, words, key.tokens, None).bytes));
    }
    let pacing = Pacing { tokens: key.tokens, ..options.pacing };
    let shape = StreamShape::new(key.dialect, &pacing, key.usage, options.faults);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_built_once() {
        let options = EngineOptions::default();
        let mut cache = Cache::default();
        let key = Key { dialect: Dialect::Chat, stream: true, usage: false, tokens: 3 };
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
