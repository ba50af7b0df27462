//! One deployment at several loads: what more requests at once bring, and what they cost.

use inferometer_analysis::matrix::{LoadTable, MatrixFigure, MatrixRow};
use inferometer_model::campaign::Level;

use super::view::{self, View};
use super::{OPEN_MAX, folded};
use crate::chart::{Chart, LinePoint, LineSeries, Lines, LinesPanel, Measure, Plot, ScaleKind};
use crate::document::Section;
use crate::number::figure as written;
use crate::pages::words::level_name;
use crate::pages::{charts, frame};

pub(super) fn section(view: View<'_>) -> Option<Section> {
    let drawn: Vec<Chart> = (0..)
        .zip(&view.matrix.loads)
        .filter_map(|(place, table)| chart(view, table, place))
        .collect();
    if drawn.is_empty() {
        return None;
    }
    let fold = OPEN_MAX < drawn.len();
    let block = |chart: Chart| {
        let summary = chart.title.clone();
        folded(fold, summary, vec![charts::figure(chart)])
    };
    let blocks = drawn.into_iter().flat_map(block).collect();
    Some(frame::section("loads", "Loads side by side", blocks))
}

fn title(view: View<'_>, table: &LoadTable) -> String {
    let mut parts = vec![view.model(table.model)];
    parts.extend(table.context.map(view::context_words));
    parts.extend(table.strategy.map(|strategy| view::strategy_name(strategy).to_owned()));
    parts.extend(view::flags_words(&table.flags.iter().cloned().collect()));
    parts.join(", ")
}

fn chart(view: View<'_>, table: &LoadTable, place: u32) -> Option<Chart> {
    const FIGURES: [MatrixFigure; 3] =
        [MatrixFigure::GenerationTps, MatrixFigure::Latency, MatrixFigure::Cost];
    let panel = |figure: MatrixFigure| {
        let series: Vec<LineSeries> = table
            .presets
            .iter()
            .map(|(preset, rows)| LineSeries {
                name: view.preset(*preset),
                points: view
                    .rows_at(rows)
                    .into_iter()
                    .filter_map(|row| point(view, figure, row))
                    .collect(),
            })
            .collect();
        let is_empty = series.iter().all(|series| series.points.is_empty());
        let unit = view.unit(figure);
        let y = Measure { label: String::new(), unit, scale: ScaleKind::Linear };
        let heading = view::figure_name(figure).to_owned();
        (!is_empty).then_some(LinesPanel { heading, y, series })
    };
    let panels: Vec<LinesPanel> = FIGURES.into_iter().filter_map(panel).collect();
    if panels.is_empty() {
        return None;
    }
    let title = title(view, table);
    Some(Chart {
        id: format!("loads-{place}"),
        title: format!("Loads side by side: {title}"),
        finding: finding(view, table),
        n: "Hollow marks have failures; a row that came to nothing has no mark.".to_owned(),
        plot: Plot::Lines(Lines { x: axis(view, table), ticks_at_points: true, panels }),
    })
}

fn axis(view: View<'_>, table: &LoadTable) -> Measure {
    let rows = || table.presets.iter().flat_map(|(_, rows)| view.rows_at(rows));
    let is_rate = rows().any(|row| matches!(row.level, Level::Rate(_)));
    let (label, unit) = if is_rate { ("Request rate", "req/s") } else { ("Concurrency", "") };
    Measure { label: label.to_owned(), unit: unit.to_owned(), scale: ScaleKind::Log }
}

fn point(view: View<'_>, figure: MatrixFigure, row: &MatrixRow) -> Option<LinePoint> {
    let across = view.figure(row, figure);
    let reservation = view::reservation(row);
    Some(LinePoint {
        x: if row.level == Level::Unlimited { f64::INFINITY } else { row.level.place()? },
        y: across.mean?,
        interval: across.doubt().map(|interval| (interval.low, interval.high)),
        hollow: reservation.is_some(),
        note: reservation,
    })
}

/// From the lowest load to the highest, of the preset that generates most.
fn finding(view: View<'_>, table: &LoadTable) -> String {
    let rows = table.presets.iter().flat_map(|(_, rows)| view.rows_at(rows));
    let figure = MatrixFigure::GenerationTps;
    let Some((best, value)) = view::best(view, rows, figure) else {
        return "No row is without errors, so none is the best.".to_owned();
    };
    let own = table.presets.iter().find(|(preset, _)| *preset == best.preset);
    let first = own.and_then(|(_, rows)| view.rows_at(rows).into_iter().next());
    let from = first
        .filter(|first| view::is_clean(first) && first.level != best.level)
        .and_then(|first| Some((first.level, view.figure(first, figure).mean?)))
        .map_or_else(String::new, |(level, value)| {
            format!(", after {} at {}", written(Some(value)), level_name(level))
        });
    format!(
        "Highest Generation TPS: {} with {} tok/s at {}{from}.",
        view.preset(best.preset),
        written(Some(value)),
        level_name(best.level)
    )
}
