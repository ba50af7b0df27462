//! What a written value can be, whichever reader found it, and how much of a record is kept.

use inferometer_analysis::sheet::Sheet;

/// Above this a float no longer holds every whole number.
const COUNT_MAX: f64 = 9_007_199_254_740_992.0;
/// Of the list of what could not be mapped, of what a result says of itself, and of a latency's
/// percentiles.
pub(super) const LISTED_MAX: usize = 256;
const SHOWN_CHARS: usize = 60;

/// A number that is finite and not negative.
pub(super) fn figure(number: f64) -> Result<f64, String> {
    if number.is_finite() && number >= 0.0 {
        Ok(number)
    } else {
        Err(format!("is {number}, which no figure can be"))
    }
}

pub(super) fn count(number: f64) -> Result<u64, String> {
    let number = figure(number)?;
    if number.fract() != 0.0 || number > COUNT_MAX {
        return Err(format!("is {number}, not a count"));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole, not negative and below 2^53 by the checks above"
    )]
    Ok(number as u64)
}

pub(super) fn no_number(text: &str) -> String {
    format!("is the text “{}”, not a number", shown(text))
}

/// At most a line's worth of a foreign text, without control characters.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS).collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

/// Adds to what could not be mapped, up to a bound.
pub(super) fn note(sheet: &mut Sheet, what: String) {
    match sheet.unmapped.len() {
        len if len < LISTED_MAX => sheet.unmapped.push(what),
        LISTED_MAX => sheet.unmapped.push("and more, not listed".to_owned()),
        _ => {}
    }
}
