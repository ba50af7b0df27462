//! The words of what is one number of a run.

use super::{
    AIPERF, Explained, GUIDELLM, INFERENCE_PERF, OF_EXTREME, OF_RATE, OF_RATIO, OF_SHARE, VLLM,
    WITHIN_NONE,
};

const NOTHING_OK: &str = "no request ended ok, or the window has no length";
const NO_TOKENS: &str = "no request ended ok, or the API generates no tokens";
const NO_PROMISE: &str = "nothing was promised of each request (--slo 'ttft<500ms')";

pub(super) static EXPLAINED: &[Explained] = &[
    Explained {
        metric: "request_throughput",
        formula: "ok requests / window, from the first request sent to the last completed",
        null_when: NOTHING_OK,
        doubt: OF_RATE,
        elsewhere: &[
            (VLLM, "over the whole wall time, with the wait before the first arrival in it"),
            (AIPERF, "the same window, by the wall clock"),
        ],
    },
    Explained {
        metric: "input_throughput",
        formula: "input tokens of ok requests / window; tokens as the server counts them",
        null_when: NOTHING_OK,
        doubt: OF_RATE,
        elsewhere: &[
            (AIPERF, "counts with its own tokenizer, without special tokens"),
            (INFERENCE_PERF, "by the server's count where it gives one, else its own tokenizer's"),
        ],
    },
    Explained {
        metric: "output_throughput",
        formula: "output tokens of ok requests / window",
        null_when: NO_TOKENS,
        doubt: OF_RATE,
        elsewhere: &[
            (
                VLLM,
                "over the whole wall time; usage that rides on the last choice is not read, and \
                the text is tokenized again",
            ),
            (AIPERF, "output and reasoning tokens, by its own tokenizer unless told otherwise"),
            (
                GUIDELLM,
                "tokens inside of its measurement window, interpolated between the first \
                and the last of a stream",
            ),
            (INFERENCE_PERF, "by its own tokenizer unless told to use the server's count"),
        ],
    },
    Explained {
        metric: "total_throughput",
        formula: "(input + output tokens) of ok requests / window",
        null_when: NO_TOKENS,
        doubt: OF_RATE,
        elsewhere: &[(VLLM, "the same sum, over the whole wall time")],
    },
    Explained {
        metric: "per_user_throughput",
        formula: "output throughput / concurrency of the closed loop: what one user gets on \
            average, waiting for first tokens included",
        null_when: "an open loop has no fixed number of users",
        doubt: OF_RATE,
        elsewhere: &[(
            AIPERF,
            "1 / inter token latency of each request: without the wait for the first token, so it \
             is larger; TG here is nearest",
        )],
    },
    Explained {
        metric: "peak_output_throughput",
        formula: "the most output tokens of ok requests in any sliding second",
        null_when: "the run was shorter than a second, or nothing ended ok",
        doubt: OF_EXTREME,
        elsewhere: &[(
            VLLM,
            "the most chunks, not tokens, in a second of a fixed grid; it can lie below the mean",
        )],
    },
    Explained {
        metric: "concurrency_mean",
        formula: "∫ requests in flight dt / window, exact (each counts from sent to its end)",
        null_when: "no request was sent, or the window has no length",
        doubt: WITHIN_NONE,
        elsewhere: &[],
    },
    Explained {
        metric: "concurrency_peak",
        formula: "the most requests in flight at one moment",
        null_when: "no request was sent",
        doubt: OF_EXTREME,
        elsewhere: &[(
            VLLM,
            "requests that touched a second of a fixed grid, so short ones add up: 8 in flight for \
             0.21 s each come to 48",
        )],
    },
    Explained {
        metric: "error_rate",
        formula: "attempted requests that did not end ok / attempted requests",
        null_when: "no request was attempted",
        doubt: OF_SHARE,
        elsewhere: &[
            (VLLM, "counts failures; an error inside of a stream that began well is a success"),
            (GUIDELLM, "tells errors and requests that the run's end cut off apart"),
        ],
    },
    Explained {
        metric: "goodput",
        formula: "requests that kept every promise made of each / window",
        null_when: NO_PROMISE,
        doubt: OF_RATE,
        elsewhere: &[
            (VLLM, "the same over the whole wall time; promises on TTFT, TPOT and E2EL only"),
            (AIPERF, "good requests / duration"),
            (GUIDELLM, "the same; an answer of one token has no TPOT to judge"),
            (INFERENCE_PERF, "good requests / time, and tokens of good requests / time"),
        ],
    },
    Explained {
        metric: "attainment",
        formula: "requests that kept every promise made of each / all scheduled requests; failed \
            and unsent ones broke it, turns that the run's end cut off do not count",
        null_when: NO_PROMISE,
        doubt: OF_SHARE,
        elsewhere: &[
            (VLLM, "has none"),
            (AIPERF, "good request fraction: of all attempted, errors included"),
            (GUIDELLM, "SLO attainment: without what was cut off and what cannot be evaluated"),
            (INFERENCE_PERF, "goodput %: of the successful requests only, so failures improve it"),
        ],
    },
    Explained {
        metric: "pp",
        formula: "mean input tokens / mean TTFT: a speed that has the queue in it, so it is the \
            prefill's own only where nothing waits",
        null_when: "there is no TTFT to divide by",
        doubt: OF_RATIO,
        elsewhere: &[(AIPERF, "prefill throughput per user: input tokens / TTFT of each request")],
    },
    Explained {
        metric: "tg",
        formula: "1 / mean TPOT: how fast one stream flows once it has begun",
        null_when: "there is no TPOT to invert",
        doubt: OF_RATIO,
        elsewhere: &[(AIPERF, "output token throughput per user, the mean of 1 / ITL")],
    },
    Explained {
        metric: "fluidity",
        formula: "tokens that met their deadline / all that came or should have; the first is due after \
            the promised TTFT, each later one the promised TPOT after the one before it, and time \
            saved is carried over until a deadline is missed",
        null_when: "ttft and tpot were not both promised of each request",
        doubt: OF_SHARE,
        elsewhere: &[(
            "Etalon",
            "where the idea comes from; it takes the first token's deadline from the prompt's length",
        )],
    },
];
