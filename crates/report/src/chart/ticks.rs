//! The round values of an axis, and how they are written.

use super::scale::{Scale, Spacing};
use crate::fmt::{self, number, power_of_ten};

/// The ends of an axis and the values that are named on it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ticks {
    pub(super) spacing: Spacing,
    pub(super) ends: (f64, f64),
    /// Rising.
    pub(super) named: Vec<(f64, String)>,
}

/// More steps than this would be a grid to count.
const STEPS: f64 = 6.0;
/// Smaller numbers than this one, and larger ones than the next, are written as powers.
const PLAIN_LEAST: f64 = 1e-3;
const PLAIN_MOST: f64 = 1e7;

impl Ticks {
    /// From zero, or, where nothing is below it, from the round value below all others.
    pub(super) fn round(spacing: Spacing, values: &[f64]) -> Self {
        match spacing {
            Spacing::Even | Spacing::Tail => Self::from_zero(highest(values)),
            Spacing::Log => Self::logarithmic(values),
        }
    }

    /// From the round value below the least to the one above the greatest, zero among them.
    pub(super) fn on_both_sides(spacing: Spacing, values: &[f64]) -> Self {
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let low = finite().fold(0.0, f64::min);
        let high = finite().fold(0.0, f64::max);
        let width = high - low;
        if spacing != Spacing::Even || 0.0 <= low || !width.is_finite() {
            return Self::round(spacing, values);
        }
        let step = round_step(width / STEPS);
        let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
        let named = whole_numbers(last - first).map(|n| {
            let value = (first + n) * step;
            (value, in_steps(value, step))
        });
        Self { spacing, ends: (first * step, last * step), named: named.collect() }
    }

    /// The same, but no further than the greatest value.
    pub(super) fn up_to(spacing: Spacing, values: &[f64]) -> Self {
        match spacing {
            Spacing::Even | Spacing::Tail => Self::between(0.0, highest(values)),
            Spacing::Log => Self::logarithmic(values),
        }
    }

    /// At the measured values themselves.
    pub(super) fn at_values(spacing: Spacing, values: &[f64]) -> Self {
        let mut values: Vec<f64> =
            values.iter().copied().filter(|value| is_on(spacing, *value)).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let (Some(first), Some(last)) = (values.first().copied(), values.last().copied()) else {
            return Self::round(spacing, &[]);
        };
        let ends = match spacing {
            Spacing::Log if first < last => (first, last),
            Spacing::Log => (first / 2.0, last * 2.0),
            Spacing::Even | Spacing::Tail => (0.0, last),
        };
        let named = values.into_iter().map(|value| (value, measured(value))).collect();
        Self { spacing, ends, named }
    }

    /// Between two moments, with round ones between.
    pub(super) fn between(from: f64, to: f64) -> Self {
        let to = if from < to { to } else { from + 1.0 };
        let step = round_step((to - from) / STEPS);
        let first = (from / step).ceil();
        let count = ((to / step).floor() - first).clamp(0.0, 2.0 * STEPS);
        let named = whole_numbers(count).map(|n| {
            let value = (first + n) * step;
            (value, in_steps(value, step))
        });
        Self { spacing: Spacing::Even, ends: (from, to), named: named.collect() }
    }

    /// From the lowest to the highest of these values and no further, with round ones between.
    pub(super) fn within(spacing: Spacing, values: &[f64]) -> Self {
        /// Fewer than these say too little about an axis.
        const NAMED_MIN: usize = 3;
        let on_axis = || values.iter().copied().filter(|value| is_on(spacing, *value));
        let ends = on_axis().reduce(f64::min).zip(on_axis().reduce(f64::max));
        let Some(ends) = ends.filter(|(low, high)| low < high) else {
            return Self::round(spacing, values);
        };
        let mut named = match spacing {
            Spacing::Log => Self::logarithmic(values).named,
            Spacing::Even | Spacing::Tail => Vec::new(),
        };
        named.retain(|(value, _)| (ends.0..=ends.1).contains(value));
        if named.len() < NAMED_MIN {
            named = Self::between(ends.0, ends.1).named;
        }
        Self { spacing, ends, named }
    }

    /// Percentiles up to the first round one that holds all shares below one.
    pub(super) fn percentiles(shares: &[f64]) -> Self {
        const ROUND: [(f64, &str); 9] = [
            (0.0, "0 %"),
            (0.5, "50 %"),
            (0.75, "75 %"),
            (0.9, "90 %"),
            (0.95, "95 %"),
            (0.99, "99 %"),
            (0.999, "99.9 %"),
            (0.9999, "99.99 %"),
            (0.99999, "99.999 %"),
        ];
        /// Above the last percentile, for the greatest value of all.
        const HEAD_ROOM: f64 = 0.25;
        let below_one = shares.iter().copied().filter(|share| *share < 1.0);
        let highest = below_one.fold(0.99, f64::max);
        let last =
            ROUND.iter().position(|tick| highest <= tick.0 + 1e-12).unwrap_or(ROUND.len() - 1);
        let mut named: Vec<(f64, String)> =
            ROUND[..=last].iter().map(|(share, text)| (*share, (*text).to_owned())).collect();
        let mut end = ROUND[last].0;
        if shares.iter().any(|share| 1.0 <= *share) {
            end = 1.0 - (1.0 - end) * libm::pow(10.0, -HEAD_ROOM);
            named.push((1.0, "max".to_owned()));
        }
        Self { spacing: Spacing::Tail, ends: (0.0, end), named }
    }

    pub(super) fn scale(&self, places: (f64, f64)) -> Scale {
        Scale::new(self.spacing, self.ends, places)
    }

    fn from_zero(highest: f64) -> Self {
        let highest = if 0.0 < highest { highest } else { 1.0 };
        let step = round_step(highest / STEPS);
        // A value that is a round one must not need a step more for the sake of its last digit.
        let count = (highest / step - 1e-9).ceil();
        let named = whole_numbers(count).map(|n| (n * step, in_steps(n * step, step)));
        Self { spacing: Spacing::Even, ends: (0.0, count * step), named: named.collect() }
    }

    /// From the round value below all others to the one above them. Where many powers of ten lie
    /// between, only powers are named.
    fn logarithmic(values: &[f64]) -> Self {
        const FACTORS: [f64; 3] = [1.0, 2.0, 5.0];
        /// Powers of ten between which 2 and 5 are named too.
        const FEW: f64 = 2.8;
        let positive = || values.iter().copied().filter(|value| is_on(Spacing::Log, *value));
        let low = positive().reduce(f64::min).unwrap_or(1.0);
        let high = positive().reduce(f64::max).unwrap_or(10.0);
        let (lowest, highest) = (libm::log10(low), libm::log10(high));
        let first_power = lowest.floor() - 1.0;
        let mut round: Vec<(f64, f64)> = Vec::new();
        for n in whole_numbers(highest.ceil() - first_power + 1.0) {
            let power = first_power + n;
            round.extend(FACTORS.map(|factor| (factor * libm::exp10(power), power)));
        }
        let near = 1.0 + 1e-9;
        let first = round.iter().rposition(|(value, _)| *value <= low * near).unwrap_or(0);
        let last = round.iter().position(|(value, _)| high <= *value * near);
        let last = last.unwrap_or(round.len() - 1);
        // All values equal: a step to each side, so that they stand in the middle.
        let (first, last) =
            if first < last { (first, last) } else { (first.saturating_sub(1), last + 1) };
        let kept = &round[first..=last.min(round.len() - 1)];
        let stride = ((highest - lowest) / STEPS).ceil().max(1.0);
        let is_named = |place: usize, power: f64| {
            highest - lowest <= FEW || ((first + place).is_multiple_of(3) && power % stride == 0.0)
        };
        let named = kept
            .iter()
            .enumerate()
            .filter(|(place, (_, power))| is_named(*place, *power))
            .map(|(_, (value, _))| (*value, measured(*value)))
            .collect();
        let ends = (kept.first().map_or(1.0, |end| end.0), kept.last().map_or(10.0, |end| end.0));
        Self { spacing: Spacing::Log, ends, named }
    }
}

/// Whether a value has a place: on a logarithmic axis zero has none.
fn is_on(spacing: Spacing, value: f64) -> bool {
    value.is_finite() && (spacing != Spacing::Log || 0.0 < value)
}

fn highest(values: &[f64]) -> f64 {
    values.iter().copied().filter(|value| value.is_finite()).fold(0.0, f64::max)
}

/// 0, 1, 2 up to `last`, which is small.
fn whole_numbers(last: f64) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(0.0), |n| Some(n + 1.0)).take_while(move |n| *n <= last)
}

/// The first of 1, 2, 2.5 and 5 times a power of ten that is not below `least`.
fn round_step(least: f64) -> f64 {
    let power = libm::exp10(libm::log10(least).floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
    steps.into_iter().find(|step| least <= *step * (1.0 + 1e-9)).unwrap_or(10.0 * power)
}

/// With as many decimals as its step needs.
fn in_steps(value: f64, step: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if step < PLAIN_LEAST / 10.0 || PLAIN_MOST <= value.abs() {
        return power_of_ten(value);
    }
    let decimals = (0..5_usize)
        .find(|decimals| {
            let shifted = step * libm::exp10(*decimals as f64);
            (shifted - shifted.round()).abs() < 1e-6
        })
        .unwrap_or(5);
    fmt::decimals(value, decimals)
}

/// A measured value without zeros at its end.
fn measured(value: f64) -> String {
    let text = number(value);
    if text.contains('.') && !text.contains('×') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &Ticks) -> Vec<&str> {
        ticks.named.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_hold_the_highest_value() {
        let even = |highest: f64| Ticks::round(Spacing::Even, &[highest]);
        assert_eq!(
            labels(&even(25_879.0)),
            ["0", "5,000", "10,000", "15,000", "20,000", "25,000", "30,000"]
        );
        assert_eq!(labels(&even(1_006.0)), ["0", "200", "400", "600", "800", "1,000", "1,200"]);
        assert_eq!(labels(&even(0.9)), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&even(10.0)), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(&even(13.0)), ["0", "2.5", "5.0", "7.5", "10.0", "12.5", "15.0"]);
        assert_eq!(
            labels(&even(6e-9)),
            ["0", "10⁻⁹", "2×10⁻⁹", "3×10⁻⁹", "4×10⁻⁹", "5×10⁻⁹", "6×10⁻⁹"]
        );
    }

    #[test]
    fn logarithmic_ticks_hold_all_values() {
        let log = |values: &[f64]| Ticks::round(Spacing::Log, values);
        assert_eq!(labels(&log(&[12.0, 90.0])), ["10", "20", "50", "100"]);
        let far = log(&[1.0, 40_000.0]);
        assert_eq!(labels(&far), ["1", "10", "100", "1,000", "10,000"]);
        assert!((far.ends.1 - 50_000.0).abs() < 1.0);
        assert_eq!(labels(&log(&[5.0, 5.0])), ["2", "5", "10"]);
        assert_eq!(labels(&log(&[0.0])), ["1", "2", "5", "10"]);
        let wide = log(&[1e-9, 1e12]);
        assert!(wide.ends.0 <= 1e-9 * 1.001 && 0.999e12 <= wide.ends.1, "{wide:?}");
        assert!(wide.named.len() <= 8, "{wide:?}");
    }

    #[test]
    fn nothing_to_show_still_has_an_axis() {
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Ticks::round(Spacing::Even, &[value]).ends, (0.0, 1.0));
            assert_eq!(Ticks::round(Spacing::Log, &[value]).ends, (1.0, 10.0));
        }
        assert_eq!(Ticks::between(3.0, 3.0).ends, (3.0, 4.0));
    }

    #[test]
    fn an_axis_within_its_values_has_no_empty_ends() {
        let narrow = Ticks::within(Spacing::Log, &[20.0, 21.3, 0.0]);
        assert_eq!(narrow.ends, (20.0, 21.3));
        assert_eq!(labels(&narrow), ["20.00", "20.25", "20.50", "20.75", "21.00", "21.25"]);
        let wide = Ticks::within(Spacing::Log, &[7.0, 170.0]);
        assert_eq!(labels(&wide), ["10", "20", "50", "100"]);
        assert_eq!(Ticks::within(Spacing::Log, &[5.0, 5.0]).ends, (2.0, 10.0));
    }

    #[test]
    fn percentiles_end_where_the_values_do() {
        assert_eq!(
            labels(&Ticks::percentiles(&[0.5])),
            ["0 %", "50 %", "75 %", "90 %", "95 %", "99 %"]
        );
        let ticks = Ticks::percentiles(&[0.5, 0.9985, 1.0]);
        assert_eq!(labels(&ticks).last(), Some(&"max"));
        assert!(ticks.named.iter().any(|(_, label)| label == "99.9 %"));
        assert!(ticks.ends.1 < 1.0);
    }

    #[test]
    fn times_begin_where_the_run_does() {
        let ticks = Ticks::between(12.5, 42.0);
        assert_eq!(labels(&ticks), ["15", "20", "25", "30", "35", "40"]);
        assert_eq!(ticks.ends, (12.5, 42.0));
    }

    #[test]
    fn measured_values_have_the_digits_that_they_have() {
        for (value, text) in
            [(1.0, "1"), (0.5, "0.5"), (12.345, "12.35"), (1_024.0, "1,024"), (2.5e9, "2.5×10⁹")]
        {
            assert_eq!(measured(value), text);
        }
    }
}
