//! The latencies: distributions of milliseconds.

use std::time::Duration;

use inferometer_model::record::ServerReport;

use super::{Better, Headline, Latency, Metric, Missing, NOTHING_SENT, Source, Unit, Visible};
use crate::record::{Request, Ruler};

/// What most latencies have in common.
pub(super) const LATENCY: Metric = Metric {
    name: "",
    key: "",
    title: "",
    unit: Unit::Milliseconds,
    better: Better::Lower,
    headline: Headline::Never,
    is_telemetry: false,
    source: Source::Latency(IN_STREAMS),
};

const fn latency_named(name: &'static str, key: &'static str, title: &'static str) -> Metric {
    Metric { name, key, title, ..LATENCY }
}

/// Latencies with one value per request.
const fn measured(latency: Latency, value: fn(&Request<'_>, &mut Ruler) -> Option<f64>) -> Source {
    Source::Latency(Latency { value: Some(value), ..latency })
}

/// Latencies with several values per request.
const fn pooled(visible: Visible, absent: Missing) -> Source {
    Source::Latency(Latency { visible, absent, in_steady_window: false, ..IN_STREAMS })
}

/// What latencies of answers have in common.
const IN_STREAMS: Latency = Latency {
    value: None,
    visible: Visible::InStreams,
    absent: NO_OUTPUT,
    in_steady_window: true,
    in_groups: false,
};
const IN_GROUPS: Latency = Latency { in_groups: true, ..IN_STREAMS };
const ON_ANSWERS: Latency = Latency { visible: Visible::OnAnswers, ..IN_STREAMS };
/// What latencies of the client have in common.
const ON_REQUESTS: Latency = Latency {
    visible: Visible::OnRequests,
    absent: NOTHING_SENT,
    in_steady_window: false,
    ..IN_STREAMS
};

/// The share of an answer's tokens that may have come with its first arrival without being counted there:
/// with more, TPOT would be a guess.
const TOKENS_UNKNOWN: f64 = 0.05;

const NO_OUTPUT: Missing = "no ok answer carried output";
const NO_GAPS: Missing = "no ok answer came in more than one arrival";

/// TTFT.
pub static TTFT: Metric = Metric {
    headline: Headline::ClosedLoop,
    source: measured(IN_GROUPS, |request, ruler| ruler.ms(request.sent, request.first_streamed()?)),
    ..latency_named("ttft", "ttft_ms", "TTFT")
};

/// TTFT from schedule.
pub static TTFT_SCHEDULE: Metric = Metric {
    headline: Headline::OpenLoop,
    source: measured(IN_STREAMS, |request, ruler| {
        ruler.ms(request.record.intended, request.first_streamed()?)
    }),
    ..latency_named("ttft_schedule", "ttft_schedule_ms", "TTFT from schedule")
};

/// TTFC.
pub static TTFC: Metric = Metric {
    source: measured(
        Latency { absent: "no ok answer carried content", in_steady_window: false, ..IN_STREAMS },
        |request, ruler| {
            let first = request.output.first_content.filter(|_| request.is_streamed());
            ruler.ms(request.sent, first?)
        },
    ),
    ..latency_named("ttfc", "ttfc_ms", "TTFC")
};

/// TTST.
pub static TTST: Metric = Metric {
    source: measured(
        Latency { absent: NO_GAPS, in_steady_window: false, ..IN_STREAMS },
        |request, ruler| {
            let [first, second, ..] = request.output.arrivals.as_slice() else { return None };
            ruler.ms(first.at, second.at)
        },
    ),
    ..latency_named("ttst", "ttst_ms", "TTST")
};

/// ICL.
pub static ICL: Metric =
    Metric { source: pooled(Visible::InStreams, NO_GAPS), ..latency_named("icl", "icl_ms", "ICL") };

/// ITL.
pub static ITL: Metric = Metric {
    headline: Headline::Always,
    source: pooled(Visible::InStreams, NO_GAPS),
    ..latency_named("itl", "itl_ms", "ITL")
};

/// TPOT.
pub static TPOT: Metric = Metric {
    headline: Headline::Always,
    source: measured(
        Latency {
            absent: "no ok answer shows how many tokens came after its first arrival",
            ..IN_GROUPS
        },
        |request, ruler| {
            let [first, .., last] = request.output.arrivals.as_slice() else { return None };
            let tokens = request.tokens.count;
            let per_event = tokens as f64 / request.output.events as f64;
            let unknown = first.tokens.map_or(f64::from(first.events) * per_event - 1.0, |_| 0.0);
            let after_first = tokens.saturating_sub(first.tokens.unwrap_or(1));
            let is_known = 0 < after_first && unknown <= TOKENS_UNKNOWN * after_first as f64;
            Some(is_known.then(|| ruler.ms(first.at, last.at))?? / after_first as f64)
        },
    ),
    ..latency_named("tpot", "tpot_ms", "TPOT")
};

/// E2E.
pub static E2E: Metric = Metric {
    headline: Headline::ClosedLoop,
    source: measured(Latency { visible: Visible::OnAnswers, ..IN_GROUPS }, |request, ruler| {
        ruler.ms(request.sent, request.last()?)
    }),
    ..latency_named("e2e", "e2e_ms", "E2E")
};

/// E2E from schedule.
pub static E2E_SCHEDULE: Metric = Metric {
    headline: Headline::OpenLoop,
    source: measured(ON_ANSWERS, |request, ruler| {
        ruler.ms(request.record.intended, request.last()?)
    }),
    ..latency_named("e2e_schedule", "e2e_schedule_ms", "E2E from schedule")
};

/// Client queue.
pub static CLIENT_QUEUE: Metric = Metric {
    source: measured(ON_REQUESTS, |request, ruler| {
        ruler.ms(request.record.intended, request.record.admitted)
    }),
    ..latency_named("client_queue", "client_queue_ms", "Client queue")
};

/// Send lag.
pub static SEND_LAG: Metric = Metric {
    source: measured(ON_REQUESTS, |request, ruler| ruler.ms(request.record.admitted, request.sent)),
    ..latency_named("send_lag", "send_lag_ms", "Send lag")
};

/// What a latency has in common that the server reports of each request.
const REPORTED: Latency = Latency { absent: NO_REPORT, in_steady_window: false, ..ON_ANSWERS };
const NO_REPORT: Missing = "the server does not report it with its answers";

const fn reported_named(name: &'static str, key: &'static str, title: &'static str) -> Metric {
    Metric { is_telemetry: true, ..latency_named(name, key, title) }
}

/// A reported time in milliseconds.
fn reported(request: &Request<'_>, time: fn(&ServerReport) -> Option<Duration>) -> Option<f64> {
    time(request.record.server.as_deref()?).map(|time| time.as_secs_f64() * 1e3)
}

/// Queue (server).
pub static SERVER_QUEUE: Metric = Metric {
    source: measured(REPORTED, |request, _| reported(request, |report| report.queue)),
    ..reported_named("server_queue", "server_queue_ms", "Queue (server)")
};

/// Prefill (server).
pub static SERVER_PREFILL: Metric = Metric {
    source: measured(REPORTED, |request, _| reported(request, |report| report.prefill)),
    ..reported_named("server_prefill", "server_prefill_ms", "Prefill (server)")
};

/// Decode (server).
pub static SERVER_DECODE: Metric = Metric {
    source: measured(REPORTED, |request, _| reported(request, |report| report.decode)),
    ..reported_named("server_decode", "server_decode_ms", "Decode (server)")
};

/// TTFT outside queue and prefill.
pub static TTFT_OVERHEAD: Metric = Metric {
    source: measured(Latency { visible: Visible::InStreams, ..REPORTED }, |request, ruler| {
        let inside =
            reported(request, |report| report.queue)? + reported(request, |report| report.prefill)?;
        let ttft = ruler.ms(request.sent, request.first_streamed()?)?;
        // Times that do not fit into each other are not of the same thing.
        Some(ttft - inside).filter(|rest| -CLOCKS_APART_MS <= *rest)
    }),
    ..reported_named("ttft_overhead", "ttft_overhead_ms", "TTFT outside queue and prefill")
};

/// How much two clocks may disagree about the same time.
const CLOCKS_APART_MS: f64 = 2.0;

/// Client lag.
pub static CLIENT_LAG: Metric = Metric {
    source: pooled(Visible::OnRequests, "no read carries a kernel stamp"),
    ..latency_named("client_lag", "client_lag_ms", "Client lag")
};

/// Arrival width.
pub static ARRIVAL_WIDTH: Metric = Metric {
    source: pooled(Visible::OnAnswers, "no read brought more than one output event"),
    ..latency_named("arrival_width", "arrival_width_ms", "Arrival width")
};
