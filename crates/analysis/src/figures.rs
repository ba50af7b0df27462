//! What charts are drawn from: a bounded number of points, bins and rows, whatever the length of
//! the run. Pages never see records.

use inferometer_model::Observations;
use serde::{Deserialize, Serialize};

use crate::measured::Measured;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFigures {
    /// How latencies are distributed, by metric; none for a metric without values.
    pub distributions: Vec<DistributionFigure>,
    /// The client's side over time.
    pub course: CourseFigure,
    /// Requests chosen to be drawn one by one.
    pub requests: RequestsFigure,
    /// Gaps between tokens over time; null where there are none.
    pub gaps: Option<GapsFigure>,
}

/// Exact quantiles at shares that are denser towards the tail.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DistributionFigure {
    /// The name of the metric, such as `ttft`.
    pub metric: String,
    pub n: u64,
    /// Shares and the values in milliseconds at or below which they lie, both rising.
    pub points: Vec<(f64, f64)>,
}

/// Columns of equal length, a value for each step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CourseFigure {
    /// Of the first step's beginning, since the run's zero.
    pub from_ms: f64,
    pub step_ms: f64,
    /// Requests in flight, as a mean over the step.
    pub in_flight: Vec<f64>,
    /// Output tokens that arrived in the step.
    pub output_tokens: Vec<u64>,
    /// Requests that ended in the step.
    pub ended_ok: Vec<u64>,
    pub ended_otherwise: Vec<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestsFigure {
    /// In the order in which they were sent.
    pub rows: Vec<RequestRow>,
    /// Requests that the rows are a choice of.
    pub of: u64,
}

/// One request. Moments are since the run's zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestRow {
    pub id: u64,
    pub why: RowReason,
    pub outcome: inferometer_model::Outcome,
    pub intended_ms: f64,
    pub sent_ms: f64,
    /// Null where no token came.
    pub first_ms: Option<f64>,
    pub ended_ms: f64,
    pub output_tokens: Option<u64>,
}

/// Why a request is among the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowReason {
    Slowest,
    Failed,
    /// Evenly spread over the others.
    Sample,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GapsFigure {
    /// `itl` where tokens can be told apart, else `icl`.
    pub metric: String,
    pub from_ms: f64,
    pub step_ms: f64,
    /// Of the rows, in milliseconds, rising evenly on a logarithmic axis; one more than rows.
    pub edges_ms: Vec<f64>,
    /// One for each step, each with a count for each row.
    pub columns: Vec<Vec<u64>>,
}

impl RunFigures {
    pub(crate) fn of(_observations: &Observations, _measured: &Measured) -> Self {
        Self::default()
    }
}
