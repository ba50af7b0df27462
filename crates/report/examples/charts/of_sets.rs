//! What a sweep or a suite shows.

use inferometer_report::chart::{
    Bar, BarGroup, Bars, Chart, LinePoint, LineSeries, Lines, LinesPanel, Measure, Pareto,
    ParetoPoint, Plot, ScaleKind, ShareClass, ShareRow, Shares,
};

use crate::{chart, measure};

pub(crate) fn charts() -> Vec<Chart> {
    vec![against_concurrency(), many_lines(), pareto(), bars(), many_bars(), shares()]
}

fn against_concurrency() -> Chart {
    let throughput = [
        (1.0, 52.1),
        (2.0, 98.4),
        (4.0, 168.0),
        (8.0, 255.3),
        (16.0, 331.0),
        (32.0, 387.1),
        (64.0, 391.0),
    ];
    let p50 = [
        (1.0, 62.0),
        (2.0, 66.0),
        (4.0, 81.0),
        (8.0, 120.0),
        (16.0, 260.0),
        (32.0, 810.0),
        (64.0, 3_900.0),
    ];
    let p99 = p50.map(|(x, y)| (x, y * (1.4 + x / 40.0)));
    let panel = |heading: &str, y: Measure, series| LinesPanel {
        heading: heading.to_owned(),
        y,
        series,
        limits: Vec::new(),
    };
    let plot = Lines {
        x: measure("requests in flight", "", ScaleKind::Log),
        ticks_at_points: true,
        panels: vec![
            panel(
                "Output throughput",
                measure("output tokens per second", "tok/s", ScaleKind::Linear),
                vec![line("output", &throughput)],
            ),
            panel(
                "Time to first token",
                measure("", "ms", ScaleKind::Log),
                vec![line("TTFT p50", &p50), line("TTFT p99", &p99)],
            ),
        ],
    };
    chart(
        "concurrency-scaling",
        "Throughput and latency against concurrency",
        "Throughput grows to 387 tok/s at 32 requests in flight and stays there at 64, while the \
         median time to first token grows five-fold from 810 ms to 3,900 ms.",
        "n = 120 requests at each of 7 levels · bars: 95 % intervals · hollow: saturated",
        Plot::Lines(plot),
    )
}

fn line(name: &str, points: &[(f64, f64)]) -> LineSeries {
    let point = |(x, y): &(f64, f64)| LinePoint {
        x: *x,
        y: *y,
        interval: Some((y * 0.94, y * 1.07)),
        hollow: 32.0 < *x,
        note: (32.0 < *x).then(|| "saturated: the queue grows".to_owned()),
    };
    LineSeries { name: name.to_owned(), points: points.iter().map(point).collect() }
}

fn many_lines() -> Chart {
    let names = [
        "llama-3.1-70b-instruct-with-a-very-long-revision-name",
        "second",
        "third",
        "fourth",
        "fifth",
        "sixth",
        "seventh",
        "eighth",
    ];
    let series = names.iter().enumerate().map(|(place, name)| {
        let top = 100.0 + 6.0 * place as f64;
        let points: Vec<(f64, f64)> =
            (1..=8).map(|n| f64::from(n) * 4.0).map(|x| (x, top * x / (x + 6.0))).collect();
        line(name, &points)
    });
    let plot = Lines {
        x: measure("request rate", "requests/s", ScaleKind::Linear),
        ticks_at_points: false,
        panels: vec![LinesPanel {
            heading: "Goodput".to_owned(),
            y: measure("requests that kept all promises", "requests/s", ScaleKind::Linear),
            series: series.collect(),
            limits: Vec::new(),
        }],
    };
    chart(
        "many-lines",
        "Eight servers at once",
        "All of them bend.",
        "n = 3 runs each",
        Plot::Lines(plot),
    )
}

fn pareto() -> Chart {
    let point = |series: &str, level: f64, x: f64, y: f64, on_frontier: bool| ParetoPoint {
        series: series.to_owned(),
        label: format!("{level} in flight"),
        x,
        y,
        x_interval: Some((x * 0.96, x * 1.05)),
        y_interval: Some((y * 0.95, y * 1.04)),
        on_frontier,
        hollow: 32.0 < level,
        note: None,
    };
    let points = vec![
        point("vLLM", 1.0, 52.0, 52.0, true),
        point("vLLM", 2.0, 49.0, 98.0, true),
        point("vLLM", 4.0, 42.0, 168.0, true),
        point("vLLM", 8.0, 32.0, 255.0, true),
        point("vLLM", 16.0, 20.6, 331.0, true),
        point("vLLM", 32.0, 12.1, 387.0, true),
        point("vLLM", 64.0, 6.1, 391.0, true),
        point("SGLang", 1.0, 48.0, 48.0, false),
        point("SGLang", 4.0, 41.0, 160.0, false),
        point("SGLang", 16.0, 19.6, 300.0, false),
    ];
    let plot = Pareto {
        x: measure("output speed of each user", "tok/s", ScaleKind::Linear),
        y: measure("output throughput per GPU", "tok/s", ScaleKind::Linear),
        points,
    };
    chart(
        "pareto",
        "Throughput against speed per user",
        "At 8 in flight each user reads 32 tok/s and the GPU makes 255 tok/s.",
        "n = 120 requests at each point · crosses: 95 % intervals",
        Plot::Pareto(plot),
    )
}

fn bars() -> Chart {
    let bar = |series: &str, value: Option<f64>, hollow: bool| Bar {
        series: series.to_owned(),
        value,
        interval: value.map(|value| (value * 0.93, value * 1.05)),
        hollow,
        note: value.is_none().then(|| "the server reports no usage".to_owned()),
        ..Bar::default()
    };
    let group = |label: &str, values: [Option<f64>; 3]| BarGroup {
        label: label.to_owned(),
        bars: vec![
            bar("TTFT p50", values[0], false),
            bar("TTFT p95", values[1], false),
            bar("TTFT p99", values[2], label == "RAG"),
        ],
    };
    let plot = Bars {
        y: measure("time to first token", "ms", ScaleKind::Linear),
        groups: vec![
            group("Chat", [Some(81.0), Some(122.0), Some(301.0)]),
            group("RAG", [Some(412.0), Some(633.0), Some(980.0)]),
            group("Long document summarisation", [Some(871.0), None, Some(1_603.0)]),
            group("Agent", [Some(0.0), Some(92.5), Some(140.0)]),
        ],
    };
    chart(
        "bars",
        "Time to first token by scenario",
        "Long documents wait ten times as long as chats.",
        "n = 30 requests in each scenario · whiskers: 95 % intervals",
        Plot::Bars(plot),
    )
}

fn many_bars() -> Chart {
    let group = |n: u32| BarGroup {
        label: format!("Scenario {n} with quite a long name that must be cut"),
        bars: vec![Bar {
            series: "output".to_owned(),
            value: Some(30.0 + f64::from(n * 37 % 90)),
            ..Bar::default()
        }],
    };
    let plot = Bars {
        y: measure("output throughput", "tok/s", ScaleKind::Linear),
        groups: (1..=10).map(group).collect(),
    };
    chart(
        "many-bars",
        "Throughput by scenario",
        "None is faster than 120 tok/s.",
        "n = 30",
        Plot::Bars(plot),
    )
}

fn shares() -> Chart {
    let class = |name: &str, is_good: bool| ShareClass { name: name.to_owned(), is_good };
    let row = |label: &str, counts: [u64; 5]| ShareRow {
        label: label.to_owned(),
        counts: counts.to_vec(),
    };
    let plot = Shares {
        classes: vec![
            class("ok", true),
            class("cut short by max_tokens", true),
            class("timeout", false),
            class("HTTP 5xx", false),
            class("connection lost", false),
        ],
        rows: vec![
            row("8 in flight", [1_000, 40, 0, 0, 0]),
            row("32 in flight", [950, 30, 21, 3, 1]),
            row("128 in flight", [300, 10, 420, 250, 30]),
            row("256 in flight", [0, 0, 0, 0, 0]),
        ],
        counted: "requests".to_owned(),
    };
    chart(
        "outcomes",
        "How requests ended",
        "At 128 in flight 69 % of the requests fail, most of them by timeout.",
        "n = 3,055 requests",
        Plot::Shares(plot),
    )
}
