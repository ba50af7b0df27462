//! Moments as they are written down: decimals and dates, to the whole nanosecond. A float would
//! move them.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// What one of the unit is: ten to this many nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unit {
    Milliseconds = 6,
    Seconds = 9,
}

/// A decimal, perhaps with an exponent, in nanoseconds; what is below one is cut off.
pub(super) fn nanos(text: &str, unit: Unit) -> Option<i64> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, mantissa),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let shift = exponent.checked_add(unit as i32)?;
    let places = i32::try_from(fraction.len()).ok()?.checked_neg()?.checked_add(shift)?;
    let number: i128 = format!("{whole}{fraction}").parse().ok()?;
    let power = 10_i128.checked_pow(places.unsigned_abs());
    let nanos = match power {
        Some(power) if 0 <= places => number.checked_mul(power)?,
        Some(power) => number / power,
        None if places < 0 || number == 0 => 0,
        None => return None,
    };
    i64::try_from(if negative { -nanos } else { nanos }).ok()
}

/// A date with a time, in nanoseconds since 1970; without a zone it is UTC's.
pub(super) fn date_nanos(text: &str) -> Option<i64> {
    let with_zone = text.parse::<Timestamp>();
    let moment = with_zone.or_else(|_| {
        let date: DateTime = text.parse()?;
        Ok::<_, jiff::Error>(date.to_zoned(TimeZone::UTC)?.timestamp())
    });
    i64::try_from(moment.ok()?.as_nanosecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        let seconds = |text| nanos(text, Unit::Seconds);
        assert_eq!(seconds("0.1"), Some(100_000_000));
        assert_eq!(seconds("9007199254.740993"), Some(9_007_199_254_740_993_000));
        assert_eq!(seconds("61.114"), Some(61_114_000_000));
        assert_eq!(seconds("1e-05"), Some(10_000));
        assert_eq!(seconds("1.5E3"), Some(1_500_000_000_000));
        assert_eq!(seconds("-2"), Some(-2_000_000_000));
        assert_eq!(seconds("0.0000000019"), Some(1));
        assert_eq!(seconds("1e-400"), Some(0));
        assert_eq!(nanos("3000", Unit::Milliseconds), Some(3_000_000_000));
        assert_eq!(nanos("0.5", Unit::Milliseconds), Some(500_000));
        for wrong in ["", ".", ".5", "1.2.3", "1e", "nan", "1e400", "1,5", "99999999999999999999"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn dates_are_exact_with_and_without_a_zone() {
        // 2023-11-16 is 19,677 days after 1970-01-01; 18:17:03 is 65,823 seconds into it.
        let day_and_time = (19_677 * 86_400 + 65_823) * 1_000_000_000;
        assert_eq!(date_nanos("2023-11-16 18:17:03.9799600"), Some(day_and_time + 979_960_000));
        assert_eq!(date_nanos("2023-11-16T18:17:03Z"), Some(day_and_time));
        assert_eq!(date_nanos("2023-11-16 18:17:03.5+00:00"), Some(day_and_time + 500_000_000));
        assert_eq!(date_nanos("2023-11-16 19:17:03+01:00"), Some(day_and_time));
        for wrong in ["", "yesterday", "2023-13-01 00:00:00", "18:17:03"] {
            assert_eq!(date_nanos(wrong), None, "{wrong}");
        }
    }
}
