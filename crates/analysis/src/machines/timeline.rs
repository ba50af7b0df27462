//! The GPUs over time, as a figure draws them.

use std::collections::BTreeSet;
use std::time::Duration;

use inferometer_model::telemetry::{DeviceReading, DevicesSample};
use serde::{Deserialize, Serialize};

use super::gpus::{readings, sum};
use crate::even_steps::EvenSteps;

/// Columns of equal length, a value for each step; of several devices the sum (power, memory), the
/// mean (use, clock) or the highest (temperature). Idle ones are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuTimeline {
    /// Of the first step's beginning, since the run's zero.
    pub from_ms: f64,
    pub step_ms: f64,
    pub use_share: Vec<Option<f64>>,
    pub memory_used_bytes: Vec<Option<f64>>,
    pub power_w: Vec<Option<f64>>,
    pub core_clock_mhz: Vec<Option<f64>>,
    pub temperature_c: Vec<Option<f64>>,
}

impl GpuTimeline {
    pub(super) fn of(samples: &[DevicesSample], counted: &BTreeSet<u32>, every: Duration) -> Self {
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
            return Self::default();
        };
        let steps = EvenSteps::between(first.at, last.at, Some(every));
        let column = |of: &dyn Fn(&DevicesSample) -> Option<f64>| {
            steps.means(samples.iter().filter_map(|sample| Some((sample.at, of(sample)?))))
        };
        let mean = |of: fn(&DeviceReading) -> Option<f64>| {
            column(&|sample| Some(sum(sample, counted, of)? / counted.len() as f64))
        };
        Self {
            from_ms: steps.first_ms(),
            step_ms: steps.step_ms(),
            use_share: mean(|reading| reading.use_share),
            memory_used_bytes: column(&|sample| {
                sum(sample, counted, |reading| reading.memory_used_bytes.map(|it| it as f64))
            }),
            power_w: column(&|sample| sum(sample, counted, |reading| reading.power_w)),
            core_clock_mhz: mean(|reading| reading.core_clock_mhz),
            temperature_c: column(&|sample| {
                readings(sample, counted).filter_map(|it| it.temperature_c).reduce(f64::max)
            }),
        }
    }
}
