//! Tables of Markdown: doubts and reasons are notes below them, intervals a table of their own.

use super::inline::{rest, text};
use crate::document::{Align, Card, Cell, Column, Table};

/// Caption, table and notes.
pub(super) fn parts(table: &Table) -> Vec<String> {
    let mut parts = Vec::new();
    if !table.caption.is_empty() {
        parts.push(format!("**{}**", rest(&table.caption)));
    }
    let mut reasons = Vec::new();
    let rows: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| row.iter().map(|cell| self::cell(cell, &mut reasons)).collect())
        .collect();
    if !table.columns.is_empty() {
        parts.push(grid(&table.columns, &rows));
    }
    let mut notes: Vec<String> = table.notes.iter().map(text).collect();
    for (number, reason) in reasons.iter().enumerate() {
        notes.push(format!("<sup>{}</sup> {}", number + 1, rest(reason)));
    }
    parts.extend(notes);
    if table.rows.iter().flatten().any(is_told) {
        parts.extend(told(table));
    }
    parts
}

/// Whether a number has more to it, such as its interval.
fn is_told(cell: &Cell) -> bool {
    cell.number.is_some() && cell.detail.is_some()
}

/// The same table with what there is to say of each number in its place, folded away. Columns of
/// which nothing is to be said are left out, but for the first, which names the rows.
fn told(table: &Table) -> [String; 3] {
    let is_kept = |place: usize| {
        place == 0 || table.rows.iter().filter_map(|row| row.get(place)).any(is_told)
    };
    let columns: Vec<Column> = table
        .columns
        .iter()
        .enumerate()
        .filter(|(place, _)| is_kept(*place))
        .map(|(_, column)| column.clone())
        .collect();
    let cell = |(place, cell): (usize, &Cell)| match &cell.detail {
        Some(detail) if is_told(cell) => rest(detail),
        _ if place == 0 => rest(&cell.text),
        _ => String::new(),
    };
    let rows: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| row.iter().enumerate().filter(|(place, _)| is_kept(*place)).map(cell).collect())
        .collect();
    [
        "<details>\n<summary>What is behind these numbers</summary>".to_owned(),
        grid(&columns, &rows),
        "</details>".to_owned(),
    ]
}

/// The numbers that the page is about.
pub(super) fn headline(cards: &[Card]) -> String {
    let columns = [Column::left("Headline"), Column::right("Value"), Column::left("")];
    let rows: Vec<Vec<String>> = cards
        .iter()
        .map(|card| {
            let value = format!("**{}** {}", rest(&card.value), rest(&card.unit));
            let sign = if card.doubt.is_some() { "⚠" } else { "" };
            let words: Vec<&str> = [card.detail.as_str()]
                .into_iter()
                .chain(card.doubt.as_deref())
                .filter(|words| !words.is_empty())
                .collect();
            vec![rest(&card.label), format!("{}{sign}", value.trim_end()), rest(&words.join("; "))]
        })
        .collect();
    grid(&columns, &rows)
}

fn grid(columns: &[Column], rows: &[Vec<String>]) -> String {
    let titles: Vec<String> = columns.iter().map(|column| rest(&column.title)).collect();
    let rules = columns.iter().map(|column| match column.align {
        Align::Left => "---",
        Align::Right => "---:",
    });
    let mut lines = vec![
        format!("| {} |", titles.join(" | ")),
        format!("|{}|", rules.collect::<Vec<_>>().join("|")),
    ];
    lines.extend(rows.iter().map(|row| format!("| {} |", row.join(" | "))));
    lines.join("\n")
}

/// The cell, with a number where a reason to doubt it, or why there is none, stands below.
fn cell<'a>(cell: &'a Cell, reasons: &mut Vec<&'a str>) -> String {
    let words = rest(&cell.text);
    let words = if cell.mood.is_some() { format!("**{words}**") } else { words };
    let sign = if cell.doubtful { "⚠" } else { "" };
    let Some(reason) = cell.footnote() else {
        return format!("{words}{sign}");
    };
    let known = reasons.iter().position(|other| *other == reason);
    let place = known.unwrap_or_else(|| {
        reasons.push(reason);
        reasons.len() - 1
    });
    format!("{words}{sign}<sup>{}</sup>", place + 1)
}
