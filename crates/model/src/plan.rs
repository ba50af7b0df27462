//! The plan: recipes for requests, complete before the first byte is sent.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Moment;
use crate::answer::Demand;
use crate::record::{RequestedLengths, SessionPlace};

/// Position in the plan, from zero.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct RequestId(pub u64);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// When a request may leave. Open loop, closed loop and sessions are data, so there is one executor.
///
/// A session is a graph of requests. They stand one behind the other in the plan, each behind those
/// that it waits for, and keep one slot until the last of them has ended. A conversation is the
/// session in which each request waits for the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Release {
    /// At this moment after the beginning of the drive.
    At(Moment),
    /// As soon as a slot is free.
    WhenSlotFree,
    /// After the replies to `previous` and to those that [`Plan::joins`] names, and some thinking. Of
    /// a request that left, `previous` is the one whose reply came last.
    After { previous: RequestId, think: Duration },
    /// So long after the first request of its session, without waiting for an answer.
    Beside { delay: Duration },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRequest {
    pub id: RequestId,
    pub release: Release,
    /// How long its slot rests after its reply; zero on an open loop.
    pub think: Duration,
    /// Seeds the text of this prompt alone.
    pub prompt_seed: u64,
    pub input_tokens: u32,
    pub output_tokens: u32,
    /// Where it stands in its source: the line of a dataset, the entry of a trace.
    pub item: u32,
    /// Which part of a mix it belongs to; zero without a mix.
    pub part: u16,
    /// Which turn of its session it is, from zero; the first request of a session has its number
    /// less this.
    pub turn: u16,
    /// Whether a later request of its session begins with its prompt and its answer.
    pub continues: bool,
    /// Which answer released it follows from `release`, and is `None` here.
    pub session: SessionPlace,
}

impl PlannedRequest {
    /// A request that stands alone, of one token each way.
    pub const fn alone(id: RequestId, release: Release) -> Self {
        Self {
            id,
            release,
            think: Duration::ZERO,
            prompt_seed: 0,
            input_tokens: 1,
            output_tokens: 1,
            item: 0,
            part: 0,
            turn: 0,
            continues: false,
            session: SessionPlace { requests: 0, after: None, context: None, shared_tokens: 0 },
        }
    }

    pub fn asked(&self) -> RequestedLengths {
        let Self { input_tokens, output_tokens, part, turn, .. } = *self;
        let after = match self.release {
            Release::After { previous, .. } => self.turn_of(previous),
            Release::At(_) | Release::WhenSlotFree | Release::Beside { .. } => None,
        };
        let session = SessionPlace { after, ..self.session };
        RequestedLengths { input_tokens, output_tokens, part, turn, session }
    }

    /// The first request of its session: itself, where there is none.
    pub fn conversation(&self) -> RequestId {
        RequestId(self.id.0.saturating_sub(self.turn.into()))
    }

    /// Which turn of this session another request is.
    fn turn_of(&self, other: RequestId) -> Option<u16> {
        u16::try_from(other.0.checked_sub(self.conversation().0)?).ok()
    }
}

/// What a request says.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    pub prompt: Prompt,
    /// Pictures and recordings, as `data:` URLs.
    pub images: Vec<String>,
    /// Fields of this body alone; they win over those that all bodies carry.
    pub fields: Map<String, Value>,
    /// The model to ask for instead of the target's: an adapter's name.
    pub model: Option<String>,
    /// The answer that the data has beside the prompt.
    pub expected: Option<String>,
    /// What becomes of the text of the answer; `None` does not keep it.
    pub demand: Option<Arc<Demand>>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Prompt {
    Text(String),
    Messages(Vec<Message>),
}

impl Prompt {
    /// A number that is equal for equal words (FNV-1a).
    pub fn likeness(&self) -> u64 {
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let of_text = |hash: u64, text: &str| text.bytes().chain([0]).fold(hash, mix);
        let start = 0xcbf2_9ce4_8422_2325;
        match self {
            Self::Text(text) => of_text(start, text),
            Self::Messages(messages) => messages.iter().fold(start, |hash, message| {
                of_text(of_text(hash, message.role()), &message.text())
            }),
        }
    }
}

impl Content {
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Prompt::Text(text.into()))
    }

    pub fn new(prompt: Prompt) -> Self {
        let (images, fields) = (Vec::new(), Map::new());
        Self { prompt, images, fields, model: None, expected: None, demand: None }
    }
}

/// One message of a chat, as it is sent: whatever fields it has are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Message(pub Map<String, Value>);

impl Message {
    pub fn new(role: &str, text: impl Into<String>) -> Self {
        let fields = [("role", role.into()), ("content", text.into())];
        let fields = fields.map(|(name, text): (&str, String)| (name.to_owned(), text.into()));
        Self(fields.into_iter().collect())
    }

    pub fn role(&self) -> &str {
        self.0.get("role").and_then(Value::as_str).unwrap_or_default()
    }

    /// Its words: plain, or those of its text parts one after the other.
    pub fn text(&self) -> String {
        match self.0.get("content") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(parts)) => {
                parts.iter().filter_map(|it| it["text"].as_str()).collect()
            }
            _ => String::new(),
        }
    }
}

/// How much of the plan will run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Requests in the plan; `None` when the time may end it.
    pub requests: Option<u64>,
    /// No request is released at or after this moment, but those of `requests_min`.
    pub release_before: Option<Moment>,
    /// Requests that are released even at or after `release_before`: a closed loop that goes on
    /// until a number and a time are both reached; zero otherwise.
    pub requests_min: u64,
    /// Requests that may hold a slot at once: a closed loop's concurrency, or the cap of an open
    /// one; `None` on an open loop without a cap.
    pub slots: Option<NonZeroU32>,
}

impl Bounds {
    /// Requests that are scheduled whatever happens. What a run leaves of them is `not_sent`;
    /// beyond them a request is scheduled by being released.
    pub fn scheduled_min(&self) -> u64 {
        self.requests.unwrap_or(self.requests_min)
    }
}

/// The stimulus of a run. Bodies materialise just ahead of their moment, in bounded memory.
pub trait Plan: Send + Sync {
    fn bounds(&self) -> Bounds;

    /// The time over which the first requests of a closed loop are spread: with C slots, slot k is free
    /// at k/C of it.
    fn ramp_up(&self) -> Duration {
        Duration::ZERO
    }

    /// When a slot of a closed loop is first free, after the beginning.
    fn slot_start(&self, slot: u32) -> Duration {
        let slots = self.bounds().slots.map_or(1, NonZeroU32::get);
        let part_ns = self.ramp_up().as_nanos() * u128::from(slot) / u128::from(slots);
        Duration::from_nanos(u64::try_from(part_ns).unwrap_or(u64::MAX))
    }

    /// The recipe of a request, or `None` past the end of the plan. Moments never decrease with
    /// the id.
    fn request(&self, id: RequestId) -> Option<PlannedRequest>;

    /// The requests whose replies it waits for besides that of `previous`.
    fn joins(&self, _request: &PlannedRequest) -> Vec<RequestId> {
        Vec::new()
    }

    /// What a request says, equal for equal recipes on every machine. Of a request with a context it
    /// is the new part alone: what was said before depends on the server.
    fn content(&self, request: &PlannedRequest) -> Content;

    /// What [`Plan::content`] says, without its text: for simulations, which need to know only
    /// what is equal to what. Where a source cannot tell better, equal texts are equal and others
    /// share nothing.
    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        let seed = self.content(request).prompt.likeness();
        vec![Segment { seed, tokens: request.input_tokens }]
    }
}

/// A run of tokens of a prompt. Two with equal seeds begin with the same tokens, as far as the
/// shorter one goes; with other seeds they share nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    pub seed: u64,
    pub tokens: u32,
}

/// Names for "the same": what is asked, and exactly what was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprints {
    /// Without the seed: runs are comparable when it is equal.
    pub workload: String,
    /// With the seed: runs had the same stimulus when it is equal.
    pub plan: String,
}

/// Something that knows how many tokens a text is.
pub trait TokenCounter: Send + Sync + fmt::Debug {
    fn count(&self, text: &str) -> usize;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_leads_back_to_the_first_and_never_before_the_plan() {
        let alone = PlannedRequest::alone(RequestId(5), Release::WhenSlotFree);
        assert_eq!(alone.conversation(), RequestId(5));
        assert_eq!(PlannedRequest { turn: 2, ..alone }.conversation(), RequestId(3));
        assert_eq!(PlannedRequest { turn: 9, ..alone }.conversation(), RequestId(0));
    }
}
