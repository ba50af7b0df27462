//! The lines that are shown while a study is measured.

use inferometer_analysis::set::SetSummary;
use inferometer_analysis::{Summary, metric};
use inferometer_model::deployment::DeploymentFailure;
use inferometer_model::study::{Level, Point, Question, StudySpec};
use inferometer_report::fmt;

use crate::{Progress, Study};

/// `[7/21]`; without a total where that is not known yet.
fn number(sequence: &Study) -> String {
    let Progress { done, expected } = sequence.progress();
    match expected {
        Some(expected) => format!("[{}/{expected}]", done + 1),
        None => format!("[{}]", done + 1),
    }
}

fn name(study: &StudySpec, condition: u32) -> &str {
    study.conditions.get(condition as usize).map_or("", |condition| &condition.name)
}

/// The line before a run. The reason of a run of a suite names its scenario.
pub(super) fn opening(study: &StudySpec, sequence: &Study, point: &Point) -> String {
    let is_suite = matches!(study.question, Question::Suite(_));
    let server = match study.conditions.len() {
        2.. if !is_suite => format!("{}, ", name(study, point.condition)),
        _ => String::new(),
    };
    format!("{} {server}{}: …", number(sequence), sequence.why().unwrap_or_default())
}

/// The line after a run, before the study receives its summary.
pub(super) fn headline(sequence: &Study, summary: &Summary) -> String {
    format!("{} {}", number(sequence), figures(summary))
}

fn figures(summary: &Summary) -> String {
    let output = summary.metrics.scalar(&metric::OUTPUT_THROUGHPUT).and_then(|scalar| scalar.value);
    // On an open loop a wait before sending is the server's doing too.
    let ttft = summary.latency_origin().ttft().p99().value_in(summary).ok();
    format!(
        "{}, {} output tok/s, TTFT p99 {} ms",
        summary.verdict.key(),
        fmt::number(output),
        fmt::number(ttft.map(|estimate| estimate.value))
    )
}

/// Whether the half-width that ends the runs early was reached, level by level.
pub(super) fn precision(summary: &SetSummary) -> Vec<String> {
    let several = 1 < summary.conditions.len();
    let percent = |share: f64| format!("{} %", fmt::number(share * 100.0));
    let mut lines = Vec::new();
    for condition in &summary.conditions {
        for level in &condition.levels {
            let Some(enough) = &level.enough else { continue };
            let server = several.then(|| condition.name.clone());
            let load = (level.level != Level::AsAsked).then(|| level.level.to_string());
            let parts = server.into_iter().chain(load);
            let place = parts.fold(String::new(), |place, part| format!("{place} of {part}"));
            let width = enough.half_width.map_or_else(
                || "not known: there are too few valid runs".to_owned(),
                |share| format!("±{} after {} runs", percent(share), level.points.len()),
            );
            let reached = if enough.reached { "reached" } else { "not reached" };
            let (quantity, wanted) = (&enough.quantity, percent(enough.target));
            lines.push(format!(
                "--stop-at {reached}: {quantity}{place} is {width} (wanted: {wanted})"
            ));
        }
    }
    lines
}

/// `cell 12 of 256`, and `run 2 of 3` where there are several.
fn cell(study: &StudySpec, point: &Point) -> (String, String) {
    let run = match study.repetition.runs.get() {
        1 => String::new(),
        runs => format!(", run {} of {runs}", point.repetition + 1),
    };
    (format!("cell {} of {}", point.condition + 1, study.conditions.len()), run)
}

/// The line before a cell is deployed.
pub(super) fn opening_cell(study: &StudySpec, point: &Point) -> String {
    let (cell, run) = cell(study, point);
    format!("{cell}: {}{run}: …", name(study, point.condition))
}

/// The line after a run. Cells may end in any order, so it names its own again. Pages show the
/// server's counters where there are any, which differ.
pub(super) fn measured_cell(study: &StudySpec, point: &Point, summary: &Summary) -> String {
    format!("{} {}, by the client", with_load(study, point), figures(summary))
}

pub(super) fn failed_cell(study: &StudySpec, point: &Point, failure: &DeploymentFailure) -> String {
    format!("{} {}: {}", with_load(study, point), failure.stage, failure.what)
}

fn with_load(study: &StudySpec, point: &Point) -> String {
    let (cell, run) = cell(study, point);
    let load = match point.level {
        Level::AsAsked => String::new(),
        level @ (Level::Rate(_) | Level::Unlimited | Level::Concurrency(_)) => {
            format!(", {level}")
        }
    };
    format!("{cell}{run}{load}:")
}
