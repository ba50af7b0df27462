//! The energy of one GPU over a stretch of time: by its own counter where it has one that grows,
//! else by the area under its power.

use std::time::Duration;

use inferometer_model::Moment;
use inferometer_model::telemetry::DeviceReading;
use serde::{Deserialize, Serialize};

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
/// Readings of power further apart than so many periods, and than this, are not joined.
const GAP_PERIODS: u32 = 3;
const GAP: Duration = Duration::from_secs(5);

/// A look at one device.
pub(super) type Look<'a> = (Moment, &'a DeviceReading);

/// What the window used, in joules. Where looks cover nearly all of it, the rest is taken to be like
/// it.
pub(super) fn over(
    (from, to): (Moment, Moment),
    looks: &[Look<'_>],
    every: Duration,
) -> Option<(f64, EnergyFrom)> {
    let window = (seconds(from), seconds(to));
    let known = |of: fn(&DeviceReading) -> Option<f64>| -> Vec<(f64, f64)> {
        let found = looks.iter().filter_map(|(at, reading)| Some((seconds(*at), of(reading)?)));
        found.filter(|(_, value)| value.is_finite() && 0.0 <= *value).collect()
    };
    let counted = by_counter(window, &known(|reading| reading.energy_j));
    let by_power = || {
        let gap = (every * GAP_PERIODS).max(GAP);
        under_power(window, &known(|reading| reading.power_w), gap.as_secs_f64())
    };
    let counted = counted.map(|joules| (joules, EnergyFrom::Counter));
    counted.or_else(|| Some((by_power()?, EnergyFrom::Power)))
}

/// `None` for a counter that falls, or that stands still.
fn by_counter((from, to): (f64, f64), totals: &[(f64, f64)]) -> Option<f64> {
    let (first, last) = (totals.first()?, totals.last()?);
    if totals.windows(2).any(|pair| pair[1].1 < pair[0].1) {
        return None;
    }
    let (low, high) = (from.max(first.0), to.min(last.0));
    let grown = at(totals, high)? - at(totals, low)?;
    whole(grown, high - low, to - from).filter(|joules| 0.0 < *joules)
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

/// The value at a moment between the first and the last of them.
fn at(values: &[(f64, f64)], place: f64) -> Option<f64> {
    let pair = values.windows(2).find(|pair| (pair[0].0..=pair[1].0).contains(&place))?;
    Some(between(pair[0], pair[1], place))
}

fn between(before: (f64, f64), after: (f64, f64), place: f64) -> f64 {
    let length = after.0 - before.0;
    let share = if 0.0 < length { (place - before.0) / length } else { 0.0 };
    before.1 + share * (after.1 - before.1)
}

fn seconds(at: Moment) -> f64 {
    Duration::from_nanos(at.as_nanos()).as_secs_f64()
}
