//! A suite: scenarios that are measured one after the other on one server.

use serde::{Deserialize, Serialize};

use super::Level;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suite {
    /// Such as `standard`.
    pub name: String,
    pub title: String,
    /// SHA-256 of all that it asks, as hexadecimal digits: results are comparable when it is equal.
    pub hash: String,
    /// What was asked otherwise than the suite says, by the flags that said so; empty for the suite
    /// as it is.
    pub changes: Vec<String>,
    pub prompts: Prompts,
    /// One for each condition of the campaign, in their order.
    pub scenarios: Vec<Scenario>,
}

/// What a condition of a suite is for; its name is the condition's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Such as `Latency`.
    pub category: String,
    /// What it shows, in one line.
    pub purpose: String,
    /// At least one; `AsAsked` where nothing is varied.
    pub levels: Vec<Level>,
}

/// Whether a scenario may meet what another has left in the server's prefix cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prompts {
    /// Every scenario and level has a seed of its own.
    Fresh,
    /// All have the seed of the suite, as the clients of others do it.
    Same,
}
