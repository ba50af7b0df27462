//! Where a series settles: MSER-5 finds what to leave out at its beginning, and a trend test looks at
//! the rest, because MSER alone takes a slow climb for a level.

use super::runs::{mean, variance};
use super::trend::{mann_kendall, ols_hac};

/// Values of one batch: single ones are too noisy to cut between.
const BATCH: usize = 5;
const FEWEST_BATCHES: usize = 8;
const SIGNIFICANT: f64 = 0.05;
/// A drift over the window that is less than this part of the level is no matter in practice.
const PRACTICAL: f64 = 0.10;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Settling {
    /// Nothing can be said of so few points.
    TooShort {
        points: usize,
    },
    /// From this point on the series is steady.
    Settled {
        from: usize,
    },
    NeverSettled(Unsettled),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unsettled {
    /// Even without its first half the series still changes.
    Truncation,
    /// What remains rises or falls: by `drift` of its level over the window.
    Trend { drift: f64, p: f64 },
}

pub fn settle(series: &[f64]) -> Settling {
    let batches: Vec<f64> = series.chunks_exact(BATCH).map(mean).collect();
    if batches.len() < FEWEST_BATCHES || series.iter().any(|value| !value.is_finite()) {
        return Settling::TooShort { points: series.len() };
    }
    let cut = truncation(&batches);
    if cut == batches.len() / 2 {
        return Settling::NeverSettled(Unsettled::Truncation);
    }
    let from = cut * BATCH;
    match trend(&series[from..]) {
        Some(unsettled) => Settling::NeverSettled(unsettled),
        None => Settling::Settled { from },
    }
}

/// How many batches to leave out so that the mean of the rest has the smallest error.
fn truncation(batches: &[f64]) -> usize {
    let error = |cut: usize| {
        let rest = &batches[cut..];
        variance(rest) * (rest.len() as f64 - 1.0) / (rest.len() * rest.len()) as f64
    };
    let cuts = 0..=batches.len() / 2;
    cuts.min_by(|&one, &other| error(one).total_cmp(&error(other))).unwrap_or(0)
}

fn trend(rest: &[f64]) -> Option<Unsettled> {
    let line = ols_hac(rest)?;
    let ranks = mann_kendall(rest)?;
    let level = mean(rest).abs();
    let drift = line.drift / level;
    let p = line.p.max(ranks.p);
    let agree = p < SIGNIFICANT && line.drift * ranks.drift > 0.0;
    (agree && drift.abs() > PRACTICAL).then_some(Unsettled::Trend { drift, p })
}
