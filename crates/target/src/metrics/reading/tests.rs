//! Excerpts in the shape of what real servers say.

use proptest::prelude::*;

use super::*;

const VLLM_V1: &str = r#"# HELP process_start_time_seconds When the process began.
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.7947096731e+09
# HELP vllm:num_requests_running Requests in the batch.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="tiny"} 3.0
vllm:num_requests_running{engine="1",model_name="tiny"} 5.0
vllm:num_requests_waiting{engine="0",model_name="tiny"} 0.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="tiny",reason="capacity"} 9.0
vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="tiny"} 0.75
vllm:gpu_cache_usage_perc{engine="0",model_name="tiny"} 0.9
vllm:prefix_cache_queries_total{engine="0",model_name="tiny"} 157.0
vllm:prefix_cache_queries_created{engine="0",model_name="tiny"} 1.7947098545335574e+09
vllm:gpu_prefix_cache_queries_total{engine="0",model_name="tiny"} 157.0
vllm:prefix_cache_hits_total{engine="0",model_name="tiny"} 32.0
vllm:external_prefix_cache_hits_total{engine="0",model_name="tiny"} 11.0
vllm:num_preemptions_total{engine="0",model_name="tiny"} 2.0
vllm:prompt_tokens_total{engine="0",model_name="tiny"} 157.0
vllm:prompt_tokens_by_source_total{engine="0",model_name="tiny",source="local_compute"} 125.0
vllm:generation_tokens_total{engine="0",model_name="tiny"} 411.0
vllm:generation_tokens_total{engine="1",model_name="tiny"} 9.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.001",model_name="tiny"} 0.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="tiny"} 17.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="tiny"} 17.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="tiny"} 34.5
vllm:request_queue_time_seconds_sum{engine="0",model_name="tiny"} 0.5
"#;

#[test]
fn vllm_counts_once_what_it_names_twice_and_adds_up_its_engines() {
    let reading = read(VLLM_V1.as_bytes()).unwrap();
    assert_eq!(reading.dialect, Dialect::VllmV1);
    assert_eq!(reading.process_start_s, Some(1.794_709_673_1e9));
    let gauges = Gauges {
        running: Some(8.0),
        waiting: Some(0.0),
        swapped: None,
        // Of the fullest engine, by the newer name.
        kv_usage: Some(0.75),
        cpu_kv_usage: None,
    };
    assert_eq!(reading.gauges, gauges);
    let counters = Counters {
        prefix_queries: Some(157.0),
        prefix_hits: Some(32.0),
        preemptions: Some(2.0),
        prompt_tokens: Some(157.0),
        generation_tokens: Some(420.0),
    };
    assert_eq!(reading.counters, counters);
    assert_eq!(reading.timings.ttft, Some(SumCount { sum_s: 34.5, count: 17.0 }));
    // A sum without its count says nothing.
    assert_eq!((reading.timings.e2e, reading.timings.queue), (None, None));
    assert_eq!(reading.dropped, 0);
}

#[test]
fn the_generations_of_vllm_are_told_apart() {
    let early = "vllm:num_requests_running 1\nvllm:gpu_cache_usage_perc 0.5\n\
                 vllm:gpu_prefix_cache_queries_total 10\nvllm:gpu_prefix_cache_hits_total 4\n";
    let reading = read(early.as_bytes()).unwrap();
    assert_eq!((reading.dialect, reading.gauges.kv_usage), (Dialect::VllmV1Early, Some(0.5)));
    assert_eq!(reading.counters.prefix_hits, Some(4.0));
    assert_eq!(reading.counters.generation_tokens, None, "absent is not zero");

    let v0 = "vllm:num_requests_running 1\nvllm:num_requests_swapped 2\n\
              vllm:gpu_cache_usage_perc 0.5\nvllm:gpu_prefix_cache_hit_rate 0.9\n";
    let reading = read(v0.as_bytes()).unwrap();
    assert_eq!((reading.dialect, reading.gauges.swapped), (Dialect::VllmV0, Some(2.0)));
    assert_eq!((reading.counters.prefix_hits, reading.counters.prefix_queries), (None, None));
}

#[test]
fn llama_cpp_counts_what_it_computed_beside_what_it_found() {
    let text = "# HELP llamacpp:prompt_tokens_total Computed.\n\
                llamacpp:prompt_tokens_total 100\nllamacpp:prompt_tokens_cached_total 40\n\
                llamacpp:tokens_predicted_total 64\nllamacpp:requests_processing 2\n\
                llamacpp:requests_deferred 1\n";
    let reading = read(text.as_bytes()).unwrap();
    assert_eq!(reading.dialect, Dialect::LlamaCpp);
    assert_eq!(reading.counters.prompt_tokens, Some(140.0));
    assert_eq!(reading.counters.prefix_queries, Some(140.0));
    assert_eq!(reading.counters.prefix_hits, Some(40.0));
    assert_eq!(reading.gauges.kv_usage, None);
    // An older one does not say what it found, so the length of its prompts is not known.
    let older = text.replace("llamacpp:prompt_tokens_cached_total 40\n", "");
    let reading = read(older.as_bytes()).unwrap();
    assert_eq!((reading.counters.prompt_tokens, reading.counters.prefix_hits), (None, None));
    assert_eq!(reading.counters.generation_tokens, Some(64.0));
}

#[test]
fn the_ranks_of_one_engine_are_not_added_up() {
    let text = "sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"0\"} 4\n\
                sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"1\"} 4\n\
                sglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"0\"} 3\n\
                sglang:cached_tokens_total{source=\"device\"} 5\n\
                sglang:cached_tokens_total{source=\"host\"} 6\nsglang:token_usage 0.5\n";
    let reading = read(text.as_bytes()).unwrap();
    assert_eq!(reading.dialect, Dialect::Sglang);
    assert_eq!(reading.gauges.running, Some(7.0));
    assert_eq!(reading.counters.prefix_hits, Some(11.0));
}

#[test]
fn tgi_and_tensorrt_are_known_by_their_names() {
    let tgi = "tgi_queue_size 1\ntgi_request_generated_tokens_sum 90\n\
               tgi_request_duration_sum 2.5\ntgi_request_duration_count 5\n";
    let reading = read(tgi.as_bytes()).unwrap();
    assert_eq!((reading.dialect, reading.gauges.waiting), (Dialect::Tgi, Some(1.0)));
    assert_eq!(reading.counters.generation_tokens, Some(90.0));
    assert_eq!(reading.timings.e2e, Some(SumCount { sum_s: 2.5, count: 5.0 }));
    let trt = "trtllm_kv_cache_utilization 0.25\n";
    let reading = read(trt.as_bytes()).unwrap();
    assert_eq!((reading.dialect, reading.gauges.kv_usage), (Dialect::TensorrtLlm, Some(0.25)));
}

#[test]
fn the_hosts_part_of_the_cache_is_told_apart() {
    let v0 = "vllm:num_requests_swapped 1\nvllm:gpu_cache_usage_perc 0.9\n\
              vllm:cpu_cache_usage_perc 0.25\n";
    let gauges = read(v0.as_bytes()).unwrap().gauges;
    assert_eq!((gauges.kv_usage, gauges.cpu_kv_usage), (Some(0.9), Some(0.25)));
}

#[test]
fn triton_tells_things_apart_by_labels() {
    let text = r#"nv_inference_request_success{model="tensorrt_llm",version="1"} 5
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="waiting",version="1"} 3
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="scheduled",version="1"} 4
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="max",version="1"} 512
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="active",version="1"} 7
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="tensorrt_llm",version="1"} 0.6
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used",model="tensorrt_llm",version="1"} 2000
"#;
    let reading = read(text.as_bytes()).unwrap();
    assert_eq!(reading.dialect, Dialect::Triton);
    let Gauges { running, waiting, kv_usage, .. } = reading.gauges;
    assert_eq!((running, waiting, kv_usage), (Some(4.0), Some(3.0), Some(0.6)));
    assert_eq!(reading.dropped, 0);
}

#[test]
fn older_and_idle_servers_are_known_too() {
    let older = "trtllm_request_success_total{finished_reason=\"stop\"} 5\n\
                 trtllm_time_to_first_token_seconds_sum 2\ntrtllm_time_to_first_token_seconds_count 5\n";
    let reading = read(older.as_bytes()).unwrap();
    assert_eq!(reading.dialect, Dialect::TensorrtLlm);
    assert_eq!(reading.timings.ttft, Some(SumCount { sum_s: 2.0, count: 5.0 }));
    assert_eq!(read(b"tgi_request_count 0\n").unwrap().dialect, Dialect::Tgi);
    let dynamo = "dynamo_frontend_inflight_requests{model=\"m\"} 9\n\
                  dynamo_frontend_queued_requests{model=\"m\"} 2\n\
                  dynamo_frontend_input_sequence_tokens_sum{model=\"m\"} 640\n\
                  dynamo_frontend_output_tokens_total{model=\"m\"} 64\n";
    let reading = read(dynamo.as_bytes()).unwrap();
    assert_eq!((reading.dialect, reading.gauges.waiting), (Dialect::Dynamo, Some(2.0)));
    assert_eq!(reading.gauges.running, None, "those in flight may wait");
    assert_eq!(reading.counters.prompt_tokens, Some(640.0));
    assert_eq!(reading.counters.generation_tokens, Some(64.0));
}

/// Faults: 102.
#[test]
fn what_is_said_twice_counts_once_or_not_at_all() {
    let twice = "vllm:num_requests_running{engine=\"0\"} 2\nvllm:num_requests_running{engine=\"0\"} 2\n\
                 vllm:num_requests_waiting{engine=\"0\"} 1\nvllm:num_requests_waiting{engine=\"0\"} 5\n";
    let reading = read(twice.as_bytes()).unwrap();
    assert_eq!((reading.gauges.running, reading.gauges.waiting), (Some(2.0), None));
    assert_eq!(reading.dropped, 2);
}

/// A server may be replaced behind its address, or rename its series: each scrape is read for itself.
/// Faults: 101.
#[test]
fn a_server_that_renames_its_series_is_read_on() {
    let before = "vllm:num_requests_running{engine=\"0\"} 2\nvllm:gpu_cache_usage_perc 0.5\n";
    let after = "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3\nvllm:kv_cache_usage_perc 0.6\n";
    let usage = |text: &str| read(text.as_bytes()).map(|reading| reading.gauges.kv_usage);
    assert_eq!((usage(before), usage(after)), (Ok(Some(0.5)), Ok(Some(0.6))));
}

/// Faults: 102.
#[test]
fn values_that_are_no_numbers_are_dropped_and_counted() {
    let text = "vllm:kv_cache_usage_perc NaN\nvllm:num_requests_running{engine=\"0\"} 2\n\
                vllm:num_requests_running{engine=\"1\"} +Inf\nvllm:prompt_tokens_total -5\n";
    let reading = read(text.as_bytes()).unwrap();
    assert_eq!(reading.dropped, 3);
    assert_eq!(reading.dialect, Dialect::VllmV1, "its names are there all the same");
    // Of two engines one is silent: half of a sum is no sum.
    assert_eq!((reading.gauges.kv_usage, reading.gauges.running), (None, None));
    assert_eq!(reading.counters.prompt_tokens, None);
}

/// Faults: 100.
#[test]
fn what_is_of_no_use_says_why() {
    use MissReason::{NoKnownName, NotPrometheus, TooLarge};
    assert_eq!(read(b""), Err(NotPrometheus));
    assert_eq!(read(b"<!DOCTYPE html>\n<html>\n</html>\n"), Err(NotPrometheus));
    assert_eq!(read(b"{\"detail\": \"Not Found\"}"), Err(NotPrometheus));
    assert_eq!(read(b"\xff\xfe 1"), Err(NotPrometheus));
    assert_eq!(read(b"go_goroutines 12\n"), Err(NoKnownName));
    let flood = "x 1\n".repeat(SERIES_MAX + 1);
    assert_eq!(read(flood.as_bytes()), Err(TooLarge));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }

    #[test]
    fn a_cut_answer_never_has_a_word_that_the_whole_has_not(cut in 0..VLLM_V1.len()) {
        let whole = read(VLLM_V1.as_bytes()).unwrap();
        let Ok(part) = read(&VLLM_V1.as_bytes()[..cut]) else { return Ok(()) };
        prop_assert!(part.gauges.running.is_none() || whole.gauges.running.is_some());
        prop_assert!(part.timings.ttft.is_none() || whole.timings.ttft.is_some());
        prop_assert!(part.gauges.swapped.is_none() && part.timings.queue.is_none());
    }
}

const SPECULATING: &str = r#"vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:spec_decode_num_drafts_total{engine="0"} 40.0
vllm:spec_decode_num_draft_tokens_total{engine="0"} 120.0
vllm:spec_decode_num_accepted_tokens_total{engine="0"} 50.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="0"} 30.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="1",position="0"} 2.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="1"} 18.0
"#;

#[test]
fn speculative_decoding_is_counted_by_position() {
    let found = read(SPECULATING.as_bytes()).unwrap().speculation.unwrap();
    assert_eq!((found.steps, found.drafted, found.accepted), (Some(40.0), Some(120.0), Some(50.0)));
    assert_eq!(found.by_position, [32.0, 18.0]);
    assert_eq!(read(VLLM_V1.as_bytes()).unwrap().speculation, None);
    let name = "vllm:spec_decode_num_accepted_tokens_per_pos_total";
    for position in ["position=\"64\"", "position=\"-1\"", "position=\"18446744073709551616\"", ""]
    {
        let text = format!("{SPECULATING}{name}{{{position}}} 5\n");
        let reading = read(text.as_bytes()).unwrap();
        assert_eq!(reading.dropped, 1, "{position}");
        assert_eq!(reading.speculation.unwrap().by_position, [32.0, 18.0], "{position}");
    }
    let broken = format!("{SPECULATING}{name}{{position=\"2\"}} NaN\n");
    let found = read(broken.as_bytes()).unwrap().speculation.unwrap();
    assert_eq!(found.by_position, [] as [f64; 0], "a part of a sum is no sum");
    assert_eq!(found.accepted, Some(50.0));
}

#[test]
fn the_query_api_of_prometheus_says_the_same_as_the_servers() {
    let json = r#"{"status":"success","data":{"resultType":"vector","result":[
        {"metric":{"__name__":"vllm:kv_cache_usage_perc","instance":"a:8000"},"value":[1.5,"0.25"]},
        {"metric":{"__name__":"vllm:kv_cache_usage_perc","instance":"b:8000"},"value":[1.5,"0.75"]},
        {"metric":{"__name__":"vllm:generation_tokens_total","instance":"a:8000"},"value":[1.5,"40"]},
        {"metric":{"__name__":"vllm:generation_tokens_total","instance":"b\"\\\n"},"value":[1.5,"2"]},
        {"metric":{"__name__":"vllm:num_requests_running","instance":"a:8000"},"value":[1.5,"NaN"]}]}}"#;
    let reading = read(query_result(json.as_bytes()).unwrap().as_bytes()).unwrap();
    assert_eq!(reading.gauges.kv_usage, Some(0.75));
    assert_eq!(reading.counters.generation_tokens, Some(42.0));
    assert_eq!((reading.gauges.running, reading.dropped), (None, 1));
    for wrong in ["", "{}", "[]", r#"{"status":"error"}"#, r#"{"data":{"result":[{"metric":1}]}}"#]
    {
        assert_eq!(query_result(wrong.as_bytes()), Err(MissReason::NotPrometheus), "{wrong}");
    }
    let forged = r#"{"data":{"result":[{"metric":{"__name__":"a 1\nvllm:num_requests_running"},"value":[0,"7\nvllm:kv_cache_usage_perc 1"]}]}}"#;
    let text = query_result(forged.as_bytes()).unwrap();
    assert_eq!(text.lines().count(), 1, "a series is one line: {text}");
}
