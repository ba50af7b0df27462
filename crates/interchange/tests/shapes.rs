//! What a file may look like: results between other text, old and new labels, broken records.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use inferometer_analysis::tool_result::{
    CountsFrom, Form, Grain, LatencyKind, ResultLatency, ResultRate, ToolResult,
};
use inferometer_interchange::{
    BrokenRecord, ImportError, Imported, PublishedTable, PublishedTableError, read_results,
};

/// What is known of a latency; nothing where it is not there.
fn latency(result: &ToolResult, kind: LatencyKind) -> ResultLatency {
    let nothing = || ResultLatency::new(kind, CountsFrom::Unknown, Grain::Unknown);
    result.latency(kind).cloned().unwrap_or_else(nothing)
}

fn results(text: &str) -> Vec<ToolResult> {
    read_results(text).unwrap().iter().filter_map(Imported::result).cloned().collect()
}

fn one(text: &str) -> ToolResult {
    let results = results(text);
    assert_eq!(results.len(), 1);
    results.into_iter().next().unwrap()
}

fn broken(text: &str) -> Vec<BrokenRecord> {
    read_results(text).unwrap().iter().filter_map(Imported::broken).cloned().collect()
}

#[test]
fn json_lines_are_found_inside_of_a_page() {
    let page = include_str!("rate-page.txt");
    assert!(broken(page).is_empty());
    let rows = results(page);
    let lines: Vec<_> = rows.iter().map(|row| row.source.line.unwrap()).collect();
    assert_eq!(lines, [11, 12]);
    assert_eq!(rows[0].model.as_deref(), Some("org/model-24b"));
    assert_eq!(rows[0].request_rate, Some(ResultRate::PerSecond(1.0)));
    assert_eq!(rows[0].request_goodput, None);
    assert_eq!(latency(&rows[0], LatencyKind::Ttft).mean_ms, Some(1_479.339_243_945_044_7));
    assert_eq!(latency(&rows[0], LatencyKind::Ttft).std_ms, Some(889.2));
    assert_eq!(latency(&rows[0], LatencyKind::Tpot).mean_ms, None);
    assert_eq!(rows[0].started.as_deref(), Some("20250424-225517"));
    assert_eq!(rows[0].backend.as_deref(), Some("vllm"));
    assert_eq!(rows[0].tokenizer.as_deref(), Some("org/model-24b"));
    assert_eq!(rows[0].metadata, [("framework".to_owned(), "vllm".to_owned())]);
    assert!(rows[0].unmapped.is_empty(), "{:?}", rows[0].unmapped);
    assert!(!rows[0].is_cut());
    assert_eq!(rows[1].request_rate, Some(ResultRate::Unlimited));
    assert_eq!(rows[1].request_goodput, Some(7.5), "the misspelt key");
    assert!(rows[1].is_cut());
}

#[test]
fn a_block_with_the_new_labels_is_read_with_what_stands_above_it() {
    let block = one(include_str!("new-labels.txt"));
    assert_eq!((block.source.form, block.source.line.unwrap()), (Form::Block, 8));
    assert_eq!(block.model.as_deref(), Some("org/model-8b"));
    assert_eq!(block.request_rate, Some(ResultRate::PerSecond(4.0)));
    assert_eq!(block.burstiness, Some(1.0));
    assert_eq!(block.max_concurrency, None);
    assert_eq!(
        (block.requests_planned, block.completed, block.failed),
        (Some(60), Some(50), Some(10))
    );
    assert!(block.is_cut());
    assert_eq!(block.output_tokens, Some(6400));
    assert_eq!(block.request_goodput, Some(2.10));
    assert_eq!(block.peak_output_throughput, Some(610.0));
    assert_eq!(block.peak_concurrent_requests, Some(49));
    assert_eq!(block.total_token_throughput, Some(3824.70));
    assert_eq!(
        (
            latency(&block, LatencyKind::Ttft).mean_ms,
            latency(&block, LatencyKind::Ttft).median_ms()
        ),
        (Some(88.10), None)
    );
    assert_eq!(latency(&block, LatencyKind::Ttft).percentile_ms("99"), Some(201.50));
    assert_eq!(latency(&block, LatencyKind::E2e).percentiles_ms.get("99.9"), Some(&1700.25));
    assert_eq!(latency(&block, LatencyKind::E2e).percentile_ms("99"), None);
    assert_eq!(block.further.get("spec_decode_acceptance_rate"), Some(&61.2));
    assert_eq!(block.backend.as_deref(), Some("openai"));
    assert_eq!(block.unmapped, ["line 23: Median TTFT (ms) is NaN, which no figure can be"]);
}

#[test]
fn one_object_may_span_lines_and_objects_may_share_one() {
    let pretty = "{\n  \"mean_itl_ms\": 1, \"completed\": 3,\n  \"errors\": [\n    {\"a\": []}\n  ],\n  \"duration\": 2.5\n}\n";
    let result = one(pretty);
    assert_eq!((result.source.line.unwrap(), result.duration_s), (1, Some(2.5)));
    assert_eq!(result.unmapped, ["line 1: errors: 1 values are none"]);
    let list = format!(
        "[{{\"mean_itl_ms\": 1, \"completed\": 1}}, {{\"mean_itl_ms\": 1, \"completed\": 2}},\n{pretty}]"
    );
    let lines: Vec<_> =
        results(&list).iter().map(|r| (r.source.line.unwrap(), r.completed)).collect();
    assert_eq!(lines, [(1, Some(1)), (1, Some(2)), (2, Some(3))]);
}

/// Faults: 110.
#[test]
fn what_is_no_figure_is_missing_and_listed() {
    let result = one(concat!(
        r#"{"completed": 2.5, "failed": -1, "duration": "12", "request_rate": 0, "burstiness": Infinity, "#,
        r#""max_concurrency": 5000000000, "mean_ttft_ms": NaN, "p99_ttft_ms": null, "mean_itl_ms": [1], "#,
        r#""request_throughput": true, "model_id": 7}"#
    ));
    assert_eq!(result.burstiness, Some(f64::INFINITY));
    let unmapped = [
        "line 1: completed is 2.5, not a count",
        "line 1: failed is -1, which no figure can be",
        "line 1: duration is the text “12”, not a number",
        "line 1: request_rate is zero, which no rate can be",
        "line 1: max_concurrency is too large",
        "line 1: mean_ttft_ms is the text “NaN”, not a number",
        "line 1: mean_itl_ms is not a number",
        "line 1: request_throughput is not a number",
        "line 1: model_id is not a text",
    ];
    assert_eq!(result.unmapped, unmapped);
    let mut bare = result.clone();
    bare.unmapped.clear();
    bare.burstiness = None;
    let empty = one("{\"mean_itl_ms\": null}");
    assert_eq!(bare, empty, "nothing became zero");
    assert!(!empty.is_cut());
}

#[test]
fn a_broken_record_does_not_take_the_others_with_it() {
    let text = "{\"mean_itl_ms\": 1, \"completed\": 1}\n{\"mean_itl_ms\": 1, \"completed\": 2, \"errors\": [\n{\"mean_itl_ms\": 1, \"completed\": 3}\n{\"event\": 1}\n\
                {\"completed\": \n{\n\"mean_itl_ms\": 1, \"completed\": 4}\n";
    let completed: Vec<_> = results(text).iter().filter_map(|r| r.completed).collect();
    assert_eq!(completed, [1, 3, 4]);
    let broken = broken(text);
    let lines: Vec<_> = broken.iter().map(|record| record.line).collect();
    assert_eq!(lines, [2, 4, 5]);
    assert_eq!(broken[0].reason, "is not JSON: expected `,` or `]` (2 lines below it)");
    assert!(broken[1].reason.contains("without the figures"), "{}", broken[1].reason);
}

#[test]
fn a_line_of_json_lines_that_is_no_json_is_broken_and_a_pages_is_prose() {
    let good = "{\"mean_ttft_ms\": 1}\n";
    let lines = format!("# a sweep\n{good}{{broken\n{{}}\n\n{good}{{'mean_ttft_ms': 1}}\n");
    let found = broken(&lines);
    assert_eq!(found.iter().map(|record| record.line).collect::<Vec<_>>(), [3, 7]);
    assert_eq!(found[0].reason, "is not JSON: key must be a string (column 2)");
    assert!(broken(&format!("{lines}and so on\n")).is_empty());
    assert!(broken(&format!("{good}{{% raw %}}\n{{x}}\n")).is_empty());
    let cut = broken(&format!("{good}{{\"mean_ttft_ms\": 1, \n"));
    assert_eq!(cut[0].reason, "is not JSON: EOF while parsing a value");
}

#[test]
fn an_object_with_counts_alone_is_no_result() {
    let error = read_results("{\"completed\": 1, \"x\": 2}").unwrap_err().to_string();
    assert!(error.contains("with the keys `completed`, `x`"), "{error}");
    for tool in ["vLLM", "SGLang", "GuideLLM", "AIPerf", "llm-d", "genai-bench"] {
        assert!(error.contains(tool), "{error}");
    }
    let error = read_results("ab\u{fffd}\u{1}\u{0}\u{fffd}\u{fffd}h").unwrap_err().to_string();
    assert!(error.ends_with("the file is binary, not text"), "{error}");
}

#[test]
fn blocks_that_do_not_end_stay_apart() {
    let text = "Maximum request concurrency: 8\n\
                == Serving Benchmark Result ==\nSuccessful requests: 5\nMean TTFT (ms): 1\n\
                Maximum request concurrency: 16\n\
                == Serving Benchmark Result ==\nSuccessful requests: 6\n```\nFailed requests: 1\n\
                == Serving Benchmark Result ==\n{\"mean_itl_ms\": 1, \"completed\": 7}\n\
                == Serving Benchmark Result ==\nSuccessful requests: 8\n";
    let found: Vec<_> = results(text)
        .iter()
        .map(|r| (r.source.line.unwrap(), r.completed.unwrap(), r.max_concurrency, r.failed))
        .collect();
    assert_eq!(
        found,
        [(2, 5, Some(8), None), (6, 6, Some(16), None), (11, 7, None, None), (12, 8, None, None)]
    );
    assert_eq!(results(text)[0].unmapped, ["line 5: the block has no end of its own"]);
    assert_eq!(results(text)[3].unmapped, ["line 14: the block has no end of its own"]);
    let reason = "is a block without a figure".to_owned();
    assert_eq!(broken(text), [BrokenRecord { line: 10, reason }]);
}

#[test]
fn a_file_without_results_is_described() {
    let looks = |text: &str| {
        let error = read_results(text).unwrap_err();
        let ImportError::NothingRecognised { looks_like } = error else { panic!("{error}") };
        looks_like
    };
    assert_eq!(looks(" \n"), "the file is empty");
    assert_eq!(looks("a,b\n1,2\n"), "the file has 2 line(s) and begins with “a,b”");
    let strangers = looks("\n{\"event\": 1, \"at\": null}\n{\"event\": 2}");
    assert_eq!(
        strangers,
        "the file has 2 JSON object(s), the first, in line 2, with the keys `event`, `at`"
    );
    assert!(looks("[[row]]\nname = \"a\"").contains("table of published figures"));
    let message = read_results("a,b").unwrap_err().to_string();
    assert!(message.contains("`mean_ttft_ms`") && message.contains("Serving Benchmark Result"));
    let all_broken = read_results("{\"completed\": \n{\"completed\": }").unwrap_err();
    assert!(matches!(all_broken, ImportError::AllBroken { count: 2, line: 1, .. }), "{all_broken}");
}

const ROW: &str = "[[row]]\nname = \"a\"\ninput_tokens = 10\noutput_tokens = 5\nrange_ratio = 0.5\n\
                   concurrency = 1\nrequests = 3\n";

#[test]
fn a_published_table_needs_its_load_and_not_its_figures() {
    let table = PublishedTable::read(ROW).unwrap();
    assert_eq!(table.rows[0].ttft_mean_ms, None);
    let refused = |text: &str| PublishedTable::read(text).unwrap_err().to_string();
    assert!(refused(&format!("{ROW}ttft_mean = 1.0\n")).contains("ttft_mean"));
    assert!(refused(&ROW.replace("concurrency = 1\n", "")).contains("concurrency"));
    assert!(refused("").contains("row"));
    assert_eq!(PublishedTable::read("row = []"), Err(PublishedTableError::NoRows));
    let zero = refused(&format!("{ROW}tpot_p99_ms = 0.0\n"));
    assert!(zero.starts_with("row 1 (`a`) of the published figures: `tpot_p99_ms`"), "{zero}");
    assert!(refused(&format!("{ROW}tpot_p99_ms = nan\n")).contains("tpot_p99_ms"));
    assert!(refused(&ROW.replace("0.5", "1.0")).contains("range_ratio"));
    assert!(refused(&ROW.replace("requests = 3", "requests = 0")).contains("requests"));
}
