//! What one run shows.

use inferometer_report::chart::{
    Chart, Curve, Distribution, Gantt, GanttEnding, GanttRow, HeatMap, Plot, ScaleKind, Timeline,
    TimelinePanel, TimelineSeries,
};

use crate::{chart, measure};

pub(crate) fn charts() -> Vec<Chart> {
    vec![distribution(), timeline(), gantt(), heat_map(), nothing()]
}

fn distribution() -> Chart {
    let curve = |name: &str, scale: f64, tail: f64| {
        let shares =
            (0..=100).map(|n| 1.0 - 10_f64.powf(-f64::from(n) * 0.03)).chain([0.5, 0.9, 0.99, 1.0]);
        let mut points: Vec<(f64, f64)> = shares
            .map(|share| (share, scale * (1.0 + tail * -(1.0_f64 - share).max(5e-4).ln())))
            .collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        points.dedup();
        Curve { name: name.to_owned(), n: 3_000, points }
    };
    let plot = Distribution {
        x: measure("time", "ms", ScaleKind::Log),
        curves: vec![
            curve("TTFT", 80.0, 0.6),
            curve("ITL", 18.0, 0.1),
            curve("end to end", 900.0, 0.3),
        ],
    };
    chart(
        "tail",
        "Latency distribution",
        "One request in a hundred waits 301 ms or longer for its first token, 2.6 times the median.",
        "n = 3,000 requests, 412,331 token gaps",
        Plot::Distribution(plot),
    )
}

fn timeline() -> Chart {
    let series = |name: &str, of: &dyn Fn(f64) -> Option<f64>| TimelineSeries {
        name: name.to_owned(),
        points: (0..120).map(|step| of(f64::from(step) / 120.0)).collect(),
    };
    let gap = |t: f64| (0.40..0.52).contains(&t) || (0.8..0.81).contains(&t);
    let wave = |t: f64| (t * 6.0).min(1.0) * (1.0 + 0.1 * (t * 40.0).sin());
    let panel = |heading: &str, y, series| TimelinePanel {
        heading: heading.to_owned(),
        y,
        series,
        limits: Vec::new(),
    };
    let plot = Timeline {
        from_s: 0.0,
        step_s: 0.5,
        panels: vec![
            panel(
                "In flight",
                measure("", "requests", ScaleKind::Linear),
                vec![
                    series("client", &|t| Some(32.0 * wave(t))),
                    series("server", &|t| (!gap(t)).then(|| 30.0 * wave(t))),
                ],
            ),
            panel(
                "Server queue",
                measure("", "requests", ScaleKind::Linear),
                vec![series("waiting", &|t| (!gap(t)).then(|| (t * 9.0).floor()))],
            ),
            panel(
                "KV cache in use",
                measure("", "%", ScaleKind::Linear),
                vec![series("KV cache", &|t| (!gap(t)).then(|| 96.0 * t.sqrt()))],
            ),
        ],
    };
    chart(
        "timeline",
        "What happened when",
        "The queue begins to grow at 7 s, when the KV cache is 33 % full.",
        "120 steps of 0.5 s · server values from 104 scrapes",
        Plot::Timeline(plot),
    )
}

fn gantt() -> Chart {
    let row = |n: u32| {
        let sent = f64::from(n) * 0.31;
        let slow = n % 11 == 5;
        let failed = n % 13 == 7;
        let long = if slow { 4.0 } else { 1.4 };
        let (ending, first) = match n {
            _ if failed => (GanttEnding::Failed, None),
            _ if slow => (GanttEnding::Slowest, Some(sent + 1.9)),
            29 => (GanttEnding::Cancelled, Some(sent + 0.3)),
            _ => (GanttEnding::Ok, Some(sent + 0.2 + f64::from(n % 5) * 0.05)),
        };
        GanttRow {
            label: format!("request {n}"),
            intended_s: n.is_multiple_of(6).then_some(sent - 0.35),
            sent_s: sent,
            first_s: first,
            ended_s: sent + long + f64::from(n % 7) * 0.1,
            ending,
            note: if failed { "HTTP 503 <overloaded>".to_owned() } else { String::new() },
        }
    };
    let rows: Vec<GanttRow> = (0..34).map(row).collect();
    let plot =
        Gantt { rows, of: 1_200, choice: "the slowest, the failed and an even sample".to_owned() };
    chart(
        "requests",
        "Requests one by one",
        "The three slowest requests waited 1.9 s for their first token.",
        "34 of 1,200 requests: the slowest, the failed and an even sample",
        Plot::Gantt(plot),
    )
}

fn heat_map() -> Chart {
    let edges: Vec<f64> = (0..=24).map(|n| 5.0 * 10_f64.powf(f64::from(n) / 12.0)).collect();
    let column = |t: u32| -> Vec<u64> {
        let centre = 6.0 + 5.0 * f64::from(t) / 90.0;
        let count = |row: u32| {
            let far = (f64::from(row) - centre).abs();
            let tail = if row == 18 && t.is_multiple_of(7) { 3.0 } else { 0.0 };
            (900.0 * (-far * far / 3.0).exp() + tail).round()
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made up")]
        (0..24).map(|row| count(row) as u64).collect()
    };
    let plot = HeatMap {
        from_s: 0.0,
        step_s: 0.5,
        y: measure("time between tokens", "ms", ScaleKind::Log),
        edges,
        columns: (0..90).map(column).collect(),
        counted: "token gaps".to_owned(),
    };
    chart(
        "gaps",
        "Time between tokens over the run",
        "Gaps grow from 16 ms to 41 ms while the batch fills; every 3.5 s a few take 160 ms.",
        "n = 412,331 token gaps",
        Plot::HeatMap(plot),
    )
}

fn nothing() -> Chart {
    let plot = Distribution { x: measure("time", "ms", ScaleKind::Log), curves: Vec::new() };
    chart("nothing", "Nothing at all", "Nothing was measured.", "n = 0", Plot::Distribution(plot))
}
