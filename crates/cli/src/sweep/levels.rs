//! Levels as people type them: `1,3,5,inf`, `500..1000:50`, `1..256*2`.

use std::num::NonZeroU32;

use inferometer_model::campaign::Level;
use schemars::{Schema, json_schema};

use crate::arguments::Grammar;

/// A limit against mistakes.
pub(super) const LEVELS_MAX: usize = 200;

/// Requests per second, as typed; infinite is everything at once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RateLevels(pub(crate) Vec<f64>);

/// Requests in flight, as typed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConcurrencyLevels(pub(crate) Vec<f64>);

/// Levels from the lowest to the highest, each once; and whether they were typed so.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rising {
    pub(crate) levels: Vec<Level>,
    pub(crate) as_typed: bool,
}

impl RateLevels {
    pub(super) fn rising(&self) -> Rising {
        rising(
            &self.0,
            |number| {
                if number.is_infinite() { Level::Unlimited } else { Level::Rate(number) }
            },
        )
    }
}

impl ConcurrencyLevels {
    pub(crate) fn rising(&self) -> Rising {
        rising(&self.0, |number| Level::Concurrency(whole(number).unwrap_or(NonZeroU32::MIN)))
    }
}

fn rising(typed: &[f64], level: impl Fn(f64) -> Level) -> Rising {
    let mut numbers = typed.to_vec();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    let as_typed = numbers == typed;
    Rising { levels: numbers.into_iter().map(level).collect(), as_typed }
}

/// A level of a closed loop.
pub(super) fn whole(number: f64) -> Option<NonZeroU32> {
    let is_whole = number.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&number);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole and within the range, as was just checked"
    )]
    let whole = is_whole.then_some(number as u32);
    whole.and_then(NonZeroU32::new)
}

impl Grammar for RateLevels {
    const NAME: &'static str = "Rates";

    fn read(text: &str) -> Result<Self, String> {
        let numbers = read(text)?;
        match numbers.iter().find(|number| **number <= 0.0 || number.is_nan()) {
            Some(wrong) => Err(format!("{wrong} is not a rate; rates are above 0")),
            None => Ok(Self(numbers)),
        }
    }

    fn write(&self) -> String {
        write(&self.0)
    }

    fn schema() -> Schema {
        json_schema!({
            "type": ["number", "string", "array"],
            "items": { "type": ["number", "string"] },
            "examples": [[1, 2, "inf"], "1,3,5,7,9,11,inf", "500..1000:50", "1..64*2"],
        })
    }
}

impl Grammar for ConcurrencyLevels {
    const NAME: &'static str = "Concurrencies";

    fn read(text: &str) -> Result<Self, String> {
        let numbers = read(text)?;
        match numbers.iter().find(|number| whole(**number).is_none()) {
            Some(wrong) => Err(format!(
                "{wrong} is not a number of requests in flight; write whole numbers from 1"
            )),
            None => Ok(Self(numbers)),
        }
    }

    fn write(&self) -> String {
        write(&self.0)
    }

    fn schema() -> Schema {
        json_schema!({
            "type": ["integer", "string", "array"],
            "items": { "type": ["integer", "string"] },
            "examples": [[1, 8, 64], "1,2,4,8,16", "1..256*2", "10..100:10"],
        })
    }
}

/// Where a search begins or ends: a number above zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bound(pub(crate) f64);

impl Grammar for Bound {
    const NAME: &'static str = "Bound";

    fn read(text: &str) -> Result<Self, String> {
        let number = text.trim().parse::<f64>().ok();
        let bound = number.filter(|number| number.is_finite() && 0.0 < *number).map(Self);
        bound.ok_or_else(|| {
            format!("`{text}` is no level to search from or to; write a number above 0")
        })
    }

    fn write(&self) -> String {
        self.0.to_string()
    }

    fn schema() -> Schema {
        json_schema!({ "type": ["number", "string"], "exclusiveMinimum": 0, "examples": [2, 64] })
    }
}

fn write(numbers: &[f64]) -> String {
    numbers.iter().map(f64::to_string).collect::<Vec<_>>().join(",")
}

fn read(text: &str) -> Result<Vec<f64>, String> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        numbers.extend(part_of(part.trim())?);
        if LEVELS_MAX < numbers.len() {
            return Err(format!("these are more than {LEVELS_MAX} levels; take larger steps"));
        }
    }
    Ok(numbers)
}

fn part_of(text: &str) -> Result<Vec<f64>, String> {
    match text.split_once("..") {
        Some((from, rest)) => range(text, from, rest),
        None => match text.to_ascii_lowercase().as_str() {
            "inf" | "unlimited" => Ok(vec![f64::INFINITY]),
            _ => number(text, text).map(|number| vec![number]),
        },
    }
}

fn wanted(text: &str) -> String {
    format!(
        "`{text}` is no level; write numbers after commas, such as 1,3,5, and ranges such as \
         500..1000:50 (by steps of 50) or 1..64*2 (by a factor of 2)"
    )
}

fn number(text: &str, whole: &str) -> Result<f64, String> {
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| wanted(whole))
}

fn range(text: &str, from: &str, rest: &str) -> Result<Vec<f64>, String> {
    let (to, step, grows) = match (rest.split_once(':'), rest.split_once('*')) {
        (Some((to, step)), None) => (to, step, false),
        (None, Some((to, factor))) => (to, factor, true),
        (Some(_), Some(_)) | (None, None) => return Err(wanted(text)),
    };
    let (from, to, step) = (number(from, text)?, number(to, text)?, number(step, text)?);
    if to < from || from <= 0.0 {
        return Err(format!("`{text}` does not rise from a level above 0"));
    }
    if step <= 0.0 || grows && step <= 1.0 {
        let least = if grows { "a factor above 1" } else { "a step above 0" };
        return Err(format!("`{text}` never gets on: it needs {least}"));
    }
    let mut levels = Vec::new();
    let mut place = 0.0;
    let mut level = from;
    // The end belongs to it, also where rounding puts it a hair too far.
    while level <= to * (1.0 + 1e-9) && levels.len() <= LEVELS_MAX {
        levels.push(rounded(level));
        place += 1.0;
        level = if grows { level * step } else { from + place * step };
    }
    Ok(levels)
}

/// 0.1 + 2 × 0.1 is written 0.3.
fn rounded(level: f64) -> f64 {
    (level * 1e9).round() / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_reads(text: &str, wanted: &[f64]) {
        assert_eq!(RateLevels::read(text).unwrap().0, wanted, "{text}");
    }

    #[test]
    fn levels_are_numbers_and_ranges() {
        assert_reads("1,3, 5,inf", &[1.0, 3.0, 5.0, f64::INFINITY]);
        assert_reads("0.5", &[0.5]);
        assert_reads("500..700:50", &[500.0, 550.0, 600.0, 650.0, 700.0]);
        assert_reads("0.1..0.5:0.1", &[0.1, 0.2, 0.3, 0.4, 0.5]);
        assert_reads("1..10:4", &[1.0, 5.0, 9.0]);
        assert_reads("1..16*2,20", &[1.0, 2.0, 4.0, 8.0, 16.0, 20.0]);
        assert_reads("2..3*1.5", &[2.0, 3.0]);
    }

    #[test]
    fn what_is_no_level_is_refused() {
        let wrong = [
            "",
            "a",
            "1,,2",
            "0",
            "-1",
            "nan",
            "1..2",
            "5..1:1",
            "1..5:0",
            "1..5*1",
            "1..5*0.5",
            "0..5:1",
            "1..5:1*2",
            "1..1000:1",
            "1..inf:1",
        ];
        for text in wrong {
            assert!(RateLevels::read(text).is_err(), "{text}");
        }
        for text in ["0", "1.5", "inf", "1..2:0.5"] {
            assert!(ConcurrencyLevels::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_search_has_finite_bounds_above_zero() {
        assert_eq!(Bound::read("0.5"), Ok(Bound(0.5)));
        for text in ["inf", "nan", "0", "-1", "", "fast"] {
            assert!(Bound::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_does_not_rise_is_put_in_order() {
        let Rising { levels, as_typed } = ConcurrencyLevels::read("4,1,4").unwrap().rising();
        let level = |number| Level::Concurrency(NonZeroU32::new(number).unwrap());
        assert_eq!((levels, as_typed), (vec![level(1), level(4)], false));
        let Rising { levels, as_typed } = RateLevels::read("1,inf").unwrap().rising();
        assert_eq!((levels, as_typed), (vec![Level::Rate(1.0), Level::Unlimited], true));
    }
}
