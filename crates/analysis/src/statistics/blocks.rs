//! How far a sum of dependent values may be off, from blocks of consecutive ones.
//!
//! Resampling blocks (the moving-block bootstrap) would give the same variance with noise on top:
//! that of a sum has a closed form, which needs no draws.

use super::runs;

/// The doubt in a sum of values in time order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LongRun {
    /// Of the sum of all values.
    pub(crate) variance: f64,
    /// The same, had they nothing to do with each other.
    pub(crate) naive: f64,
    /// What the variance is worth: degrees of freedom for Student's t.
    pub(crate) degrees: f64,
}

impl LongRun {
    /// Returns `None` with fewer than two values.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        if values.len() < 2 {
            return None;
        }
        let n = values.len() as f64;
        let naive = runs::variance(values) * n;
        let block = block_length(values);
        let variance = of_blocks(values, block).max(0.0);
        Some(Self {
            variance: variance.max(naive),
            naive,
            degrees: (1.5 * (n / block as f64 - 1.0)).max(1.0),
        })
    }

    /// Independent values that would tell as much as these `n`; at least one, at most all.
    pub(crate) fn effective(&self, n: f64) -> f64 {
        if self.variance > 0.0 {
            (n * self.naive / self.variance).clamp(1.0, n.max(1.0))
        } else {
            n
        }
    }
}

/// The block length that balances bias and noise if the values were an autoregression of order one.
fn block_length(values: &[f64]) -> usize {
    let n = values.len();
    let mean = runs::mean(values);
    let product = |lag: usize| -> f64 {
        values.iter().zip(&values[lag..]).map(|(one, other)| (one - mean) * (other - mean)).sum()
    };
    let whole = product(0);
    let rho = if whole > 0.0 { (product(1) / whole).clamp(0.0, 0.99) } else { 0.0 };
    let curve = 2.0 * rho / (1.0 - rho * rho);
    let wanted = libm::cbrt(1.5 * curve * curve * n as f64);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small length")]
    let wanted = wanted.ceil() as usize;
    wanted.clamp(1, (n / 4).max(1))
}

/// The variance of the sum by all overlapping blocks of one length.
fn of_blocks(values: &[f64], block: usize) -> f64 {
    let n = values.len();
    let mean = runs::mean(values);
    let mut sum: f64 = values[..block].iter().map(|value| value - mean).sum();
    let mut squares = sum * sum;
    for (leaving, entering) in values.iter().zip(&values[block..]) {
        sum += entering - leaving;
        squares += sum * sum;
    }
    let blocks = (n - block + 1) as f64;
    squares / blocks * (n * n) as f64 / (block * (n - block).max(1)) as f64
}
