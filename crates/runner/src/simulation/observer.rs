//! Who hears of a simulation: a journal, or tallies.

use inferometer_engine::scheduler::{Counters, Gauges};
use inferometer_model::{Ending, Moment, NotSent, StartedRequest};

use super::flights::Flight;
use crate::failure::Failure;

/// Hears of everything that the client would see, in the order in which it happens.
pub trait Observer {
    /// What it keeps of a request in flight.
    type Notes: Default;

    fn started(&mut self, started: &StartedRequest) -> Result<(), Failure>;

    /// A token of an answer is there; `before` is the moment of the one before it. This is the
    /// path of every token: nothing that can fail belongs here.
    fn token(&mut self, notes: &mut Self::Notes, before: Option<Moment>, at: Moment);

    fn ended(&mut self, flight: Flight<Self::Notes>, end: End) -> Result<(), Failure>;

    fn not_sent(&mut self, part: NotSent) -> Result<(), Failure>;

    /// The engine as it stands, at even steps of virtual time.
    fn sampled(&mut self, sample: &Sample);
}

/// How a request ended, and what the engine says of it.
#[derive(Clone, Debug)]
pub struct End {
    pub ending: Ending,
    /// The status of the answer's head, where there is one.
    pub status: Option<u16>,
    /// Prompt tokens that the prefix cache held; `None` where the answer is not whole.
    pub cached_tokens: Option<u32>,
}

/// The engine at one moment: what telemetry would have asked it. Counters are since its start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    pub at: Moment,
    /// How many it stands for: more than itself at the end of a long rest.
    pub stands_for: u64,
    pub gauges: Gauges,
    pub counters: Counters,
}
