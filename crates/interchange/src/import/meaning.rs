//! What each tool means by its figures, for the pages that show them.

use inferometer_analysis::sheet::Tool;

/// One sentence for each thing that a reader must know before figures are set beside others.
pub fn meaning(tool: Tool) -> &'static [&'static str] {
    match tool {
        Tool::Inferometer => &[
            "Latencies from the schedule count from the moment at which the load was to send a \
             request, latencies from the send from when it was sent.",
            "ITL has one value for each gap, divided by the tokens that it brought.",
        ],
        Tool::Vllm => &[
            "TTFT and E2E count from the moment at which a request was sent: waiting in the client \
             is hidden.",
            "ITL has one value for each event of a stream, however many tokens it carried.",
            "TPOT is one mean for each answer, without its first token.",
        ],
        Tool::Sglang => &[
            "TTFT and E2E count from the moment at which a request was sent: waiting in the client \
             is hidden.",
            "ITL has one value for each event of a stream; on SGLang's own API later versions \
             divide it by the tokens, and the file does not say which version wrote it.",
            "Failed requests are counted only in files with the detail of every request.",
        ],
        Tool::GuideLlm => &[
            "TTFT and E2E count from the moment at which a request was sent; with a rate there is \
             also an E2E from its schedule.",
            "Its inter-token latency is one mean for each answer, without its first token, and is \
             shown as TPOT. Each mean counts once for each token of its answer.",
            "Its time per output token has the first token in it, and is not shown as TPOT.",
            "Its intervals take the requests as independent of each other.",
        ],
        Tool::AiPerf => &[
            "TTFT and E2E count from the moment at which a request was sent. Its effective latency \
             counts from when the load released it, and is shown as E2E from the schedule.",
            "Its inter-token latency is one mean for each answer, without its first token, and is \
             shown as TPOT. Its inter-chunk latency is shown as ITL, one value for each event.",
        ],
        Tool::LlmD => &[
            "A report takes over another tool's figures. From where latencies count is known only \
             of tools that are known here.",
            "TPOT is one mean for each answer, without its first token; taken over from GuideLLM, it \
             may have the first token in it.",
        ],
        Tool::GenaiBench => &[
            "TTFT and E2E count from the moment at which a request was sent: waiting in the client \
             is hidden.",
            "TPOT is one mean for each answer, without its first token. There is no ITL.",
        ],
    }
}
