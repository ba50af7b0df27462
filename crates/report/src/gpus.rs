//! The server's GPUs, as every page describes them.

use inferometer_analysis::GaugeFigures;
use inferometer_analysis::machines::{DeviceFigures, EnergyFrom, GpuFigures, ServersBy};

use crate::fmt::gibibytes;
use crate::pages::prelude::*;

pub(crate) const NOT_REPORTED: &str = "not reported by the tool";

/// The GPUs that count in sums.
pub(crate) fn used(gpus: &GpuFigures) -> impl Iterator<Item = &DeviceFigures> {
    gpus.devices.iter().filter(|device| device.counts())
}

fn is_one(gpus: &GpuFigures) -> bool {
    used(gpus).count() == 1
}

/// `2 GPUs`, `2 of 8 GPUs, the others are idle` or `…, the others are not the server's`.
pub(crate) fn how_many(gpus: &GpuFigures) -> String {
    let (all, used) = (gpus.devices.len(), used(gpus).count());
    match used {
        0 => format!("{}, all idle", fmt::counted(all as u64, "GPU")),
        used if used == all => fmt::counted(all as u64, "GPU"),
        used => {
            let is_anothers = |device: &DeviceFigures| device.foreign && !device.idle;
            let others = gpus.devices.iter().any(is_anothers);
            let others = if others { "are not the server's" } else { "are idle" };
            format!("{used} of {all} GPUs, the others {others}")
        }
    }
}

/// The number of GPUs, and of the samples with their source.
pub(crate) fn samples(gpus: &GpuFigures) -> String {
    let missed = match gpus.missed {
        0 => String::new(),
        missed => format!(" ({} missed)", count(missed)),
    };
    let samples = fmt::counted(gpus.looks, "sample");
    format!("{}, {samples} by {}{missed}", how_many(gpus), gpus.source.title())
}

/// The mean of the means of all GPUs that count, and the highest of all values.
pub(crate) fn across(
    gpus: &GpuFigures,
    get: fn(&DeviceFigures) -> Option<GaugeFigures>,
) -> Option<GaugeFigures> {
    let found: Vec<GaugeFigures> = used(gpus).filter_map(get).collect();
    let max = found.iter().map(|one| one.max).reduce(f64::max)?;
    let mean = found.iter().map(|one| one.mean).sum::<f64>() / found.len() as f64;
    Some(GaugeFigures { mean, max, n: found.iter().map(|one| one.n).min()? })
}

/// A gauge of a GPU: its title, whether the highest value of several GPUs is shown instead of their mean,
/// its value and its text.
type Gauge = (&'static str, bool, fn(&DeviceFigures) -> Option<f64>, fn(f64) -> String);

const GAUGES: [Gauge; 8] = [
    ("Use", false, |it| Some(it.use_share?.mean), percent),
    (
        "Memory, highest (GiB)",
        true,
        |it| Some(it.memory_used_bytes?.max),
        |bytes| number(gibibytes(bytes)),
    ),
    ("Power, highest (W)", true, |it| Some(it.power_w?.max), number),
    ("Core clock (MHz)", false, |it| Some(it.core_clock_mhz?.mean), whole),
    ("Temperature, highest (°C)", true, |it| Some(it.temperature_c?.max), whole),
    ("Throttled by power", false, |it| it.throttled_power, percent),
    ("Throttled by heat", false, |it| it.throttled_thermal, percent),
    ("Throttled by the board", false, |it| it.throttled_hardware, percent),
];

/// Adds the columns of the gauges; `devices` are the GPUs of a row.
pub(crate) fn columns<'a, T: 'a>(
    columns: Columns<'a, T>,
    devices: fn(&T) -> Vec<&'a DeviceFigures>,
) -> Columns<'a, T> {
    GAUGES.into_iter().fold(columns, |columns, (title, is_highest, get, text)| {
        columns.right(title, move |row| {
            let values: Vec<f64> = devices(row).into_iter().filter_map(get).collect();
            let ends = [f64::min, f64::max].map(|end| values.iter().copied().reduce(end));
            let [Some(low), Some(high)] = ends else { return missing(NOT_REPORTED) };
            if is_highest || values.len() == 1 {
                return Cell::number(text(high), high);
            }
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let behind = fmt::counted(values.len() as u64, "GPU run");
            let range = format!("{} to {} in {behind}", text(low), text(high));
            Cell::number(text(mean), mean).detailed(range)
        })
    })
}

/// The GPUs that are in the sums.
pub(crate) fn counted(gpus: &GpuFigures) -> &'static str {
    match (gpus.servers_by, is_one(gpus)) {
        (Some(ServersBy::Processes), true) => "the GPU with a process of the server",
        (Some(ServersBy::Processes), false) => "GPUs with a process of the server",
        (Some(ServersBy::OnlyOne), _) => "the only GPU of the machine",
        (Some(ServersBy::Environment), true) => "the GPU that was assigned to the server",
        (Some(ServersBy::Environment), false) => "GPUs that were assigned to the server and used",
        (None, true) => "the GPU that was in use",
        (None, false) => "all GPUs that were in use, which may not all be the server's",
    }
}

/// The limits that throttled it, such as `power limit in 12 %`; `None` where it was not throttled.
pub(crate) fn throttled(device: &DeviceFigures) -> Option<String> {
    let shares = [
        ("power limit", device.throttled_power),
        ("heat", device.throttled_thermal),
        ("board", device.throttled_hardware),
    ];
    let held = shares.into_iter().filter_map(|(what, share)| {
        let share = share.filter(|share| 0.0 < *share)?;
        Some(format!("{what} in {}", percent(share)))
    });
    held.try_join(", ")
}

/// How the energy was found.
pub(crate) fn energy_from(gpus: &GpuFigures) -> &'static str {
    let mut sources = used(gpus).filter_map(|device| device.energy_from);
    match sources.next() {
        None => "not known",
        Some(first) if sources.any(|other| other != first) => "by counters and from power",
        Some(EnergyFrom::Counter) if is_one(gpus) => "by its counter",
        Some(EnergyFrom::Counter) => "by their counters",
        Some(EnergyFrom::Power) if is_one(gpus) => "from its power",
        Some(EnergyFrom::Power) => "from their power",
    }
}
