//! From Prometheus text to our vocabulary: one pass, bounded, and nothing made up.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use inferometer_model::telemetry::{Counters, Dialect, Gauges, MissReason, SumCount, Timings};

use super::text::{Line, Series, lines};

/// The result of one scrape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    pub dialect: Dialect,
    pub process_start_s: Option<f64>,
    pub gauges: Gauges,
    pub counters: Counters,
    pub timings: Timings,
    /// Values of known names that are no numbers to work with.
    pub dropped: u32,
}

/// A server that has more to say is not one that we know.
const SERIES_MAX: usize = 200_000;

/// Reads a whole answer, or returns why it is of no use.
pub fn read(body: &[u8]) -> Result<Reading, MissReason> {
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
    let names = DIALECTS
        .iter()
        .find(|names| names.marks.iter().any(|mark| scraped.values.contains_key(mark)));
    names.map(|names| scraped.reading(names)).ok_or(MissReason::NoKnownName)
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
        if !is_known(name) || RANK_LABELS.iter().any(|rank| is_later_rank(series, rank)) {
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

    fn reading(&self, names: &Names) -> Reading {
        let of = |word| self.word(names, word);
        let timing = |word| self.timing(names, word);
        Reading {
            dialect: names.dialect,
            process_start_s: self.process_start_s,
            gauges: Gauges {
                running: of(Word::Running),
                waiting: of(Word::Waiting),
                swapped: of(Word::Swapped),
                kv_usage: of(Word::KvUsage),
                cpu_kv_usage: of(Word::CpuKvUsage),
            },
            counters: Counters {
                prefix_queries: of(Word::PrefixQueries),
                prefix_hits: of(Word::PrefixHits),
                preemptions: of(Word::Preemptions),
                prompt_tokens: of(Word::PromptTokens),
                generation_tokens: of(Word::GenerationTokens),
            },
            timings: Timings {
                ttft: timing(Word::Ttft),
                e2e: timing(Word::E2e),
                queue: timing(Word::Queue),
            },
            dropped: self.dropped,
        }
    }

    fn word(&self, names: &Names, word: Word) -> Option<f64> {
        let value = |name: &&str| {
            let value = self.values.get(*name).filter(|value| !value.broken)?;
            Some(match word.joined() {
                Joined::Sum => value.sum,
                Joined::Max => value.max,
            })
        };
        rules(names, word).find_map(|rule| rule.iter().map(value).sum())
    }

    fn timing(&self, names: &Names, word: Word) -> Option<SumCount> {
        rules(names, word).flatten().find_map(|name| {
            let part = |ending: &str| {
                let parts = self.values.iter();
                let mut parts =
                    parts.filter(|(found, _)| found.strip_prefix(*name) == Some(ending));
                parts.next().filter(|(_, value)| !value.broken).map(|(_, value)| value.sum)
            };
            Some(SumCount { sum_s: part("_sum")?, count: part("_count")? })
        })
    }
}

fn rules(names: &Names, word: Word) -> impl Iterator<Item = &'static [&'static str]> {
    let of_word = names.words.iter().filter(move |(found, _)| *found == word);
    of_word.flat_map(|(_, rules)| rules.iter().copied())
}

/// What a series is called in the rules.
fn key<'a>(series: &Series<'a>) -> &'a str {
    let labelled = LABELLED.iter().filter(|labelled| labelled.name == series.name);
    let mut fitting = labelled.filter(|it| series.label(it.label) == Some(it.value));
    fitting.next().map_or(series.name, |labelled| labelled.key)
}

fn is_known(name: &str) -> bool {
    let histogram = name.strip_suffix("_sum").or_else(|| name.strip_suffix("_count"));
    DIALECTS.iter().any(|names| {
        names.marks.contains(&name)
            || names.words.iter().any(|(word, rules)| {
                let wanted = if word.is_histogram() { histogram } else { Some(name) };
                wanted.is_some_and(|wanted| rules.iter().any(|rule| rule.contains(&wanted)))
            })
    })
}

fn is_later_rank(series: &Series<'_>, label: &str) -> bool {
    series.label(label).is_some_and(|rank| rank != "0")
}

/// The names of one server, or of one generation of it.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) dialect: Dialect,
    /// It is this dialect when any of them is there.
    pub(super) marks: &'static [&'static str],
    pub(super) words: &'static [(Word, &'static [Rule])],
}

/// Names of series whose values are added.
pub(super) type Rule = &'static [&'static str];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Word {
    Running,
    Waiting,
    Swapped,
    KvUsage,
    CpuKvUsage,
    PrefixQueries,
    PrefixHits,
    Preemptions,
    PromptTokens,
    GenerationTokens,
    /// Histograms, without `_sum` and `_count`.
    Ttft,
    E2e,
    Queue,
}

/// How the series of one name that differ in their labels become one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joined {
    Sum,
    /// The fullest engine is the one that preempts; a mean over engines would hide it.
    Max,
}

impl Word {
    pub(super) const fn joined(self) -> Joined {
        if matches!(self, Self::KvUsage | Self::CpuKvUsage) { Joined::Max } else { Joined::Sum }
    }

    pub(super) const fn is_histogram(self) -> bool {
        matches!(self, Self::Ttft | Self::E2e | Self::Queue)
    }
}

/// Start time of the process, as the usual client libraries name it.
pub(super) const PROCESS_START: &str = "process_start_time_seconds";

/// Labels that number the parts of one engine. Every part counts the same requests, so only the
/// first of them is read; parallel engines (`engine`, `dp_rank`) are added up.
pub(super) const RANK_LABELS: [&str; 2] = ["tp_rank", "pp_rank"];

/// In the order in which they are tried: the first whose mark is there.
pub(super) const DIALECTS: [Names; 9] =
    [VLLM_V0, VLLM_V1, VLLM_V1_EARLY, SGLANG, LLAMA_CPP, TGI, TENSORRT_LLM, TRITON, DYNAMO];

/// A name under which several things are distinguished by a label, and what such a thing is called in
/// the rules.
#[derive(Debug)]
pub(super) struct Labelled {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) value: &'static str,
    pub(super) key: &'static str,
}

pub(super) const LABELLED: [Labelled; 4] = [
    triton_requests("scheduled", "nv_trt_llm_request_metrics/scheduled"),
    triton_requests("active", "nv_trt_llm_request_metrics/active"),
    triton_requests("waiting", "nv_trt_llm_request_metrics/waiting"),
    Labelled {
        name: "nv_trt_llm_kv_cache_block_metrics",
        label: "kv_cache_block_type",
        value: "fraction",
        key: "nv_trt_llm_kv_cache_block_metrics/fraction",
    },
];

const fn triton_requests(value: &'static str, key: &'static str) -> Labelled {
    Labelled { name: "nv_trt_llm_request_metrics", label: "request_type", value, key }
}

/// `gpu_prefix_cache_hit_rate` is a ratio over a window of its own, and no counter comes out of it.
const VLLM_V0: Names = Names {
    dialect: Dialect::VllmV0,
    marks: &["vllm:num_requests_swapped", "vllm:gpu_prefix_cache_hit_rate"],
    words: VLLM,
};

const VLLM_V1: Names =
    Names { dialect: Dialect::VllmV1, marks: &["vllm:kv_cache_usage_perc"], words: VLLM };

const VLLM_V1_EARLY: Names =
    Names { dialect: Dialect::VllmV1Early, marks: &["vllm:num_requests_running"], words: VLLM };

/// Every generation's names: a word has the same meaning under all of them.
const VLLM: &[(Word, &[Rule])] = &[
    (Word::Running, &[&["vllm:num_requests_running"]]),
    (Word::Waiting, &[&["vllm:num_requests_waiting"]]),
    (Word::Swapped, &[&["vllm:num_requests_swapped"]]),
    (Word::KvUsage, &[&["vllm:kv_cache_usage_perc"], &["vllm:gpu_cache_usage_perc"]]),
    (Word::CpuKvUsage, &[&["vllm:cpu_cache_usage_perc"]]),
    (
        Word::PrefixQueries,
        &[
            &["vllm:prefix_cache_queries_total"],
            &["vllm:prefix_cache_queries"],
            &["vllm:gpu_prefix_cache_queries_total"],
            &["vllm:gpu_prefix_cache_queries"],
        ],
    ),
    (
        Word::PrefixHits,
        &[
            &["vllm:prefix_cache_hits_total"],
            &["vllm:prefix_cache_hits"],
            &["vllm:gpu_prefix_cache_hits_total"],
            &["vllm:gpu_prefix_cache_hits"],
        ],
    ),
    (Word::Preemptions, &[&["vllm:num_preemptions_total"], &["vllm:num_preemptions"]]),
    (Word::PromptTokens, &[&["vllm:prompt_tokens_total"], &["vllm:prompt_tokens"]]),
    (Word::GenerationTokens, &[&["vllm:generation_tokens_total"], &["vllm:generation_tokens"]]),
    (Word::Ttft, &[&["vllm:time_to_first_token_seconds"]]),
    (Word::E2e, &[&["vllm:e2e_request_latency_seconds"]]),
    (Word::Queue, &[&["vllm:request_queue_time_seconds"]]),
];

/// Every prompt token is looked up in the radix tree, so queries are the prompt tokens.
const SGLANG: Names = Names {
    dialect: Dialect::Sglang,
    marks: &["sglang:num_running_reqs", "sglang:token_usage", "sglang:prompt_tokens_total"],
    words: &[
        (Word::Running, &[&["sglang:num_running_reqs"]]),
        (Word::Waiting, &[&["sglang:num_queue_reqs"]]),
        (Word::KvUsage, &[&["sglang:token_usage"], &["sglang:full_token_usage"]]),
        (Word::PrefixQueries, &[&["sglang:prompt_tokens_total"]]),
        (Word::PrefixHits, &[&["sglang:cached_tokens_total"]]),
        (Word::Preemptions, &[&["sglang:num_retracted_requests_total"]]),
        (Word::PromptTokens, &[&["sglang:prompt_tokens_total"]]),
        (Word::GenerationTokens, &[&["sglang:generation_tokens_total"]]),
        (Word::Ttft, &[&["sglang:time_to_first_token_seconds"]]),
        (Word::E2e, &[&["sglang:e2e_request_latency_seconds"]]),
        (Word::Queue, &[&["sglang:queue_time_seconds"]]),
    ],
};

/// Its prompt tokens are those that it computed; with those from the cache they are the prompts.
const LLAMA_CPP: Names = Names {
    dialect: Dialect::LlamaCpp,
    marks: &["llamacpp:requests_processing", "llamacpp:tokens_predicted_total"],
    words: &[
        (Word::Running, &[&["llamacpp:requests_processing"]]),
        (Word::Waiting, &[&["llamacpp:requests_deferred"]]),
        (Word::KvUsage, &[&["llamacpp:kv_cache_usage_ratio"]]),
        (Word::PrefixQueries, &[LLAMA_CPP_PROMPTS]),
        (Word::PrefixHits, &[&["llamacpp:prompt_tokens_cached_total"]]),
        (Word::PromptTokens, &[LLAMA_CPP_PROMPTS]),
        (Word::GenerationTokens, &[&["llamacpp:tokens_predicted_total"]]),
    ],
};

const LLAMA_CPP_PROMPTS: Rule =
    &["llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total"];

const TGI: Names = Names {
    dialect: Dialect::Tgi,
    // One that has served no request yet has only the totals.
    marks: &["tgi_queue_size", "tgi_batch_current_size", "tgi_request_count"],
    words: &[
        (Word::Running, &[&["tgi_batch_current_size"]]),
        (Word::Waiting, &[&["tgi_queue_size"]]),
        (Word::PromptTokens, &[&["tgi_request_input_length_sum"]]),
        (Word::GenerationTokens, &[&["tgi_request_generated_tokens_sum"]]),
        (Word::E2e, &[&["tgi_request_duration"]]),
        (Word::Queue, &[&["tgi_request_queue_duration"]]),
    ],
};

const TENSORRT_LLM: Names = Names {
    dialect: Dialect::TensorrtLlm,
    // Older ones have a counter of successes and some histograms, and no more.
    marks: &[
        "trtllm_num_requests_running",
        "trtllm_kv_cache_utilization",
        "trtllm_request_success_total",
        "trtllm_e2e_request_latency_seconds_count",
    ],
    words: &[
        (Word::Running, &[&["trtllm_num_requests_running"]]),
        (Word::Waiting, &[&["trtllm_num_requests_waiting"]]),
        (Word::KvUsage, &[&["trtllm_kv_cache_utilization"]]),
        (Word::CpuKvUsage, &[&["trtllm_kv_cache_host_utilization"]]),
        (Word::PrefixQueries, &[&["trtllm_prompt_tokens_total"]]),
        (Word::PrefixHits, &[&["trtllm_prompt_cached_tokens_total"]]),
        (Word::PromptTokens, &[&["trtllm_prompt_tokens_total"]]),
        (Word::GenerationTokens, &[&["trtllm_generation_tokens_total"]]),
        (Word::Ttft, &[&["trtllm_time_to_first_token_seconds"]]),
        (Word::E2e, &[&["trtllm_e2e_request_latency_seconds"]]),
        (Word::Queue, &[&["trtllm_request_queue_time_seconds"]]),
    ],
};

/// Its active requests are those that it has taken in; of them some are in the batch.
const TRITON: Names = Names {
    dialect: Dialect::Triton,
    marks: &["nv_trt_llm_request_metrics/active", "nv_trt_llm_kv_cache_block_metrics/fraction"],
    words: &[
        (
            Word::Running,
            &[&["nv_trt_llm_request_metrics/scheduled"], &["nv_trt_llm_request_metrics/active"]],
        ),
        (Word::Waiting, &[&["nv_trt_llm_request_metrics/waiting"]]),
        (Word::KvUsage, &[&["nv_trt_llm_kv_cache_block_metrics/fraction"]]),
    ],
};

/// Its requests in flight are those that wait, too, so how many run is not known.
const DYNAMO: Names = Names {
    dialect: Dialect::Dynamo,
    marks: &["dynamo_frontend_inflight_requests", "dynamo_frontend_requests_total"],
    words: &[
        (Word::Waiting, &[&["dynamo_frontend_queued_requests"]]),
        (Word::PrefixQueries, &[&["dynamo_frontend_input_sequence_tokens_sum"]]),
        (Word::PrefixHits, &[&["dynamo_frontend_cached_tokens_sum"]]),
        (Word::PromptTokens, &[&["dynamo_frontend_input_sequence_tokens_sum"]]),
        (
            Word::GenerationTokens,
            &[
                &["dynamo_frontend_output_tokens_total"],
                &["dynamo_frontend_output_sequence_tokens_sum"],
            ],
        ),
        (Word::Ttft, &[&["dynamo_frontend_time_to_first_token_seconds"]]),
        (Word::E2e, &[&["dynamo_frontend_request_duration_seconds"]]),
    ],
};
