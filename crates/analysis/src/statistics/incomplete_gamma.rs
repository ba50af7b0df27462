//! The regularised incomplete gamma function: the distribution of gamma gaps.

/// More than any argument of ours needs; it only ends a loop that cannot end.
const MOST_TERMS: u32 = 100_000;
/// Keeps a denominator of the continued fraction from zero.
const TINY: f64 = 1e-300;

/// `P(shape, x)`: the share of a gamma distribution of this shape and scale one that is below `x`.
pub(crate) fn lower(shape: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let front = libm::exp(shape * libm::log(x) - x - libm::lgamma(shape));
    // Each of the two converges fast where the other does not.
    let below =
        if x < shape + 1.0 { front * series(shape, x) } else { 1.0 - front * fraction(shape, x) };
    below.clamp(0.0, 1.0)
}

fn series(shape: f64, x: f64) -> f64 {
    let (mut term, mut sum) = (1.0 / shape, 1.0 / shape);
    for n in 1..MOST_TERMS {
        term *= x / (shape + f64::from(n));
        sum += term;
        if term < sum * f64::EPSILON {
            break;
        }
    }
    sum
}

/// The continued fraction of the upper tail, by Lentz's method.
fn fraction(shape: f64, x: f64) -> f64 {
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut level = x + 1.0 - shape;
    let mut upper = 1.0 / TINY;
    let mut lower = 1.0 / away_from_zero(level);
    let mut found = lower;
    for n in 1..MOST_TERMS {
        let n = f64::from(n);
        let numerator = -n * (n - shape);
        level += 2.0;
        lower = 1.0 / away_from_zero(numerator * lower + level);
        upper = away_from_zero(level + numerator / upper);
        let change = lower * upper;
        found *= change;
        if (change - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "found {found}, expected {expected}");
    }

    #[test]
    fn whole_and_half_shapes_have_closed_forms() {
        for x in [1e-9_f64, 0.1, 0.7, 1.0, 2.5, 4.0, 9.0, 30.0] {
            close(lower(1.0, x), -libm::expm1(-x));
            close(lower(0.5, x), libm::erf(x.sqrt()));
            let three = 1.0 - libm::exp(-x) * (1.0 + x + x * x / 2.0);
            close(lower(3.0, x), three);
        }
    }

    #[test]
    fn it_rises_from_nothing_to_all() {
        for shape in [0.01, 0.25, 1.0, 7.5, 400.0] {
            close(lower(shape, 0.0), 0.0);
            close(lower(shape, 40.0 * (shape + 20.0)), 1.0);
            let at = |n: i32| lower(shape, shape * f64::from(n) / 50.0);
            assert!((1..200).all(|n| at(n) <= at(n + 1) + 1e-14), "shape {shape}");
        }
    }
}
