//! What results and their marks are called.

use inferometer_analysis::sheet::{CountsFrom, Grain, LatencyKind, Mark};

use crate::fmt::{count, counted, number, setting};

/// For what a source leaves out.
pub(super) fn unsaid(what: &str) -> String {
    format!("{what} not said")
}

pub(super) const fn kind_words(kind: LatencyKind) -> &'static str {
    match kind {
        LatencyKind::Ttft => "time to first token",
        LatencyKind::Tpot => "time per output token after the first",
        LatencyKind::Itl => "time between outputs",
        LatencyKind::E2e => "time to the end of an answer",
    }
}

/// Behind the name of a latency; empty for what is the same with every tool.
pub(super) const fn from_words(from: CountsFrom) -> &'static str {
    match from {
        CountsFrom::Schedule => "from schedule",
        CountsFrom::Send => "from send",
        CountsFrom::Output => "",
        CountsFrom::Unknown => "clock not said",
    }
}

pub(super) const fn grain_words(grain: Grain) -> &'static str {
    match grain {
        Grain::Request => "one value per request",
        Grain::Token => "one value per token",
        Grain::Chunk => "one value per chunk of the stream, however many tokens it carries",
        Grain::Unknown => "what one value is, the source does not say",
    }
}

/// Where gaps of several grains stand beside each other.
pub(super) const fn grain_name(grain: Grain) -> &'static str {
    match grain {
        Grain::Request => "per request",
        Grain::Token => "per token",
        Grain::Chunk => "per chunk",
        Grain::Unknown => "grain not said",
    }
}

/// At the mark of a chart.
pub(super) fn mark_words(mark: &Mark) -> String {
    match mark {
        Mark::Cut { completed, planned } => {
            format!("cut: {} of {} requests completed", count(*completed), count(*planned))
        }
        Mark::Failures { failed } => format!("{} failed", counted(*failed, "request")),
        Mark::Saturated { asked_per_s, served_per_s } => format!(
            "saturated: {} req/s of {} were served",
            number(*served_per_s),
            setting(*asked_per_s)
        ),
        Mark::Invalid => "invalid by its own checks".to_owned(),
        Mark::Simulated => "simulated: no server was measured".to_owned(),
    }
}

/// What a kind of mark means for whoever reads the figures, and what to do about it.
pub(super) const fn mark_advice(mark: &Mark) -> (&'static str, &'static str) {
    match mark {
        Mark::Cut { .. } => (
            "Results that were cut: fewer requests completed than were planned. Their figures \
             describe the part that was served.",
            "give the run the time that all its requests need, and look for a limit of the client, \
             such as open files",
        ),
        Mark::Failures { .. } => (
            "Results with failed requests. Their figures describe those that did not fail.",
            "look up why they failed, and measure again when none do",
        ),
        Mark::Saturated { .. } => (
            "Results of a saturated server: it gave less than the rate that was asked. Its queue \
             grows while it is measured, so that latencies depend on how long that was.",
            "compare latencies at lower rates, and take the throughput here for what the server can \
             give",
        ),
        Mark::Invalid => (
            "Results that are invalid by their own checks.",
            "read why: `inferometer report` with the id of the run; then measure again",
        ),
        Mark::Simulated => (
            "Results that are simulated: no server was measured.",
            "take them for what an engine's profile foretells, and measure to know",
        ),
    }
}
