//! The regularised incomplete beta function, from which Student's distribution follows.

/// More than any argument of ours needs; it only ends a loop that cannot end.
const MOST_TERMS: u32 = 100_000;
/// Keeps a denominator of the continued fraction from zero.
const TINY: f64 = 1e-300;
/// From here the series of the gamma ratio is exact to the last digits, and the difference of two
/// large logarithms is not.
const LARGE: f64 = 40.0;

/// `I_x(a, b)` where `y` is 1 − x, kept apart so that neither end loses its digits.
pub(crate) fn regularised(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if y <= 0.0 {
        return 1.0;
    }
    let front = libm::exp(a * libm::log(x) + b * libm::log(y) - log_beta(a, b));
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(a, b, x) / a
    } else {
        1.0 - front * fraction(b, a, y) / b
    }
}

/// ln B(a, b). One of our two is always a half, which is why its ratio has a series of its own.
pub(crate) fn log_beta(a: f64, b: f64) -> f64 {
    let (small, large) = if a < b { (a, b) } else { (b, a) };
    let halved = (small - 0.5).abs() < f64::EPSILON;
    if halved && LARGE < large {
        return libm::lgamma(0.5) - log_half_step(large);
    }
    libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b)
}

/// ln Γ(a + ½) − ln Γ(a) for large `a`, from the asymptotic series of the ratio's logarithm.
fn log_half_step(a: f64) -> f64 {
    let by_a = 1.0 / a;
    let square = by_a * by_a;
    let series = by_a
        * (-1.0 / 8.0
            + square
                * (1.0 / 192.0
                    + square
                        * (-1.0 / 640.0 + square * (17.0 / 14_336.0 - square * 31.0 / 18_432.0))));
    0.5 * libm::log(a) + series
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut upper = 1.0;
    let mut lower = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut found = lower;
    for term in 1..MOST_TERMS {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        lower = 1.0 / away_from_zero(1.0 + even * lower);
        upper = away_from_zero(1.0 + even / upper);
        found *= lower * upper;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        lower = 1.0 / away_from_zero(1.0 + odd * lower);
        upper = away_from_zero(1.0 + odd / upper);
        let step = lower * upper;
        found *= step;
        if (step - 1.0).abs() < 1e-15 {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_meets_the_logarithms_where_they_are_still_exact() {
        for large in [LARGE + 0.1, 60.0, 100.0] {
            let by_logarithms = libm::lgamma(large) + libm::lgamma(0.5) - libm::lgamma(large + 0.5);
            assert!((log_beta(large, 0.5) - by_logarithms).abs() < 1e-12);
            assert!((log_beta(0.5, large) - by_logarithms).abs() < 1e-12);
        }
    }

    #[test]
    fn the_two_sides_of_the_function_add_up() {
        for (a, b, x) in [(0.5, 3.0, 0.2), (12.0, 0.5, 0.97), (2.5, 2.5, 0.5)] {
            let whole = regularised(a, b, x, 1.0 - x) + regularised(b, a, 1.0 - x, x);
            assert!((whole - 1.0).abs() < 1e-13, "{whole}");
        }
        // I_x(1, 1) is x.
        assert!((regularised(1.0, 1.0, 0.3, 0.7) - 0.3).abs() < 1e-14);
    }
}
