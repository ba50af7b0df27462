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
    pub(crate) fn from_values(values: &[f64]) -> Option<Self> {
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
        reach(self.variance + other.variance, self.degrees_with(other), upper)
    }

    /// The chance of a difference of `apart` or more if there is none: one-sided. `None` where neither
    /// scatters, since then the reach of chance is not known.
    pub(crate) fn chance_of(self, other: Self, apart: f64) -> Option<f64> {
        let both = self.variance + other.variance;
        (0.0 < both).then(|| student::cdf(-apart / both.sqrt(), self.degrees_with(other)))
    }

    /// By Welch and Satterthwaite.
    fn degrees_with(self, other: Self) -> f64 {
        let both = self.variance + other.variance;
        both * both
            / (self.variance * self.variance / self.degrees
                + other.variance * other.variance / other.degrees)
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
        let one = MeanSpread::from_values(&[1.0, 2.0, 3.0]).unwrap();
        let other = MeanSpread::from_values(&[5.0, 5.0, 5.0]).unwrap();
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
    fn a_difference_as_far_as_the_reach_has_the_chance_that_the_reach_leaves() {
        let one = MeanSpread::from_values(&[1.0, 2.0, 3.0]).unwrap();
        let other = MeanSpread::from_values(&[4.0, 4.5, 4.0]).unwrap();
        let found = one.chance_of(other, one.reach_to(other, UPPER)).unwrap();
        assert!((found - (1.0 - UPPER)).abs() < 1e-9, "{found}");
        assert!((one.chance_of(other, 0.0).unwrap() - 0.5).abs() < 1e-12);
        let still = MeanSpread::from_values(&[5.0, 5.0]).unwrap();
        assert_eq!(still.chance_of(still, 1.0), None);
    }

    #[test]
    fn one_value_has_no_spread_and_zero_no_relative_one() {
        assert_eq!(MeanSpread::from_values(&[1.0]), None);
        assert_eq!(MeanSpread::from_values(&[1.0, f64::NAN]), None);
        assert_eq!(MeanSpread::from_values(&[0.0, 0.0]).unwrap().relative(), None);
    }
}
