//! How arrivals vary: their rate, their gaps, and their counts over stretches of time.

use serde::{Deserialize, Serialize};

/// Of one list of moments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GapFigures {
    /// Standard deviation of the gaps over their mean: 0 for even ones, 1 for Poisson.
    pub cv: Option<f64>,
    /// Over a few lengths of time, as far as the moments reach.
    pub dispersion: Vec<Dispersion>,
}

/// Variance of the counts over their mean: 0 for even arrivals, 1 for Poisson, more for bursts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dispersion {
    pub over_s: f64,
    pub index: f64,
}

/// A test of Kolmogorov and Smirnov.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArrivalFit {
    /// What the gaps were compared with.
    pub process: String,
    /// The largest distance between the two distributions.
    pub distance: f64,
    /// How often chance alone makes it as large.
    pub p: f64,
    pub n: u64,
}

/// From a busy server's step to what users feel.
const STRETCHES_NS: [u64; 3] = [100_000_000, 1_000_000_000, 10_000_000_000];
/// Fewer counts do not make a variance.
const STRETCHES_MIN: usize = 20;
/// With fewer arrivals a stretch, the index is near one whatever the process.
const PER_STRETCH_MIN: f64 = 1.0;
/// Beyond, the moments are damage.
const STRETCHES_MAX: u64 = 10_000_000;
/// The approximation of `p` holds from here on.
const FIT_MIN: usize = 50;

/// Per second between the first and the last of sorted moments.
pub(super) fn rate(moments_ns: &[u64]) -> Option<f64> {
    let (first, last) = (moments_ns.first()?, moments_ns.last()?);
    let span_s = (last - first) as f64 / 1e9;
    (0.0 < span_s).then(|| (moments_ns.len() - 1) as f64 / span_s)
}

impl GapFigures {
    /// Of sorted moments.
    pub(super) fn of(moments_ns: &[u64]) -> Self {
        let gaps: Vec<f64> = moments_ns.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let cv = spread(&gaps).filter(|(mean, _)| 0.0 < *mean);
        Self {
            cv: cv.map(|(mean, variance)| variance.sqrt() / mean),
            dispersion: STRETCHES_NS
                .into_iter()
                .filter_map(|over_ns| Dispersion::of(moments_ns, over_ns))
                .collect(),
        }
    }
}

impl Dispersion {
    fn of(moments_ns: &[u64], over_ns: u64) -> Option<Self> {
        let (first, last) = (moments_ns.first()?, moments_ns.last()?);
        // The last stretch is not whole.
        let stretches = (last - first) / over_ns;
        if STRETCHES_MAX < stretches {
            return None;
        }
        let mut counts = vec![0.0; usize::try_from(stretches).ok()?];
        if counts.len() < STRETCHES_MIN {
            return None;
        }
        for moment in moments_ns {
            let place = usize::try_from((moment - first) / over_ns).ok()?;
            if let Some(count) = counts.get_mut(place) {
                *count += 1.0;
            }
        }
        let (mean, variance) = spread(&counts)?;
        let index = variance / mean;
        (PER_STRETCH_MIN <= mean).then_some(Self { over_s: over_ns as f64 / 1e9, index })
    }
}

impl ArrivalFit {
    /// The gaps of sorted moments against exponential ones at this rate.
    pub(super) fn exponential(moments_ns: &[u64], per_s: f64) -> Option<Self> {
        let mut gaps: Vec<f64> =
            moments_ns.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e9).collect();
        if gaps.len() < FIT_MIN {
            return None;
        }
        gaps.sort_unstable_by(f64::total_cmp);
        let n = gaps.len() as f64;
        let distance = gaps.iter().enumerate().fold(0.0_f64, |most, (place, gap)| {
            let expected = -libm::expm1(-per_s * gap);
            let (below, above) = (place as f64 / n, (place as f64 + 1.0) / n);
            most.max((expected - below).abs()).max((above - expected).abs())
        });
        let p = kolmogorov(distance, n);
        Some(Self { process: "poisson".to_owned(), distance, p, n: gaps.len() as u64 })
    }
}

/// How often the distance of `n` values is at least this, with the correction of Stephens.
fn kolmogorov(distance: f64, n: f64) -> f64 {
    let root = n.sqrt();
    let scaled = (root + 0.12 + 0.11 / root) * distance;
    // The series does not converge where `p` is one to many places.
    if scaled < 0.2 {
        return 1.0;
    }
    let term = |k: i32| {
        let sign = if k % 2 == 1 { 2.0 } else { -2.0 };
        sign * libm::exp(-2.0 * f64::from(k * k) * scaled * scaled)
    };
    (1..=100).map(term).sum::<f64>().clamp(0.0, 1.0)
}

/// Mean and sample variance; `None` with fewer than two.
fn spread(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some((mean, squares / (n - 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_of_kolmogorov_is_the_published_one() {
        // Of the limiting distribution: 5 % at 1.358, 1 % at 1.628.
        let at = |scaled: f64| kolmogorov(scaled / 1e4, 1e8);
        assert!((at(1.358_1) - 0.05).abs() < 1e-4, "{}", at(1.358_1));
        assert!((at(1.627_6) - 0.01).abs() < 1e-4, "{}", at(1.627_6));
        assert!((kolmogorov(0.0, 100.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn even_moments_do_not_vary() {
        let even: Vec<u64> = (0..401).map(|n| n * 10_000_000).collect();
        let found = GapFigures::of(&even);
        assert_eq!(found.cv, Some(0.0));
        assert_eq!(found.dispersion, [Dispersion { over_s: 0.1, index: 0.0 }]);
        assert!((rate(&even).unwrap() - 100.0).abs() < 1e-9);
    }

    #[test]
    fn bursts_are_dispersed() {
        // Ten at once, ten times a second, and then a tenth of a second nothing.
        let bursts: Vec<u64> = (0..50_u64).flat_map(|n| [n * 200_000_000; 10]).collect();
        let found = GapFigures::of(&bursts);
        assert!(4.0 < found.dispersion[0].index, "{found:?}");
        assert!(found.dispersion[0].over_s < 0.11);
    }

    #[test]
    fn too_little_has_no_figure() {
        assert_eq!(GapFigures::of(&[5]), GapFigures::default());
        assert_eq!(rate(&[5, 5]), None);
        assert_eq!(ArrivalFit::exponential(&[1, 2, 3], 1.0), None);
        assert_eq!(GapFigures::of(&[0, u64::MAX]).dispersion, []);
    }
}
