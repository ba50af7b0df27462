//! The one place where values become text: numbers and shares (by [`inferometer_model::fmt`], which
//! messages of every crate use), times, intervals, units and levels.
//!
//! Every page writes a value through these functions, so that the same value has the same digits
//! wherever it is shown. A missing value is a dash.

pub mod load;

use std::fmt::{Display, Write as _};

use inferometer_analysis::set::{AcrossRuns, Figure};
use inferometer_analysis::{Interval, Unit};
pub use inferometer_model::fmt::*;
use inferometer_model::study::Level;

/// A quantile's name: `p99.9`, and `max` for 1.
pub fn percentile_name(share: f64) -> String {
    if 1.0 <= share { "max".to_owned() } else { format!("p{}", setting(share * 100.0)) }
}

/// A time in the unit that people read it in: milliseconds, and from ten seconds on seconds.
pub fn latency_scale(ms: f64) -> (f64, &'static str) {
    const SECONDS_FROM: f64 = 10_000.0;
    if SECONDS_FROM <= ms.abs() { (ms / 1e3, "s") } else { (ms, "ms") }
}

/// A time with its unit: `95.19 ms`, `12.34 s`.
pub fn latency(ms: impl Into<Option<f64>>) -> String {
    ms.into().map_or_else(
        || NOTHING.to_owned(),
        |ms| {
            let (value, unit) = latency_scale(ms);
            format!("{} {unit}", number(value))
        },
    )
}

/// A value without the name of its unit; a share has its sign of per cent.
pub fn in_unit(value: impl Into<Option<f64>>, unit: Unit) -> String {
    if unit == Unit::Share { percent(value) } else { number(value) }
}

/// A value with the name of its unit.
pub fn with_unit(value: impl Into<Option<f64>>, unit: Unit) -> String {
    match value.into() {
        None => NOTHING.to_owned(),
        share if unit == Unit::Share => percent(share),
        known => format!("{} {}", number(known), unit.name()),
    }
}

/// The name of a unit beside a value that [`in_unit`] wrote.
pub const fn unit_name(unit: Unit) -> &'static str {
    if matches!(unit, Unit::Share) { "" } else { unit.name() }
}

/// Joules, and from ten thousand on kilojoules.
pub fn joules(energy: f64) -> String {
    const KILO_FROM: f64 = 10_000.0;
    if energy < KILO_FROM {
        format!("{} J", number(energy))
    } else {
        format!("{} kJ", number(energy / 1e3))
    }
}

pub fn gibibytes(bytes: f64) -> f64 {
    bytes / f64::from(1_u32 << 30)
}

/// Memory as people buy it: `80.0 GiB`.
pub fn memory(bytes: u64) -> String {
    format!("{} GiB", decimals(gibibytes(bytes as f64), 1))
}

pub fn megabytes_per_s(bytes: f64) -> String {
    format!("{} MB/s", number(bytes / 1e6))
}

/// The ends of an interval: `12.1 to 13.4`.
pub fn interval(interval: Interval) -> String {
    between(" to ", number(interval.low), &number(interval.high))
}

/// The ends of an interval in a narrow column: `12.1–13.4`.
pub fn range(interval: Interval) -> String {
    between("–", number(interval.low), &number(interval.high))
}

/// The ends of an interval of values in a unit; shares have their sign of per cent.
pub fn interval_in(interval: Interval, unit: Unit) -> String {
    between(" to ", in_unit(interval.low, unit), &in_unit(interval.high, unit))
}

/// Two ends; where they look alike, how close they are: no interval has the width zero.
pub(crate) fn between(joint: &str, low: String, high: &str) -> String {
    if low == high { format!("{low} {}", below_last_digit(&low)) } else { low + joint + high }
}

/// `±<0.01`: a width below the last decimal of a number that is shown.
fn below_last_digit(shown: &str) -> String {
    let fraction = shown.split_once('.').map_or("", |(_, fraction)| fraction);
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    format!("±<{}", decimals(libm::pow(0.1, digits as f64), digits))
}

/// The ends of an interval of a chart.
pub fn ends((low, high): (f64, f64)) -> String {
    between(" to ", number(low), &number(high))
}

/// ` (95 %: 12.1 to 13.4)`, or nothing.
pub fn confidence(interval: Option<(f64, f64)>) -> String {
    interval.map(|interval| format!(" (95 %: {})", ends(interval))).unwrap_or_default()
}

/// Halves of an interval that differ by more than this share are shown by the interval's ends.
const ASYMMETRIC_FROM: f64 = 0.2;

/// `387.1 ±4.2`: half the width of the interval, with the decimals of the value. An interval that is
/// asymmetric or reaches zero is shown by its ends: `2,614 (310 to 8,112)`.
pub fn with_interval(value: Option<f64>, around: Option<Interval>) -> String {
    let (Some(value), Some(around)) = (value, around) else { return number(value) };
    let shown = number(value);
    let (below, above) = (value - around.low, around.high - value);
    let differs = ASYMMETRIC_FROM * below.abs().max(above.abs()) < (above - below).abs();
    let ends_differ = [around.low, around.high].iter().any(|end| number(*end) != shown);
    if ends_differ && (around.low <= 0.0 || differs) {
        return format!("{shown} ({})", interval(around));
    }
    let digits = shown.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let half = around.half_width();
    let same = decimals(half, digits);
    let is_zero = same.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    // A width that vanishes with the decimals of its value is below the last of them.
    let around = if is_zero { below_last_digit(&shown) } else { format!("±{same}") };
    format!("{shown} {around}")
}

pub fn figure(found: &Figure) -> String {
    with_interval(Some(found.value), found.interval)
}

/// The mean over runs with its interval.
pub fn across(across: Option<&AcrossRuns>) -> String {
    across.map_or_else(
        || NOTHING.to_owned(),
        |found| with_interval(found.mean, found.confidence_interval()),
    )
}

/// The confidence interval of a mean in words; empty where there is no mean.
pub fn uncertainty(across: &AcrossRuns) -> String {
    match (across.interval, across.within) {
        (Some(between), _) => format!("95 % {} between {} runs", interval(between), across.n),
        (None, Some(within)) => format!("95 % {} within the run", interval(within)),
        (None, None) if across.mean.is_some() => {
            "no interval: too few values to give one".to_owned()
        }
        (None, None) => String::new(),
    }
}

/// A load level in a column whose head names the kind of levels: `4`.
pub fn level(level: Level) -> String {
    match level {
        Level::AsAsked => "as specified".to_owned(),
        Level::Rate(per_s) => setting(per_s),
        Level::Unlimited => "unlimited".to_owned(),
        Level::Concurrency(requests) => count(u64::from(requests.get())),
    }
}

/// A load level as the name of a row: `c=4`, `2 req/s`.
pub fn level_name(level: Level) -> String {
    level.to_string()
}

/// Texts of an iterator, one behind the other.
pub trait Join: Iterator<Item: Display> + Sized {
    fn join(self, separator: &str) -> String {
        self.try_join(separator).unwrap_or_default()
    }

    /// `None` without any text.
    fn try_join(mut self, separator: &str) -> Option<String> {
        let first = self.next()?.to_string();
        Some(self.fold(first, |mut text, next| {
            text.push_str(separator);
            let _ = write!(text, "{next}");
            text
        }))
    }
}

impl<I: Iterator<Item: Display>> Join for I {}

/// Parts of a tooltip or a name, without the empty ones: `c=4 · 12 ms`.
pub fn joined(parts: &[&str]) -> String {
    parts.iter().filter(|part| !part.is_empty()).join(" · ")
}

/// Items of a sentence: `a, b and c`.
pub fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

/// The day of a time in RFC 3339 (`December 3, 2025`); any other text is returned as it is.
pub fn day(time: &str) -> String {
    const MONTHS: &str = "January February March April May June July August September October \
                          November December";
    let mut parts = time.split('T').next().unwrap_or_default().splitn(3, '-');
    let mut part = || parts.next()?.parse::<usize>().ok();
    let (year, month, day) = (part(), part(), part());
    let month = month.and_then(|month| MONTHS.split(' ').nth(month.checked_sub(1)?));
    match (year, month, day) {
        (Some(year), Some(month), Some(day)) => format!("{month} {day}, {year}"),
        _ => time.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.000_012_34, "1.2×10⁻⁵"),
            (0.001_16, "0.0012"),
            (0.012_34, "0.012"),
            (0.099_99, "0.100"),
            (1.234, "1.23"),
            (99.999, "100.0"),
            (123.45, "123.5"),
            (999.99, "1,000"),
            (1_234.5, "1,234"),
            (12_345_678.0, "12,345,678"),
            (-1_234.0, "-1,234"),
            (2.5e9, "2.5×10⁹"),
        ] {
            assert_eq!(number(value), text, "{value}");
        }
        assert_eq!([number(None), number(f64::NAN)], ["–", "–"]);
        assert_eq!([compact(8.0), compact(8.25), compact(None)], ["8", "8.25", "–"]);
        assert_eq!([setting(12.345_678), setting(1_500.0)], ["12.346", "1,500"]);
    }

    #[test]
    fn long_times_are_in_seconds() {
        assert_eq!(latency(9_999.0), "9,999 ms");
        assert_eq!(latency(12_340.0), "12.34 s");
        assert_eq!(latency(None), "–");
    }

    #[test]
    fn counts_have_no_decimals() {
        for (value, text) in [(8.0, "8"), (100.0, "100"), (2_000.0, "2,000")] {
            assert_eq!(whole(value), text);
        }
        assert_eq!(whole(None), "–");
        assert_eq!([counted(1, "run"), counted(1_500, "run")], ["1 run", "1,500 runs"]);
    }

    #[test]
    fn shares_are_per_cent() {
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.123), "12.3 %");
        assert_eq!(percent(0.000_1), "< 0.1 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.9996), "> 99.9 %");
        assert_eq!(percent(0.999), "99.9 %");
        assert_eq!(percent(1.25), "125 %");
        for none in [Some(-0.2), Some(f64::NAN), Some(f64::INFINITY), None] {
            assert_eq!(percent(none), "–", "{none:?}");
        }
        assert_eq!(with_unit(0.05, Unit::Share), "5 %");
        assert_eq!(with_unit(95.19, Unit::Milliseconds), "95.19 ms");
        assert_eq!(with_unit(None, Unit::Milliseconds), "–");
        assert_eq!([0.042, -1.2, 0.000_1].map(signed_percent), ["+4.2", "-120", "0.0"]);
        assert_eq!([0.5, 0.999, 1.0].map(percentile_name), ["p50", "p99.9", "max"]);
    }

    fn shown(value: f64, half: f64) -> String {
        with_interval(Some(value), Interval::new(value - half, value + half))
    }

    #[test]
    fn the_half_width_has_the_decimals_of_its_value() {
        assert_eq!(shown(387.1, 4.2), "387.1 ±4.2");
        assert_eq!(shown(42.0, 0.314), "42.00 ±0.31");
        assert_eq!(shown(12_345.6, 78.9), "12,346 ±79");
        assert_eq!(shown(1_234.0, 0.25), "1,234 ±<1");
        assert_eq!(shown(123.4, 0.01), "123.4 ±<0.1");
        assert_eq!(shown(2_500.0, 1_250.0), "2,500 ±1,250");
        assert_eq!(shown(5.0, 0.0), "5.00 ±<0.01");
        assert_eq!(shown(821.0, 1e-13), "821.0 ±<0.1");
        assert_eq!(with_interval(Some(5.0), None), "5.00");
        assert_eq!(with_interval(None, None), "–");
    }

    #[test]
    fn no_interval_looks_as_if_it_had_no_width() {
        let same = Interval::new(8.12, 8.121).unwrap();
        assert_eq!([interval(same), range(same)], ["8.12 ±<0.01", "8.12 ±<0.01"]);
        assert_eq!(interval_in(Interval::new(0.123, 0.123).unwrap(), Unit::Share), "12.3 % ±<0.1");
        assert_eq!(ends((1_234.0, 1_234.0)), "1,234 ±<1");
        let wider = Interval::new(8.12, 8.13).unwrap();
        assert_eq!([interval(wider), range(wider)], ["8.12 to 8.13", "8.12–8.13"]);
    }

    #[test]
    fn an_asymmetric_interval_is_shown_by_its_ends_and_no_time_is_negative() {
        let between = |value, low, high| with_interval(Some(value), Interval::new(low, high));
        assert_eq!(between(2_614.0, 310.0, 8_112.0), "2,614 (310.0 to 8,112)");
        assert_eq!(between(3.07, 3.069, 3.0701), "3.07 ±<0.01");
        assert_eq!(between(100.0, 90.0, 111.0), "100.0 ±10.5");
        assert_eq!(between(100.0, 90.0, 113.0), "100.0 (90.00 to 113.0)");
        assert_eq!(between(0.35, 0.0, 0.765), "0.350 (0 to 0.765)");
        assert_eq!(between(0.0, 0.0, 4.1), "0 (0 to 4.10)");
        assert_eq!(shown(5.0, 6.0), "5.00 (-1.00 to 11.00)");
    }

    #[test]
    fn levels_are_as_short_as_they_can_be() {
        assert_eq!(level_name(Level::Rate(12.345_678)), "12.346 req/s");
        assert_eq!(level(Level::Rate(3.0)), "3");
        assert_eq!(level(Level::Unlimited), "unlimited");
    }

    #[test]
    fn days_are_written_out_and_other_texts_kept() {
        assert_eq!(day("2025-12-03T15:30:09Z"), "December 3, 2025");
        assert_eq!(day("2025-13-03T15:30:09Z"), "2025-13-03T15:30:09Z");
        assert_eq!(day("soon"), "soon");
    }
}
