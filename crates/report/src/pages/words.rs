//! Words and numbers as the pages write them.

use inferometer_analysis::Interval;
use inferometer_analysis::set::Across;
use inferometer_model::campaign::Level;

use crate::number::{count, figure};

/// A day as people write it, of a time in RFC 3339; anything else stands as it is.
pub(super) fn day(time: &str) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let mut parts = time.split('T').next().unwrap_or_default().splitn(3, '-');
    let mut part = || parts.next()?.parse::<usize>().ok();
    let (year, month, day) = (part(), part(), part());
    let month = month.and_then(|month| MONTHS.get(month.checked_sub(1)?));
    match (year, month, day) {
        (Some(year), Some(month), Some(day)) => format!("{month} {day}, {year}"),
        _ => time.to_owned(),
    }
}

/// In the name of a row: `c=4`.
pub(super) fn level_name(level: Level) -> String {
    match level {
        Level::AsAsked => "as asked".to_owned(),
        Level::Rate(per_s) => format!("{} req/s", trimmed(per_s)),
        Level::Unlimited => "unlimited rate".to_owned(),
        Level::Concurrency(requests) => format!("c={requests}"),
    }
}

/// In a column whose head says what levels are.
pub(super) fn level_cell(level: Level) -> String {
    match level {
        Level::AsAsked => "as asked".to_owned(),
        Level::Rate(per_s) => trimmed(per_s),
        Level::Unlimited => "unlimited".to_owned(),
        Level::Concurrency(requests) => requests.to_string(),
    }
}

/// Without zeroes at its end.
pub(super) fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

pub(super) fn range(interval: Interval) -> String {
    format!("{} to {}", figure(Some(interval.low)), figure(Some(interval.high)))
}

/// `30 requests`, `1 request`.
pub(super) fn counted(number: u64, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{} {one}s", count(number)) }
}

/// How far the value can be relied on, in words; empty where nothing is known.
pub(super) fn doubt(across: &Across) -> String {
    match (across.interval, across.within) {
        (Some(between), _) => {
            format!("95 % {} between {} runs", range(between), across.n)
        }
        (None, Some(within)) => format!("95 % {} within the run", range(within)),
        (None, None) if across.mean.is_some() => {
            "no interval: too few values to give one".to_owned()
        }
        (None, None) => String::new(),
    }
}

/// One after the other as in a sentence: `a, b and c`.
pub(super) fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_written_out_and_nothing_is_made_up() {
        assert_eq!(day("2025-12-03T15:30:09Z"), "December 3, 2025");
        assert_eq!(day("2025-13-03T15:30:09Z"), "2025-13-03T15:30:09Z");
        assert_eq!(day("soon"), "soon");
    }
}
