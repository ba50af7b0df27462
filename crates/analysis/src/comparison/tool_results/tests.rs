//! Results of other tools against each other, and against runs of our own.

use super::*;
use crate::comparison::{Basis, Comparison, ComparisonProblem, Judgement, Layouts, Margins, Terms};
use crate::tool_result::{ResultRate, ResultSource};

/// A result of vLLM's client with these output tokens per second.
fn result(name: &str, concurrency: u32, throughput: f64) -> ToolResult {
    let mut sheet = ToolResult {
        source: ResultSource { tool: Tool::Vllm, name: name.to_owned(), ..ResultSource::default() },
        model: Some("llama".to_owned()),
        request_rate: Some(ResultRate::Unlimited),
        max_concurrency: Some(concurrency),
        completed: Some(1_024),
        input_tokens: Some(220_902),
        output_tokens: Some(191_594),
        request_throughput: Some(throughput / 187.0),
        output_throughput: Some(throughput),
        ..ToolResult::default()
    };
    let ttft = sheet.latency_mut(LatencyKind::Ttft, CountsFrom::Send, Grain::Request);
    ttft.mean_ms = Some(1e6 / throughput);
    ttft.percentiles_ms.insert("99".to_owned(), 4e6 / throughput);
    let itl = sheet.latency_mut(LatencyKind::Itl, CountsFrom::Output, Grain::Chunk);
    itl.mean_ms = Some(1e5 / throughput);
    sheet
}

fn side(name: &str, sheets: Vec<ToolResult>) -> Side<ToolResult> {
    let source = format!("import-{name}");
    let (name, rows, failed) = (name.to_owned(), Vec::new(), Vec::new());
    Side { name, source, results: sheets, rows, failed, suite: None }
}

fn terms() -> Terms {
    Terms { primary: None, margins: Margins::DEFAULT, force: false, layouts: None }
}

fn compare(sides: &[Side<ToolResult>]) -> Comparison {
    Comparison::new(sides, &terms()).unwrap()
}

fn objection<'a>(found: &'a Comparison, key: &str) -> &'a crate::comparison::Objection {
    let is_named = |objection: &&crate::comparison::Objection| objection.key == key;
    found.objections.iter().find(is_named).unwrap_or_else(|| panic!("no {key}: {found:#?}"))
}

#[test]
fn one_result_a_side_is_a_difference_that_nobody_judges() {
    let sides =
        [side("A", vec![result("a", 512, 2_275.44)]), side("B", vec![result("b", 512, 2_560.09)])];
    let found = compare(&sides);
    assert_eq!(found.primary, "output_throughput");
    let primary = &found.levels[0].against[0].quantities[0];
    assert_eq!((primary.change, primary.judgement), (None, Judgement::NotJudged));
    assert!((primary.bare_ratio.unwrap() - 2_560.09 / 2_275.44).abs() < 1e-12);
    assert!(primary.reason.as_ref().unwrap().contains("one result"));
    let outcome = &found.outcomes[0];
    assert_eq!((outcome.judgement, outcome.change), (Judgement::NotJudged, None));
    assert_eq!(outcome.bare_ratio, primary.bare_ratio);
    assert!(!found.is_regression() && found.decides_nothing() && found.comparisons == 0);
}

#[test]
fn repeats_are_judged_as_runs_are() {
    let repeats = |values: [f64; 3]| values.map(|value| result("r", 8, value)).to_vec();
    let (base, slow) = (repeats([1_000.0, 1_010.0, 990.0]), repeats([900.0, 905.0, 893.0]));
    let found = compare(&[side("A", base), side("B", slow)]);
    assert_eq!(found.outcomes[0].judgement, Judgement::Worse);
    assert_eq!(found.outcomes[0].basis, Basis::Unpaired);
    assert!(found.is_regression());
    let p99 = found.levels[0].quantity(0, "ttft.p99").unwrap();
    assert_eq!((p99.judgement, p99.bare_ratio), (Judgement::Worse, None));
}

#[test]
fn levels_are_matched_by_load_and_count_once_each() {
    let levels = |factor: f64, levels: &[u32]| {
        let at = |level: &u32| result("r", *level, f64::from(*level) * factor);
        levels.iter().map(at).collect::<Vec<_>>()
    };
    let found =
        compare(&[side("A", levels(1.0, &[128, 256, 512])), side("B", levels(2.0, &[512, 128]))]);
    let told: Vec<String> = found.levels.iter().map(|level| level.at.to_string()).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(found.unmatched.len(), 1);
    assert!((found.outcomes[0].bare_ratio.unwrap() - 2.0).abs() < 1e-12);
    let apart = [side("A", levels(1.0, &[1, 2])), side("B", levels(1.0, &[3, 4]))];
    let problem = Comparison::new(&apart, &terms()).unwrap_err();
    assert!(matches!(problem, ComparisonProblem::NoCommonLevel(_)));
}

#[test]
fn only_figures_of_the_same_meaning_are_compared() {
    let mut other = result("b", 8, 1_000.0);
    other.source.tool = Tool::GuideLlm;
    other.latencies.retain(|latency| latency.kind != LatencyKind::Itl);
    other.latency_mut(LatencyKind::Itl, CountsFrom::Output, Grain::Token).mean_ms = Some(9.0);
    other.latency_mut(LatencyKind::E2e, CountsFrom::Send, Grain::Request).mean_ms = Some(99.0);
    let found = compare(&[side("A", vec![result("a", 8, 1_000.0)]), side("B", vec![other])]);
    let level = &found.levels[0];
    assert!(level.quantity(0, "ttft.mean").is_some());
    for name in ["itl.mean", "icl.mean", "e2e.mean"] {
        assert!(level.quantity(0, name).is_none(), "{name}");
    }
    let told = objection(&found, "meaning.itl");
    assert_eq!(told.weight, Weight::Withholds);
    assert!(told.text.contains("per chunk of the stream in the base, per token in B"), "{told:?}");
    assert!(objection(&found, "one_side_only").text.contains("only B has"));
    assert_eq!(objection(&found, "tool").weight, Weight::Warning);
}

#[test]
fn what_a_tool_leaves_open_is_the_same_in_its_own_results_alone() {
    let open = |tool: Tool| {
        let mut sheet = result("r", 8, 1_000.0);
        sheet.source.tool = tool;
        for latency in &mut sheet.latencies {
            latency.from = CountsFrom::Unknown;
        }
        sheet
    };
    let shown = |a: Tool, b: Tool| {
        let found = compare(&[side("A", vec![open(a)]), side("B", vec![open(b)])]);
        found.levels[0].quantity(0, "ttft.mean").is_some()
    };
    assert!(shown(Tool::LlmD, Tool::LlmD) && !shown(Tool::LlmD, Tool::Sglang));
}

#[test]
fn other_loads_and_prompts_are_refused() {
    let refused = |change: &dyn Fn(&mut ToolResult)| {
        let mut other = result("b", 8, 900.0);
        change(&mut other);
        let sides = [side("A", vec![result("a", 8, 1_000.0)]), side("B", vec![other])];
        match Comparison::new(&sides, &terms()) {
            Err(ComparisonProblem::NotComparable(found)) => {
                let forced = Terms { force: true, ..terms() };
                assert!(Comparison::new(&sides, &forced).unwrap().forced);
                found[0].key.clone()
            }
            Err(problem) => panic!("{problem}"),
            Ok(found) => found.objections[0].key.clone(),
        }
    };
    assert_eq!(refused(&|sheet| sheet.max_concurrency = Some(9)), "load");
    assert_eq!(refused(&|sheet| sheet.input_tokens = Some(300_000)), "input_tokens");
    assert_eq!(refused(&|sheet| sheet.source.simulated = true), "simulated");
    assert_eq!(refused(&|sheet| sheet.output_tokens = Some(300_000)), "output_tokens");
    assert_eq!(refused(&|sheet| sheet.completed = Some(1_023)), "requests");
    assert_eq!(refused(&|_| {}), "workload_unknown");
}

#[test]
fn cut_and_failing_results_are_named() {
    let mut other = result("b", 8, 900.0);
    (other.requests_planned, other.failed) = (Some(2_000), Some(900));
    other.marks = Mark::found(&other);
    let found = compare(&[side("A", vec![result("a", 8, 1_000.0)]), side("B", vec![other])]);
    for key in ["cut_results", "failures", "requests"] {
        assert_eq!(objection(&found, key).weight, Weight::Warning, "{key}");
    }
    assert!(found.sides[1].runs[0].partial);
}

#[test]
fn at_a_rate_the_wait_decides_from_sending_where_nobody_says_more() {
    let at_rate = |name: &str| {
        let request_rate = Some(ResultRate::PerSecond(8.0));
        ToolResult { request_rate, max_concurrency: None, ..result(name, 1, 1_000.0) }
    };
    let found = compare(&[side("A", vec![at_rate("a")]), side("B", vec![at_rate("b")])]);
    assert_eq!(found.primary, "ttft.p99");
}

#[test]
fn layouts_come_from_what_the_results_say() {
    let with = |name: &str, degree: u32, throughput: f64| {
        let sheet = result(name, 512, throughput);
        side(name, vec![ToolResult { tensor_parallel: Some(degree), ..sheet }])
    };
    let sides = [with("A", 8, 3_000.0), with("B", 4, 2_275.44), with("C", 2, 1_000.0)];
    let known: Vec<_> = sides.iter().map(Side::layout).collect();
    let layouts = Layouts::new(8, &[], &known).unwrap();
    let found = Comparison::new(&sides, &Terms { layouts: Some(layouts), ..terms() }).unwrap();
    let rows: Vec<(u32, u32, f64)> = found
        .layouts
        .iter()
        .map(|row| (row.replicas, row.tensor_parallel, row.node.value))
        .collect();
    assert_eq!(rows, [(1, 8, 3_000.0), (2, 4, 4_550.88), (4, 2, 4_000.0)]);
    assert!((found.layouts[1].bare_ratio.unwrap() - 4_550.88 / 3_000.0).abs() < 1e-12);
    assert!(found.layouts[1].change.is_none());
    assert_eq!(objection(&found, "tensor_parallel").weight, Weight::Note);
}

#[test]
fn the_document_is_read_back() {
    let sides = [side("A", vec![result("a", 8, 1.0)]), side("B", vec![result("b", 8, 2.0)])];
    let found = compare(&sides);
    let back: Comparison = serde_json::from_slice(&found.to_json_bytes()).unwrap();
    assert_eq!(back, found);
    assert_eq!(back.sides[1].tool, Some(Tool::Vllm));
}
