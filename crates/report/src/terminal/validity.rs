//! Whether to believe it: the steady part of the run beside the whole, and the checks.

use std::fmt::Write;

use inferometer_analysis::{
    CheckState, Distribution, Interval, Percentile, Statistic, SteadyFigures, SteadyKind, Summary,
    metric,
};

use super::sections;
use super::style::{Ink, Style};
use crate::escape::terminal;
use crate::fmt::{NOTHING, count, number};
use crate::lines::hanging;

const NAME_WIDTH: usize = 24;
const FIGURE_WIDTH: usize = 10;

/// The steady figures beside the whole ones, or in a line why there are none.
pub(super) fn steady(summary: &Summary, style: Style) -> String {
    let steady = &summary.steady;
    let title = style.paint(Ink::Bold, "steady state") + "\n";
    let (Some(window), Some(figures)) = (&steady.window, &steady.figures) else {
        let word = match steady.state {
            SteadyKind::NeverSettled => "never settled",
            SteadyKind::TooShort => "too short to tell",
            SteadyKind::Settled | SteadyKind::NotJudged => "not judged",
        };
        let reason = terminal(steady.reason.as_deref().unwrap_or(NOTHING));
        return title + &hanging("  ", 2, &format!("{word}: {reason}"));
    };
    let s = |ms: Option<f64>| number(ms.map(|ms| ms / 1e3));
    let mut text = title;
    let _ = writeln!(
        text,
        "  from {} s to {} s, {} ok requests sent; the figures above are of the whole run",
        s(window.from_ms),
        s(window.to_ms),
        count(figures.requests),
    );
    let head = format!("{:NAME_WIDTH$}{:>FIGURE_WIDTH$}{:>FIGURE_WIDTH$}", "", "steady", "whole");
    text += &(style.paint(Ink::Dim, &format!("  {head}")) + "\n");
    text + &beside(summary, figures)
}

fn beside(summary: &Summary, steady: &SteadyFigures) -> String {
    let mut text = String::new();
    let mut row = |name: &str, steady: Option<f64>, whole: Option<f64>, unit: &str| {
        if steady.is_some() {
            let (steady, whole) = (number(steady), number(whole));
            let _ = writeln!(
                text,
                "  {name:<NAME_WIDTH$}{steady:>FIGURE_WIDTH$}{whole:>FIGURE_WIDTH$} {unit}"
            );
        }
    };
    let doubt = |interval: Option<Interval>| {
        interval.map_or_else(String::new, |interval| {
            format!("  ({} steady)", sections::range(interval))
        })
    };
    let intervals = steady.intervals;
    for (metric, title, value, interval) in [
        (
            &metric::REQUEST_THROUGHPUT,
            "Request throughput",
            steady.request_throughput,
            intervals.request_throughput,
        ),
        (
            &metric::OUTPUT_THROUGHPUT,
            "Output throughput",
            steady.output_throughput,
            intervals.output_throughput,
        ),
    ] {
        if let Some(whole) = summary.metrics.scalar(metric) {
            row(title, value, whole.value, &format!("{}{}", whole.unit, doubt(interval)));
        }
    }
    for metric in [summary.latency_origin().ttft(), &metric::TPOT] {
        let Some(own) = steady.latencies.get(metric) else { continue };
        let whole = summary.metrics.distribution(metric);
        for percentile in [Percentile::P50, Percentile::P99] {
            // What is not certified here judges nothing.
            let sure = |distribution: &Distribution| {
                distribution
                    .percentile(percentile)
                    .filter(|_| distribution.is_certified(percentile))
            };
            let interval = own.intervals.get(Statistic::Percentile(percentile));
            let title = format!("{} {}", metric.title, percentile.name());
            row(&title, sure(own), whole.and_then(sure), &format!("ms{}", doubt(interval)));
        }
    }
    text
}

/// How many checks came to what, then those that did not pass, each with its remedy.
pub(super) fn checks(summary: &Summary, style: Style) -> String {
    let total = summary.checks.len();
    if total == 0 {
        return sections::warnings(summary, style);
    }
    let tally: Vec<String> = [
        (CheckState::Passed, "passed"),
        (CheckState::Noted, "noted"),
        (CheckState::Degraded, "degraded"),
        (CheckState::Invalid, "invalid"),
        (CheckState::NotChecked, "not checked"),
    ]
    .into_iter()
    .filter_map(|(state, word)| {
        let number = summary.checks.iter().filter(|check| check.state == state).count();
        (0 < number).then(|| format!("{number} {word}"))
    })
    .collect();
    let head = style.paint(Ink::Bold, &format!("{total} checks"));
    format!("{head}: {}\n", tally.join(", ")) + &sections::warnings(summary, style)
}
