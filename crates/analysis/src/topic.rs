//! What may be asked for an explanation: a metric, a word of the pages, or the name that another
//! tool has for something.

use crate::metric::{
    self, AIPERF, GENAI_PERF, GUIDELLM, INFERENCE_PERF, LatencyOrigin, METRICS, Metric, Quantity,
    Shape, Statistic, VLLM, metric_of,
};

/// What a name is about.
#[derive(Clone, Debug)]
pub enum Topic {
    Metric {
        metric: &'static Metric,
        /// Of a quantity, such as `ttft.p99`.
        statistic: Option<Statistic>,
    },
    Word(&'static Word),
    /// Other tools' name, by tool.
    Foreign(Vec<&'static Foreign>),
    /// A tool: all that it has another name or meaning for.
    Tool(Vec<&'static Foreign>),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing is known by the name `{word}`{}", in_words(*nearest))]
pub struct UnknownWord {
    pub word: String,
    /// Only what may have been meant.
    pub nearest: Option<&'static str>,
}

fn in_words(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("; the nearest is `{nearest}`"))
}

impl Topic {
    /// Our own names go first; what only another tool says is explained as what that tool means.
    pub fn look_up(asked: &str) -> Result<Self, UnknownWord> {
        let name = plain(asked);
        of_metric(&name)
            .or_else(|| Word::named(&name).map(Self::Word))
            .or_else(|| of_other_tools(&name))
            .or_else(|| of_tool(&name))
            .ok_or_else(|| UnknownWord { word: asked.to_owned(), nearest: nearest(&name) })
    }
}

fn of_metric(name: &str) -> Option<Topic> {
    if let Some(metric) = by_name_or_title(name) {
        return Some(Topic::Metric { metric, statistic: None });
    }
    // As people say it: `TTFT p99`.
    if let Some((first, last)) = name.rsplit_once('_')
        && let Some(statistic) = Statistic::named(last)
        && let Some(metric) = by_name_or_title(first)
        && metric.shape() == Shape::Distribution
    {
        return Some(Topic::Metric { metric, statistic: Some(statistic) });
    }
    if let Ok(quantity) = Quantity::named(name, LatencyOrigin::Sent) {
        let (metric, statistic) = (quantity.metric(), quantity.statistic());
        return Some(Topic::Metric { metric, statistic });
    }
    // `ttft.schedule` is a metric, and no quantity yet.
    let (first, rest) = name.split_once('.')?;
    match metric_of(first, Some(rest), LatencyOrigin::Sent) {
        Ok((metric, None)) => Some(Topic::Metric { metric, statistic: None }),
        Ok((_, Some(_))) | Err(_) => None,
    }
}

/// `e2e_latency` is `e2e`.
fn by_name_or_title(name: &str) -> Option<&'static Metric> {
    let name = name.strip_suffix("_latency").unwrap_or(name);
    let is_named = |metric: &&Metric| {
        metric.name == name || metric.key() == name || plain(metric.title) == name
    };
    METRICS.iter().copied().find(is_named)
}

fn of_tool(name: &str) -> Option<Topic> {
    let names = Foreign::of_tool(name);
    (!names.is_empty()).then_some(Topic::Tool(names))
}

fn of_other_tools(name: &str) -> Option<Topic> {
    let by = |name: &str| {
        let found = Foreign::named(name);
        (!found.is_empty()).then_some(Topic::Foreign(found))
    };
    by(name).or_else(|| by(without_statistic(without_unit(name))))
}

/// `mean_ttft` and `p99_ttft` are about the same as `ttft`.
fn without_statistic(name: &str) -> &str {
    let Some((first, rest)) = name.split_once('_') else { return name };
    let is_percentile = first.strip_prefix('p').is_some_and(|rest| rest.parse::<f64>().is_ok());
    let known = ["mean", "median", "std", "avg", "min", "max"].contains(&first);
    if known || is_percentile { rest } else { name }
}

fn without_unit(name: &str) -> &str {
    let units = ["_ms", "_s", "_seconds", "_req_s", "_tok_s"];
    // The longest goes first, or `_tok` would be left.
    let found = units.iter().filter(|unit| name.ends_with(**unit)).max_by_key(|unit| unit.len());
    found.map_or(name, |unit| &name[..name.len() - unit.len()])
}

/// As names are written: small letters, underscores, no quotes or brackets.
fn plain(text: &str) -> String {
    let kept = text.to_lowercase().replace(['\'', '’', ':'], "");
    let is_part = |c: char| c.is_alphanumeric() || c == '.' || c == '%';
    let parts = kept.split(|c| !is_part(c)).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("_")
}

fn nearest(name: &str) -> Option<&'static str> {
    let metrics = METRICS.iter().map(|metric| metric.name);
    let words = WORDS.iter().flat_map(|word| [word.name].into_iter().chain(word.aliases.to_vec()));
    let all = metrics.chain(words).chain(Foreign::names());
    let distance = |known: &str| strsim::levenshtein(name, &plain(known));
    let (apart, known) =
        all.map(|known| (distance(known), known)).min_by_key(|(apart, _)| *apart)?;
    (apart <= slips(name)).then_some(known)
}

/// How many letters may be wrong before it is another word.
fn slips(name: &str) -> usize {
    match name.chars().count() {
        0..=2 => 0,
        3 => 1,
        4..=7 => 2,
        _ => 3,
    }
}

/// A word and what it means here.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    /// Sentences.
    pub meaning: &'static str,
    /// What to read next.
    pub see: &'static [&'static str],
}

impl Word {
    /// The word with this plain name.
    fn named(name: &str) -> Option<&'static Self> {
        let is_named = |word: &&Self| {
            plain(word.name) == name || word.aliases.iter().any(|alias| plain(alias) == name)
        };
        WORDS.iter().find(is_named)
    }
}

/// In groups of what belongs together.
pub static WORDS: &[Word] = &[
    Word {
        name: "interval",
        aliases: &["confidence interval", "ci"],
        meaning: "Where the true value lies with 95 % confidence. Within one run it comes from how \
            much blocks of consecutive requests differ, because neighbours in time are alike; \
            between repeated runs it is Student's t on one value per run, with n − 1 degrees of \
            freedom. The second is the one to trust: it has seen the server start more than once.",
        see: &["effective n", "certified"],
    },
    Word {
        name: "effective n",
        aliases: &["effective_n", "n_eff", "effective sample size"],
        meaning: "How many independent values would tell as much. Requests that ran side by side \
            waited in the same queue and shared the same batch, so a thousand of them may be worth \
            a hundred. An interval that takes them for independent is too narrow, often by far.",
        see: &["interval", "certified"],
    },
    Word {
        name: "certified",
        aliases: &["not certified", "not_certified", "not judged"],
        meaning: "A percentile is certified when there are enough values to promise it: p50 from \
            11, p90 from 64, p95 from 130, p99 from 662, p99.9 from 6,636 on. Below that the \
            number is shown with a ~ and judges nothing: no promise, requirement or search is \
            decided by it.",
        see: &["effective n", "undecided"],
    },
    Word {
        name: "statistic",
        aliases: &[
            "percentile",
            "quantile",
            "p50",
            "median",
            "p90",
            "p95",
            "p99",
            "p99.9",
            "mean",
            "average",
            "max",
        ],
        meaning: "What a latency is asked for, after a dot: ttft.p99 is the time within which 99 of \
            100 requests had their first output, ttft.mean the sum over their number, ttft.max the \
            largest. Percentiles are exact: all values are kept, sorted, and interpolated \
            linearly.",
        see: &["certified", "interval"],
    },
    Word {
        name: "tokens per second",
        aliases: &["tokens_per_s", "tokens/s", "tok/s", "tps"],
        meaning: "Several numbers go by this name. output_throughput is what the server writes for \
            all together, total_throughput has the prompts in it, per_user_throughput is what each \
            of those in flight gets, and tg how fast an answer goes on after its first token.",
        see: &["output_throughput", "total_throughput", "per_user_throughput", "tg"],
    },
    Word {
        name: "prompt TPS",
        aliases: &["prompt_tps", "prompt tokens per second", "avg_prompt_tps"],
        meaning: "What a server's counter of prompt tokens grows by in a second, as matrices of \
            deployments publish it: here server_prompt_throughput, from the scrape before the load \
            to the one after it. input_throughput is the same by the client, of ok requests only and \
            over the window of the requests. They part where requests fail, where others use the \
            server, and where a run is so short that the time around it counts.",
        see: &["server_prompt_throughput", "input_throughput"],
    },
    Word {
        name: "generation TPS",
        aliases: &["generation_tps", "generation tokens per second", "avg_generation_tps"],
        meaning: "What a server's counter of generated tokens grows by in a second: here \
            server_generation_throughput, beside output_throughput, which is the same by the client. \
            Tokens that were written for requests that failed are in the server's number and not in \
            the client's, so a failing deployment can look fast by it.",
        see: &["server_generation_throughput", "output_throughput", "error_rate"],
    },
    Word {
        name: "energy",
        aliases: &["joules", "watts", "power", "energy per token", "kWh"],
        meaning: "What the server's GPUs took from the first request sent to the last one ended, by \
            their own counters or as the area under their power. GPUs that did nothing are left out; \
            processors, memory, fans and the network are not in it, so the bill is larger. It is \
            divided by output tokens of ok requests: what prompts and failures cost is in it.",
        see: &["energy_per_output_token", "gpu_power"],
    },
    Word {
        name: "valid",
        aliases: &["verdict", "degraded", "invalid"],
        meaning: "Whether a run's numbers are about the server. Invalid: they are not, and the \
            program exits with 4. Degraded: they hold with a reservation, which the warnings name. \
            Valid: nothing was found against them. The worst warning decides.",
        see: &["steady state", "Little's law"],
    },
    Word {
        name: "undecided",
        aliases: &["requirement", "require", "pass", "fail", "threshold"],
        meaning: "A requirement passes when the whole interval keeps its limit, and fails when the \
            whole interval breaks it. It is undecided when the interval straddles the limit, when \
            a percentile is not certified, when the value is missing, or when the run is invalid. \
            What could not be shown counts as not met, unless --undecided pass says otherwise.",
        see: &["interval", "certified", "promise"],
    },
    Word {
        name: "promise",
        aliases: &["slo", "service level objective", "met", "missed"],
        meaning: "What --slo says of the service. `ttft<500ms` is promised of each request, and \
            gives goodput and attainment; `ttft.p99<500ms` of the run, and is met, missed or \
            undecided.",
        see: &["goodput", "attainment", "undecided"],
    },
    Word {
        name: "steady state",
        aliases: &["steady", "steady window", "settled", "warm-up", "mser", "mser-5"],
        meaning: "The part of a run in which the load on the server no longer changes: after the \
            beginning that MSER-5 cuts off and before the last requests drain. A trend test looks \
            at the rest, because a slow climb has no level to settle at; then the run never \
            settled, and a longer one or a lower load is needed.",
        see: &["valid", "Little's law"],
    },
    Word {
        name: "Little's law",
        aliases: &["little", "littles law"],
        meaning: "Requests in flight = requests per second × seconds that each takes, in any \
            system that keeps what comes in. A run whose three numbers disagree has lost \
            requests, or records that make no sense.",
        see: &["concurrency_mean", "request_throughput", "e2e"],
    },
    Word {
        name: "open loop",
        aliases: &["open", "closed loop", "closed", "coordinated omission"],
        meaning: "An open loop sends at the moments of its schedule, whatever the server does; a \
            closed loop keeps a number in flight and sends when an answer is in. On an open loop \
            latency counts from the schedule, so that a slow server cannot hide a queue behind \
            requests that were sent late; on a closed one there is no schedule but the answers.",
        see: &["capped-open", "ttft_schedule"],
    },
    Word {
        name: "capped-open",
        aliases: &["capped open", "cap", "max-concurrency"],
        meaning: "A rate with a limit on how many are in flight: neither an open nor a closed \
            loop. Below the limit it is open; at the limit it waits in the client, and the page \
            says what share of the requests did. Latency from the schedule has that wait in it, \
            latency from sending does not.",
        see: &["open loop", "client_queue"],
    },
    Word {
        name: "arrival",
        aliases: &["arrivals", "output event", "event", "chunk"],
        meaning: "The output events that one read of the socket brought. They share one moment, \
            because nothing tells when each of them came; how far back they may lie is their \
            width. An event is output when it carries text, reasoning, a tool call or a marked \
            token, and never when it only names a role, reports usage or keeps a line alive.",
        see: &["arrival_width", "icl", "itl"],
    },
    Word {
        name: "fluidity",
        aliases: &["fluidity index", "fluidity_index"],
        meaning: "The share of tokens that came before a reader needed them. The first is due \
            after the promised TTFT and each later one the promised TPOT after the one before; \
            time that a token saves is kept for those after it, and a missed deadline starts \
            anew. Unlike a mean, it sees one long stall.",
        see: &["tpot", "promise"],
    },
    Word {
        name: "knee",
        aliases: &["saturation", "saturation knee", "kneedle"],
        meaning: "The level of a sweep past which more load brings little more throughput and \
            mostly more waiting. Kneedle finds it on the curve of throughput; its interval comes \
            from doing the same on sets drawn again from the repeated runs.",
        see: &["sweet spot", "universal scalability"],
    },
    Word {
        name: "sweet spot",
        aliases: &["interactive sweet spot"],
        meaning: "Of the levels whose TTFT p99 and TPOT p99 both lie within twice the smallest of \
            the sweep, the one with the highest throughput per user; on a tie the lower one.",
        see: &["knee", "per_user_throughput"],
    },
    Word {
        name: "universal scalability",
        aliases: &["usl", "universal scalability law", "contention", "coherence"],
        meaning: "A fit of throughput X to concurrency N: X = λN / (1 + σ(N − 1) + κN(N − 1)). λ \
            is the throughput of one, σ what must wait in line, κ what the many cost each other. \
            There is a peak only where κ is surely not zero.",
        see: &["knee"],
    },
    Word {
        name: "coefficient of variation",
        aliases: &["cov", "cv", "repeatability"],
        meaning: "The standard deviation between repeated runs over their mean: how far the next \
            run may be expected from this one, in per cent.",
        see: &["interval"],
    },
    Word {
        name: "fingerprint",
        aliases: &["workload.fingerprint", "plan.fingerprint", "comparable"],
        meaning: "The workload's fingerprint names what is asked, without the seed: runs are \
            comparable when it is equal. The plan's fingerprint has the seed in it: runs with the \
            same one sent the same requests at the same moments.",
        see: &["interval"],
    },
];

/// One name of one tool.
#[derive(Clone, Copy, Debug)]
pub struct Foreign {
    pub tool: &'static str,
    /// As the tool writes it.
    pub written: &'static str,
    /// The metric here that is nearest; `None` where there is none.
    pub metric: Option<&'static Metric>,
    pub meaning: &'static str,
}

impl Foreign {
    /// All tools that have this name, which is plain.
    fn named(name: &str) -> Vec<&'static Self> {
        let is_named = |it: &&Self| {
            let written = plain(it.written);
            written == name || without_statistic(without_unit(&written)) == name
        };
        FOREIGN.iter().filter(is_named).collect()
    }

    /// All names of the tool with this plain name, or with one that begins so: `vllm`.
    fn of_tool(name: &str) -> Vec<&'static Self> {
        let is_of = |it: &&Self| {
            let tool = plain(it.tool);
            tool.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        FOREIGN.iter().filter(is_of).collect()
    }

    fn names() -> impl Iterator<Item = &'static str> {
        FOREIGN.iter().map(|it| it.written)
    }
}

const fn foreign(
    tool: &'static str,
    written: &'static str,
    metric: &'static Metric,
    meaning: &'static str,
) -> Foreign {
    Foreign { tool, written, metric: Some(metric), meaning }
}

static FOREIGN: &[Foreign] = &[
    foreign(
        VLLM,
        "mean_ttft_ms",
        &metric::TTFT,
        "to the first chunk with choices, from the moment that the concurrency limit let it go",
    ),
    foreign(
        VLLM,
        "mean_tpot_ms",
        &metric::TPOT,
        "(E2EL − TTFT) / (output tokens − 1) of each request with more than one token",
    ),
    foreign(
        VLLM,
        "mean_itl_ms",
        &metric::ICL,
        "gaps between chunks of all requests in one pool, however many tokens a chunk carries",
    ),
    foreign(
        VLLM,
        "mean_e2el_ms",
        &metric::E2E,
        "to the last chunk, on chat to the last message of any kind",
    ),
    foreign(
        VLLM,
        "request_goodput",
        &metric::GOODPUT,
        "requests within all --goodput limits over the whole wall time",
    ),
    foreign(
        VLLM,
        "Output token throughput (tok/s)",
        &metric::OUTPUT_THROUGHPUT,
        "output tokens of successful requests over the whole wall time",
    ),
    foreign(
        VLLM,
        "total_token_throughput",
        &metric::TOTAL_THROUGHPUT,
        "input and output tokens of successful requests over the whole wall time",
    ),
    foreign(
        VLLM,
        "Peak output token throughput (tok/s)",
        &metric::PEAK_OUTPUT_THROUGHPUT,
        "the most chunks, not tokens, in a second of a fixed grid",
    ),
    foreign(
        VLLM,
        "max_output_tokens_per_s",
        &metric::PEAK_OUTPUT_THROUGHPUT,
        "the most chunks, not tokens, in a second of a fixed grid",
    ),
    foreign(
        VLLM,
        "Peak concurrent requests",
        &metric::CONCURRENCY_PEAK,
        "requests that touched one second of a fixed grid, so short ones add up",
    ),
    foreign(
        VLLM,
        "max_concurrent_requests",
        &metric::CONCURRENCY_PEAK,
        "requests that touched one second of a fixed grid, so short ones add up",
    ),
    foreign(
        VLLM,
        "mean_client_queue_time_ms",
        &metric::CLIENT_QUEUE,
        "the wait for the concurrency limit, in newer versions",
    ),
    foreign(
        AIPERF,
        "time_to_first_token",
        &metric::TTFT,
        "to the first response with content, from the start of the request",
    ),
    foreign(
        GUIDELLM,
        "time_to_first_token_ms",
        &metric::TTFT,
        "to the first token, from the start of the request",
    ),
    foreign(
        INFERENCE_PERF,
        "time_to_first_token",
        &metric::TTFT,
        "to the first output that is not empty, from sending",
    ),
    foreign(
        AIPERF,
        "time_to_first_output_token",
        &metric::TTFC,
        "to the first token that is no reasoning",
    ),
    foreign(
        GUIDELLM,
        "time_to_first_output_token_ms",
        &metric::TTFC,
        "to the first content token, behind reasoning and tool tokens",
    ),
    foreign(
        AIPERF,
        "inter_token_latency",
        &metric::TPOT,
        "(request latency − TTFT) / (output tokens − 1): one mean per request, not gaps",
    ),
    foreign(
        GENAI_PERF,
        "inter_token_latency",
        &metric::TPOT,
        "a mean per request that leaves the TTFT out; AIPerf is its successor",
    ),
    foreign(
        GUIDELLM,
        "inter_token_latency_ms",
        &metric::TPOT,
        "the mean time between tokens of a request, without the first",
    ),
    foreign(
        INFERENCE_PERF,
        "inter_token_latency",
        &metric::ITL,
        "the time between tokens within a request",
    ),
    foreign(
        AIPERF,
        "inter_chunk_latency",
        &metric::ICL,
        "gaps between consecutive responses with content",
    ),
    foreign(
        GUIDELLM,
        "time_per_output_token_ms",
        &metric::TPOT,
        "the mean time per token with the first token counted, so it differs from TPOT elsewhere",
    ),
    foreign(
        INFERENCE_PERF,
        "time_per_output_token",
        &metric::TPOT,
        "(latency − TTFT) / (output tokens − 1)",
    ),
    Foreign {
        tool: INFERENCE_PERF,
        written: "normalized_time_per_output_token",
        metric: None,
        meaning: "latency / output tokens: the wait for the first token is spread over all of \
            them, so it depends on how long answers are; e2e and tpot tell the two apart here",
    },
    foreign(
        AIPERF,
        "request_latency",
        &metric::E2E,
        "from the start of the request to its last response with content",
    ),
    foreign(
        GUIDELLM,
        "request_latency",
        &metric::E2E,
        "from the start of a request to its end, in seconds",
    ),
    foreign(
        INFERENCE_PERF,
        "request_latency",
        &metric::E2E,
        "from sending to completion, in seconds",
    ),
    foreign(
        AIPERF,
        "effective_latency",
        &metric::E2E_SCHEDULE,
        "from the issue of a request's credit to its end, waiting in the client included",
    ),
    foreign(
        GUIDELLM,
        "request_scheduled_latency",
        &metric::E2E_SCHEDULE,
        "from the targeted start to the end",
    ),
    foreign(
        GUIDELLM,
        "request_dispatch_delay",
        &metric::CLIENT_QUEUE,
        "start − targeted start: the wait for a slot and the client's own delay together; here \
         client_queue and send_lag",
    ),
    foreign(
        AIPERF,
        "output_token_throughput",
        &metric::OUTPUT_THROUGHPUT,
        "output and reasoning tokens / duration",
    ),
    foreign(
        AIPERF,
        "output_token_throughput_per_user",
        &metric::TG,
        "1 / inter token latency of each request: without the wait for the first token, and so no \
         share of the throughput, which per_user_throughput is here",
    ),
    foreign(
        AIPERF,
        "prefill_throughput_per_user",
        &metric::PP,
        "input tokens / TTFT of each request; here a ratio of means",
    ),
    foreign(
        GUIDELLM,
        "output_tokens_per_second",
        &metric::OUTPUT_THROUGHPUT,
        "tokens inside of its measurement window over all requests",
    ),
    foreign(
        GUIDELLM,
        "requests_per_second",
        &metric::REQUEST_THROUGHPUT,
        "requests inside of its measurement window per second",
    ),
    foreign(
        GUIDELLM,
        "request_concurrency",
        &metric::CONCURRENCY_MEAN,
        "requests that are being worked on at once",
    ),
    foreign(
        AIPERF,
        "good_request_fraction",
        &metric::ATTAINMENT,
        "good requests of all attempted ones; here of all scheduled ones",
    ),
    foreign(
        GUIDELLM,
        "slo_attainment",
        &metric::ATTAINMENT,
        "leaves out requests that the end cut off and those that cannot be evaluated",
    ),
    foreign(
        INFERENCE_PERF,
        "Goodput %",
        &metric::ATTAINMENT,
        "good requests of the successful ones, so that failures do not lower it",
    ),
];

#[cfg(test)]
mod tests;
