//! Every kind of chart with made-up numbers, in all its colours, on one page to look at.
//!
//! `cargo run -p inferometer-report --example charts -- FOLDER` writes `charts.html` and the SVG
//! files there.

#![expect(clippy::unwrap_used, reason = "an example may fail by panicking")]

use std::path::PathBuf;

use inferometer_report::chart::palette::variables;
use inferometer_report::chart::{
    Bar, BarGroup, Bars, Chart, Curve, Distribution, Gantt, GanttEnding, GanttRow, HeatMap,
    LinePoint, LineSeries, Lines, LinesPanel, Measure, Pareto, ParetoPoint, Plot, ScaleKind,
    ShareClass, ShareRow, Shares, Theme, Timeline, TimelinePanel, TimelineSeries,
};

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "charts".to_owned()));
    std::fs::create_dir_all(&folder)?;
    let variables = |theme| -> String {
        variables(theme).iter().map(|(name, value)| format!("{name}:{value};")).collect()
    };
    let mut page = format!(
        "<!doctype html><meta charset=utf-8><style>\
         body{{margin:0;background:#888}}svg,img{{display:block;width:100%;margin-bottom:12px}}\
         .light,.dark{{background:var(--surface);padding:8px}}.light{{{}}}.dark{{{}}}</style>",
        variables(Theme::Light),
        variables(Theme::Dark),
    );
    for ground in ["light", "dark"] {
        let charts: String = charts().iter().map(|chart| chart.to_svg(Theme::Page)).collect();
        page += &format!("<div class={ground}>{charts}</div>");
    }
    std::fs::write(folder.join("charts.html"), page)?;
    for chart in charts() {
        for (theme, name) in [(Theme::Light, "light"), (Theme::Dark, "dark")] {
            let file = folder.join(format!("{}-{name}.svg", chart.id));
            std::fs::write(file, chart.to_svg(theme))?;
        }
    }
    Ok(())
}

fn charts() -> Vec<Chart> {
    vec![
        against_concurrency(),
        many_lines(),
        distribution(),
        timeline(),
        gantt(),
        heat_map(),
        pareto(),
        bars(),
        many_bars(),
        shares(),
        nothing(),
    ]
}

fn chart(id: &str, title: &str, finding: &str, n: &str, plot: Plot) -> Chart {
    let [id, title, finding, n] = [id, title, finding, n].map(str::to_owned);
    Chart { id, title, finding, n, plot }
}

fn measure(label: &str, unit: &str, scale: ScaleKind) -> Measure {
    Measure { label: label.to_owned(), unit: unit.to_owned(), scale }
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
    let panel =
        |heading: &str, y: Measure, series| LinesPanel { heading: heading.to_owned(), y, series };
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
        values: (0..120).map(|step| of(f64::from(step) / 120.0)).collect(),
    };
    let gap = |t: f64| (0.40..0.52).contains(&t) || (0.8..0.81).contains(&t);
    let wave = |t: f64| (t * 6.0).min(1.0) * (1.0 + 0.1 * (t * 40.0).sin());
    let panel = |heading: &str, y, series| TimelinePanel { heading: heading.to_owned(), y, series };
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
            intended_s: (n % 6 == 0).then_some(sent - 0.35),
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
            let tail = if row == 18 && t % 7 == 0 { 3.0 } else { 0.0 };
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

fn pareto() -> Chart {
    let point = |series: &str, level: f64, x: f64, y: f64, on_frontier: bool| ParetoPoint {
        series: series.to_owned(),
        label: format!("{level} in flight"),
        x,
        y,
        x_interval: Some((x * 0.96, x * 1.05)),
        y_interval: Some((y * 0.95, y * 1.04)),
        on_frontier,
        hollow: level == 64.0,
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
            interval: None,
            hollow: false,
            note: None,
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

fn nothing() -> Chart {
    let plot = Distribution { x: measure("time", "ms", ScaleKind::Log), curves: Vec::new() };
    chart("nothing", "Nothing at all", "Nothing was measured.", "n = 0", Plot::Distribution(plot))
}
