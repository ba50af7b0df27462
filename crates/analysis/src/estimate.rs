//! A number with its doubt.

use serde::{Deserialize, Serialize};

use crate::statistics::proportion::wilson;
use crate::statistics::runs::RunStatistics;
use crate::statistics::{UPPER, normal};

/// Where the true value lies with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// A value, its interval, and what it was found from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub value: f64,
    /// `None` when there is too little to say how far off it may be.
    pub interval: Option<Interval>,
    /// Values that it was found from.
    pub n: u64,
    /// Independent values that would tell as much; neighbours in time resemble each other.
    pub effective_n: Option<f64>,
    /// Whether `n`, and `effective_n` where it is known, reach the floor of this statistic.
    pub certified: bool,
}

impl Interval {
    /// Returns `None` when an end is not a number or they are the wrong way round.
    pub fn new(low: f64, high: f64) -> Option<Self> {
        (low.is_finite() && high.is_finite() && low <= high).then_some(Self { low, high })
    }

    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Never outside of what is possible.
    #[must_use]
    pub fn clamped(self, low: f64, high: f64) -> Self {
        Self { low: self.low.clamp(low, high), high: self.high.clamp(low, high) }
    }
}

/// Where a share lies that several runs of the same experiment have an estimate of. Runs without a
/// single failure agree by chance alone, so their spread may say less than what each of them leaves
/// open: the interval reaches as far as Student's between the runs and as Wilson's of all their
/// requests together. `None` without a run, or with a value that is no share.
pub fn share_across(runs: &[Estimate]) -> Option<Interval> {
    let pooled = share_pooled(runs)?;
    let values: Vec<f64> = runs.iter().map(|run| run.value).collect();
    Some(match RunStatistics::of(&values)?.interval {
        None => pooled,
        Some(between) => {
            let between = between.clamped(0.0, 1.0);
            Interval { low: pooled.low.min(between.low), high: pooled.high.max(between.high) }
        }
    })
}

/// The same from the requests of all runs alone, whatever lies between the runs.
pub fn share_pooled(runs: &[Estimate]) -> Option<Interval> {
    if runs.is_empty() || runs.iter().any(|run| !(0.0..=1.0).contains(&run.value)) {
        return None;
    }
    let whole: f64 = runs.iter().map(worth).sum();
    let had: f64 = runs.iter().map(|run| run.value * worth(run)).sum();
    wilson(had.min(whole), whole)
}

/// How many independent requests would give a share an interval of this width by Wilson: they may
/// come in bursts, and then they are worth fewer than they are.
pub(crate) fn worth(run: &Estimate) -> f64 {
    let n = run.n as f64;
    let Some(width) = run.interval.map(|interval| 2.0 * interval.half_width()) else { return n };
    if width <= 0.0 {
        return n;
    }
    let reach = normal::quantile(UPPER);
    let (square, twice) = (width * width, 2.0 * run.value * (1.0 - run.value));
    let root = ((square - twice) * (square - twice) + square * (1.0 - square).max(0.0)).sqrt();
    (reach * reach * (twice - square + root) / square).clamp(0.0, n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(value: f64, interval: Option<Interval>, n: u64) -> Estimate {
        Estimate { value, interval, n, effective_n: None, certified: true }
    }

    fn close(runs: &[Estimate], expected: Interval) {
        let found = share_across(runs).unwrap();
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
        assert!(near(found.low, expected.low) && near(found.high, expected.high), "{found:?}");
    }

    #[test]
    fn runs_without_a_failure_leave_as_much_open_as_all_their_requests() {
        let none = share(0.0, wilson(0.0, 10.0), 10);
        let bare = share(0.0, None, 10);
        for runs in [[none, none], [bare, bare], [none, bare]] {
            close(&runs, wilson(0.0, 20.0).unwrap());
        }
        close(&[none], wilson(0.0, 10.0).unwrap());
    }

    #[test]
    fn runs_that_lie_apart_are_judged_by_their_spread() {
        let runs = [0.10, 0.20, 0.30].map(|value| share(value, None, 100_000));
        let found = share_across(&runs).unwrap();
        // t(0.975; 2) = 4.303 and s = 0.1, so ± 0.248, and no share is below none.
        assert!(found.low == 0.0 && (found.high - 0.448_4).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn bursts_of_failures_are_worth_fewer_requests() {
        let burst = share(0.1, wilson(2.0, 20.0), 200);
        close(&[burst, burst], wilson(4.0, 40.0).unwrap());
    }

    #[test]
    fn what_is_no_share_has_no_interval() {
        assert_eq!(share_across(&[]), None);
        assert_eq!(share_across(&[share(1.5, None, 10)]), None);
        assert_eq!(share_across(&[share(0.0, None, 0)]), None);
    }

    #[test]
    fn an_interval_is_the_right_way_round_and_finite() {
        assert_eq!(Interval::new(2.0, 1.0), None);
        assert_eq!(Interval::new(f64::NAN, 1.0), None);
        assert_eq!(Interval::new(0.0, f64::INFINITY), None);
        let interval = Interval::new(1.0, 3.0).unwrap();
        assert!(interval.contains(1.0) && interval.contains(3.0) && !interval.contains(3.1));
        assert!((interval.half_width() - 1.0).abs() < 1e-12);
        assert_eq!(interval.clamped(0.0, 2.0), Interval { low: 1.0, high: 2.0 });
    }
}
