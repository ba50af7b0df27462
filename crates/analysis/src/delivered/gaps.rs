//! How arrivals vary: their rate, their gaps, and their counts over stretches of time.

use inferometer_model::spec::Arrivals;
use serde::{Deserialize, Serialize};

use crate::statistics::incomplete_gamma;
use crate::statistics::runs::{mean, variance};

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

/// How well gaps fit a process: a test of Kolmogorov and Smirnov, and of even gaps whether each is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArrivalFit {
    /// What the gaps were compared with.
    pub process: String,
    /// The largest distance between the two distributions; of even gaps the most that one is off, in
    /// gaps.
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
/// Moments are whole nanoseconds.
const ROUNDED_S: f64 = 1e-9;

/// Between the first and the last of sorted moments.
pub(super) fn span_s(moments_ns: &[u64]) -> Option<f64> {
    let (first, last) = (moments_ns.first()?, moments_ns.last()?);
    Some((last - first) as f64 / 1e9)
}

impl GapFigures {
    /// Of sorted moments.
    pub(super) fn of(moments_ns: &[u64]) -> Self {
        let gaps: Vec<f64> = moments_ns.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let cv = |gaps: &[f64]| variance(gaps).sqrt() / mean(gaps);
        let varies = 2 <= gaps.len() && 0.0 < mean(&gaps);
        Self {
            cv: varies.then(|| cv(&gaps)),
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
        let index = variance(&counts) / mean(&counts);
        let tells = PER_STRETCH_MIN <= mean(&counts);
        tells.then_some(Self { over_s: over_ns as f64 / 1e9, index })
    }
}

impl ArrivalFit {
    /// The gaps of sorted moments against those of arrivals at this rate; `None` where they are too
    /// few.
    pub(super) fn of(moments_ns: &[u64], per_s: f64, arrivals: Arrivals) -> Option<Self> {
        let gaps_s: Vec<f64> =
            moments_ns.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e9).collect();
        if gaps_s.len() < FIT_MIN {
            return None;
        }
        // What one stretched schedule has in common, all its gaps have: there must be enough of it
        // to average out.
        if let Arrivals::Stretched { burstiness } = arrivals
            && burstiness * (gaps_s.len() as f64) < FIT_MIN as f64
        {
            return None;
        }
        Some(match arrivals {
            Arrivals::Constant => Self::even(&gaps_s, per_s),
            Arrivals::Poisson => {
                Self::drawn("Poisson", gaps_s, |gap_s| -libm::expm1(-per_s * gap_s))
            }
            Arrivals::Gamma { burstiness } => Self::drawn("gamma", gaps_s, |gap_s| {
                incomplete_gamma::lower(burstiness, burstiness * per_s * gap_s)
            }),
            // Their mean is the rate's own, which chance would only come near to.
            Arrivals::Stretched { burstiness } => Self::drawn("stretched gamma", gaps_s, |gap_s| {
                incomplete_gamma::lower(burstiness, burstiness * per_s * gap_s)
            }),
        })
    }

    /// Even gaps leave nothing to chance: they are, or they are not.
    fn even(gaps_s: &[f64], per_s: f64) -> Self {
        let off = |gap_s: &f64| (gap_s * per_s - 1.0).abs();
        let distance = gaps_s.iter().map(off).fold(0.0, f64::max);
        let p = if distance <= 2.0 * ROUNDED_S * per_s { 1.0 } else { 0.0 };
        Self { process: "even".to_owned(), distance, p, n: gaps_s.len() as u64 }
    }

    /// Gaps are rounded, so that many may be equal: what lies within the rounding counts for the fit.
    fn drawn(process: &str, mut gaps_s: Vec<f64>, below: impl Fn(f64) -> f64) -> Self {
        gaps_s.sort_unstable_by(f64::total_cmp);
        let n = gaps_s.len() as f64;
        let (mut smaller, mut distance) = (0, 0.0_f64);
        for equal in gaps_s.chunk_by(|one, other| one.total_cmp(other).is_eq()) {
            let until = smaller + equal.len();
            let fewer = below(equal[0] - ROUNDED_S) - smaller as f64 / n;
            let more = until as f64 / n - below(equal[0] + ROUNDED_S);
            distance = distance.max(fewer).max(more);
            smaller = until;
        }
        let p = kolmogorov(distance, n);
        Self { process: process.to_owned(), distance, p, n: gaps_s.len() as u64 }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::draws::Draws;

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
        assert!((span_s(&even).unwrap() - 4.0).abs() < 1e-9);
    }

    #[test]
    fn bursts_are_dispersed() {
        // Ten at once, ten times a second, and then a tenth of a second nothing.
        let bursts: Vec<u64> = (0..50_u64).flat_map(|n| [n * 200_000_000; 10]).collect();
        let found = GapFigures::of(&bursts);
        assert!(4.0 < found.dispersion[0].index, "{found:?}");
        assert!(found.dispersion[0].over_s < 0.11);
    }

    /// Sums of whole nanoseconds, as the schedule has them: gaps of a gamma shape of a whole number,
    /// over a hundred a second.
    fn drawn(shape: u32, seed: u64) -> Vec<u64> {
        let mut draws = Draws::new(seed, 0);
        let mut at_ns = 0;
        let mut next = || {
            let unit: f64 = (0..shape).map(|_| draws.exponential()).sum();
            let gap = std::time::Duration::from_secs_f64(unit / f64::from(shape) / 100.0);
            at_ns += u64::try_from(gap.as_nanos()).unwrap();
            at_ns
        };
        (0..2_000).map(|_| next()).collect()
    }

    #[test]
    fn gamma_gaps_fit_their_own_shape_and_no_other() {
        let p = |moments: &[u64], burstiness: f64| {
            ArrivalFit::of(moments, 100.0, Arrivals::Gamma { burstiness }).unwrap().p
        };
        for seed in 0..20 {
            assert!(1e-4 < p(&drawn(4, seed), 4.0), "seed {seed}");
            assert!(p(&drawn(4, seed), 1.0) < 1e-6, "seed {seed}");
            assert!(p(&drawn(1, seed), 0.5) < 1e-6, "seed {seed}");
        }
        let poisson = ArrivalFit::of(&drawn(1, 3), 100.0, Arrivals::Poisson).unwrap();
        assert!((poisson.p - p(&drawn(1, 3), 1.0)).abs() < 1e-9, "a shape of one is Poisson");
    }

    #[test]
    fn stretched_gaps_fit_the_rate_they_were_stretched_to() {
        let fit = |moments: &[u64], burstiness: f64| {
            ArrivalFit::of(moments, 100.0, Arrivals::Stretched { burstiness })
        };
        for seed in 0..20 {
            // A hundred of them by chance come too fast or too slow.
            let mut moments = drawn(1, seed);
            moments.truncate(100);
            let last_ns = moments[99];
            for moment_ns in &mut moments {
                *moment_ns = *moment_ns * 1_000_000_000 / last_ns;
            }
            assert!(0.01 < fit(&moments, 1.0).unwrap().p, "seed {seed}");
            assert_eq!(fit(&moments, 0.4), None, "too few to tell");
        }
        assert!(fit(&drawn(4, 1), 1.0).unwrap().p < 1e-6);
    }

    #[test]
    fn gaps_that_are_rounded_to_nothing_are_no_misfit() {
        // Of shape 0.01 at a hundred a second, four of five gaps are below half a nanosecond.
        let atoms = (0..200_u64).flat_map(|n| [n * 50_000_000; 5]).collect::<Vec<u64>>();
        let fit = ArrivalFit::of(&atoms, 100.0, Arrivals::Gamma { burstiness: 0.01 }).unwrap();
        assert!(fit.distance < 0.5, "{fit:?}");
    }

    #[test]
    fn even_gaps_are_all_even() {
        let fit = |moments: &[u64]| ArrivalFit::of(moments, 3.0, Arrivals::Constant).unwrap();
        let mut moments: Vec<u64> = (0..100_u64).map(|n| n * 1_000_000_000 / 3).collect();
        assert!((fit(&moments).p - 1.0).abs() < 1e-12, "{:?}", fit(&moments));
        moments[50] += 1_000;
        assert!(fit(&moments).p < 1e-12, "{:?}", fit(&moments));
    }

    #[test]
    fn too_little_has_no_figure() {
        assert_eq!(GapFigures::of(&[5]), GapFigures::default());
        assert_eq!((span_s(&[]), span_s(&[5, 5])), (None, Some(0.0)));
        assert_eq!(ArrivalFit::of(&[1, 2, 3], 1.0, Arrivals::Poisson), None);
        assert_eq!(GapFigures::of(&[0, u64::MAX]).dispersion, []);
    }
}
