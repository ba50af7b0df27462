//! Whether the names are those that a real server has.

use std::collections::BTreeSet;

use super::page::parse;
use super::{text, two_requests};
use crate::metrics::MetricNames;

/// Families of vLLM's v1 engine, without its `_created` ones.
const V1_NAMES: &[&str] = &[
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:num_requests_waiting_by_reason",
    "vllm:kv_cache_usage_perc",
    "vllm:engine_sleep_state",
    "vllm:lora_requests_info",
    "vllm:cache_config_info",
    "vllm:prefix_cache_queries_total",
    "vllm:prefix_cache_hits_total",
    "vllm:external_prefix_cache_queries_total",
    "vllm:external_prefix_cache_hits_total",
    "vllm:mm_cache_queries_total",
    "vllm:mm_cache_hits_total",
    "vllm:num_preemptions_total",
    "vllm:prompt_tokens_total",
    "vllm:prompt_tokens_by_source_total",
    "vllm:prompt_tokens_cached_total",
    "vllm:generation_tokens_total",
    "vllm:request_success_total",
    "vllm:corrupted_requests_total",
    "vllm:time_to_first_token_seconds",
    "vllm:inter_token_latency_seconds",
    "vllm:request_time_per_output_token_seconds",
    "vllm:e2e_request_latency_seconds",
    "vllm:request_queue_time_seconds",
    "vllm:request_inference_time_seconds",
    "vllm:request_prefill_time_seconds",
    "vllm:request_decode_time_seconds",
    "vllm:request_prompt_tokens",
    "vllm:request_generation_tokens",
    "vllm:request_max_num_generation_tokens",
    "vllm:request_params_n",
    "vllm:request_params_max_tokens",
    "vllm:request_prefill_kv_computed_tokens",
    "vllm:iteration_tokens_total",
    "http_requests_total",
];

#[test]
fn v1_has_no_name_that_vllm_has_not() {
    let (kinds, _) = parse(&text(&two_requests(MetricNames::VllmV1)));
    let created: BTreeSet<String> = V1_NAMES
        .iter()
        .map(|name| match kinds.get(*name).map(String::as_str) {
            Some("counter") => name.replace("_total", "_created"),
            _ => format!("{name}_created"),
        })
        .collect();
    for name in kinds.keys() {
        assert!(V1_NAMES.contains(&name.as_str()) || created.contains(name), "{name}");
    }
    assert!(kinds.contains_key("vllm:iteration_tokens_total_created"));
    assert!(!kinds.contains_key("vllm:num_requests_running_created"));
}
