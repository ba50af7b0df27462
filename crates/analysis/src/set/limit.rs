//! What a search for the highest good level came to.

use serde::{Deserialize, Serialize};

/// The highest level at which every goal is met, as far as it is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundLimit {
    /// Which condition, by its place in the list.
    pub condition: u32,
    /// As they were typed, such as `ttft.p99<500ms`.
    pub goals: Vec<String>,
    /// Requests per second, or requests at once; null when no level met them.
    pub level: Option<f64>,
    /// The lowest level that was seen to miss a goal; null when none did.
    pub lowest_missed: Option<f64>,
    /// Whether it met them once more on a fresh seed.
    pub confirmed: bool,
    /// Whether even the highest level that may be asked for met them.
    pub open_ended: bool,
    /// Runs that the search took.
    pub runs: u32,
    /// Levels at which the runs allowed did not decide.
    pub undecided: Vec<f64>,
    /// The answer in a sentence.
    pub words: String,
}
