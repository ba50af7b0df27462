//! How numbers are written in every message and on every page: their digits, their thousands, their
//! per cent, and times. The report crate adds intervals and units.

use std::time::Duration;

/// Shown where there is no value.
pub const NOTHING: &str = "–";

/// Sizes that are written as digits; others are written as a power of ten.
pub const PLAIN_LEAST: f64 = 1e-4;
const PLAIN_MOST: f64 = 1e9;

/// A measured value with three or four significant digits, and two below 0.1; thousands are
/// separated: 0.012, 0.123, 12.34, 1,234.
pub fn number(value: impl Into<Option<f64>>) -> String {
    let Some(value) = value.into().filter(|value| value.is_finite()) else {
        return NOTHING.to_owned();
    };
    let size = value.abs();
    match size {
        0.0 => "0".to_owned(),
        _ if !(PLAIN_LEAST..PLAIN_MOST).contains(&size) => power_of_ten(value),
        // Three or four significant digits, and two of a value below 0.1. A value that is rounded up to the
        // next power of ten has the decimals of that.
        _ => {
            let limits = [999.95, 99.995, 0.9995, 0.009_95, 0.000_995, 0.0];
            decimals(value, limits.iter().position(|limit| *limit <= size).unwrap_or(0))
        }
    }
}

/// [`number`] without a fraction of zeros: 8 requests in flight, not 8.00.
pub fn compact(value: impl Into<Option<f64>>) -> String {
    let text = number(value);
    match text.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|digit| digit == b'0') => whole.to_owned(),
        _ => text,
    }
}

/// A value that a user set, such as a rate: at most three decimals, and no zeros at its end.
pub fn setting(value: f64) -> String {
    let text = decimals(value, 3);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A value without decimals.
pub fn whole(value: impl Into<Option<f64>>) -> String {
    value.into().map_or_else(|| NOTHING.to_owned(), |value| decimals(value, 0))
}

/// A value with the given number of decimals, thousands separated.
pub fn decimals(value: f64, decimals: usize) -> String {
    let text = fixed(value, decimals);
    match text.split_once('.') {
        Some((whole, fraction)) => format!("{}.{fraction}", separated(whole)),
        None => separated(&text),
    }
}

/// Such as `2.5×10⁹`.
pub fn power_of_ten(value: f64) -> String {
    let text = format!("{value:.1e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits.strip_suffix(".0").unwrap_or(digits);
    let raised = power.chars().map(|character| match character.to_digit(10) {
        Some(digit) => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit as usize % 10],
        None => '⁻',
    });
    let raised: String = raised.collect();
    if digits == "1" { format!("10{raised}") } else { format!("{digits}×10{raised}") }
}

/// A number for programs: so many decimals, and no separators.
pub fn fixed(value: f64, decimals: usize) -> String {
    format!("{value:.decimals$}")
}

pub fn seconds(seconds: f64) -> String {
    format!("{} s", compact(seconds))
}

/// A duration in the units that people read it in: `250 ms`, `1.5 s`, `2 m 05 s`, `1 h 30 m`.
pub fn duration(time: Duration) -> String {
    let whole = time.as_secs();
    match (whole / 3_600, whole / 60 % 60, whole % 60) {
        (0, 0, 0) if !time.is_zero() => format!("{} ms", setting(time.as_secs_f64() * 1e3)),
        (0, 0, _) => format!("{} s", setting(time.as_secs_f64())),
        (0, minutes, 0) => format!("{minutes} m"),
        (0, minutes, seconds) => format!("{minutes} m {seconds:02} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes:02} m"),
    }
}

pub fn count(value: u64) -> String {
    separated(&value.to_string())
}

/// `30 requests`, `1 request`.
pub fn counted(number: u64, singular: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {singular}{plural}", count(number))
}

/// A share of one in per cent. Only 1 is 100 %, and only 0 is 0 %.
pub fn percent(share: impl Into<Option<f64>>) -> String {
    let Some(share) = share.into().filter(|share| share.is_finite() && 0.0 <= *share) else {
        return NOTHING.to_owned();
    };
    if 0.0 < share && share < 0.001 {
        return "< 0.1 %".to_owned();
    }
    let text = decimals(share * 100.0, 1);
    if share < 1.0 && text == "100.0" {
        return "> 99.9 %".to_owned();
    }
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

/// A relative change in per cent without its sign of per cent: `+4.2`, `-120`, `0.0`.
pub fn signed_percent(share: f64) -> String {
    let parts = share * 100.0;
    let digits = usize::from(parts.abs() < 100.0);
    let text = format!("{parts:+.digits$}");
    // A change that is rounded away has no direction.
    let is_zero = text.chars().all(|letter| matches!(letter, '+' | '-' | '0' | '.'));
    if is_zero { "0.0".to_owned() } else { text }
}

fn separated(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    text.push_str(sign);
    for (position, digit) in digits.chars().enumerate() {
        if 0 < position && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
