//! The pages of a comparison, as a person sees them.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use inferometer_analysis::comparison::{Comparison, Layouts, Margins, Side, Terms};
use inferometer_analysis::tool_result::{
    CountsFrom, Grain, LatencyKind, ResultSource, Tool, ToolResult,
};
use inferometer_analysis::{Summary, Verdict};
use inferometer_report::comparison;
use inferometer_report::terminal::Style;
use serde_json::{Value, json};

/// The stored summary with this seed, concurrency and output throughput.
fn run(seed: u64, concurrency: u32, throughput: f64) -> Summary {
    let mut document: Value = serde_json::from_slice(include_bytes!("summary.json")).unwrap();
    document["steady"]["figures"] = Value::Null;
    document["run"]["id"] = json!(format!("20260102-03040{seed}-abcd"));
    document["run"]["seed"] = json!(seed);
    document["run"]["load"] =
        json!({ "kind": "closed", "concurrency": concurrency, "think": { "kind": "none" } });
    document["workload"]["fingerprint"] = json!(format!("workload-{concurrency}"));
    document["plan"]["fingerprint"] = json!(format!("plan-{seed}"));
    let interval = json!({ "low": throughput * 0.98, "high": throughput * 1.02 });
    document["metrics"]["output_throughput"] =
        json!({ "value": throughput, "unit": "tok/s", "interval": interval });
    let mut summary: Summary = serde_json::from_value(document).unwrap();
    summary.verdict = Verdict::Valid;
    summary
}

fn side(name: &str, runs: Vec<Summary>) -> Side<Summary> {
    Side {
        name: name.to_owned(),
        source: format!("set-{name}"),
        results: runs,
        rows: Vec::new(),
        failed: Vec::new(),
        suite: None,
    }
}

/// Five runs about a throughput, with seeds of their own.
fn five(first_seed: u64, concurrency: u32, throughput: f64) -> Vec<Summary> {
    let factors = [1.0, 1.01, 0.99, 1.005, 0.995];
    (first_seed..).zip(factors).map(|(seed, by)| run(seed, concurrency, throughput * by)).collect()
}

fn terms() -> Terms {
    Terms { primary: None, margins: Margins::DEFAULT, force: false, layouts: None }
}

fn sweeps() -> Comparison {
    let sweep = |seed, factor: f64, levels: &[u32]| {
        levels.iter().flat_map(|level| five(seed, *level, factor * f64::from(*level))).collect()
    };
    let sides = [side("tp8", sweep(1, 30.0, &[8, 16])), side("tp4", sweep(11, 27.0, &[8, 16, 32]))];
    let degrees = [("tp8".to_owned(), 8), ("tp4".to_owned(), 4)];
    let named = ["tp8", "tp4"].map(|name| (name, None));
    let layouts = Some(Layouts::new(8, &degrees, &named).unwrap());
    Comparison::new(&sides, &Terms { layouts, ..terms() }).unwrap()
}

#[test]
fn the_terminal_page_of_two_sets() {
    let sides = [side("base", five(1, 8, 1_000.0)), side("new", five(11, 8, 900.0))];
    let found = Comparison::new(&sides, &terms()).unwrap();
    insta::assert_snapshot!(comparison::terminal(&found, Style::Plain));
}

#[test]
fn the_terminal_page_of_two_sweeps() {
    insta::assert_snapshot!(comparison::terminal(&sweeps(), Style::Plain));
}

#[test]
fn the_markdown_page() {
    let sides = [side("A", vec![run(1, 8, 1_000.0)]), side("B|", vec![run(2, 8, 1_100.0)])];
    let found = Comparison::new(&sides, &terms()).unwrap();
    insta::assert_snapshot!(comparison::markdown(&found));
}

#[test]
fn pages_are_at_most_a_hundred_columns_wide_and_steer_no_terminal() {
    let mut other = five(11, 8, 900.0);
    for run in &mut other {
        run.run.model = "a model with a long name ".repeat(9) + "\u{1b}[31m";
    }
    let name = "a side with a long name".repeat(3);
    let sides = [side(&name, five(1, 8, 1_000.0)), side("B\u{1b}[2J", other)];
    let found = Comparison::new(&sides, &terms()).unwrap();
    let page = comparison::terminal(&found, Style::Plain);
    assert!(!page.contains('\u{1b}'), "{page}");
    for line in page.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for line in comparison::terminal(&sweeps(), Style::Plain).lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn of_many_rows_only_what_decides_is_told() {
    let matrix = |name: &str, seed: u64, throughput: f64| {
        let cells = 1..=20_u32;
        let rows = cells.clone().map(|cell| format!("preset {cell} · model")).collect();
        let runs = cells.map(|cell| run(seed, 8, throughput * f64::from(cell))).collect();
        Side { rows, ..side(name, runs) }
    };
    let found = Comparison::new(&[matrix("old", 1, 100.0), matrix("new", 2, 110.0)], &terms());
    let page = comparison::terminal(&found.unwrap(), Style::Plain);
    let told = page.lines().filter(|line| line.trim_start().starts_with("preset 7 ")).count();
    assert_eq!(told, 1, "{page}");
    assert!(page.contains("every row: model"), "{page}");
    assert!(page.contains("Output throughput (tok/s)\n"), "{page}");
    assert!(page.contains("with this many rows only the primary quantity is shown"), "{page}");
    assert!(!page.contains("TTFT mean"), "{page}");
}

#[test]
fn sides_of_like_names_are_told_apart() {
    let page = |one: &str, other: &str| {
        let sides = [side(one, five(1, 8, 1_000.0)), side(other, five(11, 8, 900.0))];
        let found = Comparison::new(&sides, &terms()).unwrap();
        (comparison::terminal(&found, Style::Plain), comparison::markdown(&found))
    };
    let (terminal, markdown) = page("configuration 1", "configuration 2");
    assert!(terminal.contains("  confi…tion 1  confi…tion 2  "), "{terminal}");
    assert!(terminal.contains("\n  confi…tion 2  set-configuration 2"), "{terminal}");
    assert!(markdown.contains("|  | configuration 1 | configuration 2 | change |"), "{markdown}");

    let (terminal, _) = page("a long name of 1 side, fixed", "a long name of 2 side, fixed");
    assert!(terminal.contains("\n  B  a long name of 2 side, fixed: set-a long"), "{terminal}");
    let heads = terminal.lines().find(|line| line.contains("verdict")).unwrap();
    assert_eq!(heads.split_whitespace().take(2).collect::<Vec<_>>(), ["A", "B"], "{terminal}");
}

#[test]
fn a_side_without_valid_runs_is_said_first() {
    let mut other = five(11, 8, 900.0);
    for run in &mut other {
        run.verdict = Verdict::Invalid;
    }
    let found = Comparison::new(&[side("A", five(1, 8, 1.0)), side("B", other)], &terms()).unwrap();
    let page = comparison::terminal(&found, Style::Plain);
    assert!(page.contains("NOT COMPARED  no valid runs are left of B"), "{page}");
    assert!(page.contains("5 of 5 runs of B are invalid"), "{page}");
}

#[test]
fn the_document_is_one_json_object_of_its_schema() {
    let document: Value = serde_json::from_str(&comparison::json(&sweeps())).unwrap();
    assert_eq!(document["schema"], "inferometer.comparison/1");
    assert_eq!(document["outcomes"][0]["judgement"], "worse");
    assert_eq!(document["levels"][1]["level"]["concurrency"], 16);
}

#[test]
fn several_sides_are_told_at_the_level_that_they_are_judged_with() {
    let sides = [
        side("A", five(1, 8, 1_000.0)),
        side("B", five(11, 8, 1_000.0)),
        side("C", five(21, 8, 900.0)),
    ];
    let page = comparison::terminal(&Comparison::new(&sides, &terms()).unwrap(), Style::Plain);
    assert!(page.contains("WORSE  C against A: Output throughput -10.0 % (97.5 %: "), "{page}");
    assert!(page.contains("Output throughput: its interval is of 97.5 %"), "{page}");
    assert!(page.contains("Its intervals are of 97.5 % each"), "{page}");
}

#[test]
fn a_comparison_that_decides_nothing_says_so_and_a_level_without_is_named() {
    let silent = |run: &Summary| {
        let mut document = serde_json::to_value(run).unwrap();
        document["metrics"]["output_throughput"] =
            json!({ "value": null, "unit": "tok/s", "interval": null, "reason": "nobody counted" });
        serde_json::from_value::<Summary>(document).unwrap()
    };
    let (low, high) = (five(11, 8, 900.0), five(11, 16, 900.0));
    let silent_low: Vec<Summary> = low.iter().map(silent).collect();
    let none = [side("A", five(1, 8, 1_000.0)), side("B", silent_low.clone())];
    let found = Comparison::new(&none, &terms()).unwrap();
    for page in [comparison::terminal(&found, Style::Plain), comparison::markdown(&found)] {
        assert!(page.contains("NOTHING WAS DECIDED: Output throughput could not be"), "{page}");
    }
    let base = [five(1, 8, 1_000.0), five(1, 16, 1_000.0)].concat();
    let part = [side("A", base), side("B", [silent_low, high].concat())];
    let found = Comparison::new(&part, &terms()).unwrap();
    for page in [comparison::terminal(&found, Style::Plain), comparison::markdown(&found)] {
        assert!(page.contains("on average over 1 of 2 levels"), "{page}");
        assert!(page.contains("without c=8 (no run of one side has it)"), "{page}");
        assert!(!page.contains("NOTHING"), "{page}");
    }
}

/// A result of vLLM's client with this output throughput, on four GPUs.
fn result(throughput: f64) -> ToolResult {
    let source = ResultSource { tool: Tool::Vllm, ..ResultSource::default() };
    let mut sheet = ToolResult {
        source,
        model: Some("llama\u{1b}[31m".to_owned()),
        max_concurrency: Some(512),
        tensor_parallel: Some(4),
        completed: Some(1_024),
        output_throughput: Some(throughput),
        ..ToolResult::default()
    };
    let ttft = sheet.latency_mut(LatencyKind::Ttft, CountsFrom::Send, Grain::Request);
    ttft.mean_ms = Some(16_126.02);
    sheet
}

#[test]
fn imported_results_show_how_far_apart_they_are_and_no_judgement() {
    let side = |name: &str, throughput| Side {
        name: name.to_owned(),
        source: format!("import-{name}"),
        results: vec![result(throughput)],
        rows: Vec::new(),
        failed: Vec::new(),
        suite: None,
    };
    let sides = [side("A", 2_275.44), side("B", 2_560.09)];
    let known = [sides[0].layout(), sides[1].layout()];
    let layouts = Some(Layouts::new(8, &[], &known).unwrap());
    let found = Comparison::new(&sides, &Terms { layouts, ..terms() }).unwrap();
    let page = comparison::terminal(&found, Style::Plain);
    for expected in [
        "import-A, 1 result of vLLM, llama",
        "NOT JUDGED  B against A: Output throughput +12.5 %: a side has one result",
        "NOTHING WAS DECIDED: the differences have no interval",
        "2×4 B",
        "5,120",
    ] {
        assert!(page.contains(expected), "no `{expected}` in\n{page}");
    }
    assert!(!page.contains('\u{1b}'), "{page:?}");
    let markdown = comparison::markdown(&found);
    assert!(markdown.contains("**NOT JUDGED**: B against A"), "{markdown}");
}
