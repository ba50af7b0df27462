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
            low = t;
        } else {
            high = t;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative, also far out in a tail.
    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-9 * expected.abs(), "found {found}, not {expected}");
    }

    #[test]
    fn quantiles_are_those_of_scipy() {
        // scipy 1.17.1: scipy.stats.t.ppf(p, degrees) for p in (0.975, 0.95, 0.995, 0.6)
        let expected = [
            (
                1.0,
                [
                    12.706_204_736_174_694,
                    6.313_751_514_675_037,
                    63.656_741_162_871_526,
                    0.324_919_696_232_906_34,
                ],
            ),
            (
                2.0,
                [
                    4.302_652_729_749_462,
                    2.919_985_580_353_724_2,
                    9.924_843_200_918_287,
                    0.288_675_134_594_812_8,
                ],
            ),
            (
                4.0,
                [
                    2.776_445_105_197_793_4,
                    2.131_846_786_326_649_5,
                    4.604_094_871_349_992,
                    0.270_722_294_707_597_6,
                ],
            ),
            (
                9.0,
                [
                    2.262_157_162_798_205,
                    1.833_112_932_656_237,
                    3.249_835_541_592_126,
                    0.260_955_336_473_911,
                ],
            ),
            (
                29.0,
                [
                    2.045_229_642_132_703,
                    1.699_127_026_533_497_2,
                    2.756_385_903_670_605,
                    0.255_683_634_571_256_04,
                ],
            ),
            (
                1_000.0,
                [
                    1.962_339_080_826_408_3,
                    1.646_378_817_285_464_3,
                    2.580_754_698_065_951,
                    0.253_414_515_839_498_76,
                ],
            ),
        ];
        for (degrees, quantiles) in expected {
            for (p, expected) in [0.975, 0.95, 0.995, 0.6].into_iter().zip(quantiles) {
                close(quantile(p, degrees), expected);
                close(quantile(1.0 - p, degrees), -expected);
            }
        }
    }

    #[test]
    fn degrees_need_not_be_whole_and_may_be_many() {
        // scipy 1.17.1: scipy.stats.t.ppf(0.975, degrees)
        close(quantile(0.975, 1.5), 6.016_663_104_427_929);
        close(quantile(0.975, 7.3), 2.345_066_736_547_703);
        close(quantile(0.975, 123.4), 1.979_374_946_317_419_7);
        close(quantile(0.975, 54_321.5), 1.960_007_656_441_424_6);
        close(quantile(0.975, 2e6), 1.959_965_170_676_374_8);
    }

    #[test]
    fn shares_are_those_of_scipy() {
        // scipy 1.17.1: scipy.stats.t.cdf(t, degrees)
        close(cdf(0.5, 1.0), 0.647_583_617_650_433_3);
        close(cdf(-2.0, 2.0), 0.091_751_709_536_136_98);
        close(cdf(2.776, 4.0), 0.974_988_610_840_011_8);
        close(cdf(-7.5, 9.0), 1.846_370_630_829_391_8e-5);
        close(cdf(0.01, 29.0), 0.503_955_117_598_387_6);
        close(cdf(1.96, 1_000.0), 0.974_863_407_522_125_6);
        close(cdf(3.3, 7.7), 0.994_271_248_110_658_7);
        close(cdf(-1.5, 2e6), 0.066_807_280_193_635_09);
        close(cdf(-12.0, 45.0), 6.382_467_622_833_792e-16);
    }

    #[test]
    fn there_is_no_quantile_of_nonsense() {
        assert!(quantile(1.5, 4.0).is_nan() && quantile(0.9, 0.0).is_nan());
        assert!(cdf(f64::NAN, 4.0).is_nan() && cdf(1.0, -1.0).is_nan());
        assert!(quantile(1.0, 4.0).is_infinite() && quantile(0.5, 4.0).abs() < 1e-12);
    }
}
