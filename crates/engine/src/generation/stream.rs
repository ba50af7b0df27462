//! A streamed answer as a sequence of writes: which events, in which order, and which together.
//!
//! One write is one HTTP chunk. The next write is built right after the last one was made, so that
//! at its due moment only the system call is left to do.

use super::json::{AnswerJson, TokenEvent};
use super::schedule::Schedule;
use super::words::{WordId, Words};
use crate::faults::{Fault, Faults};
use crate::framing::{BYTE_ORDER_MARK, Framing, LAST_CHUNK, SEVERAL, Write};
use crate::generation::Dialect;
use crate::http::STREAM_HEAD;
use crate::options::Pacing;

/// What a stream consists of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamShape {
    pub(crate) dialect: Dialect,
    pub(crate) tokens: u32,
    pub(crate) tokens_per_event: u32,
    pub(crate) events_per_write: u32,
    /// Usage has an event of its own.
    pub(crate) usage_event: bool,
    pub(crate) faults: Faults,
}

impl StreamShape {
    pub(crate) fn new(
        dialect: Dialect,
        pacing: &Pacing,
        include_usage: bool,
        faults: Faults,
    ) -> Self {
        let held_back = faults.contains(Fault::SeveralEvents) && pacing.events_per_write == 1;
        Self {
            dialect,
            tokens: pacing.tokens,
            tokens_per_event: pacing.tokens_per_write,
            events_per_write: if held_back { SEVERAL } else { pacing.events_per_write },
            usage_event: include_usage && !faults.contains(Fault::UsageOnLastChoice),
            faults,
        }
    }
}

/// A streamed answer; what of it has been built is not kept.
#[derive(Debug)]
pub(crate) struct TokenStream {
    shape: StreamShape,
    framing: Framing,
    json: AnswerJson,
    schedule: Schedule,
    words: Words,
    stage: Stage,
    head_built: bool,
    tokens_built: u32,
    /// Reused for the JSON of every event.
    event: Vec<u8>,
    /// Reused for the words of every event.
    event_words: Vec<WordId>,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The `comments` fault: one leaves ahead of the first token.
    EarlyComment,
    /// The `role-first` fault.
    EarlyRole,
    /// The role, together with the first token.
    Role,
    Tokens,
    Usage,
    Done,
    LastChunk,
    Over,
}

impl TokenStream {
    pub(crate) fn new(
        shape: StreamShape,
        json: AnswerJson,
        schedule: Schedule,
        words: Words,
    ) -> Self {
        Self {
            framing: Framing::with(shape.faults),
            stage: Stage::first(&shape),
            shape,
            json,
            schedule,
            words,
            head_built: false,
            tokens_built: 0,
            event: Vec::new(),
            event_words: Vec::new(),
        }
    }

    /// Builds the next write, or says that there is none.
    pub(crate) fn next_write(&mut self, write: &mut Write) -> bool {
        write.clear();
        match self.stage {
            Stage::Over => return false,
            Stage::LastChunk => {
                write.raw(LAST_CHUNK);
                self.stage = Stage::Over;
                return true;
            }
            Stage::EarlyComment
            | Stage::EarlyRole
            | Stage::Role
            | Stage::Tokens
            | Stage::Usage
            | Stage::Done => {}
        }
        self.add_head(write);
        while self.stage != Stage::LastChunk {
            let leaves = self.add(write);
            self.stage = self.following();
            if leaves {
                break;
            }
        }
        write.close_chunk();
        true
    }

    /// The head leaves together with the first bytes of the body.
    fn add_head(&mut self, write: &mut Write) {
        if self.head_built {
            return;
        }
        self.head_built = true;
        write.raw(STREAM_HEAD);
        if self.shape.faults.contains(Fault::Bom) {
            write.payload(BYTE_ORDER_MARK);
        }
    }

    /// Adds what the stage stands for; true if the write must not wait for more.
    fn add(&mut self, write: &mut Write) -> bool {
        self.event.clear();
        match self.stage {
            Stage::EarlyComment => {
                self.framing.comment(write);
                return true;
            }
            Stage::EarlyRole => {
                self.json.bare_role(&mut self.event);
                self.add_event(write, 0);
                return true;
            }
            Stage::Role => {
                self.json.role(&mut self.event);
                self.add_event(write, 0);
                return false;
            }
            Stage::Tokens => self.add_tokens(write),
            Stage::Usage => {
                self.json.usage(&mut self.event, self.tokens_built);
                self.add_event(write, 0);
            }
            Stage::Done => self.framing.done_event(write),
            Stage::LastChunk | Stage::Over => return true,
        }
        self.shape.events_per_write as usize <= write.events()
    }

    fn add_tokens(&mut self, write: &mut Write) {
        let left = self.shape.tokens - self.tokens_built;
        let count = self.shape.tokens_per_event.min(left);
        self.event_words.clear();
        for _ in 0..count {
            self.event_words.push(self.words.next());
            write.due = Some(self.schedule.next());
        }
        self.tokens_built += count;
        let is_last = self.tokens_built == self.shape.tokens;
        let event = TokenEvent {
            words: &self.event_words,
            tokens_so_far: self.tokens_built,
            is_last,
            with_usage: is_last && self.shape.faults.contains(Fault::UsageOnLastChoice),
        };
        self.json.tokens(&mut self.event, &event);
        self.add_event(write, count);
    }

    fn add_event(&self, write: &mut Write, tokens: u32) {
        self.framing.json_event(write, &self.event, self.json.seam(), tokens);
    }

    fn following(&self) -> Stage {
        let shape = &self.shape;
        let done =
            if shape.faults.contains(Fault::NoDone) { Stage::LastChunk } else { Stage::Done };
        match self.stage {
            Stage::EarlyComment => Stage::after_comment(shape),
            Stage::EarlyRole | Stage::Role => Stage::Tokens,
            Stage::Tokens if self.tokens_built < shape.tokens => Stage::Tokens,
            Stage::Tokens if shape.usage_event => Stage::Usage,
            Stage::Tokens | Stage::Usage => done,
            Stage::Done => Stage::LastChunk,
            Stage::LastChunk | Stage::Over => Stage::Over,
        }
    }
}

impl Stage {
    fn first(shape: &StreamShape) -> Self {
        if shape.faults.contains(Fault::Comments) {
            return Self::EarlyComment;
        }
        Self::after_comment(shape)
    }

    fn after_comment(shape: &StreamShape) -> Self {
        match shape.dialect {
            Dialect::Chat if shape.faults.contains(Fault::RoleFirst) => Self::EarlyRole,
            Dialect::Chat => Self::Role,
            Dialect::Completions => Self::Tokens,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::json::{Detail, Identity};
    use super::*;
    use crate::clock::Moment;

    /// One write, in short.
    #[derive(Debug, PartialEq)]
    struct Brief {
        due_ns: Option<u64>,
        events: usize,
        tokens: u32,
    }

    fn brief(due_ns: u64, events: usize, tokens: u32) -> Brief {
        Brief { due_ns: Some(due_ns), events, tokens }
    }

    fn follow_up(events: usize) -> Brief {
        Brief { due_ns: None, events, tokens: 0 }
    }

    fn writes(dialect: Dialect, pacing: &Pacing, faults: &[Fault]) -> Vec<Brief> {
        let faults = faults.iter().copied().collect();
        let shape = StreamShape::new(dialect, pacing, true, faults);
        let identity = Identity { id: 1, created_s: 1, model: "m" };
        let json = AnswerJson::new(dialect, &identity, 1, Detail::default());
        let schedule = Schedule::new(Moment::from_ns(0), pacing, 0, 0);
        let mut stream = TokenStream::new(shape, json, schedule, Words::new(0, 0));
        let mut write = Write::default();
        let mut briefs = Vec::new();
        while stream.next_write(&mut write) {
            let tokens = write.marks.iter().map(|mark| mark.tokens).sum();
            let due_ns = write.due.map(Moment::ns);
            briefs.push(Brief { due_ns, events: write.events(), tokens });
        }
        briefs
    }

    fn pacing(tokens: u32) -> Pacing {
        let (ttft, gap) = (Duration::from_nanos(100), Duration::from_nanos(10));
        Pacing { ttft, gap, tokens, ..Pacing::default() }
    }

    #[test]
    fn the_role_shares_the_first_write_and_the_ending_is_three_writes() {
        assert_eq!(
            writes(Dialect::Chat, &pacing(2), &[]),
            [brief(100, 2, 1), brief(110, 1, 1), follow_up(1), follow_up(1), follow_up(0)]
        );
    }

    #[test]
    fn an_event_of_several_tokens_is_due_with_its_last() {
        let pacing = Pacing { tokens_per_write: 3, ..pacing(4) };
        assert_eq!(
            writes(Dialect::Completions, &pacing, &[]),
            [brief(120, 1, 3), brief(130, 1, 1), follow_up(1), follow_up(1), follow_up(0)]
        );
    }

    #[test]
    fn events_held_back_leave_when_the_last_of_them_is_due() {
        assert_eq!(
            writes(Dialect::Completions, &pacing(6), &[Fault::SeveralEvents]),
            [brief(130, 4, 4), brief(150, 4, 2), follow_up(0)]
        );
    }

    #[test]
    fn early_parts_wait_for_nothing() {
        assert_eq!(
            writes(Dialect::Chat, &pacing(1), &[Fault::Comments, Fault::RoleFirst, Fault::NoDone]),
            [follow_up(0), follow_up(1), brief(100, 1, 1), follow_up(1), follow_up(0)]
        );
    }

    #[test]
    fn usage_on_the_last_choice_has_no_event_of_its_own() {
        assert_eq!(
            writes(Dialect::Chat, &pacing(1), &[Fault::UsageOnLastChoice]),
            [brief(100, 2, 1), follow_up(1), follow_up(0)]
        );
    }
}
