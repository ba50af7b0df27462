//! What a suite comes to: the rows of its tables, in the order of its scenarios.

use inferometer_model::campaign::{Level, Prompts};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuiteSummary {
    pub name: String,
    pub title: String,
    /// Results are comparable when it is equal.
    pub hash: String,
    /// Flags that made it ask something else; empty for the suite as it is.
    pub changes: Vec<String>,
    pub prompts: Prompts,
    /// One for each level of each scenario. Numbers stand in the conditions of the set.
    pub rows: Vec<SuiteRow>,
    /// The condition whose levels are the scaling table: the first with several levels of
    /// concurrency.
    pub scaling: Option<u32>,
}

/// One level of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuiteRow {
    /// As pages name it: the scenario, and its level where it has several, such as
    /// `Concurrency Scaling (c=4)`.
    pub name: String,
    pub scenario: String,
    pub category: String,
    pub purpose: String,
    /// The place of its scenario among the conditions of the set.
    pub condition: u32,
    pub level: Level,
    /// In flight at most; null for an open loop without a cap.
    pub concurrency: Option<u32>,
    /// As asked, such as `2048` or `2048±50%`; null where the data says it.
    pub input_tokens: Option<String>,
    pub output_tokens: Option<String>,
    /// Of one run; null where time ends it.
    pub requests: Option<u64>,
    /// The runs that it comes from, by their numbers.
    pub points: Vec<u32>,
    /// What was answered from the server's prefix cache, of all input tokens; null where the server
    /// does not say.
    pub cached_share: Option<f64>,
}
