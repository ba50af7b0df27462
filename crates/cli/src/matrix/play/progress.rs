//! What is said while a matrix is measured: which cell it is, and what it came to.

use inferometer_analysis::Summary;
use inferometer_model::campaign::{CampaignSpec, Level, Point};
use inferometer_model::deployment::DeploymentFailure;
use inferometer_report::escape::terminal;

use crate::set::figures;

/// `cell 12 of 256`.
fn place(campaign: &CampaignSpec, condition: u32) -> String {
    format!("cell {} of {}", condition + 1, campaign.conditions.len())
}

/// `run 2 of 3`, where there are several.
fn round(campaign: &CampaignSpec, repetition: u32) -> String {
    match campaign.repetition.runs.get() {
        1 => String::new(),
        runs => format!(", run {} of {runs}", repetition + 1),
    }
}

fn name(campaign: &CampaignSpec, condition: u32) -> String {
    let place = usize::try_from(condition).ok();
    let condition = place.and_then(|place| campaign.conditions.get(place));
    condition.map_or_else(String::new, |condition| terminal(&condition.name))
}

/// The line before a server is put up.
pub(super) fn opening(campaign: &CampaignSpec, condition: u32, repetition: u32) -> String {
    let (place, name) = (place(campaign, condition), name(campaign, condition));
    format!("{place}: {name}{}: …", round(campaign, repetition))
}

/// The line after a run. Cells may end in any order, so it names its own again. The page has the
/// server's counters where there are any, which are other figures.
pub(super) fn measured(campaign: &CampaignSpec, point: &Point, summary: &Summary) -> String {
    format!("{} {}, by the client", of_point(campaign, point), figures(summary))
}

pub(super) fn failed(
    campaign: &CampaignSpec,
    point: &Point,
    failure: &DeploymentFailure,
) -> String {
    let (stage, what) = (failure.stage, terminal(&failure.what));
    format!("{} {stage}: {what}", of_point(campaign, point))
}

fn of_point(campaign: &CampaignSpec, point: &Point) -> String {
    let load =
        if point.level == Level::AsAsked { String::new() } else { format!(", {}", point.level) };
    let round = round(campaign, point.repetition);
    format!("{}{round}{load}:", place(campaign, point.condition))
}
