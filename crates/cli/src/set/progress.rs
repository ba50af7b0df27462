//! What is said while a set is measured: which run it is, and what it came to.

use inferometer_analysis::{Quantity, Summary, Zero};
use inferometer_model::campaign::{CampaignSpec, Level, Point, Question, Stage};
use inferometer_report::escape;
use inferometer_report::number::figure;

/// Runs that are certain to be asked for at most, and whether others may follow.
pub(crate) fn planned(campaign: &CampaignSpec) -> (u64, bool) {
    let runs = u64::from(campaign.repetition.runs.get());
    match &campaign.question {
        Question::Repeat => (runs, false),
        Question::Sweep(sweep) => {
            let places = sweep.levels.len() as u64 * campaign.conditions.len() as u64;
            (runs * places, sweep.fine.is_some() || sweep.find.is_some())
        }
    }
}

/// `[7/21]`; with a plus where more may follow.
fn place(campaign: &CampaignSpec, point: &Point) -> String {
    let number = u64::from(point.number) + 1;
    match planned(campaign) {
        (planned, false) => format!("[{number}/{planned}]"),
        (planned, true) if number <= planned => format!("[{number}/{planned}+]"),
        (_, true) => format!("[{number}]"),
    }
}

/// The line before a run.
pub(super) fn opening(campaign: &CampaignSpec, point: &Point) -> String {
    let named = usize::try_from(point.condition).ok().and_then(|at| campaign.conditions.get(at));
    let condition = match named {
        Some(condition) if 1 < campaign.conditions.len() => {
            format!("{} ", escape::terminal(&condition.name))
        }
        _ => String::new(),
    };
    let level = match point.level {
        Level::AsAsked => String::new(),
        level @ (Level::Rate(_) | Level::Unlimited | Level::Concurrency(_)) => {
            format!("at {level}, ")
        }
    };
    let stage = match point.stage {
        Stage::Planned => "",
        Stage::Fine => ", around the knee",
        Stage::Probe => ", searching",
        Stage::Confirmation => ", to confirm",
    };
    let run = point.repetition + 1;
    format!("{} {condition}{level}run {run}{stage}: …", place(campaign, point))
}

/// The line after it.
pub(super) fn headline(campaign: &CampaignSpec, point: &Point, summary: &Summary) -> String {
    let output = summary.metrics.scalar("output_throughput").and_then(|scalar| scalar.value);
    // On an open loop a wait before sending is the server's doing too.
    let zero = if summary.run.load.is_open() { Zero::Schedule } else { Zero::Sent };
    let ttft = Quantity::named("ttft.p99", zero).ok().and_then(|ttft| ttft.of(summary).ok());
    let words = format!(
        "{}, {} output tok/s, TTFT p99 {} ms",
        summary.verdict.key(),
        figure(output),
        figure(ttft.map(|estimate| estimate.value))
    );
    format!("{} {words}", place(campaign, point))
}
