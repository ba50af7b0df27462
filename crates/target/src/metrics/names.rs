//! What each server calls the words of our vocabulary.
//!
//! A word has rules, best first. A rule names series that are added up, and it fits when all of
//! them are there: so a server that has both an old and a new name for the same is counted once,
//! and a sum of which a part is missing is absent and not too small.

use inferometer_model::telemetry::Dialect;

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

/// Of the process, as the usual client libraries name it.
pub(super) const PROCESS_START: &str = "process_start_time_seconds";

/// Labels that number the parts of one engine. Every part counts the same requests, so only the
/// first of them is heard; engines beside each other (`engine`, `dp_rank`) are added up.
pub(super) const RANK_LABELS: [&str; 2] = ["tp_rank", "pp_rank"];

/// In the order in which they are tried: the first whose mark is there.
pub(super) const DIALECTS: [Names; 9] =
    [VLLM_V0, VLLM_V1, VLLM_V1_EARLY, SGLANG, LLAMA_CPP, TGI, TENSORRT_LLM, TRITON, DYNAMO];

/// A name under which several things are told apart by a label, and what such a thing is called in
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
    // One that has served nobody yet has only the totals.
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
