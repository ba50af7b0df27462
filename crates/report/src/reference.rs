//! Documentation that is generated from the tables of the code, so that it cannot drift.

use std::fmt::Write;

use inferometer_analysis::{Better, METRICS, Metric, Percentile, Shape, WORDS};
use inferometer_model::Outcome;

use crate::escape;

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
    metric_rows(&mut text);
    text.push_str(
        "\nPercentiles are exact: all values are kept, sorted, and interpolated linearly. One is \
         certified from this many samples on; below that it is shown and marked:\n\n\
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
        let (help, unit) = (metric.help, metric.unit.name());
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
        let Some(explained) = metric.explained() else { continue };
        let _ = write!(
            text,
            "\n### {} (`{}`)\n\n- formula: {}\n- null when: {}\n- interval: {}\n",
            escape::markdown(metric.title),
            metric.name,
            escape::markdown(explained.formula),
            escape::markdown(explained.null_when),
            escape::markdown(explained.doubt),
        );
        for (tool, meaning) in explained.elsewhere {
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
