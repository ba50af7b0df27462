//! The page of a matrix in a terminal: the winners, every row where there are few, and the failures.

use inferometer_analysis::matrix::{MatrixFigure, MatrixRow, MatrixSummary, TpsBy, Winner};

use super::servers::failure_notices;
use super::{self as matrix, View};
use crate::escape::terminal_ends;
use crate::fmt::across;
use crate::pages::prelude::*;
use crate::pages::set;

/// What was compared, and where.
pub(in crate::pages) fn subject(set: &SetSummary, matrix: &MatrixSummary) -> Vec<(String, Text)> {
    let title = matrix.title.trim();
    let title =
        if title.is_empty() { String::new() } else { format!(" ({})", terminal_line(title, 60)) };
    let presets = counted(matrix.presets.len() as u64, "preset");
    let models = counted(matrix.models.len() as u64, "model");
    let rows = counted(matrix.rows.len() as u64, "row");
    let name = terminal_line(&matrix.name, 40);
    let words = fill("matrix-subject", &[&name, &title, &presets, &models, &rows]);
    // The first line of the page states that it is a simulation.
    let subjects = set.conditions.iter().filter_map(|one| one.subject.as_ref());
    let embedded = subjects.filter(|subject| subject.embedded && subject.simulated.is_none());
    let targets = distinct(embedded.map(set::target)).into_iter().take(3);
    let targets = targets.map(|target| (String::new(), plain(format!("at {target}"))));
    let about = matrix.description.as_deref().map(|text| ("about".to_owned(), plain(text)));
    [("matrix".to_owned(), plain(words))].into_iter().chain(about).chain(targets).collect()
}

/// The winners, every row where there are few, and the failures.
pub(in crate::pages) fn sections(set: &SetSummary, matrix: &MatrixSummary) -> Vec<Section> {
    let view = View::new(set, matrix);
    let (measured, troubles) = view.tally();
    let more = if troubles.is_empty() { String::new() } else { format!("; {troubles}") };
    let all = count(matrix.rows.len() as u64);
    let measured = format!("{measured} of {all} rows measured{more}");
    let tables = [best(view), rows(view)].into_iter().flatten().map(Block::Table);
    let blocks = [Block::paragraph(measured)].into_iter().chain(tables).map(|block| vec![block]);
    let failures = failure_notices(view).into_iter().map(|(notice, _)| notice).collect();
    blocks.chain([failures]).map(|blocks| Section::new("", blocks)).collect()
}

/// The winners where they are few, else those of generation TPS.
fn best(view: View<'_>) -> Option<Table> {
    const FIGURES: [MatrixFigure; 3] =
        [MatrixFigure::GenerationTps, MatrixFigure::Latency, MatrixFigure::Cost];
    let all = &view.matrix.winners;
    let mut shown: Vec<&Winner> = all.iter().filter(|one| FIGURES.contains(&one.figure)).collect();
    let is_short = shown.len() <= 12;
    if !is_short {
        shown.retain(|one| one.figure == FIGURES[0]);
    }
    shown.truncate(16);
    let title = if is_short {
        "best of each model (TPS in tok/s, latency in s)"
    } else {
        "highest generation TPS of each model (tok/s)"
    };
    let has_level = shown.iter().any(|one| view.level(one.level).is_some());
    let row = |winner: &Winner| view.row(winner.row);
    let notes = notes(view, &shown, all.len() - shown.len());
    let table = Columns::new("model", |winner: &&Winner| {
        Cell::text(terminal_line(&view.model(winner.model), 12))
    })
    .left("at", |winner| {
        Cell::text(matrix::short_name(winner.figure).replace("generation", "gen."))
    })
    .only_if(is_short)
    .right("context", |winner| {
        Cell::text(winner.context.map_or_else(|| NOTHING.to_owned(), |tokens| count(tokens.into())))
    })
    .only_if(view.has_contexts())
    .left("load", |winner| Cell::text(view.level(winner.level).unwrap_or_default()))
    .only_if(has_level)
    .left("deployment", |winner| {
        let deployment = row(winner).map(|row| view.deployment(row)).unwrap_or_default();
        Cell::text(terminal_ends(&deployment, 24))
    })
    .right("value", |winner| {
        Cell::text(across(row(winner).map(|row| view.figure(row, winner.figure))))
    })
    .right("ahead", |winner| {
        Cell::text(match &winner.ahead {
            None => "alone".to_owned(),
            Some(found) if matrix::is_tie(found) => "tie".to_owned(),
            Some(found) => percent(found.share),
        })
    })
    .left("certainty", |winner| Cell::text(matrix::certainty_words(winner.certainty).0))
    .table("", title, shown);
    (!table.rows.is_empty()).then_some(Table { notes, ..table })
}

/// How tokens were counted, and what the table leaves out.
fn notes(view: View<'_>, shown: &[&Winner], more: usize) -> Vec<Text> {
    let by = if view.tps_by == TpsBy::Server { "by-counters" } else { "by-client" };
    let mut notes = vec![plain(text(by)), plain("rows with failures cannot win")];
    if shown.iter().any(|one| one.figure == MatrixFigure::Cost) {
        let unit = view.unit(MatrixFigure::Cost);
        let mut subjects = view.set.conditions.iter().filter_map(|one| one.subject.as_ref());
        let is_sped_up = subjects.any(|subject| subject.engine_speed.is_some());
        let sped_up = ", of engines that were SPED UP: no server costs so little";
        let sped_up = if is_sped_up { sped_up } else { "" };
        notes.push(plain(format!("cost {unit}{sped_up}")));
    }
    if 0 < more {
        notes.push(plain(format!("{} on the page", counted(more as u64, "more comparison"))));
    }
    notes
}

/// The parts of a row's name that differ between rows.
fn cell(view: View<'_>, row: &MatrixRow) -> String {
    let model = (1 < view.matrix.models.len()).then(|| view.model(row.model));
    let context = row.context.filter(|_| view.has_contexts()).map(|tokens| count(tokens.into()));
    let level = view.level(row.level);
    let parts = [view.deployment(row)].into_iter().chain(model).chain(context).chain(level);
    terminal_ends(&parts.join(" · "), 46)
}

/// Every row, where a terminal can show them.
fn rows(view: View<'_>) -> Option<Table> {
    let rows = &view.matrix.rows;
    let get = |figure| {
        move |row: &&MatrixRow| {
            let known = Some(view.figure(row, figure)).filter(|_| matrix::nothing(row).is_none());
            Cell::text(across(known))
        }
    };
    let table = Columns::new("cell", |row: &&MatrixRow| Cell::text(cell(view, row)))
        .right("gen. tok/s", get(MatrixFigure::GenerationTps))
        .right("latency s", get(MatrixFigure::Latency))
        .left("", |row| {
            let nothing = matrix::nothing(row).map(|_| matrix::short(row));
            let errors = || (0 < row.errors).then(|| format!("{} failed", row.errors));
            let partly = || row.ending.failure().map(|_| format!("partly {}", matrix::short(row)));
            Cell::text(nothing.or_else(errors).or_else(partly).unwrap_or_default())
        })
        .table("", "every row", rows);
    let notes = vec![plain("± 95 % between runs, or within the run where there is one")];
    (1..=40).contains(&rows.len()).then_some(Table { notes, ..table })
}
