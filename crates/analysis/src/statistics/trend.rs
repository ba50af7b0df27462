//! Whether a series in time order rises or falls, when neighbours resemble each other.

use super::blocks::LongRun;
use super::{normal, student};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// How much the level changes from the first value to the last.
    pub drift: f64,
    /// Two-sided.
    pub p: f64,
}

/// Mann and Kendall's test, whose variance is raised by what the ranks owe to their neighbours.
/// Returns `None` with fewer than four values or when all are equal. Its drift is Kendall's τ.
pub fn mann_kendall(values: &[f64]) -> Option<Trend> {
    if values.len() < 4 {
        return None;
    }
    let n = values.len() as f64;
    let score = concordance(values);
    let ranks = ranks(values);
    let ties = ranks.ties;
    let variance = (n * (n - 1.0) * (2.0 * n + 5.0) - ties) / 18.0;
    if variance <= 0.0 {
        return None;
    }
    let residuals = detrended(&ranks.ranks)?.residuals;
    let raised = LongRun::of(&residuals)?;
    let factor = if raised.naive > 0.0 { raised.variance / raised.naive } else { 1.0 };
    // Of a score that is a whole number, half a step either way is chance.
    let towards_zero = (score.abs() - 1.0).max(0.0);
    let p = 2.0 * normal::cdf(-towards_zero / (variance * factor).sqrt());
    Some(Trend { drift: score / (0.5 * n * (n - 1.0)), p: p.min(1.0) })
}

/// A straight line by least squares, with an error that allows for autocorrelation (the weights of
/// Newey and West, which are those of overlapping blocks).
pub fn ols_hac(values: &[f64]) -> Option<Trend> {
    if values.len() < 4 {
        return None;
    }
    let line = detrended(values)?;
    let span = values.len() as f64 - 1.0;
    let centre = 0.5 * span;
    let pulls: Vec<f64> = line
        .residuals
        .iter()
        .enumerate()
        .map(|(index, residual)| (index as f64 - centre) * residual)
        .collect();
    let doubt = LongRun::of(&pulls)?;
    let error = doubt.variance.sqrt() / line.spread;
    let p = if error > 0.0 {
        2.0 * student::cdf(-(line.slope / error).abs(), doubt.degrees)
    } else if line.slope == 0.0 {
        1.0
    } else {
        0.0
    };
    Some(Trend { drift: line.slope * span, p })
}

struct Line {
    slope: f64,
    /// Σ (t − t̄)².
    spread: f64,
    residuals: Vec<f64>,
}

fn detrended(values: &[f64]) -> Option<Line> {
    if values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let n = values.len() as f64;
    let centre = 0.5 * (n - 1.0);
    let mean = super::runs::mean(values);
    let spread = n * (n * n - 1.0) / 12.0;
    let timed =
        values.iter().enumerate().map(|(index, value)| (index as f64 - centre, value - mean));
    let slope = timed.clone().map(|(time, value)| time * value).sum::<f64>() / spread;
    let residuals = timed.map(|(time, value)| value - slope * time).collect();
    Some(Line { slope, spread, residuals })
}

struct Ranks {
    /// In the order of time; equal values share the middle of their ranks.
    ranks: Vec<f64>,
    /// Σ t(t − 1)(2t + 5) over groups of equal values.
    ties: f64,
}

fn ranks(values: &[f64]) -> Ranks {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&left, &right| values[left].total_cmp(&values[right]));
    let mut ranks = vec![0.0; values.len()];
    let mut ties = 0.0;
    let mut before = 0;
    for equal in order.chunk_by(|&left, &right| values[left] == values[right]) {
        let size = equal.len() as f64;
        ties += size * (size - 1.0) * (2.0 * size + 5.0);
        for &index in equal {
            ranks[index] = before as f64 + 0.5 * (size - 1.0);
        }
        before += equal.len();
    }
    Ranks { ranks, ties }
}

/// Pairs that rise minus pairs that fall.
fn concordance(values: &[f64]) -> f64 {
    let later = |index: usize| &values[index + 1..];
    (0..values.len())
        .map(|index| {
            later(index)
                .iter()
                .map(|value| match value.total_cmp(&values[index]) {
                    std::cmp::Ordering::Greater => 1.0,
                    std::cmp::Ordering::Less => -1.0,
                    std::cmp::Ordering::Equal => 0.0,
                })
                .sum::<f64>()
        })
        .sum()
}
