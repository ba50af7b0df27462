//! Student's t distribution; degrees of freedom need not be whole.

use std::f64::consts::PI;

use super::incomplete_beta::{log_beta, regularised};
use super::normal;

/// Beyond so many degrees the distribution is a normal one of a corrected argument, to twelve
/// digits, and the continued fraction grows long.
const NEARLY_NORMAL: f64 = 1e6;
const STEPS: u32 = 200;

pub fn cdf(t: f64, degrees: f64) -> f64 {
    if t.is_nan() || degrees.is_nan() || degrees <= 0.0 {
        return f64::NAN;
    }
    let tail = tail(t.abs(), degrees);
    if t > 0.0 { 1.0 - tail } else { tail }
}

/// Infinite at 0 and 1; not a number outside of them or without degrees of freedom.
pub fn quantile(p: f64, degrees: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) || degrees.is_nan() || degrees <= 0.0 {
        return f64::NAN;
    }
    if p > 0.5 { upper(1.0 - p, degrees) } else { -upper(p, degrees) }
}

/// The share beyond `t`, which is not negative.
fn tail(t: f64, degrees: f64) -> f64 {
    if t.is_infinite() {
        return 0.0;
    }
    if degrees > NEARLY_NORMAL {
        let z = t * (1.0 - 0.25 / degrees) / (1.0 + 0.5 * t * t / degrees).sqrt();
        return normal::cdf(-z);
    }
    let whole = degrees + t * t;
    0.5 * regularised(0.5 * degrees, 0.5, degrees / whole, t * t / whole)
}

fn density(t: f64, degrees: f64) -> f64 {
    if degrees > NEARLY_NORMAL {
        return libm::exp(-0.5 * t * t) / (2.0 * PI).sqrt();
    }
    let shape = -0.5 * (degrees + 1.0) * libm::log1p(t * t / degrees);
    libm::exp(shape - log_beta(0.5 * degrees, 0.5)) / degrees.sqrt()
}

/// The value that only `share` exceeds; `share` is at most a half. Newton's steps, kept between
/// two ends that close in, because with few degrees the far tail throws them out.
fn upper(share: f64, degrees: f64) -> f64 {
    if share <= 0.0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, 1.0_f64.max(normal::upper(share)));
    while tail(high, degrees) > share && high < f64::MAX / 4.0 {
        low = high;
        high *= 2.0;
    }
    let mut t = 0.5 * (low + high);
    for _ in 0..STEPS {
        let miss = tail(t, degrees) - share;
        if miss > 0.0 {
            low = t
        } else {
            high = t
        }
        let newton = t + miss / density(t, degrees);
        let next = if (low..=high).contains(&newton) { newton } else { 0.5 * (low + high) };
        let moved = (next - t).abs();
        t = next;
        if moved <= 1e-15 * t.abs() {
            break;
        }
    }
    t
}
