//! What the engine knows and a client must find out: the body of `GET /truth`.
//!
//! All moments are nanoseconds of the machine's `CLOCK_MONOTONIC`.

use serde::{Deserialize, Serialize};

use crate::lateness::Lateness;
use crate::options::Mode;

/// Everything that is known of the requests since the start or the last `DELETE /truth`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// The clock of every moment in here: `CLOCK_MONOTONIC`.
    pub clock: String,
    pub mode: Mode,
    pub requests: Vec<RequestTruth>,
    /// Requests that were answered but are not in `requests`, because it was full.
    pub requests_dropped: u64,
    /// Writes that were made but are in no request, because too many were kept already.
    pub writes_dropped: u64,
    /// Connections closed at once because too many were open.
    pub connections_refused: u64,
    pub lateness: LatenessTruth,
    /// Of a mode that works in steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<StepsTruth>,
}

/// How late steps were: from the moment at which one was to end to that at which the engine knew.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepsTruth {
    pub count: u64,
    /// More than a millisecond late.
    pub late_count: u64,
    /// More than five milliseconds late.
    pub very_late_count: u64,
    pub mean_ns: Option<f64>,
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub max_ns: Option<u64>,
}

impl StepsTruth {
    pub(crate) fn of(steps: &Lateness) -> Self {
        let LatenessTruth { count, mean_ns, p50_ns, p99_ns, max_ns, .. } = steps.summary();
        let (late_count, very_late_count) = (steps.over_1ms(), steps.over_5ms());
        Self { count, late_count, very_late_count, mean_ns, p50_ns, p99_ns, max_ns }
    }
}

/// One generation request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestTruth {
    /// Its place among all generation requests of this process, from 0.
    pub ordinal: u64,
    /// The client's `x-request-id`.
    pub request_id: Option<String>,
    pub api: Api,
    pub streamed: bool,
    /// When the last byte of the request reached this machine, where the kernel said so.
    ///
    /// The schedule starts here, or at `received_user_ns` where this is absent.
    pub received_kernel_ns: Option<u64>,
    /// How far `received_kernel_ns` may be off, because the kernel stamps by another clock.
    pub received_mapping_error_ns: Option<u64>,
    /// When the engine had read the request.
    pub received_user_ns: u64,
    pub prompt_tokens: u32,
    /// Tokens of the whole answer, sent or not.
    pub tokens: u32,
    /// Every `write()` of the answer, in order.
    pub writes: Vec<WriteTruth>,
    pub ended: Ended,
}

/// Which API a request came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    Chat,
    Completions,
    Responses,
    Messages,
    Embeddings,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// All bytes of the answer were taken by the socket.
    Complete,
    /// The client left first.
    Aborted,
    /// It has not ended.
    Running,
}

/// One `write()` that took at least one byte.
///
/// A write that the socket took in parts is several of these, with the same `due_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteTruth {
    /// When it was to be made; absent when it only had to follow the one before it.
    pub due_ns: Option<u64>,
    /// Immediately ahead of the system call.
    pub before_ns: u64,
    /// Immediately after it returned.
    pub after_ns: u64,
    pub bytes: u32,
    /// SSE data events that are readable once these bytes are there: those whose last significant
    /// byte, the first of the line end that ends the blank line, is among them.
    pub events: u32,
    /// Tokens of those events; of an answer that is not streamed, all tokens with its last byte.
    pub tokens: u32,
}

/// How late the engine itself was: from due moment to `before_ns`, over all writes that had one.
///
/// Writes that were held up by a client that did not read are not its own lateness; they are
/// counted apart. Percentiles come from a histogram and are at most 2% too high.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatenessTruth {
    pub count: u64,
    pub held_up_by_client: u64,
    pub mean_ns: Option<f64>,
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub max_ns: Option<u64>,
}
