//! How far a sum of dependent values may be off, from blocks of consecutive ones.
//!
//! Resampling blocks (the moving-block bootstrap) gives the variance of a sum with noise on top. It has
//! a closed form over all overlapping blocks, which is what stands here: no draws, no seed.

use inferometer_model::whole::to_usize;

use super::autoregression::Autoregression;
use super::runs;

/// Longer series are summed in groups to about this many points: memory between neighbours is all
/// that is lost, and blocks are longer than that anyway.
const MOST_POINTS: usize = 16_384;
/// Blocks are longer than the balance of bias and noise asks, so that less hangs on the model.
const LONGER: f64 = 1.5;
/// However long the memory, at least so many blocks fit beside each other.
const FEWEST_BLOCKS: usize = 8;
/// Overlapping blocks are worth 1.5 degrees of freedom each that fits; what the model adds to them is
/// uncertain too, which costs half.
const WORTH: f64 = 0.75;
/// Below this Student's t says more about its own doubt than about the series.
const FEWEST_DEGREES: f64 = 3.0;

/// The doubt in a sum of values in time order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LongRun {
    /// Variance of the sum of all values.
    pub(crate) variance: f64,
    /// The same, had they nothing to do with each other.
    pub(crate) naive: f64,
    /// What the variance is worth: degrees of freedom for Student's t.
    pub(crate) degrees: f64,
}

impl LongRun {
    /// Returns `None` with fewer than two values.
    pub(crate) fn estimate(values: &[f64]) -> Option<Self> {
        if values.len() < 2 {
            return None;
        }
        let naive = runs::variance(values) * values.len() as f64;
        let group = values.len().div_ceil(MOST_POINTS);
        if group == 1 {
            return Some(Self::of_points(values, naive));
        }
        let points: Vec<f64> = values.chunks_exact(group).map(|group| group.iter().sum()).collect();
        let whole = values.len() as f64 / (points.len() * group) as f64;
        let of_points = Self::of_points(&points, naive);
        Some(Self { variance: of_points.variance * whole, ..of_points })
    }

    fn of_points(points: &[f64], naive: f64) -> Self {
        let n = points.len() as f64;
        let Some(model) = Autoregression::fit(points) else {
            return Self { variance: naive, naive, degrees: n - 1.0 };
        };
        let block = block_length(&model, points.len());
        let blocks = Blocks::new(points, block);
        let fit = n / block as f64;
        // Rare bursts make the variance itself uncertain: each block's square weighs less.
        let noise = 2.0 / (WORTH * (fit - 1.0)) + blocks.excess_kurtosis.max(0.0) / fit;
        Self {
            variance: blocks.variance_of_sum / model.share_seen(block),
            naive,
            degrees: (2.0 / noise).clamp(FEWEST_DEGREES.min(n - 1.0), n - 1.0),
        }
    }
}

/// The length at which what blocks miss and how noisy they are balance, and some more.
fn block_length(model: &Autoregression, n: usize) -> usize {
    let missed = model.missed();
    let wanted = LONGER * libm::cbrt(1.5 * missed * missed * n as f64);
    to_usize(wanted.ceil()).clamp(1, (n / FEWEST_BLOCKS).max(1))
}

/// What the sums of all overlapping blocks of one length say.
struct Blocks {
    variance_of_sum: f64,
    excess_kurtosis: f64,
}

impl Blocks {
    fn new(points: &[f64], block: usize) -> Self {
        let n = points.len();
        let mean = runs::mean(points);
        let (mut second, mut fourth) = (0.0, 0.0);
        let mut add = |sum: f64| {
            let square = sum * sum;
            second += square;
            fourth += square * square;
        };
        let mut sum: f64 = points[..block].iter().map(|point| point - mean).sum();
        add(sum);
        for (leaving, entering) in points.iter().zip(&points[block..]) {
            sum += entering - leaving;
            add(sum);
        }
        let count = (n - block + 1) as f64;
        let [second, fourth] = [second, fourth].map(|power| power / count);
        if second <= 0.0 {
            return Self { variance_of_sum: 0.0, excess_kurtosis: 0.0 };
        }
        // Blocks vary about the mean of the same points, which hides 1 / fit of their variance.
        let hidden = 1.0 - block as f64 / n as f64;
        Self {
            variance_of_sum: second * n as f64 / (block as f64 * hidden),
            excess_kurtosis: fourth / (second * second) - 3.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::draws::Draws;
    use super::*;

    #[test]
    fn blocks_of_one_give_the_variance_of_independent_values() {
        let points = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0];
        let found = Blocks::new(&points, 1).variance_of_sum;
        assert!((found - runs::variance(&points) * 8.0).abs() < 1e-9, "{found}");
    }

    #[test]
    fn grouping_a_long_series_keeps_its_variance() {
        let mut draws = Draws::new(1, 0);
        let mut level = 0.0;
        let values: Vec<f64> = (0..100_003)
            .map(|_| {
                level = 0.9 * level + draws.normal();
                level
            })
            .collect();
        let found = LongRun::estimate(&values).unwrap();
        // The variance of an autoregression's sum is n σ² / (1 − φ)².
        let ratio = found.variance / (100_003.0 * 100.0);
        assert!((0.9..1.1).contains(&ratio), "{ratio}");
        assert!(found.variance > 15.0 * found.naive);
    }

    #[test]
    fn values_that_do_not_vary_have_no_variance() {
        let found = LongRun::estimate(&[2.0; 100]).unwrap();
        assert!(found.variance.abs() < 1e-12 && found.naive.abs() < 1e-12);
    }
}
