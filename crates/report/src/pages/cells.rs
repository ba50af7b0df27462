//! Cells of tables: a number with its doubt behind it, and a dash with its reason.

use inferometer_analysis::set::AcrossRuns;
use inferometer_analysis::{Metric, Quantity};

use super::rows::Row;
use crate::document::{Cell, Columns};
use crate::fmt::{self, NOTHING, counted, number, uncertainty, whole};

/// A quantity of a row with its confidence interval.
pub(super) fn quantity_cell(row: &Row<'_>, quantity: Quantity) -> Cell {
    of_across(&row.quantity(quantity), Behind::of(row, quantity.metric()))
}

/// A quantity of a row for a terminal, which has no tooltip: with its interval beside it.
pub(super) fn brief_cell(row: &Row<'_>, quantity: Quantity) -> Cell {
    let across = row.quantity(quantity);
    Cell { text: fmt::across(Some(&across)), ..quantity_cell(row, quantity) }
}

/// Adds a column for each quantity.
pub(super) fn quantity_columns<'a, const N: usize>(
    columns: Columns<'a, &'a Row<'a>>,
    cell: fn(&Row<'_>, Quantity) -> Cell,
    quantities: [(&str, Quantity); N],
) -> Columns<'a, &'a Row<'a>> {
    quantities.into_iter().fold(columns, |columns, (title, quantity)| {
        columns.right(title, move |row| cell(row, quantity))
    })
}

/// A name or a level, marked where its numbers are to be taken with care.
pub(super) fn reserved(row: &Row<'_>, cell: Cell) -> Cell {
    let detail = row.reservation();
    if detail.is_none() { cell } else { Cell { detail, doubtful: true, ..cell } }
}

/// What a number of a distribution is made of.
#[derive(Clone, Copy, Default)]
pub(super) struct Behind {
    values: Option<u64>,
    independent: Option<f64>,
}

impl Behind {
    pub(super) fn of(row: &Row<'_>, metric: &Metric) -> Self {
        Self { values: row.values_of(metric), independent: row.independent(metric) }
    }
}

/// Told in the same words wherever it is so: pages put the reasons below their tables.
pub(super) const UNCERTIFIED: &str = "too few independent values to certify it";

/// The same with the number of them.
pub(super) fn uncertified(independent: Option<f64>) -> String {
    independent.map_or_else(
        || UNCERTIFIED.to_owned(),
        |n| format!("too few independent values (about {}) to certify it", whole(n)),
    )
}

pub(super) fn of_across(across: &AcrossRuns, behind: Behind) -> Cell {
    let Some(mean) = across.mean else {
        return missing(across.reason.as_deref().unwrap_or("it was not measured"));
    };
    let values = behind.values.map(|values| counted(values, "value"));
    let uncertain = (!across.certified).then(|| uncertified(behind.independent));
    // What is too little to certify it is too little for an interval: it need not be said twice.
    let says_more = across.certified || across.doubt().is_some();
    let known = Some(uncertainty(across)).filter(|words| says_more && !words.is_empty());
    let parts: Vec<String> = [known, values, uncertain].into_iter().flatten().collect();
    Cell {
        text: number(mean),
        number: Some(mean),
        detail: Some(parts.join("; ")),
        doubtful: !across.certified,
        reason: (!across.certified).then(|| UNCERTIFIED.to_owned()),
        mood: None,
    }
}

pub(super) fn missing(reason: &str) -> Cell {
    Cell { text: NOTHING.to_owned(), detail: Some(reason.to_owned()), ..Cell::default() }
}

/// A number as a text, or a dash with the reason why there is none.
pub(super) fn number_cell(value: Option<f64>, text: fn(f64) -> String, reason: &str) -> Cell {
    value.map_or_else(|| missing(reason), |value| Cell::number(text(value), value))
}

/// A text, or a dash with the reason why there is none.
pub(super) fn known(text: Option<&str>, reason: &str) -> Cell {
    text.map_or_else(|| missing(reason), Cell::text)
}
