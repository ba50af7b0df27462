//! The metrics under the names of each server: vLLM's v1 engine, its v0 engine, and SGLang.

use super::Metrics;
use super::text::{Exposition, Histogram, Label, number};
use crate::scheduler::{Counters, Gauges};

/// The only engine of its server.
const ENGINE: Label<'static> = ("engine", "0");

// What families of several servers mean.
const RUNNING: &str = "Requests that have a part in the steps.";
const QUEUED: &str = "Requests in the queue.";
const USAGE: &str = "Share of the KV blocks in use, from 0 to 1.";
const PROMPT_TOKENS: &str = "Tokens of the prompts that are computed, cached ones as well.";
const CACHED_TOKENS: &str = "Tokens of the prompts that are computed which the cache had.";
const OUTPUT_TOKENS: &str = "Tokens of all answers so far.";
const FIRST_TOKEN: &str = "Seconds from a request's arrival at the front end to its first token.";
const INTER_TOKEN: &str = "Seconds between one output of a request and the next.";
const REQUEST: &str = "Seconds from a request's arrival at the front end to its end.";
const QUEUE: &str = "Seconds from a request's arrival at the scheduler to its first step.";

/// A family without labels of its own.
enum Family<'a> {
    Gauge(f64),
    Counter(u64),
    Histogram(&'a Histogram),
}

use Family::{Counter, Gauge, Histogram as Distribution};

/// Writes families whose names begin with `prefix`.
fn write(page: &mut Exposition<'_>, prefix: &str, families: &[(&str, &str, Family<'_>)]) {
    for (name, help, family) in families {
        let name = format!("{prefix}:{name}");
        match family {
            Gauge(value) => page.gauge(&name, help, *value),
            Counter(value) => page.counter(&name, help, *value),
            Distribution(histogram) => page.histogram(&name, help, histogram),
        }
    }
}

pub(super) fn render_v1(metrics: &Metrics, gauges: Gauges, counters: Counters, out: &mut String) {
    let labels = [ENGINE, ("model_name", &metrics.labels.model)];
    let mut page = Exposition::new(out, &labels, Some(metrics.labels.started_unix_s));
    state_v1(&mut page, gauges);
    counters_v1(&mut page, metrics, counters);
    sizes(&mut page, metrics);
    let seen = &metrics.observed;
    token_times(&mut page, metrics, "inter_token_latency_seconds");
    let per_token = "Seconds per token after the first, averaged over a request.";
    let family = Distribution(&seen.per_output_token);
    write(&mut page, "vllm", &[("request_time_per_output_token_seconds", per_token, family)]);
    request_times(&mut page, metrics);
    let computed = "Prompt tokens of a request that the cache did not have.";
    let family = Distribution(&seen.computed_prompt_tokens);
    write(&mut page, "vllm", &[("request_prefill_kv_computed_tokens", computed, family)]);
    page.relabel(&[ENGINE]);
    cache_config(&mut page, metrics);
    page.relabel(&[]);
    http(&mut page, metrics);
}

/// The v0 engine had no label `engine`, and left out `_created`.
pub(super) fn render_v0(metrics: &Metrics, gauges: Gauges, counters: Counters, out: &mut String) {
    let mut page = Exposition::new(out, &[("model_name", &metrics.labels.model)], None);
    // v0 looked preempted requests up like any others.
    let queries = counters.prefix_queries + counters.prefix_queries_preempted;
    let hits = counters.prefix_hits + counters.prefix_hits_preempted;
    let rate = if metrics.labels.cache.prefix_caching {
        hits as f64 / queries.max(1) as f64
    } else {
        -1.0
    };
    let swapped =
        "Requests whose blocks lie in host memory; this engine computes them again instead.";
    let hit_rate = "Share of the tokens looked up that the prefix cache had; -1 without one.";
    let families = [
        ("num_requests_running", RUNNING, Gauge(gauges.running.into())),
        ("num_requests_waiting", QUEUED, Gauge(gauges.waiting.into())),
        ("num_requests_swapped", swapped, Gauge(0.0)),
        ("gpu_cache_usage_perc", USAGE, Gauge(gauges.kv_usage)),
        ("cpu_cache_usage_perc", "Share of the blocks in host memory in use.", Gauge(0.0)),
        ("gpu_prefix_cache_hit_rate", hit_rate, Gauge(rate)),
        ("num_preemptions_total", PREEMPTIONS, Counter(counters.preemptions)),
        ("prompt_tokens_total", PROMPT_TOKENS, Counter(counters.prompt_tokens)),
        ("generation_tokens_total", OUTPUT_TOKENS, Counter(counters.generation_tokens)),
    ];
    write(&mut page, "vllm", &families);
    successes(&mut page, metrics, &["stop", "length", "abort"]);
    sizes(&mut page, metrics);
    token_times(&mut page, metrics, "time_per_output_token_seconds");
    request_times(&mut page, metrics);
    let queue = Distribution(&metrics.observed.queue);
    write(&mut page, "vllm", &[("time_in_queue_requests", QUEUE, queue)]);
    page.relabel(&[]);
    cache_config(&mut page, metrics);
    http(&mut page, metrics);
}

fn state_v1(page: &mut Exposition<'_>, gauges: Gauges) {
    let families = [
        ("num_requests_running", RUNNING, Gauge(gauges.running.into())),
        ("num_requests_waiting", QUEUED, Gauge(gauges.waiting.into())),
    ];
    write(page, "vllm", &families);
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
    write(page, "vllm", &[("kv_cache_usage_perc", USAGE, Gauge(gauges.kv_usage))]);
}

const PREEMPTIONS: &str = "How often a request lost its blocks to another.";

fn counters_v1(page: &mut Exposition<'_>, metrics: &Metrics, counters: Counters) {
    let queries = "Tokens looked up in the prefix cache by requests that came for the first time.";
    let hits = "Tokens that the prefix cache had, of those looked up.";
    let families = [
        ("prefix_cache_queries_total", queries, Counter(counters.prefix_queries)),
        ("prefix_cache_hits_total", hits, Counter(counters.prefix_hits)),
        ("num_preemptions_total", PREEMPTIONS, Counter(counters.preemptions)),
        ("prompt_tokens_total", PROMPT_TOKENS, Counter(counters.prompt_tokens)),
    ];
    write(page, "vllm", &families);
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
    let families = [
        ("prompt_tokens_cached_total", CACHED_TOKENS, Counter(cached)),
        ("generation_tokens_total", OUTPUT_TOKENS, Counter(counters.generation_tokens)),
    ];
    write(page, "vllm", &families);
    successes(page, metrics, &["stop", "length", "abort", "error", "repetition"]);
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
    let step =
        "Tokens of one step: those it generated, and the prompts that it finished computing.";
    let longest = "Tokens of the longest answer to a request.";
    let most = "Most tokens that an answer was allowed.";
    let step_tokens = metrics.step_tokens();
    let families = [
        ("request_prompt_tokens", "Tokens of a request's prompt.", &seen.prompt_tokens),
        ("request_generation_tokens", "Tokens of an answer.", &seen.output_tokens),
        ("iteration_tokens_total", step, &step_tokens),
        ("request_max_num_generation_tokens", longest, &seen.longest_answer),
        ("request_params_n", "Answers that a request asked for.", &seen.choices),
        ("request_params_max_tokens", most, &seen.max_tokens),
    ];
    write(page, "vllm", &families.map(|(name, help, family)| (name, help, Distribution(family))));
}

/// `inter_token` is the name of the gaps between outputs.
fn token_times(page: &mut Exposition<'_>, metrics: &Metrics, inter_token: &str) {
    let seen = &metrics.observed;
    let families = [
        ("time_to_first_token_seconds", FIRST_TOKEN, Distribution(&seen.first_token)),
        (inter_token, INTER_TOKEN, Distribution(&seen.inter_token)),
    ];
    write(page, "vllm", &families);
}

fn request_times(page: &mut Exposition<'_>, metrics: &Metrics) {
    let seen = &metrics.observed;
    let inference = "Seconds from a request's first step to its last token.";
    let prefill = "Seconds from a request's first step to its first token.";
    let decode = "Seconds from a request's first token to its last.";
    let families = [
        ("e2e_request_latency_seconds", REQUEST, Distribution(&seen.request)),
        ("request_queue_time_seconds", QUEUE, Distribution(&seen.queue)),
        ("request_inference_time_seconds", inference, Distribution(&seen.inference)),
        ("request_prefill_time_seconds", prefill, Distribution(&seen.prefill)),
        ("request_decode_time_seconds", decode, Distribution(&seen.decode)),
    ];
    write(page, "vllm", &families);
}

/// Those of vLLM's many labels that mean something here.
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

/// SGLang's scheduler labels its samples with its rank; its front end does not. Both write to files
/// that a third process reads, and `_created` is lost on that way. SGLang counts the tokens of a
/// request when it ends; here they are counted as they come, so that a rate over them is one.
pub(super) fn render_sglang(
    metrics: &Metrics,
    gauges: Gauges,
    counters: Counters,
    out: &mut String,
) {
    let model = ("model_name", metrics.labels.model.as_str());
    let ranks = [("engine_type", "unified"), model, ("pp_rank", "0"), ("tp_rank", "0")];
    let mut page = Exposition::new(out, &ranks, None);
    let (cache, seen, ended) = (&metrics.labels.cache, &metrics.observed, metrics.ended);
    // The null block holds nothing.
    let capacity = f64::from(cache.blocks.saturating_sub(1)) * f64::from(cache.block_size);
    let used = (gauges.kv_usage * capacity).round();
    let usage = "Share of the places for tokens in use, from 0 to 1.";
    let rate = "Tokens of answers per second in the last 40 steps; 0 when nothing runs.";
    let per_s = if gauges.running == 0 { 0.0 } else { metrics.pace.tokens_per_s };
    let hits = "Share of the prompt tokens that the cache had, in the last step with prompts.";
    let retracted = "How often a request lost its memory to another.";
    let scheduler = [
        ("num_running_reqs", RUNNING, Gauge(gauges.running.into())),
        ("num_queue_reqs", QUEUED, Gauge(gauges.waiting.into())),
        ("num_used_tokens", "Places for tokens in use.", Gauge(used)),
        ("token_usage", usage, Gauge(gauges.kv_usage)),
        ("max_total_num_tokens", "Places for tokens.", Gauge(capacity)),
        ("gen_throughput", rate, Gauge(per_s)),
        ("cache_hit_rate", hits, Gauge(metrics.pace.hit_rate)),
        ("num_retracted_requests_total", retracted, Counter(counters.preemptions)),
        ("queue_time_seconds", QUEUE, Distribution(&seen.queue)),
    ];
    write(&mut page, "sglang", &scheduler);
    page.relabel(&[model]);
    let complete = ended.stop + ended.length;
    let front_end = [
        ("prompt_tokens_total", PROMPT_TOKENS, Counter(counters.prompt_tokens)),
        ("generation_tokens_total", OUTPUT_TOKENS, Counter(counters.generation_tokens)),
        ("cached_tokens_total", CACHED_TOKENS, Counter(metrics.cached_prompt_tokens)),
        ("num_requests_total", "Requests whose answers are complete.", Counter(complete)),
        ("num_aborted_requests_total", "Requests that were taken back.", Counter(ended.abort)),
        ("time_to_first_token_seconds", FIRST_TOKEN, Distribution(&seen.first_token)),
        ("inter_token_latency_seconds", INTER_TOKEN, Distribution(&seen.inter_token)),
        ("e2e_request_latency_seconds", REQUEST, Distribution(&seen.request)),
    ];
    write(&mut page, "sglang", &front_end);
}
