//! Levels and doubtful numbers as the page of a set writes them.

use inferometer_analysis::Interval;
use inferometer_analysis::set::{Across, Figure};
use inferometer_model::campaign::Level;

use crate::number::{NOTHING, figure};

/// In a table whose head says what levels are.
pub(super) fn level_cell(level: Level) -> String {
    match level {
        Level::AsAsked => "as asked".to_owned(),
        Level::Rate(per_s) => short(per_s),
        Level::Unlimited => "unlimited".to_owned(),
        Level::Concurrency(requests) => requests.to_string(),
    }
}

/// In a sentence.
pub(super) fn level_words(level: Level) -> String {
    match level {
        Level::AsAsked | Level::Unlimited => level_cell(level),
        Level::Rate(per_s) => format!("{} requests/s", short(per_s)),
        Level::Concurrency(requests) => format!("{requests} at once"),
    }
}

/// A rate that a search came to may have more digits than anybody reads.
pub(super) fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Halves of an interval that differ by more than this share are told apart.
const LOPSIDED: f64 = 0.2;

/// `387.1 ±4.2`: half the width of the interval, with the decimals of the value. Where it is lopsided,
/// or reaches down to nothing, its ends: `2,614 (310–8,112)`.
pub(super) fn doubted(value: Option<f64>, interval: Option<Interval>) -> String {
    let (Some(value), Some(interval)) = (value, interval) else { return figure(value) };
    let shown = figure(Some(value));
    if is_lopsided(value, interval) {
        let [low, high] = [interval.low, interval.high].map(|end| figure(Some(end)));
        return format!("{shown} ({low}–{high})");
    }
    let decimals = shown.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let half = interval.half_width();
    let same = format!("{half:.decimals$}");
    let own = figure(Some(half));
    // A width that its value's decimals cannot show is shown with its own, if these can.
    let half = if is_nothing(&same) && !is_nothing(&own) || 1_000.0 <= half { own } else { same };
    format!("{shown} ±{half}")
}

fn is_lopsided(value: f64, interval: Interval) -> bool {
    let (below, above) = (value - interval.low, interval.high - value);
    let apart = LOPSIDED * below.abs().max(above.abs()) < (above - below).abs();
    let has_width = value.abs() * 1e-9 < interval.half_width();
    has_width && (interval.low <= 0.0 || apart)
}

fn is_nothing(digits: &str) -> bool {
    digits.bytes().all(|byte| matches!(byte, b'0' | b'.'))
}

pub(super) fn across(across: Option<&Across>) -> String {
    across.map_or_else(|| NOTHING.to_owned(), |found| doubted(found.mean, found.doubt()))
}

/// The same of a percentile, marked where requests were too few for it.
pub(super) fn percentile(found: Option<&Across>) -> String {
    let uncertain = found.is_some_and(|found| found.mean.is_some() && !found.certified);
    format!("{}{}", if uncertain { "~" } else { "" }, across(found))
}

/// Without its doubt, where a page is too narrow for it.
pub(super) fn bare(found: Option<&Across>) -> String {
    figure(found.and_then(|found| found.mean))
}

pub(super) fn bare_percentile(found: Option<&Across>) -> String {
    let uncertain = found.is_some_and(|found| found.mean.is_some() && !found.certified);
    format!("{}{}", if uncertain { "~" } else { "" }, bare(found))
}

pub(super) fn figure_words(found: &Figure) -> String {
    doubted(Some(found.value), found.interval)
}

/// A value whose interval is lopsided: `0.065 (0.05 to 0.08)`.
pub(super) fn ranged(found: &Figure) -> String {
    let digits = |value: f64| {
        // A coefficient of contention may be far below what a page's decimals show.
        if value != 0.0 && value.abs() < 0.01 {
            format!("{value:.1e}")
        } else {
            figure(Some(value))
        }
    };
    found.interval.map_or_else(
        || digits(found.value),
        |range| {
            format!("{} ({} to {})", digits(found.value), digits(range.low), digits(range.high))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: f64, half: f64) -> String {
        doubted(Some(value), Interval::new(value - half, value + half))
    }

    #[test]
    fn the_half_width_has_the_decimals_of_its_value() {
        assert_eq!(shown(387.1, 4.2), "387.1 ±4.2");
        assert_eq!(shown(42.0, 0.314), "42.00 ±0.31");
        assert_eq!(shown(12_345.6, 78.9), "12,346 ±79");
        assert_eq!(shown(1_234.0, 0.25), "1,234 ±0.250");
        assert_eq!(shown(2_500.0, 1_250.0), "2,500 ±1,250");
        assert_eq!(shown(5.0, 0.0), "5.00 ±0.00");
        assert_eq!(shown(821.0, 1e-13), "821.0 ±0.0");
        assert_eq!(doubted(Some(5.0), None), "5.00");
        assert_eq!(doubted(None, None), "–");
    }

    #[test]
    fn a_lopsided_interval_is_told_by_its_ends_and_no_time_is_negative() {
        let between = |value, low, high| doubted(Some(value), Interval::new(low, high));
        assert_eq!(between(2_614.0, 310.0, 8_112.0), "2,614 (310.0–8,112)");
        assert_eq!(between(100.0, 90.0, 111.0), "100.0 ±10.5");
        assert_eq!(between(100.0, 90.0, 113.0), "100.0 (90.00–113.0)");
        assert_eq!(between(0.35, 0.0, 0.765), "0.350 (0–0.765)");
        assert_eq!(between(0.0, 0.0, 4.1), "0 (0–4.10)");
        assert_eq!(shown(5.0, 6.0), "5.00 (-1.00–11.00)");
    }

    #[test]
    fn small_coefficients_keep_their_digits() {
        let kappa = Figure { value: 0.001_16, interval: Interval::new(0.0, 0.002) };
        assert_eq!(ranged(&kappa), "1.2e-3 (0 to 2.0e-3)");
        assert_eq!(ranged(&Figure { value: 0.25, interval: None }), "0.250");
    }

    #[test]
    fn levels_are_as_short_as_they_can_be() {
        assert_eq!(level_words(Level::Rate(12.345_678)), "12.346 requests/s");
        assert_eq!(level_cell(Level::Rate(3.0)), "3");
        assert_eq!(level_cell(Level::Unlimited), "unlimited");
    }
}
