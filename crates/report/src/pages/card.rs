//! The few numbers that a page begins with. One that is not to be relied on is marked, with the reason.

use super::rows::Row;
use crate::document::Card;
use crate::fmt::{count, latency_scale, level_name, number, uncertainty};
use inferometer_analysis::set::{SweetSpot, Tally};
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

/// Requests of all rows that ended well.
pub(super) fn requests(rows: &[Row<'_>]) -> Card {
    let tally = rows.iter().map(Row::tally).fold(Tally::default(), Tally::plus);
    Card {
        label: "Requests ok".to_owned(),
        value: count(tally.ok),
        unit: String::new(),
        detail: format!("of {}", count(tally.scheduled)),
        doubt: None,
    }
}

/// The level with the most for each user within twice the best latencies.
pub(super) fn sweet_spot(spot: &SweetSpot, doubt: Option<String>) -> Card {
    let uncertified = || (!spot.certified).then(|| "its p99s are of too few requests".to_owned());
    Card {
        label: "Interactive sweet spot".to_owned(),
        value: level_name(spot.level),
        unit: String::new(),
        detail: format!("{} tok/s for each user", number(spot.per_user_throughput.value)),
        doubt: doubt.or_else(uncertified),
    }
}

/// Why a number of a row is not to be relied on.
pub(super) fn reserved(row: &Row<'_>, quantity: Quantity) -> Option<String> {
    let uncertain = !row.quantity(quantity).certified;
    let reason = uncertain.then(|| super::cells::UNCERTIFIED.to_owned());
    row.reservation().or(reason)
}
