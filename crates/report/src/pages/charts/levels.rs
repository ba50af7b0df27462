//! Throughput and latency against the load.

use inferometer_analysis::set::LevelSummary;
use inferometer_model::campaign::Level;

use super::{measure, pair};
use crate::chart::{Chart, LinePoint, LineSeries, Lines, LinesPanel, Measure, Plot, ScaleKind};
use crate::number::{figure, fixed};
use crate::pages::rows::{Row, Series};
use crate::pages::words::{counted, level_cell, level_name, listed};

/// Levels so far apart are told apart only where steps are multiples.
const SPAN_OF_LOG: f64 = 8.0;

/// All requests together, and each user's share.
pub(in crate::pages) fn throughput(series: &[Series<'_>]) -> Option<Chart> {
    let wanted = [
        ("Output throughput", "output_throughput", "tok/s"),
        ("Per user", "per_user_throughput", "tok/s"),
    ];
    let lines = lines(series, &wanted)?;
    let sentences: Vec<String> =
        series.iter().filter_map(|one| rise(one, 1 < series.len())).collect();
    Some(Chart {
        id: "throughput-by-level".to_owned(),
        title: format!("Output throughput against {}", axis(series).0.to_lowercase()),
        finding: sentences.join(" "),
        n: behind(series),
        plot: Plot::Lines(lines),
    })
}

/// The slowest of a hundred, at each load.
pub(in crate::pages) fn latency(series: &[Series<'_>]) -> Option<Chart> {
    let is_rate = axis(series).1 == Kind::Rate;
    let ttft = if is_rate { "ttft_schedule.p99" } else { "ttft.p99" };
    let title = if is_rate { "TTFT from schedule, p99" } else { "TTFT p99" };
    let wanted = [(title, ttft, "ms"), ("TPOT p99", "tpot.p99", "ms")];
    let lines = lines(series, &wanted)?;
    let several = 1 < series.len();
    let sentences: Vec<String> = series
        .iter()
        .filter_map(|one| {
            let grown = wanted.iter().filter_map(|(title, name, _)| growth(one, title, name));
            let parts: Vec<String> = grown.collect();
            let head = if several { format!("{}: ", one.name) } else { String::new() };
            (!parts.is_empty()).then(|| format!("{head}{}.", parts.join("; ")))
        })
        .collect();
    Some(Chart {
        id: "latency-by-level".to_owned(),
        title: format!("Latency against {}", axis(series).0.to_lowercase()),
        finding: sentences.join(" "),
        n: behind(series),
        plot: Plot::Lines(lines),
    })
}

/// The first panel of the chart as text, in the notation that Markdown readers draw.
pub(in crate::pages) fn mermaid(series: &Series<'_>) -> Option<String> {
    let points: Vec<(String, f64)> = series
        .rows
        .iter()
        .filter_map(|row| Some((level_cell(row.level?.level), row.value("output_throughput")?)))
        .collect();
    if points.len() < 2 {
        return None;
    }
    let names: Vec<String> = points.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let values: Vec<String> = points.iter().map(|(_, value)| fixed(Some(*value), 2)).collect();
    let label = axis(std::slice::from_ref(series)).0;
    Some(format!(
        "xychart-beta\n    title \"Output throughput against {}\"\n    x-axis \"{label}\" [{}]\n    \
         y-axis \"tok/s\"\n    line [{}]\n",
        label.to_lowercase(),
        names.join(", "),
        values.join(", "),
    ))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Concurrency,
    Rate,
}

/// What the levels are.
fn axis(series: &[Series<'_>]) -> (&'static str, Kind, &'static str) {
    let levels = || series.iter().flat_map(|one| &one.rows).filter_map(|row| row.level);
    let is_rate = |level: &LevelSummary| matches!(level.level, Level::Rate(_) | Level::Unlimited);
    if levels().any(is_rate) {
        ("Asked rate", Kind::Rate, "req/s")
    } else {
        ("Concurrency", Kind::Concurrency, "")
    }
}

/// `None` with fewer than two levels that have a place and a value.
fn lines(series: &[Series<'_>], wanted: &[(&str, &str, &str)]) -> Option<Lines> {
    let places: Vec<f64> =
        series.iter().flat_map(|one| &one.rows).filter_map(|row| row.place()).collect();
    let (low, high) = (
        places.iter().copied().min_by(f64::total_cmp)?,
        places.iter().copied().max_by(f64::total_cmp)?,
    );
    let scale =
        if 0.0 < low && SPAN_OF_LOG <= high / low { ScaleKind::Log } else { ScaleKind::Linear };
    let (label, _, unit) = axis(series);
    let panels: Vec<LinesPanel> =
        wanted.iter().filter_map(|(title, name, unit)| panel(series, title, name, unit)).collect();
    let drawn = panels.first()?.series.iter().map(|one| one.points.len()).max()?;
    let x = Measure { scale, ..measure(label, unit, scale) };
    (2 <= drawn).then_some(Lines { x, ticks_at_points: true, panels })
}

fn panel(series: &[Series<'_>], title: &str, name: &str, unit: &str) -> Option<LinesPanel> {
    let series: Vec<LineSeries> = series
        .iter()
        .map(|one| LineSeries {
            name: one.name.clone(),
            points: one.rows.iter().filter_map(|row| point(row, name)).collect(),
        })
        .filter(|one| !one.points.is_empty())
        .collect();
    (!series.is_empty()).then(|| LinesPanel {
        heading: title.to_owned(),
        // The heading says what it is.
        y: measure("", unit, ScaleKind::Linear),
        series,
    })
}

fn point(row: &Row<'_>, name: &str) -> Option<LinePoint> {
    let across = row.quantity(name);
    let reservation = row.reservation();
    let uncertain = (!across.certified).then(|| "too few values to certify it".to_owned());
    let notes: Vec<String> = reservation.iter().cloned().chain(uncertain).collect();
    Some(LinePoint {
        x: row.place()?,
        y: across.mean?,
        interval: pair(across.doubt()),
        hollow: reservation.is_some(),
        note: (!notes.is_empty()).then(|| notes.join("; ")),
    })
}

/// How output grows along the levels of one server.
fn rise(series: &Series<'_>, named: bool) -> Option<String> {
    let points: Vec<(String, f64)> = series
        .rows
        .iter()
        .filter(|row| row.place().is_some())
        .filter_map(|row| Some((level_name(row.level?.level), row.value("output_throughput")?)))
        .collect();
    let [(first, from), .., (last, to)] = points.as_slice() else { return None };
    let (top, most) = points.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let shown = |value: &f64| figure(Some(*value));
    let who = if named { format!("{}: output", series.name) } else { "Output".to_owned() };
    Some(if top == last {
        format!(
            "{who} grows from {} tok/s at {first} to {} tok/s at {last}, the highest level that was \
             measured.",
            shown(from),
            shown(to)
        )
    } else {
        format!(
            "{who} is highest at {top} with {} tok/s; it begins with {} tok/s at {first} and ends \
             with {} tok/s at {last}.",
            shown(most),
            shown(from),
            shown(to)
        )
    })
}

/// How often the value of the first level fits into that of the last.
fn growth(series: &Series<'_>, title: &str, name: &str) -> Option<String> {
    let points: Vec<(String, f64)> = series
        .rows
        .iter()
        .filter(|row| row.place().is_some())
        .filter_map(|row| Some((level_name(row.level?.level), row.value(name)?)))
        .collect();
    let [(first, from), .., (last, to)] = points.as_slice() else { return None };
    let times = if 0.0 < *from {
        format!(", {} times as long", figure(Some(to / from)))
    } else {
        String::new()
    };
    let [from, to] = [from, to].map(|value| figure(Some(*value)));
    Some(format!("{title} is {from} ms at {first} and {to} ms at {last}{times}"))
}

/// How much is behind each point.
fn behind(series: &[Series<'_>]) -> String {
    let rows: Vec<&Row<'_>> = series.iter().flat_map(|one| one.rows.iter().copied()).collect();
    let counts: Vec<u64> = rows.iter().map(|row| row.tally().ok).collect();
    let runs = rows.iter().filter_map(|row| row.level).map(|level| level.points.len()).max();
    let requests = match (counts.iter().min(), counts.iter().max()) {
        (Some(least), Some(most)) if least == most => format!("{} ok", counted(*least, "request")),
        (Some(least), Some(most)) => format!("{least} to {}", counted(*most, "ok request")),
        _ => String::new(),
    };
    let runs = match runs {
        None | Some(0 | 1) => "in one run".to_owned(),
        Some(most) => format!("in up to {most} runs"),
    };
    listed(&[format!("{requests} at each level {runs}")])
}
