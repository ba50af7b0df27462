//! The lines that are shown while a study is measured.

use inferometer_analysis::set::SetSummary;
use inferometer_analysis::{Summary, metric};
use inferometer_model::campaign::{CampaignSpec, Level, Point, Question};
use inferometer_model::deployment::DeploymentFailure;
use inferometer_report::fmt;

use crate::{Progress, Study};

/// `[7/21]`; without a total where that is not known yet.
fn number(study: &Study) -> String {
    let Progress { done, expected } = study.progress();
    match expected {
        Some(expected) => format!("[{}/{expected}]", done + 1),
        None => format!("[{}]", done + 1),
    }
}

fn name(campaign: &CampaignSpec, condition: u32) -> String {
    let place = usize::try_from(condition).ok();
    let condition = place.and_then(|place| campaign.conditions.get(place));
    condition.map_or_else(String::new, |condition| condition.name.clone())
}

/// The line before a run. The reason of a run of a suite names its scenario.
pub(super) fn opening(campaign: &CampaignSpec, study: &Study, point: &Point) -> String {
    let is_suite = matches!(campaign.question, Question::Suite(_));
    let server = match campaign.conditions.len() {
        2.. if !is_suite => format!("{}, ", name(campaign, point.condition)),
        _ => String::new(),
    };
    format!("{} {server}{}: …", number(study), study.why().unwrap_or_default())
}

/// The line after a run, before the study receives its summary.
pub(super) fn headline(study: &Study, summary: &Summary) -> String {
    format!("{} {}", number(study), figures(summary))
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
fn cell(campaign: &CampaignSpec, point: &Point) -> (String, String) {
    let run = match campaign.repetition.runs.get() {
        1 => String::new(),
        runs => format!(", run {} of {runs}", point.repetition + 1),
    };
    (format!("cell {} of {}", point.condition + 1, campaign.conditions.len()), run)
}

/// The line before a cell is deployed.
pub(super) fn opening_cell(campaign: &CampaignSpec, point: &Point) -> String {
    let (cell, run) = cell(campaign, point);
    format!("{cell}: {}{run}: …", name(campaign, point.condition))
}

/// The line after a run. Cells may end in any order, so it names its own again. Pages show the
/// server's counters where there are any, which differ.
pub(super) fn measured_cell(campaign: &CampaignSpec, point: &Point, summary: &Summary) -> String {
    format!("{} {}, by the client", with_load(campaign, point), figures(summary))
}

pub(super) fn failed_cell(
    campaign: &CampaignSpec,
    point: &Point,
    failure: &DeploymentFailure,
) -> String {
    format!("{} {}: {}", with_load(campaign, point), failure.stage, failure.what)
}

fn with_load(campaign: &CampaignSpec, point: &Point) -> String {
    let (cell, run) = cell(campaign, point);
    let load = match point.level {
        Level::AsAsked => String::new(),
        level @ (Level::Rate(_) | Level::Unlimited | Level::Concurrency(_)) => {
            format!(", {level}")
        }
    };
    format!("{cell}{run}{load}:")
}
