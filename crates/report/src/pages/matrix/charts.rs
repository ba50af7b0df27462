//! Charts of a matrix: bars of one figure, tiles over context lengths, lines over loads, and speed-ups.

use inferometer_analysis::matrix::{
    LoadTable, MatrixFigure, MatrixRow, Speedup, StrategyRow, StrategyTable,
};
use inferometer_analysis::set::AcrossRuns;
use inferometer_model::study::Level;

use super::view::{self, View};
use super::{SAME_DEPLOYMENT, compared, span_words};
use crate::chart::{
    Bar, BarGroup, Bars, Chart, LinePoint, LineSeries, Lines, LinesPanel, Measure, Plot, ScaleKind,
    Tile, TileRow, Tiles,
};
use crate::fmt::{self, count, counted, level_name, uncertainty};
use crate::pages::charts::{measure, pair};
use crate::pages::distinct;

const NO_BEST: &str = "No row was measured without failures, so none is the best.";
/// More rows than these are only in the tables.
const TILE_ROWS_MAX: usize = 64;

fn linear(view: View<'_>, figure: MatrixFigure) -> Measure {
    measure(view::figure_name(figure), &view.unit(figure), ScaleKind::Linear)
}

fn bar(view: View<'_>, figure: MatrixFigure, row: &MatrixRow) -> Bar {
    let across = view.figure(row, figure);
    let reservation = view::reservation(row);
    let unknown = across.mean.is_none().then(|| across.reason.clone()).flatten();
    Bar {
        series: view::variant(row).unwrap_or_else(|| "all".to_owned()),
        value: view.mean(row, figure),
        interval: pair(across.doubt()),
        hollow: reservation.is_some(),
        failed: view::is_lost(row),
        note: view::nothing(row).or(reservation).or(unknown),
    }
}

/// A group of bars for each preset, strategies side by side; `None` where no row has the figure. A
/// row with failures is an outline, and one without numbers a cross with its reason.
pub(super) fn bars(
    view: View<'_>,
    figure: MatrixFigure,
    (id, subject): (&str, &str),
    rows: &[&MatrixRow],
) -> Option<Chart> {
    if rows.iter().all(|row| view.mean(row, figure).is_none()) {
        return None;
    }
    let group = |preset: u32| BarGroup {
        label: view.preset(preset),
        bars: rows
            .iter()
            .filter(|row| row.preset == preset)
            .map(|row| bar(view, figure, row))
            .collect(),
    };
    let groups = distinct(rows.iter().map(|row| row.preset)).into_iter().map(group).collect();
    Some(Chart {
        id: id.to_owned(),
        title: format!("{}: {subject}", view::figure_name(figure)),
        finding: bars_finding(view, figure, rows),
        n: bars_n(view, figure, rows),
        plot: Plot::Bars(Bars { y: linear(view, figure), groups }),
    })
}

fn failures(rows: &[&MatrixRow]) -> usize {
    rows.iter().filter(|row| view::reservation(row).is_some() && !view::is_lost(row)).count()
}

/// The best, how certain its lead is, and how many rows cannot be compared.
fn bars_finding(view: View<'_>, figure: MatrixFigure, rows: &[&MatrixRow]) -> String {
    let best = view.best(rows.iter().copied(), figure);
    let mut sentences = vec![best.map_or_else(
        || NO_BEST.to_owned(),
        |(row, value)| {
            let best = view::best_of(figure);
            let lead = lead(view, figure, (row, rows));
            let amount = view.amount(figure, value);
            format!(
                "{}: {} with {amount}{lead}.",
                best.split(' ').next().unwrap_or_default(),
                view.deployment(row)
            )
        },
    )];
    let crosses = rows.iter().filter(|row| view::nothing(row).is_some()).count() as u64;
    let outlines = failures(rows) as u64;
    if 0 < outlines {
        sentences.push(format!("Outlines: {} with failures.", counted(outlines, "row")));
    }
    if 0 < crosses {
        sentences.push(format!("Nothing was measured in {}.", counted(crosses, "row")));
    }
    sentences.join(" ")
}

/// How far the best is ahead of the next, at the end of a sentence.
fn lead(view: View<'_>, figure: MatrixFigure, (best, rows): (&MatrixRow, &[&MatrixRow])) -> String {
    if let Some(winner) = view.winner(best, figure) {
        let certainty = view::certainty_word(winner.certainty);
        return match (view.runner_up(winner), &winner.ahead) {
            (Some(next), Some(ahead)) => {
                let share = super::signed_percent(ahead.share);
                format!(", {} ahead of {next} ({certainty})", share.trim_start_matches('+'))
            }
            _ => format!(" ({certainty})"),
        };
    }
    let others = rows.iter().copied().filter(|row| !std::ptr::eq(*row, best));
    let Some((next, _)) = view.best(others, figure) else { return " (alone)".to_owned() };
    match [best, next].map(|row| view.figure(row, figure).interval) {
        [Some(one), Some(other)] if one.high < other.low || other.high < one.low => "",
        [Some(_), Some(_)] => " (undecided)",
        _ => " (one run)",
    }
    .to_owned()
}

/// Requests and runs behind each bar.
fn bars_n(view: View<'_>, figure: MatrixFigure, rows: &[&MatrixRow]) -> String {
    let measured: Vec<&&MatrixRow> = rows.iter().filter(|row| !row.points.is_empty()).collect();
    let span = |of: fn(&MatrixRow) -> u64, one: &str| {
        let values = measured.iter().map(|row| of(row));
        match (values.clone().min(), values.max()) {
            (Some(low), Some(high)) if low == high => counted(high, one),
            (Some(low), Some(high)) => format!("{} to {}", count(low), counted(high, one)),
            _ => format!("no {one}"),
        }
    };
    let is_repeated = measured.iter().all(|row| 1 < row.points.len()) && !measured.is_empty();
    let interval = if !measured.iter().any(|row| view.figure(row, figure).doubt().is_some()) {
        "one run each, and no interval is known within it"
    } else if is_repeated {
        "the thin bars are 95 % between runs"
    } else {
        "one run does not show what another start of the server changes; thin bars are 95 % within it"
    };
    let requests = span(|row| row.requests, "request");
    format!("{requests} and {} each; {interval}.", span(|row| row.points.len() as u64, "run"))
}

/// Deployments against context lengths, for one model at one load.
pub(super) fn tiles(
    view: View<'_>,
    figure: MatrixFigure,
    (model, level): (u32, (usize, Level)),
) -> Option<Chart> {
    let (level_index, level) = level;
    let is_own = |row: &&MatrixRow| row.model == model && row.level == level;
    let own: Vec<&MatrixRow> = view.matrix.rows.iter().filter(is_own).collect();
    let mut contexts: Vec<u32> = view.matrix.rows.iter().filter_map(|row| row.context).collect();
    contexts.sort_unstable();
    contexts.dedup();
    let mut labels = distinct(own.iter().map(|row| view.deployment(row)));
    let deployments = labels.len();
    labels.truncate(TILE_ROWS_MAX);
    let row = |label: &String| {
        let rows: Vec<&&MatrixRow> =
            own.iter().filter(|row| view.deployment(row) == *label).collect();
        let is_as_tensor = rows.iter().all(|row| view.is_as_tensor(row));
        let at = |context: &u32| rows.iter().find(|row| row.context == Some(*context));
        TileRow {
            label: label.clone() + if is_as_tensor { " (as tensor)" } else { "" },
            tiles: contexts.iter().map(|at_| Some(tile(view, figure, at(at_)?))).collect(),
        }
    };
    let (best, value) = view.best(own.iter().copied(), figure)?;
    let load = view.level(level).map_or_else(String::new, |level| format!(", {level}"));
    let cost = if figure == MatrixFigure::Cost { "cost-" } else { "" };
    let best_word = view::best_of(figure);
    Some(Chart {
        id: format!("overview-{cost}model-{model}-load-{level_index}"),
        title: format!("{}{load}: {}", view.model(model), view::figure_name(figure)),
        finding: format!(
            "{}: {} at {}, {}.",
            best_word.split(' ').next().unwrap_or_default(),
            view.deployment(best),
            best.context.map(view::context_words).unwrap_or_default(),
            view.amount(figure, value)
        ),
        n: tiles_n(view, &own, deployments),
        plot: Plot::Tiles(Tiles {
            value: linear(view, figure),
            across: "Context (tokens)".to_owned(),
            columns: contexts.iter().map(|tokens| count((*tokens).into())).collect(),
            rows: labels.iter().map(row).collect(),
        }),
    })
}

fn tile(view: View<'_>, figure: MatrixFigure, row: &MatrixRow) -> Tile {
    let across = view.figure(row, figure);
    let Bar { value, hollow, failed, note, .. } = bar(view, figure, row);
    let note = note.or_else(|| across.doubt().map(|_| uncertainty(across)));
    Tile { value, hollow, failed, note }
}

/// The legend of tiles that are not shaded.
fn tiles_n(view: View<'_>, rows: &[&MatrixRow], deployments: usize) -> String {
    let hollow = failures(rows) as u64;
    let failed = rows.iter().filter(|row| view::is_lost(row)).count() as u64;
    let mut parts = vec!["Darker is more on a light page, brighter on a dark page".to_owned()];
    if 0 < hollow {
        parts.push(format!("outlines have failures ({})", counted(hollow, "cell")));
    }
    if 0 < failed {
        parts.push(format!("crosses failed ({})", counted(failed, "cell")));
    }
    if rows.iter().any(|row| view.is_as_tensor(row)) {
        parts.push("as tensor: on one GPU a pipeline is the same server".to_owned());
    }
    if TILE_ROWS_MAX < deployments {
        parts.push(format!("the first {TILE_ROWS_MAX} of {deployments} deployments are drawn"));
    }
    format!("{}.", parts.join("; "))
}

/// Panels over the load: a figure, or another value in its unit with a heading of its own.
type Panel = (MatrixFigure, Option<(&'static str, fn(&MatrixRow) -> &AcrossRuns)>);

const PANELS: [Panel; 5] = [
    (MatrixFigure::GenerationTps, None),
    (MatrixFigure::PromptTps, None),
    (
        MatrixFigure::GenerationTps,
        Some(("Generation TPS of a request", |row| &row.request_generation_tps)),
    ),
    (MatrixFigure::Latency, None),
    (MatrixFigure::Cost, None),
];

/// One deployment at several loads, a line for each preset.
pub(super) fn loads(view: View<'_>, table: &LoadTable, index: u32, title: &str) -> Option<Chart> {
    let panel = |(figure, other): Panel| {
        let heading = other.map_or_else(|| view::figure_name(figure), |(heading, _)| heading);
        let point = |row| {
            load_point(row, other.map_or_else(|| view.figure(row, figure), |(_, get)| get(row)))
        };
        let series = table.presets.iter().map(|(preset, rows)| LineSeries {
            name: view.preset(*preset),
            points: view.rows_at(rows).into_iter().filter_map(point).collect(),
        });
        let series: Vec<LineSeries> = series.collect();
        let is_empty = series.iter().all(|series| series.points.is_empty());
        let y = measure("", &view.unit(figure), ScaleKind::Linear);
        (!is_empty).then(|| LinesPanel { heading: heading.to_owned(), y, series })
    };
    let panels: Vec<LinesPanel> = PANELS.into_iter().filter_map(panel).collect();
    let mut rows = table.presets.iter().flat_map(|(_, rows)| view.rows_at(rows));
    let has_rates = rows.any(|row| matches!(row.level, Level::Rate(_)));
    let (label, unit) = if has_rates { ("Request rate", "req/s") } else { ("Concurrency", "") };
    (!panels.is_empty()).then(|| Chart {
        id: format!("loads-{index}"),
        title: format!("Results by load: {title}"),
        finding: loads_finding(view, table),
        n: "Hollow marks have failures; a row without results has no mark.".to_owned(),
        plot: Plot::Lines(Lines {
            x: measure(label, unit, ScaleKind::Log),
            ticks_at_points: true,
            panels,
        }),
    })
}

fn load_point(row: &MatrixRow, across: &AcrossRuns) -> Option<LinePoint> {
    let reservation = view::reservation(row);
    Some(LinePoint {
        x: if row.level == Level::Unlimited { f64::INFINITY } else { row.level.place()? },
        y: across.mean.filter(|_| view::nothing(row).is_none())?,
        interval: pair(across.doubt()),
        hollow: reservation.is_some(),
        note: reservation,
    })
}

/// The preset that generates most, at its best load and at its lowest.
fn loads_finding(view: View<'_>, table: &LoadTable) -> String {
    let rows = table.presets.iter().flat_map(|(_, rows)| view.rows_at(rows));
    let figure = MatrixFigure::GenerationTps;
    let Some((best, value)) = view.best(rows, figure) else { return NO_BEST.to_owned() };
    let own = table.presets.iter().find(|(preset, _)| *preset == best.preset);
    let first = own.and_then(|(_, rows)| view.rows_at(rows).into_iter().next());
    let lowest = first
        .filter(|first| first.may_win() && first.level != best.level)
        .and_then(|first| Some((first.level, view.figure(first, figure).mean?)))
        .map_or_else(String::new, |(level, value)| {
            format!(", {} at {}", fmt::number(value), level_name(level))
        });
    format!(
        "Highest Generation TPS: {} with {} tok/s at {}{lowest}.",
        view.preset(best.preset),
        fmt::number(value),
        level_name(best.level)
    )
}

/// Speed-ups of tensor over pipeline parallelism; `None` where no pair can be compared.
pub(super) fn speedups(
    view: View<'_>,
    table: &StrategyTable,
    index: usize,
    title: &str,
) -> Option<Chart> {
    compared(table).next()?;
    let group = |row: &StrategyRow| {
        let sides = [("prompt", &row.prompt_speedup), ("generation", &row.generation_speedup)];
        let bar = |(series, found): (&str, &Option<Speedup>)| {
            let found = found.as_ref();
            let interval = pair(found.and_then(|found| found.interval));
            Bar {
                series: series.to_owned(),
                value: found.map(|found| found.share * 100.0),
                interval: interval.map(|(low, high)| (low * 100.0, high * 100.0)),
                hollow: row.same_deployment,
                failed: false,
                note: match found {
                    None => Some("one side has errors or no result".to_owned()),
                    Some(_) => row.same_deployment.then(|| SAME_DEPLOYMENT.to_owned()),
                },
            }
        };
        BarGroup { label: view.preset(row.preset), bars: sides.map(bar).into() }
    };
    let interval = if compared(table).any(|found| found.interval.is_some()) {
        "The thin bars are 95 %; where one crosses zero it is open which is faster."
    } else {
        "No interval is known."
    };
    Some(Chart {
        id: format!("strategies-{index}-chart"),
        title: format!("Speed-up of tensor over pipeline parallelism: {title}"),
        finding: format!("Generation on several GPUs: {}.", span_words(table)),
        n: format!("{interval} Outlines: one GPU, where both are the same deployment."),
        plot: Plot::Bars(Bars {
            y: measure("Tensor over pipeline", "%", ScaleKind::Linear),
            groups: table.rows.iter().map(group).collect(),
        }),
    })
}
