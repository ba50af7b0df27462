//! One cell at one load.

use std::collections::BTreeMap;

use inferometer_model::campaign::{CampaignSpec, Level, Matrix, PointFailure, Strategy};
use inferometer_model::deployment::DeploymentFailure;
use serde::{Deserialize, Serialize};

use crate::set::{Across, PointResult};
use crate::verdict::Verdict;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixRow {
    /// Its place among the conditions of the set.
    pub cell: u32,
    pub preset: u32,
    pub model: u32,
    pub context: Option<u32>,
    pub strategy: Option<Strategy>,
    pub tp: Option<u32>,
    pub pp: Option<u32>,
    pub flags: BTreeMap<String, String>,
    pub level: Level,
    pub ending: RowEnding,
    /// Runs that were measured, by their numbers.
    pub points: Vec<u32>,
    /// Runs that came to nothing, by their numbers.
    pub failed_points: Vec<u32>,
    /// Null while no run was measured.
    pub verdict: Option<Verdict>,
    /// Of all its runs.
    pub requests: u64,
    /// Requests that did not end well.
    pub errors: u64,
    /// By the server's counters, over the time from before the load to when it was idle again.
    pub prompt_tps: Across,
    pub generation_tps: Across,
    /// The same by what the client saw.
    pub client_prompt_tps: Across,
    pub client_generation_tps: Across,
    /// Mean over requests that ended well.
    pub latency_s: Across,
    pub ttft_s: Across,
    pub tpot_s: Across,
    /// A request's tokens over its own time, mean over requests.
    pub request_generation_tps: Across,
    pub request_prompt_tps: Across,
    /// Means over the scrapes inside the runs; null where the server does not say.
    pub running: Option<f64>,
    pub waiting: Option<f64>,
    pub swapped: Option<f64>,
    /// Shares from 0 to 1.
    pub kv_usage: Option<f64>,
    pub cpu_cache_usage: Option<f64>,
    /// Of all GPUs together, a mean over the runs.
    pub power_w: Option<f64>,
    pub gpu_memory_bytes: Option<f64>,
    /// Joules per generated token.
    pub energy_per_token_j: Across,
    /// Money per million generated tokens; needs a price.
    pub cost_per_million: Across,
}

/// How a row ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RowEnding {
    /// All its runs were measured, and every request ended well.
    Clean,
    /// All its runs were measured; some requests failed.
    WithErrors,
    /// Some runs were measured, and others came to nothing.
    Partly { failure: DeploymentFailure },
    /// No run was measured.
    Failed { failure: DeploymentFailure },
    /// Not measured yet.
    Missing,
}

pub(super) fn rows(
    _campaign: &CampaignSpec,
    _matrix: &Matrix,
    _results: &[PointResult],
    _failures: &[PointFailure],
) -> Vec<MatrixRow> {
    Vec::new()
}
