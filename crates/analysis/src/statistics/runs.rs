//! One value per run: mean, spread and Student's interval.

use super::{UPPER, student};
use crate::statistics::Interval;

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
    pub fn from_values(values: &[f64]) -> Option<Self> {
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

/// How close two runs lie says nothing; three are the fewest that may stop a repetition.
const RUNS_MIN: u32 = 3;

/// The half-width of Student's interval as a share of the mean, where runs are repeated until it is
/// narrow. It is looked at after every run from the third on, and who looks often is lucky once; so
/// its level is raised for the number of looks that there may be (Bonferroni), and the interval that
/// stops the runs holds with 95 % over all looks together. `None` of fewer than three runs.
pub fn half_width_over_looks(values: &[f64], runs_at_most: u32) -> Option<f64> {
    if values.len() < RUNS_MIN as usize {
        return None;
    }
    let RunStatistics { n, mean, std, .. } = RunStatistics::from_values(values)?;
    let looks = runs_at_most.saturating_sub(RUNS_MIN - 1).max(1);
    let tail = (1.0 - UPPER) / f64::from(looks);
    let half = student::quantile(1.0 - tail, n as f64 - 1.0) * std? / (n as f64).sqrt();
    (mean != 0.0).then(|| half / mean.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-9 * expected.abs(), "found {found}, not {expected}");
    }

    /// Mean, deviation, ends of the interval and coefficient of variation.
    fn check(values: &[f64], expected: [f64; 5]) {
        let found = RunStatistics::from_values(values).unwrap();
        let interval = found.interval.unwrap();
        let numbers =
            [found.mean, found.std.unwrap(), interval.low, interval.high, found.cov.unwrap()];
        for (found, expected) in numbers.into_iter().zip(expected) {
            close(found, expected);
        }
    }

    #[test]
    fn statistics_of_runs_are_those_of_scipy() {
        // numpy 2.4.6 and scipy 1.17.1: a.mean(), a.std(ddof=1), both ends of
        // scipy.stats.t.interval(0.95, len(a) - 1, loc=a.mean(), scale=scipy.stats.sem(a)),
        // scipy.stats.variation(a, ddof=1)
        check(
            &[102.5, 99.1, 101.7, 98.8, 103.2],
            [
                101.06,
                2.000_749_859_427_713,
                98.575_740_930_137_37,
                103.544_259_069_862_63,
                0.019_797_643_572_409_585,
            ],
        );
        check(
            &[0.412, 0.398],
            [
                0.405,
                0.009_899_494_936_611_635,
                0.316_056_566_846_777_4,
                0.493_943_433_153_222_64,
                0.024_443_197_374_349_714,
            ],
        );
        check(
            &[1e-6, 2e-6, 4e-6, 1.5e-6, 2.2e-6, 3.1e-6, 1.9e-6],
            [
                2.242_857_142_857_142_6e-6,
                1.008_062_734_253_417_5e-6,
                1.310_554_609_045_006_7e-6,
                3.175_159_676_669_278_4e-6,
                0.449_454_722_278_593_84,
            ],
        );
    }

    #[test]
    fn one_run_has_a_mean_and_no_doubt_to_state() {
        let found = RunStatistics::from_values(&[3.5]).unwrap();
        assert_eq!((found.n, found.std, found.interval, found.cov), (1, None, None, None));
        assert_eq!(RunStatistics::from_values(&[]), None);
        assert_eq!(RunStatistics::from_values(&[1.0, f64::NAN]), None);
        assert_eq!(RunStatistics::from_values(&[-1.0, 1.0]).unwrap().cov, None);
    }
}
