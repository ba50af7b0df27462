//! From Prometheus text to our vocabulary: one pass, bounded, and nothing made up.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::str::SplitWhitespace;
use std::sync::LazyLock;
use std::time::Duration;

use inferometer_model::Moment;
use inferometer_model::telemetry::{
    Counters, Dialect, Gauges, MissReason, SumCount, TelemetrySample, Timings,
};

use super::text::{Line, Series, lines};

/// A server that has more to say is not one that we know.
const SERIES_MAX: usize = 200_000;

/// Reads a whole answer, whose moment is the caller's to add, or returns why it is of no use.
pub(super) fn read(body: &[u8]) -> Result<TelemetrySample, MissReason> {
    let text = std::str::from_utf8(body).map_err(|_error| MissReason::NotPrometheus)?;
    let mut scraped = ScrapedValues::default();
    let (mut series_count, mut malformed) = (0_usize, 0_usize);
    for line in lines(text) {
        match line {
            Line::Series(series) => {
                series_count += 1;
                scraped.add(&series);
            }
            Line::Malformed => malformed += 1,
        }
        if SERIES_MAX < series_count + malformed {
            return Err(MissReason::TooLarge);
        }
    }
    // A stray line is a mistake; a page in which they prevail is something else.
    if series_count <= malformed {
        return Err(MissReason::NotPrometheus);
    }
    let found = DIALECTS
        .iter()
        .find(|(_, marks, _)| marks.split(' ').any(|mark| scraped.values.contains_key(mark)));
    let (dialect, _, words) = found.ok_or(MissReason::NoKnownName)?;
    Ok(scraped.reading(*dialect, words))
}

/// The values of names that some table knows; the keys are the tables' own.
#[derive(Debug, Default)]
struct ScrapedValues<'a> {
    values: BTreeMap<&'a str, Value>,
    /// By name and labels, to find duplicates.
    seen: BTreeMap<(&'a str, &'a str), f64>,
    process_start_s: Option<f64>,
    dropped: u32,
}

/// The series of one name, joined.
#[derive(Clone, Copy, Debug)]
struct Value {
    sum: f64,
    max: f64,
    /// One of them was no number: what the others come to is not the whole.
    broken: bool,
}

impl<'a> ScrapedValues<'a> {
    fn add(&mut self, series: &Series<'a>) {
        if series.name == PROCESS_START {
            self.process_start_s = Some(series.value).filter(|value| value.is_finite());
            return;
        }
        let name = key(series);
        let is_later = |rank: &&str| series.label(rank).is_some_and(|rank| rank != "0");
        if !KNOWN.contains(name) || RANK_LABELS.iter().any(is_later) {
            return;
        }
        let none = Value { sum: 0.0, max: 0.0, broken: false };
        let value = self.values.entry(name).or_insert(none);
        // A series has one value; repeated it counts once, and of two different values neither is used.
        if let Some(seen) = self.seen.insert((name, series.labels()), series.value) {
            self.dropped = self.dropped.saturating_add(1);
            value.broken |= seen.to_bits() != series.value.to_bits();
            return;
        }
        // No word of the vocabulary has a value below zero.
        if !series.value.is_finite() || series.value < 0.0 {
            self.dropped = self.dropped.saturating_add(1);
            value.broken = true;
            return;
        }
        value.sum += series.value;
        value.max = value.max.max(series.value);
    }

    fn reading(&self, dialect: Dialect, words: &str) -> TelemetrySample {
        let of = |word| self.word(words, word);
        let timing = |word| self.timing(words, word);
        TelemetrySample {
            at: Moment::ZERO,
            took: Duration::ZERO,
            dialect,
            process_start_s: self.process_start_s,
            gauges: Gauges {
                running: of("running"),
                waiting: of("waiting"),
                swapped: of("swapped"),
                kv_usage: of("kv_usage"),
                cpu_kv_usage: of("cpu_kv_usage"),
            },
            counters: Counters {
                prefix_queries: of("prefix_queries"),
                prefix_hits: of("prefix_hits"),
                preemptions: of("preemptions"),
                prompt_tokens: of("prompt_tokens"),
                generation_tokens: of("generation_tokens"),
            },
            timings: Timings { ttft: timing("ttft"), e2e: timing("e2e"), queue: timing("queue") },
            dropped: self.dropped,
        }
    }

    fn word(&self, words: &str, word: &str) -> Option<f64> {
        let value = |name: &str| {
            let value = self.values.get(name).filter(|value| !value.broken)?;
            // The fullest engine is the one that preempts; a mean over engines would hide it.
            let is_fullest = word.ends_with("kv_usage");
            Some(if is_fullest { value.max } else { value.sum })
        };
        rules(words)
            .find(|(found, _)| *found == word)?
            .1
            .find_map(|rule| rule.split('+').map(value).sum())
    }

    fn timing(&self, words: &str, word: &str) -> Option<SumCount> {
        let name = rules(words).find(|(found, _)| *found == word)?.1.next()?;
        let part = |ending: &str| {
            let value = self.values.get(format!("{name}{ending}").as_str())?;
            (!value.broken).then_some(value.sum)
        };
        Some(SumCount { sum_s: part("_sum")?, count: part("_count")? })
    }
}

/// Each word of a dialect with the rules that are tried for it in turn.
fn rules(words: &str) -> impl Iterator<Item = (&str, SplitWhitespace<'_>)> {
    words.lines().filter_map(|line| {
        let mut parts = line.split_whitespace();
        Some((parts.next()?, parts))
    })
}

/// What a series is called in the rules.
fn key<'a>(series: &Series<'a>) -> &'a str {
    let is_it = |(key, label, value): &&(&str, &str, &str)| {
        key.split_once('/').is_some_and(|(name, _)| name == series.name)
            && series.label(label) == Some(value)
    };
    LABELLED.iter().find(is_it).map_or(series.name, |(key, ..)| key)
}

/// All names that some rule asks for.
static KNOWN: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let mut known = HashSet::new();
    for (_, marks, words) in &DIALECTS {
        known.extend(marks.split(' ').map(str::to_owned));
        for (word, rules) in rules(words) {
            let endings: &[&str] =
                if HISTOGRAMS.contains(&word) { &["_sum", "_count"] } else { &[""] };
            for name in rules.flat_map(|rule| rule.split('+')) {
                known.extend(endings.iter().map(|ending| format!("{name}{ending}")));
            }
        }
    }
    known
});

/// Start time of the process, as the usual client libraries name it.
const PROCESS_START: &str = "process_start_time_seconds";

/// Labels that number the parts of one engine. Every part counts the same requests, so only the
/// first of them is read; parallel engines (`engine`, `dp_rank`) are added up.
const RANK_LABELS: [&str; 2] = ["tp_rank", "pp_rank"];

/// Names under which several things are distinguished by a label: what such a thing is called in
/// the rules, which begins with the name, the label, and its value.
const LABELLED: [(&str, &str, &str); 4] = [
    ("nv_trt_llm_request_metrics/scheduled", "request_type", "scheduled"),
    ("nv_trt_llm_request_metrics/active", "request_type", "active"),
    ("nv_trt_llm_request_metrics/waiting", "request_type", "waiting"),
    ("nv_trt_llm_kv_cache_block_metrics/fraction", "kv_cache_block_type", "fraction"),
];

/// Words whose names have `_sum` and `_count` behind them.
const HISTOGRAMS: [&str; 3] = ["ttft", "e2e", "queue"];

/// The names of each server, or of one generation of it, in the order in which they are tried: the
/// marks, of which one that is there tells the dialect, and on each line a word of ours with the
/// names that are tried for it in turn. The values of names with a `+` between them are added.
const DIALECTS: [(Dialect, &str, &str); 9] = [
    // `gpu_prefix_cache_hit_rate` is a ratio over a window of its own, and no counter comes out of it.
    (Dialect::VllmV0, "vllm:num_requests_swapped vllm:gpu_prefix_cache_hit_rate", VLLM),
    (Dialect::VllmV1, "vllm:kv_cache_usage_perc", VLLM),
    (Dialect::VllmV1Early, "vllm:num_requests_running", VLLM),
    (
        Dialect::Sglang,
        "sglang:num_running_reqs sglang:token_usage sglang:prompt_tokens_total",
        // Every prompt token is looked up in the radix tree, so queries are the prompt tokens.
        "running sglang:num_running_reqs
         waiting sglang:num_queue_reqs
         kv_usage sglang:token_usage sglang:full_token_usage
         prefix_queries sglang:prompt_tokens_total
         prefix_hits sglang:cached_tokens_total
         preemptions sglang:num_retracted_requests_total
         prompt_tokens sglang:prompt_tokens_total
         generation_tokens sglang:generation_tokens_total
         ttft sglang:time_to_first_token_seconds
         e2e sglang:e2e_request_latency_seconds
         queue sglang:queue_time_seconds",
    ),
    (
        Dialect::LlamaCpp,
        "llamacpp:requests_processing llamacpp:tokens_predicted_total",
        // Its prompt tokens are those that it computed; with those from the cache they are the prompts.
        "running llamacpp:requests_processing
         waiting llamacpp:requests_deferred
         kv_usage llamacpp:kv_cache_usage_ratio
         prefix_queries llamacpp:prompt_tokens_total+llamacpp:prompt_tokens_cached_total
         prefix_hits llamacpp:prompt_tokens_cached_total
         prompt_tokens llamacpp:prompt_tokens_total+llamacpp:prompt_tokens_cached_total
         generation_tokens llamacpp:tokens_predicted_total",
    ),
    (
        Dialect::Tgi,
        // One that has served no request yet has only the totals.
        "tgi_queue_size tgi_batch_current_size tgi_request_count",
        "running tgi_batch_current_size
         waiting tgi_queue_size
         prompt_tokens tgi_request_input_length_sum
         generation_tokens tgi_request_generated_tokens_sum
         e2e tgi_request_duration
         queue tgi_request_queue_duration",
    ),
    (
        Dialect::TensorrtLlm,
        // Older ones have a counter of successes and some histograms, and no more.
        "trtllm_num_requests_running trtllm_kv_cache_utilization trtllm_request_success_total \
         trtllm_e2e_request_latency_seconds_count",
        "running trtllm_num_requests_running
         waiting trtllm_num_requests_waiting
         kv_usage trtllm_kv_cache_utilization
         cpu_kv_usage trtllm_kv_cache_host_utilization
         prefix_queries trtllm_prompt_tokens_total
         prefix_hits trtllm_prompt_cached_tokens_total
         prompt_tokens trtllm_prompt_tokens_total
         generation_tokens trtllm_generation_tokens_total
         ttft trtllm_time_to_first_token_seconds
         e2e trtllm_e2e_request_latency_seconds
         queue trtllm_request_queue_time_seconds",
    ),
    (
        Dialect::Triton,
        "nv_trt_llm_request_metrics/active nv_trt_llm_kv_cache_block_metrics/fraction",
        // Its active requests are those that it has taken in; of them some are in the batch.
        "running nv_trt_llm_request_metrics/scheduled nv_trt_llm_request_metrics/active
         waiting nv_trt_llm_request_metrics/waiting
         kv_usage nv_trt_llm_kv_cache_block_metrics/fraction",
    ),
    (
        Dialect::Dynamo,
        "dynamo_frontend_inflight_requests dynamo_frontend_requests_total",
        // Its requests in flight are those that wait, too, so how many run is not known.
        "waiting dynamo_frontend_queued_requests
         prefix_queries dynamo_frontend_input_sequence_tokens_sum
         prefix_hits dynamo_frontend_cached_tokens_sum
         prompt_tokens dynamo_frontend_input_sequence_tokens_sum
         generation_tokens dynamo_frontend_output_tokens_total \
             dynamo_frontend_output_sequence_tokens_sum
         ttft dynamo_frontend_time_to_first_token_seconds
         e2e dynamo_frontend_request_duration_seconds",
    ),
];

/// Every generation's names: a word has the same meaning under all of them.
const VLLM: &str = "running vllm:num_requests_running
    waiting vllm:num_requests_waiting
    swapped vllm:num_requests_swapped
    kv_usage vllm:kv_cache_usage_perc vllm:gpu_cache_usage_perc
    cpu_kv_usage vllm:cpu_cache_usage_perc
    prefix_queries vllm:prefix_cache_queries_total vllm:prefix_cache_queries \
        vllm:gpu_prefix_cache_queries_total vllm:gpu_prefix_cache_queries
    prefix_hits vllm:prefix_cache_hits_total vllm:prefix_cache_hits \
        vllm:gpu_prefix_cache_hits_total vllm:gpu_prefix_cache_hits
    preemptions vllm:num_preemptions_total vllm:num_preemptions
    prompt_tokens vllm:prompt_tokens_total vllm:prompt_tokens
    generation_tokens vllm:generation_tokens_total vllm:generation_tokens
    ttft vllm:time_to_first_token_seconds
    e2e vllm:e2e_request_latency_seconds
    queue vllm:request_queue_time_seconds";
