//! Documentation that is generated from the tables of the code, so that it cannot drift.

use std::fmt::Write;

use inferometer_analysis::{Better, CHECKS, METRICS, Metric, Percentile, Shape, WORDS};
use inferometer_model::Outcome;

use crate::escape;

/// The Markdown of `docs/metrics.md`.
pub fn metrics_markdown() -> String {
    let mut text = String::from(
        "# Metrics\n\n\
         Generated from the metric table in `crates/analysis/src/metric/`: change that, then \
         run `cargo xtask docs`.\n\n\
         Latencies are over `ok` requests. *Sent* is when a request's first byte was written, \
         *intended* when the plan wanted it to leave. A value that does not exist is `null` with a \
         reason, never zero.\n\n\
         | key | what it is | unit | better |\n|---|---|---|---|\n",
    );
    metric_rows(&mut text);
    text.push_str(
        "\nThe fluidity index needs two promises of each request: the first token is due after the \
         promised TTFT (on an open loop from schedule), each later one the promised TPOT after the \
         one before it. Time that a token saves is kept for those after it; after a miss the count \
         begins anew. Tokens of one arrival come at one moment. A request that failed, or was due \
         and not sent, misses as many tokens as the answers that came have on average, or as many as \
         were asked for where the length is forced.\n\n\
         Intervals are of 95 % and come from the run alone: each request is one cluster, in the \
         order in which requests were sent, so values that resemble their neighbours count as \
         fewer (the effective n). Throughputs vary over 10 to 100 equal parts of the window, none \
         shorter than a request on average; fewer give no interval. Shares have Wilson's. What \
         changes between runs, such as a restart, no interval of one run can know.\n\n\
         Percentiles are exact: all values are kept, sorted, and interpolated linearly. One is \
         certified when both its samples and their effective number are at least this many; below \
         that it is shown and marked, and has no interval:\n\n\
         | percentile | samples |\n|---|---|\n",
    );
    for percentile in Percentile::ALL {
        let _ = writeln!(text, "| {} | {} |", percentile.name(), percentile.certified_from());
    }
    text.push_str(
        "\n## Outcomes\n\nEvery scheduled request ends in exactly one of these.\n\n\
         | key | meaning |\n|---|---|\n",
    );
    for outcome in Outcome::all() {
        let _ = writeln!(text, "| `{}` | {} |", outcome.key(), outcome.help());
    }
    text += &explained_metrics();
    text += &words();
    text
}

fn metric_rows(text: &mut String) {
    for metric in METRICS {
        let better = match metric.better {
            Better::Lower => "lower",
            Better::Higher => "higher",
            Better::Neither => "–",
        };
        let shape = match metric.shape() {
            Shape::Distribution => "distribution",
            Shape::Scalar => "one value",
        };
        let key = metric.key();
        let (help, unit) = (metric.definition, metric.unit.name());
        let _ = writeln!(text, "| `{key}` | {help} ({shape}) | {unit} | {better} |");
    }
}

/// What each metric means in more words, and what other tools mean by it.
fn explained_metrics() -> String {
    let mut text = String::from(
        "\n## In more words\n\n`inferometer explain METRIC` says the same in a terminal. What other \
         tools do was read from their documentation and source, and may change with their \
         versions.\n",
    );
    for metric in METRICS {
        let _ = write!(
            text,
            "\n### {} (`{}`)\n\n- formula: {}\n- null when: {}\n- interval: {}\n",
            escape::markdown(metric.title),
            metric.name,
            escape::markdown(metric.formula),
            escape::markdown(metric.null_when),
            escape::markdown(metric.interval),
        );
        for (tool, meaning) in metric.elsewhere {
            let _ = writeln!(text, "- {tool}: {}", escape::markdown(meaning));
        }
    }
    text
}

fn words() -> String {
    let mut text = String::from("\n## Words\n\n");
    for word in WORDS.iter().filter(|word| Metric::named(word.name).is_none()) {
        let _ = writeln!(text, "- **{}**: {}", word.name, escape::markdown(word.meaning));
    }
    text
}

/// The Markdown of `docs/validity.md`.
pub fn validity_markdown() -> String {
    let mut text = String::from(VALIDITY_HEAD);
    for check in CHECKS {
        let (key, title, help) = (check.kind.key(), check.title, check.help);
        let unit = check.figure.map_or("", |figure| figure.unit);
        let limit = |limit: Option<f64>| {
            limit.map_or_else(|| "–".to_owned(), |limit| format!("{limit} {unit}"))
        };
        let limits = check.figure.and_then(|figure| figure.limits);
        let (degraded, invalid) = (
            limit(limits.and_then(|limits| limits.degraded)),
            limit(limits.and_then(|limits| limits.invalid)),
        );
        let _ = writeln!(text, "| `{key}` | {title} | {help} | {degraded} | {invalid} |");
    }
    text + VALIDITY_TAIL
}

const VALIDITY_HEAD: &str = "\
# When a run may be trusted

Generated from the table of checks in `crates/analysis/src/judge/checks.rs`: change that, then run
`cargo xtask docs`.

Every summary has a ledger, `checks`: what was asked of the run before its numbers are believed. A
check is

- `passed`, with the figure that was judged;
- `noted`: good to know, and nothing more;
- `degraded`: the numbers hold with a reservation;
- `invalid`: the numbers are not about the server;
- `not_checked`: there was nothing to look at, and `finding` says why. In a simulation there is no
  client to be checked.

Each warning belongs to exactly one check, which is as grave as the gravest of its warnings and
carries its remedy.

**The verdict** follows from the checks alone: invalid if any is `invalid`, otherwise degraded if any
is `degraded`, otherwise valid. `noted` and `not_checked` change nothing. Too few samples for a
percentile withhold its certificate and change no verdict.

| key | question | what is looked at | degraded above | invalid above |
|---|---|---|---|---|
";

const VALIDITY_TAIL: &str = "
## Steady state

Metrics are over the `whole` window, first sent to last ended. `steady` has the same run between its
warm-up and its drain:

- Requests in flight and output tokens are averaged over 200 even steps of time, and TTFT over as many
  groups of requests in the order of sending. MSER-5 cuts each series where the mean of the rest has
  the smallest error; the window begins after the latest cut.
- It ends where the drain begins: at the last request of an open loop, and when the slots of a closed
  loop have nothing new to take. Endings play no part, so slow requests are not left out.
- Latencies are of the ok requests *sent* inside the window; throughputs of what *came* inside it, with
  intervals by the same rule as those of the whole run.

`never_settled` is an answer. On an open loop it means that requests in flight rise in the second half
by more than chance arrivals make of it (twice the root of their number), which degrades the run: its
latencies are about how long it ran. Or neither requests in flight nor TTFT come to a level, which is
noted, as is a closed loop whose output does not: its load follows the server, so a drift is a finding
about the server. Below 60 requests before the drain, or 100 on an open loop, a run is `too_short` to
tell; a ramp, a trace, or everything at once is `not_judged`.

## Delivered load

On an open loop the rate that left is compared with the planned one, over all requests that were due: one
that never left lowers it (`unsent`), and is judged under `errors` or `client-capacity` besides, so it
degrades here and no more. How the counts of requests vary over 0.1, 1 and 10 seconds (variance over
mean, the index of dispersion) is compared with how they were planned to. The plan itself is tested
against the process that was asked for: Poisson and gamma gaps by Kolmogorov and Smirnov, which chance
fails once in a million runs, and constant ones each by itself. A ramp or a trace has no one law to be
tested against, and `fit_reason` says so.

On a closed loop it is the slots in use, from when each could have taken its first request to when there
is nothing new to take; from 100 requests, and ten for each slot, on. The last turns of conversations
are part of the drain.

## Little's law

Requests in flight are arrivals times the time that each stays. Both sides come from the stamps of the
same records, so a sound run passes by arithmetic; they part when requests were lost in a crash, end
before they begin, or lie outside of the run. A stamp that is wrong does not show here. The independent
witness is the server: where it has gauges of running and waiting requests, their mean is compared with
ours, and noted when it is off by more than a quarter, and a request, and what chance makes of so few
scrapes. Others on the server, a proxy that holds requests back, or metrics of another server show so.
";
