//! What is written is read again as what it was.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::BTreeMap;

use inferometer_analysis::Verdict;
use inferometer_analysis::tool_result::{
    CountsFrom, Form, Grain, LatencyKind, Mark, ResultLatency, ResultRate, ResultRequest,
    ResultSource, Tool, ToolResult,
};
use inferometer_interchange::vllm::{Shape, Writing, line};
use inferometer_interchange::{Imported, aiperf, export, llm_d, read_file, read_results};
use inferometer_model::import::ImportReading;
use serde_json::Value;

fn only(text: &str) -> ToolResult {
    let records = read_results(text).unwrap();
    assert_eq!(records.len(), 1);
    records.iter().find_map(Imported::result).unwrap().clone()
}

/// As that tool would have told it.
fn result() -> ToolResult {
    let mut result = ToolResult {
        source: ResultSource {
            tool: Tool::Vllm,
            form: Form::Document,
            line: Some(1),
            ..ResultSource::default()
        },
        model: Some("mistralai/Mistral-7B".to_owned()),
        tokenizer: Some("words".to_owned()),
        backend: Some("openai".to_owned()),
        started: Some("20260102-030405".to_owned()),
        request_rate: Some(ResultRate::Unlimited),
        burstiness: Some(f64::INFINITY),
        max_concurrency: Some(4),
        tensor_parallel: Some(2),
        requests_planned: Some(3),
        completed: Some(1),
        failed: Some(1),
        duration_s: Some(2.5),
        input_tokens: Some(512),
        output_tokens: Some(3),
        request_throughput: Some(0.4),
        request_goodput: Some(0.4),
        output_throughput: Some(1.2),
        total_token_throughput: Some(206.0),
        peak_output_throughput: Some(3.0),
        peak_concurrent_requests: Some(1),
        latencies: vec![
            latency(LatencyKind::Ttft, CountsFrom::Send, Grain::Request, 50.0),
            latency(LatencyKind::Tpot, CountsFrom::Output, Grain::Request, 35.0),
            latency(LatencyKind::Itl, CountsFrom::Output, Grain::Chunk, 30.0),
            latency(LatencyKind::E2e, CountsFrom::Send, Grain::Request, 120.0),
            latency(LatencyKind::E2e, CountsFrom::Schedule, Grain::Request, 620.0),
        ],
        metadata: vec![("framework".to_owned(), "mine".to_owned())],
        further: [
            ("probe_completed", 29.0),
            ("probe_p99_e2el_ms", 3.25),
            ("spec_decode_acceptance_rate", 61.5),
            ("spec_decode_num_drafts", 12.0),
            ("spec_decode_per_position_acceptance_rates.0", 0.75),
            ("spec_decode_per_position_acceptance_rates.1", 0.5),
            ("mean_client_queue_time_ms", 500.0),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into(),
        requests: Some(requests()),
        ..ToolResult::default()
    };
    result.marks = Mark::found(&result);
    result
}

fn latency(kind: LatencyKind, from: CountsFrom, grain: Grain, mean_ms: f64) -> ResultLatency {
    ResultLatency {
        mean_ms: Some(mean_ms),
        std_ms: Some(0.5),
        percentiles_ms: [("50".to_owned(), mean_ms), ("99.9".to_owned(), mean_ms * 2.0)].into(),
        ..ResultLatency::new(kind, from, grain)
    }
}

/// One that went well, and one that did not.
fn requests() -> Vec<ResultRequest> {
    let request = ResultRequest {
        start_s: Some(0.25),
        queued_s: Some(0.5),
        input_tokens: Some(512),
        output_tokens: Some(3),
        ttft_s: Some(0.05),
        e2e_s: Some(0.12),
        gaps_s: vec![0.06, 0.000_000_1],
        text: Some("a “b” \u{1f600}".to_owned()),
        error: Some(String::new()),
    };
    let failed = ResultRequest {
        start_s: Some(0.5),
        queued_s: Some(0.0),
        input_tokens: Some(8),
        text: Some(String::new()),
        error: Some("rejected 429: busy".to_owned()),
        ..ResultRequest::default()
    };
    vec![request, failed]
}

#[test]
fn a_detailed_result_loses_nothing() {
    let given = result();
    let text = line(&given, &Writing { detail: true, ..Writing::default() }).unwrap();
    let mut read = only(&text);
    assert!(read.unmapped.is_empty(), "{:?}", read.unmapped);
    read.configuration.clear();
    assert_eq!(read, given);
    assert!(text.contains("\"probe_completed\": 29, "), "a count has no point: {text}");
}

#[test]
fn a_run_of_ours_stays_the_run_that_it_was() {
    let mut given = result();
    given.source = ResultSource {
        version: Some("0.1.0".to_owned()),
        name: "20260102-030405-calm".to_owned(),
        simulated: true,
        ..ResultSource::default()
    };
    given.verdict = Some(Verdict::Invalid);
    let read = only(&line(&given, &Writing::default()).unwrap());
    assert_eq!(read.source.name, "20260102-030405-calm");
    assert_eq!(read.source.version.as_deref(), Some("inferometer 0.1.0"));
    assert!(read.marks.contains(&Mark::Simulated) && read.marks.contains(&Mark::Invalid));
    assert_eq!(read.metadata, [("framework".to_owned(), "mine".to_owned())]);
    let first = line(&given, &Writing::default()).unwrap();
    let again = line(&read, &Writing::default()).unwrap();
    for key in ["run", "version", "verdict"] {
        let fact = |text: &str| {
            let document: Value = serde_json::from_str(text).unwrap();
            document[format!("inferometer_{key}")].as_str().map(str::to_owned)
        };
        assert!(fact(&first).is_some() && fact(&first) == fact(&again), "{key}: {again}");
    }
}

#[test]
fn a_result_of_another_tool_says_who_measured_it_on_every_trip() {
    let mut given = result();
    given.source.tool = Tool::Sglang;
    given.source.version = Some("0.4".to_owned());
    let read = only(&line(&given, &Writing::default()).unwrap());
    assert_eq!(read.source.version.as_deref(), Some("sglang 0.4"));
    let again = only(&line(&read, &Writing::default()).unwrap());
    assert_eq!(again.source.version, read.source.version);
    let (_, read) = of_file(&aiperf::document(&read).unwrap());
    assert_eq!(read.source.version.as_deref(), Some("sglang 0.4"));
}

#[test]
fn a_p50_beside_the_median_is_written_again() {
    let text = r#"{"completed": 2, "mean_ttft_ms": 5.0, "median_ttft_ms": 4.0, "p50_ttft_ms": 4.0, "p99_ttft_ms": 9.0, "mean_itl_ms": 5.0, "median_itl_ms": 4.0}"#;
    let written = line(&only(text), &Writing::default()).unwrap();
    assert!(written.contains(r#""p50_ttft_ms": 4.0, "p99_ttft_ms": 9.0"#), "{written}");
    assert!(!written.contains("p50_itl_ms"), "{written}");
}

/// Prometheus refuses a page on which a series stands twice.
#[test]
fn results_of_a_published_page_are_different_series() {
    let page = [
        include_str!("../../../examples/published/mi300x-mistral-small-24b-v0.jsonl"),
        include_str!("../../../examples/published/mi300x-mistral-small-24b-v1.jsonl"),
    ]
    .join("\n");
    let import = read_file("page.md", page.as_bytes(), &ImportReading::default()).unwrap();
    let results: Vec<ToolResult> = import.results().cloned().collect();
    assert_eq!(results.len(), 14);
    let text = export::openmetrics(&results);
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let mut series: Vec<&str> = samples.map(|line| line.rsplit_once(' ').unwrap().0).collect();
    let count = series.len();
    series.sort_unstable();
    series.dedup();
    assert_eq!(series.len(), count);
    let otlp: Value = serde_json::from_str(&export::otlp(&results).unwrap()).unwrap();
    let resources = otlp["resourceMetrics"].as_array().unwrap().iter();
    let mut resources: Vec<String> = resources.map(|found| found["resource"].to_string()).collect();
    resources.sort_unstable();
    resources.dedup();
    assert_eq!(resources.len(), 14);
}

/// Names of runs and verdicts differ from line to line, and are no configurations.
#[test]
fn levels_of_a_sweep_are_one_configuration_again() {
    let lines: Vec<String> =
        [(1.0, Verdict::Valid), (2.0, Verdict::Valid), (4.0, Verdict::Invalid)]
            .into_iter()
            .map(|(rate, verdict)| {
                let mut level = result();
                level.source =
                    ResultSource { name: format!("level-{rate}"), ..ResultSource::default() };
                level.request_rate = Some(ResultRate::PerSecond(rate));
                level.verdict = Some(verdict);
                line(&level, &Writing::default()).unwrap()
            })
            .collect();
    let read = read_results(&lines.join("\n")).unwrap();
    let names: Vec<&str> =
        read.iter().map(|record| record.result().unwrap().configuration.as_str()).collect();
    assert_eq!(names[0], names[1]);
    assert_eq!(names[1], names[2]);
}

#[test]
fn published_lines_are_written_again() {
    let writing = Writing { shape: Shape::Old, ..Writing::default() };
    let mut count = 0;
    for published in [
        include_str!("../../../examples/published/mi300x-mistral-small-24b-v0.jsonl"),
        include_str!("../../../examples/published/mi300x-mistral-small-24b-v1.jsonl"),
    ] {
        for original in published.lines() {
            let written: BTreeMap<String, Value> =
                serde_json::from_str(&line(&only(original), &writing).unwrap()).unwrap();
            let original: BTreeMap<String, Value> = serde_json::from_str(original).unwrap();
            for (key, value) in &original {
                assert_eq!(written.get(key), Some(value), "{key}");
            }
            count += 1;
        }
    }
    assert_eq!(count, 14);
}

/// With all keys that the tool of that time wrote.
#[test]
fn an_old_line_is_written_again_letter_by_letter() {
    let page = include_str!("rate-page.txt");
    let original = page.lines().find(|line| line.starts_with("{\"date\"")).unwrap();
    let writing = Writing { shape: Shape::Old, ..Writing::default() };
    assert_eq!(line(&only(original), &writing).unwrap(), original);
}

/// As a run of ours has it, with figures that have no place in some files.
fn own_run() -> ToolResult {
    let whole = |latency: ResultLatency| ResultLatency {
        n: Some(3),
        min_ms: Some(1.0),
        max_ms: Some(900.0),
        ..latency
    };
    let mut result = ToolResult {
        source: ResultSource {
            version: Some("0.1.0".to_owned()),
            name: "20260102-030405-calm".to_owned(),
            simulated: true,
            ..ResultSource::default()
        },
        backend: Some("chat".to_owned()),
        started: Some("2026-01-02T03:04:05Z".to_owned()),
        latencies: result().latencies.into_iter().map(whole).collect(),
        request_rate: Some(ResultRate::PerSecond(2.5)),
        requests_planned: Some(2),
        ..result()
    };
    result.verdict = Some(Verdict::Invalid);
    result.latencies.push(whole(latency(LatencyKind::Itl, CountsFrom::Output, Grain::Token, 20.0)));
    result.marks = Mark::found(&result);
    result
}

fn of_file(text: &str) -> (Tool, ToolResult) {
    let import = read_file("file", text.as_bytes(), &ImportReading::default()).unwrap();
    assert_eq!((import.results().count(), import.broken().count()), (1, 0));
    (import.tool, import.results().next().unwrap().clone())
}

fn assert_same_figures(read: &ToolResult, given: &ToolResult) {
    assert_eq!(read.model, given.model);
    assert_eq!(read.started, given.started);
    assert_eq!(read.source.name, given.source.name);
    assert!(read.source.simulated);
    assert_eq!(read.verdict, given.verdict);
    assert!(read.marks.contains(&Mark::Invalid));
    assert_eq!(read.request_rate, given.request_rate);
    assert_eq!(read.max_concurrency, given.max_concurrency);
    assert_eq!(read.requests_planned, given.requests_planned);
    assert_eq!((read.completed, read.failed), (given.completed, given.failed));
    assert_eq!(read.duration_s, given.duration_s);
    assert_eq!(read.request_throughput, given.request_throughput);
    assert_eq!(read.output_throughput, given.output_throughput);
    assert_eq!(read.total_token_throughput, given.total_token_throughput);
}

#[test]
fn a_summary_for_aiperf_is_read_again() {
    let given = own_run();
    let (tool, read) = of_file(&aiperf::document(&given).unwrap());
    assert_eq!(tool, Tool::AiPerf);
    assert_same_figures(&read, &given);
    assert_eq!((read.input_tokens, read.output_tokens), (given.input_tokens, given.output_tokens));
    assert_eq!((read.burstiness, read.request_goodput), (given.burstiness, given.request_goodput));
    assert_eq!((read.tokenizer, read.backend), (given.tokenizer, given.backend));
    assert_eq!(read.source.version.as_deref(), Some("inferometer 0.1.0"));
    for latency in given.latencies.iter().filter(|latency| latency.grain != Grain::Token) {
        assert!(read.latencies.contains(latency), "{latency:?}");
    }
    assert_eq!(read.latencies.len(), 5);
}

#[test]
fn a_report_for_llm_d_is_read_again() {
    let given = own_run();
    let (tool, read) = of_file(&llm_d::document(&given).unwrap());
    assert_eq!(tool, Tool::LlmD);
    assert_same_figures(&read, &given);
    assert_eq!(read.tensor_parallel, given.tensor_parallel);
    let mut kept: Vec<ResultLatency> = given.latencies;
    kept.retain(|latency| latency.from != CountsFrom::Schedule && latency.grain != Grain::Chunk);
    for mut latency in kept {
        latency.n = None;
        assert!(read.latencies.contains(&latency), "{latency:?} in {:?}", read.latencies);
    }
    assert_eq!(read.latencies.len(), 4);
}

#[test]
fn all_at_once_is_no_cap_when_it_is_read_again() {
    for document in [aiperf::document, llm_d::document] {
        let mut given = own_run();
        given.request_rate = Some(ResultRate::Unlimited);
        given.max_concurrency = None;
        let (_, read) = of_file(&document(&given).unwrap());
        assert_eq!((read.request_rate, read.max_concurrency), (given.request_rate, None));
    }
}

#[test]
fn what_completed_is_known_though_failures_were_not_counted() {
    let given = ToolResult { failed: None, ..own_run() };
    let (_, read) = of_file(&llm_d::document(&given).unwrap());
    assert_eq!((read.completed, read.failed), (given.completed, None));
    assert_eq!(read.requests_planned, given.requests_planned);
}
