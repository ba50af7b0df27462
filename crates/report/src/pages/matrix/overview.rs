//! All cells at once: presets against context lengths, a picture for each model and load.

use inferometer_analysis::matrix::{MatrixFigure, MatrixRow};
use inferometer_model::campaign::Level;

use super::OPEN_MAX;
use super::folded;
use super::view::{self, View};
use crate::chart::{Chart, Measure, Plot, ScaleKind, Tile, TileRow, Tiles};
use crate::document::{Block, Section, plain};
use crate::number::count;
use crate::pages::charts;
use crate::pages::frame;
use crate::pages::words::{counted, level_name};

/// More rows than these are read in the tables.
const ROWS_MAX: usize = 64;

/// `None` where context lengths are not varied: the sections then have all of it.
pub(super) fn section(view: View<'_>) -> Option<Section> {
    if !view.has_contexts() {
        return None;
    }
    let blocks = figures(view, MatrixFigure::GenerationTps);
    let mut sections = Vec::new();
    if view.has(MatrixFigure::Cost) {
        let note = "Prices are those of the matrix file, per hour of a preset; what a server costs while \
                    it is put up is not in them.";
        let mut blocks = vec![Block::Paragraph(plain(note))];
        blocks.extend(figures(view, MatrixFigure::Cost));
        sections.push(frame::section("cost", "Cost per million generated tokens", blocks));
    }
    Some(Section {
        sections,
        ..frame::section("overview", "Generation TPS by preset and context length", blocks)
    })
}

fn figures(view: View<'_>, figure: MatrixFigure) -> Vec<Block> {
    let levels = levels(&view.matrix.rows);
    let mut drawn = Vec::new();
    for (model, _) in (0_u32..).zip(&view.matrix.models) {
        for level in &levels {
            drawn.extend(chart(view, figure, (model, *level)));
        }
    }
    let fold = OPEN_MAX < drawn.len();
    let block = |chart: Chart| {
        let summary = chart.title.clone();
        folded(fold, summary, vec![charts::figure(chart)])
    };
    drawn.into_iter().flat_map(block).collect()
}

fn contexts(rows: &[MatrixRow]) -> Vec<u32> {
    let mut contexts: Vec<u32> = rows.iter().filter_map(|row| row.context).collect();
    contexts.sort_unstable();
    contexts.dedup();
    contexts
}

pub(super) fn levels(rows: &[MatrixRow]) -> Vec<Level> {
    let mut levels: Vec<Level> = Vec::new();
    for row in rows {
        if !levels.contains(&row.level) {
            levels.push(row.level);
        }
    }
    levels
}

fn chart(view: View<'_>, figure: MatrixFigure, (model, level): (u32, Level)) -> Option<Chart> {
    let is_own = |row: &&MatrixRow| row.model == model && row.level == level;
    let own: Vec<&MatrixRow> = view.matrix.rows.iter().filter(is_own).collect();
    let contexts = contexts(&view.matrix.rows);
    let mut labels: Vec<String> = Vec::new();
    for row in &own {
        let label = view.deployment(row);
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    let all = labels.len();
    labels.truncate(ROWS_MAX);
    let tile = |label: &str, context: u32| {
        let of = |row: &&&MatrixRow| row.context == Some(context) && view.deployment(row) == *label;
        own.iter().find(of).map(|row| self::tile(view, figure, row))
    };
    let rows = labels.iter().map(|label| TileRow {
        label: labelled(view, &own, label),
        tiles: contexts.iter().map(|context| tile(label, *context)).collect(),
    });
    let rows: Vec<TileRow> = rows.collect();
    let (best, value) = view.best(own.iter().copied(), figure)?;
    let load = view.level(level).map_or_else(String::new, |_| format!(", {}", level_name(level)));
    let place = levels(&view.matrix.rows).iter().position(|known| *known == level)?;
    let cost = if figure == MatrixFigure::Cost { "cost-" } else { "" };
    Some(Chart {
        id: format!("overview-{cost}model-{model}-load-{place}"),
        title: format!("{}{load}: {}", view.model(model), view::figure_name(figure)),
        finding: format!(
            "{}: {} at {}, {} {}.",
            view::best_word(figure),
            view.deployment(best),
            best.context.map(view::context_words).unwrap_or_default(),
            view::digits(value),
            view.unit(figure)
        ),
        n: behind(view, &own, all),
        plot: Plot::Tiles(Tiles {
            value: Measure {
                label: view::figure_name(figure).to_owned(),
                unit: view.unit(figure),
                scale: ScaleKind::Linear,
            },
            across: "Context (tokens)".to_owned(),
            columns: contexts.iter().map(|tokens| count((*tokens).into())).collect(),
            rows,
        }),
    })
}

/// Says of a row that shows the same servers twice that it does.
fn labelled(view: View<'_>, rows: &[&MatrixRow], label: &str) -> String {
    let mut own = rows.iter().filter(|row| view.deployment(row) == label);
    if own.all(|row| view.is_as_tensor(row)) {
        format!("{label} (as tensor)")
    } else {
        label.to_owned()
    }
}

fn tile(view: View<'_>, figure: MatrixFigure, row: &MatrixRow) -> Tile {
    let across = view.figure(row, figure);
    let nothing = view::nothing(row);
    let reservation = view::reservation(row);
    let interval = across.doubt().map(|_| crate::pages::words::doubt(across));
    let unknown = across.mean.is_none().then(|| across.reason.clone()).flatten();
    Tile {
        value: view.mean(row, figure),
        hollow: reservation.is_some(),
        failed: view::is_lost(row),
        note: nothing.or(reservation).or(unknown).or(interval),
    }
}

/// What tiles that are not shaded are, as many as there are.
fn behind(view: View<'_>, rows: &[&MatrixRow], labels: usize) -> String {
    let is_hollow = |row: &&&MatrixRow| view::reservation(row).is_some() && !view::is_lost(row);
    let hollow = rows.iter().filter(is_hollow).count();
    let failed = rows.iter().filter(|row| view::is_lost(row)).count();
    let mut parts = vec!["Darker is more on light ground, brighter on dark".to_owned()];
    if 0 < hollow {
        parts.push(format!("outlines have failures ({})", counted(hollow as u64, "cell")));
    }
    if 0 < failed {
        parts.push(format!("crosses came to nothing ({})", counted(failed as u64, "cell")));
    }
    if rows.iter().any(|row| view.is_as_tensor(row)) {
        parts.push("as tensor: on one GPU a pipeline is the same server".to_owned());
    }
    if ROWS_MAX < labels {
        parts.push(format!("the first {ROWS_MAX} of {labels} deployments are drawn"));
    }
    format!("{}.", parts.join("; "))
}
