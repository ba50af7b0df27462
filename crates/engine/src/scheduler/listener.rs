//! What a scheduler tells of its doings while they happen, on its own clock.

use super::step::Step;

/// Hears of everything that happens, in the order in which it happens.
pub trait Listener {
    fn step_began(&mut self, _step: &Step) {}

    /// A step is over; its tokens follow.
    fn step_ended(&mut self, _step: &Step) {}

    /// The token at `index` of the answer to `id` is there.
    fn token(&mut self, _id: u64, _index: u32, _at_ns: u64) {}

    /// A request is no longer here: its answer is complete, or it was taken back.
    fn ended(&mut self, _facts: &RequestFacts) {}
}

/// Nobody listens.
impl Listener for () {}

/// What became of one request: moments and counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestFacts {
    pub id: u64,
    pub arrived_ns: u64,
    /// When it first had a part in a step.
    pub scheduled_ns: Option<u64>,
    pub first_token_ns: Option<u64>,
    pub last_token_ns: Option<u64>,
    pub ended_ns: u64,
    pub prompt_tokens: u32,
    /// Prompt tokens that the prefix cache held when it was first admitted.
    pub cached_tokens: u32,
    pub output_tokens: u32,
    pub max_tokens: u32,
    pub preemptions: u32,
    pub end: RequestEnd,
}

/// Why a request is no longer here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEnd {
    /// The end of sequence, or a stop string; also a prompt that was to be computed and no more.
    Stop,
    /// `max_tokens` or the model's length.
    Length,
    /// Its client took it back.
    Abort,
}
