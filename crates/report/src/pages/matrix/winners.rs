//! Which deployment is best at what, and how surely it is ahead of the next.

use inferometer_analysis::matrix::{Certainty, MatrixFigure, MatrixRow, Speedup, Winner};

use super::view::{self, View};
use super::{folded, signed_percent};
use crate::document::{Block, Cell, Column, Section, Span, Table, Text, plain};
use crate::number::{count, figure as written};
use crate::pages::cells::missing;
use crate::pages::frame;

/// Questions that a table answers without being folded away.
const OPEN_ROWS_MAX: usize = 24;
/// Statements of the summary.
const SENTENCES_MAX: usize = 8;

pub(super) fn section(view: View<'_>) -> Option<Section> {
    let winners = &view.matrix.winners;
    if winners.is_empty() {
        return None;
    }
    let (overall, mut each): (Vec<&Winner>, Vec<&Winner>) =
        winners.iter().partition(|winner| winner.context.is_none());
    if !overall.is_empty() && !view.has_contexts() {
        // Of one context length they are the same questions again.
        each.clear();
    }
    let mut blocks = vec![Block::Paragraph(plain(
        "A row with failed requests, failed runs or an invalid verdict wins nothing. How surely the \
         best is ahead takes into account how many questions this page asks at once.",
    ))];
    if !overall.is_empty() {
        let caption = if view.has_contexts() { "Over all context lengths" } else { "" };
        blocks.push(Block::Table(table(view, "winners-overall", caption, &overall)));
    }
    for (place, _) in (0_u32..).zip(&view.matrix.models) {
        let own: Vec<&Winner> =
            each.iter().filter(|winner| winner.model == place).copied().collect();
        if own.is_empty() {
            continue;
        }
        let model = view.model(place);
        let id = format!("winners-model-{place}");
        let table = Block::Table(table(view, &id, &format!("{model}: each context length"), &own));
        let fold = OPEN_ROWS_MAX < each.len();
        let summary = format!("{model}: the best at each context length ({} questions)", own.len());
        blocks.extend(folded(fold, summary, vec![table]));
    }
    Some(frame::section("winners", "Winners", blocks))
}

fn table(view: View<'_>, id: &str, caption: &str, winners: &[&Winner]) -> Table {
    let has_context = winners.iter().any(|winner| winner.context.is_some());
    let has_model = winners.iter().any(|winner| winner.model != winners[0].model);
    let has_level = winners.iter().any(|winner| view.level(winner.level).is_some());
    let mut columns = vec![Column::left("Question")];
    columns.extend(has_model.then(|| Column::left("Model")));
    columns.extend(has_context.then(|| Column::right("Context")));
    columns.extend(has_level.then(|| Column::left("Load")));
    columns.extend(["Best", "Next"].map(Column::left));
    columns.extend(["Value", "Ahead by"].map(Column::right));
    columns.push(Column::left("How surely"));
    let row = |winner: &&Winner| {
        let figure = winner.figure;
        let question = format!(
            "{} {} ({})",
            view::best_word(figure),
            view::figure_word(figure),
            view.unit(figure)
        );
        let mut cells = vec![Cell::text(question)];
        cells.extend(has_model.then(|| Cell::text(view.model(winner.model))));
        cells.extend(has_context.then(|| {
            let tokens = winner.context.unwrap_or_default();
            Cell::number(count(tokens.into()), tokens.into())
        }));
        cells.extend(has_level.then(|| Cell::text(view.level(winner.level).unwrap_or_default())));
        cells.push(named(view, Some(winner.row), winner.context.is_none(), ""));
        let alone = "nothing else could be compared";
        cells.push(named(view, winner.runner_up, winner.context.is_none(), alone));
        cells.push(value(view, winner));
        cells.push(ahead(winner));
        cells.push(Cell::text(view::certainty_word(winner.certainty)));
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

/// A deployment, with its context where the question is about all of them.
fn named(view: View<'_>, row: Option<u32>, with_context: bool, reason: &str) -> Cell {
    let Some(row) = row.and_then(|row| view.row(row)) else { return missing(reason) };
    let context = row.context.filter(|_| with_context && view.has_contexts());
    let context = context.map(view::context_words);
    let parts: Vec<String> = [view.deployment(row)].into_iter().chain(context).collect();
    Cell::text(parts.join(" · "))
}

fn value(view: View<'_>, winner: &Winner) -> Cell {
    let text = written(Some(winner.value));
    let across = view.row(winner.row).map(|row| view.figure(row, winner.figure));
    let doubt = across.map(crate::pages::words::doubt).filter(|words| !words.is_empty());
    Cell { number: Some(winner.value), detail: doubt, ..Cell::text(text) }
}

fn ahead(winner: &Winner) -> Cell {
    let Some(ahead) = &winner.ahead else { return missing("nothing else could be compared") };
    share(ahead, winner.certainty != Certainty::Certain, certainty_reason(winner.certainty))
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
        Certainty::Undecided => "the runs lie too close together to tell which is ahead",
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
    let winner = asked(view, row, figure, None).or_else(|| asked(view, row, figure, row.context));
    let certainty = winner.map(|winner| winner.certainty)?;
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
    let winner = asked(view, row, figure, row.context)?;
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

fn asked<'a>(
    view: View<'a>,
    row: &MatrixRow,
    figure: MatrixFigure,
    context: Option<u32>,
) -> Option<&'a Winner> {
    view.matrix.winners.iter().find(|winner| {
        let own = view.row(winner.row).is_some_and(|found| std::ptr::eq(found, row));
        own && winner.figure == figure && winner.context == context
    })
}

/// The best of each model at generating, and at the cost of it.
pub(super) fn sentences(view: View<'_>) -> Vec<Text> {
    let mut lines = Vec::new();
    for figure in [MatrixFigure::GenerationTps, MatrixFigure::Cost] {
        for (place, _) in (0_u32..).zip(&view.matrix.models) {
            let own = view.matrix.winners.iter();
            let own = own.filter(|winner| winner.model == place && winner.figure == figure);
            let overall = own.clone().find(|winner| winner.context.is_none());
            lines.extend(overall.or_else(|| own.clone().next()).and_then(|it| told(view, it)));
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
    let next = winner.runner_up.and_then(|next| view.row(next)).map(|next| view.deployment(next));
    let ahead = match (&winner.ahead, next) {
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
            " {} {} with {}, {} {}{context}{ahead}{surely}.",
            view::best_word(winner.figure).to_lowercase(),
            view::figure_word(winner.figure),
            view.deployment(row),
            written(Some(winner.value)),
            view.unit(winner.figure),
        )),
    ])
}
