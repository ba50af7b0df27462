//! The single numbers of a run: throughput, concurrency, errors, goodput and speeds.

use super::{
    AIPERF, Better, GUIDELLM, Headline, INFERENCE_PERF, Metric, Source, Unit, VLLM, WITHIN_NONE,
};
use crate::record::Measured;

/// What most rates have in common.
const RATE: Metric = Metric {
    name: "",
    key: "",
    title: "",
    definition: "",
    unit: Unit::TokensPerSecond,
    better: Better::Higher,
    headline: Headline::Never,
    formula: "",
    null_when: "",
    interval: "the window is cut into slices, none shorter than a request; the interval \
        comes from how much their rates differ",
    elsewhere: &[],
    source: Source::Scalar(Measured::request_throughput),
};

const OF_RATIO: &str = "a ratio of two sums over requests, with blocks of consecutive requests as \
    for latencies";
const OF_SHARE: &str = "Wilson's interval on the effective number of requests, which stays inside \
    0 to 100 % and is honest about none and all";
const OF_EXTREME: &str = "none within a run: nothing bounds the largest of its values; between \
    repeated runs by Student's t";

const NOTHING_OK: &str = "no request ended ok, or the window has no length";
const NO_TOKENS: &str = "no request ended ok, or the API generates no tokens";
const NO_PROMISE: &str = "nothing was promised of each request (--slo 'ttft<500ms')";

/// Request throughput.
pub static REQUEST_THROUGHPUT: Metric = Metric {
    name: "request_throughput",
    title: "Request throughput",
    definition: "ok requests / window",
    unit: Unit::RequestsPerSecond,
    headline: Headline::Always,
    formula: "ok requests / window, from the first request sent to the last completed",
    null_when: NOTHING_OK,
    elsewhere: &[
        (VLLM, "over the whole wall time, with the wait before the first arrival in it"),
        (AIPERF, "the same window, by the wall clock"),
    ],
    source: Source::Estimate(Measured::request_throughput, |m| m.doubt.requests),
    ..RATE
};

/// Input throughput.
pub static INPUT_THROUGHPUT: Metric = Metric {
    name: "input_throughput",
    title: "Input throughput",
    definition: "input tokens of ok requests / window",
    formula: "input tokens of ok requests / window; tokens as the server counts them",
    null_when: NOTHING_OK,
    elsewhere: &[
        (AIPERF, "counts with its own tokenizer, without special tokens"),
        (INFERENCE_PERF, "by the server's count where it gives one, else its own tokenizer's"),
    ],
    source: Source::Estimate(Measured::input_throughput, |m| m.doubt.input),
    ..RATE
};

/// Output throughput.
pub static OUTPUT_THROUGHPUT: Metric = Metric {
    name: "output_throughput",
    title: "Output throughput",
    definition: "output tokens of ok requests / window",
    headline: Headline::Always,
    formula: "output tokens of ok requests / window",
    null_when: NO_TOKENS,
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
    source: Source::Estimate(Measured::output_throughput, |m| m.doubt.output),
    ..RATE
};

/// Total throughput.
pub static TOTAL_THROUGHPUT: Metric = Metric {
    name: "total_throughput",
    title: "Total throughput",
    definition: "input and output tokens of ok requests / window",
    headline: Headline::Always,
    formula: "(input + output tokens) of ok requests / window",
    null_when: NO_TOKENS,
    elsewhere: &[(VLLM, "the same sum, over the whole wall time")],
    source: Source::Estimate(Measured::total_throughput, |m| m.doubt.total),
    ..RATE
};

/// Per-user throughput.
pub static PER_USER_THROUGHPUT: Metric = Metric {
    name: "per_user_throughput",
    title: "Per-user throughput",
    definition: "output throughput / concurrency of the closed loop",
    headline: Headline::ClosedLoop,
    formula: "output throughput / concurrency of the closed loop: what one user gets on \
            average, waiting for first tokens included",
    null_when: "an open loop has no fixed number of users",
    elsewhere: &[(
        AIPERF,
        "1 / inter token latency of each request: without the wait for the first token, so it \
             is larger; TG here is nearest",
    )],
    source: Source::Estimate(Measured::per_user_throughput, Measured::per_user_interval),
    ..RATE
};

/// Peak output throughput.
pub static PEAK_OUTPUT_THROUGHPUT: Metric = Metric {
    name: "peak_output_throughput",
    title: "Peak output throughput",
    definition: "the most output tokens of ok requests in any sliding second",
    formula: "the most output tokens of ok requests in any sliding second",
    null_when: "the run was shorter than a second, or nothing ended ok",
    interval: OF_EXTREME,
    elsewhere: &[(
        VLLM,
        "the most chunks, not tokens, in a second of a fixed grid; it can lie below the mean",
    )],
    source: Source::Scalar(Measured::peak_output_throughput),
    ..RATE
};

/// Mean concurrency.
pub static CONCURRENCY_MEAN: Metric = Metric {
    name: "concurrency_mean",
    title: "Mean concurrency",
    definition: "requests in flight, averaged over the window",
    unit: Unit::Requests,
    better: Better::Neither,
    headline: Headline::OpenLoop,
    formula: "∫ requests in flight dt / window, exact (each counts from sent to its end)",
    null_when: "no request was sent, or the window has no length",
    interval: WITHIN_NONE,
    source: Source::Scalar(Measured::concurrency_mean),
    ..RATE
};

/// Peak concurrency.
pub static CONCURRENCY_PEAK: Metric = Metric {
    name: "concurrency_peak",
    title: "Peak concurrency",
    definition: "the most requests in flight at once",
    unit: Unit::Requests,
    better: Better::Neither,
    headline: Headline::OpenLoop,
    formula: "the most requests in flight at one moment",
    null_when: "no request was sent",
    interval: OF_EXTREME,
    elsewhere: &[(
        VLLM,
        "requests that touched a second of a fixed grid, so short ones add up: 8 in flight for \
             0.21 s each come to 48",
    )],
    source: Source::Scalar(Measured::concurrency_peak),
    ..RATE
};

/// Error rate.
pub static ERROR_RATE: Metric = Metric {
    name: "error_rate",
    title: "Error rate",
    definition: "share of attempted requests that did not end ok",
    unit: Unit::Share,
    better: Better::Lower,
    headline: Headline::Always,
    formula: "attempted requests that did not end ok / attempted requests",
    null_when: "no request was attempted",
    interval: OF_SHARE,
    elsewhere: &[
        (VLLM, "counts failures; an error inside of a stream that began well is a success"),
        (GUIDELLM, "tells errors and requests that the run's end cut off apart"),
    ],
    source: Source::Estimate(Measured::error_rate, |m| m.doubt.failed),
    ..RATE
};

/// Goodput.
pub static GOODPUT: Metric = Metric {
    name: "goodput",
    title: "Goodput",
    definition: "requests that kept every promise made of each / window",
    unit: Unit::RequestsPerSecond,
    headline: Headline::Always,
    formula: "requests that kept every promise made of each / window",
    null_when: NO_PROMISE,
    elsewhere: &[
        (VLLM, "the same over the whole wall time; promises on TTFT, TPOT and E2EL only"),
        (AIPERF, "good requests / duration"),
        (GUIDELLM, "the same; an answer of one token has no TPOT to judge"),
        (INFERENCE_PERF, "good requests / time, and tokens of good requests / time"),
    ],
    source: Source::Estimate(Measured::goodput, |m| m.doubt.good),
    ..RATE
};

/// Attainment.
pub static ATTAINMENT: Metric = Metric {
    name: "attainment",
    title: "Attainment",
    definition: "their share of all scheduled requests, turns that the run's end cut off left out",
    unit: Unit::Share,
    headline: Headline::Always,
    formula: "requests that kept every promise made of each / all scheduled requests; failed \
            and unsent ones broke it, turns that the run's end cut off do not count",
    null_when: NO_PROMISE,
    interval: OF_SHARE,
    elsewhere: &[
        (VLLM, "has none"),
        (AIPERF, "good request fraction: of all attempted, errors included"),
        (GUIDELLM, "SLO attainment: without what was cut off and what cannot be evaluated"),
        (INFERENCE_PERF, "goodput %: of the successful requests only, so failures improve it"),
    ],
    source: Source::Estimate(Measured::attainment, |m| m.doubt.kept),
    ..RATE
};

/// Fluidity index.
pub static FLUIDITY: Metric = Metric {
    name: "fluidity",
    title: "Fluidity index",
    definition: "share of all tokens due that met their deadline (promised ttft, then tpot each), time \
               saved carried over",
    unit: Unit::Share,
    formula: "tokens that met their deadline / all that came or should have; the first is due after \
            the promised TTFT, each later one the promised TPOT after the one before it, and time \
            saved is carried over until a deadline is missed",
    null_when: "ttft and tpot were not both promised of each request",
    interval: OF_SHARE,
    elsewhere: &[(
        "Etalon",
        "where the idea comes from; it takes the first token's deadline from the prompt's length",
    )],
    source: Source::Estimate(Measured::fluidity, |m| m.fluidity.interval),
    ..RATE
};

/// Prefill speed (PP).
pub static PP: Metric = Metric {
    name: "pp",
    title: "Prefill speed (PP)",
    definition: "prefill speed: mean input tokens / mean TTFT",
    formula: "mean input tokens / mean TTFT: a speed that has the queue in it, so it is the \
            prefill's own only where nothing waits",
    null_when: "there is no TTFT to divide by",
    interval: OF_RATIO,
    elsewhere: &[(AIPERF, "prefill throughput per user: input tokens / TTFT of each request")],
    source: Source::Estimate(Measured::prefill_speed, |m| m.doubt.prefill),
    ..RATE
};

/// Decode speed (TG).
pub static TG: Metric = Metric {
    name: "tg",
    title: "Decode speed (TG)",
    definition: "decode speed of one stream: 1 / mean TPOT",
    formula: "1 / mean TPOT: how fast one stream flows once it has begun",
    null_when: "there is no TPOT to invert",
    interval: OF_RATIO,
    elsewhere: &[(AIPERF, "output token throughput per user, the mean of 1 / ITL")],
    source: Source::Estimate(Measured::decode_speed, |m| m.doubt.decode),
    ..RATE
};
