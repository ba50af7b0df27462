//! From values to places, and the round values between.

use crate::number::separated;

/// A straight line from values to pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    values: (f64, f64),
    places: (f64, f64),
}

impl Scale {
    /// `values` must differ; equal ones are spread, so that nothing divides by zero.
    pub(super) fn new(values: (f64, f64), places: (f64, f64)) -> Self {
        let (low, high) = values;
        let high = if low < high { high } else { low + 1.0 };
        Self { values: (low, high), places }
    }

    pub(super) fn place(&self, value: f64) -> f64 {
        let share = (value - self.values.0) / (self.values.1 - self.values.0);
        self.places.0 + share * (self.places.1 - self.places.0)
    }
}

/// Round steps from zero up to the first that holds all values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RoundTicks {
    step: f64,
    count: u32,
}

/// More intervals than this would be a grid to count.
const INTERVALS: f64 = 6.0;

impl RoundTicks {
    pub(super) fn up_to(highest: f64) -> Self {
        let highest = if highest.is_finite() && 0.0 < highest { highest } else { 1.0 };
        let rough = highest / INTERVALS;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * power)
            .find(|step| rough <= *step)
            .unwrap_or(10.0 * power);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "five or six steps"
        )]
        let count = (highest / step).ceil() as u32;
        Self { step, count }
    }

    pub(super) fn values(&self) -> impl Iterator<Item = f64> {
        let step = self.step;
        (0..=self.count).map(move |n| f64::from(n) * step)
    }

    pub(super) fn last(&self) -> f64 {
        f64::from(self.count) * self.step
    }

    /// With as many decimals as the step needs.
    pub(super) fn label(&self, value: f64) -> String {
        let decimals = (0..6_usize)
            .find(|decimals| {
                let shifted = self.step * 10_f64.powi(i32::try_from(*decimals).unwrap_or(0));
                (shifted - shifted.round()).abs() < 1e-6
            })
            .unwrap_or(6);
        label(value, decimals)
    }
}

/// Thousands separated.
pub(super) fn label(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.split_once('.') {
        Some((whole, fraction)) => format!("{}.{fraction}", separated(whole)),
        None => separated(&text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(highest: f64) -> Vec<String> {
        let ticks = RoundTicks::up_to(highest);
        ticks.values().map(|value| ticks.label(value)).collect()
    }

    #[test]
    fn ticks_are_round_and_hold_the_highest_value() {
        assert_eq!(
            labels(25_879.0),
            ["0", "5,000", "10,000", "15,000", "20,000", "25,000", "30,000"]
        );
        assert_eq!(labels(1_006.0), ["0", "200", "400", "600", "800", "1,000", "1,200"]);
        assert_eq!(labels(0.9), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(10.0), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(13.0), ["0.0", "2.5", "5.0", "7.5", "10.0", "12.5", "15.0"]);
    }

    #[test]
    fn nothing_to_show_still_has_an_axis() {
        for highest in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!((RoundTicks::up_to(highest).last() - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn places_are_in_proportion() {
        let scale = Scale::new((0.0, 10.0), (100.0, 200.0));
        assert!((scale.place(2.5) - 125.0).abs() < 1e-9);
        let upside_down = Scale::new((0.0, 10.0), (200.0, 100.0));
        assert!((upside_down.place(10.0) - 100.0).abs() < 1e-9);
        assert!(Scale::new((3.0, 3.0), (0.0, 1.0)).place(3.0).is_finite());
    }
}
