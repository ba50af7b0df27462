//! The two charts of a calibration.

use inferometer_analysis::calibration::{Calibration, Level, LevelLatency};

use crate::chart::{
    Chart, LinePoint, LineSeries, Lines, LinesPanel, Measure, Plot, ScaleKind, Theme,
};
use crate::escape;
use crate::fmt::{count, number, whole};

/// Requests per second against requests in flight.
pub fn throughput(calibration: &Calibration) -> String {
    let ladder = &calibration.ladder;
    let tokens = calibration.method.ladder_tokens;
    let line = |name: String, levels: &[Level]| LineSeries {
        name,
        points: points(levels, |level| level.requests_per_s),
    };
    let panel = LinesPanel {
        heading: "Throughput".to_owned(),
        y: measure("requests per second", "", ScaleKind::Linear),
        series: vec![
            line("one-shot".to_owned(), &ladder.one_shot),
            line(format!("streamed, {tokens} tokens"), &ladder.streamed),
        ],
    };
    let capacity = calibration.capacity;
    let chart = Chart {
        id: "client-throughput".to_owned(),
        title: "Client throughput capacity".to_owned(),
        finding: format!(
            "This client takes {} one-shot answers per second, or {} stream events per second.",
            whole(capacity.requests_per_s),
            whole(capacity.events_per_s),
        ),
        n: footnote(calibration),
        plot: against_concurrency(vec![panel]),
    };
    chart.to_svg(Theme::Light)
}

/// Percentiles of the latency against requests in flight, for both kinds of answers.
pub fn latency(calibration: &Calibration) -> String {
    let ladder = &calibration.ladder;
    let tokens = calibration.method.ladder_tokens;
    let chart = Chart {
        id: "client-latency".to_owned(),
        title: "Client latency profile".to_owned(),
        finding: latency_finding(&ladder.one_shot),
        n: footnote(calibration),
        plot: against_concurrency(vec![
            latency_panel("One-shot answers".to_owned(), &ladder.one_shot),
            latency_panel(format!("Streamed answers, {tokens} tokens each"), &ladder.streamed),
        ]),
    };
    chart.to_svg(Theme::Light)
}

fn latency_panel(heading: String, levels: &[Level]) -> LinesPanel {
    let line = |name: &str, of: fn(&LevelLatency) -> f64| LineSeries {
        name: name.to_owned(),
        points: points(levels, |level| level.latency_ms.as_ref().map(of)),
    };
    LinesPanel {
        heading,
        y: measure("latency", "ms", ScaleKind::Linear),
        series: vec![
            line("p50", |latency| latency.p50),
            line("p95", |latency| latency.p95),
            line("p99", |latency| latency.p99),
        ],
    }
}

/// What the first and the last level show.
fn latency_finding(levels: &[Level]) -> String {
    let described = |level: &Level| {
        level.latency_ms.map(|latency| {
            let (p50, p99) = (number(latency.p50), number(latency.p99));
            format!("{p50} ms (p99 {p99} ms) with {} in flight", count(level.concurrency.into()))
        })
    };
    match (levels.first().and_then(described), levels.last().and_then(described)) {
        (Some(first), Some(last)) if 1 < levels.len() => {
            format!("A one-shot answer takes {first} and {last}.")
        }
        (Some(only), _) | (_, Some(only)) => format!("A one-shot answer takes {only}."),
        (None, None) => "No level was measured.".to_owned(),
    }
}

/// A chart without its machine says nothing. What does not fit the width is cut.
fn footnote(calibration: &Calibration) -> String {
    const CHARACTERS_MAX: usize = 130;
    let machine = &calibration.machine;
    let cpus = machine.cpus.map(|cpus| format!(", {cpus} CPUs")).unwrap_or_default();
    let text = format!(
        "Echo engine on the same machine: {}{cpus}  ·  {} {}  ·  Inferometer {}  ·  {}",
        machine.cpu_model.as_deref().unwrap_or("unknown CPU"),
        machine.os,
        machine.kernel.as_deref().unwrap_or_default(),
        calibration.tool_version,
        calibration.when.split('T').next().unwrap_or_default(),
    );
    escape::terminal_line(&text, CHARACTERS_MAX)
}

fn points(levels: &[Level], of: impl Fn(&Level) -> Option<f64>) -> Vec<LinePoint> {
    let point = |level: &Level| {
        let (x, y) = (f64::from(level.concurrency), of(level)?);
        Some(LinePoint { x, y, interval: None, hollow: false, note: None })
    };
    levels.iter().filter_map(point).collect()
}

/// Levels double, so that equal ratios are equally far.
fn against_concurrency(panels: Vec<LinesPanel>) -> Plot {
    let x = measure("requests in flight", "", ScaleKind::Log);
    Plot::Lines(Lines { x, ticks_at_points: true, panels })
}

fn measure(label: &str, unit: &str, scale: ScaleKind) -> Measure {
    Measure { label: label.to_owned(), unit: unit.to_owned(), scale }
}
