//! What happened to one request: moments, counts, an ending. Numbers are functions of it.

use serde::{Deserialize, Serialize};

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
    pub finishes: Vec<Finish>,
    pub done: DoneMark,
    /// The model that the answer named, when it is not the one that was asked for.
    pub other_model: Option<String>,
    pub ending: Ending,
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
            finishes: Vec::new(),
            done: DoneMark::default(),
            other_model: None,
            ending,
        }
    }
}

/// What the plan asked of this request; lengths may be estimates (the spec says so).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedLengths {
    /// Tokens of the prompt; in a conversation, of the new turn alone.
    pub input_tokens: u32,
    pub output_tokens: u32,
    /// Which part of a mix it belongs to; zero without a mix.
    pub part: u16,
    /// Which turn of a conversation it is, from zero.
    pub turn: u16,
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
