//! Measurements of one quantity, and the statistics of them.
//!
//! Everything is computed over the sorted values, so the order in which requests were read back
//! cannot change a bit of a result.

use serde::{Deserialize, Serialize};

/// Measurements of one quantity: sorted, finite, and at least one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    values: Vec<f64>,
    /// `counts_through[i]` measurements are `values[i]` or come before it; `None` when every value
    /// stands for one measurement.
    counts_through: Option<Vec<u64>>,
}

/// A share of a sample, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Probability(f64);

/// The percentiles that every distribution carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Percentile {
    P50,
    P90,
    P95,
    P99,
    P999,
}

impl Sample {
    /// Returns `None` when `values` is empty or holds a value that is not finite.
    pub fn new(values: Vec<f64>) -> Option<Self> {
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        Some(Self { values: sorted(values), counts_through: None })
    }

    /// The same of values that stand for several measurements each. A count is often a server's
    /// word, so the copies are never made: memory is bound by the values.
    pub fn counted(mut values: Vec<(f64, u64)>) -> Option<Self> {
        values.retain(|(_, count)| 0 < *count);
        if values.iter().all(|(_, count)| *count == 1) {
            return Self::new(values.into_iter().map(|(value, _)| value).collect());
        }
        if values.iter().any(|(value, _)| !value.is_finite()) {
            return None;
        }
        values
            .sort_unstable_by(|left, right| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1)));
        let counts_through = values.iter().scan(0_u64, |through, (_, count)| {
            *through = through.saturating_add(*count);
            Some(*through)
        });
        let counts_through = Some(counts_through.collect());
        Some(Self { values: values.into_iter().map(|(value, _)| value).collect(), counts_through })
    }

    /// How many measurements there are.
    pub fn count(&self) -> u64 {
        match &self.counts_through {
            Some(counts) => counts[counts.len() - 1],
            None => self.values.len() as u64,
        }
    }

    pub fn min(&self) -> f64 {
        self.values[0]
    }

    pub fn max(&self) -> f64 {
        self.values[self.values.len() - 1]
    }

    pub fn mean(&self) -> f64 {
        // Rounding may carry the mean of equal values past them.
        (self.sum(|value| value) / self.count() as f64).clamp(self.min(), self.max())
    }

    /// The standard deviation with n − 1; one value has none.
    pub fn std_sample(&self) -> Option<f64> {
        match self.count() {
            1 => None,
            count => Some((self.squares() / (count - 1) as f64).sqrt()),
        }
    }

    /// The standard deviation with n, as numpy's default; other tools publish this one.
    pub fn std_population(&self) -> f64 {
        (self.squares() / self.count() as f64).sqrt()
    }

    /// The quantile at `p` by linear interpolation between order statistics (Hyndman-Fan type 7,
    /// numpy's default), so that our numbers can be laid beside those of other tools.
    pub fn quantile(&self, p: Probability) -> f64 {
        let last = self.count() - 1;
        let position = last as f64 * p.0;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a position in the sample, not below zero"
        )]
        let rank = (position.floor() as u64).min(last);
        let below = self.at_rank(rank);
        let above = self.at_rank((rank + 1).min(last));
        (below + (position - rank as f64) * (above - below)).clamp(below, above)
    }

    pub fn percentile(&self, percentile: Percentile) -> f64 {
        self.quantile(percentile.probability())
    }

    /// The measurement with `rank` others before it.
    fn at_rank(&self, rank: u64) -> f64 {
        let index = match &self.counts_through {
            Some(counts) => counts.partition_point(|through| *through <= rank),
            None => usize::try_from(rank).unwrap_or(usize::MAX),
        };
        self.values[index.min(self.values.len() - 1)]
    }

    fn squares(&self) -> f64 {
        let mean = self.mean();
        self.sum(|value| (value - mean) * (value - mean))
    }

    /// Sums in blocks: over millions of values a plain running sum loses digits that are shown.
    fn sum(&self, term: impl Fn(f64) -> f64) -> f64 {
        let Some(counts) = &self.counts_through else {
            let block_sum = |block: &[f64]| block.iter().map(|&value| term(value)).sum::<f64>();
            return self.values.chunks(BLOCK).map(block_sum).sum();
        };
        let mut before = 0;
        let blocks = self.values.chunks(BLOCK).zip(counts.chunks(BLOCK));
        blocks
            .map(|(values, counts)| {
                let terms = values.iter().zip(counts).map(|(&value, &through)| {
                    let count = through - before;
                    before = through;
                    term(value) * count as f64
                });
                terms.sum::<f64>()
            })
            .sum()
    }
}

const BLOCK: usize = 1024;

/// Sorts by total order. Over the integers that have the same order it takes half the time, and
/// runs have tens of millions of gaps.
fn sorted(values: Vec<f64>) -> Vec<f64> {
    let mut keys: Vec<i64> =
        values.into_iter().map(|value| swapped(value.to_bits().cast_signed())).collect();
    keys.sort_unstable();
    keys.into_iter().map(|key| f64::from_bits(swapped(key).cast_unsigned())).collect()
}

/// Between the bits of a float and an integer with the same order, in either direction: negative
/// floats order backwards, so all their bits but the sign are turned over.
fn swapped(bits: i64) -> i64 {
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

impl Probability {
    /// Returns `None` outside of 0 to 1.
    pub fn new(share: f64) -> Option<Self> {
        (0.0..=1.0).contains(&share).then_some(Self(share))
    }

    pub const fn share(self) -> f64 {
        self.0
    }
}

impl Percentile {
    pub const ALL: [Self; 5] = [Self::P50, Self::P90, Self::P95, Self::P99, Self::P999];

    pub const fn probability(self) -> Probability {
        Probability(match self {
            Self::P50 => 0.50,
            Self::P90 => 0.90,
            Self::P95 => 0.95,
            Self::P99 => 0.99,
            Self::P999 => 0.999,
        })
    }

    /// The fewest values from which the percentile is certified: the early-stopping bound of
    /// `MLPerf` at 99 % confidence. Fewer give a number, and no promise about it.
    pub const fn certified_from(self) -> u64 {
        match self {
            Self::P50 => 11,
            Self::P90 => 64,
            Self::P95 => 130,
            Self::P99 => 662,
            Self::P999 => 6_636,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "found {found}, expected {expected}");
    }

    #[test]
    fn statistics_are_those_of_numpy() {
        // numpy 2.4.6: np.percentile(a, [50, 90, 95, 99]), np.mean(a), np.std(a, ddof=1),
        // np.std(a) of a = [3.1, 0.7, 12.25, 5.5, 5.5, 1.0, 88.8, 2.2]
        let sample = Sample::new(vec![3.1, 0.7, 12.25, 5.5, 5.5, 1.0, 88.8, 2.2]).unwrap();
        close(sample.percentile(Percentile::P50), 4.3);
        close(sample.percentile(Percentile::P90), 35.214_999_999_999_99);
        close(sample.percentile(Percentile::P95), 62.007_499_999_999_96);
        close(sample.percentile(Percentile::P99), 83.441_499_999_999_98);
        close(sample.mean(), 14.881_25);
        close(sample.std_sample().unwrap(), 30.095_869_881_572_977);
        close(sample.std_population(), 28.152_108_463_443_728);
        close(sample.min(), 0.7);
        close(sample.max(), 88.8);
    }

    #[test]
    fn statistics_are_those_of_numpy_on_a_longer_sample() {
        // The same of b = [i * i / 7 for i in range(1, 102)]: 101 values, so that every
        // percentile falls on one of them.
        let values = (1..102).map(|i| f64::from(i) * f64::from(i) / 7.0).collect();
        let sample = Sample::new(values).unwrap();
        close(sample.percentile(Percentile::P50), 371.571_428_571_428_56);
        close(sample.percentile(Percentile::P90), 1183.0);
        close(sample.percentile(Percentile::P95), 1_316.571_428_571_428_7);
        close(sample.percentile(Percentile::P99), 1_428.571_428_571_428_7);
        close(sample.mean(), 492.999_999_999_999_94);
        close(sample.std_sample().unwrap(), 440.673_008_022_955_74);
        close(sample.std_population(), 438.486_031_704_545_84);
    }

    #[test]
    fn nothing_and_nonsense_are_no_sample() {
        assert_eq!(Sample::new(vec![]), None);
        assert_eq!(Sample::new(vec![1.0, f64::NAN]), None);
        assert_eq!(Sample::new(vec![f64::INFINITY]), None);
    }

    #[test]
    fn one_value_is_every_quantile_and_has_no_spread() {
        let sample = Sample::new(vec![2.5]).unwrap();
        for percentile in Percentile::ALL {
            close(sample.percentile(percentile), 2.5);
        }
        assert_eq!(sample.std_sample(), None);
        close(sample.std_population(), 0.0);
    }

    #[test]
    fn the_mean_of_equal_values_is_that_value() {
        let sample = Sample::new(vec![0.1; 3]).unwrap();
        assert!(sample.min() <= sample.mean() && sample.mean() <= sample.max());
    }

    #[test]
    fn values_are_sorted_by_total_order() {
        let mut values = vec![3.5, -0.0, 0.0, -7.25, 1e-300, -1e300, 42.0, -1e-300];
        let found: Vec<u64> = sorted(values.clone()).into_iter().map(f64::to_bits).collect();
        values.sort_by(f64::total_cmp);
        assert_eq!(found, values.into_iter().map(f64::to_bits).collect::<Vec<_>>());
    }

    #[test]
    fn a_probability_lies_between_zero_and_one() {
        assert_eq!(Probability::new(-0.1), None);
        assert_eq!(Probability::new(1.1), None);
        assert_eq!(Probability::new(f64::NAN), None);
        assert_eq!(Probability::new(0.99), Some(Percentile::P99.probability()));
    }

    #[test]
    fn percentile_keys_are_their_names_without_the_point() {
        for percentile in Percentile::ALL {
            let written = serde_json::to_string(&percentile).unwrap();
            assert_eq!(written, format!("\"{}\"", percentile.name().replace('.', "")));
        }
    }

    #[test]
    fn a_count_of_zero_is_no_measurement() {
        assert_eq!(Sample::counted(vec![(1.0, 0)]), None);
        assert_eq!(Sample::counted(vec![(f64::NAN, 2)]), None);
        assert_eq!(Sample::counted(vec![(1.0, 1), (2.0, 0)]), Sample::new(vec![1.0]));
    }

    #[test]
    fn an_absurd_count_costs_no_memory() {
        let sample = Sample::counted(vec![(1.0, u64::MAX), (2.0, u64::MAX)]).unwrap();
        assert_eq!(sample.count(), u64::MAX);
        close(sample.percentile(Percentile::P99), 1.0);
    }

    proptest! {
        #[test]
        fn a_counted_sample_is_the_sample_of_its_copies(
            pairs in prop::collection::vec((-1e3_f64..1e3, 0_u64..5), 1..60),
            share in 0.0_f64..=1.0,
        ) {
            let copies = pairs.iter().flat_map(|&(value, count)| (0..count).map(move |_| value));
            let copied = Sample::new(copies.collect());
            let counted = Sample::counted(pairs);
            prop_assert_eq!(copied.is_some(), counted.is_some());
            let (Some(copied), Some(counted)) = (copied, counted) else { return Ok(()) };
            let p = Probability::new(share).unwrap();
            prop_assert_eq!(copied.count(), counted.count());
            prop_assert_eq!(copied.quantile(p).to_bits(), counted.quantile(p).to_bits());
            prop_assert!((copied.mean() - counted.mean()).abs() < 1e-9);
            prop_assert!((copied.std_population() - counted.std_population()).abs() < 1e-6);
        }

        #[test]
        fn quantiles_never_fall_and_stay_inside_the_range(
            values in prop::collection::vec(-1e9_f64..1e9, 1..200),
            first in 0.0_f64..=1.0,
            second in 0.0_f64..=1.0,
        ) {
            let sample = Sample::new(values).unwrap();
            let low = sample.quantile(Probability::new(first.min(second)).unwrap());
            let high = sample.quantile(Probability::new(first.max(second)).unwrap());
            prop_assert!(low <= high);
            prop_assert!(sample.min() <= low && high <= sample.max());
        }
    }
}
