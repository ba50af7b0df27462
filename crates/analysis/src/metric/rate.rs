//! The single numbers of a run: throughput, concurrency, errors, goodput, speeds, and what the server
//! and its GPUs report.

use inferometer_model::spec::LoadShape;

use super::{
    Better, Headline, LATENCY, Metric, Missing, NOTHING_OK, NOTHING_SENT, Source, TPOT, TTFT, Unit,
};
use crate::answers::AnswerFigures;
use crate::record::{Measured, NO_TIME, NOT_STREAMED};
use crate::reports::{ReportFigures, SpeculationFigures};
use crate::statistics::Interval;

/// What most rates have in common.
const RATE: Metric = Metric {
    unit: Unit::TokensPerSecond,
    better: Better::Higher,
    source: plain(Measured::output_throughput),
    ..LATENCY
};

const fn rate_named(name: &'static str, title: &'static str) -> Metric {
    Metric { name, title, ..RATE }
}

/// What the server and its GPUs report.
const fn telemetry_named(name: &'static str, title: &'static str) -> Metric {
    Metric { name, title, is_telemetry: true, ..RATE }
}

/// A number without an interval within the run.
const fn plain(value: fn(&Measured) -> Result<f64, Missing>) -> Source {
    Source::Scalar(value, |_| None)
}

/// Request throughput.
pub static REQUEST_THROUGHPUT: Metric = Metric {
    unit: Unit::RequestsPerSecond,
    headline: Headline::Always,
    source: Source::Scalar(|m| m.per_second(m.ok as f64), |m| m.intervals.requests),
    ..rate_named("request_throughput", "Request throughput")
};

/// Input throughput.
pub static INPUT_THROUGHPUT: Metric = Metric {
    source: Source::Scalar(|m| m.per_second(m.tokens.input_total as f64), |m| m.intervals.input),
    ..rate_named("input_throughput", "Input throughput")
};

/// Output throughput.
pub static OUTPUT_THROUGHPUT: Metric = Metric {
    headline: Headline::Always,
    source: Source::Scalar(Measured::output_throughput, |m| m.intervals.output),
    ..rate_named("output_throughput", "Output throughput")
};

/// Total throughput.
pub static TOTAL_THROUGHPUT: Metric = Metric {
    headline: Headline::Always,
    source: Source::Scalar(
        |m| {
            m.generated()?;
            m.per_second(m.tokens.input_total as f64 + m.tokens.output_total as f64)
        },
        |m| m.intervals.total,
    ),
    ..rate_named("total_throughput", "Total throughput")
};

/// Per-user throughput.
pub static PER_USER_THROUGHPUT: Metric = Metric {
    headline: Headline::ClosedLoop,
    source: Source::Scalar(
        |m| {
            m.generated()?;
            let open = "an open loop has no fixed number of users to share among";
            let users = users(m).ok_or(open)?;
            Ok(m.output_throughput()? / users)
        },
        |m| {
            let (Interval { low, high }, users) = (m.intervals.output?, users(m)?);
            Interval::new(low / users, high / users)
        },
    ),
    ..rate_named("per_user_throughput", "Per-user throughput")
};

/// Peak output throughput.
pub static PEAK_OUTPUT_THROUGHPUT: Metric = Metric {
    source: plain(|m| {
        m.generated()?;
        if m.ok == 0 {
            return Err(NOTHING_OK);
        }
        let tokens = m.busiest_second.ok_or("no ok answer carried output")?;
        if m.extremes.window().duration_s.is_none_or(|seconds| seconds < 1.0) {
            return Err("the run was shorter than the second that a peak is taken over");
        }
        Ok(tokens as f64)
    }),
    ..rate_named("peak_output_throughput", "Peak output throughput")
};

/// Mean concurrency.
pub static CONCURRENCY_MEAN: Metric = Metric {
    unit: Unit::Requests,
    better: Better::Neither,
    headline: Headline::OpenLoop,
    source: plain(|m| {
        let concurrency = m.concurrency.ok_or(NOTHING_SENT)?;
        let duration_ns = m.extremes.duration_ns().filter(|ns| 0 < *ns).ok_or(NO_TIME)?;
        Ok(concurrency.request_ns as f64 / duration_ns as f64)
    }),
    ..rate_named("concurrency_mean", "Mean concurrency")
};

/// Peak concurrency.
pub static CONCURRENCY_PEAK: Metric = Metric {
    unit: Unit::Requests,
    better: Better::Neither,
    headline: Headline::OpenLoop,
    source: plain(|m| Ok(m.concurrency.ok_or(NOTHING_SENT)?.peak as f64)),
    ..rate_named("concurrency_peak", "Peak concurrency")
};

/// Error rate.
pub static ERROR_RATE: Metric = Metric {
    unit: Unit::Share,
    better: Better::Lower,
    headline: Headline::Always,
    source: Source::Scalar(
        |m| match m.attempted - m.abandoned() {
            0 => Err("no request was attempted"),
            attempted => Ok((attempted - m.ok) as f64 / attempted as f64),
        },
        |m| m.intervals.failed,
    ),
    ..rate_named("error_rate", "Error rate")
};

/// Goodput.
pub static GOODPUT: Metric = Metric {
    unit: Unit::RequestsPerSecond,
    headline: Headline::Always,
    source: Source::Scalar(|m| m.per_second(m.kept_slos()?.met as f64), |m| m.intervals.good),
    ..rate_named("goodput", "Goodput")
};

/// Attainment.
pub static ATTAINMENT: Metric = Metric {
    unit: Unit::Share,
    headline: Headline::Always,
    source: Source::Scalar(
        |m| match m.kept_slos()? {
            slos if slos.scheduled == 0 => Err("no request was scheduled"),
            slos => Ok(slos.met as f64 / slos.scheduled as f64),
        },
        |m| m.intervals.kept,
    ),
    ..rate_named("attainment", "Attainment")
};

/// Fluidity index.
pub static FLUIDITY: Metric = Metric {
    unit: Unit::Share,
    source: Source::Scalar(
        |m| {
            m.generated()?;
            if m.streaming { m.fluidity.0 } else { Err(NOT_STREAMED) }
        },
        |m| m.fluidity.1,
    ),
    ..rate_named("fluidity", "Fluidity index")
};

/// Prefill speed (PP).
pub static PP: Metric = Metric {
    source: Source::Scalar(
        |m| {
            let no_ttft = "there is no TTFT to divide by";
            let ttft = m.series(&TTFT).found.as_ref().map_err(|_| no_ttft)?;
            let input_mean = m.prefilled as f64 / ttft.n as f64;
            ttft.mean.and_then(|mean| per_ms(input_mean, mean)).ok_or(no_ttft)
        },
        |m| m.intervals.prefill,
    ),
    ..rate_named("pp", "Prefill speed (PP)")
};

/// Decode speed (TG).
pub static TG: Metric = Metric {
    source: Source::Scalar(
        |m| {
            m.generated()?;
            let mean = m.series(&TPOT).found.as_ref().ok().and_then(|tpot| tpot.mean);
            mean.and_then(|mean| per_ms(1.0, mean)).ok_or("there is no TPOT to invert")
        },
        |m| m.intervals.decode,
    ),
    ..rate_named("tg", "Decode speed (TG)")
};

/// Prompt TPS (server).
pub static SERVER_PROMPT_THROUGHPUT: Metric = Metric {
    source: plain(|m| m.server_rate(|server| server.prompt_tokens)),
    ..telemetry_named("server_prompt_throughput", "Prompt TPS (server)")
};

/// Generation TPS (server).
pub static SERVER_GENERATION_THROUGHPUT: Metric = Metric {
    source: plain(|m| m.server_rate(|server| server.generation_tokens)),
    ..telemetry_named("server_generation_throughput", "Generation TPS (server)")
};

/// Reasoning tokens.
pub static REASONING_TOKENS: Metric = Metric {
    unit: Unit::TokensPerRequest,
    better: Better::Neither,
    source: plain(|m| {
        let (reports, requests) = reasoning(m)?;
        Ok(reports.reasoning_tokens as f64 / requests)
    }),
    ..telemetry_named("reasoning_tokens", "Reasoning tokens")
};

/// Reasoning share.
pub static REASONING_SHARE: Metric = Metric {
    unit: Unit::Share,
    better: Better::Neither,
    source: plain(|m| {
        let (reports, _) = reasoning(m)?;
        match reports.reasoning_output_tokens {
            0 => Err("no ok answer carried output"),
            all => Ok(reports.reasoning_tokens as f64 / all as f64),
        }
    }),
    ..telemetry_named("reasoning_share", "Reasoning share")
};

/// Acceptance length.
pub static ACCEPTANCE_LENGTH: Metric = Metric {
    unit: Unit::TokensPerStep,
    source: plain(|m| speculation(m, SpeculationFigures::acceptance_length)),
    ..telemetry_named("acceptance_length", "Acceptance length")
};

/// Acceptance rate.
pub static ACCEPTANCE_RATE: Metric = Metric {
    unit: Unit::Share,
    source: plain(|m| speculation(m, SpeculationFigures::acceptance_rate)),
    ..telemetry_named("acceptance_rate", "Acceptance rate")
};

/// Valid answers.
pub static VALID_ANSWERS: Metric = Metric {
    unit: Unit::Share,
    source: Source::Scalar(
        |m| judged(m, AnswerFigures::valid_share, "no answer was asked for in a form"),
        |m| m.answers.as_ref()?.valid_interval,
    ),
    ..telemetry_named("valid_answers", "Valid answers")
};

/// Accuracy.
pub static ACCURACY: Metric = Metric {
    unit: Unit::Share,
    source: Source::Scalar(
        |m| {
            judged(
                m,
                AnswerFigures::accuracy,
                "no answer was compared with an expected one (--expect)",
            )
        },
        |m| m.answers.as_ref()?.correct_interval,
    ),
    ..telemetry_named("accuracy", "Accuracy")
};

fn judged(
    measured: &Measured,
    share: fn(&AnswerFigures) -> Option<f64>,
    reason: &'static str,
) -> Result<f64, Missing> {
    measured.answers.as_ref().and_then(share).ok_or(reason)
}

/// The reports, and how many of them have reasoning tokens.
fn reasoning(measured: &Measured) -> Result<(&ReportFigures, f64), Missing> {
    let reports = measured.reports.as_ref().filter(|reports| 0 < reports.reasoning_requests);
    let reports = reports.ok_or("the server does not report reasoning tokens")?;
    Ok((reports, reports.reasoning_requests as f64))
}

/// By the reports of this run's requests; where they have none, by the server's counters, which count
/// requests of others too.
fn speculation(
    measured: &Measured,
    value: fn(&SpeculationFigures) -> Option<f64>,
) -> Result<f64, Missing> {
    let reported = measured.reports.as_ref().and_then(|reports| reports.speculation.as_ref());
    let counted = || measured.server.as_ref().ok()?.speculation.as_ref().and_then(value);
    let found = reported.and_then(value).or_else(counted);
    found.ok_or("the server reports no speculative decoding")
}

/// GPU power.
pub static GPU_POWER: Metric = Metric {
    unit: Unit::Watts,
    better: Better::Neither,
    source: plain(|m| Ok(m.energy_j? / m.extremes.duration_s().ok_or(NO_TIME)?)),
    ..telemetry_named("gpu_power", "GPU power")
};

/// Energy per output token.
pub static ENERGY_PER_OUTPUT_TOKEN: Metric = Metric {
    unit: Unit::JoulesPerToken,
    better: Better::Lower,
    source: plain(|m| Ok(m.energy_j? / m.output_tokens()?)),
    ..telemetry_named("energy_per_output_token", "Energy per output token")
};

/// Output tokens per joule.
pub static OUTPUT_TOKENS_PER_JOULE: Metric = Metric {
    unit: Unit::TokensPerJoule,
    source: plain(|m| Ok(m.output_tokens()? / m.energy_j?)),
    ..telemetry_named("output_tokens_per_joule", "Output tokens per joule")
};

/// Cost per million output tokens.
pub static COST_PER_MILLION_OUTPUT_TOKENS: Metric = Metric {
    unit: Unit::PerMillionTokens,
    better: Better::Lower,
    source: Source::Scalar(
        |m| cost(m.price_per_hour?, OUTPUT_THROUGHPUT.number(m)?),
        |m| cost_interval(m.price_per_hour.ok()?, m.intervals.output?),
    ),
    ..telemetry_named("cost_per_million_output_tokens", "Cost per million output tokens")
};

/// Cost per million tokens, read and written.
pub static COST_PER_MILLION_TOKENS: Metric = Metric {
    unit: Unit::PerMillionTokens,
    better: Better::Lower,
    source: Source::Scalar(
        |m| cost(m.price_per_hour?, TOTAL_THROUGHPUT.number(m)?),
        |m| cost_interval(m.price_per_hour.ok()?, m.intervals.total?),
    ),
    ..telemetry_named("cost_per_million_tokens", "Cost per million tokens")
};

fn cost(per_hour: f64, tokens_per_s: f64) -> Result<f64, Missing> {
    let none = "no ok answer carried tokens";
    cost_of_million(per_hour, tokens_per_s).ok_or(none)
}

/// The price of a million tokens at so many a second.
pub(crate) fn cost_of_million(per_hour: f64, tokens_per_s: f64) -> Option<f64> {
    const SECONDS_PER_HOUR: f64 = 3_600.0;
    (0.0 < tokens_per_s).then(|| per_hour / SECONDS_PER_HOUR / tokens_per_s * 1e6)
}

/// The more tokens, the less each of them costs.
pub(crate) fn cost_interval(per_hour: f64, rate: Interval) -> Option<Interval> {
    let [low, high] = [rate.high, rate.low].map(|rate| cost_of_million(per_hour, rate));
    Interval::new(low?, high?)
}

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
