//! When a result was measured: tools write the moment in different ways, and as texts they have no
//! order.

use std::fmt;

use super::Sheet;

const DAY_S: i64 = 86_400;
/// The end of the year 9999: later numbers are no seconds.
const EPOCH_S_MAX: i64 = 253_402_300_799;

/// A moment to the second. Who writes no zone is taken at his word as if it were UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    epoch_s: i64,
}

impl Sheet {
    /// `None` where its source does not say, or not in a form that is known.
    pub fn started_at(&self) -> Option<Moment> {
        Moment::read(self.started.as_deref()?.trim())
    }
}

impl Moment {
    /// RFC 3339, vLLM's `20250424-225517`, or seconds since 1970.
    fn read(text: &str) -> Option<Self> {
        let epoch_s = compact(text).or_else(|| dashed(text)).or_else(|| seconds(text))?;
        (0..=EPOCH_S_MAX).contains(&epoch_s).then_some(Self { epoch_s })
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date_of(self.epoch_s.div_euclid(DAY_S));
        let minutes = self.epoch_s.rem_euclid(DAY_S) / 60;
        write!(f, "{year:04}-{month:02}-{day:02} {:02}:{:02}", minutes / 60, minutes % 60)
    }
}

fn compact(text: &str) -> Option<i64> {
    let (date, time) = text.split_once('-')?;
    if date.len() != 8 || time.len() != 6 {
        return None;
    }
    let of_date = [digits(date, 0, 4)?, digits(date, 4, 6)?, digits(date, 6, 8)?];
    at(of_date, [digits(time, 0, 2)?, digits(time, 2, 4)?, digits(time, 4, 6)?])
}

fn dashed(text: &str) -> Option<i64> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let mark = |place: usize, mark: u8| rest.as_bytes().get(place) == Some(&mark);
    let is_dashed = date.len() == 10 && date.as_bytes()[4] == b'-' && date.as_bytes()[7] == b'-';
    if !is_dashed || !mark(2, b':') || !mark(5, b':') {
        return None;
    }
    let of_date = [digits(date, 0, 4)?, digits(date, 5, 7)?, digits(date, 8, 10)?];
    let local = at(of_date, [digits(rest, 0, 2)?, digits(rest, 3, 5)?, digits(rest, 6, 8)?])?;
    let zone = rest.get(8..)?;
    let zone = match zone.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => zone,
    };
    Some(local - offset_s(zone)?)
}

fn seconds(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    digits(fraction, 0, fraction.len())?;
    digits(whole, 0, whole.len())
}

fn offset_s(zone: &str) -> Option<i64> {
    let sign = match zone.as_bytes().first() {
        None | Some(b'Z' | b'z') if zone.len() <= 1 => return Some(0),
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return None,
    };
    let minutes = if zone.len() == 6 { digits(zone, 4, 6)? } else { digits(zone, 3, 5)? };
    Some(sign * (digits(zone, 1, 3)? * 3600 + minutes * 60))
}

/// A number of nothing but digits.
fn digits(text: &str, from: usize, to: usize) -> Option<i64> {
    let part = text.get(from..to)?;
    let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| part.parse().ok()).flatten()
}

fn at([year, month, day]: [i64; 3], [hour, minute, second]: [i64; 3]) -> Option<i64> {
    // A leap second is the last of its minute.
    let is_time = hour < 24 && minute < 60 && second <= 60;
    let days = days_to(year, month, day);
    let is_date = (1..=12).contains(&month) && date_of(days) == (year, month, day);
    (is_time && is_date).then(|| days * DAY_S + hour * 3600 + minute * 60 + second.min(59))
}

/// Days from 1970-01-01, in years that begin with March so that the leap day is their last.
fn days_to(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + day_of_year - 719_468
}

fn date_of(days: i64) -> (i64, i64, i64) {
    let mut year = 1970 + days.div_euclid(366);
    while days_to(year + 1, 1, 1) <= days {
        year += 1;
    }
    let month = (2..=12).take_while(|month| days_to(year, *month, 1) <= days).last().unwrap_or(1);
    (year, month, days - days_to(year, month, 1) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(started: &str) -> Option<String> {
        let sheet = Sheet { started: Some(started.to_owned()), ..Sheet::default() };
        sheet.started_at().map(|moment| moment.to_string())
    }

    #[test]
    fn every_tools_way_of_writing_a_moment_is_read() {
        for (written, expected) in [
            ("20250424-225517", "2025-04-24 22:55"),
            ("2026-11-15T23:17:56Z", "2026-11-15 23:17"),
            ("2026-11-15T23:17:56.5+02:30", "2026-11-15 20:47"),
            ("2026-11-15T23:17:56-0100", "2026-11-16 00:17"),
            ("2024-02-29 00:00:00", "2024-02-29 00:00"),
            ("1794781137.9353166", "2026-11-15 22:18"),
            ("0", "1970-01-01 00:00"),
            ("99991231-235960", "9999-12-31 23:59"),
        ] {
            assert_eq!(shown(written).as_deref(), Some(expected), "{written}");
        }
    }

    #[test]
    fn what_is_no_moment_is_none() {
        for written in [
            "",
            "yesterday",
            "20250230-000000",
            "20250424-250000",
            "20251324-000000",
            "2025-04-24",
            "2025-04-24T10:00:00 CET",
            "1794781137935316600",
            "-5",
            "1.x",
            "ééééé-ééé",
            "2025-04-2éT10:00:00Z",
        ] {
            assert_eq!(shown(written), None, "{written}");
        }
        assert_eq!(Sheet::default().started_at(), None);
    }

    #[test]
    fn moments_have_an_order_whoever_wrote_them() {
        let moment = |text| Moment::read(text).unwrap();
        assert!(moment("20250424-225517") < moment("1794781137.9"));
        assert!(moment("1794781137.9") < moment("2026-11-15T23:17:56Z"));
    }

    #[test]
    fn every_day_is_itself_again() {
        let days = EPOCH_S_MAX / DAY_S;
        for day in (0..=days).step_by(97) {
            let (year, month, date) = date_of(day);
            assert_eq!(days_to(year, month, date), day);
        }
    }
}
