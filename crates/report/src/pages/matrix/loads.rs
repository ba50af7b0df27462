//! One deployment at several loads: what more requests at once bring, and what they cost.

use inferometer_analysis::matrix::{LoadTable, MatrixFigure, MatrixRow};
use inferometer_analysis::set::Across;
use inferometer_model::campaign::Level;

use super::view::{self, View};
use super::{OPEN_MAX, folded, table};
use crate::chart::{Chart, LinePoint, LineSeries, Lines, LinesPanel, Measure, Plot, ScaleKind};
use crate::document::{Block, Section};
use crate::pages::words::level_name;
use crate::pages::{charts, frame};

pub(super) fn section(view: View<'_>) -> Option<Section> {
    let tables = &view.matrix.loads;
    let fold = OPEN_MAX < tables.len();
    let mut blocks = Vec::new();
    for (place, one) in (0..).zip(tables) {
        let rows: Vec<&MatrixRow> =
            one.presets.iter().flat_map(|(_, rows)| view.rows_at(rows)).collect();
        let title = title(view, one);
        let mut inner: Vec<Block> =
            chart(view, one, place).map(charts::figure).into_iter().collect();
        let id = (format!("loads-{place}-table"), title.clone());
        inner.push(Block::Table(table::of_rows(view, id, table::Lines::Loads, &rows)));
        blocks.extend(folded(fold, title, inner));
    }
    (!blocks.is_empty()).then(|| frame::section("loads", "Loads side by side", blocks))
}

fn title(view: View<'_>, table: &LoadTable) -> String {
    let mut parts = vec![view.model(table.model)];
    parts.extend(table.context.map(view::context_words));
    parts.extend(table.strategy.map(|strategy| view::strategy_name(strategy).to_owned()));
    parts.extend(view::flags_words(&table.flags.iter().cloned().collect()));
    parts.join(", ")
}

type OfRow = for<'v, 'r> fn(View<'v>, &'r MatrixRow) -> &'r Across;

/// What is drawn against the load: its heading, what its unit is that of, and where it stands.
const PANELS: [(&str, MatrixFigure, OfRow); 5] = [
    ("Generation TPS", MatrixFigure::GenerationTps, |view, row| {
        view.figure(row, MatrixFigure::GenerationTps)
    }),
    ("Prompt TPS", MatrixFigure::PromptTps, |view, row| view.figure(row, MatrixFigure::PromptTps)),
    ("Generation TPS of a request", MatrixFigure::GenerationTps, |_, row| {
        &row.request_generation_tps
    }),
    ("Mean latency", MatrixFigure::Latency, |_, row| &row.latency_s),
    ("Cost", MatrixFigure::Cost, |_, row| &row.cost_per_million),
];

fn panel(
    view: View<'_>,
    table: &LoadTable,
    (heading, figure, of): (&str, MatrixFigure, OfRow),
) -> Option<LinesPanel> {
    let series = table.presets.iter().map(|(preset, rows)| LineSeries {
        name: view.preset(*preset),
        points: view
            .rows_at(rows)
            .into_iter()
            .filter_map(|row| point(row, of(view, row)))
            .collect(),
    });
    let series: Vec<LineSeries> = series.collect();
    let is_empty = series.iter().all(|series| series.points.is_empty());
    let y = Measure { label: String::new(), unit: view.unit(figure), scale: ScaleKind::Linear };
    (!is_empty).then(|| LinesPanel { heading: heading.to_owned(), y, series })
}

fn chart(view: View<'_>, table: &LoadTable, place: u32) -> Option<Chart> {
    let panels: Vec<LinesPanel> =
        PANELS.into_iter().filter_map(|one| panel(view, table, one)).collect();
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

fn point(row: &MatrixRow, across: &Across) -> Option<LinePoint> {
    let reservation = view::reservation(row);
    Some(LinePoint {
        x: if row.level == Level::Unlimited { f64::INFINITY } else { row.level.place()? },
        y: across.mean.filter(|_| view::nothing(row).is_none())?,
        interval: across.doubt().map(|interval| (interval.low, interval.high)),
        hollow: reservation.is_some(),
        note: reservation,
    })
}

/// From the lowest load to the highest, of the preset that generates most.
fn finding(view: View<'_>, table: &LoadTable) -> String {
    let rows = table.presets.iter().flat_map(|(_, rows)| view.rows_at(rows));
    let figure = MatrixFigure::GenerationTps;
    let Some((best, value)) = view.best(rows, figure) else {
        return "No row is without errors, so none is the best.".to_owned();
    };
    let own = table.presets.iter().find(|(preset, _)| *preset == best.preset);
    let first = own.and_then(|(_, rows)| view.rows_at(rows).into_iter().next());
    let from = first
        .filter(|first| first.may_win() && first.level != best.level)
        .and_then(|first| Some((first.level, view.figure(first, figure).mean?)))
        .map_or_else(String::new, |(level, value)| {
            format!(", after {} at {}", view::digits(value), level_name(level))
        });
    format!(
        "Highest Generation TPS: {} with {} tok/s at {}{from}.",
        view.preset(best.preset),
        view::digits(value),
        level_name(best.level)
    )
}
