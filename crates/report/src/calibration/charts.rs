//! The two charts of a calibration.

use inferometer_analysis::calibration::{Calibration, Level, LevelLatency};

use crate::chart::{Axis, Callout, Figure, LinePanel, Mark, Series, Ticks};
use crate::escape;
use crate::number::{count, figure, whole};

/// Requests per second against requests in flight.
pub fn throughput(calibration: &Calibration) -> String {
    let ladder = &calibration.ladder;
    let tokens = calibration.method.ladder_tokens;
    let line = |name: String, mark: Mark, levels: &[Level]| {
        let points = points(levels, |level| level.requests_per_s);
        let best = points
            .iter()
            .copied()
            .reduce(|best, point| if best.1 < point.1 { point } else { best });
        let callout =
            best.map(|point| Callout { point, text: format!("{}/s", whole(Some(point.1))) });
        Series { name, mark, points, callout }
    };
    let panel = LinePanel {
        heading: None,
        x: concurrency_axis([&ladder.one_shot, &ladder.streamed]),
        y: Axis { label: "requests per second".to_owned(), ticks: Ticks::Round },
        series: vec![
            line("one-shot".to_owned(), Mark::BlueCircle, &ladder.one_shot),
            line(format!("streamed, {tokens} tokens"), Mark::VermilionTriangle, &ladder.streamed),
        ],
    };
    let capacity = calibration.capacity;
    let figure = Figure {
        title: "Client throughput capacity".to_owned(),
        finding: format!(
            "This client takes {} one-shot answers per second, or {} stream events per second.",
            whole(Some(capacity.requests_per_s)),
            whole(Some(capacity.events_per_s)),
        ),
        panels: vec![panel],
        footnote: footnote(calibration),
    };
    figure.to_svg()
}

/// Percentiles of the latency against requests in flight, for both kinds of answers.
pub fn latency(calibration: &Calibration) -> String {
    let ladder = &calibration.ladder;
    let tokens = calibration.method.ladder_tokens;
    let figure = Figure {
        title: "Client latency profile".to_owned(),
        finding: latency_finding(&ladder.one_shot),
        panels: vec![
            latency_panel("One-shot answers".to_owned(), &ladder.one_shot),
            latency_panel(format!("Streamed answers, {tokens} tokens each"), &ladder.streamed),
        ],
        footnote: footnote(calibration),
    };
    figure.to_svg()
}

fn latency_panel(heading: String, levels: &[Level]) -> LinePanel {
    let line = |name: &str, mark: Mark, of: fn(&LevelLatency) -> f64| Series {
        name: name.to_owned(),
        mark,
        points: points(levels, |level| level.latency_ms.as_ref().map(of)),
        callout: None,
    };
    LinePanel {
        heading: Some(heading),
        x: concurrency_axis([levels, &[]]),
        y: Axis { label: "latency in ms".to_owned(), ticks: Ticks::Round },
        series: vec![
            line("p50", Mark::BlueCircle, |latency| latency.p50),
            line("p95", Mark::GreenSquare, |latency| latency.p95),
            line("p99", Mark::VermilionTriangle, |latency| latency.p99),
        ],
    }
}

/// What the first and the last level show.
fn latency_finding(levels: &[Level]) -> String {
    let described = |level: &Level| {
        level.latency_ms.map(|latency| {
            let (p50, p99) = (figure(Some(latency.p50)), figure(Some(latency.p99)));
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

fn points(levels: &[Level], of: impl Fn(&Level) -> Option<f64>) -> Vec<(f64, f64)> {
    levels.iter().filter_map(|level| Some((f64::from(level.concurrency), of(level)?))).collect()
}

/// Ticks where something was measured.
fn concurrency_axis(levels: [&[Level]; 2]) -> Axis {
    let mut measured: Vec<u32> = levels.concat().iter().map(|level| level.concurrency).collect();
    measured.sort_unstable();
    measured.dedup();
    let ticks = measured.into_iter().map(f64::from).collect();
    Axis { label: "requests in flight".to_owned(), ticks: Ticks::At(ticks) }
}
