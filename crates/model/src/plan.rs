//! The plan: recipes for requests, complete before the first byte is sent.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Moment;
use crate::record::Asked;

/// Position in the plan, from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId(pub u64);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// When a request may leave. Open loop, closed loop and conversations are data, so there is one
/// executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Release {
    /// At this moment after the beginning of the drive.
    At(Moment),
    WhenSlotFree,
    /// After the reply to `previous`, and some thinking; it keeps its predecessor's slot. In the
    /// plan it stands right behind its predecessor.
    After {
        previous: RequestId,
        think: Duration,
    },
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
}

impl PlannedRequest {
    pub fn asked(&self) -> Asked {
        Asked { input_tokens: self.input_tokens, output_tokens: self.output_tokens }
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

    /// The recipe of a request, or `None` past the end of the plan. Moments never decrease with
    /// the id.
    fn request(&self, id: RequestId) -> Option<PlannedRequest>;

    /// The prompt's text, equal for equal recipes on every machine.
    fn prompt(&self, request: &PlannedRequest) -> String;
}

/// Names for "the same": what is asked, and exactly what was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprints {
    /// Without the seed: runs are comparable when it is equal.
    pub workload: String,
    /// With the seed: runs had the same stimulus when it is equal.
    pub plan: String,
}
