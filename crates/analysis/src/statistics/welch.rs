//! Welch's t: how far the difference of two means reaches when their groups need not scatter alike.

use super::runs::{mean, variance};
use super::student;

/// A mean and the variance of that mean, on the scale where two of them are a difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MeanSpread {
    pub(crate) mean: f64,
    pub(crate) variance: f64,
    pub(crate) degrees: f64,
}

impl MeanSpread {
    /// `None` of fewer than two values, or with one that is not finite.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        if values.len() < 2 || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let n = values.len() as f64;
        Some(Self { mean: mean(values), variance: variance(values) / n, degrees: n - 1.0 })
    }

    /// Relative to the mean, which is what its logarithm scatters by. `None` unless that is positive.
    pub(crate) fn relative(self) -> Option<Self> {
        let variance = self.variance / (self.mean * self.mean);
        (self.mean > 0.0).then_some(Self { variance, ..self })
    }

    /// How far the difference of two such means may be off to either side: `upper` is the share of
    /// chances below its upper end.
    pub(crate) fn reach_to(self, other: Self, upper: f64) -> f64 {
        let both = self.variance + other.variance;
        let degrees = both * both
            / (self.variance * self.variance / self.degrees
                + other.variance * other.variance / other.degrees);
        reach(both, degrees, upper)
    }
}

/// Without any spread there are no degrees of freedom either, and the ends meet.
pub(crate) fn reach(variance: f64, degrees: f64, upper: f64) -> f64 {
    if variance > 0.0 { student::quantile(upper, degrees) * variance.sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::UPPER;

    #[test]
    fn the_reach_is_the_textbook_one() {
        let one = MeanSpread::of(&[1.0, 2.0, 3.0]).unwrap();
        let other = MeanSpread::of(&[5.0, 5.0, 5.0]).unwrap();
        // Only one side scatters, so its two degrees of freedom are all there are.
        let expected = 4.302_652_729_749_464 / 3.0_f64.sqrt();
        assert!((one.reach_to(other, UPPER) - expected).abs() < 1e-9);
        // Alike on both sides, the degrees add up: t(0.975, 4) = 2.776.
        let expected = 2.776_445_105_198_054 * (2.0 / 3.0_f64).sqrt();
        assert!((one.reach_to(one, UPPER) - expected).abs() < 1e-9);
        assert!(other.reach_to(other, UPPER).abs() < f64::EPSILON);
        assert!(one.reach_to(one, UPPER) < one.reach_to(one, 0.99));
    }

    #[test]
    fn one_value_has_no_spread_and_zero_no_relative_one() {
        assert_eq!(MeanSpread::of(&[1.0]), None);
        assert_eq!(MeanSpread::of(&[1.0, f64::NAN]), None);
        assert_eq!(MeanSpread::of(&[0.0, 0.0]).unwrap().relative(), None);
    }
}
