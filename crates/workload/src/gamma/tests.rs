//! Against values from elsewhere, and against the distribution's own definition.

use proptest::prelude::*;

use super::*;

enum Tail {
    Lower,
    Upper,
}

/// Tail, shape, probability, quantile: roots found by bisection with sixty digits (mpmath, from
/// its hypergeometric and incomplete gamma functions), rounded to the nearest double.
const QUANTILES: [(Tail, f64, f64, f64); 28] = [
    (Tail::Lower, 0.01, 0.001, 5.660_738_147_061_974e-301),
    (Tail::Lower, 0.01, 0.5, 4.465_535_018_910_355e-31),
    (Tail::Lower, 0.01, 0.99, 0.265_052_550_251_581_86),
    (Tail::Upper, 0.01, 0.001, 1.509_084_147_694_750_5),
    (Tail::Upper, 0.01, 1e-300, 679.718_133_303_684_8),
    (Tail::Lower, 0.1, 1e-10, 6.073_048_362_407_963e-101),
    (Tail::Lower, 0.1, 0.5, 0.000_593_391_104_460_226_1),
    (Tail::Upper, 0.1, 1e-16, 31.457_479_680_210_035),
    (Tail::Lower, 0.5, 1e-100, 7.853_981_633_974_483e-201),
    (Tail::Lower, 0.5, 0.3, 0.074_235_930_916_272_72),
    (Tail::Upper, 0.5, 1e-10, 20.910_728_182_380_648),
    (Tail::Lower, 0.7, 0.5, 0.407_423_748_476_441_25),
    (Tail::Upper, 0.9, 1e-5, 11.196_768_627_303_097),
    (Tail::Lower, 2.0, 1e-100, 1.414_213_562_373_095e-50),
    (Tail::Lower, 2.0, 0.1, 0.531_811_608_389_612_1),
    (Tail::Lower, 2.0, 0.97, 5.355_949_144_835_19),
    (Tail::Upper, 2.0, 1e-300, 697.324_211_379_352_6),
    (Tail::Lower, 10.0, 0.5, 9.668_714_614_714_132),
    (Tail::Upper, 10.0, 1e-16, 61.226_603_512_293_565),
    (Tail::Lower, 99.5, 1e-300, 0.036_531_289_916_417_19),
    (Tail::Lower, 99.5, 0.7, 104.479_557_483_336_17),
    (Tail::Upper, 99.5, 1e-30, 260.708_040_644_640_73),
    (Tail::Lower, 100.0, 0.999, 133.770_263_911_378_6),
    (Tail::Upper, 100.0, 1e-300, 1_017.310_428_854_713_9),
    (Tail::Lower, 1_000.0, 1e-300, 233.928_364_290_528_44),
    (Tail::Lower, 1_000.0, 0.5, 999.666_686_426_965_2),
    (Tail::Upper, 1_000.0, 0.001, 1_100.578_098_293_314_5),
    (Tail::Upper, 1_000.0, 1e-300, 2_666.752_073_301_995),
];

#[track_caller]
fn assert_close(found: f64, expected: f64, relative: f64) {
    let error = (found / expected - 1.0).abs();
    assert!(error <= relative, "{found:e} instead of {expected:e}, off by {error:e}");
}

#[test]
fn quantiles_are_those_of_sixty_digits() {
    for (tail, shape, probability, expected) in QUANTILES {
        let gamma = Gamma::new(shape);
        let found = match tail {
            Tail::Lower => gamma.quantile(probability),
            Tail::Upper => gamma.upper_quantile(probability),
        };
        assert_close(found, expected, 1e-12);
    }
}

/// Published tables of chi-square: a gamma of half the degrees of freedom, times two.
#[test]
fn quantiles_are_those_of_the_chi_square_tables() {
    for (degrees, upper, expected) in [
        (1.0, 0.05, 3.841),
        (2.0, 0.05, 5.991),
        (10.0, 0.05, 18.307),
        (10.0, 0.99, 2.558),
        (5.0, 0.001, 20.515),
        (30.0, 0.5, 29.336),
        (100.0, 0.01, 135.807),
    ] {
        let found: f64 = 2.0 * Gamma::new(degrees / 2.0).upper_quantile(upper);
        assert!((found - expected).abs() <= 0.000_5 + 1e-9, "{degrees} {upper}: {found}");
    }
}

#[test]
fn the_ends_are_the_ends() {
    for shape in [0.01, 0.5, 1.0, 30.0, 1_000.0] {
        let gamma = Gamma::new(shape);
        assert_eq!((gamma.quantile(0.0), gamma.upper_quantile(1.0)), (0.0, 0.0));
        assert!(gamma.upper_quantile(f64::MIN_POSITIVE).is_finite());
    }
    // Far below what a double can hold.
    assert_eq!(Gamma::new(0.01).quantile(1e-300).to_bits(), 0);
}

#[test]
fn a_shape_of_one_is_exponential() {
    let gamma = Gamma::new(1.0);
    for p in [1e-300, 1e-16, 1e-9, 0.01, 0.5, 0.9, 0.999_999, 1.0 - 1e-16] {
        assert_close(gamma.quantile(p), -libm::log1p(-p), 1e-12);
    }
}

proptest! {
    /// A whole shape's upper tail is a sum that knows nothing of gamma functions: fewer than
    /// `shape` events of a Poisson process.
    #[test]
    fn a_whole_shape_counts_events(shape in 1_u32..80, upper in 1e-12_f64..1.0) {
        let x = Gamma::new(shape.into()).upper_quantile(upper);
        let (mut term, mut sum) = (libm::exp(-x), libm::exp(-x));
        for n in 1..shape {
            term *= x / f64::from(n);
            sum += term;
        }
        prop_assert!((sum / upper - 1.0).abs() < 1e-11, "{} instead of {}", sum, upper);
    }

    #[test]
    fn half_a_shape_is_a_squared_normal(lower in 1e-12_f64..1.0) {
        let x = Gamma::new(0.5).quantile(lower);
        let found = libm::erf(libm::sqrt(x));
        prop_assert!((found / lower - 1.0).abs() < 1e-12, "{} instead of {}", found, lower);
    }

    #[test]
    fn there_and_back_is_the_same_probability(
        ln_shape in -4.6_f64..6.9,
        ln_tail in -690.0_f64..-1e-6,
        is_upper in any::<bool>(),
    ) {
        let gamma = Gamma::new(libm::exp(ln_shape));
        let tail = libm::exp(ln_tail);
        let x = if is_upper { gamma.upper_quantile(tail) } else { gamma.quantile(tail) };
        if x < f64::MIN_POSITIVE {
            return Ok(());
        }
        let logs = (libm::log(tail), libm::log1p(-tail));
        let (ln_lower, ln_upper) = if is_upper { (logs.1, logs.0) } else { logs };
        let left = gamma.difference(libm::log(x), ln_lower, ln_upper);
        // What is left of the difference, as an error of x: that is what a draw is.
        let error = (left.value / left.slope).abs();
        prop_assert!(error < 1e-12, "shape {} tail {}: {error:e}", gamma.shape, tail);
    }

    #[test]
    fn quantiles_never_decrease(ln_shape in -4.6_f64..6.9, a in 0.0..1.0_f64, b in 0.0..1.0_f64) {
        let gamma = Gamma::new(libm::exp(ln_shape));
        let (low, high) = (a.min(b), a.max(b));
        prop_assert!(gamma.quantile(low) <= gamma.quantile(high) * (1.0 + 1e-13));
    }
}
