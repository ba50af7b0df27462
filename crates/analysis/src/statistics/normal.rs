//! The normal distribution.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Roots are refined until they stop moving; two or three steps suffice.
const STEPS: u32 = 20;

pub fn cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z * FRAC_1_SQRT_2)
}

/// Infinite at 0 and 1, and not a number outside of them.
pub fn quantile(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p > 0.5 { upper(1.0 - p) } else { -upper(p) }
}

/// The value that only `tail` of the distribution exceeds; `tail` is at most a half.
pub(crate) fn upper(tail: f64) -> f64 {
    if tail <= 0.0 {
        return f64::INFINITY;
    }
    let mut z = rough_upper(tail);
    for _ in 0..STEPS {
        let density = libm::exp(-0.5 * z * z) / (2.0 * PI).sqrt();
        let miss = (cdf(-z) - tail) / density;
        // Halley's step: the density falls by z of itself.
        let step = miss / (1.0 - 0.5 * z * miss);
        z += step;
        if step.abs() <= 1e-15 * (1.0 + z.abs()) {
            break;
        }
    }
    z
}

/// Where the search begins: right to a few hundredths in the middle and far out.
fn rough_upper(tail: f64) -> f64 {
    let t = (-2.0 * libm::log(tail)).sqrt();
    (t - (2.307_5 + 0.270_6 * t) / (1.0 + t * (0.992_3 + 0.044_8 * t))).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-9 * expected.abs(), "found {found}, not {expected}");
    }

    #[test]
    fn quantiles_and_shares_are_those_of_scipy() {
        // scipy 1.17.1: scipy.stats.norm.ppf(p) and scipy.stats.norm.cdf(z)
        close(quantile(0.975), 1.959_963_984_540_054);
        close(quantile(0.6), 0.253_347_103_135_799_7);
        close(quantile(0.001), -3.090_232_306_167_813);
        close(quantile(1e-12), -7.034_483_825_301_131);
        close(quantile(0.999_999), 4.753_424_308_817_087);
        assert!(quantile(0.5).abs() < 1e-15);
        close(cdf(0.0), 0.5);
        close(cdf(1.96), 0.975_002_104_851_779_5);
        close(cdf(-3.5), 0.000_232_629_079_035_525_02);
        close(cdf(-9.0), 1.128_588_405_953_832_4e-19);
        close(cdf(0.3), 0.617_911_422_188_952_6);
    }

    #[test]
    fn the_ends_are_infinite_and_beyond_them_is_nothing() {
        assert!(quantile(0.0) < f64::MIN && quantile(1.0) > f64::MAX);
        assert!(quantile(-0.1).is_nan() && quantile(f64::NAN).is_nan());
    }
}
