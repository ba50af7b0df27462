//! The single numbers of a run: throughput, concurrency, errors, goodput, speeds, and what the server
//! and its GPUs report.

use inferometer_model::spec::LoadShape;

use super::{
    Better, Headline, LATENCY, Metric, Missing, NOTHING_OK, NOTHING_SENT, Source, TPOT, TTFT, Unit,
};
use crate::record::{Measured, NO_TIME, NOT_STREAMED};
use crate::statistics::Interval;

/// What most rates have in common.
const RATE: Metric = Metric {
    unit: Unit::TokensPerSecond,
    better: Better::Higher,
    interval: "the window is cut into slices, none shorter than a request; the interval \
        comes from how much their rates differ",
    source: Source::Scalar(Measured::output_throughput),
    ..LATENCY
};

/// What the server and its GPUs report.
const TELEMETRY: Metric = Metric { interval: WITHIN_NONE, ..RATE };

const WITHIN_NONE: &str = "none within a run; between repeated runs by Student's t";
const OF_RATIO: &str = "a ratio of two sums over requests, with blocks of consecutive requests as \
    for latencies";
const OF_SHARE: &str = "Wilson's interval on the effective number of requests, which stays inside \
    0 to 100 % and is honest about none and all";
const OF_EXTREME: &str = "none within a run: nothing bounds the largest of its values; between \
    repeated runs by Student's t";

const NO_ANSWER: &str = "no request ended ok, or the window has no length";
const NO_OUTPUT: &str = "no request ended ok, or the API generates no tokens";
const NO_PROMISE: &str = "nothing was promised of each request (--slo 'ttft<500ms')";

/// Request throughput.
pub static REQUEST_THROUGHPUT: Metric = Metric {
    name: "request_throughput",
    title: "Request throughput",
    definition: "ok requests / window",
    unit: Unit::RequestsPerSecond,
    headline: Headline::Always,
    formula: "ok requests / window, from the first request sent to the last completed",
    null_when: NO_ANSWER,
    source: Source::Estimate(|m| m.per_second(m.ok as f64), |m| m.intervals.requests),
    ..RATE
};

/// Input throughput.
pub static INPUT_THROUGHPUT: Metric = Metric {
    name: "input_throughput",
    title: "Input throughput",
    definition: "input tokens of ok requests / window",
    formula: "input tokens of ok requests / window; tokens as the server counts them",
    null_when: NO_ANSWER,
    source: Source::Estimate(|m| m.per_second(m.tokens.input_total as f64), |m| m.intervals.input),
    ..RATE
};

/// Output throughput.
pub static OUTPUT_THROUGHPUT: Metric = Metric {
    name: "output_throughput",
    title: "Output throughput",
    definition: "output tokens of ok requests / window",
    headline: Headline::Always,
    formula: "output tokens of ok requests / window",
    null_when: NO_OUTPUT,
    source: Source::Estimate(Measured::output_throughput, |m| m.intervals.output),
    ..RATE
};

/// Total throughput.
pub static TOTAL_THROUGHPUT: Metric = Metric {
    name: "total_throughput",
    title: "Total throughput",
    definition: "input and output tokens of ok requests / window",
    headline: Headline::Always,
    formula: "(input + output tokens) of ok requests / window",
    null_when: NO_OUTPUT,
    source: Source::Estimate(
        |m| {
            m.generated()?;
            m.per_second(m.tokens.input_total as f64 + m.tokens.output_total as f64)
        },
        |m| m.intervals.total,
    ),
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
    source: Source::Estimate(
        |m| {
            m.generated()?;
            let open = Missing("an open loop has no fixed number of users to share among");
            let users = users(m).ok_or(open)?;
            Ok(m.output_throughput()? / users)
        },
        |m| {
            let (Interval { low, high }, users) = (m.intervals.output?, users(m)?);
            Interval::new(low / users, high / users)
        },
    ),
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
    source: Source::Scalar(|m| {
        m.generated()?;
        if m.ok == 0 {
            return Err(NOTHING_OK);
        }
        let tokens = m.busiest_second.ok_or(Missing("no ok answer carried output"))?;
        if m.extremes.window().duration_s.is_none_or(|seconds| seconds < 1.0) {
            return Err(Missing("the run was shorter than the second that a peak is taken over"));
        }
        Ok(tokens as f64)
    }),
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
    source: Source::Scalar(|m| {
        let concurrency = m.concurrency.ok_or(NOTHING_SENT)?;
        let duration_ns = m.extremes.duration_ns().filter(|ns| 0 < *ns).ok_or(NO_TIME)?;
        Ok(concurrency.request_ns as f64 / duration_ns as f64)
    }),
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
    source: Source::Scalar(|m| Ok(m.concurrency.ok_or(NOTHING_SENT)?.peak as f64)),
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
    source: Source::Estimate(
        |m| match m.attempted {
            0 => Err(Missing("no request was attempted")),
            attempted => Ok((attempted - m.ok) as f64 / attempted as f64),
        },
        |m| m.intervals.failed,
    ),
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
    source: Source::Estimate(|m| m.per_second(m.kept_slos()?.met as f64), |m| m.intervals.good),
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
    source: Source::Estimate(
        |m| match m.kept_slos()? {
            slos if slos.scheduled == 0 => Err(Missing("no request was scheduled")),
            slos => Ok(slos.met as f64 / slos.scheduled as f64),
        },
        |m| m.intervals.kept,
    ),
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
    source: Source::Estimate(
        |m| {
            m.generated()?;
            if m.streaming { m.fluidity.share } else { Err(NOT_STREAMED) }
        },
        |m| m.fluidity.interval,
    ),
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
    source: Source::Estimate(
        |m| {
            let no_ttft = Missing("there is no TTFT to divide by");
            let ttft = m.series(&TTFT).found.as_ref().map_err(|_| no_ttft)?;
            let input_mean = m.prefilled as f64 / ttft.n as f64;
            ttft.mean.and_then(|mean| per_ms(input_mean, mean)).ok_or(no_ttft)
        },
        |m| m.intervals.prefill,
    ),
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
    source: Source::Estimate(
        |m| {
            m.generated()?;
            let mean = m.series(&TPOT).found.as_ref().ok().and_then(|tpot| tpot.mean);
            mean.and_then(|mean| per_ms(1.0, mean)).ok_or(Missing("there is no TPOT to invert"))
        },
        |m| m.intervals.decode,
    ),
    ..RATE
};

const NO_COUNTER: &str = "the server has no such counter, it was not read on both sides of the \
    load, or several servers answered by turns";
const NO_ENERGY: &str = "nothing is known of the server's GPUs, none of those that were read did \
    anything, or they tell no energy and their power for less than nine tenths of the window";

/// Prompt TPS (server).
pub static SERVER_PROMPT_THROUGHPUT: Metric = Metric {
    name: "server_prompt_throughput",
    title: "Prompt TPS (server)",
    definition: "prompt tokens by the server's counter / time between its first and last scrape",
    formula: "what the server's counter of prompt tokens grew by, from the last scrape before the \
            load to the first after it / the time between these two; prompts from a cache count too",
    null_when: NO_COUNTER,
    source: Source::Telemetry(|m| m.server_rate(|server| server.prompt_tokens)),
    ..TELEMETRY
};

/// Generation TPS (server).
pub static SERVER_GENERATION_THROUGHPUT: Metric = Metric {
    name: "server_generation_throughput",
    title: "Generation TPS (server)",
    definition: "generated tokens by the server's counter / the same time",
    formula: "what the server's counter of generated tokens grew by / the same time; what it wrote \
            for requests that failed, or for other clients, is in it",
    null_when: NO_COUNTER,
    source: Source::Telemetry(|m| m.server_rate(|server| server.generation_tokens)),
    ..TELEMETRY
};

/// GPU power.
pub static GPU_POWER: Metric = Metric {
    name: "gpu_power",
    title: "GPU power",
    definition: "energy of the server's GPUs / window, all that were in use together",
    unit: Unit::Watts,
    better: Better::Neither,
    formula: "energy of all GPUs that were in use, over the window / window; energy by each \
            device's own counter, else as the area under its power with straight lines between looks",
    null_when: NO_ENERGY,
    source: Source::Telemetry(|m| {
        Ok(m.machines.energy_j? / m.extremes.duration_s().ok_or(NO_TIME)?)
    }),
    ..TELEMETRY
};

/// Energy per output token.
pub static ENERGY_PER_OUTPUT_TOKEN: Metric = Metric {
    name: "energy_per_output_token",
    title: "Energy per output token",
    definition: "energy of the server's GPUs over the window / output tokens of ok requests",
    unit: Unit::JoulesPerToken,
    better: Better::Lower,
    formula: "energy of all GPUs that were in use, over the window / output tokens of ok requests; \
            the energy of failed requests and of prompts is in it, that of the rest of the machine is \
            not",
    null_when: NO_ENERGY,
    source: Source::Telemetry(|m| Ok(m.machines.energy_j? / m.output_tokens()?)),
    ..TELEMETRY
};

/// Output tokens per joule.
pub static OUTPUT_TOKENS_PER_JOULE: Metric = Metric {
    name: "output_tokens_per_joule",
    title: "Output tokens per joule",
    definition: "the inverse: output tokens of ok requests / energy of the server's GPUs",
    unit: Unit::TokensPerJoule,
    formula: "output tokens of ok requests / energy of all GPUs that were in use, over the window",
    null_when: NO_ENERGY,
    source: Source::Telemetry(|m| Ok(m.output_tokens()? / m.machines.energy_j?)),
    ..TELEMETRY
};

/// The users of a closed loop.
fn users(measured: &Measured) -> Option<f64> {
    match &measured.shape {
        LoadShape::Closed { concurrency, .. } => Some(f64::from(concurrency.get())),
        LoadShape::Open { .. } => None,
    }
}

/// A speed per second, or `None` without time to divide by.
fn per_ms(count: f64, ms: f64) -> Option<f64> {
    (0.0 < ms).then(|| count / (ms / 1e3))
}
