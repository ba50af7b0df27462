//! The tables of a matrix: what is best, every row where there are few, and what came to nothing.

use std::collections::BTreeMap;

use inferometer_analysis::matrix::{
    MatrixFigure, MatrixRow, MatrixSummary, Speedup, TpsBy, Winner,
};
use inferometer_analysis::set::SetSummary;
use inferometer_model::deployment::{DeploymentFailure, LikelyCause};

use super::target;
use crate::escape::{terminal, terminal_ends, terminal_line};
use crate::fmt::{NOTHING, across, count};
use crate::lines::hanging;
use crate::pages::matrix::view::{self, Tally, View};
use crate::table::Table;
use crate::terminal::Style;
use crate::terminal::style::Ink;

/// More rows than these are for the document.
const ROWS_MAX: usize = 40;
/// A cell is named by up to five words.
const CELL_CHARS_MAX: usize = 46;
const DEPLOYMENT_CHARS_MAX: usize = 24;
const MODEL_CHARS_MAX: usize = 12;
/// More questions than these are told of generating alone.
const QUESTIONS_MAX: usize = 12;
const ANSWERS_MAX: usize = 16;
const TARGETS_MAX: usize = 3;
/// Enough for the sentence of a server that says what is wrong.
const WORDS_CHARS_MAX: usize = 200;

/// What was compared.
pub(super) fn head(set: &SetSummary, matrix: &MatrixSummary) -> String {
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
    let mut text = hanging("", 0, &words);
    let mut targets: Vec<String> = Vec::new();
    for subject in set.conditions.iter().filter_map(|one| one.subject.as_ref()) {
        // Of a simulation the first line of the page speaks.
        let target = (subject.embedded && subject.simulated.is_none()).then(|| target(subject));
        targets.extend(target.filter(|target| !targets.contains(target)));
    }
    for target in targets.iter().take(TARGETS_MAX) {
        text += &hanging("", 0, &format!("at {target}"));
    }
    text
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
    let Tally { measured, troubles } = Tally::new(&view.matrix.rows);
    let more = if troubles.is_empty() { String::new() } else { format!("; {troubles}") };
    let all = count(view.matrix.rows.len() as u64);
    hanging("", 0, &format!("{} of {all} rows measured{more}", count(measured as u64)))
}

/// The answers to each question where they are few, else to the first alone.
fn best(view: View<'_>) -> Option<Table> {
    const FIGURES: [MatrixFigure; 3] =
        [MatrixFigure::GenerationTps, MatrixFigure::Latency, MatrixFigure::Cost];
    let all = &view.matrix.winners;
    let mut shown: Vec<&Winner> = all.iter().filter(|one| FIGURES.contains(&one.figure)).collect();
    let is_short = shown.len() <= QUESTIONS_MAX;
    if !is_short {
        shown.retain(|one| one.figure == FIGURES[0]);
    }
    shown.truncate(ANSWERS_MAX);
    let more = all.len() - shown.len();
    let mut table = Table {
        title: if is_short {
            "best of each model (TPS in tok/s, latency in s)".to_owned()
        } else {
            "highest generation TPS of each model (tok/s)".to_owned()
        },
        heads: vec!["model", "at", "context", "load", "deployment", "value", "ahead", "certainty"],
        rows: shown.iter().map(|winner| answer(view, winner)).collect(),
        remarks: remarks(view, &shown, more),
    };
    let has_level = shown.iter().any(|one| view.level(one.level).is_some());
    for (head, is_told) in [("at", is_short), ("context", view.has_contexts()), ("load", has_level)]
    {
        if !is_told {
            table.remove_column(head);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

fn answer(view: View<'_>, winner: &Winner) -> Vec<String> {
    let row = view.row(winner.row);
    let at = view::short_name(winner.figure).replace("generation", "gen.");
    let deployment = row.map(|row| terminal_ends(&view.deployment(row), DEPLOYMENT_CHARS_MAX));
    vec![
        terminal_line(&view.model(winner.model), MODEL_CHARS_MAX),
        at,
        winner.context.map_or_else(|| NOTHING.to_owned(), |tokens| count(tokens.into())),
        view.level(winner.level).unwrap_or_default(),
        deployment.unwrap_or_default(),
        across(row.map(|row| view.figure(row, winner.figure))),
        winner.ahead.as_ref().map_or_else(|| "alone".to_owned(), ahead),
        view::certainty_word(winner.certainty).to_owned(),
    ]
}

/// Whose numbers these are, and what they leave out.
fn remarks(view: View<'_>, shown: &[&Winner], more: usize) -> Vec<String> {
    let by = match view.tps_by() {
        TpsBy::Server => "tokens by the server's counters, until it was idle again",
        TpsBy::Client => "tokens counted by the client: not every row has the server's counters",
    };
    let mut remarks = vec![by.to_owned(), "rows with failures cannot win".to_owned()];
    if shown.iter().any(|one| one.figure == MatrixFigure::Cost) {
        let unit = view.unit(MatrixFigure::Cost);
        remarks.push(match view.sped_up() {
            Some(_) => {
                format!("cost {unit}, of engines that were SPED UP: no server costs so little")
            }
            None => format!("cost {unit}"),
        });
    }
    if 0 < more {
        remarks.push(format!("{} more comparisons are on the page", count(more as u64)));
    }
    remarks
}

fn ahead(found: &Speedup) -> String {
    if view::is_tie(found) {
        return "tie".to_owned();
    }
    format!("{:.1} %", found.share * 100.0)
}

/// What tells the row from others.
fn cell(view: View<'_>, row: &MatrixRow) -> String {
    let model = (1 < view.matrix.models.len()).then(|| view.model(row.model));
    let context = row.context.filter(|_| view.has_contexts()).map(|tokens| count(tokens.into()));
    let level = view.level(row.level);
    let parts = [view.deployment(row)].into_iter().chain(model).chain(context).chain(level);
    terminal_ends(&parts.collect::<Vec<_>>().join(" · "), CELL_CHARS_MAX)
}

/// Every row, where a terminal holds them.
fn rows(view: View<'_>) -> Option<Table> {
    let rows = &view.matrix.rows;
    if rows.is_empty() || ROWS_MAX < rows.len() {
        return None;
    }
    let row = |row: &MatrixRow| {
        let of = |figure| {
            across(Some(view.figure(row, figure)).filter(|_| view::nothing(row).is_none()))
        };
        let marks = view::nothing(row).map(|_| view::short(row));
        let marks = marks.or_else(|| (0 < row.errors).then(|| format!("{} failed", row.errors)));
        let partly = row.ending.failure().map(|_| format!("partly {}", view::short(row)));
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

/// Failures that look alike: one of them with its own words, and what to do.
fn failed(view: View<'_>, style: Style) -> String {
    let mut kinds: BTreeMap<String, (u64, &MatrixRow, &DeploymentFailure)> = BTreeMap::new();
    for row in &view.matrix.rows {
        let Some(failure) = row.ending.failure() else { continue };
        kinds.entry(view::short(row)).or_insert((0, row, failure)).0 += 1;
    }
    let mut text = String::new();
    for (kind, (number, first, failure)) in kinds {
        let rows = if number == 1 { "row" } else { "rows" };
        let words = format!("{} {rows} {kind}, first {}", count(number), view.cell(first));
        text += &hanging(&format!("{}  ", style.paint(Ink::Bad, "failed")), 8, &terminal(&words));
        text += &hanging("        ", 8, &terminal_line(&view::reason(failure), WORDS_CHARS_MAX));
        let last = failure.log.iter().rev().find(|line| !line.trim().is_empty());
        if let Some(last) = last.filter(|last| !failure.what.contains(last.trim())) {
            let last = terminal_line(last.trim(), WORDS_CHARS_MAX);
            text += &hanging("        ", 8, &format!("last line of its log: {last}"));
        }
        let remedy = failure.cause.map(LikelyCause::remedy);
        let remedy = remedy.unwrap_or("the page has the last lines of its log");
        text += &hanging("  → ", 4, &terminal(remedy));
    }
    text
}
