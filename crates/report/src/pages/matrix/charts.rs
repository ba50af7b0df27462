//! Charts of a matrix: bars of one figure, tiles over context lengths, lines over loads, and speed-ups.

use inferometer_analysis::matrix::{
    LoadTable, MatrixFigure, Speedup, StrategyRow, StrategyTable, Winner,
};

use super::{self as matrix, ONE_SIDE, SAME_DEPLOYMENT, View, compared, span_words};
use crate::chart::{TileRow, Tiles};
use crate::pages::charts::pair;
use crate::pages::prelude::*;

const NO_BEST: &str = "No row was measured without failures, so none is the best.";
/// More rows than these are only in the tables.
const TILE_ROWS_MAX: usize = 64;

fn figure_axis(view: View<'_>, figure: MatrixFigure) -> Measure {
    linear(matrix::figure_names(figure).0, &view.unit(figure))
}

fn bar(view: View<'_>, figure: MatrixFigure, row: &MatrixRow) -> Bar {
    let across = view.figure(row, figure);
    let reservation = matrix::reservation(row);
    let unknown = across.mean.is_none().then(|| across.reason.clone()).flatten();
    Bar {
        series: matrix::variant(row).unwrap_or_else(|| "all".to_owned()),
        value: view.mean(row, figure),
        interval: pair(across.confidence_interval()),
        hollow: reservation.is_some(),
        failed: matrix::is_lost(row),
        note: matrix::nothing(row).or(reservation).or(unknown),
        ..Bar::default()
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
        title: format!("{}: {subject}", matrix::figure_names(figure).0),
        finding: bars_finding(view, figure, rows),
        n: bars_n(view, figure, rows),
        plot: Plot::Bars(Bars { y: figure_axis(view, figure), groups }),
    })
}

fn failures(rows: &[&MatrixRow]) -> usize {
    rows.iter().filter(|row| matrix::reservation(row).is_some() && !matrix::is_lost(row)).count()
}

/// The winner, how certain its lead is, and how many rows cannot be compared.
fn bars_finding(view: View<'_>, figure: MatrixFigure, rows: &[&MatrixRow]) -> String {
    let question = rows.first().map(|row| (row.context, row.model, row.level));
    let is_own = |it: &Winner| Some((it.context, it.model, it.level)) == question;
    let winner = view.best_winner(figure, is_own);
    let row = winner.and_then(|winner| Some((winner, view.row(winner.row)?)));
    let mut sentences = vec![row.map_or_else(
        || NO_BEST.to_owned(),
        |(winner, row)| {
            let (best, deployment) = (matrix::best_word(figure), view.deployment(row));
            let (amount, lead) = (view.amount(figure, winner.value), view.lead(winner));
            let (certainty, _) = matrix::certainty_words(winner.certainty);
            format!("{best}: {deployment} with {amount}{lead} ({certainty}).")
        },
    )];
    let crosses = rows.iter().filter(|row| matrix::nothing(row).is_some()).count() as u64;
    let outlines = failures(rows) as u64;
    if 0 < outlines {
        sentences.push(format!("Outlines: {} with failures.", counted(outlines, "row")));
    }
    if 0 < crosses {
        sentences.push(format!("Nothing was measured in {}.", counted(crosses, "row")));
    }
    sentences.join(" ")
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
    let mut intervals =
        measured.iter().filter_map(|row| view.figure(row, figure).confidence_interval());
    let interval = match intervals.next() {
        None => "one run each, and no interval is known within it",
        Some(_) if is_repeated => "the thin bars are 95 % between runs",
        Some(_) => text("one-start-each"),
    };
    let requests = span(|row| row.requests, "request");
    format!("{requests} and {} each; {interval}.", span(|row| row.points.len() as u64, "run"))
}

/// Deployments against context lengths, for one model at one load.
pub(super) fn tiles(
    view: View<'_>,
    figure: MatrixFigure,
    (model, (level_index, level)): (u32, (usize, Level)),
) -> Option<Chart> {
    let is_own = |row: &&MatrixRow| row.model == model && row.level == level;
    let own: Vec<&MatrixRow> = view.matrix.rows.iter().filter(is_own).collect();
    let contexts: BTreeSet<u32> = view.matrix.rows.iter().filter_map(|row| row.context).collect();
    let mut labels = distinct(own.iter().map(|row| view.deployment(row)));
    let n = tiles_n(view, &own, labels.len());
    labels.truncate(TILE_ROWS_MAX);
    let row = |label: &String| {
        let rows = own.iter().filter(|row| view.deployment(row) == *label);
        let is_as_tensor = rows.clone().all(|row| view.is_as_tensor(row));
        let tile = |context: &u32| {
            let row = rows.clone().find(|row| row.context == Some(*context))?;
            let across = view.figure(row, figure);
            let bar = bar(view, figure, row);
            let certainty = || across.confidence_interval().map(|_| uncertainty(across));
            Some(Bar { note: bar.note.clone().or_else(certainty), ..bar })
        };
        TileRow {
            label: label.clone() + if is_as_tensor { " (as tensor)" } else { "" },
            tiles: contexts.iter().map(tile).collect(),
        }
    };
    let winner = view.best_winner(figure, |it| it.model == model && it.level == level)?;
    let best = view.row(winner.row)?;
    let load = view.level(level).map_or_else(String::new, |level| format!(", {level}"));
    let cost = if figure == MatrixFigure::Cost { "cost-" } else { "" };
    let (word, amount) = (matrix::best_word(figure), view.amount(figure, winner.value));
    let context = best.context.map(matrix::context_words).unwrap_or_default();
    Some(Chart {
        id: format!("overview-{cost}model-{model}-load-{level_index}"),
        title: format!("{}{load}: {}", view.model(model), matrix::figure_names(figure).0),
        finding: fill("tiles-finding", &[&word, &view.deployment(best), &context, &amount]),
        n,
        plot: Plot::Tiles(Tiles {
            value: figure_axis(view, figure),
            across: "Context (tokens)".to_owned(),
            columns: contexts.iter().map(|tokens| count((*tokens).into())).collect(),
            rows: labels.iter().map(row).collect(),
        }),
    })
}

/// The legend of tiles that are not shaded.
fn tiles_n(view: View<'_>, rows: &[&MatrixRow], deployments: usize) -> String {
    let hollow = failures(rows) as u64;
    let failed = rows.iter().filter(|row| matrix::is_lost(row)).count() as u64;
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

/// One deployment at several loads, a line for each preset.
pub(super) fn loads(view: View<'_>, table: &LoadTable, index: u32, title: &str) -> Option<Chart> {
    type Get<'a> = Box<dyn Fn(&MatrixRow) -> &AcrossRuns + 'a>;
    let rows = || table.presets.iter().flat_map(|(_, rows)| view.rows_at(rows));
    let panel = |heading: &str, figure: MatrixFigure, get: Get<'_>| {
        let point = |row: &MatrixRow| {
            let (across, reservation) = (get(row), matrix::reservation(row));
            Some(LinePoint {
                x: if row.level == Level::Unlimited { f64::INFINITY } else { row.level.place()? },
                y: across.mean.filter(|_| matrix::nothing(row).is_none())?,
                interval: pair(across.confidence_interval()),
                hollow: reservation.is_some(),
                note: reservation,
            })
        };
        let series = table.presets.iter().map(|(preset, rows)| LineSeries {
            name: view.preset(*preset),
            points: view.rows_at(rows).into_iter().filter_map(point).collect(),
        });
        Panel::new(heading, linear("", &view.unit(figure)), series.collect())
    };
    let of_figure = |figure| {
        panel(matrix::figure_names(figure).0, figure, Box::new(move |row| view.figure(row, figure)))
    };
    let generation = MatrixFigure::GenerationTps;
    let of_request: Get<'_> = Box::new(|row| &row.request_generation_tps);
    let mut panels = vec![
        of_figure(generation),
        of_figure(MatrixFigure::PromptTps),
        panel("Generation TPS of a request", generation, of_request),
        of_figure(MatrixFigure::Latency),
        of_figure(MatrixFigure::Cost),
    ];
    panels.retain(|panel| panel.series.iter().any(|series| !series.points.is_empty()));
    let has_rates = rows().any(|row| matches!(row.level, Level::Rate(_)));
    let (label, unit) = if has_rates { ("Request rate", "req/s") } else { ("Concurrency", "") };
    (!panels.is_empty()).then(|| Chart {
        id: format!("loads-{index}"),
        title: format!("Results by load: {title}"),
        finding: loads_finding(view, &rows().collect::<Vec<_>>()),
        n: "Hollow marks have failures; a row without results has no mark.".to_owned(),
        plot: Plot::Lines(Lines {
            x: measure(label, unit, ScaleKind::Log),
            ticks_at_points: true,
            panels,
        }),
    })
}

/// The preset with the highest generation TPS, at its best load and at its lowest.
fn loads_finding(view: View<'_>, rows: &[&MatrixRow]) -> String {
    let figure = MatrixFigure::GenerationTps;
    let best = figure.best((0_u32..).zip(rows.iter().copied()), view.tps_by);
    let Some((index, value)) = best else { return NO_BEST.to_owned() };
    let best = rows[index as usize];
    let first = rows.iter().find(|row| row.preset == best.preset);
    let lowest = first
        .filter(|first| first.may_win() && first.level != best.level)
        .and_then(|first| Some((first.level, view.figure(first, figure).mean?)))
        .map_or_else(String::new, |(level, value)| {
            format!(", {} at {}", fmt::number(value), level_name(level))
        });
    let (preset, level) = (view.preset(best.preset), level_name(best.level));
    fill("highest-generation", &[&preset, &number(value), &level, &lowest])
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
                note: match found {
                    None => Some(ONE_SIDE.to_owned()),
                    Some(_) => row.same_deployment.then(|| SAME_DEPLOYMENT.to_owned()),
                },
                ..Bar::default()
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
        finding: format!("Generation on several GPUs: {}.", span_words(compared(table))),
        n: format!("{interval} Outlines: one GPU, where both are the same deployment."),
        plot: Plot::Bars(Bars {
            y: linear("Tensor over pipeline", "%"),
            groups: table.rows.iter().map(group).collect(),
        }),
    })
}
