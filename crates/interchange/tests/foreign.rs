//! Files of other tools: what each says, what it means by it, and what is left of a broken one.
//!
//! Those of `guidellm` and `aiperf`, and SGLang's with details, were written by these tools against a
//! paced engine; `guidellm` wrote more than is kept here. The others follow their tools' sources.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use inferometer_analysis::Interval;
use inferometer_analysis::tool_result::{
    CountsFrom, Form, Grain, LatencyKind, Mark, ResultLatency, ResultRate, Tool, ToolResult,
};
use inferometer_interchange::{Import, ImportError, meaning, read_file};
use inferometer_model::import::ImportReading;
use proptest::prelude::*;

const GUIDELLM: &str = include_str!("foreign/guidellm-concurrent.json");
const AIPERF: &str = include_str!("foreign/aiperf-summary.json");
const AIPERF_LINES: &str = include_str!("foreign/aiperf-requests.jsonl");
const SGLANG: &str = include_str!("foreign/sglang.jsonl");
const GENAI_BENCH: &str = include_str!("foreign/genai-bench.json");
const LLM_D: &str = include_str!("foreign/llm-d.yaml");
/// Written by hand, as their tools' documentation has them; all but the last are JSON.
const SHORT: [(&str, Tool); 6] = [
    (include_str!("foreign/inferencex.json"), Tool::InferenceX),
    (include_str!("foreign/inference-perf.json"), Tool::InferencePerf),
    (include_str!("foreign/oha.json"), Tool::Oha),
    (include_str!("foreign/k6.json"), Tool::K6),
    (include_str!("foreign/llmperf.json"), Tool::LlmPerf),
    (include_str!("foreign/mlperf_log_summary.txt"), Tool::MlPerf),
];

fn import(text: &str) -> Import {
    read_file("file", text.as_bytes(), &ImportReading::default()).unwrap()
}

fn refused(bytes: &[u8]) -> ImportError {
    read_file("file", bytes, &ImportReading::default()).unwrap_err()
}

fn results(text: &str) -> Vec<ToolResult> {
    import(text).results().cloned().collect()
}

fn latency(result: &ToolResult, kind: LatencyKind, from: CountsFrom) -> &ResultLatency {
    result.latency_from(kind, from).unwrap()
}

/// The one result of a short file, once its tool is recognised and has words about what it means.
fn short(wanted: Tool) -> ToolResult {
    let (text, _) = SHORT.into_iter().find(|(_, tool)| *tool == wanted).unwrap();
    let import = import(text);
    assert_eq!(import.tool, wanted);
    assert!(!meaning(wanted).is_empty());
    let [result] = import.results().collect::<Vec<_>>()[..] else { panic!("{import:?}") };
    result.clone()
}

fn figures(result: &ToolResult, kind: LatencyKind) -> (Option<f64>, Option<f64>, Option<f64>) {
    let latency = result.latency(kind).unwrap();
    let rounded = |ms: Option<f64>| ms.map(|ms| (ms * 1e6).round() / 1e6);
    let [p50, p99] = ["50", "99"].map(|rank| rounded(latency.percentile_ms(rank)));
    (rounded(latency.mean_ms), p50, p99)
}

#[test]
fn inference_perf_has_tokens_and_failures() {
    let result = short(Tool::InferencePerf);
    assert_eq!((result.completed, result.failed), (Some(58), Some(2)));
    assert_eq!((result.request_throughput, result.output_throughput), (Some(4.64), Some(148.48)));
    assert_eq!(result.total_token_throughput, Some(296.96));
    assert_eq!(figures(&result, LatencyKind::Ttft), (Some(105.0), Some(100.0), Some(150.0)));
    assert_eq!(figures(&result, LatencyKind::Tpot), (Some(10.5), Some(10.0), Some(12.0)));
    assert_eq!(figures(&result, LatencyKind::E2e), (Some(420.0), Some(400.0), Some(600.0)));
}

#[test]
fn tools_that_know_no_tokens_have_whole_answers_and_their_failures() {
    let oha = short(Tool::Oha);
    assert_eq!((oha.completed, oha.failed, oha.duration_s), (Some(45), Some(5), Some(2.5)));
    assert_eq!(oha.request_throughput, Some(20.0));
    assert_eq!(figures(&oha, LatencyKind::E2e), (Some(125.0), Some(120.0), Some(240.0)));
    let k6 = short(Tool::K6);
    assert_eq!((k6.completed, k6.failed, k6.max_concurrency), (Some(46), Some(4), Some(4)));
    assert_eq!(k6.request_throughput, Some(19.5));
    assert_eq!(figures(&k6, LatencyKind::E2e), (Some(125.5), Some(120.0), None));
    for result in [oha, k6] {
        assert_eq!((result.output_tokens, result.latency(LatencyKind::Ttft)), (None, None));
    }
}

#[test]
fn inference_x_gives_throughputs_for_each_gpu() {
    let result = short(Tool::InferenceX);
    assert_eq!((result.max_concurrency, result.tensor_parallel), (Some(64), Some(8)));
    let throughputs = (result.output_throughput, result.total_token_throughput);
    assert_eq!(throughputs, (Some(3_200.0), Some(28_800.0)));
    assert_eq!(figures(&result, LatencyKind::Ttft), (Some(180.0), Some(150.0), Some(350.0)));
    assert_eq!(figures(&result, LatencyKind::E2e), (Some(2_400.0), Some(2_300.0), Some(3_100.0)));
    assert!(result.metadata.contains(&("isl".to_owned(), "8192".to_owned())));
    let split = include_str!("foreign/inferencex.json")
        .replace("\"is_multinode\": false", "\"is_multinode\": true")
        .replace("\"tp\": 8", "\"num_prefill_gpu\": 8, \"num_decode_gpu\": 16, \"decode_tp\": 16");
    let split = results(&split).remove(0);
    let throughputs = (split.output_throughput, split.total_token_throughput);
    assert_eq!(throughputs, (Some(6_400.0), Some(86_400.0)));
}

#[test]
fn the_inter_token_latency_of_llmperf_is_no_tpot() {
    let result = short(Tool::LlmPerf);
    assert_eq!(
        (result.requests_planned, result.completed, result.failed),
        (Some(60), Some(57), Some(3))
    );
    assert_eq!((result.model.as_deref(), result.max_concurrency), (Some("words-8b"), Some(4)));
    assert_eq!((result.request_throughput, result.output_throughput), (Some(9.5), Some(304.0)));
    assert_eq!(figures(&result, LatencyKind::Ttft), (Some(105.0), Some(100.0), Some(150.0)));
    assert_eq!(figures(&result, LatencyKind::E2e), (Some(420.0), Some(400.0), Some(600.0)));
    assert_eq!(result.latency(LatencyKind::Tpot), None);
}

#[test]
fn mlperf_counts_from_the_schedule() {
    let result = short(Tool::MlPerf);
    assert_eq!((result.completed, result.request_rate), (None, Some(ResultRate::PerSecond(10.0))));
    assert_eq!((result.request_throughput, result.output_throughput), (Some(9.75), Some(312.0)));
    assert!(result.metadata.contains(&("result is".to_owned(), "VALID".to_owned())));
    assert_eq!(result.source.name, "words-server");
    assert_eq!(figures(&result, LatencyKind::Ttft), (Some(105.0), Some(100.0), Some(160.0)));
    assert_eq!(figures(&result, LatencyKind::Tpot), (Some(10.5), Some(10.0), Some(12.5)));
    latency(&result, LatencyKind::E2e, CountsFrom::Schedule);
    let offline = "MLPerf Results Summary\nScenario : Offline\nSamples per second: 75.5\n\
                   Tokens per second: 2416\nResult is : INVALID\ntarget_qps : 100\n";
    let two = results(&format!("{}{offline}", SHORT[5].0));
    assert_eq!((two.len(), two[1].request_rate), (2, None));
    assert_eq!(two[1].request_throughput, Some(75.5));
}

#[test]
fn guidellm_has_a_result_for_each_load() {
    let import = import(GUIDELLM);
    assert_eq!(import.tool, Tool::GuideLlm);
    let results: Vec<_> = import.results().collect();
    let caps: Vec<_> = results.iter().map(|result| result.max_concurrency.unwrap()).collect();
    assert_eq!(caps, [1, 2]);
    let result = results[0];
    assert_eq!(result.source.version.as_deref(), Some("0.8.1"));
    assert_eq!(
        (result.model.as_deref(), result.tokenizer.as_deref()),
        (Some("paced"), Some("words"))
    );
    assert_eq!(result.request_rate, Some(ResultRate::Unlimited));
    assert_eq!(
        (result.completed, result.failed, result.requests_planned),
        (Some(4), Some(0), Some(4))
    );
    assert_eq!((result.input_tokens, result.output_tokens), (Some(64), Some(80)));
    assert_eq!(result.output_throughput, Some(123.145_065_544_524_73));
    let ttft = latency(result, LatencyKind::Ttft, CountsFrom::Send);
    assert_eq!((ttft.n, ttft.mean_ms), (Some(4), Some(55.384_993_553_161_62)));
    assert_eq!(ttft.percentile_ms("99"), Some(59.530_496_597_290_04));
    assert!(ttft.percentile_ms("99.9").is_some() && ttft.percentile_ms("0.1").is_some());
    let interval = ttft.intervals_ms["mean"];
    assert_eq!(Some(interval), Interval::new(50.608_439_624_854_09, 60.161_547_481_469_15));
    let e2e = latency(result, LatencyKind::E2e, CountsFrom::Send);
    assert_eq!(e2e.mean_ms, Some(148.146_629_333_496_1), "seconds in the file");
}

#[test]
fn guidellms_means_of_answers_are_not_taken_for_gaps() {
    let result = &results(GUIDELLM)[0];
    assert!(result.latency(LatencyKind::Itl).is_none());
    let tpot = latency(result, LatencyKind::Tpot, CountsFrom::Output);
    assert_eq!((tpot.grain, tpot.n), (Grain::Request, None), "answers of one length");
    assert_eq!(tpot.mean_ms, Some(4.860_382_331_045_050_5));
    let listed = |name: &str| result.unmapped.contains(&format!("benchmarks.0.metrics.{name}"));
    assert!(listed("time_per_output_token_ms"), "{:?}", result.unmapped);
    let other = GUIDELLM.replacen("\"output_token_count\":{\"successful\":{\"mean\":20.0,\"median\":20.0,\"mode\":20.0,\"variance\":0.0,\"std_dev\":0.0,\"min\":20.0", "\"output_token_count\":{\"successful\":{\"min\":4.0", 1);
    assert_ne!(other, GUIDELLM);
    let tpot_of =
        |result: &ToolResult| latency(result, LatencyKind::Tpot, CountsFrom::Output).grain;
    assert_eq!(tpot_of(&results(&other)[0]), Grain::Unknown, "long answers count more often");
}

#[test]
fn guidellm_with_a_rate_counts_from_the_schedule_too() {
    let result = &results(include_str!("foreign/guidellm-poisson.json"))[0];
    assert_eq!(result.request_rate, Some(ResultRate::PerSecond(20.0)));
    assert_eq!((result.burstiness, result.max_concurrency), (Some(1.0), None));
    let e2e = |from| latency(result, LatencyKind::E2e, from).mean_ms;
    assert_eq!(e2e(CountsFrom::Send), Some(147.118_628_025_054_93));
    assert_eq!(e2e(CountsFrom::Schedule), Some(151.341_199_874_877_93));
    let requests = result.requests.as_ref().unwrap();
    assert_eq!(requests.len(), 4);
    assert!(requests.iter().all(|request| request.output_tokens == Some(20)
        && request.ttft_s.is_some_and(|ttft| ttft > 0.05)
        && request.error.as_deref() == Some("")));
}

#[test]
fn the_whole_benchmarks_of_a_cut_file_are_kept() {
    let second = GUIDELLM.rfind("\"run_index\"").unwrap();
    let import = import(&GUIDELLM[..second + 500]);
    assert_eq!(import.results().count(), 1);
    let broken: Vec<_> = import.broken().collect();
    assert_eq!(broken.len(), 1);
    assert!(broken[0].reason.starts_with("is not JSON: EOF"), "{}", broken[0].reason);
    let error = refused(&GUIDELLM.as_bytes()[..5000]);
    assert!(matches!(error, ImportError::AllBroken { count: 1, line: 1, .. }), "{error}");
}

#[test]
fn aiperfs_summary_is_read_with_its_units() {
    let import = import(AIPERF);
    assert_eq!((import.tool, import.results().count()), (Tool::AiPerf, 1));
    let result = import.results().next().unwrap();
    assert_eq!(result.source.form, Form::Document);
    assert_eq!(
        (result.source.version.as_deref(), result.source.name.as_str()),
        (Some("0.13.0"), "e27e9e269da1")
    );
    assert_eq!(
        (result.model.as_deref(), result.backend.as_deref()),
        (Some("paced"), Some("completions"))
    );
    assert_eq!(result.request_rate, Some(ResultRate::PerSecond(20.0)));
    assert_eq!((result.burstiness, result.max_concurrency), (Some(1.0), Some(4)));
    assert_eq!(
        (result.completed, result.failed, result.requests_planned),
        (Some(6), Some(0), Some(6))
    );
    assert_eq!(
        (result.duration_s, result.request_goodput),
        (Some(0.314_874_88), Some(17.682_404_493_914_728))
    );
    assert_eq!(
        latency(result, LatencyKind::Tpot, CountsFrom::Output).mean_ms,
        Some(4.960_522_462_962_962)
    );
    let itl = latency(result, LatencyKind::Itl, CountsFrom::Output);
    assert_eq!((itl.grain, itl.n, itl.min_ms), (Grain::Chunk, Some(54), Some(0.0)));
    assert_eq!(
        latency(result, LatencyKind::E2e, CountsFrom::Schedule).median_ms(),
        Some(99.501_824)
    );
    assert!(
        result.marks.is_empty(),
        "six requests are too few to tell what the server keeps up with"
    );
    assert!(result.unmapped.iter().any(|place| place == "time_to_second_token"));
    let in_seconds = AIPERF.replace("\"unit\": \"ms\"", "\"unit\": \"fortnights\"");
    let result = &results(&in_seconds)[0];
    assert!(result.latencies.is_empty());
    let note = "request_latency.unit is not a unit of time that is known here";
    assert!(result.unmapped.iter().any(|place| place == note), "{:?}", result.unmapped);
}

#[test]
fn aiperfs_lines_give_the_figures_of_its_summary() {
    let import = import(AIPERF_LINES);
    assert_eq!((import.tool, import.results().count()), (Tool::AiPerf, 1));
    let computed = import.results().next().unwrap();
    assert_eq!(computed.source.form, Form::Requests);
    let told = &results(AIPERF)[0];
    assert_eq!(computed.latencies.len(), told.latencies.len());
    for told in &told.latencies {
        let found = computed.latencies.iter().find(|found| {
            (found.kind, found.from, found.grain) == (told.kind, told.from, told.grain)
        });
        let found = found.unwrap();
        assert_eq!(found.n, told.n);
        let near = |a: Option<f64>, b: Option<f64>| (a.unwrap() - b.unwrap()).abs() < 0.05;
        assert!(near(found.mean_ms, told.mean_ms), "{found:?} {told:?}");
        assert!(near(found.std_ms, told.std_ms), "{found:?} {told:?}");
        for rank in ["50", "75", "90", "95", "99"] {
            assert!(near(found.percentile_ms(rank), told.percentile_ms(rank)), "{rank} {found:?}");
        }
    }
    assert_eq!((computed.completed, computed.output_tokens), (told.completed, told.output_tokens));
    assert_eq!(computed.requests.as_ref().unwrap()[0].gaps_s.len(), 9);
}

#[test]
fn failed_cancelled_and_warm_up_lines_are_told_apart() {
    let lines: Vec<&str> = AIPERF_LINES.lines().collect();
    let failed = lines[0].replacen(
        "\"metrics\":{",
        "\"error\":{\"code\":503,\"message\":\"no room\"},\"metrics\":{",
        1,
    );
    let warm_up = lines[1].replace("\"phase_kind\":\"profiling\"", "\"phase_kind\":\"warmup\"");
    let text =
        [&failed, &warm_up, "{\"metadata\": {", lines[2], "{\"metadata\": {}, \"metrics\": {}}"]
            .join("\n");
    let import = import(&text);
    let result = import.results().next().unwrap();
    assert_eq!((result.completed, result.failed), (Some(1), Some(1)));
    assert_eq!(result.marks, [Mark::Failures { failed: 1 }]);
    let requests = result.requests.as_ref().unwrap();
    assert_eq!(requests[0].error.as_deref(), Some("no room"));
    assert_eq!(latency(result, LatencyKind::Ttft, CountsFrom::Send).n, Some(1));
    assert_eq!(result.unmapped, ["1 lines of warm-up requests"]);
    let broken: Vec<_> =
        import.broken().map(|broken| (broken.line, broken.reason.as_str())).collect();
    assert_eq!((broken[0].0, broken[1]), (3, (5, "has no `request_start_ns`")));
}

#[test]
fn sglangs_lines_stand_with_the_broken_ones_between_them() {
    let import = import(SGLANG);
    assert_eq!(import.tool, Tool::Sglang);
    let lines: Vec<_> =
        import.records.iter().map(|record| (record.line(), record.broken().is_some())).collect();
    assert_eq!(lines, [(1, false), (2, true), (3, false), (4, false)]);
    let results: Vec<_> = import.results().collect();
    let (first, second, nothing) = (results[0], results[1], results[2]);
    assert_eq!(
        (first.request_rate, first.burstiness),
        (Some(ResultRate::PerSecond(4.0)), Some(1.0))
    );
    assert_eq!(first.metadata, [("dataset_name".to_owned(), "random".to_owned())]);
    assert_eq!((first.completed, first.failed, first.requests_planned), (Some(100), None, None));
    assert_eq!(
        latency(first, LatencyKind::E2e, CountsFrom::Send).percentile_ms("99"),
        Some(950.75)
    );
    assert_eq!(latency(first, LatencyKind::Itl, CountsFrom::Output).grain, Grain::Unknown);
    assert!(first.unmapped.contains(&"line 1.total_output_tokens_retokenized".to_owned()));
    assert_eq!(
        (second.request_rate, second.max_concurrency),
        (Some(ResultRate::Unlimited), Some(8))
    );
    assert_eq!(latency(second, LatencyKind::Itl, CountsFrom::Output).grain, Grain::Chunk);
    assert_eq!(second.marks, [Mark::Failures { failed: 1 }]);
    let requests = second.requests.as_ref().unwrap();
    assert_eq!((requests[0].ttft_s, requests[0].gaps_s.len()), (Some(0.01), 2));
    assert_eq!((requests[1].ttft_s, requests[1].output_tokens), (None, None), "a zero is nothing");
    assert_eq!((nothing.request_rate, nothing.latencies.len()), (None, 0), "nothing is not zero");
}

#[test]
fn sglangs_own_file_has_the_requests_that_its_figures_come_from() {
    let result = &results(include_str!("foreign/sglang-details.jsonl"))[0];
    assert_eq!(
        (result.completed, result.failed, result.requests_planned),
        (Some(4), Some(0), Some(4))
    );
    assert_eq!((result.input_tokens, result.output_tokens), (Some(64), Some(40)));
    assert_eq!(result.total_token_throughput, Some(447.522_970_280_280_6));
    assert_eq!(result.peak_concurrent_requests, Some(4));
    let requests = result.requests.as_ref().unwrap();
    let first_tokens: f64 = requests.iter().map(|request| request.ttft_s.unwrap()).sum();
    let mean_ms = latency(result, LatencyKind::Ttft, CountsFrom::Send).mean_ms.unwrap();
    assert!((first_tokens / 4.0 * 1e3 - mean_ms).abs() < 1e-9);
    assert!(requests.iter().all(|request| request.gaps_s.len() == 9));
}

#[test]
fn genai_bench_is_read_with_its_requests() {
    let import = import(GENAI_BENCH);
    assert_eq!(import.tool, Tool::GenaiBench);
    let result = import.results().next().unwrap();
    assert_eq!(
        (result.max_concurrency, result.request_rate),
        (Some(2), Some(ResultRate::Unlimited))
    );
    assert_eq!((result.duration_s, result.request_throughput), (Some(8.0), Some(0.25)));
    assert_eq!(
        latency(result, LatencyKind::Ttft, CountsFrom::Send).percentile_ms("95"),
        Some(49.0)
    );
    assert_eq!(latency(result, LatencyKind::Tpot, CountsFrom::Output).mean_ms, Some(20.0));
    assert_eq!(result.metadata, [("scenario".to_owned(), "D(100,100)".to_owned())]);
    assert_eq!(result.marks, [Mark::Failures { failed: 1 }]);
    assert_eq!(result.requests.as_ref().unwrap()[2].error.as_deref(), Some("no room"));
    let open = GENAI_BENCH
        .replace("\"arrival_requests_per_second\": null", "\"arrival_requests_per_second\": 1.9");
    let result = &results(&open)[0];
    assert_eq!(
        (result.max_concurrency, result.request_rate),
        (None, Some(ResultRate::PerSecond(2.0)))
    );
}

#[test]
fn an_llm_d_report_says_whose_figures_it_took_over() {
    let import = import(LLM_D);
    assert_eq!(import.tool, Tool::LlmD);
    let result = import.results().next().unwrap();
    assert_eq!((result.model.as_deref(), result.tensor_parallel), (Some("org/model-8b"), Some(4)));
    assert_eq!(
        (result.backend.as_deref(), result.duration_s),
        (Some("inference-perf"), Some(63.0))
    );
    assert_eq!(
        (result.request_rate, result.max_concurrency),
        (Some(ResultRate::PerSecond(8.0)), None)
    );
    assert_eq!((result.completed, result.failed), (Some(476), Some(3)));
    let ttft = latency(result, LatencyKind::Ttft, CountsFrom::Send);
    assert_eq!((ttft.mean_ms, ttft.percentile_ms("99.9")), (Some(125.0), Some(375.0)));
    assert_eq!(
        latency(result, LatencyKind::Tpot, CountsFrom::Output).percentile_ms("99"),
        Some(20.0)
    );
    let place = "results.request_performance.aggregate.latency.normalized_time_per_output_token";
    assert!(result.unmapped.iter().any(|listed| place.starts_with(listed.trim_end_matches('…'))));
    let unknown = LLM_D.replace("tool: inference-perf", "tool: my-own");
    assert!(results(&unknown)[0].latency_from(LatencyKind::Ttft, CountsFrom::Unknown).is_some());
    let twice = format!("{LLM_D}---\n{}", LLM_D.replace("'0.2'", "'0.1'"));
    let import = self::import(&twice);
    assert_eq!((import.results().count(), import.broken().count()), (1, 1));
    assert!(import.broken().next().unwrap().reason.contains("version 0.1"));
}

#[test]
fn files_that_are_no_results_are_refused_with_a_way_out() {
    let gzip = refused(b"\x1f\x8b\x08\x00");
    assert!(gzip.to_string().contains("gunzip"), "{gzip}");
    let beside = refused(b"{\"traffic_scenario\": [\"D(1,1)\"], \"server_engine\": \"vLLM\"}");
    assert!(beside.to_string().contains("result files beside it"), "{beside}");
    let yaml = refused(b"version: '0.2'\nscenario: [\nresults:\n  request_performance: {}\n");
    assert!(
        matches!(yaml, ImportError::AllBroken { .. }) && yaml.to_string().contains("YAML"),
        "{yaml}"
    );
    let laugh = |level| format!("a{level}: &a{level} [*a{0}, *a{0}, *a{0}, *a{0}]", level - 1);
    let laughs = (1..30).map(laugh).collect::<Vec<_>>().join("\n");
    let hostile = format!("a0: &a0 x\n{laughs}\nscenario: 1\nresults: 1\nrequest_performance: 1\n");
    assert!(matches!(refused(hostile.as_bytes()), ImportError::AllBroken { .. }));
    let deep = format!("{{\"aggregated_metrics\": {}", "[".repeat(1_000_000));
    assert!(matches!(refused(deep.as_bytes()), ImportError::AllBroken { .. }));
    let endless = "{\"mean_e2e_latency_ms\": {\"output_throughput\":\n".repeat(100_000);
    assert!(matches!(refused(endless.as_bytes()), ImportError::AllBroken { count: 100_000, .. }));
}

#[test]
fn an_import_is_written_and_read_again() {
    for text in [GUIDELLM, AIPERF, AIPERF_LINES, SGLANG, GENAI_BENCH, LLM_D] {
        let import = import(text);
        let json = serde_json::to_string(&import).unwrap();
        assert!(json.starts_with("{\"schema\":\"inferometer.import/1\""));
        assert_eq!(serde_json::from_str::<Import>(&json).unwrap(), import);
        assert!(!meaning(import.tool).is_empty());
        assert!(import.results().all(|result| !result.source.name.is_empty()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_damage_panics(
        file in 0..6_usize,
        start in 0..1000_usize,
        length in 0..40_usize,
        put in proptest::collection::vec(any::<u8>(), 0..20),
        is_cut in any::<bool>(),
    ) {
        let text = [GUIDELLM, AIPERF, AIPERF_LINES, SGLANG, GENAI_BENCH, LLM_D][file];
        let mut bytes = text.as_bytes().to_vec();
        let start = bytes.len() * start / 1000;
        let end = (start + length).min(bytes.len());
        bytes.splice(start..end, put);
        if is_cut {
            bytes.truncate(end);
        }
        if let Ok(import) = read_file("file", &bytes, &ImportReading::default()) {
            prop_assert!(import.results().count() > 0);
            prop_assert!(import.records.iter().all(|record| record.line() > 0));
        }
    }
}
