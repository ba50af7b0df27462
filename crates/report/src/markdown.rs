//! Markdown for the summary of a CI step, as GitHub shows it below a job.

use inferometer_analysis::{Distribution, MetricValue, RequirementOutcome};

use crate::document::markdown;
use crate::pages::prelude::*;
use crate::pages::requests_ok;
use crate::requirements::{Judgement, interval, meaning, value};

/// Verdict, requirements, headline figures and warnings. Ends with an empty line, so that further text
/// may be appended.
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
            Cell::text(why.into_iter().flatten().join("; "))
        });
        table.table("", "", judgement.requirements)
    });
    let section = Section::new("", vec![Block::paragraph(subject)]);
    let section = section.with(requirements).with(figures);
    // One level deeper than a document.
    format!("#{}\n", markdown::render(&Document::new(title, vec![section])).text)
}

/// The title, the subject, and the figures with the warnings.
type Page = (String, String, Vec<Block>);

/// Imported results have no verdict.
fn imported(results: &[ToolResult]) -> Page {
    let mut tools: Vec<&str> = results.iter().map(|result| result.source.tool.name()).collect();
    tools.dedup();
    let first = results.first();
    let model = first.and_then(|result| result.model.as_deref()).unwrap_or("model not known");
    let load = first.map_or_else(String::new, |result| format!(", {}", result.level()));
    let results = counted(results.len() as u64, "result");
    let title = format!("Imported: {results} of {}", tools.join(", "));
    (title, format!("{model}{load}"), Vec::new())
}

fn one_run(summary: &Summary) -> Page {
    let partial = if summary.run.partial { ", partial" } else { "" };
    let title = format!("Inferometer: {}{}", summary.verdict, simulated(summary));
    let (ok, target) = (requests_ok(summary, "ok"), target(summary));
    let subject = format!("{ok}{partial}. {target}; run {}.", summary.run.id);
    let mut blocks = figures(summary);
    let warnings: Vec<Text> = summary.warnings.iter().map(warning).collect();
    blocks.extend((!warnings.is_empty()).then_some(Block::List(warnings)));
    (title, subject, blocks)
}

/// The number of runs with each verdict, and the means over the runs.
fn several_runs(runs: &[Summary]) -> Page {
    let verdicts = [Verdict::Valid, Verdict::Simulated, Verdict::Degraded, Verdict::Invalid]
        .map(|verdict| (runs.iter().filter(|run| run.verdict == verdict).count(), verdict))
        .into_iter()
        .filter(|(number, _)| 0 < *number)
        .map(|(number, verdict)| format!("{number} {verdict}"))
        .join(", ");
    let ok: u64 = runs.iter().map(|run| run.count(Outcome::Ok)).sum();
    let sent: u64 = runs.iter().map(|run| run.scheduled.saturating_sub(run.time_over)).sum();
    let simulated = runs.first().map_or("", simulated);
    let target = runs.first().map_or_else(String::new, target);
    // A warning of several runs is listed once, with the text of the first of them.
    let raised = runs.iter().enumerate();
    let raised = raised.flat_map(|(run, it)| it.warnings.iter().map(move |found| (run, found)));
    let warnings = grouped(raised, |(_, it)| it.key.as_str()).into_iter().map(|(_, same)| {
        let mut line = warning(same[0].1);
        let number = same.chunk_by(|one, other| one.0 == other.0).count();
        line.push(Span::Plain(format!(" ({number} of {} runs)", runs.len())));
        line
    });
    let warnings: Vec<Text> = warnings.collect();
    let mut blocks: Vec<Block> = figures_across(runs).map(Block::from).into_iter().collect();
    blocks.extend((!warnings.is_empty()).then_some(Block::List(warnings)));
    let title = format!("Inferometer: {} runs, {verdicts}{simulated}", runs.len());
    (title, format!("{} of {} requests ok. {target}.", count(ok), count(sent)), blocks)
}

fn simulated(summary: &Summary) -> &'static str {
    match summary.verdict {
        _ if summary.run.simulated.is_none() => "",
        Verdict::Simulated => ": no server was measured",
        Verdict::Valid | Verdict::Degraded | Verdict::Invalid => {
            ", simulated: no server was measured"
        }
    }
}

/// API, model, server and load.
fn target(summary: &Summary) -> String {
    let run = &summary.run;
    let target =
        frame::target(&run.target, run.embedded, run.simulated.is_some(), run.engine_speed);
    format!("{} of {} at {target}; {}", run.api, run.model, load::planned(summary))
}

const FEW: &str = "~ too few values to certify it";

/// A value, marked where there are too few values to certify it.
fn marked(value: String, is_uncertain: bool) -> Cell {
    Cell::text(if is_uncertain { format!("~{value}") } else { value })
}

/// The headline metrics of this kind of load.
fn headline(summary: &Summary) -> impl Iterator<Item = (&'static Metric, MetricValue)> {
    let is_open = summary.run.load.is_open();
    summary.headline().into_iter().filter(move |(metric, _)| metric.headline.is_on(is_open))
}

fn figures(summary: &Summary) -> Vec<Block> {
    let distributions = headline(summary).filter_map(|(metric, value)| match value {
        MetricValue::Distribution(found) => Some((metric, found)),
        MetricValue::Scalar(_) => None,
    });
    let scalars = headline(summary).filter_map(|(metric, value)| match value {
        MetricValue::Scalar(found) => Some((metric, found.value)),
        MetricValue::Distribution(_) => None,
    });
    let mut latencies =
        Columns::new("latency (ms)", |(metric, _): &(&Metric, _)| Cell::text(metric.title))
            .right("mean", |(_, found): &(_, Distribution)| Cell::text(number(found.mean)));
    for percentile in [Percentile::P50, Percentile::P90, Percentile::P99] {
        latencies = latencies.right(percentile.name(), move |(_, found)| {
            let value = found.percentile(percentile);
            marked(number(value), value.is_some() && !found.is_certified(percentile))
        });
    }
    let latencies = latencies.right("n", |(_, found)| Cell::text(count(found.n)));
    let rates = Columns::new("", |(metric, _): &(&Metric, Option<f64>)| Cell::text(metric.title))
        .right("value", |(metric, value)| Cell::text(fmt::in_unit(*value, metric.unit)))
        .left("", |(metric, _)| Cell::text(fmt::unit_name(metric.unit)));
    let latencies = latencies.table("", "", distributions).noted([FEW]);
    vec![latencies.into(), rates.table("", "", scalars).into()]
}

/// Mean and interval between the valid runs, with one value from each; `None` where no run is valid.
fn figures_across(runs: &[Summary]) -> Option<Table> {
    let counted: Vec<&Summary> =
        runs.iter().filter(|run| run.verdict != Verdict::Invalid).collect();
    let first = *counted.first()?;
    let quantities = headline(first).flat_map(|(metric, _)| metric.quantities(&[MEAN, P99]));
    let rows = quantities.map(|quantity| {
        let values: Vec<_> = counted.iter().map(|run| quantity.value_in(run)).collect();
        (AcrossRuns::from_runs(&values), quantity)
    });
    let table = Columns::new("metric", |(_, quantity): &(AcrossRuns, Quantity)| {
        Cell::text(quantity.title())
    })
    .right(format!("mean of {} runs", counted.len()), |(across, quantity)| {
        let mean = fmt::in_unit(across.mean, quantity.metric().unit);
        marked(mean, across.mean.is_some() && !across.certified)
    })
    .right("95 % between runs", |(across, quantity)| {
        // No value is negative, and no share above one, which Student's interval does not know.
        let unit = quantity.metric().unit;
        let most = if unit == Unit::Share { 1.0 } else { f64::MAX };
        let ends = across.interval.map(|Interval { low, high }| {
            [low, high].map(|end| fmt::in_unit(end.clamp(0.0, most), unit)).join(" to ")
        });
        Cell::text(ends.unwrap_or_else(|| NOTHING.to_owned()))
    })
    .left("", |(_, quantity)| Cell::text(fmt::unit_name(quantity.metric().unit)));
    Some(table.table("", "", rows).noted([FEW]))
}

fn warning(notice: &Warning) -> Text {
    let word = match notice.severity {
        Severity::Note => "note",
        Severity::Degraded => "degraded",
        Severity::Invalid => "invalid",
    };
    vec![strong(word), Span::Plain(format!(": {} ({})", notice.text, notice.remedy))]
}
