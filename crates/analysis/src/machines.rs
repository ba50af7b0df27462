//! The machines over a run: the GPUs of the server, and the client's own.
//!
//! Figures are of the looks while the plan was played. What a tool does not tell is null, never
//! zero. Energy is over the window of the throughputs, so that it can be divided by their tokens.

mod client;
mod energy;
mod gpus;
mod servers;
mod timeline;

use inferometer_model::telemetry::DeviceSource;
use inferometer_model::{Moment, Observations};
use serde::{Deserialize, Serialize};

pub use self::client::{ClientFigures, ClientTimeline};
pub use self::energy::EnergyFrom;
pub use self::servers::ServersBy;
pub use self::timeline::GpuTimeline;
use crate::metric::Missing;
use crate::server::GaugeFigures;
use crate::throughput::Extremes;

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
    /// Inside the run.
    pub looks: u64,
    /// Looks inside the run that brought nothing, or were not made because one was slow.
    #[serde(default)]
    pub missed: u64,
    /// Null where it is not known which GPUs are the server's: all that are in use are counted.
    #[serde(default)]
    pub servers_by: Option<ServersBy>,
    pub took_ms_max: Option<f64>,
    /// In the order of their numbers.
    pub devices: Vec<DeviceFigures>,
    /// Of all devices together that count, here and below.
    pub power_w: Option<GaugeFigures>,
    pub memory_used_bytes: Option<GaugeFigures>,
    /// From the first request sent to the last one ended.
    pub energy_j: Option<f64>,
    /// Why the energy is not known.
    pub energy_missing: Option<String>,
    pub energy_per_output_token_j: Option<f64>,
    /// Of output tokens.
    pub energy_per_million_tokens_kwh: Option<f64>,
    pub timeline: GpuTimeline,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceFigures {
    pub index: u32,
    /// Nothing ran on it and next to nothing lay in its memory: it is in no sum.
    pub idle: bool,
    /// It is not the server's: it is in no sum either.
    #[serde(default)]
    pub foreign: bool,
    pub use_share: Option<GaugeFigures>,
    pub memory_used_bytes: Option<GaugeFigures>,
    pub memory_total_bytes: Option<u64>,
    pub power_w: Option<GaugeFigures>,
    pub core_clock_mhz: Option<GaugeFigures>,
    pub memory_clock_mhz: Option<GaugeFigures>,
    pub temperature_c: Option<GaugeFigures>,
    /// Over the same time as the energy of all.
    pub energy_j: Option<f64>,
    pub energy_from: Option<EnergyFrom>,
    /// Shares of the looks in which something held it back; null where nobody tells.
    pub throttled_power: Option<f64>,
    pub throttled_thermal: Option<f64>,
    pub throttled_hardware: Option<f64>,
    /// Processes that came to it during the run.
    pub newcomers: u64,
}

impl DeviceFigures {
    /// Whether it is in the sums: it did something, and is not known to be another's.
    pub const fn counts(&self) -> bool {
        !self.idle && !self.foreign
    }
}

/// The figures, and what the metrics need of them.
#[derive(Debug)]
pub(crate) struct MeasuredMachines {
    pub(crate) figures: MachineFigures,
    /// Of the server's GPUs over the window.
    pub(crate) energy_j: Result<f64, Missing>,
}

const NO_GPUS: Missing = Missing("nothing is known of the server's GPUs");

impl MeasuredMachines {
    /// `output_tokens` are those of answers that are whole; `None` where there are none to divide by.
    pub(crate) fn of(
        observations: &Observations,
        window: Extremes,
        output_tokens: Option<u64>,
    ) -> Self {
        let machines = &observations.machines;
        let client = ClientFigures::of(observations);
        let Some((gpus, energy_j)) = GpuFigures::of(observations, window, output_tokens) else {
            let absence = machines.devices_absence.as_ref().map(ToString::to_string);
            let missing = absence.unwrap_or_else(|| "no GPU was in what was read".to_owned());
            let figures = MachineFigures { gpus: None, gpus_missing: Some(missing), client };
            return Self { figures, energy_j: Err(NO_GPUS) };
        };
        let figures = MachineFigures { gpus: Some(gpus), gpus_missing: None, client };
        Self { figures, energy_j }
    }
}

/// Whether a look was while the plan was played. A run that died does not know when it began, and
/// all its looks count.
fn is_inside(observations: &Observations, at: Moment) -> bool {
    let ending = &observations.ending;
    ending.began.is_none_or(|began| (began..=ending.at).contains(&at))
}

#[cfg(test)]
mod tests;
