//! One chart of each kind, with invented numbers.

use inferometer_report::chart::{
    Bar, BarGroup, Bars, Chart, Curve, Distribution, Gantt, GanttEnding, GanttRow, HeatMap,
    LinePoint, LineSeries, Lines, LinesPanel, Measure, Pareto, ParetoPoint, Plot, ScaleKind,
    ShareClass, ShareRow, Shares, Timeline, TimelinePanel, TimelineSeries,
};

pub(crate) fn all() -> Vec<Chart> {
    vec![
        chart("lines", "Throughput and latency against concurrency", lines()),
        chart("pareto", "Throughput for each GPU against speed for each user", pareto()),
        chart("distribution", "How long users wait for the first token", distribution()),
        chart("timeline", "In flight and waiting", timeline()),
        chart("gantt", "Requests over time", gantt()),
        chart("heat-map", "Gaps between tokens over time", heat_map()),
        chart("bars", "Mean latency by scenario", bars()),
        chart("shares", "How requests ended", shares()),
    ]
}

fn chart(id: &str, title: &str, plot: Plot) -> Chart {
    Chart {
        id: format!("chart-{id}"),
        title: title.to_owned(),
        finding: "Throughput grows to 385 tok/s at 16 requests at once and then stands still."
            .to_owned(),
        n: "30 requests at each level".to_owned(),
        plot,
    }
}

fn measure(label: &str, unit: &str, scale: ScaleKind) -> Measure {
    Measure { label: label.to_owned(), unit: unit.to_owned(), scale }
}

const LEVELS: [(f64, f64, f64, f64); 6] = [
    (1.0, 49.3, 43.3, 18.2),
    (2.0, 97.7, 90.2, 19.7),
    (4.0, 168.0, 115.2, 22.1),
    (8.0, 255.9, 158.7, 28.8),
    (16.0, 384.7, 233.7, 38.2),
    (32.0, 387.1, 363.2, 76.4),
];

/// From this level on.
const SATURATED: f64 = 32.0;

fn lines() -> Plot {
    let series = |name: &str, value: fn(&(f64, f64, f64, f64)) -> f64| LineSeries {
        name: name.to_owned(),
        points: LEVELS
            .iter()
            .map(|level| LinePoint {
                x: level.0,
                y: value(level),
                interval: Some((value(level) * 0.95, value(level) * 1.05)),
                hollow: SATURATED <= level.0,
                note: (SATURATED <= level.0).then(|| "saturated".to_owned()),
            })
            .collect(),
    };
    Plot::Lines(Lines {
        x: measure("Concurrency", "", ScaleKind::Log),
        ticks_at_points: true,
        panels: vec![
            LinesPanel {
                heading: "Output throughput".to_owned(),
                y: measure("Output tokens", "tok/s", ScaleKind::Linear),
                series: vec![series("throughput", |level| level.1)],
                limits: Vec::new(),
            },
            LinesPanel {
                heading: "Latency".to_owned(),
                y: measure("Latency", "ms", ScaleKind::Linear),
                series: vec![series("TTFT", |level| level.2), series("TPOT", |level| level.3)],
                limits: Vec::new(),
            },
        ],
    })
}

fn pareto() -> Plot {
    let points = LEVELS.iter().map(|level| ParetoPoint {
        series: "Concurrency Scaling".to_owned(),
        label: format!("c={}", level.0),
        x: 1000.0 / level.3,
        y: level.1 / 4.0,
        x_interval: None,
        y_interval: Some((level.1 * 0.24, level.1 * 0.26)),
        on_frontier: level.0 < SATURATED,
        hollow: SATURATED <= level.0,
        note: None,
    });
    let mut points: Vec<ParetoPoint> = points.collect();
    points.extend([(8.0, 22.8, 40.0), (16.0, 24.0, 75.4)].map(|(level, x, y)| ParetoPoint {
        series: "Mixed Traffic".to_owned(),
        label: format!("c={level}"),
        x,
        y,
        x_interval: None,
        y_interval: None,
        on_frontier: false,
        hollow: false,
        note: None,
    }));
    Plot::Pareto(Pareto {
        x: measure("Speed for each user", "tok/s", ScaleKind::Linear),
        y: measure("Throughput for each GPU", "tok/s", ScaleKind::Linear),
        points,
    })
}

fn distribution() -> Plot {
    let curve = |name: &str, scale: f64| Curve {
        name: name.to_owned(),
        n: 100,
        points: (1..=100)
            .map(|rank| {
                let share = f64::from(rank) / 100.0;
                (share, scale * (1.0 + share * share + share / (1.02 - share)))
            })
            .collect(),
    };
    Plot::Distribution(Distribution {
        x: measure("TTFT", "ms", ScaleKind::Log),
        curves: vec![curve("c=2", 60.0), curve("c=8", 110.0), curve("c=32", 240.0)],
    })
}

fn timeline() -> Plot {
    let values = |from: u32, every: u32| {
        (0..120_u32)
            .map(|step| (step % 37 != 0).then(|| f64::from(from + (step / every) % 9)))
            .collect()
    };
    let panel = |heading: &str, names: [(&str, u32, u32); 2]| TimelinePanel {
        heading: heading.to_owned(),
        y: measure("Requests", "", ScaleKind::Linear),
        series: names
            .map(|(name, from, every)| TimelineSeries {
                name: name.to_owned(),
                points: values(from, every),
            })
            .into(),
        limits: Vec::new(),
    };
    Plot::Timeline(Timeline {
        from_s: 0.0,
        step_s: 0.5,
        panels: vec![
            panel("The client", [("in flight", 8, 7), ("late", 0, 11)]),
            panel("The server", [("running", 6, 5), ("waiting", 0, 9)]),
        ],
    })
}

fn gantt() -> Plot {
    let rows = (0..16_u32).map(|number| {
        let sent_s = f64::from(number) * 0.4;
        let ending = match number {
            3 => GanttEnding::Slowest,
            9 => GanttEnding::Failed,
            12 => GanttEnding::Cancelled,
            _ => GanttEnding::Ok,
        };
        GanttRow {
            label: format!("request {number}"),
            intended_s: (number % 4 == 0).then_some(sent_s - 0.1),
            sent_s,
            first_s: (number != 9).then_some(sent_s + 0.3),
            ended_s: sent_s + if number == 3 { 4.0 } else { 1.4 },
            ending,
            note: "2,048 tokens in, 512 out".to_owned(),
        }
    });
    Plot::Gantt(Gantt {
        rows: rows.collect(),
        of: 250,
        choice: "the slowest, the failed and every twentieth".to_owned(),
    })
}

fn heat_map() -> Plot {
    let columns = (0..60_u64).map(|column| {
        (0..10_u64).map(|row| (column * 7 + row * row * 3) % 23 * (10 - row)).collect()
    });
    Plot::HeatMap(HeatMap {
        from_s: 0.0,
        step_s: 1.0,
        y: measure("Gap", "ms", ScaleKind::Log),
        edges: [5.0, 8.0, 12.0, 18.0, 27.0, 40.0, 60.0, 90.0, 140.0, 210.0, 320.0].into(),
        columns: columns.collect(),
        counted: "token gaps".to_owned(),
    })
}

fn bars() -> Plot {
    let bar = |series: &str, value: Option<f64>| Bar {
        series: series.to_owned(),
        value,
        interval: value.map(|value| (value * 0.9, value * 1.1)),
        ..Bar::default()
    };
    let group = |label: &str, ttft, tpot| BarGroup {
        label: label.to_owned(),
        bars: vec![bar("TTFT", ttft), bar("TPOT", tpot)],
    };
    Plot::Bars(Bars {
        y: measure("Latency", "ms", ScaleKind::Linear),
        groups: vec![
            group("Single User", Some(108.0), Some(18.2)),
            group("Short Context", Some(150.7), Some(41.7)),
            group("Mixed", None, Some(43.8)),
        ],
    })
}

fn shares() -> Plot {
    let class = |name: &str, is_good| ShareClass { name: name.to_owned(), is_good };
    let row =
        |label: &str, counts: [u64; 3]| ShareRow { label: label.to_owned(), counts: counts.into() };
    Plot::Shares(Shares {
        classes: vec![class("ok", true), class("timed out", false), class("refused", false)],
        rows: vec![row("Single User", [20, 0, 0]), row("Mixed", [24, 5, 1])],
        counted: "requests".to_owned(),
    })
}
