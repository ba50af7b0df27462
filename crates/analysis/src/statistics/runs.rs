//! One value per run: mean, spread and Student's interval.

use super::{UPPER, student};
use crate::estimate::Interval;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunStatistics {
    pub n: usize,
    pub mean: f64,
    /// With n − 1; one run has none.
    pub std: Option<f64>,
    /// 95 %, by Student's t with n − 1 degrees of freedom.
    pub interval: Option<Interval>,
    /// The standard deviation over the size of the mean; none of a mean of zero.
    pub cov: Option<f64>,
}

impl RunStatistics {
    /// Returns `None` without values or with one that is not finite.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let n = values.len();
        let mean = mean(values);
        let std = (n > 1).then(|| variance(values).sqrt());
        let interval = std.and_then(|std| {
            let half = student::quantile(UPPER, n as f64 - 1.0) * std / (n as f64).sqrt();
            Interval::new(mean - half, mean + half)
        });
        let cov = std.filter(|_| mean != 0.0).map(|std| std / mean.abs());
        Some(Self { n, mean, std, interval, cov })
    }
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// With n − 1; of at least two values.
pub(crate) fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    squares / (values.len() as f64 - 1.0)
}
