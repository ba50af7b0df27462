//! Tests of `energy`.

use crate::machines::*;

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
    energy_over((moment(window.0), moment(window.1)), &looks, Duration::from_secs(1))
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
