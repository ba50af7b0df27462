//! How many times larger the mean of one group of runs is than that of another.

use super::runs::variance;
use super::welch::{self, MeanSpread};
use crate::statistics::Interval;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioEstimate {
    /// The mean of the second group over the mean of the first.
    pub ratio: f64,
    pub interval: Interval,
}

/// Groups whose runs have nothing in common. Welch's t on the scale of the logarithm, where the
/// ratio of two means is a difference; `upper` is the share of chances below the interval's upper
/// end. Returns `None` with fewer than two runs a side or with a mean that is not positive.
pub fn unpaired(a: &[f64], b: &[f64], upper: f64) -> Option<RatioEstimate> {
    let (one, other) =
        (MeanSpread::from_values(a)?.relative()?, MeanSpread::from_values(b)?.relative()?);
    around(other.mean / one.mean, one.reach_to(other, upper))
}

/// Runs paired by their position: the n-th of both groups had the same seed, and what they share
/// cancels. Returns `None` when the groups differ in size too.
pub fn paired(a: &[f64], b: &[f64], upper: f64) -> Option<RatioEstimate> {
    if a.len() != b.len() {
        return None;
    }
    let (one, other) =
        (MeanSpread::from_values(a)?.relative()?, MeanSpread::from_values(b)?.relative()?);
    let apart: Vec<f64> = a.iter().zip(b).map(|(a, b)| b / other.mean - a / one.mean).collect();
    let reach = welch::reach(variance(&apart) / a.len() as f64, one.degrees, upper);
    around(other.mean / one.mean, reach)
}

/// The chance of seeing the mean of `b` so far above that of `a` if it is not above it: one-sided, by
/// the t of [`unpaired`]. `None` where that has no interval, and where neither group scatters.
pub fn chance_above(a: &[f64], b: &[f64]) -> Option<f64> {
    let (one, other) =
        (MeanSpread::from_values(a)?.relative()?, MeanSpread::from_values(b)?.relative()?);
    one.chance_of(other, libm::log(other.mean / one.mean))
}

fn around(ratio: f64, reach: f64) -> Option<RatioEstimate> {
    let interval = Interval::new(ratio * libm::exp(-reach), ratio * libm::exp(reach))?;
    Some(RatioEstimate { ratio, interval })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::UPPER;

    #[test]
    fn a_ratio_is_that_of_the_means_and_lies_in_its_interval() {
        let found = unpaired(&[100.0, 102.0, 98.0], &[110.0, 111.0, 109.0], UPPER).unwrap();
        assert!((found.ratio - 1.1).abs() < 1e-12);
        assert!(found.interval.low > 1.0 && found.interval.contains(1.1));
    }

    #[test]
    fn what_pairs_share_cancels() {
        let a = [100.0, 140.0, 80.0, 120.0, 95.0];
        let b = a.map(|value| value * 1.05 + 0.01 * (value - 110.0));
        let (together, apart) = (paired(&a, &b, UPPER).unwrap(), unpaired(&a, &b, UPPER).unwrap());
        assert!(together.interval.low > 1.0, "{together:?}");
        assert!(apart.interval.low < 1.0, "{apart:?}");
    }

    #[test]
    fn the_chance_agrees_with_the_interval() {
        let (a, b) = ([100.0, 102.0, 98.0], [104.0, 106.0, 103.0]);
        let chance = chance_above(&a, &b).unwrap();
        let at = unpaired(&a, &b, 1.0 - chance).unwrap();
        assert!((at.interval.low - 1.0).abs() < 1e-9, "{at:?} at {chance}");
        assert!(0.5 < chance_above(&b, &a).unwrap());
        assert_eq!(chance_above(&[2.0, 2.0], &[3.0, 3.0]), None);
        assert_eq!(chance_above(&[2.0], &[3.0, 3.1]), None);
    }

    #[test]
    fn runs_without_spread_have_an_interval_without_width() {
        let found = unpaired(&[2.0, 2.0], &[3.0, 3.0], UPPER).unwrap();
        assert_eq!((found.interval.low, found.interval.high), (1.5, 1.5));
    }

    #[test]
    fn there_is_no_ratio_of_one_run_or_of_nothing() {
        assert_eq!(unpaired(&[1.0], &[1.0, 2.0], UPPER), None);
        assert_eq!(paired(&[1.0, 2.0], &[1.0, 2.0, 3.0], UPPER), None);
        assert_eq!(unpaired(&[0.0, 0.0], &[1.0, 2.0], UPPER), None);
        assert_eq!(unpaired(&[1.0, f64::NAN], &[1.0, 2.0], UPPER), None);
    }
}
