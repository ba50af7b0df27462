//! Markdown for the summary of a CI step, as GitHub shows it below a job.

use std::fmt::Write;

use inferometer_analysis::{MetricValue, Percentile, RequirementVerdict, Severity, Summary, Unit};
use inferometer_model::Outcome;

use crate::escape::markdown;
use crate::load;
use crate::number::{NOTHING, count, figure, percent};
use crate::requirements::{Judgement, interval, meaning, value};

/// Verdict, requirements, headline figures and warnings. Ends with an empty line, so that what is
/// appended after it stands alone.
pub fn step_summary(judgement: &Judgement<'_>) -> String {
    let mut text = String::new();
    match judgement.runs {
        [only] => {
            text += &head(only);
            text += &requirements(judgement);
            text += &figures(only);
        }
        several => {
            let _ = writeln!(text, "## Inferometer: {} runs\n", several.len());
            text += &requirements(judgement);
            for run in several {
                text += &head(run).replacen("## ", "### ", 1);
                text += &figures(run);
            }
        }
    }
    text
}

fn head(summary: &Summary) -> String {
    let run = &summary.run;
    let simulated =
        if run.simulated.is_some() { ", simulated: no server was measured" } else { "" };
    let target = match (run.embedded, &run.simulated) {
        (_, Some(_)) => "the simulated engine",
        (true, None) => "the embedded engine",
        (false, None) => run.target.as_str(),
    };
    let unit = match summary.workload.turns {
        Some(_) => load::Unit::Conversations,
        None => load::Unit::Requests,
    };
    let (shape, extent) = (load::shape(&run.load, unit), load::extent(&run.extent));
    let partial = if run.partial { ", partial" } else { "" };
    format!(
        "## Inferometer: {}{simulated}\n\n\
         {} of {} requests ok in {} s{partial}. {} of {} at {}; {}, {}; run {}.\n\n",
        summary.verdict,
        count(summary.count(Outcome::Ok)),
        count(summary.scheduled.saturating_sub(summary.time_over)),
        figure(summary.window.duration_s),
        run.api,
        markdown(&run.model),
        markdown(target),
        markdown(&shape),
        markdown(&extent),
        markdown(&run.id),
    )
}

fn requirements(judgement: &Judgement<'_>) -> String {
    if judgement.requirements.is_empty() {
        return String::new();
    }
    let mut text =
        String::from("| | requirement | value | 95 % interval | why |\n|---|---|---:|---:|---|\n");
    for found in judgement.requirements {
        let mark = match found.verdict {
            RequirementVerdict::Pass => "✅ pass",
            RequirementVerdict::Fail => "❌ fail",
            RequirementVerdict::Undecided => "❔ undecided",
        };
        let why = [meaning(found).map(str::to_owned), found.reason.clone()];
        let why: Vec<String> = why.into_iter().flatten().collect();
        let cells = [
            found.requirement.clone(),
            value(found),
            interval(found).unwrap_or_else(|| NOTHING.to_owned()),
            why.join("; "),
        ];
        let cells: Vec<String> = cells.iter().map(|cell| markdown(cell)).collect();
        let _ = writeln!(text, "| {mark} | {} |", cells.join(" | "));
    }
    text + "\n"
}

/// The headline figures of this kind of load, then the reasons to doubt them.
fn figures(summary: &Summary) -> String {
    let open = summary.run.load.is_open();
    let mut latencies = String::new();
    let mut numbers = String::new();
    for (metric, value) in summary.metrics.iter() {
        let headline = metric.headline;
        let shown = if open { headline.on_open_loop() } else { headline.on_closed_loop() };
        if !shown {
            continue;
        }
        match value {
            MetricValue::Distribution(found) => {
                let at = |percentile| {
                    let known = found.percentile(percentile).is_some();
                    let mark = if known && !found.is_certified(percentile) { "\\~" } else { "" };
                    format!("{mark}{}", figure(found.percentile(percentile)))
                };
                let _ = writeln!(
                    latencies,
                    "| {} | {} | {} | {} | {} | {} |",
                    metric.title,
                    figure(found.mean),
                    at(Percentile::P50),
                    at(Percentile::P90),
                    at(Percentile::P99),
                    count(found.n)
                );
            }
            MetricValue::Scalar(found) if metric.unit == Unit::Share => {
                let _ = writeln!(numbers, "| {} | {} | |", metric.title, percent(found.value));
            }
            MetricValue::Scalar(found) => {
                let (value, unit) = (figure(found.value), metric.unit.name());
                let _ = writeln!(numbers, "| {} | {value} | {unit} |", metric.title);
            }
        }
    }
    let heads = "| latency (ms) | mean | p50 | p90 | p99 | n |\n|---|---:|---:|---:|---:|---:|";
    format!(
        "{heads}\n{latencies}\n\\~ too few values to certify it\n\n\
         | | value | |\n|---|---:|---|\n{numbers}\n{}",
        warnings(summary)
    )
}

fn warnings(summary: &Summary) -> String {
    let mut text = String::new();
    for notice in &summary.warnings {
        let word = match notice.severity {
            Severity::Note => "note",
            Severity::Degraded => "degraded",
            Severity::Invalid => "invalid",
        };
        let (said, remedy) = (markdown(&notice.text), markdown(&notice.remedy));
        let _ = writeln!(text, "- **{word}**: {said} *({remedy})*");
    }
    if text.is_empty() { text } else { text + "\n" }
}
