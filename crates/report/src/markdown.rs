//! Markdown for the summary of a CI step, as GitHub shows it below a job.

use inferometer_analysis::set::AcrossRuns;
use inferometer_analysis::tool_result::ToolResult;
use inferometer_analysis::{
    Distribution, Interval, Metric, MetricValue, Percentile, Quantity, RequirementOutcome,
    Severity, Statistic, Summary, ThresholdVerdict, Unit, Verdict, Warning,
};
use inferometer_model::Outcome;

use crate::document::{
    Block, Cell, Columns, Document, Section, Span, Table, Text, markdown, plain,
};
use crate::fmt::{NOTHING, count, load, number, percent};
use crate::requirements::{Judgement, interval, meaning, value};

/// Verdict, requirements, headline figures and warnings. Ends with an empty line, so that what is
/// appended after it stands alone.
pub fn step_summary(judgement: &Judgement<'_>) -> String {
    let (title, subject, figures) = match judgement.runs {
        [] => imported(judgement.results),
        [only] => one_run(only),
        several => several_runs(several),
    };
    let requirements = (!judgement.requirements.is_empty()).then(|| {
        let table = Columns::new("", |found: &&RequirementOutcome| {
            Cell::text(match found.verdict {
                ThresholdVerdict::Met => "✅ pass",
                ThresholdVerdict::Missed => "❌ fail",
                ThresholdVerdict::Undecided => "❔ undecided",
            })
        })
        .left("requirement", |found| Cell::text(found.requirement.clone()))
        .right("value", |found| Cell::text(value(found)))
        .right("95 % interval", |found| {
            Cell::text(interval(found).unwrap_or_else(|| NOTHING.to_owned()))
        })
        .left("why", |found| {
            let why = [meaning(found), found.reason.as_deref()];
            Cell::text(why.into_iter().flatten().collect::<Vec<_>>().join("; "))
        });
        Block::Table(table.table("", "", judgement.requirements))
    });
    let mut blocks = vec![Block::paragraph(subject)];
    blocks.extend(requirements);
    blocks.extend(figures);
    // One level deeper than a page of its own.
    let page = markdown::render(&Document::new(title, vec![Section::new("", blocks)]));
    format!("#{}\n", page.text)
}

/// The title, what was measured, and the figures with the warnings.
type Page = (String, String, Vec<Block>);

/// What was imported is judged by what its files say, and has no verdict of its own.
fn imported(results: &[ToolResult]) -> Page {
    let mut tools: Vec<&str> = results.iter().map(|result| result.source.tool.name()).collect();
    tools.dedup();
    let noun = if results.len() == 1 { "result" } else { "results" };
    let first = results.first();
    let model = first.and_then(|result| result.model.as_deref()).unwrap_or("no model named");
    let load = first.map_or_else(String::new, |result| format!(", {}", result.level()));
    let title = format!("Imported: {} {noun} of {}", count(results.len() as u64), tools.join(", "));
    (title, format!("{model}{load}"), Vec::new())
}

fn one_run(summary: &Summary) -> Page {
    let partial = if summary.run.partial { ", partial" } else { "" };
    let title = format!("Inferometer: {}{}", summary.verdict, simulated(summary));
    let subject = format!(
        "{} of {} requests ok in {} s{partial}. {}; run {}.",
        count(summary.count(Outcome::Ok)),
        count(summary.scheduled.saturating_sub(summary.time_over)),
        number(summary.window.duration_s),
        asked(summary),
        summary.run.id,
    );
    let mut blocks = figures(summary);
    let warnings: Vec<Text> = summary.warnings.iter().map(warning).collect();
    blocks.extend((!warnings.is_empty()).then_some(Block::List(warnings)));
    (title, subject, blocks)
}

/// The verdict of each, in numbers, and what all of them measured.
fn several_runs(runs: &[Summary]) -> Page {
    let verdicts = [Verdict::Valid, Verdict::Degraded, Verdict::Invalid]
        .map(|verdict| (runs.iter().filter(|run| run.verdict == verdict).count(), verdict))
        .into_iter()
        .filter(|(number, _)| 0 < *number)
        .map(|(number, verdict)| format!("{number} {verdict}"))
        .collect::<Vec<_>>()
        .join(", ");
    let ok: u64 = runs.iter().map(|run| run.count(Outcome::Ok)).sum();
    let sent: u64 = runs.iter().map(|run| run.scheduled.saturating_sub(run.time_over)).sum();
    let simulated = runs.first().map_or("", simulated);
    let asked = runs.first().map_or_else(String::new, asked);
    let mut blocks = Vec::new();
    blocks.extend(figures_across(runs).map(Block::Table));
    let warnings = warnings_across(runs);
    blocks.extend((!warnings.is_empty()).then_some(Block::List(warnings)));
    let title = format!("Inferometer: {} runs, {verdicts}{simulated}", runs.len());
    (title, format!("{} of {} requests ok. {asked}.", count(ok), count(sent)), blocks)
}

fn simulated(summary: &Summary) -> &'static str {
    if summary.run.simulated.is_some() { ", simulated: no server was measured" } else { "" }
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
    format!("{} of {} at {target}; {shape}, {extent}", run.api, run.model)
}

/// A value, marked where there are too few values to certify it.
fn marked(value: String, is_uncertain: bool) -> Cell {
    Cell::text(if is_uncertain { format!("~{value}") } else { value })
}

fn with_note(table: Table) -> Table {
    Table { notes: vec![plain("~ too few values to certify it")], ..table }
}

/// The headline figures of this kind of load.
fn figures(summary: &Summary) -> Vec<Block> {
    let headline = || summary.metrics.iter().filter(|(metric, _)| is_headline(metric, summary));
    let distributions = headline().filter_map(|(metric, value)| match value {
        MetricValue::Distribution(found) => Some((metric, found)),
        MetricValue::Scalar(_) => None,
    });
    let scalars = headline().filter_map(|(metric, value)| match value {
        MetricValue::Scalar(found) => Some((metric, found.value)),
        MetricValue::Distribution(_) => None,
    });
    let mut latencies =
        Columns::new("latency (ms)", |(metric, _): &(&Metric, _)| Cell::text(metric.title))
            .right("mean", |(_, found): &(_, &Distribution)| Cell::text(number(found.mean)));
    for percentile in [Percentile::P50, Percentile::P90, Percentile::P99] {
        latencies = latencies.right(percentile.name(), move |(_, found)| {
            let value = found.percentile(percentile);
            marked(number(value), value.is_some() && !found.is_certified(percentile))
        });
    }
    let latencies = latencies.right("n", |(_, found)| Cell::text(count(found.n)));
    let is_share = |metric: &Metric| metric.unit == Unit::Share;
    let scalars_table =
        Columns::new("", |(metric, _): &(&Metric, Option<f64>)| Cell::text(metric.title))
            .right("value", move |(metric, value)| {
                Cell::text(if is_share(metric) { percent(*value) } else { number(*value) })
            })
            .left("", move |(metric, _)| {
                Cell::text(if is_share(metric) { "" } else { metric.unit.name() })
            });
    vec![
        Block::Table(with_note(latencies.table("", "", distributions))),
        Block::Table(scalars_table.table("", "", scalars)),
    ]
}

/// Mean and interval between the runs that say something about the server, a value from each; `None`
/// where no run does.
fn figures_across(runs: &[Summary]) -> Option<Table> {
    let counted: Vec<&Summary> =
        runs.iter().filter(|run| run.verdict != Verdict::Invalid).collect();
    let first = *counted.first()?;
    let headline = first.metrics.iter().filter(|(metric, _)| is_headline(metric, first));
    let statistics = [Statistic::Mean, Statistic::Percentile(Percentile::P99)];
    let rows = headline.flat_map(|(metric, _)| metric.quantities(&statistics)).map(|quantity| {
        let values: Vec<_> = counted.iter().map(|run| quantity.value_in(run)).collect();
        (AcrossRuns::from_runs(&values), quantity)
    });
    let is_share = |quantity: &Quantity| quantity.metric().unit == Unit::Share;
    let shown = move |quantity: &Quantity, value| {
        if is_share(quantity) { percent(value) } else { number(value) }
    };
    let table = Columns::new("metric", |(_, quantity): &(AcrossRuns, Quantity)| {
        let statistic = quantity.statistic().map_or("", Statistic::name);
        Cell::text(format!("{} {statistic}", quantity.metric().title).trim_end())
    })
    .right(format!("mean of {} runs", counted.len()), move |(across, quantity)| {
        marked(shown(quantity, across.mean), across.mean.is_some() && !across.certified)
    })
    .right("95 % between runs", move |(across, quantity)| {
        // Student's interval does not know that no number is below nothing, and no share above all.
        let most = if is_share(quantity) { 1.0 } else { f64::MAX };
        let ends = across.interval.map(|Interval { low, high }| {
            [low, high].map(|end| shown(quantity, Some(end.clamp(0.0, most)))).join(" to ")
        });
        Cell::text(ends.unwrap_or_else(|| NOTHING.to_owned()))
    })
    .left("", move |(_, quantity)| {
        Cell::text(if is_share(quantity) { "" } else { quantity.metric().unit.name() })
    });
    Some(with_note(table.table("", "", rows)))
}

/// A warning that several runs raise is listed once, in the words of the first of them.
fn warnings_across(runs: &[Summary]) -> Vec<Text> {
    let mut listed: Vec<&str> = Vec::new();
    let mut lines = Vec::new();
    for notice in runs.iter().flat_map(|run| &run.warnings) {
        if listed.contains(&notice.key.as_str()) {
            continue;
        }
        listed.push(&notice.key);
        let raised = |run: &&Summary| run.warnings.iter().any(|other| other.key == notice.key);
        let number = runs.iter().filter(raised).count();
        let mut line = warning(notice);
        line.push(Span::Plain(format!(" ({number} of {} runs)", runs.len())));
        lines.push(line);
    }
    lines
}

fn is_headline(metric: &Metric, summary: &Summary) -> bool {
    metric.headline.is_on(summary.run.load.is_open())
}

fn warning(notice: &Warning) -> Text {
    let word = match notice.severity {
        Severity::Note => "note",
        Severity::Degraded => "degraded",
        Severity::Invalid => "invalid",
    };
    vec![
        Span::Strong(word.to_owned()),
        Span::Plain(format!(": {} ({})", notice.text, notice.remedy)),
    ]
}
