//! Bars of one figure: a group for each preset, strategies side by side. A cell with errors is an
//! outline, and one that failed a cross with its reason.

use inferometer_analysis::matrix::{MatrixFigure, MatrixRow};

use super::view::{self, View};
use super::winners;
use crate::chart::{Bar, BarGroup, Bars, Chart, Measure, Plot, ScaleKind};
use crate::number::count;
use crate::pages::words::counted;

/// `None` where no row has the figure.
pub(super) fn of_rows(
    view: View<'_>,
    figure: MatrixFigure,
    (id, of): (&str, &str),
    rows: &[&MatrixRow],
) -> Option<Chart> {
    if rows.iter().all(|row| view.mean(row, figure).is_none()) {
        return None;
    }
    let name = view::figure_name(figure);
    let mut presets: Vec<u32> = Vec::new();
    for row in rows {
        if !presets.contains(&row.preset) {
            presets.push(row.preset);
        }
    }
    let group = |preset: u32| BarGroup {
        label: view.preset(preset),
        bars: rows
            .iter()
            .filter(|row| row.preset == preset)
            .map(|row| bar(view, figure, row))
            .collect(),
    };
    Some(Chart {
        id: id.to_owned(),
        title: format!("{name}: {of}"),
        finding: finding(view, figure, rows),
        n: behind(view, figure, rows),
        plot: Plot::Bars(Bars {
            y: Measure {
                label: name.to_owned(),
                unit: view.unit(figure),
                scale: ScaleKind::Linear,
            },
            groups: presets.into_iter().map(group).collect(),
        }),
    })
}

fn bar(view: View<'_>, figure: MatrixFigure, row: &MatrixRow) -> Bar {
    let across = view.figure(row, figure);
    let nothing = view::nothing(row);
    let reservation = view::reservation(row);
    let unknown = across.mean.is_none().then(|| across.reason.clone()).flatten();
    Bar {
        series: view::variant(row).unwrap_or_else(|| "all".to_owned()),
        value: view.mean(row, figure),
        interval: across.doubt().map(|interval| (interval.low, interval.high)),
        hollow: reservation.is_some(),
        failed: view::is_lost(row),
        note: nothing.or(reservation).or(unknown),
    }
}

/// The best, how surely it is ahead, and how many cannot be compared.
fn finding(view: View<'_>, figure: MatrixFigure, rows: &[&MatrixRow]) -> String {
    let best = view.best(rows.iter().copied(), figure);
    let mut sentences = vec![best.map_or_else(
        || "No row is without errors, so none is the best.".to_owned(),
        |(row, value)| {
            let certainty = winners::ahead_of_section(view, row, figure)
                .unwrap_or_else(|| lead_of(view, figure, (row, rows)).to_owned());
            format!(
                "{}: {} with {} {}{certainty}.",
                view::best_word(figure),
                view.deployment(row),
                view::digits(value),
                view.unit(figure)
            )
        },
    )];
    let is_hollow = |row: &&&MatrixRow| view::reservation(row).is_some() && !view::is_lost(row);
    let outlines = rows.iter().filter(is_hollow).count();
    let crosses = rows.iter().filter(|row| view::nothing(row).is_some()).count();
    if 0 < outlines {
        sentences.push(format!("Outlines: {} with failures.", counted(outlines as u64, "row")));
    }
    if 0 < crosses {
        sentences.push(format!("Nothing was measured in {}.", counted(crosses as u64, "row")));
    }
    sentences.join(" ")
}

/// How surely the best of rows is the best, where the summary does not ask.
fn lead_of(
    view: View<'_>,
    figure: MatrixFigure,
    (best, rows): (&MatrixRow, &[&MatrixRow]),
) -> &'static str {
    let others = rows.iter().copied().filter(|row| !std::ptr::eq(*row, best));
    let Some((next, _)) = view.best(others, figure) else { return " (alone)" };
    let ends = |row: &MatrixRow| view.figure(row, figure).interval;
    match (ends(best), ends(next)) {
        (Some(one), Some(other)) if one.high < other.low || other.high < one.low => "",
        (Some(_), Some(_)) => " (undecided)",
        _ => " (not known: one run)",
    }
}

/// Requests and runs that each bar is made of.
fn behind(view: View<'_>, figure: MatrixFigure, rows: &[&MatrixRow]) -> String {
    let measured: Vec<&&MatrixRow> = rows.iter().filter(|row| !row.points.is_empty()).collect();
    let span = |of: fn(&MatrixRow) -> u64| {
        let values = measured.iter().map(|row| of(row));
        values.clone().min().zip(values.max())
    };
    let words = |span: Option<(u64, u64)>, one: &str| match span {
        Some((low, high)) if low == high => counted(high, one),
        Some((low, high)) => format!("{} to {}", count(low), counted(high, one)),
        None => format!("no {one}"),
    };
    let runs = span(|row| row.points.len() as u64);
    let has_interval = measured.iter().any(|row| view.figure(row, figure).doubt().is_some());
    let doubt = match runs {
        _ if !has_interval => "one run each, and no interval is known within it",
        Some((low, _)) if 1 < low => "the thin bars are 95 % between runs",
        _ => {
            "what another start of the server changes is not known of one run; thin bars are 95 % \
             within it"
        }
    };
    let requests = words(span(|row| row.requests), "request");
    format!("{requests} and {} each; {doubt}.", words(runs, "run"))
}
