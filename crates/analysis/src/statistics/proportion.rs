//! A share and how far off it may be.

use super::{UPPER, normal};
use crate::statistics::Interval;

/// Wilson's interval: inside 0 to 1, and honest where nothing or everything succeeded. `n` may be
/// an effective number, so neither need be whole.
pub fn wilson(successes: f64, n: f64) -> Option<Interval> {
    wilson_at(successes, n, normal::quantile(UPPER))
}

pub(crate) fn wilson_at(successes: f64, n: f64, reach: f64) -> Option<Interval> {
    if !(n > 0.0 && (0.0..=n).contains(&successes)) {
        return None;
    }
    let share = successes / n;
    let square = reach * reach;
    let middle = (share + 0.5 * square / n) / (1.0 + square / n);
    let half =
        reach / (1.0 + square / n) * (share * (1.0 - share) / n + 0.25 * square / (n * n)).sqrt();
    Some(Interval::new(middle - half, middle + half)?.clamped(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "found {found}, not {expected}");
    }

    #[test]
    fn intervals_are_those_of_scipy() {
        // scipy 1.17.1: scipy.stats.binomtest(k, n).proportion_ci(method="wilson")
        let most = wilson(45.0, 50.0).unwrap();
        close(most.low, 0.786_397_685_625_203_4);
        close(most.high, 0.956_524_235_068_109_5);
        let none = wilson(0.0, 20.0).unwrap();
        close(none.low, 0.0);
        close(none.high, 0.161_125_158_052_819_35);
    }

    #[test]
    fn a_share_of_nothing_has_no_interval() {
        assert_eq!(wilson(0.0, 0.0), None);
        assert_eq!(wilson(3.0, 2.0), None);
        assert_eq!(wilson(-1.0, 2.0), None);
        assert_eq!(wilson(f64::NAN, 2.0), None);
    }
}
