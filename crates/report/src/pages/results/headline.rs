//! The best of what is not marked.

use inferometer_analysis::Statistic;
use inferometer_analysis::sheet::{LatencyKind, Mark, Sheet};

use super::figures::{Meaning, Quantity, doubt_words};
use super::lines::{Line, load_words};
use super::table::NAME_MAX;
use crate::document::Card;
use crate::escape::terminal_line;
use crate::fmt::{latency_scale, number};

pub(super) fn headline(lines: &[Line<'_>]) -> Vec<Card> {
    let output = Quantity::Throughput("output_throughput");
    let mut cards = Vec::from_iter(best(lines, "Highest output throughput", output));
    for kind in [LatencyKind::Ttft, LatencyKind::Tpot] {
        let Some(meaning) = commonest(kind, lines) else { continue };
        let label = format!("Lowest mean {}", meaning.name());
        cards.extend(best(lines, &label, Quantity::Latency(meaning, Statistic::Mean)));
    }
    cards
}

/// Only what means the same can be the lowest of all.
fn commonest(kind: LatencyKind, lines: &[Line<'_>]) -> Option<Meaning> {
    let sheets: Vec<&Sheet> = lines.iter().flat_map(Line::sheets).collect();
    let known = |meaning: &Meaning| {
        let quantity = Quantity::Latency(*meaning, Statistic::Mean);
        sheets.iter().filter(|sheet| quantity.of(sheet).is_some()).count()
    };
    // Of equally many, the first: it counts from the schedule.
    Meaning::all(kind, sheets.iter().copied()).into_iter().rev().max_by_key(known)
}

fn best(lines: &[Line<'_>], label: &str, quantity: Quantity) -> Option<Card> {
    let levels = lines.iter().flat_map(|line| line.levels.iter().map(move |level| (line, level)));
    let is_latency = matches!(quantity, Quantity::Latency(..));
    let is_measured = lines.iter().flat_map(Line::sheets).any(|sheet| !sheet.source.simulated);
    let is_spoilt = |mark: &Mark| match mark {
        // A server that is saturated gives what it can: that spoils latencies alone.
        Mark::Saturated { .. } => is_latency,
        // A pretended server must not be the best of measured ones.
        Mark::Simulated => is_measured,
        Mark::Cut { .. } | Mark::Failures { .. } | Mark::Invalid => true,
    };
    let clean = levels
        .filter(|(_, level)| !level.sheets.iter().flat_map(|sheet| &sheet.marks).any(is_spoilt));
    let known = clean.filter_map(|(line, level)| {
        let across = level.across(quantity);
        Some((line, level, across.mean?, across))
    });
    let (line, level, value, across) = known.min_by(|one, other| {
        let order = one.2.total_cmp(&other.2);
        if is_latency { order } else { order.reverse() }
    })?;
    let (value, unit) = if is_latency { latency_scale(value) } else { (value, "tok/s") };
    let name = terminal_line(&line.name, NAME_MAX);
    Some(Card {
        label: label.to_owned(),
        value: number(value),
        unit: unit.to_owned(),
        detail: format!(
            "{name} at {}; {}",
            load_words(line.kind, level.load),
            doubt_words(&across)
        ),
        doubt: None,
    })
}
