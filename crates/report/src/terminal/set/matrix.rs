//! The tables of a matrix: what is best, every row where there are few, and what came to nothing.

use std::collections::BTreeMap;

use inferometer_analysis::matrix::{
    Certainty, MatrixFigure, MatrixRow, MatrixSummary, Speedup, Winner,
};
use inferometer_analysis::set::SetSummary;

use super::words::across;
use crate::escape::{terminal, terminal_line};
use crate::lines::hanging;
use crate::number::count;
use crate::pages::matrix::tally::Tally;
use crate::pages::matrix::view::{self, View};
use crate::table::Table;
use crate::terminal::Style;
use crate::terminal::style::Ink;

/// More rows than these are for the document.
const ROWS_MAX: usize = 40;
/// A cell is named by up to five words.
const CELL_CHARS_MAX: usize = 46;
const DEPLOYMENT_CHARS_MAX: usize = 26;
const MODEL_CHARS_MAX: usize = 14;

/// What was compared.
pub(super) fn head(matrix: &MatrixSummary) -> String {
    let title = matrix.title.trim();
    let title =
        if title.is_empty() { String::new() } else { format!(" ({})", terminal_line(title, 60)) };
    let counted = |number: usize, one: &str| match number {
        1 => format!("1 {one}"),
        several => format!("{} {one}s", count(several as u64)),
    };
    let words = format!(
        "matrix `{}`{title}: {}, {}, {}",
        terminal_line(&matrix.name, 40),
        counted(matrix.presets.len(), "preset"),
        counted(matrix.models.len(), "model"),
        counted(matrix.rows.len(), "row"),
    );
    hanging("", 0, &words)
}

pub(super) fn parts(set: &SetSummary, matrix: &MatrixSummary, style: Style) -> Vec<String> {
    let view = View { set, matrix };
    vec![
        measured(view),
        best(view).map_or_else(String::new, |table| table.to_terminal(style)),
        rows(view).map_or_else(String::new, |table| table.to_terminal(style)),
        failed(view, style),
    ]
}

fn measured(view: View<'_>) -> String {
    let tally = Tally::of(&view.matrix.rows);
    let troubles = tally.troubles();
    let more = if troubles.is_empty() { String::new() } else { format!("; {troubles}") };
    let all = count(view.matrix.rows.len() as u64);
    hanging("", 0, &format!("{} of {all} rows measured{more}", count(tally.measured() as u64)))
}

/// Over all context lengths, or of each where nobody asked for all.
fn best(view: View<'_>) -> Option<Table> {
    const FIGURES: [MatrixFigure; 3] =
        [MatrixFigure::GenerationTps, MatrixFigure::Latency, MatrixFigure::Cost];
    let asked = || view.matrix.winners.iter().filter(|one| FIGURES.contains(&one.figure));
    let mut shown: Vec<&Winner> = asked().filter(|one| one.context.is_none()).collect();
    if shown.is_empty() {
        shown = asked().collect();
    }
    let more = shown.len().saturating_sub(ROWS_MAX);
    shown.truncate(ROWS_MAX);
    let row = |winner: &&Winner| {
        let row = view.row(winner.row);
        vec![
            terminal_line(&view.model(winner.model), MODEL_CHARS_MAX),
            view::figure_word(winner.figure).to_owned(),
            row.map(|row| deployment(view, row)).unwrap_or_default(),
            across(row.map(|row| view.figure(row, winner.figure))),
            winner.ahead.as_ref().map_or_else(|| "alone".to_owned(), ahead),
            surely(winner.certainty).to_owned(),
        ]
    };
    let mut remarks = vec!["a row with failures wins nothing".to_owned()];
    if view.has(MatrixFigure::Cost) {
        remarks.push(format!("cost in {}", view.unit(MatrixFigure::Cost)));
    }
    if 0 < more {
        remarks.push(format!("{more} more questions are on the page"));
    }
    (!shown.is_empty()).then(|| Table {
        title: "best of each model (TPS in tok/s, latency in s)".to_owned(),
        heads: vec!["model", "at", "deployment", "value", "ahead", "how surely"],
        rows: shown.iter().map(row).collect(),
        remarks,
    })
}

/// As short as a line needs it.
const fn surely(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::OneRun => "one run",
        Certainty::NoSpread => "runs without spread",
        Certainty::Certain | Certainty::Undecided | Certainty::Alone => {
            view::certainty_word(certainty)
        }
    }
}

fn deployment(view: View<'_>, row: &MatrixRow) -> String {
    let context = row.context.filter(|_| view.has_contexts()).map(|tokens| count(tokens.into()));
    let level = view.level(row.level);
    let parts: Vec<String> =
        [view.deployment(row)].into_iter().chain(context).chain(level).collect();
    terminal_line(&parts.join(" · "), DEPLOYMENT_CHARS_MAX)
}

fn ahead(found: &Speedup) -> String {
    format!("{:.1} %", found.share * 100.0)
}

/// What tells the row from others.
fn cell(view: View<'_>, row: &MatrixRow) -> String {
    let model = (1 < view.matrix.models.len()).then(|| view.model(row.model));
    let context = row.context.filter(|_| view.has_contexts()).map(|tokens| count(tokens.into()));
    let level = view.level(row.level);
    let parts = [view.deployment(row)].into_iter().chain(model).chain(context).chain(level);
    terminal_line(&parts.collect::<Vec<_>>().join(" · "), CELL_CHARS_MAX)
}

/// Every row, where a terminal holds them.
fn rows(view: View<'_>) -> Option<Table> {
    let rows = &view.matrix.rows;
    if rows.is_empty() || ROWS_MAX < rows.len() {
        return None;
    }
    let row = |row: &MatrixRow| {
        let of = |figure| across(Some(view.figure(row, figure)));
        let marks = view::nothing(row).map(|_| view::short(row));
        let marks = marks.or_else(|| (0 < row.errors).then(|| format!("{} failed", row.errors)));
        let partly = view::failure(row).map(|_| format!("partly {}", view::short(row)));
        vec![
            cell(view, row),
            of(MatrixFigure::GenerationTps),
            of(MatrixFigure::Latency),
            marks.or(partly).unwrap_or_default(),
        ]
    };
    Some(Table {
        title: "every row".to_owned(),
        heads: vec!["cell", "gen. tok/s", "latency s", " "],
        rows: rows.iter().map(row).collect(),
        remarks: vec!["± 95 % between runs, of one run within it".to_owned()],
    })
}

/// Failures that look alike, with what to do about them.
fn failed(view: View<'_>, style: Style) -> String {
    let mut kinds: BTreeMap<String, (u64, Option<&'static str>, String)> = BTreeMap::new();
    for row in &view.matrix.rows {
        let Some(failure) = view::failure(row) else { continue };
        let remedy = failure.cause.map(inferometer_model::deployment::LikelyCause::remedy);
        let known = kinds.entry(view::short(row));
        known.or_insert_with(|| (0, remedy, view.cell(row))).0 += 1;
    }
    let mut text = String::new();
    for (kind, (number, remedy, first)) in kinds {
        let rows = if number == 1 { "row" } else { "rows" };
        let words = format!("{} {rows} {kind}, first {}", count(number), terminal(&first));
        text += &hanging(&format!("{}  ", style.paint(Ink::Bad, "failed")), 8, &words);
        let remedy = remedy.unwrap_or("the page has the last lines of its log");
        text += &hanging("  → ", 4, &terminal(remedy));
    }
    text
}
