//! Documentation that is generated from the tables of the code, so that it cannot drift.

use std::fmt::Write;

use inferometer_analysis::{Better, METRICS, Percentile, Shape};
use inferometer_model::Outcome;

/// The Markdown of `docs/metrics.md`.
pub fn metrics_markdown() -> String {
    let mut text = String::from(
        "# Metrics\n\n\
         Generated from the metric table in `crates/analysis/src/metric/table.rs`: change that, then \
         run `cargo xtask docs`.\n\n\
         Latencies are over `ok` requests. *Sent* is when a request's first byte was written, \
         *intended* when the plan wanted it to leave. A value that does not exist is `null` with a \
         reason, never zero.\n\n\
         | key | what it is | unit | better |\n|---|---|---|---|\n",
    );
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
        let (help, unit) = (metric.help, metric.unit.name());
        let _ = writeln!(text, "| `{key}` | {help} ({shape}) | {unit} | {better} |");
    }
    text.push_str(
        "\nThe fluidity index needs two promises of each request: the first token is due after the \
         promised TTFT (on an open loop from schedule), each later one the promised TPOT after the \
         one before it. Time that a token saves is kept for those after it; after a miss the count \
         begins anew. Tokens of one arrival come at one moment. A request that failed, or was due \
         and not sent, misses all that it was to bring.\n\n\
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
    for outcome in Outcome::ALL {
        let _ = writeln!(text, "| `{}` | {} |", outcome.key(), outcome.help());
    }
    text
}
