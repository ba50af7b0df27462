//! Gaps between arrivals.

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
    let found = GapFigures::from_moments(&even);
    assert_eq!(found.cv, Some(0.0));
    assert_eq!(found.dispersion, [Dispersion { over_s: 0.1, index: 0.0 }]);
    assert!((span_s(&even).unwrap() - 4.0).abs() < 1e-9);
}

#[test]
fn bursts_are_dispersed() {
    // Ten at once, ten times a second, and then a tenth of a second nothing.
    let bursts: Vec<u64> = (0..50_u64).flat_map(|n| [n * 200_000_000; 10]).collect();
    let found = GapFigures::from_moments(&bursts);
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
        ArrivalFit::fit(moments, 100.0, Arrivals::Gamma { burstiness }).unwrap().p
    };
    for seed in 0..20 {
        assert!(1e-4 < p(&drawn(4, seed), 4.0), "seed {seed}");
        assert!(p(&drawn(4, seed), 1.0) < 1e-6, "seed {seed}");
        assert!(p(&drawn(1, seed), 0.5) < 1e-6, "seed {seed}");
    }
    let poisson = ArrivalFit::fit(&drawn(1, 3), 100.0, Arrivals::Poisson).unwrap();
    assert!((poisson.p - p(&drawn(1, 3), 1.0)).abs() < 1e-9, "a shape of one is Poisson");
}

#[test]
fn stretched_gaps_fit_the_rate_they_were_stretched_to() {
    let fit = |moments: &[u64], burstiness: f64| {
        ArrivalFit::fit(moments, 100.0, Arrivals::Stretched { burstiness })
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
    let fit = ArrivalFit::fit(&atoms, 100.0, Arrivals::Gamma { burstiness: 0.01 }).unwrap();
    assert!(fit.distance < 0.5, "{fit:?}");
}

#[test]
fn even_gaps_are_all_even() {
    let fit = |moments: &[u64]| ArrivalFit::fit(moments, 3.0, Arrivals::Constant).unwrap();
    let mut moments: Vec<u64> = (0..100_u64).map(|n| n * 1_000_000_000 / 3).collect();
    assert!((fit(&moments).p - 1.0).abs() < 1e-12, "{:?}", fit(&moments));
    moments[50] += 1_000;
    assert!(fit(&moments).p < 1e-12, "{:?}", fit(&moments));
}

#[test]
fn too_little_has_no_figure() {
    assert_eq!(GapFigures::from_moments(&[5]), GapFigures::default());
    assert_eq!((span_s(&[]), span_s(&[5, 5])), (None, Some(0.0)));
    assert_eq!(ArrivalFit::fit(&[1, 2, 3], 1.0, Arrivals::Poisson), None);
    assert_eq!(GapFigures::from_moments(&[0, u64::MAX]).dispersion, []);
}
