//! The metrics under the names of each server: vLLM's v1 engine, its v0 engine, and SGLang.

use super::text::{COUNTER, Exposition, GAUGE, Histogram, Label, number};
use super::{MetricNames, Metrics};
use crate::scheduler::{Counters, DRAFT_TOKENS_MAX, Drafts, Gauges};

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

enum Family<'a> {
    Gauge(f64),
    Counter(u64),
    Distribution(&'a Histogram),
    /// Gauges or counters, by the values of a label.
    By(&'static str, &'static str, &'a [(&'static str, f64)]),
}
use Family::{By, Counter, Distribution, Gauge};

/// Whether this server has the family, its name, its meaning, and what it holds.
type Row<'a> = (bool, &'static str, &'static str, Family<'a>);

/// Writes families whose names begin with `prefix`.
fn write<'a>(page: &mut Exposition<'_>, prefix: &str, rows: impl IntoIterator<Item = Row<'a>>) {
    for (_, name, help, family) in rows.into_iter().filter(|row| row.0) {
        let name = format!("{prefix}:{name}");
        match family {
            Gauge(value) => page.samples(GAUGE, &name, help, &[(&[], value)]),
            Counter(value) => page.samples(COUNTER, &name, help, &[(&[], value as f64)]),
            Distribution(histogram) => page.histogram(&name, help, histogram),
            By(kind, label, samples) => {
                let labels: Vec<_> = samples.iter().map(|sample| [(label, sample.0)]).collect();
                let samples = labels.iter().zip(samples);
                let samples: Vec<_> = samples.map(|(label, of)| (label.as_slice(), of.1)).collect();
                page.samples(kind, &name, help, &samples);
            }
        }
    }
}

/// The v0 engine had no label `engine`, and left out `_created`.
pub(super) fn vllm(metrics: &Metrics, gauges: Gauges, counters: Counters, out: &mut String) {
    let v1 = metrics.names == MetricNames::VllmV1;
    let labels = [("engine", "0"), ("model_name", &metrics.labels.model)];
    let created = v1.then_some(metrics.labels.started_unix_s);
    let mut page = Exposition::new(out, if v1 { &labels } else { &labels[1..] }, created);
    counted(&mut page, metrics, gauges, counters);
    observed(&mut page, metrics);
    page.relabel(if v1 { &labels[..1] } else { &[] });
    cache_config(&mut page, metrics);
    page.relabel(&[]);
    let labels = metrics.answers.iter().map(|((handler, method, status), _)| {
        [("handler", *handler), ("method", *method), ("status", *status)]
    });
    let labels: Vec<[Label<'_>; 3]> = labels.collect();
    let samples = labels.iter().zip(&metrics.answers);
    let samples = samples.map(|(labels, (_, count))| (labels.as_slice(), *count as f64));
    let samples: Vec<_> = samples.collect();
    page.samples(COUNTER, "http_requests_total", "HTTP requests that were answered.", &samples);
}

fn counted(page: &mut Exposition<'_>, metrics: &Metrics, gauges: Gauges, counters: Counters) {
    let v1 = metrics.names == MetricNames::VllmV1;
    let reasons = "Requests in the queue, by what they wait for; this engine defers none.";
    let waiting = [("capacity", f64::from(gauges.waiting)), ("deferred", 0.0)];
    let sleeps = [("awake", 1.0), ("weights_offloaded", 0.0), ("discard_all", 0.0)];
    let swapped =
        "Requests whose blocks lie in host memory; this engine computes them again instead.";
    let hit_rate = "Share of the tokens looked up that the prefix cache had; -1 without one.";
    // v0 looked preempted requests up like any others.
    let looked_up = counters.prefix_queries + counters.prefix_queries_preempted;
    let found = counters.prefix_hits + counters.prefix_hits_preempted;
    let has_cache = metrics.labels.cache.prefix_caching;
    let rate = if has_cache { found as f64 / looked_up.max(1) as f64 } else { -1.0 };
    let queries = "Tokens looked up in the prefix cache by requests that came for the first time.";
    let hits = "Tokens that the prefix cache had, of those looked up.";
    let preemptions = "How often a request lost its blocks to another.";
    let by_source =
        "Tokens of the prompts that are computed, by where their keys and values came from.";
    let cached = metrics.cached_prompt_tokens;
    let sources = [
        ("local_compute", counters.prompt_tokens.saturating_sub(cached) as f64),
        ("local_cache_hit", cached as f64),
        ("external_kv_transfer", 0.0),
    ];
    let [stop, length, abort] = metrics.ended.map(|count| count as f64);
    // This engine does not fail a request, and knows no repetition.
    let ends =
        [("stop", stop), ("length", length), ("abort", abort), ("error", 0.0), ("repetition", 0.0)];
    let Drafts { steps, drafted, accepted, .. } = counters.drafts;
    let length = metrics.labels.draft_tokens as usize;
    let speculates = v1 && 0 < length;
    let accepted_help = "Drafted tokens that were accepted.";
    let at_help = "Drafted tokens that were accepted, by their position.";
    let positions = POSITIONS.iter().take(length).enumerate();
    let positions: Vec<_> =
        positions.map(|(at, name)| (*name, counters.drafts.accepted_at(at) as f64)).collect();
    let accepted_at = By(COUNTER, "position", &positions);
    let ends = By(COUNTER, "finished_reason", if v1 { &ends } else { &ends[..3] });
    let rows = [
        (true, "num_requests_running", RUNNING, Gauge(gauges.running.into())),
        (true, "num_requests_waiting", QUEUED, Gauge(gauges.waiting.into())),
        (v1, "num_requests_waiting_by_reason", reasons, By(GAUGE, "reason", &waiting)),
        (v1, "engine_sleep_state", SLEEPS, By(GAUGE, "sleep_state", &sleeps)),
        (v1, "kv_cache_usage_perc", USAGE, Gauge(gauges.kv_usage)),
        (!v1, "num_requests_swapped", swapped, Gauge(0.0)),
        (!v1, "gpu_cache_usage_perc", USAGE, Gauge(gauges.kv_usage)),
        (!v1, "cpu_cache_usage_perc", "Share of the blocks in host memory in use.", Gauge(0.0)),
        (!v1, "gpu_prefix_cache_hit_rate", hit_rate, Gauge(rate)),
        (v1, "prefix_cache_queries_total", queries, Counter(counters.prefix_queries)),
        (v1, "prefix_cache_hits_total", hits, Counter(counters.prefix_hits)),
        (true, "num_preemptions_total", preemptions, Counter(counters.preemptions)),
        (true, "prompt_tokens_total", PROMPT_TOKENS, Counter(counters.prompt_tokens)),
        (v1, "prompt_tokens_by_source_total", by_source, By(COUNTER, "source", &sources)),
        (v1, "prompt_tokens_cached_total", CACHED_TOKENS, Counter(cached)),
        (true, "generation_tokens_total", OUTPUT_TOKENS, Counter(counters.generation_tokens)),
        (true, "request_success_total", "Requests that ended, by how.", ends),
        (speculates, "spec_decode_num_drafts_total", "Drafts that were verified.", Counter(steps)),
        (speculates, "spec_decode_num_draft_tokens_total", "Drafted tokens.", Counter(drafted)),
        (speculates, "spec_decode_num_accepted_tokens_total", accepted_help, Counter(accepted)),
        (speculates, "spec_decode_num_accepted_tokens_per_pos_total", at_help, accepted_at),
    ];
    write(page, "vllm", rows);
}

/// Labels of the tokens of a draft.
const POSITIONS: [&str; DRAFT_TOKENS_MAX as usize] =
    ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"];
const SLEEPS: &str = "Which state the engine is in; this one never sleeps.";

fn observed(page: &mut Exposition<'_>, metrics: &Metrics) {
    let v1 = metrics.names == MetricNames::VllmV1;
    let seen = &metrics.observed;
    // With the step whose tokens came last.
    let mut step_tokens = seen.step_tokens.clone();
    if metrics.step_tokens > 0 {
        step_tokens.observe(metrics.step_tokens as f64);
    }
    let step =
        "Tokens of one step: those it generated, and the prompts that it finished computing.";
    let longest = "Tokens of the longest answer to a request.";
    let most = "Most tokens that an answer was allowed.";
    let per_token = "Seconds per token after the first, averaged over a request.";
    let inference = "Seconds from a request's first step to its last token.";
    let prefill = "Seconds from a request's first step to its first token.";
    let decode = "Seconds from a request's first token to its last.";
    let computed = "Prompt tokens of a request that the cache did not have.";
    let rows = [
        (true, "request_prompt_tokens", "Tokens of a request's prompt.", &seen.prompt_tokens),
        (true, "request_generation_tokens", "Tokens of an answer.", &seen.output_tokens),
        (true, "iteration_tokens_total", step, &step_tokens),
        (true, "request_max_num_generation_tokens", longest, &seen.longest_answer),
        (true, "request_params_n", "Answers requested (n).", &seen.choices),
        (true, "request_params_max_tokens", most, &seen.max_tokens),
        (true, "time_to_first_token_seconds", FIRST_TOKEN, &seen.first_token),
        (v1, "inter_token_latency_seconds", INTER_TOKEN, &seen.inter_token),
        (!v1, "time_per_output_token_seconds", INTER_TOKEN, &seen.inter_token),
        (v1, "request_time_per_output_token_seconds", per_token, &seen.per_output_token),
        (true, "e2e_request_latency_seconds", REQUEST, &seen.request),
        (true, "request_queue_time_seconds", QUEUE, &seen.queue),
        (true, "request_inference_time_seconds", inference, &seen.inference),
        (true, "request_prefill_time_seconds", prefill, &seen.prefill),
        (true, "request_decode_time_seconds", decode, &seen.decode),
        (v1, "request_prefill_kv_computed_tokens", computed, &seen.computed_prompt_tokens),
        (!v1, "time_in_queue_requests", QUEUE, &seen.queue),
    ];
    write(page, "vllm", rows.map(|(has, name, help, of)| (has, name, help, Distribution(of))));
}

fn cache_config(page: &mut Exposition<'_>, metrics: &Metrics) {
    let cache = &metrics.labels.cache;
    let tokens = u64::from(cache.blocks) * u64::from(cache.block_size);
    let concurrency = tokens as f64 / f64::from(metrics.labels.max_model_len.max(1));
    let utilization = number(cache.gpu_memory_utilization);
    page.samples(
        GAUGE,
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

/// SGLang's scheduler labels its samples with its rank; its front end does not. Both write to files
/// that a third process reads, and `_created` is lost on that way. SGLang counts the tokens of a
/// request when it ends; here they are counted as they come, so that a rate over them is one.
pub(super) fn sglang(metrics: &Metrics, gauges: Gauges, counters: Counters, out: &mut String) {
    let model = ("model_name", metrics.labels.model.as_str());
    let ranks = [("engine_type", "unified"), model, ("pp_rank", "0"), ("tp_rank", "0")];
    let mut page = Exposition::new(out, &ranks, None);
    let (cache, seen) = (&metrics.labels.cache, &metrics.observed);
    // The null block holds nothing.
    let capacity = f64::from(cache.blocks.saturating_sub(1)) * f64::from(cache.block_size);
    let used = (gauges.kv_usage * capacity).round();
    let usage = "Share of the KV cache's tokens in use, from 0 to 1.";
    let rate = "Tokens of answers per second in the last 40 steps; 0 when nothing runs.";
    let per_s = if gauges.running == 0 { 0.0 } else { metrics.tokens_per_s };
    let hits = "Share of the prompt tokens that the cache had, in the last step with prompts.";
    let retracted = "How often a request lost its memory to another.";
    let scheduler = [
        (true, "num_running_reqs", RUNNING, Gauge(gauges.running.into())),
        (true, "num_queue_reqs", QUEUED, Gauge(gauges.waiting.into())),
        (true, "num_used_tokens", "Tokens of the KV cache in use.", Gauge(used)),
        (true, "token_usage", usage, Gauge(gauges.kv_usage)),
        (true, "max_total_num_tokens", "Tokens that the KV cache can hold.", Gauge(capacity)),
        (true, "gen_throughput", rate, Gauge(per_s)),
        (true, "cache_hit_rate", hits, Gauge(metrics.hit_rate)),
        (true, "num_retracted_requests_total", retracted, Counter(counters.preemptions)),
        (true, "queue_time_seconds", QUEUE, Distribution(&seen.queue)),
    ];
    write(&mut page, "sglang", scheduler);
    page.relabel(&[model]);
    let [stop, length, abort] = metrics.ended;
    let front_end = [
        (true, "prompt_tokens_total", PROMPT_TOKENS, Counter(counters.prompt_tokens)),
        (true, "generation_tokens_total", OUTPUT_TOKENS, Counter(counters.generation_tokens)),
        (true, "cached_tokens_total", CACHED_TOKENS, Counter(metrics.cached_prompt_tokens)),
        (true, "num_requests_total", "Requests with a whole answer.", Counter(stop + length)),
        (true, "num_aborted_requests_total", "Requests that were aborted.", Counter(abort)),
        (true, "time_to_first_token_seconds", FIRST_TOKEN, Distribution(&seen.first_token)),
        (true, "inter_token_latency_seconds", INTER_TOKEN, Distribution(&seen.inter_token)),
        (true, "e2e_request_latency_seconds", REQUEST, Distribution(&seen.request)),
    ];
    write(&mut page, "sglang", front_end);
}
