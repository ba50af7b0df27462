//! What a calibration of this client had found when a run began: facts for the run's verdict.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalibrationFacts {
    /// RFC 3339, UTC.
    pub when: String,
    /// Threads that drove the load then.
    pub drivers: u32,
    /// The most that the client was seen to carry.
    pub requests_per_s: f64,
    pub events_per_s: f64,
    /// How far off the client was, by the number of streams in flight.
    pub errors: Vec<ErrorFacts>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorFacts {
    pub streams: u32,
    pub kernel_stamps: bool,
    pub ttft_ms_p50: f64,
    pub ttft_ms_p99: f64,
    pub itl_ms_p50: f64,
    pub itl_ms_p99: f64,
}
