//! The server's GPUs in words: what every page says of them.

use inferometer_analysis::GaugeFigures;
use inferometer_analysis::machines::{DeviceFigures, EnergyFrom, GpuFigures, ServersBy};

use crate::fmt::{count, percent};

/// Those that are counted; where none is, nothing is said of them together.
pub(crate) fn used(gpus: &GpuFigures) -> impl Iterator<Item = &DeviceFigures> {
    gpus.devices.iter().filter(|device| device.counts())
}

/// Of the ones that are counted.
pub(crate) fn is_one(gpus: &GpuFigures) -> bool {
    used(gpus).count() == 1
}

/// `2 GPUs`, `2 of 8 GPUs, the others rest` or `…, the others are not the server's`.
pub(crate) fn how_many(gpus: &GpuFigures) -> String {
    let (all, used) = (gpus.devices.len(), used(gpus).count());
    let noun = if all == 1 { "GPU" } else { "GPUs" };
    match used {
        0 => format!("{all} {noun} that did nothing"),
        used if used == all => format!("{all} {noun}"),
        used => {
            let is_anothers = |device: &DeviceFigures| device.foreign && !device.idle;
            let others =
                if gpus.devices.iter().any(is_anothers) { "are not the server's" } else { "rest" };
            format!("{used} of {all} GPUs, the others {others}")
        }
    }
}

/// Of several the mean of their means, and the highest of all.
pub(crate) fn across(
    gpus: &GpuFigures,
    of: fn(&DeviceFigures) -> Option<GaugeFigures>,
) -> Option<GaugeFigures> {
    let told: Vec<GaugeFigures> = used(gpus).filter_map(of).collect();
    let max = told.iter().map(|one| one.max).reduce(f64::max)?;
    let mean = told.iter().map(|one| one.mean).sum::<f64>() / told.len() as f64;
    Some(GaugeFigures { mean, max, n: told.iter().map(|one| one.n).min()? })
}

/// What is in the sums over GPUs.
pub(crate) fn counted(gpus: &GpuFigures) -> &'static str {
    match (gpus.servers_by, is_one(gpus)) {
        (Some(ServersBy::Processes), true) => "the GPU with a process of the server on it",
        (Some(ServersBy::Processes), false) => "GPUs with a process of the server on them",
        (Some(ServersBy::OnlyOne), _) => "the only GPU of the machine",
        (Some(ServersBy::Environment), true) => "the GPU that the server was given",
        (Some(ServersBy::Environment), false) => "GPUs that the server was given and used",
        (None, true) => "the GPU that was in use",
        (None, false) => "all GPUs that were in use, which may not all be the server's",
    }
}

/// ` (3 were missed)`, or nothing.
pub(crate) fn missed(gpus: &GpuFigures) -> String {
    match gpus.missed {
        0 => String::new(),
        1 => " (1 was missed)".to_owned(),
        several => format!(" ({} were missed)", count(several)),
    }
}

/// Such as `power limit in 12 % of the looks`; `None` where nobody tells.
pub(crate) fn held_back(device: &DeviceFigures) -> Option<String> {
    let shares = [
        ("power limit", device.throttled_power),
        ("heat", device.throttled_thermal),
        ("board", device.throttled_hardware),
    ];
    let told: Vec<(&str, f64)> =
        shares.into_iter().filter_map(|(what, share)| Some((what, share?))).collect();
    let held = told.iter().filter(|(_, share)| 0.0 < *share);
    let words: Vec<String> =
        held.map(|(what, share)| format!("{what} in {}", percent(*share))).collect();
    match (told.is_empty(), words.is_empty()) {
        (true, _) => None,
        (false, true) => Some("never".to_owned()),
        (false, false) => Some(words.join(", ")),
    }
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
