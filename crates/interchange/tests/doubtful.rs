//! What a file writes and cannot mean does not become a figure, and is named.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use inferometer_analysis::tool_result::{CountsFrom, Grain, LatencyKind, Mark, ToolResult};
use inferometer_interchange::{Import, ImportError, read_file};
use inferometer_model::import::ImportReading;

const GUIDELLM: &str = include_str!("foreign/guidellm-concurrent.json");
const AIPERF_LINES: &str = include_str!("foreign/aiperf-requests.jsonl");
const LLM_D: &str = include_str!("foreign/llm-d.yaml");
/// As `PyYAML` writes it: with its keys in the order of the alphabet.
const LLM_D_SORTED: &str = include_str!("foreign/llm-d-sorted.yaml");

fn import(text: &str) -> Import {
    read_file("file", text.as_bytes(), &ImportReading::default()).unwrap()
}

fn one(text: &str) -> ToolResult {
    let import = import(text);
    assert_eq!(import.records.len(), 1, "{:?}", import.records);
    import.results().next().unwrap().clone()
}

fn with(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "{old}");
    text.replace(old, new)
}

#[test]
fn zeros_of_an_empty_list_are_no_latency() {
    let json = one(concat!(
        r#"{"completed": 5, "mean_ttft_ms": 12.5, "p99_ttft_ms": 0, "mean_tpot_ms": 0.0, "#,
        r#""median_tpot_ms": 0.0, "std_tpot_ms": 0.0, "p99_tpot_ms": 0.0, "mean_itl_ms": 0.0, "#,
        r#""mean_client_queue_time_ms": 0.0}"#
    ));
    let block = one("== Serving Benchmark Result ==\nSuccessful requests: 5\n\
                     Mean TTFT (ms): 12.50\nP99 TTFT (ms): 0.00\nMean TPOT (ms): 0.00\n\
                     P99 TPOT (ms): 0.00\nMean ITL (ms): 0.00\n====================\n");
    for result in [&json, &block] {
        let kinds: Vec<_> = result.latencies.iter().map(|latency| latency.kind).collect();
        assert_eq!(kinds, [LatencyKind::Ttft]);
        let said = "has nothing but zeros: there was nothing to measure";
        assert_eq!(
            result.unmapped,
            [format!("line 1: TPOT {said}"), format!("line 1: ITL {said}")]
        );
    }
    assert_eq!(json.further.get("mean_client_queue_time_ms"), Some(&0.0), "nobody waited");
    let failed = one("{\"completed\": 0, \"failed\": 3, \"mean_ttft_ms\": 0, \"p99_ttft_ms\": 0}");
    assert!(failed.latencies.is_empty());
    let seconds = with(LLM_D, "mean: 12.5, p50: 12.0, p99: 20.0", "mean: 0, p50: 0.0, p99: 0");
    assert!(one(&seconds).latency(LatencyKind::Tpot).is_none());
}

#[test]
fn a_bare_word_on_its_own_line_does_not_cost_its_record() {
    let text = "{\n  \"completed\": 2,\n  \"ttfts\": [\n    0.25,\n    NaN\n  ]\n}\n";
    let result = one(text);
    assert_eq!(result.completed, Some(2));
    assert_eq!(result.unmapped, ["line 1: ttfts: 1 values are none"]);
}

#[test]
fn a_report_in_the_order_of_the_alphabet_is_the_same_report() {
    let (sorted, mut written) = (one(LLM_D_SORTED), one(LLM_D));
    written.unmapped.sort();
    assert_eq!(ToolResult { unmapped: written.unmapped.clone(), ..sorted.clone() }, written);
    let old = "metrics:\n  requests: {total: 3}\nscenario:\n  load: {}\nversion: '0.1'\n";
    let refused = read_file("file", old.as_bytes(), &ImportReading::default()).unwrap_err();
    assert!(matches!(refused, ImportError::AllBroken { count: 1, line: 1, .. }), "{refused}");
    assert!(refused.to_string().contains("version 0.1"), "{refused}");
}

#[test]
fn any_report_may_say_that_it_is_of_a_simulation() {
    let text = with(LLM_D, "  eid: sweep-7\n", "  keywords: [simulated]\n");
    let result = one(&text);
    assert!(result.source.simulated && result.marks.contains(&Mark::Simulated));
    assert!(!one(LLM_D).source.simulated);
}

#[test]
fn a_report_means_what_the_tool_meant_that_it_took_figures_from() {
    let of = |tool: &str| one(&with(LLM_D, "tool: inference-perf", &format!("tool: {tool}")));
    let grain = |tool: &str, kind| of(tool).latency(kind).unwrap().grain;
    assert_eq!(
        grain("guidellm", LatencyKind::Tpot),
        Grain::Unknown,
        "perhaps with the first token"
    );
    assert_eq!(grain("vllm-benchmark", LatencyKind::Tpot), Grain::Request);
    assert_eq!(grain("aiperf", LatencyKind::Itl), Grain::Unknown, "one mean for each answer");
    assert_eq!(grain("vllm-benchmark", LatencyKind::Itl), Grain::Chunk);
    let quick = one(&with(LLM_D, "mean: 1.75, p99: 3.5", "mean: 0.1, p99: 3.5"));
    assert!(quick.latency(LatencyKind::E2e).is_none());
    assert!(quick.latency(LatencyKind::Ttft).is_some());
    assert!(quick.unmapped[0].contains("below that of the first token"), "{:?}", quick.unmapped);
}

#[test]
fn what_was_begun_is_not_what_was_planned() {
    let report = one(LLM_D);
    assert_eq!((report.completed, report.requests_planned), (Some(476), None));
    let incomplete = |count: &str| ("incomplete_requests".to_owned(), count.to_owned());
    assert!(report.metadata.contains(&incomplete("1")));
    assert_eq!(report.marks.first(), Some(&Mark::Failures { failed: 3 }));
    let asked = one(&with(LLM_D, "tool: inference-perf", "tool: vllm-benchmark"));
    assert_eq!(asked.marks.first(), Some(&Mark::Cut { completed: 476, planned: 480 }));
    let timed = with(GUIDELLM, "\"max_requests\"", "\"max_seconds\"");
    let timed = with(&timed, "\"incomplete\":0,\"total\":4", "\"incomplete\":8,\"total\":12");
    let results: Vec<_> = import(&timed).results().cloned().collect();
    assert_eq!((results[0].completed, results[0].requests_planned), (Some(4), None));
    assert!(results[0].metadata.contains(&incomplete("8")) && results[0].marks.is_empty());
    assert_eq!(results[0].configuration, "", "how many were left names no configuration");
}

#[test]
fn a_broken_document_leaves_those_around_it() {
    let broken = "version: '0.2'\nresults: [\n";
    let text = format!("%YAML 1.2\n---\n{LLM_D}--- # next\n{broken}---\n\n---\n{LLM_D}...\n");
    let import = import(&text);
    let lines = u32::try_from(LLM_D.lines().count()).unwrap();
    let found: Vec<_> = import.results().map(|result| result.source.line.unwrap()).collect();
    assert_eq!(found, [2, 2 + lines + 6]);
    let broken: Vec<_> = import.broken().collect();
    assert_eq!(broken.len(), 1);
    let after = 2 + lines..=2 + lines + 6;
    assert!(after.contains(&broken[0].line), "{broken:?}");
    assert!(broken[0].reason.starts_with("is not YAML"), "{broken:?}");
}

/// Faults: 110.
#[test]
fn a_bad_value_is_named_once() {
    let result = one(&with(LLM_D, "p99: 0.25", "p99: soon"));
    let named = result.unmapped.iter().filter(|what| what.contains("“soon”"));
    assert_eq!(named.count(), 1, "{:?}", result.unmapped);
}

#[test]
fn a_clock_that_was_turned_back_gives_no_latency() {
    let first = AIPERF_LINES.lines().next().unwrap();
    let mut line: serde_json::Value = serde_json::from_str(first).unwrap();
    line["metadata"]["request_end_ns"] = 1.into();
    let result = one(&line.to_string());
    assert!(result.latency_from(LatencyKind::E2e, CountsFrom::Schedule).is_none());
    assert_eq!(result.duration_s, Some(0.0));
    assert!(result.latency(LatencyKind::Ttft).is_some());
    let said = "metadata.request_end_ns of 1 lines, which is missing or before its beginning";
    assert_eq!(result.unmapped, [said]);
}

#[test]
fn a_line_with_its_effective_latency_counts_once() {
    let first = AIPERF_LINES.lines().next().unwrap();
    let mut line: serde_json::Value = serde_json::from_str(first).unwrap();
    line["metrics"]["effective_latency"] = serde_json::json!({ "value": 125.0, "unit": "ms" });
    let result = one(&line.to_string());
    let e2e = result.latency_from(LatencyKind::E2e, CountsFrom::Schedule).unwrap();
    assert_eq!((e2e.n, e2e.mean_ms), (Some(1), Some(125.0)));
}

#[test]
fn keys_without_a_record_are_no_empty_import() {
    let text = "\"mean_e2e_latency_ms\" and \"output_throughput\"\n";
    let refused = read_file("file", text.as_bytes(), &ImportReading::default()).unwrap_err();
    assert!(matches!(refused, ImportError::NothingRecognised { .. }), "{refused}");
}
