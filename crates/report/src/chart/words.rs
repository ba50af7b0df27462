//! Numbers and their doubt, as the tips of marks and the cells of tables say them.

use super::plot::Measure;
use super::ticks::measured;
use crate::number;

/// Three or four digits, whatever the size.
pub(super) fn value(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        number::NOTHING.to_owned()
    } else if size == 0.0 || (1e-3..1e9).contains(&size) {
        let text = number::figure(Some(value));
        // 8.00 in flight is eight.
        text.strip_suffix(".00").map_or(text.clone(), str::to_owned)
    } else {
        measured(value)
    }
}

pub(super) fn with_unit(known: f64, measure: &Measure) -> String {
    if measure.unit.is_empty() {
        value(known)
    } else {
        format!("{} {}", value(known), measure.unit)
    }
}

/// From where to where.
pub(super) fn interval((low, high): (f64, f64)) -> String {
    format!("{} to {}", value(low), value(high))
}

/// What is known, one after the other.
pub(super) fn sentence(parts: &[String]) -> String {
    let parts: Vec<&str> =
        parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    parts.join(" · ")
}

/// Such as ` (95 %: 12.1 to 13.4)`, or nothing.
pub(super) fn doubt(known: Option<(f64, f64)>) -> String {
    known.map(|known| format!(" (95 %: {})", interval(known))).unwrap_or_default()
}

/// Such as `p99.9`, and `max` for all of it.
pub(super) fn percentile(share: f64) -> String {
    if 1.0 <= share {
        return "max".to_owned();
    }
    let text = format!("{:.3}", share * 100.0);
    format!("p{}", text.trim_end_matches('0').trim_end_matches('.'))
}

pub(super) fn seconds(moment: f64) -> String {
    format!("{} s", value(moment))
}
