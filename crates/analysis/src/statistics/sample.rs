//! Measurements of one quantity, and the statistics of them.
//!
//! Everything is computed over the sorted values, so the order in which requests were read back
//! cannot change a bit of a result.

use inferometer_model::whole::to_u64;
use serde::{Deserialize, Serialize};

use crate::statistics::{UPPER, normal, proportion::wilson, runs::RunStatistics};

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

    /// How many measurements are this value or less.
    pub(crate) fn count_through(&self, value: f64) -> u64 {
        let values = self.values.partition_point(|it| *it <= value);
        match (&self.counts_through, values.checked_sub(1)) {
            (_, None) => 0,
            (Some(counts), Some(last)) => counts[last],
            (None, Some(_)) => values as u64,
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
        let rank = to_u64(position).min(last);
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

/// The median of values; `None` without any, and with one that is not finite.
pub(crate) fn median(values: Vec<f64>) -> Option<f64> {
    Some(Sample::new(values)?.percentile(Percentile::P50))
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
    pub(crate) const TENTH: Self = Self(0.10);
    pub(crate) const QUARTER: Self = Self(0.25);

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

    /// The share below it, the fewest values that certify it, the fewest values of which one lies above
    /// it, and its name.
    const fn facts(self) -> (f64, u64, u64, &'static str) {
        match self {
            Self::P50 => (0.50, 11, 2, "p50"),
            Self::P90 => (0.90, 64, 10, "p90"),
            Self::P95 => (0.95, 130, 20, "p95"),
            Self::P99 => (0.99, 662, 100, "p99"),
            Self::P999 => (0.999, 6_636, 1_000, "p99.9"),
        }
    }

    pub const fn probability(self) -> Probability {
        Probability(self.facts().0)
    }

    /// The fewest values from which the percentile is certified: the early-stopping bound of
    /// `MLPerf` at 99 % confidence. Fewer give a number, and no promise about it.
    pub const fn certified_from(self) -> u64 {
        self.facts().1
    }

    /// The fewest values of which one lies above the percentile.
    pub(crate) const fn fewest(self) -> u64 {
        self.facts().2
    }

    pub const fn name(self) -> &'static str {
        self.facts().3
    }
}

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

impl Estimate {
    /// A certified value of which nothing is known about neighbours in time.
    pub const fn new(value: f64, interval: Option<Interval>, n: u64) -> Self {
        Self { value, interval, n, effective_n: None, certified: true }
    }
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

    /// The same interval, widened to a value outside of it.
    #[must_use]
    pub fn including(self, value: f64) -> Self {
        Self { low: self.low.min(value), high: self.high.max(value) }
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
    Some(match RunStatistics::from_values(&values)?.interval {
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
mod tests;
