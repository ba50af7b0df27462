//! Where a series settles: MSER-5 finds what to leave out at its beginning, and trend tests look at the
//! rest, because MSER alone takes a slow climb for a level.

use super::blocks::LongRun;
use super::runs::mean;
use super::student;
use super::trend::{mann_kendall, ols_hac};

/// Values of one batch: single ones are too noisy to cut between.
const BATCH: usize = 5;
/// Fewer batches settle anywhere by chance.
const FEWEST_BATCHES: usize = 8;
const SIGNIFICANT: f64 = 0.05;
/// A drift over the window that is less than this part of the level is no matter in practice.
const PRACTICAL: f64 = 0.10;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Settling {
    /// Nothing can be said of so few points, or of points that are not numbers.
    TooShort { points: usize },
    /// From this point on the series is steady.
    Settled { from: usize },
    /// The series never becomes steady.
    NeverSettled(Unsettled),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unsettled {
    /// However much of its first half is left out, leaving out more would be better.
    Truncation,
    /// What remains rises or falls: by `drift` of its level over the window.
    Trend { drift: f64, p: f64 },
}

pub fn settle(series: &[f64]) -> Settling {
    let batches: Vec<f64> = series.chunks_exact(BATCH).map(mean).collect();
    if batches.len() < FEWEST_BATCHES || series.iter().any(|value| !value.is_finite()) {
        return Settling::TooShort { points: series.len() };
    }
    let half = batches.len() / 2;
    let cut = match truncation(&batches, half) {
        cut if cut < half => cut,
        // A second half that is quiet by chance ends the search here too.
        _ if !apart(series.split_at(half * BATCH)) => 0,
        _ => return Settling::NeverSettled(Unsettled::Truncation),
    };
    let from = cut * BATCH;
    match trend(&series[from..]) {
        Some(unsettled) => Settling::NeverSettled(unsettled),
        None => Settling::Settled { from },
    }
}

/// How many batches to leave out, at most `half`, so that the mean of the rest has the least error.
fn truncation(batches: &[f64], half: usize) -> usize {
    let (mut best, mut least) = (half, f64::INFINITY);
    // From the end: the mean and the squares about it of ever more batches.
    let (mut mean, mut squares) = (0.0, 0.0);
    for (cut, batch) in batches.iter().enumerate().rev() {
        let n = (batches.len() - cut) as f64;
        let away = batch - mean;
        mean += away / n;
        squares += away * (batch - mean);
        let error = squares / (n * n);
        // Of equal errors the one that leaves out less.
        if cut <= half && error <= least {
            (best, least) = (cut, error);
        }
    }
    best
}

/// Whether the two parts have different levels, beyond chance and by enough to matter.
fn apart((early, late): (&[f64], &[f64])) -> bool {
    let (Some(one), Some(other)) = (LongRun::estimate(early), LongRun::estimate(late)) else {
        return false;
    };
    let square = |part: &[f64]| (part.len() * part.len()) as f64;
    let error = (one.variance / square(early) + other.variance / square(late)).sqrt();
    let difference = (mean(early) - mean(late)).abs();
    let t = if error > 0.0 { difference / error } else { f64::INFINITY };
    let p = 2.0 * student::cdf(-t, one.degrees.min(other.degrees));
    // A drift over the whole sets the halves apart by half of it.
    p < SIGNIFICANT && difference > 0.5 * PRACTICAL * mean(late).abs()
}

/// Both tests must see it, in the same direction, and it must matter.
fn trend(rest: &[f64]) -> Option<Unsettled> {
    let (line, ranks) = (ols_hac(rest)?, mann_kendall(rest)?);
    let drift = line.drift / mean(rest).abs();
    let p = line.p.max(ranks.p);
    let seen = p < SIGNIFICANT && line.drift * ranks.drift > 0.0 && drift.abs() > PRACTICAL;
    seen.then_some(Unsettled::Trend { drift, p })
}

#[cfg(test)]
mod tests {
    use super::super::draws::Draws;
    use super::*;

    fn noise(number: u64, n: usize, phi: f64) -> Vec<f64> {
        let mut draws = Draws::new(11, number);
        let mut level = draws.normal();
        let mut step = |_| {
            level = phi * level + (1.0 - phi * phi).sqrt() * draws.normal();
            level
        };
        (0..n).map(&mut step).collect()
    }

    /// How many of 300 series settle, and the median of where.
    fn settled(make: impl Fn(u64) -> Vec<f64>) -> (usize, usize) {
        let found = (0..300).map(|number| settle(&make(number)));
        let mut from: Vec<usize> = found
            .filter_map(|found| match found {
                Settling::Settled { from } => Some(from),
                Settling::TooShort { .. } | Settling::NeverSettled(_) => None,
            })
            .collect();
        from.sort_unstable();
        (from.len(), from.get(from.len() / 2).copied().unwrap_or(usize::MAX))
    }

    #[test]
    fn a_level_with_noise_settles_at_once() {
        for (n, phi) in [(60, 0.0), (300, 0.0), (300, 0.6), (1_200, 0.8)] {
            let (count, from) = settled(|number| {
                noise(number, n, phi).into_iter().map(|value| 100.0 + 15.0 * value).collect()
            });
            assert!(count >= 285, "{n} points, φ = {phi}: {count} of 300 settled");
            assert!(from <= n / 10, "{n} points, φ = {phi}: from {from}");
        }
    }

    #[test]
    fn a_warm_up_of_a_fifth_is_left_out() {
        let (count, from) = settled(|number| {
            let level = |index: usize| if index < 60 { 180.0 } else { 100.0 };
            let noise = noise(number, 300, 0.3).into_iter().enumerate();
            noise.map(|(index, value)| level(index) + 10.0 * value).collect()
        });
        assert!(count >= 285, "{count} of 300 settled");
        assert!((60..=75).contains(&from), "from {from}");
    }

    #[test]
    fn growth_under_overload_never_settles() {
        let (count, _) = settled(|number| {
            let noise = noise(number, 300, 0.5).into_iter().enumerate();
            noise.map(|(index, value)| 10.0 + 0.2 * index as f64 + 5.0 * value).collect()
        });
        assert!(count <= 3, "{count} of 300 settled");
        let line: Vec<f64> = (0..200).map(f64::from).collect();
        assert_eq!(settle(&line), Settling::NeverSettled(Unsettled::Truncation));
    }

    #[test]
    fn a_climb_that_flattens_late_is_seen() {
        let (count, _) = settled(|number| {
            let noise = noise(number, 300, 0.3).into_iter().enumerate();
            let level = |index: usize| 100.0 * (1.0 - libm::exp(-(index as f64) / 150.0));
            noise.map(|(index, value)| level(index) + 5.0 * value).collect()
        });
        assert!(count <= 15, "{count} of 300 settled");
    }

    #[test]
    fn nothing_is_said_of_few_points() {
        assert_eq!(settle(&[1.0; 39]), Settling::TooShort { points: 39 });
        assert_eq!(settle(&[1.0; 40]), Settling::Settled { from: 0 });
        assert_eq!(settle(&[f64::NAN; 100]), Settling::TooShort { points: 100 });
    }
}
