//! The words that pages use and that are no metrics.

use super::plain;

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
    pub(super) fn named(name: &str) -> Option<&'static Self> {
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
