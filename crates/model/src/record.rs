//! What happened to one request: moments, counts, an ending. Numbers are functions of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::answer::{AnswerText, Grade};
use crate::outcome::Ending;
use crate::{Moment, RequestId, StartedRequest};

/// One attempt at one request. Written once; holds facts only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    pub id: RequestId,
    pub attempt: u32,
    /// When the plan wanted the request to leave.
    pub intended: Moment,
    /// When the concurrency cap let it go.
    pub admitted: Moment,
    /// When its first byte was written; `None` if it never came to that.
    pub sent: Option<Moment>,
    pub asked: RequestedLengths,
    pub connection: Option<ConnectionFacts>,
    pub head: Option<ResponseHead>,
    /// The socket reads of this exchange, in order.
    pub reads: Vec<Read>,
    /// The stream's events, in order; for an answer that is not streamed, one event per choice.
    pub events: Vec<Event>,
    /// Comment lines, such as keep-alive pings. They are liveness, not output.
    pub comments: u32,
    /// The last usage that the server reported.
    pub usage: Option<Usage>,
    /// What the server reported about its own work on this request. Stored in an entry of its own kind
    /// since format 2.
    #[serde(skip)]
    pub server: Option<Box<ServerReport>>,
    pub finishes: Vec<Finish>,
    pub done: DoneMark,
    /// The model that the answer named, when it is not the one that was asked for.
    pub other_model: Option<String>,
    pub ending: Ending,
    /// How the answer was judged. Stored in an entry of its own kind since format 2.
    #[serde(skip)]
    pub grade: Option<Grade>,
    /// What the answer says, until it was judged; never stored in the journal.
    #[serde(skip)]
    pub answer: Option<Box<AnswerText>>,
}

impl RequestRecord {
    /// A request of which nothing is known but that it was started, and how it ended.
    pub fn without_answer(started: &StartedRequest, ending: Ending) -> Self {
        Self {
            id: started.id,
            attempt: 1,
            intended: started.intended,
            admitted: started.admitted,
            sent: None,
            asked: started.asked,
            connection: None,
            head: None,
            reads: Vec::new(),
            events: Vec::new(),
            comments: 0,
            usage: None,
            server: None,
            finishes: Vec::new(),
            done: DoneMark::default(),
            other_model: None,
            ending,
            grade: None,
            answer: None,
        }
    }

    /// The same on a clock whose zero was this much earlier.
    #[must_use]
    pub fn later_by(mut self, by: Duration) -> Self {
        let later = |at: &mut Moment| *at = *at + by;
        [&mut self.intended, &mut self.admitted, &mut self.ending.at].into_iter().for_each(later);
        self.sent.iter_mut().for_each(later);
        if let Some(dial) = self.connection.as_mut().and_then(|it| it.dial.as_mut()) {
            [&mut dial.started, &mut dial.connected].into_iter().for_each(later);
            dial.secured.iter_mut().for_each(later);
        }
        for read in &mut self.reads {
            [&mut read.user, &mut read.turn].into_iter().for_each(later);
            read.kernel.iter_mut().for_each(later);
        }
        self
    }
}

/// What the plan asked of this request; lengths may be estimates (the spec says so).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedLengths {
    /// Tokens of the prompt; in a conversation, of the new turn alone.
    pub input_tokens: u32,
    pub output_tokens: u32,
    /// Which part of a mix it belongs to; zero without a mix.
    pub part: u16,
    /// Which turn of a session it is, from zero.
    pub turn: u16,
    /// Stored in entries of their own kinds since format 2.
    #[serde(skip)]
    pub session: SessionPlace,
}

/// Where a request stands in its session, a graph of requests of which each waits for others. The
/// default is the place of a request that stands alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SessionPlace {
    /// Requests of the session; zero where it stands alone or the number is not known.
    pub requests: u16,
    /// The turn whose answer released it: the last of those that it waited for.
    pub after: Option<u16>,
    /// The turn with whose prompt and answer its own prompt begins.
    pub context: Option<u16>,
    /// Tokens of its own part of the prompt that earlier requests of the plan carry as well.
    pub shared_tokens: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionFacts {
    /// Position in the order in which this run opened connections.
    pub ordinal: u32,
    pub reused: bool,
    /// The dialling of this connection, in the record of the request that caused it.
    pub dial: Option<Dial>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dial {
    pub started: Moment,
    pub connected: Moment,
    pub secured: Option<Moment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseHead {
    pub status: u16,
    /// Index of the read that completed the headers.
    pub read: u32,
    /// Whether the body was an event stream. A server may answer whole although asked to stream.
    pub streamed: bool,
}

/// One successful read of the socket. It is stamped before a byte of it is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    /// When the bytes reached this machine: the kernel's stamp of the last packet drained.
    pub kernel: Option<Moment>,
    /// When the read returned to us.
    pub user: Moment,
    /// Since when the driver may not have looked at this socket: when its loop last woke, or, if
    /// it woke later than it should have, when it had gone to wait.
    pub turn: Moment,
    pub bytes: u32,
    /// Whether it emptied the socket. When not, the kernel may go on merging later packets into
    /// what was left, and the next read's stamp bounds its bytes from above only.
    pub drained: bool,
}

impl Read {
    /// The moment that metrics use.
    pub fn at(&self) -> Moment {
        self.kernel.unwrap_or(self.user)
    }
}

/// One choice's part of one stream event, with all that it carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Index of the read that completed the event.
    pub read: u32,
    pub choice: u16,
    pub carried: Carried,
    /// Tokens that the server says this event carries (token ids, logprobs, growing usage).
    pub tokens: Option<u32>,
    /// Bytes of generated text.
    pub text_bytes: u32,
}

impl Event {
    /// Whether it carries generated output: text, or tokens that the server vouches for.
    pub fn is_output(&self) -> bool {
        self.carried.intersects(Carried::OUTPUT) || self.tokens.is_some_and(|tokens| 0 < tokens)
    }

    /// An empty delta without a mark: perhaps a token whose text is held back, perhaps nothing.
    pub fn is_silent(&self) -> bool {
        !self.is_output() && self.carried == Carried::CHOICE
    }
}

bitflags::bitflags! {
    /// What an event carried. The stored numbers are these bits: never renumber, only add.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Carried: u16 {
        /// It had an entry in `choices`.
        const CHOICE = 1;
        const ROLE = 1 << 1;
        const CONTENT = 1 << 2;
        const REASONING = 1 << 3;
        const TOOL_CALL = 1 << 4;
        const FINISH = 1 << 5;
        const USAGE = 1 << 6;
        const DONE = 1 << 7;
        const ERROR = 1 << 8;
        /// Anything that is output by itself.
        const OUTPUT = Self::CONTENT.bits() | Self::REASONING.bits() | Self::TOOL_CALL.bits();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub prompt_tokens: Option<u64>,
    pub completion_tokens: Option<u64>,
    /// Prompt tokens that the server took from its prefix cache, where it says so.
    pub cached_tokens: Option<u64>,
}

/// What the server reported about its own work on one request, by its own clock. A value that it did
/// not send is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerReport {
    /// How long the request waited before the server began to compute.
    pub queue: Option<Duration>,
    /// From the beginning of the computation to the first token.
    pub prefill: Option<Duration>,
    /// From the first token to the last.
    pub decode: Option<Duration>,
    /// Output tokens that were reasoning.
    pub reasoning_tokens: Option<u64>,
    pub speculation: Option<Speculation>,
    /// Values that cannot be true: negative, no numbers, longer than the request itself, or more than
    /// they are a part of.
    pub dropped: u32,
}

/// Speculative decoding of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speculation {
    /// Verifications of a draft, each of which yields a token besides those accepted.
    pub steps: Option<u64>,
    /// Tokens that were drafted.
    pub drafted: Option<u64>,
    /// Drafted tokens that were accepted.
    pub accepted: u64,
    /// The steps that accepted exactly as many tokens as the position in the list, where the server
    /// reports it; otherwise empty.
    pub histogram: Vec<u64>,
}

impl ServerReport {
    /// Clocks are rounded and differ a little: this much longer than the request is not impossible.
    const TOLERANCE: Duration = Duration::from_millis(2);
    /// Drafts are short; a longer list is not kept.
    const POSITIONS_MAX: usize = 64;

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Drops, and counts, what cannot be true of a request that took `elapsed` and whose answer has
    /// `output_tokens`, where that is known.
    #[must_use]
    pub fn checked(mut self, elapsed: Duration, output_tokens: Option<u64>) -> Self {
        let limit = elapsed.saturating_add(Self::TOLERANCE);
        let mut dropped = 0;
        for time in [&mut self.queue, &mut self.prefill, &mut self.decode] {
            dropped += u32::from(time.take_if(|time| limit < *time).is_some());
        }
        let is_more = |tokens: &mut u64| output_tokens.is_some_and(|all| all < *tokens);
        dropped += u32::from(self.reasoning_tokens.take_if(is_more).is_some());
        dropped +=
            u32::from(self.speculation.take_if(|it| !it.is_possible(output_tokens)).is_some());
        self.dropped = self.dropped.saturating_add(dropped);
        self
    }
}

impl Speculation {
    fn is_possible(&self, output_tokens: Option<u64>) -> bool {
        let counted = self.histogram.iter().try_fold(0_u64, |sum, steps| sum.checked_add(*steps));
        let weighed = (0_u64..).zip(&self.histogram).try_fold(0_u64, |sum, (accepted, steps)| {
            sum.checked_add(accepted.checked_mul(*steps)?)
        });
        let is_listed = self.histogram.is_empty()
            || (counted == self.steps.or(counted) && weighed == Some(self.accepted));
        is_listed
            && counted.is_some()
            && self.histogram.len() <= ServerReport::POSITIONS_MAX
            && self.drafted.is_none_or(|drafted| self.accepted <= drafted)
            && output_tokens.is_none_or(|all| {
                self.accepted <= all && self.steps.is_none_or(|steps| steps <= all)
            })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finish {
    pub choice: u16,
    pub reason: FinishReason,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    Stop,
    Length,
    ToolCalls,
    ContentFilter,
    Other(String),
}

impl FinishReason {
    pub fn parse(text: &str) -> Self {
        match text {
            "stop" => Self::Stop,
            "length" => Self::Length,
            "tool_calls" | "function_call" => Self::ToolCalls,
            "content_filter" => Self::ContentFilter,
            other => Self::Other(other.to_owned()),
        }
    }

    /// Whether the server gave the answer up: what came is not the answer to the request.
    pub fn is_failure(&self) -> bool {
        const GIVEN_UP: [&str; 5] = ["abort", "aborted", "error", "cancelled", "failed"];
        matches!(self, Self::Other(other) if GIVEN_UP.contains(&other.as_str()))
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
            Self::Other(other) => other,
        }
    }
}

/// `[DONE]` is neither necessary nor sufficient for an answer to be whole, so it is only noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoneMark {
    pub seen: bool,
    /// Data events that came after it, ignored.
    pub events_after: u32,
}
