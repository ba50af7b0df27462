//! Cells of tables: a number with its doubt behind it, and a dash with its reason.

use inferometer_analysis::set::Across;

use super::rows::Row;
use super::words::{counted, doubt};
use crate::document::Cell;
use crate::number::{NOTHING, fixed};

/// A quantity of a row with so many decimals.
pub(super) fn number(row: &Row<'_>, quantity: &str, places: usize) -> Cell {
    let across = row.quantity(quantity);
    let metric = quantity.split('.').next().unwrap_or(quantity);
    of_across(&across, row.values_of(metric), places)
}

/// `values` are those behind it.
pub(super) fn of_across(across: &Across, values: Option<u64>, places: usize) -> Cell {
    let Some(mean) = across.mean else {
        return missing(across.reason.as_deref().unwrap_or("it was not measured"));
    };
    let behind = values.map(|values| counted(values, "value"));
    // Told in the same words wherever it is so: pages put the reasons below their tables.
    let uncertain = (!across.certified).then(|| "too few to certify it".to_owned());
    let known = Some(doubt(across)).filter(|words| across.certified && !words.is_empty());
    let parts: Vec<String> = [known, behind, uncertain].into_iter().flatten().collect();
    Cell {
        text: fixed(Some(mean), places),
        number: Some(mean),
        detail: Some(parts.join("; ")),
        doubtful: !across.certified,
    }
}

pub(super) fn missing(reason: &str) -> Cell {
    Cell { text: NOTHING.to_owned(), detail: Some(reason.to_owned()), ..Cell::default() }
}

/// A text, or a dash with the reason why there is none.
pub(super) fn known(text: Option<&str>, reason: &str) -> Cell {
    text.map_or_else(|| missing(reason), Cell::text)
}
