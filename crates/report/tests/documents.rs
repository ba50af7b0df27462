//! The documents of suites, sets and runs: their sections, tables and columns, and what they say.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::num::NonZeroU32;
use std::time::Duration;

use inferometer_analysis::Summary;
use inferometer_analysis::set::{PointResult, SetSummary, SuiteRow, SuiteSummary};
use inferometer_model::SpecDraft;
use inferometer_model::campaign::{
    CampaignSpec, Condition, Dimension, Level, Order, Point, Prompts, Question, Repetition,
    Scenario, SetManifest, Stage, Suite, Sweep,
};
use inferometer_report::document::{Block, Document, Section, Table};
use inferometer_report::document::{html, markdown, plain};
use inferometer_report::narrative::{Narrative, Sentence, facts, findings};
use inferometer_report::pages::{self, SuiteInput, csv};
use serde_json::{Value, json};

/// What a scenario of the made-up suite measures.
struct Made {
    scenario: &'static str,
    category: &'static str,
    lengths: (u32, u32),
    concurrency: u32,
    requests: u64,
    output_per_s: f64,
    ttft_ms: [f64; 3],
    tpot_ms: [f64; 3],
}

/// Two scenarios of one level, and one of three.
const SUITE: [Made; 5] = [
    made(
        "One User",
        "Latency",
        (2048, 512),
        1,
        20,
        49.26,
        [1082.2, 1135.06, 1142.34],
        [18.22, 18.22, 18.28],
    ),
    made(
        "Decode",
        "Decode",
        (128, 2048),
        1,
        5,
        56.28,
        [43.29, 43.29, 43.86],
        [17.76, 17.76, 17.77],
    ),
    made(
        "Scaling",
        "Concurrency Scaling",
        (1024, 256),
        2,
        30,
        97.72,
        [212.18, 90.37, 645.93],
        [19.71, 19.53, 20.83],
    ),
    made(
        "Scaling",
        "Concurrency Scaling",
        (1024, 256),
        4,
        30,
        167.97,
        [115.15, 135.27, 146.19],
        [22.13, 22.28, 22.61],
    ),
    made(
        "Scaling",
        "Concurrency Scaling",
        (1024, 256),
        8,
        30,
        255.92,
        [158.72, 173.96, 186.29],
        [28.83, 28.87, 29.42],
    ),
];

#[expect(clippy::too_many_arguments, reason = "a table of numbers")]
const fn made(
    scenario: &'static str,
    category: &'static str,
    lengths: (u32, u32),
    concurrency: u32,
    requests: u64,
    output_per_s: f64,
    ttft_ms: [f64; 3],
    tpot_ms: [f64; 3],
) -> Made {
    Made { scenario, category, lengths, concurrency, requests, output_per_s, ttft_ms, tpot_ms }
}

impl Made {
    fn name(&self) -> String {
        match self.scenario {
            "Scaling" => format!("Scaling (c={})", self.concurrency),
            other => other.to_owned(),
        }
    }

    fn level(&self) -> Level {
        match self.scenario {
            "Scaling" => Level::Concurrency(NonZeroU32::new(self.concurrency).unwrap()),
            _ => Level::AsAsked,
        }
    }

    fn summary(&self, number: u32) -> Summary {
        let mut document: Value = serde_json::from_slice(include_bytes!("summary.json")).unwrap();
        document["run"]["load"]["concurrency"] = self.concurrency.into();
        document["run"]["extent"] = json!({ "requests": self.requests });
        document["metrics"]["concurrency_peak"]["value"] = self.concurrency.into();
        document["run"]["id"] = format!("{number:03}").into();
        document["verdict"] = "valid".into();
        document["warnings"] = json!([]);
        document["time_over"] = 0.into();
        document["failures"] = json!([]);
        (document["workload"]["input_tokens"], document["workload"]["output_tokens"]) =
            (self.lengths.0.into(), self.lengths.1.into());
        (document["scheduled"], document["attempted"]) =
            (self.requests.into(), self.requests.into());
        for outcome in ["rejected", "truncated", "not_sent"] {
            document["outcomes"][outcome] = 0.into();
        }
        document["outcomes"]["ok"] = self.requests.into();
        self.metrics(&mut document["metrics"]);
        document["figures"] = figures(self);
        Summary::from_json_bytes(document.to_string().as_bytes()).unwrap()
    }

    fn metrics(&self, metrics: &mut Value) {
        for (name, [mean, p50, p99]) in
            [("ttft_ms", self.ttft_ms), ("tpot_ms", self.tpot_ms), ("itl_ms", self.tpot_ms)]
        {
            let found = &mut metrics[name];
            for (key, value) in [("mean", mean), ("p50", p50), ("p99", p99), ("max", p99)] {
                found[key] = value.into();
            }
            (found["n"], found["not_certified"]) = (self.requests.into(), json!(["p99", "p999"]));
        }
        metrics["output_throughput"]["value"] = self.output_per_s.into();
        metrics["output_throughput"]["interval"] =
            json!({ "low": self.output_per_s * 0.98, "high": self.output_per_s * 1.02 });
        let per_user = self.output_per_s / f64::from(self.concurrency);
        metrics["per_user_throughput"]["value"] = per_user.into();
        metrics["per_user_throughput"]["interval"] =
            json!({ "low": per_user * 0.98, "high": per_user * 1.02 });
        metrics["pp"]["value"] = (f64::from(self.lengths.0) / self.ttft_ms[0] * 1e3).into();
        metrics["tg"]["value"] = (1e3 / self.tpot_ms[0]).into();
        metrics["peak_output_throughput"]["value"] = (self.output_per_s * 1.1).round().into();
    }
}

fn figures(made: &Made) -> Value {
    let [_, middle, tail] = made.ttft_ms;
    json!({
        "distributions": [
            { "metric": "ttft", "n": made.requests, "points": [[0.0, middle * 0.8], [0.5, middle], [0.99, tail], [1.0, tail]] },
            { "metric": "itl", "n": made.requests * 10, "points": [[0.0, 10.0], [0.5, made.tpot_ms[1]], [1.0, made.tpot_ms[2] * 2.0]] },
        ],
        "course": {
            "from_ms": 0.0, "step_ms": 500.0, "in_flight": [1.0, 2.0, 2.0, 0.5],
            "output_tokens": [0, 40, 60, 12], "ended_ok": [0, 1, 2, 1], "ended_otherwise": [0, 0, 0, 0],
        },
        "requests": { "of": made.requests, "rows": [
            { "id": 1, "why": "sample", "outcome": "ok", "intended_ms": 0.0, "sent_ms": 0.1,
              "first_ms": 60.0, "ended_ms": 900.0, "output_tokens": 24 },
            { "id": 7, "why": "slowest", "outcome": "ok", "intended_ms": 100.0, "sent_ms": 250.0,
              "first_ms": 460.0, "ended_ms": 2000.0, "output_tokens": 24 },
        ] },
        "gaps": { "metric": "itl", "from_ms": 0.0, "step_ms": 1000.0, "edges_ms": [1.0, 10.0, 100.0],
                  "columns": [[3, 40], [1, 20]] },
    })
}

fn manifest(question: Question, names: &[&str]) -> SetManifest {
    let spec = SpecDraft { seed: Some(7), ..SpecDraft::default() }.resolve().unwrap();
    SetManifest {
        key_files: Vec::new(),
        format: 1,
        set: "20260102-030405-set1".to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        tool_version: "0.1.0".to_owned(),
        simulated: false,
        campaign: CampaignSpec {
            question,
            conditions: names
                .iter()
                .map(|name| Condition { name: (*name).to_owned(), spec: spec.clone() })
                .collect(),
            repetition: Repetition {
                runs: NonZeroU32::MIN,
                cool_down: Duration::ZERO,
                restart: None,
                stop_at: None,
            },
            order: Order::Listed,
            seed: 7,
        },
    }
}

fn results(condition: impl Fn(&Made) -> u32) -> Vec<PointResult> {
    (0_u32..)
        .zip(&SUITE)
        .map(|(number, made)| PointResult {
            point: Point {
                number,
                condition: condition(made),
                level: made.level(),
                repetition: 0,
                seed: 7,
                stage: Stage::Planned,
            },
            summary: made.summary(number),
        })
        .collect()
}

fn place(made: &Made) -> u32 {
    match made.scenario {
        "One User" => 0,
        "Decode" => 1,
        _ => 2,
    }
}

fn suite() -> (SetSummary, Vec<PointResult>) {
    let scenario = |made: &[Made]| Scenario {
        category: made[0].category.to_owned(),
        purpose: "To be seen".to_owned(),
        levels: made.iter().map(Made::level).collect(),
    };
    let question = Question::Suite(Suite {
        name: "small".to_owned(),
        title: "A small suite".to_owned(),
        hash: "0123456789abcdef".repeat(4),
        changes: Vec::new(),
        prompts: Prompts::Fresh,
        scenarios: vec![scenario(&SUITE[..1]), scenario(&SUITE[1..2]), scenario(&SUITE[2..])],
    });
    let results = results(place);
    let manifest = manifest(question, &["One User", "Decode", "Scaling"]);
    let mut set = SetSummary::of(&manifest, &results);
    set.suite = Some(SuiteSummary {
        name: "small".to_owned(),
        title: "A small suite".to_owned(),
        hash: "0123456789abcdef".repeat(4),
        changes: Vec::new(),
        prompts: Prompts::Fresh,
        rows: (0_u32..).zip(&SUITE).map(|(number, made)| suite_row(number, made)).collect(),
        scaling: Some(2),
        contaminated: Vec::new(),
    });
    (set, results)
}

fn suite_row(number: u32, made: &Made) -> SuiteRow {
    SuiteRow {
        name: made.name(),
        scenario: made.scenario.to_owned(),
        category: made.category.to_owned(),
        purpose: "To be seen".to_owned(),
        condition: place(made),
        level: made.level(),
        concurrency: Some(made.concurrency),
        input_tokens: Some(made.lengths.0.to_string()),
        output_tokens: Some(made.lengths.1.to_string()),
        requests: Some(made.requests),
        points: vec![number],
        cached_share: Some(0.0),
    }
}

fn narrative() -> Narrative {
    let said = |words: &str| vec![Sentence { text: plain(words), facts: Vec::new() }];
    Narrative {
        summary: said("A summary."),
        scenarios: [("Decode".to_owned(), said("An interpretation."))].into(),
        recommendations: said("A recommendation."),
        ..Narrative::default()
    }
}

fn page() -> Document {
    let (set, points) = suite();
    pages::suite(&SuiteInput { set: &set, points: &points, narrative: &narrative() })
}

fn tables(section: &Section) -> Vec<&Table> {
    let mut tables = Vec::new();
    for block in &section.blocks {
        if let Block::Table(table) = block {
            tables.push(table);
        }
    }
    tables
}

fn titles(table: &Table) -> Vec<&str> {
    table.columns.iter().map(|column| column.title.as_str()).collect()
}

fn texts(table: &Table) -> Vec<Vec<&str>> {
    table.rows.iter().map(|row| row.iter().map(|cell| cell.text.as_str()).collect()).collect()
}

#[test]
fn the_report_has_the_known_sections_first_and_in_their_order() {
    let page = page();
    let sections: Vec<&str> = page.sections.iter().map(|one| one.title.as_str()).collect();
    assert_eq!(page.title, "LLM Inference Benchmark Report");
    assert_eq!(
        sections,
        [
            "Executive Summary",
            "System Configuration",
            "Performance Summary",
            "Prefill (PP) and Decode (TG)",
            "Concurrency Scaling",
            "Scenario Results",
            "Recommendations",
            "How far to believe this",
            "Provenance",
        ]
    );
    let subject: Vec<&str> = page.lead.subject.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(subject, ["Model", "Hardware", "Date", "Suite"]);
    let header: Vec<&str> = page.header.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(
        header,
        ["Measured", "Model", "Hardware", "Generated by", "Suite", "Verdict", "Simulated", "Note"]
    );
    let scenarios: Vec<&str> =
        page.sections[5].sections.iter().map(|one| one.title.as_str()).collect();
    assert_eq!(
        scenarios,
        ["One User", "Decode", "Scaling (c=2)", "Scaling (c=4)", "Scaling (c=8)"]
    );
}

#[test]
fn the_tables_have_the_known_columns_and_digits() {
    let page = page();
    let performance = tables(&page.sections[2])[0];
    assert_eq!(
        titles(performance),
        [
            "Scenario",
            "Category",
            "Input (tok)",
            "Output (tok)",
            "Concurrency",
            "Output Throughput (tok/s)",
            "TTFT mean (ms)",
            "TPOT mean (ms)",
            "TPOT p99 (ms)",
        ]
    );
    assert_eq!(
        texts(performance)[0],
        ["One User", "Latency", "2048", "512", "1", "49.26", "1082.20", "18.22", "18.28"]
    );
    let tail = &performance.rows[0][8];
    assert!(tail.doubtful, "a p99 of 20 requests is not certified: {tail:?}");
    let detail = performance.rows[0][5].detail.as_deref().unwrap();
    assert_eq!(detail, "95 % 48.27 to 50.25 within the run");
    let rates = tables(&page.sections[3])[0];
    assert_eq!(titles(rates), ["Scenario", "Prefill (PP) tok/s", "Token Generation (TG) tok/s"]);
    assert_eq!(texts(rates)[0], ["One User", "1892.4", "54.9"]);
    let scaling = tables(&page.sections[4])[0];
    assert_eq!(
        titles(scaling),
        [
            "Concurrency",
            "Output Throughput (tok/s)",
            "Per-user Throughput (tok/s)",
            "TTFT p99 (ms)",
            "TPOT p99 (ms)",
        ]
    );
    assert_eq!(texts(scaling)[1], ["4", "167.97", "41.99", "146.19", "22.61"]);
    let system = tables(&page.sections[1])[0];
    assert_eq!(titles(system), ["Component", "Value"]);
    assert_eq!(texts(system)[0], ["GPU(s)", "–"]);
}

#[test]
fn the_scaling_section_names_sweet_spot_and_peak_and_draws_them_as_mermaid_too() {
    let text = markdown::render(&page()).text;
    assert!(text.contains("**Interactive sweet spot:** c=4 ("), "{text}");
    assert!(text.contains("per-user 42.0 tok/s"), "{text}");
    assert!(text.contains("**Peak throughput (scaling):** c=8 (255.9 tok/s"), "{text}");
    let drawn = "```mermaid\nxychart-beta\n    title \"Output throughput against concurrency\"\n    \
                 x-axis \"Concurrency\" [\"2\", \"4\", \"8\"]\n    y-axis \"tok/s\"\n    line [97.72, \
                 167.97, 255.92]\n";
    assert!(text.contains(drawn), "{text}");
}

#[test]
fn a_small_suite_as_markdown() {
    insta::assert_snapshot!(markdown::render(&page()).text);
}

fn walk(blocks: &[Block], found: &mut Vec<String>) {
    for block in blocks {
        if let Block::Figure(figure) = block {
            let chart = &figure.chart;
            found.push(format!("{}: {} [{}]", chart.id, chart.finding, chart.n));
        }
        if let Block::Details { blocks, .. } = block {
            walk(blocks, found);
        }
    }
}

fn sections(all: &[Section], found: &mut Vec<String>) {
    for section in all {
        walk(&section.blocks, found);
        sections(&section.sections, found);
    }
}

#[test]
fn charts_say_what_they_show_with_their_own_numbers() {
    let mut findings = Vec::new();
    sections(&page().sections, &mut findings);
    let mut ids: Vec<&str> = findings.iter().map(|line| line.split(':').next().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), findings.len(), "every chart has a name of its own");
    insta::assert_snapshot!(findings.join("\n"));
}

#[test]
fn a_hostile_model_name_is_text_in_every_form() {
    let (mut set, mut points) = suite();
    let hostile = "<script>alert(1)</script>\"'=HYPERLINK()";
    for condition in &mut set.conditions {
        condition.subject.as_mut().unwrap().model = hostile.to_owned();
    }
    for result in &mut points {
        result.summary.run.model = format!("={hostile}");
    }
    let input = SuiteInput { set: &set, points: &points, narrative: &Narrative::default() };
    let document = pages::of_set(&input);
    let page = html::render(&document);
    assert!(!page.contains("<script>alert"), "the name is markup");
    assert!(!markdown::render(&document).text.contains("<script>alert"));
    let table = csv::of_set(&set, &points);
    assert!(table.lines().nth(1).unwrap().contains("'=<script>"), "{table}");
}

#[test]
fn the_spreadsheet_has_a_row_for_each_level_and_a_unit_in_each_head() {
    let (set, points) = suite();
    let table = csv::of_set(&set, &points);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 1 + SUITE.len());
    let heads: Vec<&str> = lines[0].split(',').collect();
    let column = heads.iter().position(|head| *head == "output_throughput (tok/s)").unwrap();
    assert_eq!(heads[column + 1], "output_throughput low (tok/s)");
    let row: Vec<&str> = lines[2].split(',').collect();
    assert_eq!((row[1], row[column]), ("Decode", "56.28"));
    assert_eq!(row.len(), heads.len());
    let one = csv::of_run(&points[0].summary);
    assert_eq!(one.lines().count(), 2);
}

#[test]
fn a_run_and_a_sweep_have_pages_of_their_own() {
    let points: Vec<PointResult> = results(|_| 0).split_off(2);
    let question = Question::Sweep(Sweep {
        dimension: Dimension::Concurrency,
        levels: Vec::new(),
        waves: None,
        fine: None,
        find: None,
    });
    let set = SetSummary::of(&manifest(question, &["stock"]), &points);
    let facts = facts::of_set(&set, &points);
    let narrative = findings::of_set(&set, &points, &facts);
    let page = pages::of_set(&SuiteInput { set: &set, points: &points, narrative: &narrative });
    let text = markdown::render(&page).text;
    for part in ["## Levels", "## Findings", "## Charts", "## Provenance", "Sweet spot:"] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    let summary = &points[1].summary;
    let run = pages::run(summary, &findings::of_run(summary, &facts::of_run(summary)));
    let text = markdown::render(&run).text;
    for part in ["## Performance", "## How far to believe this", "Plan fingerprint"] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
}

#[test]
fn an_unfinished_suite_says_so() {
    let (mut set, mut points) = suite();
    let rows = &mut set.suite.as_mut().unwrap().rows;
    rows[4].points.clear();
    points.pop();
    let input = SuiteInput { set: &set, points: &points, narrative: &Narrative::default() };
    let text = markdown::render(&pages::suite(&input)).text;
    assert!(text.contains("Not measured: Scaling (c=8)."), "{text}");
}
