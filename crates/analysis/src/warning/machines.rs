//! Warnings that the machines give: GPUs that were held back, crowded or not alone, and a client's
//! machine without room.

use std::fmt;

use inferometer_model::telemetry::DeviceSource;

use super::Percent;
use crate::machines::{DeviceFigures, GpuFigures, MachineFigures};
use crate::verdict::Severity;

#[derive(Clone, Debug, PartialEq)]
pub enum MachineWarning {
    /// Something held a GPU back, in this share of the looks at the one that had it worst.
    GpuThrottled {
        by: ThrottledBy,
        gpu: u32,
        share: f64,
    },
    GpuHot {
        gpu: u32,
        celsius: f64,
        /// From here on it is noted.
        limit: f64,
    },
    /// So much of a GPU's memory was in use.
    GpuMemoryFull {
        gpu: u32,
        share: f64,
    },
    /// Processes came to the GPUs while the run went on.
    GpuNewcomers {
        processes: u64,
    },
    /// None of the GPUs that were read did anything.
    GpusIdle {
        gpus: u64,
    },
    /// A mean over the run, of all hardware threads.
    ClientCpuFull {
        share: f64,
    },
    ClientMemoryLow {
        bytes: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThrottledBy {
    Power,
    Thermal,
    Hardware,
}

/// The share of looks from which on a GPU that is too hot, or braked, is another machine than the one
/// that was bought.
pub(crate) const THROTTLED_SHARE: f64 = 0.05;
/// GPUs slow down a few degrees above.
const HOT_C: f64 = 85.0;
/// AMD's tools tell of the hottest place of the chip, which is 15 °C and more above its edge under a
/// load that is meant; it slows down from 100 °C on.
const HOT_JUNCTION_C: f64 = 95.0;
/// Servers that take what there is leave some; below this much there is no room for a spike.
pub(crate) const MEMORY_FULL_SHARE: f64 = 0.98;
/// Above it, threads of the client wait for a processor.
pub(crate) const CPU_FULL_SHARE: f64 = 0.9;
/// Below it, the system begins to reclaim what programs still use.
const MEMORY_LOW_BYTES: u64 = 512 << 20;

impl MachineWarning {
    pub(super) fn found(machines: &MachineFigures) -> Vec<Self> {
        let mut found = machines.gpus.as_ref().map_or_else(Vec::new, of_gpus);
        let client = machines.client.as_ref();
        let cpu = client.and_then(|client| client.cpu_share).map(|cpu| cpu.mean);
        let full = cpu.filter(|share| CPU_FULL_SHARE < *share);
        found.extend(full.map(|share| Self::ClientCpuFull { share }));
        let left = client.and_then(|client| client.memory_available_bytes_min);
        let low = left.filter(|bytes| *bytes < MEMORY_LOW_BYTES);
        found.extend(low.map(|bytes| Self::ClientMemoryLow { bytes }));
        found
    }

    pub const fn key(&self) -> &'static str {
        match self {
            Self::GpuThrottled { by: ThrottledBy::Power, .. } => "gpu-power-limit",
            Self::GpuThrottled { .. } => "gpu-throttled",
            Self::GpuHot { .. } => "gpu-hot",
            Self::GpuMemoryFull { .. } => "gpu-memory-full",
            Self::GpuNewcomers { .. } => "gpu-newcomers",
            Self::GpusIdle { .. } => "gpus-idle",
            Self::ClientCpuFull { .. } => "client-cpu-full",
            Self::ClientMemoryLow { .. } => "client-memory-low",
        }
    }

    pub fn severity(&self) -> Severity {
        match self {
            // A power limit is how many GPUs are meant to run under a full load.
            Self::GpuThrottled {
                by: ThrottledBy::Thermal | ThrottledBy::Hardware, share, ..
            } if THROTTLED_SHARE < *share => Severity::Degraded,
            Self::GpuNewcomers { .. }
            | Self::ClientCpuFull { .. }
            | Self::ClientMemoryLow { .. } => Severity::Degraded,
            Self::GpuThrottled { .. }
            | Self::GpuHot { .. }
            | Self::GpuMemoryFull { .. }
            | Self::GpusIdle { .. } => Severity::Note,
        }
    }

    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::GpuThrottled { by: ThrottledBy::Power, .. } => {
                "none needed if the limit is meant; otherwise raise it (nvidia-smi -pl, or its kin), \
                 and compare only runs with the same limit"
            }
            Self::GpuThrottled { by: ThrottledBy::Thermal, .. } | Self::GpuHot { .. } => {
                "look after the cooling of the machine, let it cool down between runs \
                 (--cool-down), and measure again"
            }
            Self::GpuThrottled { by: ThrottledBy::Hardware, .. } => {
                "look after the power supply and the health of the board (nvidia-smi -q, or its \
                 kin), and measure again"
            }
            Self::GpuMemoryFull { .. } => {
                "give the server less of the memory, or a shorter context, if it preempts requests \
                 or runs out of memory"
            }
            Self::GpuNewcomers { .. } => {
                "measure when nobody else uses the GPUs; if they are workers of the server, warm it \
                 up first (--warm-up)"
            }
            Self::GpusIdle { .. } => {
                "say where the server's GPUs are read from (--gpu-telemetry), if it has any"
            }
            Self::ClientCpuFull { .. } => {
                "give the client a machine of its own, or cores that the server does not use"
            }
            Self::ClientMemoryLow { .. } => {
                "end what else uses the client's memory, or measure from a machine with more"
            }
        }
    }
}

fn of_gpus(gpus: &GpuFigures) -> Vec<MachineWarning> {
    let devices = &gpus.devices;
    let used = || devices.iter().filter(|device| device.counts());
    let own = devices.iter().filter(|device| !device.foreign).count() as u64;
    if 0 < own && used().next().is_none() {
        return vec![MachineWarning::GpusIdle { gpus: own }];
    }
    let worst = |of: &dyn Fn(&DeviceFigures) -> Option<f64>| {
        let told = used().filter_map(|device| Some((device.index, of(device)?)));
        told.max_by(|a, b| a.1.total_cmp(&b.1))
    };
    let throttled = |by: ThrottledBy| {
        let (gpu, share) = worst(&|device| by.share_of(device)).filter(|(_, it)| 0.0 < *it)?;
        Some(MachineWarning::GpuThrottled { by, gpu, share })
    };
    let hottest = worst(&|device| Some(device.temperature_c?.max));
    let fullest = worst(&|device| {
        let total = device.memory_total_bytes.filter(|total| 0 < *total)? as f64;
        Some(device.memory_used_bytes?.max / total)
    });
    let processes = used().map(|device| device.newcomers).sum();
    let limit = hot_from(gpus.source);
    let hot = hottest.filter(|(_, celsius)| limit <= *celsius);
    let full = fullest.filter(|(_, share)| MEMORY_FULL_SHARE <= *share);
    ThrottledBy::ALL
        .into_iter()
        .filter_map(throttled)
        .chain(hot.map(|(gpu, celsius)| MachineWarning::GpuHot { gpu, celsius, limit }))
        .chain(full.map(|(gpu, share)| MachineWarning::GpuMemoryFull { gpu, share }))
        .chain((0 < processes).then_some(MachineWarning::GpuNewcomers { processes }))
        .collect()
}

const fn hot_from(source: DeviceSource) -> f64 {
    match source {
        DeviceSource::AmdSmi | DeviceSource::RocmSmi => HOT_JUNCTION_C,
        DeviceSource::Nvml | DeviceSource::NvidiaSmi | DeviceSource::Dcgm => HOT_C,
    }
}

impl ThrottledBy {
    const ALL: [Self; 3] = [Self::Hardware, Self::Thermal, Self::Power];

    const fn share_of(self, device: &DeviceFigures) -> Option<f64> {
        match self {
            Self::Power => device.throttled_power,
            Self::Thermal => device.throttled_thermal,
            Self::Hardware => device.throttled_hardware,
        }
    }
}

impl fmt::Display for ThrottledBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Power => "its power limit",
            Self::Thermal => "its temperature",
            Self::Hardware => "a brake of the board",
        })
    }
}

impl fmt::Display for MachineWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GpuThrottled { by, gpu, share } => {
                write!(
                    f,
                    "GPU {gpu} was held back by {by} in {} of the looks at it",
                    Percent(*share)
                )
            }
            Self::GpuHot { gpu, celsius, limit } => {
                write!(f, "GPU {gpu} was {celsius:.0} °C hot (noted from {limit} °C on)")
            }
            Self::GpuMemoryFull { gpu, share } => {
                write!(f, "{} of the memory of GPU {gpu} was in use", Percent(*share))
            }
            Self::GpuNewcomers { processes: 1 } => {
                f.write_str("a process came to the server's GPUs while the run went on")
            }
            Self::GpuNewcomers { processes } => {
                write!(f, "{processes} processes came to the server's GPUs while the run went on")
            }
            Self::GpusIdle { gpus } => {
                let those = match gpus {
                    1 => "the GPU that was read".to_owned(),
                    several => format!("the {several} GPUs that were read"),
                };
                write!(f, "{those} did nothing during the run: the server does not use them")
            }
            Self::ClientCpuFull { share } => write!(
                f,
                "the processors of the client's machine were busy for {} of the run",
                Percent(*share)
            ),
            Self::ClientMemoryLow { bytes } => {
                let (left, least) = (bytes >> 20, MEMORY_LOW_BYTES >> 20);
                write!(f, "the client's machine had {left} MiB of memory left (needs {least} MiB)")
            }
        }
    }
}

#[cfg(test)]
mod tests;
