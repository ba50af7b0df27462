//! Tables of Markdown: doubts and reasons are notes below them.

use super::inline::{rest, text};
use crate::document::{Align, Card, Cell, Column, Table};
use crate::number::NOTHING;

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
    parts
}

/// The numbers that the page is about.
pub(super) fn headline(cards: &[Card]) -> String {
    let columns = [Column::left("Headline"), Column::right("Value"), Column::left("")];
    let rows: Vec<Vec<String>> = cards
        .iter()
        .map(|card| {
            let value = format!("**{}** {}", rest(&card.value), rest(&card.unit));
            vec![rest(&card.label), value.trim_end().to_owned(), rest(&card.detail)]
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
    let sign = if cell.doubtful { "⚠" } else { "" };
    let needs_reason = cell.doubtful || cell.text == NOTHING;
    let Some(reason) = cell.detail.as_deref().filter(|_| needs_reason) else {
        return format!("{words}{sign}");
    };
    let known = reasons.iter().position(|other| *other == reason);
    let place = known.unwrap_or_else(|| {
        reasons.push(reason);
        reasons.len() - 1
    });
    format!("{words}{sign}<sup>{}</sup>", place + 1)
}
