//! Cells of tables and cards of a page's head: a number with its confidence interval, or a dash with its
//! reason.

use inferometer_analysis::set::{Findings, Tally};
use inferometer_model::study::Level;

use super::findings;
use super::prelude::*;

/// A quantity of a row with its confidence interval.
pub(crate) fn quantity_cell(row: &Row<'_>, quantity: Quantity) -> Cell {
    across_cell(&row.quantity(quantity), row.values_of(quantity.metric()), quantity.statistic())
}

/// A quantity of a row for a terminal, which has no tooltip: with its interval beside it.
pub(crate) fn brief_cell(row: &Row<'_>, quantity: Quantity) -> Cell {
    let across = row.quantity(quantity);
    Cell { text: fmt::across(Some(&across)), ..quantity_cell(row, quantity) }
}

/// Adds a column for each quantity.
pub(crate) fn quantity_columns<'a, const N: usize>(
    columns: Columns<'a, &'a Row<'a>>,
    cell: fn(&Row<'_>, Quantity) -> Cell,
    quantities: [(&str, Quantity); N],
) -> Columns<'a, &'a Row<'a>> {
    quantities.into_iter().fold(columns, |columns, (title, quantity)| {
        columns.right(title, move |row| cell(row, quantity))
    })
}

/// A name or a level, marked where the row has a reservation.
pub(crate) fn reserved(row: &Row<'_>, cell: Cell) -> Cell {
    let detail = row.reservation();
    if detail.is_none() { cell } else { Cell { detail, doubtful: true, ..cell } }
}

/// The same text for every such cell: a page lists each reason below a table once.
pub(crate) const UNCERTIFIED: &str = "too few independent values to certify it";

/// The same with the number that is needed.
pub(crate) fn uncertified(statistic: Option<Statistic>) -> String {
    statistic.map_or_else(
        || UNCERTIFIED.to_owned(),
        |it| format!("{UNCERTIFIED}: {} needs {}", it.name(), count(it.certified_from())),
    )
}

/// A mean over runs; `values` is the size of the distribution behind it.
pub(crate) fn across_cell(
    across: &AcrossRuns,
    values: Option<u64>,
    statistic: Option<Statistic>,
) -> Cell {
    let Some(mean) = across.mean else {
        return missing(across.reason.as_deref().unwrap_or("it was not measured"));
    };
    let uncertain = (!across.certified).then(|| uncertified(statistic));
    // Too few values to certify it are too few for an interval: one of both reasons is enough.
    let is_known = across.certified || across.confidence_interval().is_some();
    let known = Some(uncertainty(across)).filter(|words| is_known && !words.is_empty());
    let values = values.map(|values| counted(values, "value"));
    let parts = [known, values, uncertain].into_iter().flatten().join("; ");
    let cell = Cell::number(number(mean), mean).detailed(parts);
    cell.doubted((!across.certified).then(|| UNCERTIFIED.to_owned()))
}

pub(crate) fn missing(reason: &str) -> Cell {
    Cell::text(NOTHING).detailed(reason.to_owned())
}

/// A number as a text, or a dash with the reason why there is none.
pub(crate) fn number_cell(value: Option<f64>, text: fn(f64) -> String, reason: &str) -> Cell {
    value.map_or_else(|| missing(reason), |value| Cell::number(text(value), value))
}

/// A text, or a dash with the reason why there is none.
pub(crate) fn known(text: Option<&str>, reason: &str) -> Cell {
    text.map_or_else(|| missing(reason), Cell::text)
}

pub(crate) fn card(
    label: &str,
    value: String,
    unit: &str,
    detail: String,
    doubt: Option<String>,
) -> Card {
    Card { label: label.to_owned(), value, unit: unit.to_owned(), detail, doubt }
}

/// A latency of a row, from ten seconds on in seconds.
pub(crate) fn latency_card(
    label: &str,
    row: &Row<'_>,
    quantity: Quantity,
    detail: String,
) -> Option<Card> {
    let (value, unit) = fmt::latency_scale(row.value(quantity)?);
    Some(card(label, number(value), unit, detail, card_reservation(row, quantity)))
}

/// The row with the highest output throughput; a single row with its interval.
pub(crate) fn highest_output_card(rows: &[Row<'_>]) -> Option<Card> {
    let output = metric::OUTPUT_THROUGHPUT.quantity();
    let known = rows.iter().filter_map(|row| Some((row, row.value(output)?)));
    let (row, value) = known.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (label, detail) = if rows.len() == 1 {
        ("Output throughput", uncertainty(&row.quantity(output)))
    } else {
        ("Highest output throughput", row.name.clone())
    };
    Some(card(label, number(value), "tok/s", detail, card_reservation(row, output)))
}

/// The row whose output tokens cost least; `None` where the server has no price.
pub(crate) fn lowest_cost_card(rows: &[Row<'_>]) -> Option<Card> {
    let cost = metric::COST_PER_MILLION_OUTPUT_TOKENS.quantity();
    let known = rows.iter().filter_map(|row| Some((row, row.value(cost)?)));
    let (row, value) = known.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let (label, detail) = if rows.len() == 1 {
        ("Cost per M output tokens", uncertainty(&row.quantity(cost)))
    } else {
        ("Lowest cost per M output tokens", row.name.clone())
    };
    Some(card(label, number(value), "", detail, card_reservation(row, cost)))
}

/// Requests of all rows that ended ok.
pub(crate) fn requests_card(rows: &[Row<'_>]) -> Card {
    let tally = rows.iter().map(Row::tally).fold(Tally::default(), Tally::plus);
    card("Requests ok", count(tally.ok), "", format!("of {}", count(tally.scheduled)), None)
}

/// The sweet spot of a server, with the SLOs that it meets, and the knee.
pub(crate) fn spot_cards(
    server: Option<&str>,
    found: &Findings,
    doubt: impl Fn(Level) -> Option<String>,
) -> Vec<Card> {
    let of_server = server.map_or_else(String::new, |name| format!(" of {name}"));
    let spot = found.sweet_spot.found().map(|spot| {
        let uncertified = || (!spot.certified).then(|| UNCERTIFIED.to_owned());
        let (throughput, unit) = (number(spot.throughput.value), findings::unit(&spot.quantity));
        let detail = format!("{throughput} {unit} within {}", findings::slo_words(spot));
        let doubt = doubt(spot.level).or_else(uncertified);
        card(&format!("Sweet spot{of_server}"), level_name(spot.level), "", detail, doubt)
    });
    let knee = found.knee.found().map(|knee| {
        let detail =
            format!("{} {}", number(knee.throughput.value), findings::unit(&knee.quantity));
        card(&format!("Knee{of_server}"), level_name(knee.level), "", detail, doubt(knee.level))
    });
    spot.into_iter().chain(knee).collect()
}

/// Why a number of a row is not reliable.
fn card_reservation(row: &Row<'_>, quantity: Quantity) -> Option<String> {
    let uncertain = !row.quantity(quantity).certified;
    row.reservation().or_else(|| uncertain.then(|| UNCERTIFIED.to_owned()))
}
