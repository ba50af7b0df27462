//! What `--save-detailed` adds becomes requests, and never a zero that was not measured.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use inferometer_analysis::tool_result::{CountsFrom, LatencyKind, ToolResult};
use inferometer_interchange::{Imported, read_results};

fn one(text: &str) -> ToolResult {
    let records = read_results(text).unwrap();
    assert_eq!(records.len(), 1);
    records.iter().find_map(Imported::result).unwrap().clone()
}

#[test]
fn lists_become_requests() {
    let result = one(concat!(
        r#"{"completed": 1, "failed": 1, "input_lens": [7, 8], "output_lens": [3, 0], "#,
        r#""ttfts": [0.25, 0.0], "itls": [[0.01, 0.02], []], "latencies": [0.28, 0], "#,
        r#""start_times": [5.5, 6.0], "generated_texts": ["a b c", ""], "errors": ["", "503"]}"#
    ));
    assert!(result.unmapped.is_empty(), "{:?}", result.unmapped);
    let requests = result.requests.unwrap();
    assert_eq!(requests.len(), 2);
    assert_eq!((requests[0].input_tokens, requests[0].output_tokens), (Some(7), Some(3)));
    assert_eq!((requests[0].ttft_s, requests[0].e2e_s), (Some(0.25), Some(0.28)));
    assert_eq!(requests[0].gaps_s, [0.01, 0.02]);
    assert_eq!(requests[0].start_s, Some(5.5));
    assert_eq!(requests[0].text.as_deref(), Some("a b c"));
    assert_eq!(requests[0].error.as_deref(), Some(""));
    let failed = &requests[1];
    assert_eq!((failed.ttft_s, failed.e2e_s, failed.output_tokens), (None, None, None));
    assert_eq!(failed.input_tokens, Some(8));
    assert_eq!(failed.error.as_deref(), Some("503"));
}

#[test]
fn lists_that_do_not_fit_are_left_out_and_named() {
    let result = one(concat!(
        r#"{"completed": 2, "input_lens": [7, -8], "output_lens": 0, "ttfts": [0.1], "#,
        r#""itls": [[0.01, "x"], {}], "errors": null, "start_times": [NaN, 1]}"#
    ));
    let expected = [
        "line 1: input_lens: 1 values are none",
        "line 1: output_lens is not a list",
        "line 1: ttfts has 1 values, and the lists before it have 2",
        "line 1: itls: 2 values are none",
        "line 1: start_times: 1 values are none",
    ];
    assert_eq!(result.unmapped, expected);
    let requests = result.requests.unwrap();
    assert_eq!((requests[0].input_tokens, requests[1].input_tokens), (Some(7), None));
    assert!(requests.iter().all(|request| request.ttft_s.is_none() && request.gaps_s.is_empty()));
    assert_eq!(requests[1].start_s, Some(1.0));
    assert_eq!(one(r#"{"completed": 2, "mean_itl_ms": 1}"#).requests, None);
}

#[test]
fn figures_of_this_tool_only_are_kept_by_their_keys() {
    let result = one(concat!(
        r#"{"completed": 2, "rtfx": 0.0, "probe_completed": 29, "tp": "4", "note": "x", "best_of": 1, "#,
        r#""spec_decode_per_position_acceptance_rates": [0.75, 0.5], "#,
        r#""mean_client_queue_time_ms": 12.5, "p99_e2el_including_client_queue_ms": 80, "#,
        r#""mean_e2el_ms": 60}"#
    ));
    let further: Vec<_> =
        result.further.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    let expected = [
        ("mean_client_queue_time_ms", 12.5),
        ("probe_completed", 29.0),
        ("spec_decode_per_position_acceptance_rates.0", 0.75),
        ("spec_decode_per_position_acceptance_rates.1", 0.5),
    ];
    assert_eq!(further, expected);
    assert_eq!(result.tensor_parallel, Some(4));
    assert_eq!(result.metadata, [("note".to_owned(), "x".to_owned())]);
    assert_eq!(result.unmapped, ["line 1: best_of"]);
    let from = |from| result.latency_from(LatencyKind::E2e, from).unwrap();
    assert_eq!(from(CountsFrom::Send).mean_ms, Some(60.0));
    assert_eq!(from(CountsFrom::Schedule).percentile_ms("99"), Some(80.0));
}
