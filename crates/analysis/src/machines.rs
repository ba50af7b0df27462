//! The machines over a run: the GPUs of the server, and the client's own.

use inferometer_model::Observations;
use inferometer_model::telemetry::DeviceSource;
use serde::{Deserialize, Serialize};

use crate::server::GaugeFigures;

/// Of the looks inside the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineFigures {
    /// Null where nothing is known of them.
    pub gpus: Option<GpuFigures>,
    /// Why nothing is known.
    pub gpus_missing: Option<String>,
    pub client: Option<ClientFigures>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GpuFigures {
    pub source: DeviceSource,
    pub looks: u64,
    pub took_ms_max: Option<f64>,
    /// In the order of their numbers.
    pub devices: Vec<DeviceFigures>,
    /// Of all devices together, over the run.
    pub energy_j: Option<f64>,
    pub energy_per_output_token_j: Option<f64>,
    pub energy_per_million_tokens_kwh: Option<f64>,
    pub timeline: GpuTimeline,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceFigures {
    pub index: u32,
    pub use_share: Option<GaugeFigures>,
    pub memory_used_bytes: Option<GaugeFigures>,
    pub memory_total_bytes: Option<u64>,
    pub power_w: Option<GaugeFigures>,
    pub core_clock_mhz: Option<GaugeFigures>,
    pub memory_clock_mhz: Option<GaugeFigures>,
    pub temperature_c: Option<GaugeFigures>,
    /// Over the run: by its counter where it has one, else from its power.
    pub energy_j: Option<f64>,
    /// Shares of the looks in which something held it back; null where nobody tells.
    pub throttled_power: Option<f64>,
    pub throttled_thermal: Option<f64>,
    pub throttled_hardware: Option<f64>,
    /// Processes that came to it during the run.
    pub newcomers: u64,
}

/// Columns of equal length, a value for each step; of several devices the sum (power, memory), the
/// mean (use, clock) or the highest (temperature).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuTimeline {
    pub from_ms: f64,
    pub step_ms: f64,
    pub use_share: Vec<Option<f64>>,
    pub memory_used_bytes: Vec<Option<f64>>,
    pub power_w: Vec<Option<f64>>,
    pub core_clock_mhz: Vec<Option<f64>>,
    pub temperature_c: Vec<Option<f64>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientFigures {
    pub looks: u64,
    pub cpu_share: Option<GaugeFigures>,
    pub steal_share: Option<GaugeFigures>,
    pub own_cpus: Option<GaugeFigures>,
    pub received_bytes_per_s: Option<f64>,
    pub sent_bytes_per_s: Option<f64>,
    pub memory_available_bytes_min: Option<u64>,
}

impl MachineFigures {
    pub(crate) fn of(observations: &Observations) -> Self {
        let gpus_missing = observations.machines.devices_absence.as_ref().map(ToString::to_string);
        Self { gpus: None, gpus_missing, client: None }
    }
}
