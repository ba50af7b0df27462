//! The file against what that tool's own scripts look for in it.

use std::collections::BTreeMap;

use inferometer_analysis::tool_result::{Form, Grain, ResultRequest, ResultSource};
use serde_json::Value;

use super::*;
use crate::read_results;

fn latency(kind: LatencyKind, from: CountsFrom, grain: Grain, mean_ms: f64) -> ResultLatency {
    let ranks = [("50", mean_ms - 1.0), ("99.9", mean_ms + 2.0), ("99", mean_ms + 1.0)];
    ResultLatency {
        mean_ms: Some(mean_ms),
        std_ms: Some(0.5),
        percentiles_ms: ranks.map(|(rank, ms)| (rank.to_owned(), ms)).into(),
        ..ResultLatency::new(kind, from, grain)
    }
}

fn requests() -> Vec<ResultRequest> {
    let good = ResultRequest {
        start_s: Some(0.25),
        queued_s: Some(0.0),
        input_tokens: Some(512),
        output_tokens: Some(3),
        ttft_s: Some(0.05),
        e2e_s: Some(0.12),
        gaps_s: vec![0.06, 0.01],
        error: Some(String::new()),
        ..ResultRequest::default()
    };
    let error = Some("rejected 429: “busy”".to_owned());
    vec![good, ResultRequest { input_tokens: Some(8), error, ..ResultRequest::default() }]
}

fn result() -> ToolResult {
    ToolResult {
        source: ResultSource {
            version: Some("0.1.0".to_owned()),
            name: "calm-1".to_owned(),
            ..ResultSource::default()
        },
        model: Some("mistralai/Mistral-7B".to_owned()),
        backend: Some("openai".to_owned()),
        started: Some("2026-01-02T03:04:05Z".to_owned()),
        request_rate: Some(ResultRate::PerSecond(10.0)),
        burstiness: Some(f64::INFINITY),
        requests_planned: Some(2),
        completed: Some(1),
        failed: Some(1),
        duration_s: Some(2.5),
        input_tokens: Some(512),
        output_tokens: Some(3),
        request_throughput: Some(0.4),
        output_throughput: Some(1.2),
        total_token_throughput: Some(206.0),
        peak_output_throughput: Some(3.0),
        peak_concurrent_requests: Some(1),
        latencies: vec![
            latency(LatencyKind::Ttft, CountsFrom::Schedule, Grain::Request, 90.0),
            latency(LatencyKind::Ttft, CountsFrom::Send, Grain::Request, 50.0),
            latency(LatencyKind::Itl, CountsFrom::Output, Grain::Token, 7.0),
            latency(LatencyKind::E2e, CountsFrom::Send, Grain::Request, 120.0),
        ],
        metadata: vec![("site".to_owned(), "lab".to_owned())],
        requests: Some(requests()),
        ..ToolResult::default()
    }
}

fn keys(line: &str) -> Vec<String> {
    // The names of an object of this file hold no quotation marks.
    let mut depth = 0;
    let mut parts = line.split('"');
    let mut keys = Vec::new();
    while let (Some(between), Some(text)) = (parts.next(), parts.next()) {
        for c in between.chars() {
            depth += i32::from(matches!(c, '[' | '{')) - i32::from(matches!(c, ']' | '}'));
        }
        let is_key = !between.ends_with(": ") && depth == 1;
        keys.extend(is_key.then(|| text.to_owned()));
    }
    keys
}

fn parsed(result: &ToolResult, writing: &Writing) -> BTreeMap<String, Value> {
    serde_json::from_str(&line(result, writing).unwrap()).unwrap()
}

#[test]
fn keys_stand_in_the_order_of_that_tool() {
    let ramp = Ramp { strategy: "linear".to_owned(), start_rps: 1, end_rps: 9 };
    let writing = Writing { detail: true, ramp: Some(ramp), ..Writing::default() };
    let expected = "date endpoint_type backend label model_id tokenizer_id num_prompts site \
                    inferometer_run inferometer_version request_rate burstiness max_concurrency \
                    ramp_up_strategy ramp_up_start_rps ramp_up_end_rps duration completed failed \
                    total_input_tokens total_output_tokens request_throughput request_goodput \
                    output_throughput total_token_throughput input_lens output_lens ttfts itls \
                    latencies start_times queue_times generated_texts errors \
                    max_output_tokens_per_s max_concurrent_requests rtfx \
                    mean_ttft_ms median_ttft_ms std_ttft_ms p99_ttft_ms p99.9_ttft_ms \
                    mean_e2el_ms median_e2el_ms std_e2el_ms p99_e2el_ms p99.9_e2el_ms";
    let mut told = result();
    told.requests.iter_mut().flatten().for_each(|row| {
        row.error = Some(String::new());
        row.text = Some(String::new());
    });
    let found = line(&told, &writing).unwrap();
    assert_eq!(keys(&found), expected.split_whitespace().collect::<Vec<_>>());
    let begins = r#"{"date": "20260102-030405", "endpoint_type": "openai", "backend": "openai", "#;
    assert!(found.starts_with(begins), "{found}");
}

#[test]
fn only_figures_of_that_meaning_are_written() {
    let found = parsed(&result(), &Writing::default());
    assert_eq!(found["mean_ttft_ms"], 50.0, "from the sending, not from the schedule");
    assert!(!found.contains_key("mean_itl_ms"), "ours is of tokens, theirs of chunks");
    assert_eq!(found["burstiness"], "inf");
    assert_eq!(found["request_rate"], 10.0);
    assert_eq!(found["max_concurrency"], Value::Null);
    assert_eq!(found["tokenizer_id"], Value::Null, "none was used");
    assert!(!found.contains_key("ttfts"));
}

#[test]
fn what_was_asked_for_is_written_even_when_it_is_nothing() {
    let writing = Writing {
        latencies: Some(vec![LatencyKind::Tpot, LatencyKind::Ttft]),
        percentiles: Some(vec!["50".to_owned(), "99.0".to_owned()]),
        ..Writing::default()
    };
    let found = line(&result(), &writing).unwrap();
    let expected = r#""mean_ttft_ms": 50.0, "median_ttft_ms": 49.0, "std_ttft_ms": 0.5, "p50_ttft_ms": 49.0, "p99_ttft_ms": 51.0, "mean_tpot_ms": null, "median_tpot_ms": null, "std_tpot_ms": null, "p50_tpot_ms": null, "p99_tpot_ms": null}"#;
    assert!(found.ends_with(expected), "{found}");
}

#[test]
fn a_failed_request_has_zeroes_only_in_the_file() {
    let found = parsed(&result(), &Writing { detail: true, ..Writing::default() });
    assert_eq!(found["ttfts"], serde_json::json!([0.05, 0.0]));
    assert_eq!(found["itls"], serde_json::json!([[0.06, 0.01], []]));
    assert_eq!(found["output_lens"], serde_json::json!([3, 0]));
    assert_eq!(found["input_lens"], serde_json::json!([512, 8]));
    assert_eq!(found["latencies"], serde_json::json!([0.12, 0.0]));
    assert_eq!(found.get("generated_texts"), None, "answers were not kept");
    assert_eq!(found["errors"], serde_json::json!(["", "rejected 429: “busy”"]));
}

#[test]
fn a_list_of_which_no_request_has_anything_is_left_out() {
    let rows = [0.05, 0.07].map(|ttft_s| ResultRequest {
        output_tokens: Some(3),
        ttft_s: Some(ttft_s),
        ..ResultRequest::default()
    });
    let given = ToolResult { requests: Some(rows.to_vec()), ..result() };
    let writing = Writing { detail: true, ..Writing::default() };
    let found = parsed(&given, &writing);
    for absent in ["input_lens", "latencies", "start_times", "generated_texts", "errors"] {
        assert_eq!(found.get(absent), None, "{absent}");
    }
    let read = read_results(&line(&given, &writing).unwrap()).unwrap();
    assert_eq!(read[0].result().unwrap().requests, given.requests);
}

#[test]
fn where_nothing_is_generated_the_keys_are_others() {
    let mut given = result();
    given.output_tokens = None;
    for (figure, value) in [(extra::INPUTS, 1.0), (extra::INPUT_THROUGHPUT, 0.4)] {
        given.further.insert(figure.key.to_owned(), value);
    }
    given.latencies.retain(|latency| latency.kind == LatencyKind::E2e);
    let writing = Writing { detail: true, ..Writing::default() };
    let text = line(&given, &writing).unwrap();
    let expected = "duration completed total_input_tokens total_input_sequences \
                    request_throughput input_sequence_throughput total_token_throughput \
                    input_lens latencies start_times queue_times errors \
                    mean_e2el_ms median_e2el_ms std_e2el_ms p99_e2el_ms p99.9_e2el_ms";
    let found = keys(&text);
    let begin = found.iter().position(|key| key == "duration").unwrap();
    assert_eq!(found[begin..], expected.split_whitespace().collect::<Vec<_>>());
    assert!(text.contains("\"total_input_sequences\": 1, "), "{text}");
    let read = read_results(&text).unwrap();
    assert_eq!(read[0].result().unwrap().further, given.further);
}

#[test]
fn who_measured_is_said_of_all_but_that_tool() {
    let of = |tool, version: Option<&str>| {
        let version = version.map(str::to_owned);
        let source = ResultSource { tool, version, ..ResultSource::default() };
        parsed(&ToolResult { source, ..result() }, &Writing::default())
            .get(read::MEASURED_BY)
            .cloned()
    };
    assert_eq!(of(Tool::Vllm, None), None);
    assert_eq!(of(Tool::Sglang, None).unwrap(), "sglang");
    assert_eq!(of(Tool::GuideLlm, Some("0.3")).unwrap(), "guidellm 0.3");
    assert_eq!(of(Tool::Vllm, Some("guidellm 0.3")).unwrap(), "guidellm 0.3", "read back");
}

#[test]
fn detail_that_is_not_there_is_refused() {
    let without = ToolResult { requests: None, ..result() };
    let refused = line(&without, &Writing { detail: true, ..Writing::default() }).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "calm-1 has no figures of single requests, and the detailed form is made of them; export \
         it in the plain form"
    );
}

#[test]
fn figures_win_over_metadata_and_a_simulation_stays_one() {
    let mut given = result();
    given.source.simulated = true;
    given.metadata = vec![
        ("completed".to_owned(), "9999".to_owned()),
        ("simulated".to_owned(), "no".to_owned()),
        ("backend".to_owned(), "mine".to_owned()),
    ];
    let text = line(&given, &Writing::default()).unwrap();
    let found = parsed(&given, &Writing::default());
    assert_eq!(found["completed"], 1);
    assert_eq!(found["simulated"], "true");
    assert_eq!(found["backend"], "mine", "as that tool does");
    assert_eq!(text.matches("\"completed\"").count(), 1);
}

#[test]
fn the_old_shape_has_the_old_keys() {
    let given = ToolResult {
        source: ResultSource { tool: Tool::Vllm, form: Form::Document, ..ResultSource::default() },
        ..result()
    };
    let writing = Writing { shape: Shape::Old, ..Writing::default() };
    let expected = "date backend model_id tokenizer_id num_prompts site request_rate burstiness \
                    max_concurrency duration completed total_input_tokens total_output_tokens \
                    request_throughput request_goodput: output_throughput total_token_throughput";
    let found = keys(&line(&given, &writing).unwrap());
    assert_eq!(found[..17], expected.split_whitespace().collect::<Vec<_>>());
}

#[test]
fn lines_are_put_after_each_other() {
    let writing = Writing::default();
    let mut file = String::new();
    for _ in 0..3 {
        file += separator(file.len() as u64);
        file += &line(&result(), &writing).unwrap();
    }
    assert_eq!(file.lines().count(), 3);
    assert_eq!(read_results(&file).unwrap().len(), 3);
}

#[test]
fn what_is_written_is_read_again() {
    let given = result();
    let text = line(&given, &Writing { detail: true, ..Writing::default() }).unwrap();
    let read = read_results(&text).unwrap();
    let found = read[0].result().unwrap();
    assert_eq!(found.request_rate, given.request_rate);
    assert_eq!(found.burstiness, given.burstiness);
    assert_eq!(found.completed, given.completed);
    assert_eq!(found.failed, given.failed);
    assert_eq!(found.requests_planned, given.requests_planned);
    assert_eq!(found.duration_s, given.duration_s);
    assert_eq!(found.total_token_throughput, given.total_token_throughput);
    assert_eq!(found.peak_concurrent_requests, given.peak_concurrent_requests);
    assert_eq!(found.latency(LatencyKind::Ttft), Some(&given.latencies[1]));
    assert_eq!(found.latency(LatencyKind::E2e), Some(&given.latencies[3]));
    assert_eq!(found.latency(LatencyKind::Itl), None);
}
