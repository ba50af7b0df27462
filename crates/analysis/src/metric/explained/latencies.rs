//! The words of the latencies.

use super::{AIPERF, Explained, GENAI_PERF, GUIDELLM, INFERENCE_PERF, OF_GAPS, OF_REQUESTS, VLLM};

pub(super) static EXPLAINED: &[Explained] = &[
    Explained {
        metric: "ttft",
        formula: "first output event − sent, where output is text, reasoning, a tool call or a \
            marked token, never a role-only delta or a usage chunk",
        null_when: "no ok answer carried output, or answers are not streamed",
        doubt: OF_REQUESTS,
        elsewhere: &[
            (
                VLLM,
                "to the first chunk with choices, so an empty role delta counts as the first \
                 token; the clock starts after the concurrency limit let the request go, and \
                 before its body is encoded and a connection is made",
            ),
            (AIPERF, "to the first response with content, from the start of the request"),
            (GENAI_PERF, "passes over first responses without content, too"),
            (INFERENCE_PERF, "to the first output that is not empty, from sending"),
            (GUIDELLM, "to the first token, from the start of the request"),
        ],
    },
    Explained {
        metric: "ttft_schedule",
        formula: "first output event − intended, the moment at which the plan wanted it to leave",
        null_when: "no ok answer carried output, or answers are not streamed",
        doubt: OF_REQUESTS,
        elsewhere: &[
            (VLLM, "has none: what a request waits for the concurrency limit is in no latency"),
            (GUIDELLM, "has none; the wait before sending is its request_dispatch_delay"),
        ],
    },
    Explained {
        metric: "ttfc",
        formula: "first event with answer text − sent: behind TTFT where a model reasons first",
        null_when: "no ok answer carried content",
        doubt: OF_REQUESTS,
        elsewhere: &[
            (AIPERF, "calls it time to first output token (TTFO)"),
            (GUIDELLM, "calls it time to first output token (TTFOT)"),
        ],
    },
    Explained {
        metric: "icl",
        formula: "gaps between consecutive arrivals of a request, of all requests in one pool; \
            events that came in one read are one arrival",
        null_when: "no ok answer came in more than one arrival",
        doubt: OF_GAPS,
        elsewhere: &[
            (VLLM, "calls the gaps between chunks ITL"),
            (AIPERF, "has the same name for the gaps between responses with content"),
        ],
    },
    Explained {
        metric: "itl",
        formula: "the gaps of ICL per token: an arrival of k tokens gives k gaps of gap / k",
        null_when: "no ok answer came in more than one arrival, or the server does not say how \
            many tokens each event carries",
        doubt: OF_GAPS,
        elsewhere: &[
            (
                VLLM,
                "gaps between chunks, whatever they carry: ICL here. Chunks of several tokens \
                 (speculative decoding, a stream interval) make it too large",
            ),
            (
                AIPERF,
                "one mean per request, (latency − TTFT) / (tokens − 1): TPOT here. Its percentiles \
                 are over requests, so a stall inside one answer does not show",
            ),
            (GENAI_PERF, "one mean per request that leaves the TTFT out, as AIPerf has it"),
            (GUIDELLM, "one mean per request without the first token: TPOT here"),
            (INFERENCE_PERF, "the time between tokens within a request, as here"),
        ],
    },
    Explained {
        metric: "tpot",
        formula: "(last arrival − first arrival) / (n − k₁) of a request with n tokens, k₁ of \
            them in its first arrival",
        null_when: "no ok answer has tokens after its first arrival",
        doubt: OF_REQUESTS,
        elsewhere: &[
            (
                VLLM,
                "(E2EL − TTFT) / (n − 1), as if the first chunk held one token; on chat the end is \
                 the last message of any kind, so a late usage chunk makes every token slower",
            ),
            (AIPERF, "calls it inter token latency, with n − 1"),
            (INFERENCE_PERF, "(latency − TTFT) / (n − 1), n by its own tokenizer unless told"),
            (GUIDELLM, "its time per output token counts the first token, too; its ITL does not"),
        ],
    },
    Explained {
        metric: "e2e",
        formula: "last output event − sent",
        null_when: "no ok answer carried output",
        doubt: OF_REQUESTS,
        elsewhere: &[
            (
                VLLM,
                "E2EL: to the last chunk of a completion, but on chat to the last message of any \
                 kind, mostly the usage chunk; not printed unless asked for",
            ),
            (AIPERF, "request latency: to the last response with content"),
            (GUIDELLM, "request latency, in seconds"),
            (INFERENCE_PERF, "time per request, in seconds: to its completion"),
        ],
    },
    Explained {
        metric: "e2e_schedule",
        formula: "last output event − intended",
        null_when: "no ok answer carried output",
        doubt: OF_REQUESTS,
        elsewhere: &[
            (GUIDELLM, "request_scheduled_latency: from the targeted start to the end"),
            (AIPERF, "effective latency: from the issue of its credit to the end"),
            (VLLM, "none in the tables; newer versions can add the queue in the client"),
        ],
    },
    Explained {
        metric: "client_queue",
        formula: "admitted − intended: the wait for a slot of the concurrency cap",
        null_when: "no request was sent",
        doubt: OF_REQUESTS,
        elsewhere: &[
            (VLLM, "left out of every latency; newer versions report it beside them"),
            (GUIDELLM, "part of request_dispatch_delay, with the client's own delay"),
        ],
    },
    Explained {
        metric: "send_lag",
        formula: "sent − admitted: the client's own delay, connecting included",
        null_when: "no request was sent",
        doubt: OF_REQUESTS,
        elsewhere: &[
            (VLLM, "neither measured nor reported; connecting is inside its TTFT"),
            (AIPERF, "of replayed traces only, against the least late request of the run"),
        ],
    },
    Explained {
        metric: "client_lag",
        formula: "moment at which a read returned − the kernel's stamp of its last packet",
        null_when: "no read carries a kernel stamp (as over HTTP/2)",
        doubt: OF_GAPS,
        elsewhere: &[(
            VLLM,
            "stamps come from the event loop, so this delay is inside all of them",
        )],
    },
    Explained {
        metric: "arrival_width",
        formula: "stamp of a read that brought several output events − stamp of the read before it",
        null_when: "no read brought more than one output event",
        doubt: OF_GAPS,
        elsewhere: &[],
    },
];
