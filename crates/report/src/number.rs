//! Numbers as people read them. Nothing is a dash.

use inferometer_analysis::Unit;

pub const NOTHING: &str = "–";

/// Three or four significant digits, thousands separated: 0.123, 12.3, 1,234.
pub fn figure(value: Option<f64>) -> String {
    let Some(value) = value else { return NOTHING.to_owned() };
    let size = value.abs();
    let decimals = if size == 0.0 || 1_000.0 <= size {
        0
    } else if 100.0 <= size {
        1
    } else if 1.0 <= size {
        2
    } else {
        3
    };
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text.as_str(), None),
    };
    let whole = separated(whole);
    fraction.map_or(whole.clone(), |fraction| format!("{whole}.{fraction}"))
}

/// A value that is a count by nature, without decimals.
pub fn whole(value: Option<f64>) -> String {
    value.map_or_else(|| NOTHING.to_owned(), |value| separated(&format!("{value:.0}")))
}

pub fn count(value: u64) -> String {
    separated(&value.to_string())
}

/// A share of one as per cent: only what is all is 100 %, and only what is nothing is 0 %.
pub fn percent(share: Option<f64>) -> String {
    // Less than nothing is no share, and neither is what is no number.
    let Some(share) = share.filter(|share| share.is_finite() && 0.0 <= *share) else {
        return NOTHING.to_owned();
    };
    if 0.0 < share && share < 0.001 {
        return "< 0.1 %".to_owned();
    }
    let text = format!("{:.1}", share * 100.0);
    if share < 1.0 && text == "100.0" {
        return "> 99.9 %".to_owned();
    }
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

/// With so many decimals and no separators, as the tables of a suite have their numbers: they are
/// read by programs too.
pub fn fixed(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| NOTHING.to_owned(), |value| format!("{value:.decimals$}"))
}

/// A time in the unit that people read it in: milliseconds, and from ten seconds on seconds.
pub fn latency(ms: f64) -> (f64, &'static str) {
    const SECONDS_FROM: f64 = 10_000.0;
    if SECONDS_FROM <= ms.abs() { (ms / 1e3, "s") } else { (ms, "ms") }
}

/// The same in a sentence.
pub fn latency_text(ms: f64) -> String {
    let (value, unit) = latency(ms);
    format!("{} {unit}", figure(Some(value)))
}

/// A value with the unit that it is in.
pub fn with_unit(value: Option<f64>, unit: Unit) -> String {
    match value {
        None => NOTHING.to_owned(),
        share if unit == Unit::Share => percent(share),
        known => format!("{} {}", figure(known), unit.name()),
    }
}

pub(crate) fn separated(digits: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_their_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.012_34, "0.012"),
            (1.234, "1.23"),
            (99.999, "100.00"),
            (123.45, "123.5"),
            (1_234.5, "1,234"),
            (12_345_678.0, "12,345,678"),
            (-1_234.0, "-1,234"),
        ] {
            assert_eq!(figure(Some(value)), text, "{value}");
        }
        assert_eq!(figure(None), "–");
    }

    #[test]
    fn long_times_are_in_seconds() {
        assert_eq!(latency_text(9_999.0), "9,999 ms");
        assert_eq!(latency_text(12_340.0), "12.34 s");
    }

    #[test]
    fn counts_have_no_decimals() {
        for (value, text) in [(8.0, "8"), (100.0, "100"), (2_000.0, "2,000")] {
            assert_eq!(whole(Some(value)), text);
        }
        assert_eq!(whole(None), "–");
        assert_eq!(fixed(Some(1_082.2), 2), "1082.20");
        assert_eq!(fixed(None, 2), "–");
    }

    #[test]
    fn shares_are_per_cent() {
        assert_eq!(percent(Some(1.0)), "100 %");
        assert_eq!(percent(Some(0.123)), "12.3 %");
        assert_eq!(percent(Some(0.000_1)), "< 0.1 %");
        assert_eq!(percent(Some(0.0)), "0 %");
        assert_eq!(percent(Some(0.9996)), "> 99.9 %");
        assert_eq!(percent(Some(0.999)), "99.9 %");
        assert_eq!(percent(Some(1.25)), "125 %");
        for none in [Some(-0.2), Some(f64::NAN), Some(f64::INFINITY), None] {
            assert_eq!(percent(none), "–", "{none:?}");
        }
        assert_eq!(with_unit(Some(0.05), Unit::Share), "5 %");
        assert_eq!(with_unit(Some(95.19), Unit::Milliseconds), "95.19 ms");
        assert_eq!(with_unit(None, Unit::Milliseconds), "–");
    }
}
