//! Files for other tools, against what those tools insist on.

use inferometer_analysis::tool_result::ResultRate;
use serde_json::{Value, json};

use super::*;
use crate::{aiperf, llm_d, vllm};

fn latency(kind: LatencyKind, from: CountsFrom, grain: Grain, mean_ms: f64) -> ResultLatency {
    let ranks = [("50", mean_ms - 1.0), ("99", mean_ms + 1.0), ("99.9", mean_ms + 2.0)];
    ResultLatency {
        n: Some(40),
        mean_ms: Some(mean_ms),
        std_ms: Some(0.5),
        min_ms: Some(1.0),
        max_ms: Some(mean_ms + 3.0),
        percentiles_ms: ranks.map(|(rank, ms)| (rank.to_owned(), ms)).into(),
        ..ResultLatency::new(kind, from, grain)
    }
}

fn result() -> ToolResult {
    let mut result = ToolResult {
        source: ResultSource {
            version: Some("0.1.0".to_owned()),
            name: "calm-1".to_owned(),
            ..ResultSource::default()
        },
        model: Some("mistralai/Mistral-7B".to_owned()),
        tokenizer: Some("words".to_owned()),
        backend: Some("chat".to_owned()),
        started: Some("2026-01-02T03:04:05Z".to_owned()),
        request_rate: Some(ResultRate::PerSecond(10.0)),
        burstiness: Some(1.0),
        max_concurrency: Some(8),
        tensor_parallel: Some(4),
        requests_planned: Some(40),
        completed: Some(40),
        failed: Some(0),
        duration_s: Some(4.5),
        input_tokens: Some(4_000),
        output_tokens: Some(1_200),
        request_throughput: Some(9.5),
        request_goodput: Some(9.0),
        output_throughput: Some(285.0),
        total_token_throughput: Some(1_235.0),
        latencies: vec![
            latency(LatencyKind::Ttft, CountsFrom::Schedule, Grain::Request, 90.0),
            latency(LatencyKind::Ttft, CountsFrom::Send, Grain::Request, 50.0),
            latency(LatencyKind::Tpot, CountsFrom::Output, Grain::Request, 9.0),
            latency(LatencyKind::Itl, CountsFrom::Output, Grain::Token, 7.0),
            latency(LatencyKind::Itl, CountsFrom::Output, Grain::Chunk, 8.0),
            latency(LatencyKind::E2e, CountsFrom::Schedule, Grain::Request, 160.0),
            latency(LatencyKind::E2e, CountsFrom::Send, Grain::Request, 120.0),
        ],
        ..ToolResult::default()
    };
    result.marks = Mark::found(&result);
    result
}

/// Half of it was never done, some failed, and no server was there.
fn poor() -> ToolResult {
    let mut result = ToolResult { completed: Some(20), failed: Some(4), ..result() };
    result.source.simulated = true;
    result.marks = Mark::found(&result);
    result
}

fn aiperf(result: &ToolResult) -> Value {
    serde_json::from_str(&aiperf::document(result).unwrap()).unwrap()
}

fn llm_d(result: &ToolResult) -> Value {
    serde_json::from_str(&llm_d::document(result).unwrap()).unwrap()
}

#[test]
fn moments_are_those_of_iso_8601() {
    assert_eq!(moment("2026-01-02T03:04:05.6Z").as_deref(), Some("2026-01-02T03:04:05.6Z"));
    assert_eq!(moment("20250424-225517").as_deref(), Some("2025-04-24T22:55:17"));
    for other in ["", "yesterday", "20250424-2255177", "2026-01-02T03:04:05ü"] {
        assert_eq!(moment(other), None, "{other}");
    }
}

#[test]
fn aiperf_has_its_own_names_for_latencies() {
    let found = aiperf(&result());
    assert_eq!(found["time_to_first_token"]["avg"], 50.0, "from the sending");
    assert_eq!(found["inter_token_latency"]["avg"], 9.0, "one for each answer");
    assert_eq!(found["inter_chunk_latency"]["avg"], 8.0);
    assert_eq!(found["request_latency"]["avg"], 120.0);
    assert_eq!(found["effective_latency"]["avg"], 160.0, "from the schedule");
    let expected = json!({
        "unit": "ms", "avg": 50.0, "p50": 49.0, "p99": 51.0, "p99.9": 52.0,
        "min": 1.0, "max": 53.0, "std": 0.5, "count": 40,
    });
    assert_eq!(found["time_to_first_token"], expected);
}

#[test]
fn aiperf_is_told_the_load_and_that_all_went_well() {
    let found = aiperf(&result());
    let phase = json!([{
        "name": "profiling", "kind": "profiling", "type": "poisson",
        "requests": 40, "concurrency": 8, "rate": 10.0,
    }]);
    assert_eq!(found["input_config"]["phases"], phase);
    assert_eq!(found["input_config"]["endpoint"]["type"], "chat");
    assert_eq!(found["is_complete"], true);
    assert_eq!(found["error_summary"], json!([]));
    assert_eq!(found["measured_by"], "inferometer 0.1.0");
    assert_eq!(found.get("simulated"), None);
    assert_eq!(found["total_isl"], json!({ "unit": "tokens", "avg": 4000.0 }));
}

#[test]
fn aiperf_is_told_what_to_doubt() {
    let found = aiperf(&poor());
    assert_eq!(found["is_complete"], false);
    assert_eq!(found["incomplete_reason"], "20 of 40 requests completed");
    assert_eq!(found["simulated"], true);
    assert_eq!(found["error_request_count"]["avg"], 4.0);
    assert_eq!(found.get("error_summary"), None, "how they failed is not known");
}

#[test]
fn a_verdict_does_not_make_a_run_incomplete() {
    let mut invalid =
        ToolResult { verdict: Some(inferometer_analysis::Verdict::Invalid), ..result() };
    invalid.marks = Mark::found(&invalid);
    let found = aiperf(&invalid);
    assert_eq!(
        (&found["is_complete"], &found["inferometer_verdict"]),
        (&json!(true), &json!("invalid"))
    );
    assert_eq!(llm_d(&invalid)["run"]["keywords"], json!(["inferometer_verdict:invalid"]));
}

/// A latency whose meaning its source leaves open would come back with one.
#[test]
fn what_is_not_defined_is_not_written_as_if_it_were() {
    let open = vec![
        latency(LatencyKind::Ttft, CountsFrom::Unknown, Grain::Request, 50.0),
        latency(LatencyKind::Itl, CountsFrom::Output, Grain::Unknown, 7.0),
    ];
    let mut given = ToolResult { latencies: open, ..result() };
    given.source.tool = Tool::Sglang;
    let vllm = vllm::line(&given, &vllm::Writing::default()).unwrap();
    assert!(!vllm.contains("itl") && !vllm.contains("ttft"), "{vllm}");
    let found = aiperf(&given);
    assert_eq!((found.get("inter_chunk_latency"), found.get("time_to_first_token")), (None, None));
    let report = llm_d(&given);
    let latency = &report["results"]["request_performance"]["aggregate"]["latency"];
    assert_eq!(latency["inter_token_latency"]["mean"], 7.0, "a reader takes it for unknown");
    assert_eq!(latency.get("time_to_first_token"), None, "a reader takes it from the sending");
}

#[test]
fn who_measured_is_told_once() {
    let of = |tool, version: &str| {
        measured_by(&ResultSource { tool, version: Some(version.to_owned()), ..result().source })
    };
    assert_eq!(of(Tool::Sglang, "0.4"), "sglang 0.4");
    assert_eq!(of(Tool::AiPerf, "inferometer 0.1.0"), "inferometer 0.1.0");
    let mut given = result();
    given.source = ResultSource {
        tool: Tool::AiPerf,
        version: Some("0.3".to_owned()),
        ..ResultSource::default()
    };
    let found = aiperf(&given);
    assert_eq!((&found["aiperf_version"], found.get("measured_by")), (&json!("0.3"), None));
}

#[test]
fn a_load_that_aiperf_does_not_have_is_left_out() {
    let traced = ToolResult { request_rate: None, ..result() };
    assert_eq!(aiperf(&traced).get("input_config"), None);
    let at_once = ResultRate::Unlimited;
    let burst = ToolResult { request_rate: Some(at_once), max_concurrency: None, ..result() };
    assert_eq!(aiperf(&burst)["input_config"]["phases"][0]["concurrency"], 40);
    assert_eq!(aiperf(&burst)["all_at_once"], true, "it is no cap");
    assert_eq!(aiperf(&result()).get("all_at_once"), None);
}

#[test]
fn llm_d_has_a_gap_for_each_token() {
    let found = llm_d(&result());
    let aggregate = &found["results"]["request_performance"]["aggregate"];
    let latency = &aggregate["latency"];
    assert_eq!(latency["time_to_first_token"]["mean"], 50.0);
    assert_eq!(latency["time_to_first_token"]["p99p9"], 52.0);
    assert_eq!(latency["time_to_first_token"]["units"], "ms");
    assert_eq!(latency["time_per_output_token"]["units"], "ms/token");
    assert_eq!(latency["inter_token_latency"]["mean"], 7.0);
    assert_eq!(aggregate["throughput"]["input_token_rate"]["mean"], 950.0);
    assert_eq!(aggregate["throughput"]["request_rate"]["units"], "queries/s");
    let of_chunks = |tool| {
        let mut given = result();
        given.source.tool = tool;
        given.latencies.retain(|latency| latency.grain != Grain::Token);
        llm_d(&given)["results"]["request_performance"]["aggregate"]["latency"].clone()
    };
    assert_eq!(of_chunks(Tool::Inferometer).get("inter_token_latency"), None);
    assert_eq!(of_chunks(Tool::Vllm)["inter_token_latency"]["mean"], 8.0);
    assert_eq!(of_chunks(Tool::Sglang)["inter_token_latency"]["mean"], 8.0, "read as unknown");
}

#[test]
fn llm_d_is_told_who_measured_and_what_is_missing() {
    let found = llm_d(&poor());
    assert_eq!(
        found["run"]["description"],
        "measured by inferometer 0.1.0; no server was measured; 20 of 40 requests completed"
    );
    assert_eq!(found["run"]["keywords"], json!(["simulated"]));
    assert_eq!(found["run"]["time"]["duration"], "PT4.5S");
    let requests = &found["results"]["request_performance"]["aggregate"]["requests"];
    assert_eq!(requests["total"], 40);
    assert_eq!(requests["failures"], 4);
    assert_eq!(requests["incomplete"], 16);
    let load = &found["scenario"]["load"]["standardized"];
    assert_eq!((&load["rate_qps"], &load["concurrency"]), (&json!(10.0), &json!(8)));
}
