//! Markdown for the summary of a CI step, as GitHub shows it below a job.

use std::fmt::Write;

use inferometer_analysis::set::AcrossRuns;
use inferometer_analysis::tool_result::ToolResult;
use inferometer_analysis::{
    Interval, Metric, MetricValue, Percentile, Quantity, Severity, Statistic, Summary,
    ThresholdVerdict, Unit, Verdict, Warning,
};
use inferometer_model::Outcome;

use crate::escape::markdown;
use crate::fmt::load;
use crate::fmt::{NOTHING, count, number, percent};
use crate::requirements::{Judgement, interval, meaning, value};

/// Verdict, requirements, headline figures and warnings. Ends with an empty line, so that what is
/// appended after it stands alone.
pub fn step_summary(judgement: &Judgement<'_>) -> String {
    let mut text = String::new();
    match judgement.runs {
        [] => {
            text += &head_imported(judgement.results);
            text += &requirements(judgement);
        }
        [only] => {
            text += &head(only);
            text += &requirements(judgement);
            text += &figures(only);
        }
        several => {
            text += &head_across(several);
            text += &requirements(judgement);
            text += &figures_across(several);
        }
    }
    text
}

/// What was imported: it is judged by what its files say, and has no verdict of its own.
fn head_imported(results: &[ToolResult]) -> String {
    let mut tools: Vec<&str> = results.iter().map(|sheet| sheet.source.tool.told()).collect();
    tools.dedup();
    let noun = if results.len() == 1 { "result" } else { "results" };
    let model =
        results.first().and_then(|sheet| sheet.model.as_deref()).unwrap_or("no model named");
    let load = results.first().map_or_else(String::new, |sheet| format!(", {}", sheet.level()));
    format!(
        "### Imported: {} {noun} of {}\n\n{}{}\n\n",
        count(results.len() as u64),
        markdown(&tools.join(", ")),
        markdown(model),
        markdown(&load),
    )
}

/// The verdict of each, in numbers, and what all of them measured.
fn head_across(runs: &[Summary]) -> String {
    let of = |verdict| runs.iter().filter(|run| run.verdict == verdict).count();
    let verdicts = [Verdict::Valid, Verdict::Degraded, Verdict::Invalid]
        .map(|verdict| (of(verdict), verdict))
        .into_iter()
        .filter(|(number, _)| 0 < *number)
        .map(|(number, verdict)| format!("{number} {verdict}"))
        .collect::<Vec<_>>()
        .join(", ");
    let ok: u64 = runs.iter().map(|run| run.count(Outcome::Ok)).sum();
    let sent: u64 = runs.iter().map(|run| run.scheduled.saturating_sub(run.time_over)).sum();
    let (simulated, asked) =
        runs.first().map_or((String::new(), String::new()), |run| (simulated(run), asked(run)));
    format!(
        "## Inferometer: {} runs, {verdicts}{simulated}\n\n{} of {} requests ok. {asked}.\n\n",
        runs.len(),
        count(ok),
        count(sent),
    )
}

fn simulated(summary: &Summary) -> String {
    let is_simulated = summary.run.simulated.is_some();
    if is_simulated { ", simulated: no server was measured" } else { "" }.to_owned()
}

fn head(summary: &Summary) -> String {
    let partial = if summary.run.partial { ", partial" } else { "" };
    format!(
        "## Inferometer: {}{}\n\n{} of {} requests ok in {} s{partial}. {}; run {}.\n\n",
        summary.verdict,
        simulated(summary),
        count(summary.count(Outcome::Ok)),
        count(summary.scheduled.saturating_sub(summary.time_over)),
        number(summary.window.duration_s),
        asked(summary),
        markdown(&summary.run.id),
    )
}

/// What was asked of whom.
fn asked(summary: &Summary) -> String {
    let run = &summary.run;
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
    format!(
        "{} of {} at {}; {}, {}",
        run.api,
        markdown(&run.model),
        markdown(target),
        markdown(&shape),
        markdown(&extent),
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
            ThresholdVerdict::Met => "✅ pass",
            ThresholdVerdict::Missed => "❌ fail",
            ThresholdVerdict::Undecided => "❔ undecided",
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

/// Mean and interval between the runs that say something of the server, a value from each, then
/// every reason to doubt them once.
fn figures_across(runs: &[Summary]) -> String {
    let counted: Vec<&Summary> =
        runs.iter().filter(|run| run.verdict != Verdict::Invalid).collect();
    let Some(first) = counted.first() else { return warnings_across(runs) };
    let mut rows = String::new();
    for (metric, _) in first.metrics.iter().filter(|(metric, _)| is_headline(metric, first)) {
        let statistics = [Statistic::Mean, Statistic::Percentile(Percentile::P99)];
        for quantity in metric.quantities(&statistics) {
            let values: Vec<_> = counted.iter().map(|run| quantity.value_in(run)).collect();
            rows += &row_across(&quantity, &AcrossRuns::of(&values));
        }
    }
    format!(
        "| metric | mean of {} runs | 95 % between runs | |\n|---|---:|---:|---|\n{rows}\n\
         \\~ too few values to certify it\n\n{}",
        counted.len(),
        warnings_across(runs)
    )
}

fn row_across(quantity: &Quantity, across: &AcrossRuns) -> String {
    let metric = quantity.metric();
    let is_share = metric.unit == Unit::Share;
    let shown = |value| if is_share { percent(value) } else { number(value) };
    // Student's interval does not know that no number is below nothing, and no share above all.
    let most = if is_share { 1.0 } else { f64::MAX };
    let between = across.interval.map_or_else(
        || NOTHING.to_owned(),
        |Interval { low, high }| {
            let [low, high] = [low, high].map(|end| shown(Some(end.clamp(0.0, most))));
            format!("{low} to {high}")
        },
    );
    let mark = if across.mean.is_some() && !across.certified { "\\~" } else { "" };
    let unit = if is_share { "" } else { metric.unit.name() };
    let statistic = quantity.statistic().map_or("", Statistic::name);
    let name = format!("{} {statistic}", metric.title);
    format!("| {} | {mark}{} | {between} | {unit} |\n", name.trim_end(), shown(across.mean))
}

/// A warning that several runs raise is said once, in the words of the first of them.
fn warnings_across(runs: &[Summary]) -> String {
    let mut text = String::new();
    let mut told: Vec<&str> = Vec::new();
    for notice in runs.iter().flat_map(|run| &run.warnings) {
        if told.contains(&notice.key.as_str()) {
            continue;
        }
        told.push(&notice.key);
        let raised = |run: &&Summary| run.warnings.iter().any(|other| other.key == notice.key);
        let number = runs.iter().filter(raised).count();
        let _ = writeln!(text, "{} ({number} of {} runs)", line(notice), runs.len());
    }
    if text.is_empty() { text } else { text + "\n" }
}

fn is_headline(metric: &Metric, summary: &Summary) -> bool {
    metric.headline.is_on(summary.run.load.is_open())
}

/// The headline figures of this kind of load, then the reasons to doubt them.
fn figures(summary: &Summary) -> String {
    let mut latencies = String::new();
    let mut numbers = String::new();
    for (metric, value) in summary.metrics.iter().filter(|(metric, _)| is_headline(metric, summary))
    {
        match value {
            MetricValue::Distribution(found) => {
                let at = |percentile| {
                    let known = found.percentile(percentile).is_some();
                    let mark = if known && !found.is_certified(percentile) { "\\~" } else { "" };
                    format!("{mark}{}", number(found.percentile(percentile)))
                };
                let _ = writeln!(
                    latencies,
                    "| {} | {} | {} | {} | {} | {} |",
                    metric.title,
                    number(found.mean),
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
                let (value, unit) = (number(found.value), metric.unit.name());
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
    let lines: String = summary.warnings.iter().map(|notice| line(notice) + "\n").collect();
    if lines.is_empty() { lines } else { lines + "\n" }
}

fn line(notice: &Warning) -> String {
    let word = match notice.severity {
        Severity::Note => "note",
        Severity::Degraded => "degraded",
        Severity::Invalid => "invalid",
    };
    let (said, remedy) = (markdown(&notice.text), markdown(&notice.remedy));
    format!("- **{word}**: {said} *({remedy})*")
}
