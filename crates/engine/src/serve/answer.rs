//! An answer on its way out: what is put into bytes, and how far those have got.

use std::rc::Rc;

use super::api::{AnswerWriter, EmbeddingRequest, Finish, GenerationRequest, StopFound};
use super::flights::FlightKey;
use super::vocabulary::END_OF_SEQUENCE;
use crate::clock::Moment;
use crate::scheduler::blocks::token;
use crate::scheduler::{RequestEnd, StopRules};
use crate::service::NextWrite;
use crate::truth::{Entry, Passed};

/// An answer that is being written.
#[derive(Debug)]
pub(crate) struct ServeAnswer {
    pub(crate) flight: FlightKey,
    pub(crate) entry: Entry,
    pub(crate) form: Form,
    pub(crate) write: TokenWrite,
    /// All bytes have been made.
    pub(crate) is_last: bool,
}

/// The content of the answer, and its form.
#[derive(Debug)]
pub(crate) enum Form {
    Generated(Box<Generated>),
    Embeddings { ask: EmbeddingRequest, id: u64, created_s: u64 },
}

/// Text, token by token or in one piece.
#[derive(Debug)]
pub(crate) struct Generated {
    pub(crate) ask: Rc<GenerationRequest>,
    pub(crate) wording: AnswerWriter,
    pub(crate) choices: Vec<ChoicePlan>,
}

/// What decides the tokens of one choice, and its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChoicePlan {
    pub(crate) seed: u64,
    pub(crate) eos_at: Option<u32>,
    /// Only where it ends the answer before anything else does.
    pub(crate) stop: Option<StopFound>,
    pub(crate) max_tokens: u32,
}

/// The bytes of one `write()`.
#[derive(Debug, Default)]
pub(crate) struct TokenWrite {
    pub(crate) bytes: Vec<u8>,
    pub(crate) due: Option<Moment>,
    /// Tokens that are readable once the first `tokens_end` bytes are there.
    tokens: u32,
    tokens_end: usize,
    sent: usize,
}

impl TokenWrite {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.due = None;
        self.tokens = 0;
        self.tokens_end = 0;
        self.sent = 0;
    }

    /// The bytes so far hold so many tokens.
    pub(crate) fn mark_tokens(&mut self, tokens: u32) {
        self.tokens = tokens;
        self.tokens_end = self.bytes.len();
    }

    /// What the socket has not taken yet.
    pub(crate) fn rest(&self) -> NextWrite<'_> {
        NextWrite { bytes: &self.bytes[self.sent..], due: self.due }
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.sent == self.bytes.len()
    }

    /// Moves past `bytes` that the socket has taken.
    pub(crate) fn pass(&mut self, bytes: usize) -> Passed {
        let start = self.sent;
        self.sent += bytes;
        let tokens_end_here = start < self.tokens_end && self.tokens_end <= self.sent;
        Passed {
            events: self.events_between(start, self.sent),
            tokens: if tokens_end_here { self.tokens } else { 0 },
            is_start: start == 0,
        }
    }

    /// An event ends with an empty line, and nothing else in a stream has one: line ends inside
    /// JSON are escaped, and those of HTTP are longer.
    fn events_between(&self, start: usize, end: usize) -> u32 {
        let with_one_before = &self.bytes[start.saturating_sub(1)..end];
        let ends = with_one_before.windows(2).filter(|pair| *pair == b"\n\n").count();
        u32::try_from(ends).unwrap_or(u32::MAX)
    }
}

impl ChoicePlan {
    /// Tokens with a text, if no stop string ends the answer.
    pub(crate) fn words_at_most(&self) -> u32 {
        self.eos_at.map_or(self.max_tokens, |end| self.max_tokens.min(end - 1))
    }

    pub(crate) fn rules(&self, min_tokens: u32) -> StopRules {
        let stop_at = self.stop.map(|stop| stop.tokens);
        StopRules { min_tokens, eos_at: self.eos_at, stop_at, max_tokens: self.max_tokens }
    }

    /// The token at `index`.
    pub(crate) fn id_at(&self, index: u32) -> u32 {
        if self.eos_at == Some(index + 1) { END_OF_SEQUENCE } else { token(self.seed, index) }
    }

    /// Why an answer of so many tokens is over.
    pub(crate) fn finish(&self, end: RequestEnd, tokens: u32) -> Finish {
        match (end, self.stop) {
            (RequestEnd::Length, _) => Finish::Length,
            (RequestEnd::Abort, _) => Finish::Abort,
            (RequestEnd::Stop, Some(stop)) if self.eos_at != Some(tokens) => stop.finish,
            (RequestEnd::Stop, _) => Finish::EndOfSequence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_write_count_the_events_and_tokens_that_end_in_them() {
        let mut write = TokenWrite::default();
        write.bytes.extend_from_slice(b"9\r\ndata: a\n\n\r\n");
        write.mark_tokens(1);
        let token_end = write.bytes.len();
        write.bytes.extend_from_slice(b"9\r\ndata: b\n\n\r\n");
        assert_eq!(write.pass(11), Passed { events: 0, tokens: 0, is_start: true });
        assert_eq!(write.pass(1), Passed { events: 1, tokens: 0, is_start: false });
        let rest = token_end - 12;
        assert_eq!(write.pass(rest), Passed { events: 0, tokens: 1, is_start: false });
        assert_eq!(write.pass(14), Passed { events: 1, tokens: 0, is_start: false });
        assert!(write.is_sent());
    }
}
