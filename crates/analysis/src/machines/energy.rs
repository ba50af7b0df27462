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
/// Readings further apart than so many periods, and than this, are not joined.
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
    let fresh = fresh(totals);
    let low = at(&fresh, from, gap).or_else(|| fresh.iter().find(|it| from <= it.0).copied())?;
    let high = at(&fresh, to, gap).or_else(|| fresh.iter().rfind(|it| it.0 <= to).copied())?;
    whole(high.1 - low.1, high.0 - low.0, to - from).filter(|joules| 0.0 < *joules)
}

/// Those of the looks that saw a new total. An exporter repeats an old one until it reads its GPUs
/// again, and how old the first is nobody knows, unless no look after it saw the same twice.
fn fresh(totals: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let grown = totals.windows(2).filter(|pair| pair[0].1 < pair[1].1).map(|pair| pair[1]);
    let mut found: Vec<(f64, f64)> = grown.collect();
    if found.len() + 1 == totals.len() {
        found.insert(0, totals[0]);
    }
    found
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks every second for so long at a GPU that draws 100 W for the first half and 300 W then,
    /// and whose counter is read anew at every so many of them.
    fn found(length: u64, window: (u64, u64), step: u64) -> Option<(f64, EnergyFrom)> {
        let used =
            |second: u64| 100.0 * second as f64 + 200.0 * second.saturating_sub(length / 2) as f64;
        let reading = |second: u64| DeviceReading {
            // The first reading is some seconds old.
            energy_j: Some(7_000.0 + used((second + step / 2) / step * step)),
            power_w: Some(if second < length / 2 { 100.0 } else { 300.0 }),
            ..DeviceReading::default()
        };
        let looks: Vec<(Moment, DeviceReading)> =
            (0..=length).map(|second| (moment(second), reading(second))).collect();
        let looks: Vec<Look<'_>> = looks.iter().map(|(at, reading)| (*at, reading)).collect();
        over((moment(window.0), moment(window.1)), &looks, Duration::from_secs(1))
    }

    fn moment(second: u64) -> Moment {
        Moment::ZERO + Duration::from_secs(second)
    }

    #[test]
    fn a_counter_that_is_read_seldom_is_left_to_power() {
        let (exact, from) = found(20, (1, 19), 1).unwrap();
        assert_eq!((exact.round(), from), (9.0 * 100.0 + 9.0 * 300.0, EnergyFrom::Counter));
        for step in [10, 15] {
            let (joules, from) = found(20, (1, 19), step).unwrap();
            assert_eq!(from, EnergyFrom::Power, "every {step} s");
            assert!((joules / exact - 1.0).abs() < 0.05, "{joules}");
        }
    }

    #[test]
    fn a_long_window_may_lie_between_two_of_its_readings() {
        let (joules, from) = found(1_000, (1, 999), 10).unwrap();
        assert_eq!(from, EnergyFrom::Counter);
        assert!((joules / 199_600.0 - 1.0).abs() < 0.02, "{joules}");
    }
}
