//! What machines say while a run goes on: the GPUs of the server, where they can be seen, and the
//! client's own processors and network.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::TelemetryEntry;
use crate::Moment;

/// One look at all GPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DevicesSample {
    /// The middle of the look.
    pub at: Moment,
    pub took: Duration,
    pub source: DeviceSource,
    /// In the order of their numbers.
    pub devices: Vec<DeviceReading>,
}

/// One GPU now. What its tool does not tell is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceReading {
    pub index: u32,
    /// Share of the time in which something ran on it, from 0 to 1.
    pub use_share: Option<f64>,
    pub memory_used_bytes: Option<u64>,
    pub memory_total_bytes: Option<u64>,
    pub power_w: Option<f64>,
    /// A total since the driver was loaded, where it counts.
    pub energy_j: Option<f64>,
    pub core_clock_mhz: Option<f64>,
    pub memory_clock_mhz: Option<f64>,
    pub temperature_c: Option<f64>,
    /// Why it runs slower than it could; `None` where it is not reported.
    pub throttle: Option<Throttle>,
    /// Processes that use it, by number; `None` where they are not reported.
    pub processes: Option<Vec<u32>>,
}

/// What holds a GPU back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttle {
    /// Its power limit.
    pub power: bool,
    /// Its temperature.
    pub thermal: bool,
    /// The board: a brake from outside, or a fault.
    pub hardware: bool,
}

/// Source of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceSource {
    Nvml,
    NvidiaSmi,
    AmdSmi,
    RocmSmi,
    Dcgm,
}

/// A look at the GPUs that brought nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissedLook {
    pub at: Moment,
    pub reason: LookMiss,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LookMiss {
    /// The tool or the driver did not answer in time.
    Timeout,
    /// It failed, or said nothing that can be read.
    Failed,
    /// Not asked: the look before took so long that looking on time would have been a load.
    BackedOff,
}

/// One look at the client's machine. Shares are of the time since the look before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientSample {
    pub at: Moment,
    /// Of all hardware threads, from 0 to 1.
    pub cpu_share: Option<f64>,
    /// Time that a hypervisor gave to others.
    pub steal_share: Option<f64>,
    /// Of our own process, in hardware threads.
    pub own_cpus: Option<f64>,
    /// Totals of all interfaces, loopback included.
    pub received_bytes: Option<u64>,
    pub sent_bytes: Option<u64>,
    pub memory_available_bytes: Option<u64>,
}

/// Why nothing is known of the GPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DevicesAbsence {
    /// Nobody asked for it, or the run is older than this.
    NotAsked,
    /// The server is not on this machine, and no source of its GPU metrics is set.
    Elsewhere,
    /// No tool of this machine knows a GPU.
    NoneFound,
    /// The tool failed, in its own words.
    Failed(String),
    /// The engine is ours, and only pretends to have GPUs.
    Pretended,
}

/// What machines said over a whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct Machines {
    /// In the order of time.
    pub devices: Vec<DevicesSample>,
    pub devices_absence: Option<DevicesAbsence>,
    /// Looks at the GPUs that brought nothing.
    pub devices_missed: Vec<MissedLook>,
    pub client: Vec<ClientSample>,
}

impl Default for Machines {
    fn default() -> Self {
        Self {
            devices: Vec::new(),
            devices_absence: Some(DevicesAbsence::NotAsked),
            devices_missed: Vec::new(),
            client: Vec::new(),
        }
    }
}

impl Machines {
    /// What a journal's entries come to.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a TelemetryEntry>) -> Self {
        let mut machines = Self::default();
        let mut absence = None;
        for entry in entries {
            match entry {
                TelemetryEntry::Devices(sample) => machines.devices.push(sample.clone()),
                TelemetryEntry::Client(sample) => machines.client.push(*sample),
                TelemetryEntry::DevicesAbsent(reason) => absence = Some(reason.clone()),
                TelemetryEntry::DevicesMissed(look) => machines.devices_missed.push(*look),
                TelemetryEntry::Sample(_)
                | TelemetryEntry::Missed(_)
                | TelemetryEntry::Absent(_)
                | TelemetryEntry::Skipped(_) => {}
            }
        }
        // Who was asked and never answered was asked for all the same.
        let unanswered = (!machines.devices_missed.is_empty()).then(DevicesAbsence::unanswered);
        machines.devices_absence = if machines.devices.is_empty() {
            absence.or(unanswered).or(machines.devices_absence)
        } else {
            None
        };
        machines.devices.sort_by_key(|sample| sample.at);
        machines.client.sort_by_key(|sample| sample.at);
        machines
    }
}

impl DeviceSource {
    pub const fn title(self) -> &'static str {
        match self {
            Self::Nvml => "NVML",
            Self::NvidiaSmi => "nvidia-smi",
            Self::AmdSmi => "amd-smi",
            Self::RocmSmi => "rocm-smi",
            Self::Dcgm => "DCGM exporter",
        }
    }
}

impl DevicesAbsence {
    fn unanswered() -> Self {
        Self::Failed("no look was answered in time".to_owned())
    }
}

impl fmt::Display for DevicesAbsence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAsked => f.write_str("the GPUs were not asked for"),
            Self::Elsewhere => f.write_str("the server is not on this machine"),
            Self::NoneFound => f.write_str("no GPU was found on this machine"),
            Self::Pretended => f.write_str("the engine is ours and only pretends to have GPUs"),
            Self::Failed(why) => write!(f, "the GPUs could not be read: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_that_were_asked_and_never_answered_are_not_called_unasked() {
        let missed = |reason| {
            TelemetryEntry::DevicesMissed(MissedLook { at: Moment::from_nanos(1), reason })
        };
        let hung = [missed(LookMiss::Timeout), missed(LookMiss::BackedOff)];
        let found = Machines::of(&hung);
        assert_eq!(found.devices_absence, Some(DevicesAbsence::unanswered()));
        let told = TelemetryEntry::DevicesAbsent(DevicesAbsence::NoneFound);
        let found = Machines::of(&[told, missed(LookMiss::Failed)]);
        assert_eq!(found.devices_absence, Some(DevicesAbsence::NoneFound));
        assert_eq!(Machines::of(&[]).devices_absence, Some(DevicesAbsence::NotAsked));
    }
}
