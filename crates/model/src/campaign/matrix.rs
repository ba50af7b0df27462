//! A matrix: servers that are deployed one after the other, each measured in the same way.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::{Level, Point};
use crate::deployment::{Departure, DeploymentFailure};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// Such as `r3`, or the name of its file.
    pub name: String,
    pub title: String,
    pub presets: Vec<Preset>,
    pub models: Vec<MatrixModel>,
    /// One for each condition of the campaign, in their order.
    pub cells: Vec<Cell>,
    /// Loads at which every cell is measured, one after the other on the same server; at least one.
    pub levels: Vec<Level>,
    /// Presets that are measured at once.
    pub lanes: NonZeroU32,
    /// Money is in this currency, in whatever words it was written.
    pub currency: Option<String>,
}

/// Hardware that a server is deployed on, as its owner describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Preset {
    pub name: String,
    pub gpus: Option<u32>,
    /// In words, such as `NVIDIA V100 (PCIe 16GB)`.
    pub gpu_type: Option<String>,
    /// Of all GPUs together.
    pub vram_gb: Option<f64>,
    pub vcpus: Option<f64>,
    pub memory_gb: Option<f64>,
    pub price_per_hour: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MatrixModel {
    /// As the server is asked for it.
    pub name: String,
    /// As pages call it.
    pub label: String,
}

/// How a model is spread over the GPUs of a preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    Tensor,
    Pipeline,
}

/// One deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Its place among the presets.
    pub preset: u32,
    /// Its place among the models.
    pub model: u32,
    /// Tokens that a prompt and its answer may have together; `None` where it is not varied.
    pub context: Option<u32>,
    pub strategy: Option<Strategy>,
    pub tp: Option<u32>,
    pub pp: Option<u32>,
    /// Other flags of the server that are varied, by name.
    pub flags: BTreeMap<String, String>,
}

/// A point of a matrix that failed, and why. It is a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointFailure {
    pub point: Point,
    /// RFC 3339, UTC; `None` in virtual time.
    pub at: Option<String>,
    pub failure: DeploymentFailure,
}

/// What is stored about one deployment of a matrix in addition to its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeploymentRecord {
    /// The cell by its place.
    pub condition: u32,
    pub repetition: u32,
    pub facts: Option<crate::deployment::DeploymentFacts>,
    pub departure: Option<Departure>,
    /// From the end of the last run until the server was idle; `None` where it does not say.
    pub drained_after_s: Option<f64>,
    /// File with the server's log; `None` where there is none.
    #[serde(default)]
    pub log: Option<String>,
}

impl Strategy {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tensor => "tensor",
            Self::Pipeline => "pipeline",
        }
    }
}
