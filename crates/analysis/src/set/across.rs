//! One quantity over the runs of a level.

use serde::{Deserialize, Serialize};

use crate::estimate::{Estimate, Interval, share_pooled};
use crate::metric::Unit;
use crate::statistics::runs::{RunStatistics, half_width_over_looks};

/// Mean and spread between runs. A run counts once, whatever its length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Across {
    /// Null when no run has a value.
    pub mean: Option<f64>,
    /// The sample standard deviation; null of one run.
    pub std: Option<f64>,
    /// 95 %, by Student's t with n − 1 degrees of freedom; null of one run. Of the quantity whose doubt
    /// ended the runs it is wider, so that it holds with 95 % over all looks at it. Of a share that is
    /// the same in all runs, by Wilson of all their requests. Never below zero.
    pub interval: Option<Interval>,
    /// The standard deviation over the mean; null of one run and of a mean of zero.
    pub cov: Option<f64>,
    /// Runs that have a value.
    pub n: u32,
    /// One for each run that counts, in the order of the runs; null where it has none.
    pub values: Vec<Option<f64>>,
    /// Of a single run: its own interval, which knows nothing of other runs.
    pub within: Option<Interval>,
    /// Whether every run had enough requests for this statistic.
    pub certified: bool,
    /// Why no run has a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Across {
    pub fn of(runs: &[Result<Estimate, String>]) -> Self {
        let estimates: Vec<&Estimate> = runs.iter().flatten().collect();
        let present: Vec<f64> = estimates.iter().map(|estimate| estimate.value).collect();
        let found = RunStatistics::from_values(&present);
        Self {
            mean: found.map(|found| found.mean),
            std: found.and_then(|found| found.std),
            interval: found.and_then(|found| found.interval),
            cov: found.and_then(|found| found.cov),
            n: u32::try_from(present.len()).unwrap_or(u32::MAX),
            values: runs.iter().map(|run| run.as_ref().ok().map(|run| run.value)).collect(),
            within: match estimates.as_slice() {
                [single] => single.interval,
                _ => None,
            },
            certified: !estimates.is_empty() && estimates.iter().all(|run| run.certified),
            reason: match (found, runs.first()) {
                (Some(_), _) => None,
                (None, Some(Err(reason))) => Some(reason.clone()),
                (None, Some(Ok(_))) => Some("a run's value is not a finite number".to_owned()),
                (None, None) => Some("no run of this level counts".to_owned()),
            },
        }
    }

    /// The same where this quantity's doubt was looked at after every run to see whether it is small
    /// enough: runs that end when they lie close together by luck lie closer than they are.
    #[must_use]
    pub(super) fn over_looks(self, runs_at_most: u32) -> Self {
        let present: Vec<f64> = self.values.iter().flatten().copied().collect();
        let raised = self.mean.zip(half_width_over_looks(&present, runs_at_most));
        let raised = raised.and_then(|(mean, share)| {
            let half = share * mean.abs();
            Interval::new((mean - half).max(0.0), mean + half)
        });
        Self { interval: raised.or(self.interval), ..self }
    }

    /// The same within what its unit allows: no quantity is negative and no share above one. A share
    /// that is the same in all runs, such as no failure at all, is as sure as their requests make it:
    /// that runs agree is no certainty.
    #[must_use]
    pub(crate) fn possible(self, unit: Unit, runs: &[Result<Estimate, String>]) -> Self {
        let highest = if unit == Unit::Share { 1.0 } else { f64::INFINITY };
        let clamped = |interval: Interval| interval.clamped(0.0, highest);
        let pooled = || {
            let estimates: Vec<Estimate> = runs.iter().flatten().copied().collect();
            let pooled = share_pooled(&estimates)?;
            // The share itself is possible; by rounding it may lie just outside.
            let reach = |share: f64| Interval::new(pooled.low.min(share), pooled.high.max(share));
            reach(self.mean?)
        };
        let is_same_share = unit == Unit::Share && 1 < self.n && self.is_same_in_all();
        let interval = if is_same_share { pooled() } else { self.interval.map(clamped) };
        Self { interval, within: self.within.map(clamped), ..self }
    }

    /// Whether all runs that have a value have the same, to the last digit.
    pub fn is_same_in_all(&self) -> bool {
        self.extremes().is_none_or(|(low, high)| low.to_bits() == high.to_bits())
    }

    /// Between the runs, or of a single run the one within it.
    pub fn doubt(&self) -> Option<Interval> {
        self.interval.or(self.within)
    }

    /// Of the values, where there are any.
    pub fn extremes(&self) -> Option<(f64, f64)> {
        let values = || self.values.iter().flatten().copied();
        Some((values().min_by(f64::total_cmp)?, values().max_by(f64::total_cmp)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64) -> Estimate {
        let interval = Interval::new(value - 1.0, value + 1.0);
        Estimate { value, interval, n: 700, effective_n: None, certified: true }
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found} and not {expected}");
    }

    /// By `SciPy`: `stats.t.interval(0.95, n - 1, mean, sem)` and `std(ddof=1)`.
    #[test]
    fn five_runs_are_as_scipy_has_them() {
        let across = Across::of(&[387.1, 391.4, 379.9, 384.2, 390.3].map(estimate).map(Ok));
        close(across.mean.unwrap(), FIVE.mean);
        close(across.std.unwrap(), FIVE.std);
        close(across.interval.unwrap().low, FIVE.low);
        close(across.interval.unwrap().high, FIVE.high);
        close(across.cov.unwrap(), FIVE.cov);
        assert_eq!((across.n, across.within, across.extremes()), (5, None, Some((379.9, 391.4))));
        let across = Across::of(&[0.512, 0.498, 0.731].map(estimate).map(Ok));
        close(across.mean.unwrap(), THREE.mean);
        close(across.std.unwrap(), THREE.std);
        close(across.interval.unwrap().low, THREE.low);
        close(across.interval.unwrap().high, THREE.high);
        close(across.cov.unwrap(), THREE.cov);
    }

    #[test]
    fn one_run_has_no_spread_but_its_own_interval() {
        let across = Across::of(&[Ok(estimate(10.0))]);
        assert_eq!((across.mean, across.std, across.cov), (Some(10.0), None, None));
        assert_eq!(across.interval, None);
        assert_eq!(across.doubt(), Interval::new(9.0, 11.0));
    }

    #[test]
    fn shares_that_agree_are_as_sure_as_their_requests() {
        let share = |value: f64| {
            Ok(Estimate { value, interval: None, n: 30, effective_n: None, certified: true })
        };
        let none = [0.0, 0.0, 0.0].map(share);
        let across = Across::of(&none).possible(Unit::Share, &none);
        let found = across.interval.unwrap();
        // Wilson of none in 90: z² / (90 + z²).
        assert!(found.low == 0.0 && (found.high - 0.040_936).abs() < 1e-5, "{found:?}");
        assert_eq!((across.std, across.cov), (Some(0.0), None));
        let some = [0.0, 0.1, 0.2].map(share);
        let found = Across::of(&some).possible(Unit::Share, &some).interval.unwrap();
        assert!(found.low == 0.0 && (found.high - 0.348_4).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn no_time_is_negative() {
        let lags = [0.02, 0.6, 0.4].map(estimate).map(Ok);
        let wide = Across::of(&lags);
        assert!(wide.interval.unwrap().low < 0.0);
        let found = wide.clone().possible(Unit::Milliseconds, &lags);
        assert_eq!(found.interval.unwrap().low.to_bits(), 0.0_f64.to_bits());
        close(found.interval.unwrap().high, wide.interval.unwrap().high);
        let single = [Ok(estimate(0.5))];
        let found = Across::of(&single).possible(Unit::Milliseconds, &single);
        assert_eq!(found.within, Interval::new(0.0, 1.5));
    }

    #[test]
    fn a_run_without_a_value_keeps_its_place_and_says_why_when_it_is_alone() {
        let across =
            Across::of(&[Ok(estimate(1.0)), Err("no promise".to_owned()), Ok(estimate(3.0))]);
        assert_eq!(across.values, [Some(1.0), None, Some(3.0)]);
        assert_eq!((across.n, across.mean, across.reason), (2, Some(2.0), None));
        let across = Across::of(&[Err("no promise".to_owned())]);
        assert_eq!((across.n, across.mean, across.certified), (0, None, false));
        assert_eq!(across.reason.as_deref(), Some("no promise"));
        assert!(Across::of(&[]).reason.is_some());
    }

    /// Runs of a known mean, ended as a campaign ends them: how often the interval holds the mean.
    #[test]
    fn the_interval_of_runs_that_ended_when_it_was_narrow_still_holds_95_percent() {
        const MEAN: f64 = 100.0;
        const SETS: u64 = 4_000;
        for (noise, target, runs_at_most) in [(3.0, 0.03, 10), (1.0, 0.02, 5), (6.0, 0.03, 30)] {
            let (mut plain, mut raised) = (0, 0);
            for number in 0..SETS {
                let mut draws = crate::statistics::draws::Draws::new(17, number);
                let mut values = Vec::new();
                let is_enough = |values: &[f64]| {
                    half_width_over_looks(values, runs_at_most).is_some_and(|half| half <= target)
                };
                while values.len() < runs_at_most as usize && !is_enough(&values) {
                    values.push(MEAN + noise * draws.normal());
                }
                let runs: Vec<_> = values.into_iter().map(estimate).map(Ok).collect();
                let across = Across::of(&runs);
                plain += u64::from(across.interval.unwrap().contains(MEAN));
                raised +=
                    u64::from(across.over_looks(runs_at_most).interval.unwrap().contains(MEAN));
            }
            assert!(raised * 100 >= SETS * 95, "{noise}: {raised} of {SETS}, {plain} without");
            assert!(plain < raised, "{noise}: {plain} and {raised} of {SETS}");
        }
    }

    const FIVE: Expected = Expected {
        mean: 386.580_000_000_000_04,
        std: 4.680_491_427_190_105,
        low: 380.768_402_300_956_7,
        high: 392.391_597_699_043_36,
        cov: 0.012_107_432_943_220_302,
    };
    const THREE: Expected = Expected {
        mean: 0.580_333_333_333_333_4,
        std: 0.130_668_792_499_714_05,
        low: 0.255_734_058_135_915,
        high: 0.904_932_608_530_751_7,
        cov: 0.225_161_618_322_310_24,
    };

    struct Expected {
        mean: f64,
        std: f64,
        low: f64,
        high: f64,
        cov: f64,
    }
}
