//! Journal entries as a run against a busy server makes them.

use std::fmt;
use std::time::Duration;

use inferometer_model::journal::StartedRequest;
use inferometer_model::record::{
    Carried, ConnectionFacts, DoneMark, Event, Finish, FinishReason, Read, RequestedLengths,
    ResponseHead, Usage,
};
use inferometer_model::{Ending, JournalEntry, Moment, RequestId, RequestRecord};

/// How the server answered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// In one piece.
    OneShot,
    /// In 256 events, each with a read of its own.
    Streamed,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneShot => "one-shot",
            Self::Streamed => "streamed",
        })
    }
}

const TOKENS: u32 = 256;
const GAP: Duration = Duration::from_millis(10);
/// Between the requests: moments grow as they do in a run, and their bytes with them.
const INTERVAL: Duration = Duration::from_millis(1);
/// A minute into the run.
const FIRST: Moment = Moment::from_nanos(60_000_000_000);

impl Answer {
    /// What the journal gets of one request, after its start.
    pub(crate) fn ended(self, id: u32) -> JournalEntry {
        let started = StartedRequest {
            id: RequestId(id.into()),
            intended: FIRST + INTERVAL * id,
            admitted: FIRST + INTERVAL * id,
            asked: RequestedLengths {
                input_tokens: 512,
                output_tokens: TOKENS,
                part: 0,
                turn: 0,
                ..RequestedLengths::default()
            },
        };
        let sent = started.admitted + Duration::from_micros(50);
        let reads = self.reads(sent);
        let at = reads.last().map_or(sent, Read::at);
        JournalEntry::Ended(Box::new(RequestRecord {
            sent: Some(sent),
            connection: Some(ConnectionFacts { ordinal: 7, reused: true, dial: None }),
            head: Some(ResponseHead { status: 200, read: 0, streamed: self.is_streamed() }),
            events: (0..).zip(&reads).map(|(read, _)| self.event(read)).collect(),
            reads,
            usage: Some(Usage {
                prompt_tokens: Some(512),
                completion_tokens: Some(TOKENS.into()),
                cached_tokens: None,
            }),
            finishes: vec![Finish { choice: 0, reason: FinishReason::Length }],
            done: DoneMark { seen: self.is_streamed(), events_after: 0 },
            ..RequestRecord::without_answer(&started, Ending::ok(at))
        }))
    }

    fn is_streamed(self) -> bool {
        matches!(self, Self::Streamed)
    }

    fn reads(self, sent: Moment) -> Vec<Read> {
        let count = if self.is_streamed() { TOKENS } else { 1 };
        let read = |position: u32| {
            let kernel = sent + GAP * (1 + position);
            Read {
                kernel: Some(kernel),
                user: kernel + Duration::from_micros(40),
                turn: kernel + Duration::from_micros(30),
                bytes: 240,
                drained: true,
            }
        };
        (0..count).map(read).collect()
    }

    fn event(self, read: u32) -> Event {
        let (carried, text_bytes) = match self {
            Self::OneShot => (Carried::CONTENT | Carried::FINISH | Carried::USAGE, 5 * TOKENS),
            Self::Streamed => (Carried::CONTENT, 5),
        };
        Event { read, choice: 0, carried: Carried::CHOICE | carried, tokens: None, text_bytes }
    }
}
