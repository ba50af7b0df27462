//! The machines during a run: the GPUs of the server, and the client's own machine.
//!
//! Figures are of the samples while the plan was played. What a tool does not report is null, never
//! zero. Energy is over the window of the throughputs, so that it can be divided by their tokens.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use inferometer_model::deployment::DeploymentFacts;
use inferometer_model::system::KnownBy;
use inferometer_model::telemetry::{
    ClientSample, DeviceReading, DeviceSource, DevicesSample, Throttle,
};
use inferometer_model::{Moment, Observations};
use serde::{Deserialize, Serialize};

use crate::client::share;
use crate::metric::Missing;
use crate::record::Extremes;
use crate::server::{EVERY_BY_DEFAULT, EvenSteps, GaugeFigures, is_inside};

/// Figures of the samples inside the run.
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
    pub servers_by: Option<ServersBy>,
    pub took_ms_max: Option<f64>,
    /// In the order of their numbers.
    pub devices: Vec<DeviceFigures>,
    /// Sum over all devices that count, here and below.
    pub power_w: Option<GaugeFigures>,
    pub memory_used_bytes: Option<GaugeFigures>,
    /// From the first request sent to the last one ended.
    pub energy_j: Option<f64>,
    /// Why the energy is not known.
    pub energy_missing: Option<String>,
    pub energy_per_output_token_j: Option<f64>,
    /// Energy per million output tokens.
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
    /// Shares of the looks in which something held it back; null where it is not reported.
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

const NO_GPUS: Missing = "nothing is known of the server's GPUs";

impl MachineFigures {
    /// The figures, and the energy of the server's GPUs over the window. `output_tokens` are those of
    /// complete answers; `None` where there are none to divide by.
    pub(crate) fn from_observations(
        observations: &Observations,
        window: Extremes,
        output_tokens: Option<u64>,
    ) -> (Self, Result<f64, Missing>) {
        let found = GpuFigures::from_observations(observations, window, output_tokens);
        let absence = observations.machines.devices_absence.as_ref().map(ToString::to_string);
        let missing = absence.unwrap_or_else(|| "no GPU was in what was read".to_owned());
        let gpus_missing = found.is_none().then_some(missing);
        let (gpus, energy_j) = found.unzip();
        let client = ClientFigures::from_observations(observations);
        (Self { gpus, gpus_missing, client }, energy_j.unwrap_or(Err(NO_GPUS)))
    }
}

const IDLE: Missing = "no GPU that was read did anything during the run";
const UNKNOWN: Missing = "the GPUs report no energy, and their power too rarely to compute it";
const NO_WINDOW: Missing = "the window has no length";

/// Used no more than this, and filled no more than that, a GPU is not the server's.
const IDLE_USE: f64 = 0.01;
const IDLE_MEMORY_SHARE: f64 = 0.05;
const IDLE_MEMORY_BYTES: f64 = (1_u64 << 30) as f64;
const JOULES_IN_KWH: f64 = 3.6e6;

impl GpuFigures {
    /// With the energy of all, or why there is none. `None` where no look shows a device.
    fn from_observations(
        observations: &Observations,
        window: Extremes,
        output_tokens: Option<u64>,
    ) -> Option<(Self, Result<f64, Missing>)> {
        let samples = &observations.machines.devices;
        let source = samples.last()?.source;
        let every = observations.manifest.spec.telemetry.as_ref().map(|spec| spec.every);
        let steps = EvenSteps::over(samples, |sample| sample.at, every)?;
        let every = every.unwrap_or(EVERY_BY_DEFAULT);
        let mut by_index: BTreeMap<u32, Vec<Look<'_>>> = BTreeMap::new();
        for sample in samples {
            for reading in &sample.devices {
                by_index.entry(reading.index).or_default().push((sample.at, reading));
            }
        }
        if by_index.is_empty() {
            return None;
        }
        let bounds = window.0.filter(|(first, last)| first < last);
        let servers = server_gpus(observations);
        let device = |(index, looks): (&u32, &Vec<Look<'_>>)| {
            let energy = bounds.and_then(|bounds| energy_over(bounds, looks, every));
            let foreign = servers.as_ref().is_some_and(|(_, own)| !own.contains(index));
            device(*index, looks, observations, energy.unzip(), foreign)
        };
        let devices: Vec<DeviceFigures> = by_index.iter().map(device).collect();
        let used = || devices.iter().filter(|device| device.counts());
        let counted: BTreeSet<u32> = used().map(|device| device.index).collect();
        // One device whose energy is not known makes the sum unknown.
        let energy_j = match counted.len() {
            _ if bounds.is_none() => Err(NO_WINDOW),
            0 => Err(IDLE),
            _ => used().map(|device| device.energy_j).sum::<Option<f64>>().ok_or(UNKNOWN),
        };
        let inside = || samples.iter().filter(|sample| is_inside(observations, sample.at));
        let summed = |of: fn(&DeviceReading) -> Option<f64>| {
            GaugeFigures::from_values(inside().filter_map(|sample| sum(sample, &counted, of)))
        };
        let missed = observations.machines.devices_missed.iter();
        let tokens = output_tokens.filter(|tokens| 0 < *tokens).map(|tokens| tokens as f64);
        let per_token = energy_j.ok().zip(tokens).map(|(joules, tokens)| joules / tokens);
        let figures = Self {
            source,
            looks: inside().count() as u64,
            missed: missed.filter(|look| is_inside(observations, look.at)).count() as u64,
            servers_by: servers.as_ref().map(|(by, _)| *by),
            took_ms_max: inside().map(|it| it.took.as_secs_f64() * 1e3).reduce(f64::max),
            power_w: summed(|reading| reading.power_w),
            memory_used_bytes: summed(|reading| reading.memory_used_bytes.map(|it| it as f64)),
            energy_j: energy_j.ok(),
            energy_missing: energy_j.err().map(str::to_owned),
            energy_per_output_token_j: per_token,
            energy_per_million_tokens_kwh: per_token.map(|joules| joules * 1e6 / JOULES_IN_KWH),
            timeline: GpuTimeline::new(samples, &counted, &steps),
            devices,
        };
        Some((figures, energy_j))
    }
}

/// Over the devices that count; `None` where one of them does not tell.
fn sum(
    sample: &DevicesSample,
    counted: &BTreeSet<u32>,
    of: fn(&DeviceReading) -> Option<f64>,
) -> Option<f64> {
    let values: Vec<f64> = readings(sample, counted).filter_map(of).collect();
    (!values.is_empty() && values.len() == counted.len()).then(|| values.iter().sum())
}

fn readings<'a>(
    sample: &'a DevicesSample,
    counted: &'a BTreeSet<u32>,
) -> impl Iterator<Item = &'a DeviceReading> {
    sample.devices.iter().filter(|reading| counted.contains(&reading.index))
}

fn device(
    index: u32,
    looks: &[Look<'_>],
    observations: &Observations,
    (energy_j, energy_from): (Option<f64>, Option<EnergyFrom>),
    foreign: bool,
) -> DeviceFigures {
    let inside = looks.iter().filter(|(at, _)| is_inside(observations, *at));
    let inside: Vec<&DeviceReading> = inside.map(|(_, reading)| *reading).collect();
    let gauge = |of: fn(&DeviceReading) -> Option<f64>| {
        GaugeFigures::from_values(inside.iter().filter_map(|reading| of(reading)))
    };
    let throttled = |of: fn(&Throttle) -> bool| {
        let held: Vec<bool> = inside.iter().filter_map(|it| it.throttle.as_ref().map(of)).collect();
        share(held.iter().filter(|held| **held).count() as u64, held.len() as u64)
    };
    let use_share = gauge(|reading| reading.use_share);
    let memory_used_bytes = gauge(|reading| reading.memory_used_bytes.map(|it| it as f64));
    let memory_total_bytes = looks.iter().find_map(|(_, reading)| reading.memory_total_bytes);
    // A model fills memory, and a server that is looked at every second may rest at each look: both
    // must be small. What does not report its use is not called idle.
    let room =
        memory_total_bytes.map_or(IDLE_MEMORY_BYTES, |total| IDLE_MEMORY_SHARE * total as f64);
    let is_idle = use_share.is_some_and(|used| used.max <= IDLE_USE)
        && memory_used_bytes.is_none_or(|memory| memory.max <= room);
    DeviceFigures {
        index,
        idle: is_idle,
        use_share,
        memory_used_bytes,
        memory_total_bytes,
        power_w: gauge(|reading| reading.power_w),
        core_clock_mhz: gauge(|reading| reading.core_clock_mhz),
        memory_clock_mhz: gauge(|reading| reading.memory_clock_mhz),
        temperature_c: gauge(|reading| reading.temperature_c),
        energy_j,
        energy_from,
        foreign,
        throttled_power: throttled(|throttle| throttle.power),
        throttled_thermal: throttled(|throttle| throttle.thermal),
        throttled_hardware: throttled(|throttle| throttle.hardware),
        newcomers: newcomers(looks, observations.ending.began, &inside),
    }
}

/// Processes that no look before the run shows; without such a look, those that the first one inside
/// does not.
fn newcomers(looks: &[Look<'_>], began: Option<Moment>, inside: &[&DeviceReading]) -> u64 {
    let earlier = looks.iter().filter(|(at, _)| began.is_some_and(|began| *at < began));
    let before = earlier.filter_map(|(_, reading)| reading.processes.as_ref()).next_back();
    let reported = || inside.iter().filter_map(|reading| reading.processes.as_ref());
    let known = before.or_else(|| reported().next());
    let seen: BTreeSet<&u32> = reported().flatten().collect();
    let is_known = |process: &u32| known.is_some_and(|known| known.contains(process));
    seen.into_iter().filter(|process| !is_known(process)).count() as u64
}

/// How it is known which GPUs are the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServersBy {
    /// One of its processes was on them.
    Processes,
    /// Its environment names them.
    Environment,
    /// Its machine has no other.
    OnlyOne,
}

/// `None` where it is not known; then all that are in use are taken for the server's.
fn server_gpus(observations: &Observations) -> Option<(ServersBy, BTreeSet<u32>)> {
    let server = observations.manifest.server.as_ref()?;
    let readings = || observations.machines.devices.iter().flat_map(|sample| &sample.devices);
    let is_own = |process: &u32| server.processes.contains(process);
    let held = readings().filter(|reading| reading.processes.iter().flatten().any(is_own));
    let held: BTreeSet<u32> = held.map(|reading| reading.index).collect();
    // Fewer than the model is spread over are not all: some of its processes are not known to us.
    if server.gpus_used.unwrap_or(1).max(1) as usize <= held.len() {
        return Some((ServersBy::Processes, held));
    }
    let seen: BTreeSet<u32> = readings().map(|reading| reading.index).collect();
    let named = server.deployment.as_ref().and_then(named_gpus);
    if let Some(named) = named.filter(|named| named.is_subset(&seen)) {
        return Some((ServersBy::Environment, named));
    }
    // In a container the processes on a GPU have numbers of the host, or are not reported at all. A
    // server of another machine has other GPUs, and one that was given devices by name may have none.
    let is_here = server.known_by == Some(KnownBy::Loopback);
    let is_open = server.deployment.as_ref().is_none_or(|it| visible_devices(it).is_none());
    let is_one = server.gpus_used.unwrap_or(1) <= 1 && seen.len() == 1;
    (is_here && is_open && is_one).then_some((ServersBy::OnlyOne, seen))
}

/// Names other than numbers (`GPU-…`, `all`) say nothing here: readings have only numbers.
fn named_gpus(deployment: &DeploymentFacts) -> Option<BTreeSet<u32>> {
    let visible = visible_devices(deployment);
    let list = match deployment.kind.as_str() {
        "process" => visible?,
        // Only the engine of containers heeds this one, and inside they are numbered anew.
        "container" if visible.is_none() => variable(deployment, "NVIDIA_VISIBLE_DEVICES")?,
        _ => return None,
    };
    list.split(',').map(|number| number.trim().parse().ok()).collect()
}

/// What the environment of the program lets it see.
fn visible_devices(deployment: &DeploymentFacts) -> Option<&str> {
    let names = ["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"];
    names.into_iter().find_map(|name| variable(deployment, name))
}

fn variable<'a>(deployment: &'a DeploymentFacts, name: &str) -> Option<&'a str> {
    let found = deployment.environment.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value.as_str())
}

/// Where an energy comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnergyFrom {
    /// The difference of the device's own total.
    Counter,
    /// Straight lines between the readings of its power.
    Power,
}

/// Looks that cover less of the window than this tell too little of the rest.
const COVERED_SHARE: f64 = 0.9;
/// Readings further apart than so many periods, and than this, are not joined.
const GAP_PERIODS: u32 = 3;
const GAP: Duration = Duration::from_secs(5);

/// A look at one device.
type Look<'a> = (Moment, &'a DeviceReading);

/// What the window used, in joules. Where looks cover nearly all of it, the rest is taken to be like
/// it.
fn energy_over(
    (from, to): (Moment, Moment),
    looks: &[Look<'_>],
    every: Duration,
) -> Option<(f64, EnergyFrom)> {
    let window = (seconds(from), seconds(to));
    let known = |of: fn(&DeviceReading) -> Option<f64>| -> Vec<(f64, f64)> {
        let found = looks.iter().filter_map(|(at, reading)| Some((seconds(*at), of(reading)?)));
        found.filter(|(_, value)| value.is_finite() && 0.0 <= *value).collect()
    };
    let gap = (every * GAP_PERIODS).max(GAP).as_secs_f64();
    let counted = by_counter(window, &known(|reading| reading.energy_j), gap);
    let by_power = || under_power(window, &known(|reading| reading.power_w), gap);
    let counted = counted.map(|joules| (joules, EnergyFrom::Counter));
    counted.or_else(|| Some((by_power()?, EnergyFrom::Power)))
}

/// `None` for a counter that falls, or that stands still for too much of the window.
fn by_counter((from, to): (f64, f64), totals: &[(f64, f64)], gap: f64) -> Option<f64> {
    if totals.windows(2).any(|pair| pair[1].1 < pair[0].1) {
        return None;
    }
    // Looks that saw a new total. An exporter repeats an old one until it reads its GPUs again, and how
    // old the first is nobody knows, unless no look after it saw the same twice.
    let grown = totals.windows(2).filter(|pair| pair[0].1 < pair[1].1).map(|pair| pair[1]);
    let mut fresh: Vec<(f64, f64)> = grown.collect();
    if fresh.len() + 1 == totals.len() {
        fresh.insert(0, totals[0]);
    }
    let low = at(&fresh, from, gap).or_else(|| fresh.iter().find(|it| from <= it.0).copied())?;
    let high = at(&fresh, to, gap).or_else(|| fresh.iter().rfind(|it| it.0 <= to).copied())?;
    whole(high.1 - low.1, high.0 - low.0, to - from).filter(|joules| 0.0 < *joules)
}

fn under_power((from, to): (f64, f64), readings: &[(f64, f64)], gap: f64) -> Option<f64> {
    let (mut joules, mut covered) = (0.0, 0.0);
    for pair in readings.windows(2) {
        let (low, high) = (from.max(pair[0].0), to.min(pair[1].0));
        if low < high && pair[1].0 - pair[0].0 <= gap {
            let ends = [low, high].map(|place| between(pair[0], pair[1], place));
            joules += f64::midpoint(ends[0], ends[1]) * (high - low);
            covered += high - low;
        }
    }
    whole(joules, covered, to - from)
}

/// What the whole window comes to, if enough of it is covered.
fn whole(joules: f64, covered: f64, length: f64) -> Option<f64> {
    let enough = 0.0 < covered && COVERED_SHARE * length <= covered;
    enough.then(|| joules * length / covered)
}

/// The value at a moment between two that are near enough to be joined.
fn at(values: &[(f64, f64)], place: f64, gap: f64) -> Option<(f64, f64)> {
    let pair = values.windows(2).find(|pair| (pair[0].0..=pair[1].0).contains(&place))?;
    (pair[1].0 - pair[0].0 <= gap).then(|| (place, between(pair[0], pair[1], place)))
}

fn between(before: (f64, f64), after: (f64, f64), place: f64) -> f64 {
    let length = after.0 - before.0;
    let share = if 0.0 < length { (place - before.0) / length } else { 0.0 };
    before.1 + share * (after.1 - before.1)
}

fn seconds(at: Moment) -> f64 {
    Duration::from_nanos(at.as_nanos()).as_secs_f64()
}

/// Columns of equal length, a value for each step; of several devices the sum (power, memory), the
/// mean (use, clock) or the highest (temperature). Idle ones are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuTimeline {
    /// When the first step begins, since the run's zero.
    pub from_ms: f64,
    pub step_ms: f64,
    pub use_share: Vec<Option<f64>>,
    pub memory_used_bytes: Vec<Option<f64>>,
    pub power_w: Vec<Option<f64>>,
    pub core_clock_mhz: Vec<Option<f64>>,
    pub temperature_c: Vec<Option<f64>>,
}

impl GpuTimeline {
    fn new(samples: &[DevicesSample], counted: &BTreeSet<u32>, steps: &EvenSteps) -> Self {
        let column = |of: &dyn Fn(&DevicesSample) -> Option<f64>| {
            steps.means(samples.iter().filter_map(|sample| Some((sample.at, of(sample)?))))
        };
        let mean = |of: fn(&DeviceReading) -> Option<f64>| {
            column(&|sample| Some(sum(sample, counted, of)? / counted.len() as f64))
        };
        Self {
            from_ms: steps.from_ms,
            step_ms: steps.step_ms,
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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientFigures {
    /// Inside the run.
    pub looks: u64,
    pub cpu_share: Option<GaugeFigures>,
    pub steal_share: Option<GaugeFigures>,
    pub own_cpus: Option<GaugeFigures>,
    /// Bytes of all interfaces, loopback included, between the first and the last sample; null where
    /// a total fell.
    pub received_bytes_per_s: Option<f64>,
    pub sent_bytes_per_s: Option<f64>,
    pub memory_available_bytes_min: Option<u64>,
    #[serde(default)]
    pub timeline: ClientTimeline,
}

/// Columns of equal length, a value for each step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientTimeline {
    /// When the first step begins, since the run's zero.
    pub from_ms: f64,
    pub step_ms: f64,
    pub cpu_share: Vec<Option<f64>>,
    pub own_cpus: Vec<Option<f64>>,
    /// Over the time since the look before; the step of the later one has it.
    pub received_bytes_per_s: Vec<Option<f64>>,
    pub sent_bytes_per_s: Vec<Option<f64>>,
}

impl ClientFigures {
    /// `None` where there is no sample.
    fn from_observations(observations: &Observations) -> Option<Self> {
        let samples = &observations.machines.client;
        let every = observations.manifest.spec.telemetry.as_ref().map(|spec| spec.every);
        let steps = EvenSteps::over(samples, |sample| sample.at, every)?;
        let inside: Vec<ClientSample> =
            samples.iter().filter(|it| is_inside(observations, it.at)).copied().collect();
        let gauge = |of: fn(&ClientSample) -> Option<f64>| {
            GaugeFigures::from_values(inside.iter().filter_map(of))
        };
        let means = |of: fn(&ClientSample) -> Option<f64>| {
            steps.means(samples.iter().filter_map(|sample| Some((sample.at, of(sample)?))))
        };
        let rates = |of: fn(&ClientSample) -> Option<u64>| {
            let pairs = samples.windows(2);
            steps.means(pairs.filter_map(|pair| Some((pair[1].at, growth(pair, of)?))))
        };
        let memory = inside.iter().filter_map(|sample| sample.memory_available_bytes);
        Some(Self {
            looks: inside.len() as u64,
            cpu_share: gauge(|sample| sample.cpu_share),
            steal_share: gauge(|sample| sample.steal_share),
            own_cpus: gauge(|sample| sample.own_cpus),
            received_bytes_per_s: growth(&inside, |sample| sample.received_bytes),
            sent_bytes_per_s: growth(&inside, |sample| sample.sent_bytes),
            memory_available_bytes_min: memory.min(),
            timeline: ClientTimeline {
                from_ms: steps.from_ms,
                step_ms: steps.step_ms,
                cpu_share: means(|sample| sample.cpu_share),
                own_cpus: means(|sample| sample.own_cpus),
                received_bytes_per_s: rates(|sample| sample.received_bytes),
                sent_bytes_per_s: rates(|sample| sample.sent_bytes),
            },
        })
    }
}

/// What a total grew by in each second, from the first look to the last.
fn growth(samples: &[ClientSample], of: fn(&ClientSample) -> Option<u64>) -> Option<f64> {
    let totals: Vec<(Moment, u64)> =
        samples.iter().filter_map(|sample| Some((sample.at, of(sample)?))).collect();
    let ((from, first), (to, last)) = (totals.first()?, totals.last()?);
    if totals.windows(2).any(|pair| pair[1].1 < pair[0].1) {
        return None;
    }
    let seconds = to.since(*from)?.as_secs_f64();
    (0.0 < seconds).then(|| (last - first) as f64 / seconds)
}

#[cfg(test)]
mod tests;
