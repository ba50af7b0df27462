//! The few numbers that a page begins with. One that is not to be relied on is marked, with the reason.

use super::rows::Row;
use crate::document::Card;
use crate::fmt::{count, latency_scale, number, uncertainty};
use inferometer_analysis::{Quantity, metric};

/// A time of a row, as its table has it; long ones in seconds.
pub(super) fn latency(
    label: &str,
    row: &Row<'_>,
    quantity: Quantity,
    detail: &str,
) -> Option<Card> {
    let across = row.quantity(quantity);
    let (value, unit) = latency_scale(across.mean?);
    Some(Card {
        label: label.to_owned(),
        value: number(value),
        unit: unit.to_owned(),
        detail: detail.to_owned(),
        doubt: reserved(row, quantity),
    })
}

/// The row with the highest output, of several; of one row its output with the interval.
pub(super) fn highest_output(rows: &[Row<'_>]) -> Option<Card> {
    let output = metric::OUTPUT_THROUGHPUT.quantity();
    let known = rows.iter().filter_map(|row| Some((row, row.value(output)?)));
    let (row, value) = known.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let alone = rows.len() == 1;
    Some(Card {
        label: if alone { "Output throughput" } else { "Highest output throughput" }.to_owned(),
        value: number(value),
        unit: "tok/s".to_owned(),
        detail: if alone { uncertainty(&row.quantity(output)) } else { row.name.clone() },
        doubt: reserved(row, output),
    })
}

pub(super) fn requests(ok: u64, scheduled: u64) -> Card {
    Card {
        label: "Requests ok".to_owned(),
        value: count(ok),
        unit: String::new(),
        detail: format!("of {}", count(scheduled)),
        doubt: None,
    }
}

/// Why a number of a row is not to be relied on.
pub(super) fn reserved(row: &Row<'_>, quantity: Quantity) -> Option<String> {
    let uncertain = !row.quantity(quantity).certified;
    let reason = uncertain.then(|| super::cells::UNCERTIFIED.to_owned());
    row.reservation().or(reason)
}
