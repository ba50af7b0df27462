//! The latencies: distributions of milliseconds.

use super::{Better, Headline, Metric, Missing, NOTHING_SENT, PerRequest, Source, Unit, Visible};

/// What most latencies have in common.
pub(super) const LATENCY: Metric = Metric {
    name: "",
    key: "",
    title: "",
    definition: "",
    unit: Unit::Milliseconds,
    better: Better::Lower,
    headline: Headline::Never,
    formula: "",
    null_when: "",
    interval: "one value per request, in the order of time; the interval of the mean \
        and of each percentile comes from blocks of consecutive requests, because neighbours share \
        the server's state and tell less than independent ones would",
    source: Source::Pooled(Visible::OnAnswers, NO_OUTPUT),
};

/// What latencies of answers have in common.
const IN_STREAMS: PerRequest = PerRequest {
    value: |_, _| None,
    visible: Visible::InStreams,
    absent: NO_OUTPUT,
    in_steady_window: true,
    in_groups: false,
};
const ON_ANSWERS: PerRequest = PerRequest { visible: Visible::OnAnswers, ..IN_STREAMS };
/// What latencies of the client have in common.
const ON_REQUESTS: PerRequest = PerRequest {
    visible: Visible::OnRequests,
    absent: NOTHING_SENT,
    in_steady_window: false,
    ..IN_STREAMS
};

const OF_GAPS: &str = "all gaps of a request count as one cluster, and consecutive requests as \
    blocks: thousands of gaps from a few answers are few facts";

const NO_OUTPUT: Missing = Missing("no ok answer carried output");
const NO_GAPS: Missing = Missing("no ok answer came in more than one arrival");

/// TTFT.
pub static TTFT: Metric = Metric {
    name: "ttft",
    key: "ttft_ms",
    title: "TTFT",
    definition: "time to first token: first output event − sent",
    headline: Headline::ClosedLoop,
    formula: "first output event − sent, where output is text, reasoning, a tool call or a \
            marked token, never a role-only delta or a usage chunk",
    null_when: "no ok answer carried output, or answers are not streamed",
    source: Source::PerRequest(PerRequest {
        value: |request, ruler| ruler.ms(request.sent, request.first_streamed()?),
        in_groups: true,
        ..IN_STREAMS
    }),
    ..LATENCY
};

/// TTFT from schedule.
pub static TTFT_SCHEDULE: Metric = Metric {
    name: "ttft_schedule",
    key: "ttft_schedule_ms",
    title: "TTFT from schedule",
    definition: "first output event − intended: waiting in the client counts",
    headline: Headline::OpenLoop,
    formula: "first output event − intended, the moment at which the plan wanted it to leave",
    null_when: "no ok answer carried output, or answers are not streamed",
    source: Source::PerRequest(PerRequest {
        value: |request, ruler| ruler.ms(request.record.intended, request.first_streamed()?),
        ..IN_STREAMS
    }),
    ..LATENCY
};

/// TTFC.
pub static TTFC: Metric = Metric {
    name: "ttfc",
    key: "ttfc_ms",
    title: "TTFC",
    definition: "time to first content: first event with answer text − sent",
    formula: "first event with answer text − sent: behind TTFT where a model reasons first",
    null_when: "no ok answer carried content",
    source: Source::PerRequest(PerRequest {
        value: |request, ruler| {
            let first = request.output.first_content.filter(|_| request.is_streamed());
            ruler.ms(request.sent, first?)
        },
        absent: Missing("no ok answer carried content"),
        in_steady_window: false,
        ..IN_STREAMS
    }),
    ..LATENCY
};

/// ICL.
pub static ICL: Metric = Metric {
    name: "icl",
    key: "icl_ms",
    title: "ICL",
    definition: "inter-chunk latency: gaps between consecutive arrivals, pooled over requests",
    formula: "gaps between consecutive arrivals of a request, of all requests in one pool; \
            events that came in one read are one arrival",
    null_when: "no ok answer came in more than one arrival",
    interval: OF_GAPS,
    source: Source::Pooled(Visible::InStreams, NO_GAPS),
    ..LATENCY
};

/// ITL.
pub static ITL: Metric = Metric {
    name: "itl",
    key: "itl_ms",
    title: "ITL",
    definition: "inter-token latency: the same gaps per token, k of gap/k for an arrival of k",
    headline: Headline::Always,
    formula: "the gaps of ICL per token: an arrival of k tokens gives k gaps of gap / k",
    null_when: "no ok answer came in more than one arrival, or the server does not say how \
            many tokens each event carries",
    interval: OF_GAPS,
    source: Source::Pooled(Visible::InStreams, NO_GAPS),
    ..LATENCY
};

/// TPOT.
pub static TPOT: Metric = Metric {
    name: "tpot",
    key: "tpot_ms",
    title: "TPOT",
    definition: "time per output token: (last arrival − first) / tokens after the first arrival",
    headline: Headline::Always,
    formula: "(last arrival − first arrival) / (n − k₁) of a request with n tokens, k₁ of \
            them in its first arrival",
    null_when: "no ok answer has tokens after its first arrival",
    source: Source::PerRequest(PerRequest {
        value: |request, ruler| {
            let [first, .., last] = request.output.arrivals.as_slice() else { return None };
            let after_first = request.tokens.count.saturating_sub(first.tokens.unwrap_or(1));
            let has_more = 0 < after_first;
            Some(has_more.then(|| ruler.ms(first.at, last.at))?? / after_first as f64)
        },
        absent: Missing("no ok answer has tokens after its first arrival"),
        in_groups: true,
        ..IN_STREAMS
    }),
    ..LATENCY
};

/// E2E.
pub static E2E: Metric = Metric {
    name: "e2e",
    key: "e2e_ms",
    title: "E2E",
    definition: "end to end: last output event − sent",
    headline: Headline::ClosedLoop,
    formula: "last output event − sent",
    null_when: "no ok answer carried output",
    source: Source::PerRequest(PerRequest {
        value: |request, ruler| ruler.ms(request.sent, request.last()?),
        in_groups: true,
        ..ON_ANSWERS
    }),
    ..LATENCY
};

/// E2E from schedule.
pub static E2E_SCHEDULE: Metric = Metric {
    name: "e2e_schedule",
    key: "e2e_schedule_ms",
    title: "E2E from schedule",
    definition: "last output event − intended: waiting in the client counts",
    headline: Headline::OpenLoop,
    formula: "last output event − intended",
    null_when: "no ok answer carried output",
    source: Source::PerRequest(PerRequest {
        value: |request, ruler| ruler.ms(request.record.intended, request.last()?),
        ..ON_ANSWERS
    }),
    ..LATENCY
};

/// Client queue.
pub static CLIENT_QUEUE: Metric = Metric {
    name: "client_queue",
    key: "client_queue_ms",
    title: "Client queue",
    definition: "admitted − intended: waiting for a slot of the concurrency cap",
    formula: "admitted − intended: the wait for a slot of the concurrency cap",
    null_when: "no request was sent",
    source: Source::PerRequest(PerRequest {
        value: |request, ruler| ruler.ms(request.record.intended, request.record.admitted),
        ..ON_REQUESTS
    }),
    ..LATENCY
};

/// Send lag.
pub static SEND_LAG: Metric = Metric {
    name: "send_lag",
    key: "send_lag_ms",
    title: "Send lag",
    definition: "sent − admitted: the client's own delay, connecting included",
    formula: "sent − admitted: the client's own delay, connecting included",
    null_when: "no request was sent",
    source: Source::PerRequest(PerRequest {
        value: |request, ruler| ruler.ms(request.record.admitted, request.sent),
        ..ON_REQUESTS
    }),
    ..LATENCY
};

/// Client lag.
pub static CLIENT_LAG: Metric = Metric {
    name: "client_lag",
    key: "client_lag_ms",
    title: "Client lag",
    definition: "how long bytes lay in the kernel: read returned − kernel receive stamp, per read",
    formula: "moment at which a read returned − the kernel's stamp of its last packet",
    null_when: "no read carries a kernel stamp (as over HTTP/2)",
    interval: OF_GAPS,
    source: Source::Pooled(Visible::OnRequests, Missing("no read carries a kernel stamp")),
    ..LATENCY
};

/// Arrival width.
pub static ARRIVAL_WIDTH: Metric = Metric {
    name: "arrival_width",
    key: "arrival_width_ms",
    title: "Arrival width",
    definition: "how far back the events of a coalesced arrival may really lie",
    formula: "stamp of a read that brought several output events − stamp of the read before it",
    null_when: "no read brought more than one output event",
    interval: OF_GAPS,
    source: Source::Pooled(
        Visible::OnAnswers,
        Missing("no read brought more than one output event"),
    ),
    ..LATENCY
};
