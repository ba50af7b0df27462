//! Documents that no measurement made: one as rich as a report gets, one that is hostile.

mod charts;
pub(crate) mod hostile;

pub(crate) use hostile::hostile;

use inferometer_report::document::{
    Badge, Block, Card, Cell, Column, Document, Figure, Lead, Mood, Section, Span, Table, plain,
};

/// In the shape of a suite's report, with invented numbers.
pub(crate) fn rich() -> Document {
    Document {
        header: vec![
            pair("Report", "suite quick"),
            pair("Model", "example/Model-24B-Instruct"),
            pair("Command", "vllm serve example/Model-24B-Instruct --tensor-parallel-size 4"),
        ],
        title: "Inference benchmark: Model-24B-Instruct".to_owned(),
        lead: lead(),
        sections: vec![
            section("executive-summary", "Executive summary", summary()),
            section("system-configuration", "System configuration", system()),
            section("performance", "Performance summary", vec![Block::Table(performance())]),
            section("scaling", "Concurrency scaling", figures(0..2)),
            scenarios(),
            section("health", "Can these numbers be trusted?", health()),
        ],
        footer: vec![
            Span::from("Made by Inferometer from a stored set; the suite's hash is "),
            Span::Code("b7c1e0".to_owned()),
            Span::from("."),
        ],
        ..Document::default()
    }
}

/// As many charts as a long suite has.
pub(crate) fn suite_sized() -> Document {
    let mut document = rich();
    for number in 0..5 {
        let title = format!("Scenario {number}");
        document.sections.push(section(&format!("more-{number}"), &title, figures(0..8)));
    }
    document
}

fn lead() -> Lead {
    let card = |label: &str, value: &str, unit: &str, detail: &str| Card {
        label: label.to_owned(),
        value: value.to_owned(),
        unit: unit.to_owned(),
        detail: detail.to_owned(),
        doubt: None,
    };
    Lead {
        alert: None,
        subject: vec![
            ("Model".to_owned(), plain("example/Model-24B-Instruct")),
            ("Hardware".to_owned(), plain("4× AMD Instinct MI100")),
            ("Server".to_owned(), plain("vLLM 0.12.0")),
            ("Measured".to_owned(), plain("15 November 2026, 12:30 UTC")),
        ],
        verdict: Some(Badge {
            mood: Mood::Doubt,
            word: "Usable with doubts".to_owned(),
            text: vec![
                Span::from("One of ten levels was answered from a warm cache; "),
                Span::Link { text: "what that means".to_owned(), to: "health".to_owned() },
                Span::from("."),
            ],
            points: vec![plain("c=4 read its prompts five times as fast as one user did.")],
        }),
        headline: vec![
            card("Interactive sweet spot", "c=4", "", "42.0 tok/s for each user"),
            card("Peak throughput", "387.1", "tok/s", "at c=32; 380.2 to 394.0"),
            card("TTFT of a single user", "1,082", "ms", "mean of 20 requests"),
            card("Requests that failed", "0", "of 250", "none"),
        ],
    }
}

fn summary() -> Vec<Block> {
    vec![
        Block::Paragraph(vec![
            Span::from("Throughput stops growing at "),
            Span::Strong("16 concurrent requests".to_owned()),
            Span::from(": from there to 32 it gains 0.6 %, while the time between tokens doubles. See "),
            Span::Link { text: "the scaling chart".to_owned(), to: "chart-lines".to_owned() },
            Span::from("."),
        ]),
        Block::List(vec![
            plain("A user alone waits 1,082 ms for the first token of a 2,048-token prompt."),
            plain("Decoding alone runs at 56.3 tok/s, and the slowest 1 % of gaps is 17.8 ms."),
        ]),
        Block::Code {
            language: "sh",
            text: "vllm serve example/Model-24B-Instruct \\\n  --tensor-parallel-size 4 \\\n  \
                   --max-model-len 262144 --gpu-memory-utilization 0.65 --limit-mm-per-prompt '{\"image\": 2}'"
                .to_owned(),
        },
    ]
}

fn system() -> Vec<Block> {
    let row = |name: &str, value: &str| vec![Cell::text(name), Cell::text(value)];
    vec![
        Block::Table(Table {
            id: "system-table".to_owned(),
            caption: String::new(),
            columns: vec![Column::left("Component"), Column::left("Value")],
            rows: vec![
                row("GPUs", "4× AMD Instinct MI100 (gfx908), xGMI"),
                row("CPU", "AMD Ryzen Threadripper PRO 3945WX, 12 cores"),
                row("Memory", "251.6 GB"),
                vec![
                    Cell::text("Driver"),
                    Cell {
                        detail: Some(
                            "nobody said, and the server's machine was not asked".to_owned(),
                        ),
                        ..Cell::text("–")
                    },
                ],
            ],
            notes: vec![plain("As the server's machine said it.")],
        }),
        Block::Facts(vec![
            ("Client".to_owned(), plain("another machine, 0.2 ms away")),
            ("Seed".to_owned(), vec![Span::Code("42".to_owned())]),
        ]),
    ]
}

fn performance() -> Table {
    let titles = [
        "Input (tok)",
        "Output (tok)",
        "Concurrency",
        "Output throughput (tok/s)",
        "TTFT mean (ms)",
        "TPOT mean (ms)",
        "TPOT p99 (ms)",
    ];
    let rows: [(&str, &str, [f64; 7]); 6] = [
        ("Single User Latency", "Latency", [2048.0, 512.0, 1.0, 49.26, 1082.2, 18.22, 18.28]),
        (
            "Short Context Throughput",
            "Throughput",
            [512.0, 256.0, 16.0, 301.77, 1506.74, 41.71, 52.09],
        ),
        (
            "Long Context (16K)",
            "Long context",
            [16384.0, 1024.0, 4.0, 62.84, 12518.39, 46.29, 54.11],
        ),
        ("Decode Stress Test", "Decode", [128.0, 2048.0, 1.0, 56.28, 43.29, 17.76, 17.77]),
        ("Mixed Traffic", "Mixed", [2048.0, 512.0, 8.0, 160.04, 2097.25, 43.8, 63.07]),
        (
            "Concurrency Scaling (c=4)",
            "Concurrency",
            [1024.0, 256.0, 4.0, 167.97, 115.15, 22.13, 22.61],
        ),
    ];
    let cells = |(name, category, values): (&str, &str, [f64; 7])| {
        let mut row = vec![Cell::text(name), Cell::text(category)];
        row.extend(values.iter().enumerate().map(|(place, value)| Cell {
            doubtful: name.ends_with("(c=4)") && place == 4,
            detail: (2 < place).then(|| {
                format!("{:.2} to {:.2} with 95 % confidence", value * 0.97, value * 1.03)
            }),
            ..Cell::number(format!("{value}"), *value)
        }));
        row
    };
    Table {
        id: "performance-summary".to_owned(),
        caption: "Performance by scenario".to_owned(),
        columns: [Column::left("Scenario"), Column::left("Category")]
            .into_iter()
            .chain(titles.map(Column::right))
            .collect(),
        rows: rows.map(cells).into(),
        notes: vec![plain("TTFT counts from when a request was due.")],
    }
}

fn scenarios() -> Section {
    let mut scenarios = section("scenarios", "Scenarios", Vec::new());
    scenarios.sections = vec![
        section("scenario-single-user", "Single User Latency", figures(2..5)),
        section("scenario-mixed", "Mixed Traffic", figures(5..8)),
    ];
    scenarios
}

fn health() -> Vec<Block> {
    let notice = |mood, text: &str, remedy: Option<&str>| Block::Notice {
        mood,
        text: plain(text),
        points: Vec::new(),
        remedy: remedy.map(plain),
    };
    vec![
        notice(
            Mood::Doubt,
            "20 of the 30 prompts at c=2 were prefixes of prompts that were sent before: their first tokens came from the server's cache.",
            Some("leave `prompts` at `fresh`, or restart the server between scenarios"),
        ),
        notice(
            Mood::Bad,
            "The client was late by 12 ms at the 99th percentile.",
            Some("give it a core of its own"),
        ),
        notice(Mood::Note, "The server's own numbers agree within 1 %.", None),
        notice(Mood::Good, "Every answer had the length that was asked for.", None),
        Block::Details {
            summary: "How the intervals are made".to_owned(),
            blocks: vec![Block::Paragraph(plain("By batch means, with 95 % confidence."))],
        },
    ]
}

fn figures(which: std::ops::Range<usize>) -> Vec<Block> {
    let charts = charts::all().into_iter().skip(which.start).take(which.len());
    let figure = |(place, chart)| {
        let mermaid = (which.start + place == 0).then(|| {
            "xychart-beta\n    title \"Output throughput\"\n    x-axis [1, 2, 4]\n    line [49, 97, 168]"
                .to_owned()
        });
        Block::Figure(Figure { chart, mermaid })
    };
    charts.enumerate().map(figure).collect()
}

fn section(id: &str, title: &str, blocks: Vec<Block>) -> Section {
    Section { id: id.to_owned(), title: title.to_owned(), blocks, sections: Vec::new() }
}

fn pair(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}
