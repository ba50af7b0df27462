//! vLLM's names: those of its v1 engine, and those that its v0 engine had.

use super::Metrics;
use super::histogram::Histogram;
use super::text::{Exposition, Label, number};
use crate::scheduler::{Counters, Gauges};

/// The only engine of its server.
const ENGINE: Label<'static> = ("engine", "0");
const USAGE: &str = "Share of the KV blocks in use, from 0 to 1.";
const QUEUE: &str = "Seconds from a request's arrival at the scheduler to its first step.";

pub(super) fn render_v1(metrics: &Metrics, gauges: Gauges, counters: Counters, out: &mut String) {
    let labels = [ENGINE, ("model_name", &metrics.labels.model)];
    let mut page = Exposition::new(out, &labels, Some(metrics.labels.started_unix_s));
    state_v1(&mut page, gauges);
    counters_v1(&mut page, metrics, counters);
    sizes(&mut page, metrics);
    let seen = &metrics.observed;
    token_times(&mut page, metrics, "vllm:inter_token_latency_seconds");
    page.histogram(
        "vllm:request_time_per_output_token_seconds",
        "Seconds per token after the first, averaged over a request.",
        &seen.per_output_token,
    );
    request_times(&mut page, metrics);
    page.histogram(
        "vllm:request_prefill_kv_computed_tokens",
        "Prompt tokens of a request that the cache did not have.",
        &seen.computed_prompt_tokens,
    );
    page.relabel(&[ENGINE]);
    cache_config(&mut page, metrics);
    page.relabel(&[]);
    http(&mut page, metrics);
}

/// The v0 engine had no label `engine`, and told its client to leave out `_created`.
pub(super) fn render_v0(metrics: &Metrics, gauges: Gauges, counters: Counters, out: &mut String) {
    let mut page = Exposition::new(out, &[("model_name", &metrics.labels.model)], None);
    queues(&mut page, gauges);
    page.gauge(
        "vllm:num_requests_swapped",
        "Requests whose blocks lie in host memory; this engine computes them again instead.",
        0.0,
    );
    page.gauge("vllm:gpu_cache_usage_perc", USAGE, gauges.kv_usage);
    page.gauge("vllm:cpu_cache_usage_perc", "Share of the blocks in host memory in use.", 0.0);
    // v0 looked preempted requests up like any others.
    let queries = counters.prefix_queries + counters.prefix_queries_preempted;
    let hits = counters.prefix_hits + counters.prefix_hits_preempted;
    let rate = if metrics.labels.cache.prefix_caching {
        hits as f64 / queries.max(1) as f64
    } else {
        -1.0
    };
    page.gauge(
        "vllm:gpu_prefix_cache_hit_rate",
        "Share of the tokens looked up that the prefix cache had; -1 without one.",
        rate,
    );
    preemptions(&mut page, counters);
    prompt_tokens(&mut page, counters);
    generation_tokens(&mut page, counters);
    successes(&mut page, metrics, &["stop", "length", "abort"]);
    sizes(&mut page, metrics);
    token_times(&mut page, metrics, "vllm:time_per_output_token_seconds");
    request_times(&mut page, metrics);
    page.histogram("vllm:time_in_queue_requests", QUEUE, &metrics.observed.queue);
    page.relabel(&[]);
    cache_config(&mut page, metrics);
    http(&mut page, metrics);
}

fn state_v1(page: &mut Exposition<'_>, gauges: Gauges) {
    queues(page, gauges);
    page.gauges(
        "vllm:num_requests_waiting_by_reason",
        "Requests in the queue, by what they wait for; this engine defers none.",
        &[(&[("reason", "capacity")], f64::from(gauges.waiting)), (&[("reason", "deferred")], 0.0)],
    );
    page.gauges(
        "vllm:engine_sleep_state",
        "Which state the engine is in; this one never sleeps.",
        &[
            (&[("sleep_state", "awake")], 1.0),
            (&[("sleep_state", "weights_offloaded")], 0.0),
            (&[("sleep_state", "discard_all")], 0.0),
        ],
    );
    page.gauge("vllm:kv_cache_usage_perc", USAGE, gauges.kv_usage);
}

fn queues(page: &mut Exposition<'_>, gauges: Gauges) {
    let running = f64::from(gauges.running);
    page.gauge("vllm:num_requests_running", "Requests that have a part in the steps.", running);
    page.gauge("vllm:num_requests_waiting", "Requests in the queue.", f64::from(gauges.waiting));
}

fn counters_v1(page: &mut Exposition<'_>, metrics: &Metrics, counters: Counters) {
    page.counter(
        "vllm:prefix_cache_queries_total",
        "Tokens looked up in the prefix cache by requests that came for the first time.",
        counters.prefix_queries,
    );
    page.counter(
        "vllm:prefix_cache_hits_total",
        "Tokens that the prefix cache had, of those looked up.",
        counters.prefix_hits,
    );
    preemptions(page, counters);
    prompt_tokens(page, counters);
    let cached = metrics.cached_prompt_tokens;
    page.counters(
        "vllm:prompt_tokens_by_source_total",
        "Tokens of the prompts that are computed, by where their keys and values came from.",
        &[
            (&[("source", "local_compute")], counters.prompt_tokens.saturating_sub(cached)),
            (&[("source", "local_cache_hit")], cached),
            (&[("source", "external_kv_transfer")], 0),
        ],
    );
    page.counter(
        "vllm:prompt_tokens_cached_total",
        "Tokens of the prompts that are computed which the cache had.",
        cached,
    );
    generation_tokens(page, counters);
    successes(page, metrics, &["stop", "length", "abort", "error", "repetition"]);
}

fn preemptions(page: &mut Exposition<'_>, counters: Counters) {
    page.counter(
        "vllm:num_preemptions_total",
        "How often a request lost its blocks to another.",
        counters.preemptions,
    );
}

fn prompt_tokens(page: &mut Exposition<'_>, counters: Counters) {
    page.counter(
        "vllm:prompt_tokens_total",
        "Tokens of the prompts that are computed, cached ones as well.",
        counters.prompt_tokens,
    );
}

fn generation_tokens(page: &mut Exposition<'_>, counters: Counters) {
    page.counter(
        "vllm:generation_tokens_total",
        "Tokens of all answers so far.",
        counters.generation_tokens,
    );
}

fn successes(page: &mut Exposition<'_>, metrics: &Metrics, reasons: &[&str]) {
    let labels: Vec<[Label<'_>; 1]> =
        reasons.iter().map(|reason| [("finished_reason", *reason)]).collect();
    let samples: Vec<(&[Label<'_>], u64)> = labels
        .iter()
        .map(|label| {
            let count = match label[0].1 {
                "stop" => metrics.ended.stop,
                "length" => metrics.ended.length,
                "abort" => metrics.ended.abort,
                // This engine does not fail a request, and knows no repetition.
                _ => 0,
            };
            (label.as_slice(), count)
        })
        .collect();
    page.counters("vllm:request_success_total", "Requests that ended, by how.", &samples);
}

fn sizes(page: &mut Exposition<'_>, metrics: &Metrics) {
    let seen = &metrics.observed;
    let families: [(&str, &str, &Histogram); 6] = [
        ("vllm:request_prompt_tokens", "Tokens of a request's prompt.", &seen.prompt_tokens),
        ("vllm:request_generation_tokens", "Tokens of an answer.", &seen.output_tokens),
        (
            "vllm:iteration_tokens_total",
            "Tokens of one step: those it generated, and the prompts that it finished computing.",
            &metrics.step_tokens(),
        ),
        (
            "vllm:request_max_num_generation_tokens",
            "Tokens of the longest answer to a request.",
            &seen.longest_answer,
        ),
        ("vllm:request_params_n", "Answers that a request asked for.", &seen.choices),
        (
            "vllm:request_params_max_tokens",
            "Most tokens that an answer was allowed.",
            &seen.max_tokens,
        ),
    ];
    for (name, help, histogram) in families {
        page.histogram(name, help, histogram);
    }
}

/// `inter_token` is the name under which the gaps between outputs go.
fn token_times(page: &mut Exposition<'_>, metrics: &Metrics, inter_token: &str) {
    let seen = &metrics.observed;
    page.histogram(
        "vllm:time_to_first_token_seconds",
        "Seconds from a request's arrival at the front end to its first token.",
        &seen.first_token,
    );
    let help = "Seconds between one output of a request and the next.";
    page.histogram(inter_token, help, &seen.inter_token);
}

fn request_times(page: &mut Exposition<'_>, metrics: &Metrics) {
    let seen = &metrics.observed;
    let families: [(&str, &str, &Histogram); 5] = [
        (
            "vllm:e2e_request_latency_seconds",
            "Seconds from a request's arrival at the front end to its end.",
            &seen.request,
        ),
        ("vllm:request_queue_time_seconds", QUEUE, &seen.queue),
        (
            "vllm:request_inference_time_seconds",
            "Seconds from a request's first step to its last token.",
            &seen.inference,
        ),
        (
            "vllm:request_prefill_time_seconds",
            "Seconds from a request's first step to its first token.",
            &seen.prefill,
        ),
        (
            "vllm:request_decode_time_seconds",
            "Seconds from a request's first token to its last.",
            &seen.decode,
        ),
    ];
    for (name, help, histogram) in families {
        page.histogram(name, help, histogram);
    }
}

/// Of vLLM's many labels, those that mean something here.
fn cache_config(page: &mut Exposition<'_>, metrics: &Metrics) {
    let cache = &metrics.labels.cache;
    let tokens = u64::from(cache.blocks) * u64::from(cache.block_size);
    let concurrency = tokens as f64 / f64::from(metrics.labels.max_model_len.max(1));
    let utilization = number(cache.gpu_memory_utilization);
    page.gauges(
        "vllm:cache_config_info",
        "The KV cache, in labels.",
        &[(
            &[
                ("block_size", &cache.block_size.to_string()),
                ("cache_dtype", &cache.dtype),
                ("enable_prefix_caching", if cache.prefix_caching { "True" } else { "False" }),
                ("gpu_memory_utilization", &utilization),
                ("kv_cache_max_concurrency", &number(concurrency)),
                ("kv_cache_size_tokens", &tokens.to_string()),
                ("num_cpu_blocks", "None"),
                ("num_gpu_blocks", &cache.blocks.to_string()),
            ],
            1.0,
        )],
    );
}

fn http(page: &mut Exposition<'_>, metrics: &Metrics) {
    let labels: Vec<[Label<'_>; 3]> = metrics
        .answers
        .iter()
        .map(|a| [("handler", a.handler), ("method", a.method), ("status", a.status)])
        .collect();
    let samples: Vec<(&[Label<'_>], u64)> = labels
        .iter()
        .zip(&metrics.answers)
        .map(|(labels, answers)| (labels.as_slice(), answers.count))
        .collect();
    page.counters("http_requests_total", "HTTP requests that were answered.", &samples);
}
