//! Names that other tools print or store, and what they mean there.

use crate::metric::{self, AIPERF, GENAI_PERF, GUIDELLM, INFERENCE_PERF, Metric, VLLM};

/// One name of one tool.
#[derive(Clone, Copy, Debug)]
pub struct Foreign {
    /// Without a statistic and a unit, as it is looked up.
    core: &'static str,
    pub tool: &'static str,
    /// As the tool writes it.
    pub written: &'static str,
    /// The metric here that is nearest; `None` where there is none.
    pub metric: Option<&'static Metric>,
    pub meaning: &'static str,
}

impl Foreign {
    /// All tools that have this name, which is plain.
    pub(super) fn named(name: &str) -> Vec<&'static Self> {
        let is_named = |it: &&Self| it.core == name || super::plain(it.written) == name;
        FOREIGN.iter().filter(is_named).collect()
    }

    /// All names of the tool with this plain name, or with one that begins so: `vllm`.
    pub(super) fn of_tool(name: &str) -> Vec<&'static Self> {
        let is_of = |it: &&Self| {
            let tool = super::plain(it.tool);
            tool.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        FOREIGN.iter().filter(is_of).collect()
    }

    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        FOREIGN.iter().map(|it| it.written)
    }
}

const fn foreign(
    core: &'static str,
    tool: &'static str,
    written: &'static str,
    metric: &'static Metric,
    meaning: &'static str,
) -> Foreign {
    Foreign { core, tool, written, metric: Some(metric), meaning }
}

static FOREIGN: &[Foreign] = &[
    foreign(
        "ttft",
        VLLM,
        "mean_ttft_ms",
        &metric::TTFT,
        "to the first chunk with choices, from the moment that the concurrency limit let it go",
    ),
    foreign(
        "tpot",
        VLLM,
        "mean_tpot_ms",
        &metric::TPOT,
        "(E2EL − TTFT) / (output tokens − 1) of each request with more than one token",
    ),
    foreign(
        "itl",
        VLLM,
        "mean_itl_ms",
        &metric::ICL,
        "gaps between chunks of all requests in one pool, however many tokens a chunk carries",
    ),
    foreign(
        "e2el",
        VLLM,
        "mean_e2el_ms",
        &metric::E2E,
        "to the last chunk, on chat to the last message of any kind",
    ),
    foreign(
        "request_goodput",
        VLLM,
        "request_goodput",
        &metric::GOODPUT,
        "requests within all --goodput limits over the whole wall time",
    ),
    foreign(
        "output_token_throughput",
        VLLM,
        "Output token throughput (tok/s)",
        &metric::OUTPUT_THROUGHPUT,
        "output tokens of successful requests over the whole wall time",
    ),
    foreign(
        "total_token_throughput",
        VLLM,
        "total_token_throughput",
        &metric::TOTAL_THROUGHPUT,
        "input and output tokens of successful requests over the whole wall time",
    ),
    foreign(
        "peak_output_token_throughput",
        VLLM,
        "Peak output token throughput (tok/s)",
        &metric::PEAK_OUTPUT_THROUGHPUT,
        "the most chunks, not tokens, in a second of a fixed grid",
    ),
    foreign(
        "max_output_tokens_per_s",
        VLLM,
        "max_output_tokens_per_s",
        &metric::PEAK_OUTPUT_THROUGHPUT,
        "the most chunks, not tokens, in a second of a fixed grid",
    ),
    foreign(
        "peak_concurrent_requests",
        VLLM,
        "Peak concurrent requests",
        &metric::CONCURRENCY_PEAK,
        "requests that touched one second of a fixed grid, so short ones add up",
    ),
    foreign(
        "max_concurrent_requests",
        VLLM,
        "max_concurrent_requests",
        &metric::CONCURRENCY_PEAK,
        "requests that touched one second of a fixed grid, so short ones add up",
    ),
    foreign(
        "client_queue_time",
        VLLM,
        "mean_client_queue_time_ms",
        &metric::CLIENT_QUEUE,
        "the wait for the concurrency limit, in newer versions",
    ),
    foreign(
        "time_to_first_token",
        AIPERF,
        "time_to_first_token",
        &metric::TTFT,
        "to the first response with content, from the start of the request",
    ),
    foreign(
        "time_to_first_token",
        GUIDELLM,
        "time_to_first_token_ms",
        &metric::TTFT,
        "to the first token, from the start of the request",
    ),
    foreign(
        "time_to_first_token",
        INFERENCE_PERF,
        "time_to_first_token",
        &metric::TTFT,
        "to the first output that is not empty, from sending",
    ),
    foreign(
        "time_to_first_output_token",
        AIPERF,
        "time_to_first_output_token",
        &metric::TTFC,
        "to the first token that is no reasoning",
    ),
    foreign(
        "time_to_first_output_token",
        GUIDELLM,
        "time_to_first_output_token_ms",
        &metric::TTFC,
        "to the first content token, behind reasoning and tool tokens",
    ),
    foreign(
        "inter_token_latency",
        AIPERF,
        "inter_token_latency",
        &metric::TPOT,
        "(request latency − TTFT) / (output tokens − 1): one mean per request, not gaps",
    ),
    foreign(
        "inter_token_latency",
        GENAI_PERF,
        "inter_token_latency",
        &metric::TPOT,
        "a mean per request that leaves the TTFT out; AIPerf is its successor",
    ),
    foreign(
        "inter_token_latency",
        GUIDELLM,
        "inter_token_latency_ms",
        &metric::TPOT,
        "the mean time between tokens of a request, without the first",
    ),
    foreign(
        "inter_token_latency",
        INFERENCE_PERF,
        "inter_token_latency",
        &metric::ITL,
        "the time between tokens within a request",
    ),
    foreign(
        "inter_chunk_latency",
        AIPERF,
        "inter_chunk_latency",
        &metric::ICL,
        "gaps between consecutive responses with content",
    ),
    foreign(
        "time_per_output_token",
        GUIDELLM,
        "time_per_output_token_ms",
        &metric::TPOT,
        "the mean time per token with the first token counted, so it differs from TPOT elsewhere",
    ),
    foreign(
        "time_per_output_token",
        INFERENCE_PERF,
        "time_per_output_token",
        &metric::TPOT,
        "(latency − TTFT) / (output tokens − 1)",
    ),
    Foreign {
        core: "normalized_time_per_output_token",
        tool: INFERENCE_PERF,
        written: "normalized_time_per_output_token",
        metric: None,
        meaning: "latency / output tokens: the wait for the first token is spread over all of \
            them, so it depends on how long answers are; e2e and tpot tell the two apart here",
    },
    foreign(
        "request_latency",
        AIPERF,
        "request_latency",
        &metric::E2E,
        "from the start of the request to its last response with content",
    ),
    foreign(
        "request_latency",
        GUIDELLM,
        "request_latency",
        &metric::E2E,
        "from the start of a request to its end, in seconds",
    ),
    foreign(
        "request_latency",
        INFERENCE_PERF,
        "request_latency",
        &metric::E2E,
        "from sending to completion, in seconds",
    ),
    foreign(
        "effective_latency",
        AIPERF,
        "effective_latency",
        &metric::E2E_SCHEDULE,
        "from the issue of a request's credit to its end, waiting in the client included",
    ),
    foreign(
        "request_scheduled_latency",
        GUIDELLM,
        "request_scheduled_latency",
        &metric::E2E_SCHEDULE,
        "from the targeted start to the end",
    ),
    foreign(
        "request_dispatch_delay",
        GUIDELLM,
        "request_dispatch_delay",
        &metric::CLIENT_QUEUE,
        "start − targeted start: the wait for a slot and the client's own delay together; here \
         client_queue and send_lag",
    ),
    foreign(
        "output_token_throughput",
        AIPERF,
        "output_token_throughput",
        &metric::OUTPUT_THROUGHPUT,
        "output and reasoning tokens / duration",
    ),
    foreign(
        "output_token_throughput_per_user",
        AIPERF,
        "output_token_throughput_per_user",
        &metric::TG,
        "1 / inter token latency of each request: without the wait for the first token, and so no \
         share of the throughput, which per_user_throughput is here",
    ),
    foreign(
        "prefill_throughput_per_user",
        AIPERF,
        "prefill_throughput_per_user",
        &metric::PP,
        "input tokens / TTFT of each request; here a ratio of means",
    ),
    foreign(
        "output_tokens_per_second",
        GUIDELLM,
        "output_tokens_per_second",
        &metric::OUTPUT_THROUGHPUT,
        "tokens inside of its measurement window over all requests",
    ),
    foreign(
        "requests_per_second",
        GUIDELLM,
        "requests_per_second",
        &metric::REQUEST_THROUGHPUT,
        "requests inside of its measurement window per second",
    ),
    foreign(
        "request_concurrency",
        GUIDELLM,
        "request_concurrency",
        &metric::CONCURRENCY_MEAN,
        "requests that are being worked on at once",
    ),
    foreign(
        "good_request_fraction",
        AIPERF,
        "good_request_fraction",
        &metric::ATTAINMENT,
        "good requests of all attempted ones; here of all scheduled ones",
    ),
    foreign(
        "slo_attainment",
        GUIDELLM,
        "slo_attainment",
        &metric::ATTAINMENT,
        "leaves out requests that the end cut off and those that cannot be evaluated",
    ),
    foreign(
        "goodput_%",
        INFERENCE_PERF,
        "Goodput %",
        &metric::ATTAINMENT,
        "good requests of the successful ones, so that failures do not lower it",
    ),
];
