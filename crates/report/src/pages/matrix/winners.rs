//! Which deployment is best at what, and how surely it is ahead of the next.

use inferometer_analysis::matrix::{Certainty, MatrixFigure, MatrixRow, Speedup, Winner};

use super::results::slug;
use super::view::{self, View};
use super::{folded, signed_percent};
use crate::document::{Block, Cell, Column, Section, Span, Table, Text, plain};
use crate::number::count;
use crate::pages::cells::missing;
use crate::pages::frame;

/// Questions that a table answers without being folded away.
const OPEN_ROWS_MAX: usize = 24;
/// What people come for first.
const ORDER: [MatrixFigure; 6] = [
    MatrixFigure::GenerationTps,
    MatrixFigure::PromptTps,
    MatrixFigure::Latency,
    MatrixFigure::Ttft,
    MatrixFigure::Cost,
    MatrixFigure::Energy,
];
/// Statements of the summary.
const SENTENCES_MAX: usize = 8;

pub(super) fn section(view: View<'_>) -> Option<Section> {
    let winners = &view.matrix.winners;
    if winners.is_empty() {
        return None;
    }
    let mut blocks = vec![Block::Paragraph(plain(
        "A row with failed requests, failed runs or an invalid verdict wins nothing. How surely the \
         best is ahead takes into account how many questions this page asks at once.",
    ))];
    if winners.len() <= OPEN_ROWS_MAX {
        let all: Vec<&Winner> = winners.iter().collect();
        blocks.push(Block::Table(table(view, "winners-all", "", &all)));
    } else {
        blocks.extend(ORDER.into_iter().flat_map(|figure| of_figure(view, figure)));
    }
    Some(frame::section("winners", "Winners", blocks))
}

/// What people come for stands open; the other questions are one click away.
fn of_figure(view: View<'_>, figure: MatrixFigure) -> Vec<Block> {
    let own: Vec<&Winner> =
        view.matrix.winners.iter().filter(|winner| winner.figure == figure).collect();
    if own.is_empty() {
        return Vec::new();
    }
    let question = question(view, figure);
    let id = format!("winners-{}", slug(figure));
    let table = Block::Table(table(view, &id, &question, &own));
    let summary = format!("{question}: {} questions", count(own.len() as u64));
    folded(figure != ORDER[0], summary, vec![table])
}

fn question(view: View<'_>, figure: MatrixFigure) -> String {
    let (best, word) = (view::best_word(figure), view::figure_word(figure));
    format!("{best} {word} ({})", view.unit(figure))
}

/// The number stands as near to its name as it can: on a small screen the rest is scrolled.
fn table(view: View<'_>, id: &str, caption: &str, winners: &[&Winner]) -> Table {
    let has_figure = winners.iter().any(|winner| winner.figure != winners[0].figure);
    let has_model = 1 < view.matrix.models.len();
    let has_context = winners.iter().any(|winner| winner.context.is_some()) && view.has_contexts();
    let has_level = winners.iter().any(|winner| view.level(winner.level).is_some());
    let mut columns = Vec::new();
    columns.extend(has_figure.then(|| Column::left("Question")));
    columns.extend(has_model.then(|| Column::left("Model")));
    columns.extend(has_context.then(|| Column::right("Context")));
    columns.extend(has_level.then(|| Column::left("Load")));
    columns.extend([Column::right("Value"), Column::left("Best"), Column::right("Ahead by")]);
    columns.extend(["How surely", "Next"].map(Column::left));
    let row = |winner: &&Winner| {
        let mut cells = Vec::new();
        cells.extend(has_figure.then(|| Cell::text(question(view, winner.figure))));
        cells.extend(has_model.then(|| Cell::text(view.model(winner.model))));
        cells.extend(has_context.then(|| match winner.context {
            Some(tokens) => Cell::number(count(tokens.into()), tokens.into()),
            None => missing("the matrix file does not say"),
        }));
        cells.extend(has_level.then(|| Cell::text(view.level(winner.level).unwrap_or_default())));
        cells.push(value(view, winner));
        cells.push(named(view, Some(winner.row)));
        cells.push(ahead(winner));
        cells.push(Cell::text(view::certainty_word(winner.certainty)));
        cells.push(named(view, winner.runner_up));
        cells
    };
    Table {
        id: id.to_owned(),
        caption: caption.to_owned(),
        columns,
        rows: winners.iter().map(row).collect(),
        notes: Vec::new(),
    }
}

fn named(view: View<'_>, row: Option<u32>) -> Cell {
    let row = row.and_then(|row| view.row(row));
    row.map_or_else(
        || missing("nothing else could be compared"),
        |row| Cell::text(view.deployment(row)),
    )
}

fn value(view: View<'_>, winner: &Winner) -> Cell {
    let text = view::digits(winner.value);
    let across = view.row(winner.row).map(|row| view.figure(row, winner.figure));
    let doubt = across.map(crate::pages::words::doubt).filter(|words| !words.is_empty());
    Cell { number: Some(winner.value), detail: doubt, ..Cell::text(text) }
}

fn ahead(winner: &Winner) -> Cell {
    let Some(ahead) = &winner.ahead else { return missing("nothing else could be compared") };
    let cell =
        share(ahead, winner.certainty != Certainty::Certain, certainty_reason(winner.certainty));
    if view::is_even(ahead) { Cell { text: "even".to_owned(), ..cell } } else { cell }
}

/// A share with its interval behind it.
pub(super) fn share(found: &Speedup, doubtful: bool, reason: &str) -> Cell {
    let interval = found.interval.map(|interval| {
        format!("95 % {} to {}", signed_percent(interval.low), signed_percent(interval.high))
    });
    let told: Vec<&str> =
        interval.as_deref().into_iter().chain(doubtful.then_some(reason)).collect();
    Cell {
        number: Some(found.share),
        detail: (!told.is_empty()).then(|| told.join("; ")),
        doubtful,
        reason: doubtful.then(|| reason.to_owned()),
        ..Cell::text(signed_percent(found.share))
    }
}

const fn certainty_reason(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Certain => "",
        Certainty::Undecided => "the runs scatter too much to tell which is ahead",
        Certainty::OneRun => ONE_RUN,
        Certainty::NoSpread => NO_SPREAD,
        Certainty::Alone => "nothing else could be compared",
    }
}

pub(super) const ONE_RUN: &str =
    "one run a side: what another start of the server changes is not known";
pub(super) const NO_SPREAD: &str = "runs without spread: nothing says how far chance reaches";

/// Why the best of a figure is not known to be the best.
pub(super) fn reservation_of(
    view: View<'_>,
    row: &MatrixRow,
    figure: MatrixFigure,
) -> Option<String> {
    let certainty = asked(view, row, figure)?.certainty;
    let is_open =
        matches!(certainty, Certainty::Undecided | Certainty::OneRun | Certainty::NoSpread);
    is_open.then(|| certainty_reason(certainty).to_owned())
}

/// How far ahead of the next of its section, in a sentence that goes on; `None` where nobody asked.
pub(super) fn ahead_of_section(
    view: View<'_>,
    row: &MatrixRow,
    figure: MatrixFigure,
) -> Option<String> {
    let winner = asked(view, row, figure)?;
    let next = winner.runner_up.and_then(|next| view.row(next)).map(|next| view.deployment(next));
    Some(match (next, &winner.ahead) {
        (Some(next), Some(ahead)) => format!(
            ", {} ahead of {next} ({})",
            signed_percent(ahead.share).trim_start_matches('+'),
            view::certainty_word(winner.certainty)
        ),
        _ => format!(" ({})", view::certainty_word(winner.certainty)),
    })
}

/// The question that this row is the answer of.
fn asked<'a>(view: View<'a>, row: &MatrixRow, figure: MatrixFigure) -> Option<&'a Winner> {
    view.matrix.winners.iter().find(|winner| {
        let own = view.row(winner.row).is_some_and(|found| std::ptr::eq(found, row));
        own && winner.figure == figure
    })
}

/// The best of each model at generating, and at the cost of it, over all loads and context lengths:
/// what the cards show.
pub(super) fn sentences(view: View<'_>) -> Vec<Text> {
    let mut lines = Vec::new();
    for figure in [MatrixFigure::GenerationTps, MatrixFigure::Cost] {
        for (place, _) in (0_u32..).zip(&view.matrix.models) {
            let own = view.matrix.winners.iter();
            let own = own.filter(|winner| winner.model == place && winner.figure == figure);
            let rows = own.filter_map(|winner| view.row(winner.row));
            let best = view.best(rows, figure).and_then(|(row, _)| asked(view, row, figure));
            lines.extend(best.and_then(|winner| told(view, winner)));
        }
    }
    lines.truncate(SENTENCES_MAX);
    if view.matrix.winners.iter().any(|winner| winner.certainty == Certainty::OneRun) {
        lines.push(plain(
            "Deployments were measured once, so that what another start of the server changes is not \
             known: none of these leads is certain.",
        ));
    }
    lines
}

fn told(view: View<'_>, winner: &Winner) -> Option<Text> {
    let row = view.row(winner.row)?;
    let context = row.context.filter(|_| view.has_contexts());
    let context = context.map_or_else(String::new, |tokens| {
        format!(" at {} of context", view::context_words(tokens))
    });
    let load = view.level(winner.level).map_or_else(String::new, |load| format!(" and {load}"));
    let load = if context.is_empty() { load.replacen(" and", " at", 1) } else { load };
    let next = winner.runner_up.and_then(|next| view.row(next)).map(|next| view.deployment(next));
    let ahead = match (&winner.ahead, next) {
        (Some(ahead), Some(next)) if view::is_even(ahead) => format!(", even with {next}"),
        (Some(ahead), Some(next)) => {
            let far = signed_percent(ahead.share);
            format!(", {} ahead of {next}", far.trim_start_matches('+'))
        }
        _ => String::new(),
    };
    let surely = match winner.certainty {
        // Said once for all.
        Certainty::OneRun => String::new(),
        Certainty::Certain => "; repeated runs say so".to_owned(),
        other @ (Certainty::Undecided | Certainty::NoSpread | Certainty::Alone) => {
            format!("; {}", certainty_reason(other))
        }
    };
    Some(vec![
        Span::Strong(format!("{}:", view.model(winner.model))),
        Span::Plain(format!(
            " {} {} with {}, {} {}{context}{load}{ahead}{surely}.",
            view::best_word(winner.figure).to_lowercase(),
            view::figure_word(winner.figure),
            view.deployment(row),
            view::digits(winner.value),
            view.unit(winner.figure),
        )),
    ])
}
