//! A share and how far off it may be.

use super::{UPPER, normal};
use crate::estimate::Interval;

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
