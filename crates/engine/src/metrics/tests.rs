//! The text against what is known to have happened, read by a parser of its own.

mod names;
mod page;
mod scheduled;

use proptest::prelude::*;

use self::page::{Sample, assert_histograms_hold, assert_lines, parse, sum_and_count};
use super::{CacheConfig, Labels, MetricNames, Metrics};
use crate::scheduler::{Counters, Gauges, Listener, RequestEnd, RequestFacts, Step, StepShape};

const MS: u64 = 1_000_000;

pub(super) fn metrics(names: MetricNames) -> Metrics {
    Metrics::new(names, labels("tiny"))
}

fn labels(model: &str) -> Labels {
    Labels {
        draft_tokens: 0,
        model: model.to_owned(),
        max_model_len: 2048,
        cache: CacheConfig {
            block_size: 16,
            blocks: 1025,
            prefix_caching: true,
            dtype: "auto".to_owned(),
            gpu_memory_utilization: 0.92,
        },
        started_unix_s: 1_794_709_854.5,
    }
}

fn text(metrics: &Metrics) -> String {
    let gauges = Gauges { running: 2, waiting: 3, kv_usage: 0.25 };
    let counters = Counters {
        preemptions: 1,
        prefix_queries: 130,
        prefix_hits: 32,
        prefix_queries_preempted: 70,
        prefix_hits_preempted: 68,
        prompt_tokens: 130,
        generation_tokens: 5,
        ..Counters::default()
    };
    let mut out = String::new();
    metrics.render(gauges, counters, &mut out);
    out
}

fn facts(id: u64, tokens: (u32, u32, u32), moments_ms: [u64; 5], end: RequestEnd) -> RequestFacts {
    let [arrived, scheduled, first, last, ended] = moments_ms.map(|moment| moment * MS);
    let (prompt_tokens, cached_tokens, output_tokens) = tokens;
    RequestFacts {
        id,
        arrived_ns: arrived,
        scheduled_ns: Some(scheduled),
        first_token_ns: Some(first),
        last_token_ns: Some(last),
        ended_ns: ended,
        prompt_tokens,
        cached_tokens,
        output_tokens,
        max_tokens: 10,
        preemptions: 0,
        drafts: crate::scheduler::Drafts::default(),
        end,
    }
}

fn step(ends_ms: u64, admitted: &[(u64, u32)], scheduled: &[(u64, u32)], prefills: u32) -> Step {
    Step {
        ends_ns: ends_ms * MS,
        admitted: admitted.to_vec(),
        scheduled: scheduled.to_vec(),
        shape: StepShape { prefills, ..StepShape::default() },
        ..Step::default()
    }
}

fn run_step(metrics: &mut Metrics, step: &Step, tokens: &[(u64, u32)]) {
    metrics.step_began(step);
    metrics.step_ended(step);
    for (id, index) in tokens {
        metrics.token(*id, *index, step.ends_ns);
    }
}

/// A prompt of 100 (32 of them cached) in two chunks with three tokens, and one of 30 with one
/// token, whose client asked directly at the scheduler.
fn two_requests(names: MetricNames) -> Metrics {
    let mut metrics = metrics(names);
    metrics.arrived(&[7], 5 * MS);
    run_step(&mut metrics, &step(40, &[(7, 32)], &[(7, 48)], 1), &[]);
    run_step(&mut metrics, &step(65, &[(8, 0)], &[(7, 20), (8, 30)], 2), &[(7, 0), (8, 0)]);
    metrics.ended(&facts(8, (30, 0, 1), [30, 40, 65, 65, 65], RequestEnd::Stop));
    run_step(&mut metrics, &step(75, &[], &[(7, 1)], 0), &[(7, 1)]);
    run_step(&mut metrics, &step(105, &[], &[(7, 1)], 0), &[(7, 2)]);
    metrics.ended(&facts(7, (100, 32, 3), [10, 15, 65, 105, 105], RequestEnd::Length));
    metrics.answered("/v1/completions", "POST", 200);
    metrics.answered("/v1/completions", "POST", 204);
    metrics.answered("none", "GET", 404);
    metrics
}

#[test]
fn v1_says_exactly_what_happened() {
    let metrics = two_requests(MetricNames::VllmV1);
    let text = text(&metrics);
    assert_lines(
        &text,
        &[
            "# TYPE vllm:num_requests_running gauge",
            r#"vllm:num_requests_running{engine="0",model_name="tiny"} 2.0"#,
            r#"vllm:num_requests_waiting{engine="0",model_name="tiny"} 3.0"#,
            r#"vllm:num_requests_waiting_by_reason{engine="0",model_name="tiny",reason="capacity"} 3.0"#,
            r#"vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.25"#,
            r#"vllm:prefix_cache_queries_total{engine="0",model_name="tiny"} 130.0"#,
            r#"vllm:prefix_cache_hits_total{engine="0",model_name="tiny"} 32.0"#,
            r#"vllm:num_preemptions_total{engine="0",model_name="tiny"} 1.0"#,
            r#"vllm:num_preemptions_created{engine="0",model_name="tiny"} 1.7947098545e+09"#,
            r#"vllm:prompt_tokens_by_source_total{engine="0",model_name="tiny",source="local_compute"} 98.0"#,
            r#"vllm:prompt_tokens_by_source_total{engine="0",model_name="tiny",source="local_cache_hit"} 32.0"#,
            r#"vllm:prompt_tokens_cached_total{engine="0",model_name="tiny"} 32.0"#,
            r#"vllm:request_success_total{engine="0",finished_reason="stop",model_name="tiny"} 1.0"#,
            r#"vllm:request_success_total{engine="0",finished_reason="length",model_name="tiny"} 1.0"#,
            r#"vllm:request_success_total{engine="0",finished_reason="abort",model_name="tiny"} 0.0"#,
            r#"vllm:time_to_first_token_seconds_bucket{engine="0",le="0.02",model_name="tiny"} 0.0"#,
            r#"vllm:time_to_first_token_seconds_bucket{engine="0",le="0.04",model_name="tiny"} 1.0"#,
            r#"vllm:time_to_first_token_seconds_bucket{engine="0",le="0.06",model_name="tiny"} 2.0"#,
            r#"vllm:time_to_first_token_seconds_sum{engine="0",model_name="tiny"} 0.095"#,
            r#"vllm:inter_token_latency_seconds_bucket{engine="0",le="0.01",model_name="tiny"} 1.0"#,
            r#"vllm:inter_token_latency_seconds_bucket{engine="0",le="+Inf",model_name="tiny"} 2.0"#,
            r#"vllm:inter_token_latency_seconds_sum{engine="0",model_name="tiny"} 0.04"#,
            // 20 ms for the one with two gaps, and zero for the one with none.
            r#"vllm:request_time_per_output_token_seconds_sum{engine="0",model_name="tiny"} 0.02"#,
            r#"vllm:request_time_per_output_token_seconds_count{engine="0",model_name="tiny"} 2.0"#,
            r#"http_requests_total{handler="/v1/completions",method="POST",status="2xx"} 2.0"#,
            r#"http_requests_total{handler="none",method="GET",status="4xx"} 1.0"#,
            r#"vllm:cache_config_info{block_size="16",cache_dtype="auto",enable_prefix_caching="True",engine="0",gpu_memory_utilization="0.92",kv_cache_max_concurrency="8.0078125",kv_cache_size_tokens="16400",num_cpu_blocks="None",num_gpu_blocks="1025"} 1.0"#,
        ],
    );
    assert!(metrics.requests.is_empty() && metrics.groups.is_empty());
}

#[test]
fn intervals_are_those_of_vllm() {
    let text = text(&two_requests(MetricNames::VllmV1));
    for (name, sum) in [
        // From the front end's 5 ms for one, and from the scheduler's 30 ms for the other.
        ("e2e_request_latency_seconds", 0.1 + 0.035),
        ("request_queue_time_seconds", 0.005 + 0.01),
        ("request_prefill_time_seconds", 0.05 + 0.025),
        ("request_decode_time_seconds", 0.04),
        ("request_inference_time_seconds", 0.09 + 0.025),
        ("request_prompt_tokens", 130.0),
        ("request_generation_tokens", 4.0),
        ("request_max_num_generation_tokens", 4.0),
        ("request_params_n", 2.0),
        ("request_params_max_tokens", 20.0),
        ("request_prefill_kv_computed_tokens", 98.0),
    ] {
        let (seen, count) = sum_and_count(&text, &format!("vllm:{name}"));
        assert!((seen - sum).abs() < 1e-12, "{name}: {seen} and not {sum}");
        assert!((count - 2.0).abs() < 1e-12, "{name}");
    }
    // The first chunk led to no token; its 48 are counted with the step that did: 68 and 30
    // prompt tokens and two generated, then one and one.
    let (sum, count) = sum_and_count(&text, "vllm:iteration_tokens_total");
    assert_eq!([sum, count].map(f64::to_bits), [102.0, 3.0].map(f64::to_bits));
    assert_lines(
        &text,
        &[
            r#"vllm:iteration_tokens_total_bucket{engine="0",le="1.0",model_name="tiny"} 2.0"#,
            r#"vllm:iteration_tokens_total_bucket{engine="0",le="64.0",model_name="tiny"} 2.0"#,
            r#"vllm:iteration_tokens_total_bucket{engine="0",le="128.0",model_name="tiny"} 3.0"#,
        ],
    );
}

#[test]
fn v0_has_its_old_names_and_neither_engine_label_nor_moments_of_making() {
    let text = text(&two_requests(MetricNames::VllmV0));
    assert_lines(
        &text,
        &[
            r#"vllm:gpu_cache_usage_perc{model_name="tiny"} 0.25"#,
            r#"vllm:num_requests_swapped{model_name="tiny"} 0.0"#,
            r#"vllm:gpu_prefix_cache_hit_rate{model_name="tiny"} 0.5"#,
            r#"vllm:time_per_output_token_seconds_sum{model_name="tiny"} 0.04"#,
            r#"vllm:time_in_queue_requests_sum{model_name="tiny"} 0.015"#,
        ],
    );
    assert!(
        !text.contains("_created") && !text.contains("engine=") && !text.contains("kv_cache_u")
    );
}

#[test]
fn sglang_has_its_own_names_and_bounds() {
    let text = text(&two_requests(MetricNames::Sglang));
    assert_lines(
        &text,
        &[
            r#"sglang:num_running_reqs{engine_type="unified",model_name="tiny",pp_rank="0",tp_rank="0"} 2.0"#,
            r#"sglang:num_used_tokens{engine_type="unified",model_name="tiny",pp_rank="0",tp_rank="0"} 4096.0"#,
            r#"sglang:num_requests_total{model_name="tiny"} 2.0"#,
            r#"sglang:cached_tokens_total{model_name="tiny"} 32.0"#,
            r#"sglang:inter_token_latency_seconds_bucket{le="0.002",model_name="tiny"} 0.0"#,
            r#"sglang:time_to_first_token_seconds_sum{model_name="tiny"} 0.095"#,
        ],
    );
    assert!(!text.contains("vllm:") && !text.contains("_created"));
}

#[test]
fn sglang_throughput_is_that_of_the_last_forty_steps() {
    let mut metrics = metrics(MetricNames::Sglang);
    metrics.arrived(&[1], 0);
    // Two tokens per step of 10 ms.
    for ordinal in 1..=80 {
        run_step(&mut metrics, &step(ordinal * 10, &[], &[], 0), &[(1, 0), (2, 0)]);
    }
    let line = r#"sglang:gen_throughput{engine_type="unified",model_name="tiny",pp_rank="0",tp_rank="0"} 200.0"#;
    assert_lines(&text(&metrics), &[line]);
}

#[test]
fn a_request_that_was_taken_back_keeps_its_tokens_and_is_in_no_histogram_of_requests() {
    let mut metrics = metrics(MetricNames::VllmV1);
    metrics.arrived(&[1], 0);
    run_step(&mut metrics, &step(20, &[(1, 0)], &[(1, 9)], 1), &[(1, 0)]);
    run_step(&mut metrics, &step(40, &[], &[(1, 1)], 0), &[(1, 1)]);
    metrics.ended(&facts(1, (9, 0, 2), [0, 0, 20, 40, 50], RequestEnd::Abort));
    metrics.arrived(&[2], 45 * MS);
    metrics.refused(2);
    let text = text(&metrics);
    assert_lines(
        &text,
        &[
            r#"vllm:request_success_total{engine="0",finished_reason="abort",model_name="tiny"} 1.0"#,
            r#"vllm:time_to_first_token_seconds_count{engine="0",model_name="tiny"} 1.0"#,
            r#"vllm:inter_token_latency_seconds_count{engine="0",model_name="tiny"} 1.0"#,
            r#"vllm:e2e_request_latency_seconds_count{engine="0",model_name="tiny"} 0.0"#,
            r#"vllm:request_prompt_tokens_count{engine="0",model_name="tiny"} 0.0"#,
            r#"vllm:request_params_n_count{engine="0",model_name="tiny"} 0.0"#,
        ],
    );
    assert!(metrics.requests.is_empty() && metrics.groups.is_empty());
}

#[test]
fn several_answers_are_one_request_once_all_are_complete() {
    let mut metrics = metrics(MetricNames::VllmV1);
    metrics.arrived(&[1, 2], 0);
    metrics.arrived(&[3, 4], 0);
    let moments = [0, 0, 10, 20, 20];
    metrics.ended(&facts(1, (9, 0, 5), moments, RequestEnd::Length));
    assert_eq!(sum_and_count(&text(&metrics), "vllm:request_params_n"), (0.0, 0.0));
    metrics.ended(&facts(2, (9, 0, 4), moments, RequestEnd::Stop));
    metrics.ended(&facts(3, (9, 0, 4), moments, RequestEnd::Abort));
    metrics.ended(&facts(4, (9, 0, 4), moments, RequestEnd::Stop));
    let text = text(&metrics);
    assert_eq!(sum_and_count(&text, "vllm:request_params_n"), (2.0, 1.0));
    assert_eq!(sum_and_count(&text, "vllm:request_max_num_generation_tokens"), (5.0, 1.0));
    assert_eq!(sum_and_count(&text, "vllm:request_generation_tokens"), (13.0, 3.0));
    assert!(metrics.requests.is_empty() && metrics.groups.is_empty());
}

#[test]
fn each_of_several_prompts_is_a_request_of_its_own() {
    let mut metrics = metrics(MetricNames::VllmV1);
    metrics.arrived(&[1, 2], 0);
    metrics.arrived(&[3], 0);
    for id in 1..=3 {
        let moments = [0, 0, 10, 20, 20];
        metrics.ended(&facts(id, (9, 0, 5), moments, RequestEnd::Length));
    }
    assert_eq!(sum_and_count(&text(&metrics), "vllm:request_params_n"), (3.0, 2.0));
}

#[test]
fn a_prompt_without_an_answer_has_no_first_token() {
    let mut metrics = metrics(MetricNames::VllmV1);
    metrics.arrived(&[1], 0);
    run_step(&mut metrics, &step(10, &[(1, 16)], &[(1, 40)], 1), &[]);
    let mut over = facts(1, (56, 16, 0), [0, 0, 10, 10, 10], RequestEnd::Stop);
    (over.first_token_ns, over.last_token_ns) = (None, None);
    metrics.ended(&over);
    let text = text(&metrics);
    assert_eq!(sum_and_count(&text, "vllm:time_to_first_token_seconds"), (0.0, 0.0));
    assert_eq!(sum_and_count(&text, "vllm:iteration_tokens_total"), (40.0, 1.0));
    assert_eq!(sum_and_count(&text, "vllm:request_prompt_tokens"), (56.0, 1.0));
}

#[test]
fn a_prompt_is_counted_once_however_often_it_was_begun() {
    let mut metrics = metrics(MetricNames::VllmV1);
    metrics.arrived(&[1], 0);
    run_step(&mut metrics, &step(10, &[(1, 16)], &[(1, 40)], 1), &[]);
    // Preempted; when it comes back the cache has 48 of its 100 tokens.
    let again = step(20, &[(1, 48)], &[(1, 52)], 1);
    // With overlapping steps the next one begins before this one's token is there.
    let next = step(30, &[], &[(1, 1)], 1);
    metrics.step_began(&again);
    metrics.step_began(&next);
    metrics.step_ended(&again);
    metrics.token(1, 0, again.ends_ns);
    let text = text(&metrics);
    assert_eq!(sum_and_count(&text, "vllm:iteration_tokens_total"), (85.0, 1.0));
    let line = r#"vllm:prompt_tokens_cached_total{engine="0",model_name="tiny"} 16.0"#;
    assert_lines(&text, &[line]);
}

#[test]
fn tokens_of_one_moment_are_one_output() {
    let mut metrics = metrics(MetricNames::VllmV1);
    metrics.arrived(&[1], 0);
    for (index, at_ms) in [(0, 10), (1, 30), (2, 30), (3, 50)] {
        metrics.token(1, index, at_ms * MS);
    }
    assert_eq!(sum_and_count(&text(&metrics), "vllm:inter_token_latency_seconds"), (0.04, 2.0));
}

#[test]
fn any_model_name_can_be_read_back() {
    let name = "a \"b\"\\n,{c}=\n é";
    for names in [MetricNames::VllmV1, MetricNames::VllmV0, MetricNames::Sglang] {
        let (_, samples) = parse(&text(&Metrics::new(names, labels(name))));
        let labelled: Vec<&Sample> =
            samples.iter().filter(|sample| sample.labels.contains_key("model_name")).collect();
        assert!(labelled.len() > 50);
        assert!(labelled.iter().all(|sample| sample.labels["model_name"] == name));
    }
}

proptest! {
    #[test]
    fn whatever_happens_the_page_can_be_read_and_its_histograms_hold(
        requests in proptest::collection::vec(
            (1_u32..3000, 0_u32..100, proptest::collection::vec(0_u64..200_000, 1..20), 0..3_u8),
            0..20,
        ),
    ) {
        for names in [MetricNames::VllmV1, MetricNames::VllmV0, MetricNames::Sglang] {
            let mut metrics = metrics(names);
            for (id, (prompt, cached, gaps_ms, end)) in requests.iter().enumerate() {
                play(&mut metrics, id as u64, *prompt, *cached, gaps_ms, *end);
            }
            assert_histograms_hold(&text(&metrics));
            prop_assert!(metrics.requests.is_empty() && metrics.groups.is_empty());
        }
    }
}

/// One request from its arrival to its end, one token after each gap.
fn play(metrics: &mut Metrics, id: u64, prompt: u32, cached: u32, gaps_ms: &[u64], end: u8) {
    metrics.arrived(&[id], 0);
    let mut at_ms = 0;
    for (index, gap) in gaps_ms.iter().enumerate() {
        at_ms += gap;
        let first = index == 0;
        let admitted: &[_] = if first { &[(id, cached)] } else { &[] };
        let step = step(at_ms, admitted, &[(id, if first { prompt } else { 1 })], first.into());
        run_step(metrics, &step, &[(id, u32::try_from(index).unwrap())]);
    }
    let end = [RequestEnd::Stop, RequestEnd::Length, RequestEnd::Abort][usize::from(end)];
    let tokens = u32::try_from(gaps_ms.len()).unwrap();
    metrics.ended(&facts(id, (prompt, cached, tokens), [0, 0, gaps_ms[0], at_ms, at_ms], end));
}
