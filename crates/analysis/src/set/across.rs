//! One quantity over the runs of a level.

use serde::{Deserialize, Serialize};

use crate::estimate::Interval;

/// Mean and spread between runs. A run counts once, whatever its length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Across {
    /// Null when no run has a value.
    pub mean: Option<f64>,
    /// The sample standard deviation; null of one run.
    pub std: Option<f64>,
    /// 95 %, by Student's t with n − 1 degrees of freedom; null of one run.
    pub interval: Option<Interval>,
    /// The standard deviation over the mean.
    pub cov: Option<f64>,
    /// Runs that have a value.
    pub n: u32,
    /// One for each run, in the order of the runs; null where it has none.
    pub values: Vec<Option<f64>>,
    /// Of a single run: its own interval, which knows nothing of other runs.
    pub within: Option<Interval>,
}
