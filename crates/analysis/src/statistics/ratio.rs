//! How many times larger the mean of one group of runs is than that of another.

use super::runs::{mean, variance};
use super::{UPPER, student};
use crate::estimate::Interval;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioEstimate {
    /// The mean of the second group over the mean of the first.
    pub ratio: f64,
    pub interval: Interval,
}

/// Groups whose runs have nothing in common. Welch's t on the scale of the logarithm, where the
/// ratio of two means is a difference. Returns `None` with fewer than two runs a side or with a
/// mean that is not positive.
pub fn unpaired(a: &[f64], b: &[f64]) -> Option<RatioEstimate> {
    let (one, other) = (Relative::of(a)?, Relative::of(b)?);
    let both = one.variance + other.variance;
    let degrees = both * both
        / (one.variance * one.variance / one.degrees
            + other.variance * other.variance / other.degrees);
    around(other.mean / one.mean, both, degrees)
}

/// Runs paired by their position: the n-th of both groups had the same seed, and what they share
/// cancels. Returns `None` when the groups differ in size too.
pub fn paired(a: &[f64], b: &[f64]) -> Option<RatioEstimate> {
    if a.len() != b.len() {
        return None;
    }
    let (one, other) = (Relative::of(a)?, Relative::of(b)?);
    let apart: Vec<f64> = a.iter().zip(b).map(|(a, b)| b / other.mean - a / one.mean).collect();
    around(other.mean / one.mean, variance(&apart) / a.len() as f64, one.degrees)
}

/// A group's mean, and the variance of that mean in units of its square.
struct Relative {
    mean: f64,
    variance: f64,
    degrees: f64,
}

impl Relative {
    fn of(values: &[f64]) -> Option<Self> {
        if values.len() < 2 || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let (n, mean) = (values.len() as f64, mean(values));
        let variance = variance(values) / (n * mean * mean);
        (mean > 0.0).then_some(Self { mean, variance, degrees: n - 1.0 })
    }
}

fn around(ratio: f64, variance: f64, degrees: f64) -> Option<RatioEstimate> {
    // Without any spread there are no degrees of freedom either, and the ends meet.
    let reach =
        if variance > 0.0 { student::quantile(UPPER, degrees) * variance.sqrt() } else { 0.0 };
    let interval = Interval::new(ratio * libm::exp(-reach), ratio * libm::exp(reach))?;
    Some(RatioEstimate { ratio, interval })
}
