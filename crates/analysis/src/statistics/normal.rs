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
