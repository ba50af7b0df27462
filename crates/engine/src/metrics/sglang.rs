//! SGLang's names, the core of them.

use super::Metrics;
use super::text::Exposition;
use crate::scheduler::{Counters, Gauges};

/// SGLang's scheduler labels its samples with its rank; its front end does not. Both write to files
/// that a third process reads, and `_created` is lost on that way.
pub(super) fn render(metrics: &Metrics, gauges: Gauges, counters: Counters, out: &mut String) {
    let model = ("model_name", metrics.labels.model.as_str());
    let ranks = [("engine_type", "unified"), model, ("pp_rank", "0"), ("tp_rank", "0")];
    let mut page = Exposition::new(out, &ranks, None);
    state(&mut page, metrics, gauges);
    page.counter(
        "sglang:num_retracted_requests_total",
        "How often a request lost its memory to another.",
        counters.preemptions,
    );
    page.histogram(
        "sglang:queue_time_seconds",
        "Seconds from a request's arrival at the scheduler to its first step.",
        &metrics.observed.queue,
    );
    page.relabel(&[model]);
    front_end(&mut page, metrics, counters);
}

fn state(page: &mut Exposition<'_>, metrics: &Metrics, gauges: Gauges) {
    let cache = &metrics.labels.cache;
    // The null block holds nothing.
    let capacity = f64::from(cache.blocks.saturating_sub(1)) * f64::from(cache.block_size);
    let idle = gauges.running == 0;
    let families = [
        ("num_running_reqs", "Requests that have a part in the steps.", gauges.running.into()),
        ("num_queue_reqs", "Requests in the queue.", gauges.waiting.into()),
        ("num_used_tokens", "Places for tokens in use.", (gauges.kv_usage * capacity).round()),
        ("token_usage", "Share of the places for tokens in use, from 0 to 1.", gauges.kv_usage),
        ("max_total_num_tokens", "Places for tokens.", capacity),
        (
            "gen_throughput",
            "Tokens of answers per second in the last 40 steps; 0 when nothing runs.",
            if idle { 0.0 } else { metrics.pace.tokens_per_s },
        ),
        (
            "cache_hit_rate",
            "Share of the prompt tokens that the cache had, in the last step with prompts.",
            metrics.pace.hit_rate,
        ),
    ];
    for (name, help, value) in families {
        page.gauge(&format!("sglang:{name}"), help, value);
    }
}

/// SGLang counts the tokens of a request when it ends; here they are counted as they come, so that
/// a rate over them is one.
fn front_end(page: &mut Exposition<'_>, metrics: &Metrics, counters: Counters) {
    let ended = metrics.ended;
    let families = [
        (
            "prompt_tokens_total",
            "Tokens of the prompts that are computed, cached ones as well.",
            counters.prompt_tokens,
        ),
        ("generation_tokens_total", "Tokens of all answers so far.", counters.generation_tokens),
        (
            "cached_tokens_total",
            "Tokens of the prompts that are computed which the cache had.",
            metrics.cached_prompt_tokens,
        ),
        ("num_requests_total", "Requests whose answers are complete.", ended.stop + ended.length),
        ("num_aborted_requests_total", "Requests that were taken back.", ended.abort),
    ];
    for (name, help, value) in families {
        page.counter(&format!("sglang:{name}"), help, value);
    }
    let seen = &metrics.observed;
    page.histogram(
        "sglang:time_to_first_token_seconds",
        "Seconds from a request's arrival at the front end to its first token.",
        &seen.first_token,
    );
    page.histogram(
        "sglang:inter_token_latency_seconds",
        "Seconds between one output of a request and the next.",
        &seen.inter_token,
    );
    page.histogram(
        "sglang:e2e_request_latency_seconds",
        "Seconds from a request's arrival at the front end to its end.",
        &seen.request,
    );
}
