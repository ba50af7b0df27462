//! A page whose every word tries to be more than a word.

use inferometer_report::chart::{
    Chart, LinePoint, LineSeries, Lines, LinesPanel, Measure, Plot, ScaleKind,
};
use inferometer_report::document::{
    Badge, Block, Card, Cell, Column, Document, Download, Figure, Lead, Mood, Section, Span, Table,
    Text,
};

/// What a server could call its model.
pub(crate) const EVIL: &str = "</script></style></title><img src=x onerror=\"window.__pwned=1\">\
    <script>window.__pwned=2</script>'\"><svg/onload=window.__pwned=3> | `x` ```js ](javascript:alert(1)) \
    ![](https://evil.example/p.png) <https://evil.example> --> ]]> &lt; {{7*7}} $x$ @someone #1\n\
    # heading\n- item\n\u{202e}desrever\u{202c}\u{1b}[31m\u{0}\u{2028}\u{ad}";

pub(crate) fn hostile() -> Document {
    let evil = || EVIL.to_owned();
    let texts = || -> Text {
        vec![
            Span::Plain(evil()),
            Span::Strong(evil()),
            Span::Code(evil()),
            Span::Link { text: evil(), to: evil() },
        ]
    };
    Document {
        header: vec![(evil(), evil()), ("Model".to_owned(), evil())],
        title: evil(),
        lead: Lead {
            alert: None,
            subject: vec![(evil(), texts())],
            verdict: Some(Badge {
                mood: Mood::Bad,
                word: evil(),
                text: texts(),
                points: vec![texts()],
            }),
            headline: vec![Card {
                label: evil(),
                value: evil(),
                unit: evil(),
                detail: evil(),
                doubt: Some(evil()),
            }],
        },
        sections: vec![Section {
            id: evil(),
            title: evil(),
            blocks: blocks(&texts),
            sections: vec![Section {
                id: evil(),
                title: evil(),
                blocks: Vec::new(),
                sections: Vec::new(),
            }],
        }],
        footer: texts(),
        downloads: vec![
            Download { title: evil(), name: evil(), inside: None },
            Download { title: evil(), name: evil(), inside: Some(("text/csv", evil())) },
        ],
    }
}

fn blocks(texts: &dyn Fn() -> Text) -> Vec<Block> {
    let evil = || EVIL.to_owned();
    vec![
        Block::Paragraph(texts()),
        Block::Facts(vec![(evil(), texts())]),
        Block::List(vec![texts()]),
        Block::Table(table(texts)),
        Block::Figure(Figure { chart: chart(), mermaid: Some(evil()) }),
        Block::Code { language: "sh", text: evil() },
        Block::Notice {
            mood: Mood::Doubt,
            text: texts(),
            points: vec![texts()],
            remedy: Some(texts()),
        },
        Block::Details { summary: evil(), blocks: vec![Block::Paragraph(texts())] },
    ]
}

fn table(texts: &dyn Fn() -> Text) -> Table {
    let evil = || EVIL.to_owned();
    let cell = Cell {
        text: evil(),
        number: Some(1.0),
        detail: Some(evil()),
        doubtful: true,
        reason: None,
        mood: None,
    };
    Table {
        id: evil(),
        caption: evil(),
        columns: vec![Column::left(evil()), Column::right(evil())],
        rows: vec![vec![cell.clone(), cell.clone()], vec![cell.clone(), cell]],
        notes: vec![texts()],
    }
}

fn chart() -> Chart {
    let evil = || EVIL.to_owned();
    let measure = || Measure { label: evil(), unit: evil(), scale: ScaleKind::Linear };
    let point = |x| LinePoint { x, y: x, interval: None, hollow: false, note: Some(evil()) };
    let series = |name| LineSeries { name, points: vec![point(1.0), point(2.0)] };
    let panel = LinesPanel {
        heading: evil(),
        y: measure(),
        series: vec![series(evil()), series(evil() + "2")],
        limits: Vec::new(),
    };
    Chart {
        id: evil(),
        title: evil(),
        finding: evil(),
        n: evil(),
        plot: Plot::Lines(Lines { x: measure(), ticks_at_points: false, panels: vec![panel] }),
    }
}
