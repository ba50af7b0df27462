//! Every row: a section for each context length, in it one for each model.

use inferometer_analysis::matrix::{MatrixFigure, MatrixRow, MatrixSection};
use inferometer_model::campaign::Level;

use super::view::{self, View};
use super::{bars, folded, table};
use crate::document::{Block, Section, Span, Text};
use crate::pages::words::{level_name, listed};
use crate::pages::{charts, frame};

pub(super) fn sections(view: View<'_>) -> Vec<Section> {
    let mut contexts: Vec<Option<u32>> = Vec::new();
    for section in &view.matrix.sections {
        if !contexts.contains(&section.context) {
            contexts.push(section.context);
        }
    }
    contexts.into_iter().map(|context| of_context(view, context)).collect()
}

fn of_context(view: View<'_>, context: Option<u32>) -> Section {
    let (id, title) = context.map_or_else(
        || ("results".to_owned(), "Results".to_owned()),
        |tokens| {
            (format!("context-{tokens}"), format!("Context of {}", view::context_words(tokens)))
        },
    );
    let of_model = |model: u32| {
        let own = view.matrix.sections.iter();
        let own: Vec<&MatrixSection> =
            own.filter(|it| it.context == context && it.model == model).collect();
        (!own.is_empty()).then(|| self::of_model(view, (&id, model), &own))
    };
    let models = (0_u32..).zip(&view.matrix.models).filter_map(|(model, _)| of_model(model));
    let sections = models.collect();
    Section { sections, ..frame::section(&id, &title, Vec::new()) }
}

fn of_model(view: View<'_>, (context, model): (&str, u32), own: &[&MatrixSection]) -> Section {
    let id = format!("{context}-model-{model}");
    let rows: Vec<&MatrixRow> = own.iter().flat_map(|one| view.rows_at(&one.rows)).collect();
    let mut blocks = Vec::new();
    let lines: Vec<Text> = own.iter().flat_map(|one| lines(view, one, 1 < own.len())).collect();
    if !lines.is_empty() {
        blocks.push(Block::List(lines));
    }
    let mut inner: Vec<Block> = drawn(view, MatrixFigure::GenerationTps, &id, &rows);
    for (place, one) in own.iter().enumerate() {
        let caption = caption(view, one);
        let rows = view.rows_at(&one.rows);
        let id = format!("{id}-table-{place}");
        let lines = table::Lines::Presets;
        inner.push(Block::Table(table::of_rows(view, (id, caption), lines, &rows)));
    }
    inner.extend(further(view, &id, &rows));
    let measured = rows.iter().filter(|row| !row.points.is_empty()).count();
    let summary = format!("Tables and charts: {measured} of {} rows measured", rows.len());
    blocks.extend(folded(view.is_large(), summary, inner));
    frame::section(&id, &view.model(model), blocks)
}

/// One chart for each load.
fn drawn(view: View<'_>, figure: MatrixFigure, id: &str, rows: &[&MatrixRow]) -> Vec<Block> {
    let mut levels: Vec<Level> = Vec::new();
    for row in rows {
        if !levels.contains(&row.level) {
            levels.push(row.level);
        }
    }
    let chart = |(place, level): (usize, &Level)| {
        let own: Vec<&MatrixRow> = rows.iter().filter(|row| row.level == *level).copied().collect();
        let first = own.first()?;
        let mut of = vec![view.model(first.model)];
        of.extend(first.context.map(view::context_words));
        of.extend((1 < levels.len()).then(|| level_name(*level)));
        let id = format!("{id}-{}-{place}", slug(figure));
        bars::of_rows(view, figure, (&id, &of.join(", ")), &own).map(charts::figure)
    };
    levels.iter().enumerate().filter_map(chart).collect()
}

/// Charts of the other figures and what the servers said, one fold away. Of many rows all of them
/// would make the page too large to send.
fn further(view: View<'_>, id: &str, rows: &[&MatrixRow]) -> Vec<Block> {
    const FIGURES: [MatrixFigure; 5] = [
        MatrixFigure::PromptTps,
        MatrixFigure::Latency,
        MatrixFigure::Ttft,
        MatrixFigure::Cost,
        MatrixFigure::Energy,
    ];
    const ROWS_MAX: usize = 300;
    let is_huge = ROWS_MAX < view.matrix.rows.len();
    let drawn_max = match (is_huge, view.is_large()) {
        (true, _) => 1,
        (false, true) => 2,
        (false, false) => FIGURES.len(),
    };
    let figures = FIGURES.into_iter().take(drawn_max);
    let mut charts: Vec<Block> = figures.flat_map(|figure| drawn(view, figure, id, rows)).collect();
    // The CSV has it as well.
    let said = table::of_servers(view, format!("{id}-server"), rows).filter(|_| !is_huge);
    let said = said.map(Block::Table);
    if view.is_large() {
        let summary = "What the servers said: running, waiting and cache".to_owned();
        charts.extend(said.map(|table| Block::Details { summary, blocks: vec![table] }));
        return charts;
    }
    charts.extend(said);
    let summary = "Other figures as charts, and what the servers said".to_owned();
    if charts.is_empty() { charts } else { vec![Block::Details { summary, blocks: charts }] }
}

pub(super) const fn slug(figure: MatrixFigure) -> &'static str {
    match figure {
        MatrixFigure::PromptTps => "prompt",
        MatrixFigure::GenerationTps => "generation",
        MatrixFigure::Latency => "latency",
        MatrixFigure::Ttft => "ttft",
        MatrixFigure::Cost => "cost",
        MatrixFigure::Energy => "energy",
    }
}

/// What tells this table from its neighbours.
fn caption(view: View<'_>, section: &MatrixSection) -> String {
    let mut parts = vec![view.model(section.model)];
    parts.extend(section.context.map(view::context_words));
    parts.extend(distinction(view, section));
    parts.join(", ")
}

fn distinction(view: View<'_>, section: &MatrixSection) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(section.strategy.map(|strategy| view::strategy_name(strategy).to_owned()));
    parts.extend(view::flags_words(&section.flags.iter().cloned().collect()));
    parts.extend(view.level(section.level));
    parts
}

/// The best, and the rows that are not.
fn lines(view: View<'_>, section: &MatrixSection, several: bool) -> Vec<Text> {
    let which = distinction(view, section).join(", ");
    let which = if several && !which.is_empty() { format!(" ({which})") } else { String::new() };
    let mut lines = Vec::new();
    let highest: Vec<String> = section
        .highest
        .iter()
        .filter_map(|found| {
            let row = view.row(found.row)?;
            let same = if view.is_as_tensor(row) { " (the same server as tensor)" } else { "" };
            let preset = view.preset(row.preset);
            let value = view::digits(found.value);
            let name = view::figure_word(found.figure);
            let word = view::best_word(found.figure).to_lowercase();
            Some(format!("{word} {name} {preset}{same} with {value} {}", view.unit(found.figure)))
        })
        .collect();
    if !highest.is_empty() {
        lines.push(line(&format!("Best{which}:"), &highest.join("; ")));
    }
    let errors: Vec<String> = section
        .errors
        .iter()
        .filter_map(|(row, _)| {
            let row = view.row(*row)?;
            Some(format!("{} ({})", view.preset(row.preset), view::errors_words(row)))
        })
        .collect();
    if !errors.is_empty() {
        lines.push(line(&format!("Errors{which}:"), &listed(&errors)));
    }
    let failed: Vec<String> = view
        .rows_at(&section.failed)
        .into_iter()
        .map(|row| format!("{} ({})", view.preset(row.preset), view::short(row)))
        .collect();
    if !failed.is_empty() {
        lines.push(line(&format!("Failed{which}:"), &listed(&failed)));
    }
    lines
}

fn line(label: &str, words: &str) -> Text {
    vec![Span::Strong(label.to_owned()), Span::Plain(format!(" {words}."))]
}
