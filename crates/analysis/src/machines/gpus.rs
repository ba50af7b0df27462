//! The server's GPUs: each by itself, and those that did something together.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use inferometer_model::telemetry::{DeviceReading, DevicesSample, Throttle};
use inferometer_model::{Moment, Observations};

use super::energy::{self, Look};
use super::timeline::GpuTimeline;
use super::{DeviceFigures, GpuFigures, is_inside, servers};
use crate::client::share;
use crate::metric::Missing;
use crate::server::GaugeFigures;
use crate::throughput::Extremes;

const IDLE: Missing = Missing("no GPU that was read did anything during the run");
const UNTOLD: Missing =
    Missing("the GPUs tell no energy, and their power too seldom to make one of it");
const NO_WINDOW: Missing = Missing("the window has no length");

/// Used no more than this, and filled no more than that, a GPU is not the server's.
const IDLE_USE: f64 = 0.01;
const IDLE_MEMORY_SHARE: f64 = 0.05;
const IDLE_MEMORY_BYTES: f64 = (1_u64 << 30) as f64;
const JOULES_IN_KWH: f64 = 3.6e6;

impl GpuFigures {
    /// With the energy of all, or why there is none. `None` where no look shows a device.
    pub(super) fn of(
        observations: &Observations,
        window: Extremes,
        output_tokens: Option<u64>,
    ) -> Option<(Self, Result<f64, Missing>)> {
        let samples = &observations.machines.devices;
        let source = samples.last()?.source;
        let spec = observations.manifest.spec.telemetry.as_ref();
        let every = spec.map_or(Duration::from_secs(1), |spec| spec.every);
        let mut by_index: BTreeMap<u32, Vec<Look<'_>>> = BTreeMap::new();
        for sample in samples {
            for reading in &sample.devices {
                by_index.entry(reading.index).or_default().push((sample.at, reading));
            }
        }
        if by_index.is_empty() {
            return None;
        }
        let bounds = window.bounds();
        let servers = servers::of(observations);
        let is_foreign =
            |index: &u32| servers.as_ref().is_some_and(|(_, own)| !own.contains(index));
        let device = |(index, looks): (&u32, &Vec<Look<'_>>)| {
            let energy = bounds.and_then(|bounds| energy::over(bounds, looks, every));
            let (energy_j, energy_from) = energy.unzip();
            let foreign = is_foreign(index);
            let seen = device(*index, looks, observations);
            DeviceFigures { foreign, energy_j, energy_from, ..seen }
        };
        let devices: Vec<DeviceFigures> = by_index.iter().map(device).collect();
        let counted: BTreeSet<u32> =
            devices.iter().filter(|device| device.counts()).map(|device| device.index).collect();
        let energy_j = energy_of(&devices, bounds.is_some());
        let inside: Vec<&DevicesSample> =
            samples.iter().filter(|sample| is_inside(observations, sample.at)).collect();
        let summed = |of: fn(&DeviceReading) -> Option<f64>| {
            let sums = inside.iter().filter_map(|sample| sum(sample, &counted, of));
            GaugeFigures::of_values(sums)
        };
        let tokens = output_tokens.filter(|tokens| 0 < *tokens).map(|tokens| tokens as f64);
        let per_token = energy_j.ok().zip(tokens).map(|(joules, tokens)| joules / tokens);
        let figures = Self {
            source,
            looks: inside.len() as u64,
            missed: missed(observations),
            servers_by: servers.as_ref().map(|(by, _)| *by),
            took_ms_max: inside.iter().map(|it| it.took.as_secs_f64() * 1e3).reduce(f64::max),
            power_w: summed(|reading| reading.power_w),
            memory_used_bytes: summed(|reading| reading.memory_used_bytes.map(|it| it as f64)),
            energy_j: energy_j.ok(),
            energy_missing: energy_j.err().map(|Missing(reason)| reason.to_owned()),
            energy_per_output_token_j: per_token,
            energy_per_million_tokens_kwh: per_token.map(|joules| joules * 1e6 / JOULES_IN_KWH),
            timeline: GpuTimeline::of(samples, &counted, every),
            devices,
        };
        Some((figures, energy_j))
    }
}

fn missed(observations: &Observations) -> u64 {
    let looks = observations.machines.devices_missed.iter();
    looks.filter(|look| is_inside(observations, look.at)).count() as u64
}

/// Of the devices that count; one whose energy is not known makes the sum unknown.
fn energy_of(devices: &[DeviceFigures], has_window: bool) -> Result<f64, Missing> {
    let mut counted = devices.iter().filter(|device| device.counts()).peekable();
    if !has_window {
        return Err(NO_WINDOW);
    }
    counted.peek().ok_or(IDLE)?;
    counted.map(|device| device.energy_j).sum::<Option<f64>>().ok_or(UNTOLD)
}

/// Over the devices that count; `None` where one of them does not tell.
pub(super) fn sum(
    sample: &DevicesSample,
    counted: &BTreeSet<u32>,
    of: fn(&DeviceReading) -> Option<f64>,
) -> Option<f64> {
    let told: Vec<f64> = readings(sample, counted).filter_map(of).collect();
    (!told.is_empty() && told.len() == counted.len()).then(|| told.iter().sum())
}

pub(super) fn readings<'a>(
    sample: &'a DevicesSample,
    counted: &'a BTreeSet<u32>,
) -> impl Iterator<Item = &'a DeviceReading> {
    sample.devices.iter().filter(|reading| counted.contains(&reading.index))
}

fn device(index: u32, looks: &[Look<'_>], observations: &Observations) -> DeviceFigures {
    let inside: Vec<&DeviceReading> = looks
        .iter()
        .filter(|(at, _)| is_inside(observations, *at))
        .map(|(_, reading)| *reading)
        .collect();
    let gauge = |of: fn(&DeviceReading) -> Option<f64>| {
        GaugeFigures::of_values(inside.iter().filter_map(|reading| of(reading)))
    };
    let throttled = |of: fn(&Throttle) -> bool| {
        let told: Vec<bool> =
            inside.iter().filter_map(|reading| reading.throttle.as_ref().map(of)).collect();
        share(told.iter().filter(|held| **held).count() as u64, told.len() as u64)
    };
    let use_share = gauge(|reading| reading.use_share);
    let memory_used_bytes = gauge(|reading| reading.memory_used_bytes.map(|it| it as f64));
    let memory_total_bytes = looks.iter().find_map(|(_, reading)| reading.memory_total_bytes);
    DeviceFigures {
        index,
        idle: is_idle(use_share, memory_used_bytes, memory_total_bytes),
        use_share,
        memory_used_bytes,
        memory_total_bytes,
        power_w: gauge(|reading| reading.power_w),
        core_clock_mhz: gauge(|reading| reading.core_clock_mhz),
        memory_clock_mhz: gauge(|reading| reading.memory_clock_mhz),
        temperature_c: gauge(|reading| reading.temperature_c),
        energy_j: None,
        energy_from: None,
        foreign: false,
        throttled_power: throttled(|throttle| throttle.power),
        throttled_thermal: throttled(|throttle| throttle.thermal),
        throttled_hardware: throttled(|throttle| throttle.hardware),
        newcomers: newcomers(looks, observations.ending.began, &inside),
    }
}

/// A model fills memory, and a server that is looked at every second may rest at each look: both
/// must be small. What does not tell its use is not called idle.
fn is_idle(used: Option<GaugeFigures>, memory: Option<GaugeFigures>, total: Option<u64>) -> bool {
    let room = total.map_or(IDLE_MEMORY_BYTES, |total| IDLE_MEMORY_SHARE * total as f64);
    used.is_some_and(|used| used.max <= IDLE_USE) && memory.is_none_or(|memory| memory.max <= room)
}

/// Processes that no look before the run shows; without such a look, those that the first one inside
/// does not.
fn newcomers(looks: &[Look<'_>], began: Option<Moment>, inside: &[&DeviceReading]) -> u64 {
    let told = |reading: &DeviceReading| reading.processes.clone();
    let earlier = looks.iter().filter(|(at, _)| began.is_some_and(|began| *at < began));
    let before = earlier.filter_map(|(_, reading)| told(reading)).next_back();
    let known = before.or_else(|| inside.iter().find_map(|reading| told(reading)));
    let known: BTreeSet<u32> = known.into_iter().flatten().collect();
    let seen: BTreeSet<u32> = inside.iter().filter_map(|reading| told(reading)).flatten().collect();
    seen.difference(&known).count() as u64
}
