//! Cells that came to nothing. They are results: why, what to do, and the last words of the server.

use std::collections::BTreeMap;

use inferometer_analysis::matrix::MatrixRow;
use inferometer_model::deployment::{DeploymentFailure, DeploymentStage, LikelyCause};

use super::view::{self, View};
use crate::document::{Block, Cell, Column, Mood, Section, Span, Table, Text, plain};
use crate::escape::terminal_line;
use crate::pages::frame;
use crate::pages::words::counted;

/// A page is no archive of logs; the set has them all.
const LOGS_MAX: usize = 24;
const LOG_LINES_MAX: usize = 20;
const LOG_LINE_CHARS_MAX: usize = 300;

/// Failures that look alike.
type Kind = (DeploymentStage, Option<LikelyCause>);

pub(super) fn section(view: View<'_>) -> Option<Section> {
    let mut kinds: BTreeMap<Kind, Vec<(&MatrixRow, &DeploymentFailure)>> = BTreeMap::new();
    for row in &view.matrix.rows {
        if let Some(failure) = row.ending.failure() {
            kinds.entry((failure.stage, failure.cause)).or_default().push((row, failure));
        }
    }
    if kinds.is_empty() {
        return None;
    }
    let mut blocks = Vec::new();
    for (place, (kind, rows)) in kinds.iter().enumerate() {
        blocks.push(notice(*kind, rows.len()));
        let summary = format!("The {}", counted(rows.len() as u64, "row"));
        blocks
            .push(Block::Details { summary, blocks: vec![Block::Table(table(view, place, rows))] });
    }
    blocks.extend(logs(view, kinds.values().flatten()));
    Some(frame::section("failed", "What came to nothing", blocks))
}

fn notice((stage, cause): Kind, rows: usize) -> Block {
    let rows = counted(rows as u64, "row");
    let (words, remedy) = match cause {
        Some(cause) => (
            format!("{rows} {stage}; by its words: {}.", cause.words()),
            frame::sentence(cause.remedy()),
        ),
        None => (
            format!("{rows} {stage}; its words do not tell the cause."),
            "Read the last lines of its log below, and try the cell alone with --only.".to_owned(),
        ),
    };
    Block::Notice {
        mood: Mood::Bad,
        text: plain(words),
        points: Vec::new(),
        remedy: Some(plain(remedy)),
    }
}

fn table(view: View<'_>, place: usize, rows: &[(&MatrixRow, &DeploymentFailure)]) -> Table {
    let cells = |(row, failure): &(&MatrixRow, &DeploymentFailure)| {
        let runs: Vec<String> = row.failed_points.iter().map(ToString::to_string).collect();
        vec![
            Cell::text(view.cell(row)),
            Cell::text(view::reason(failure)),
            Cell::text(terminal_line(&runs.join(", "), 40)),
        ]
    };
    Table {
        id: format!("failed-{place}"),
        caption: String::new(),
        columns: vec![Column::left("Cell"), Column::left("What happened"), Column::left("Points")],
        rows: rows.iter().map(cells).collect(),
        notes: Vec::new(),
    }
}

/// Each log once, whoever shares it.
fn logs<'a>(
    view: View<'_>,
    failed: impl Iterator<Item = &'a (&'a MatrixRow, &'a DeploymentFailure)>,
) -> Vec<Block> {
    let mut logs: Vec<(String, Vec<String>)> = Vec::new();
    for (row, failure) in failed.filter(|(_, failure)| !failure.log.is_empty()) {
        let from = failure.log.len().saturating_sub(LOG_LINES_MAX);
        let lines = failure.log[from..].iter();
        let lines: Vec<String> =
            lines.map(|line| terminal_line(line, LOG_LINE_CHARS_MAX)).collect();
        let text = lines.join("\n");
        match logs.iter_mut().find(|(known, _)| *known == text) {
            Some((_, cells)) => cells.push(view.cell(row)),
            None => logs.push((text, vec![view.cell(row)])),
        }
    }
    let more = logs.len().saturating_sub(LOGS_MAX);
    let block = |(text, cells): (String, Vec<String>)| {
        let others = match cells.len() - 1 {
            0 => String::new(),
            others => format!(" and {} more", counted(others as u64, "row")),
        };
        Block::Details {
            summary: format!("Last lines of the log: {}{others}", cells[0]),
            blocks: vec![Block::Code { language: "text", text }],
        }
    };
    let mut blocks: Vec<Block> = logs.into_iter().take(LOGS_MAX).map(block).collect();
    if 0 < more {
        blocks.push(Block::Paragraph(plain(format!(
            "{} not shown; the folder of the set has them.",
            if more == 1 { "1 more log is".to_owned() } else { format!("{more} more logs are") }
        ))));
    }
    blocks
}

/// For the summary.
pub(super) fn sentence(view: View<'_>) -> Option<Text> {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for row in view.matrix.rows.iter().filter(|row| row.ending.failure().is_some()) {
        *kinds.entry(view::short(row)).or_default() += 1;
    }
    let all: usize = kinds.values().sum();
    let told: Vec<String> = kinds.iter().map(|(kind, number)| format!("{number} {kind}")).collect();
    (0 < all).then(|| {
        vec![
            Span::Strong(format!("{} came to nothing", counted(all as u64, "row"))),
            Span::Plain(format!(" ({}): ", told.join(", "))),
            Span::Link { text: "why, and what to do".to_owned(), to: "failed".to_owned() },
            Span::Plain(".".to_owned()),
        ]
    })
}
