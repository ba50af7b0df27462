//! Whether a level meets its goals, by all of its runs together.
//!
//! - **One run** decides a goal when its value lies on one side of the limit with 95 % confidence, by
//!   its own interval.
//! - **Several runs** have a common interval: that of their mean, from the intervals of the runs, as
//!   long as the runs lie no farther apart than those explain. Runs that do (a restart, a neighbour
//!   on the machine) are judged by Student's interval of their values, from the third on.
//!   Shares are pooled: the requests of all runs have one interval, by Wilson.
//! - **Values without an interval of their own** (or a percentile whose effective n is too small)
//!   decide between runs only, whose spread shows how far requests hang together: by Student's
//!   interval from the third on, or when five and more all lie on one side.
//! - **Percentiles of too few requests** lie too low, and their spread does not show it. They may show
//!   that a limit from above is missed, and never that one is met.
//! - **A rate at which requests pile up** in most runs is missed, however good the first answers are.
//! - A run that is invalid or has no value decides nothing. The second of them settles the level: a
//!   load at which nothing can be measured is no load to serve users at.
//!
//! The interval is looked at after every run, so that a level on the very edge is called met or
//! missed by chance more often than one time in twenty. The search does not rely on such a call: its
//! answer is measured again on fresh seeds.

use inferometer_analysis::statistics::runs::RunStatistics;
use inferometer_analysis::statistics::{UPPER, normal, student};
use inferometer_analysis::{
    Estimate, Interval, LatencyOrigin, Quantity, Statistic, Threshold, Unit, share_pooled,
};
use inferometer_model::spec::{Limit, Relation, Slo};

use crate::check::Result;
use crate::{Reading, StudyError};

/// A goal of a search as a threshold on a quantity of the whole run.
pub(crate) fn goal(slo: &Slo, origin: LatencyOrigin) -> Result<Threshold> {
    let name = match &slo.statistic {
        Some(statistic) => format!("{}.{statistic}", slo.metric),
        None => slo.metric.clone(),
    };
    let quantity = Quantity::named(&name, origin).map_err(|problem| {
        StudyError(format!(
            "`{slo}`: --find needs a statistic of the whole run, such as ttft.p99: {problem}"
        ))
    })?;
    let (Limit::Milliseconds(limit) | Limit::Share(limit) | Limit::Plain(limit)) = slo.limit;
    Ok(Threshold { quantity, relation: slo.relation, limit })
}

/// Whether a run has so few values that this percentile of them is hardly more than the largest:
/// such a percentile lies below the true one far more often than above it.
fn is_too_few(goal: &Threshold, run: &Estimate) -> bool {
    run.n < goal.quantity.statistic().map_or(1, Statistic::certified_from)
}

/// A share counts requests, so runs weigh as many as they have.
fn is_share(goal: &Threshold) -> bool {
    goal.quantity.metric().unit == Unit::Share
}

/// Whether a level meets its goals. Only `Met` counts as meeting them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LevelVerdict {
    Met,
    Missed,
    /// Requests in flight grow for as long as they come.
    PilesUp,
    /// Another run may settle it.
    Open,
    /// After the most runs that are allowed, a goal's limit is still inside the confidence interval.
    Undecided,
    /// Too few requests for a goal's percentile: no number of such runs can show that it is met.
    TooFewRequests,
    /// Its runs were invalid or had no value for a goal.
    NoNumbers,
}

/// Runs lie farther apart than their intervals explain when chance does so one time in twenty.
const APART: f64 = 0.95;
/// A level is called met, or missed, with this confidence; each is a claim about one side.
const SURE: f64 = 0.95;
/// Fewer lie all on one side of their median by luck more often than one time in twenty.
const AGREEING_MIN: usize = 5;

pub(crate) fn verdict(runs: &[&Reading], goals: &[Threshold], runs_at_most: u32) -> LevelVerdict {
    // Requests pile up in most of the runs that count.
    let valid = || runs.iter().filter(|reading| reading.is_valid);
    if valid().count() < 2 * valid().filter(|reading| reading.piles_up).count() {
        return LevelVerdict::PilesUp;
    }
    let of_goal = |(place, goal): (usize, &Threshold)| decided(goal, &estimates(runs, place));
    let judged: Vec<Option<bool>> = goals.iter().enumerate().map(of_goal).collect();
    if judged.contains(&Some(false)) {
        return LevelVerdict::Missed;
    }
    if judged.iter().all(|goal| *goal == Some(true)) {
        return LevelVerdict::Met;
    }
    let seeing = (0..goals.len()).map(|place| estimates(runs, place).len()).min().unwrap_or(0);
    // So many runs without numbers settle a level.
    if runs.len() - seeing >= 2 {
        return LevelVerdict::NoNumbers;
    }
    let too_few = |(place, goal): (usize, &Threshold)| {
        judged[place].is_none() && estimates(runs, place).iter().any(|run| is_too_few(goal, run))
    };
    if goals.iter().enumerate().any(too_few) {
        // Missed or undecided, it counts as not met: further runs would change no answer.
        return LevelVerdict::TooFewRequests;
    }
    if seeing < runs_at_most as usize { LevelVerdict::Open } else { LevelVerdict::Undecided }
}

/// Whether the goal is met; `None` while it is undecided.
fn decided(goal: &Threshold, runs: &[Estimate]) -> Option<bool> {
    let too_few = runs.iter().any(|run| is_too_few(goal, run));
    let met = decided_by_values(goal, runs)?;
    (!too_few || goal.relation == Relation::Below && !met).then_some(met)
}

fn decided_by_values(goal: &Threshold, runs: &[Estimate]) -> Option<bool> {
    if runs.is_empty() {
        return None;
    }
    let firm = runs.iter().all(|run| run.certified && run.interval.is_some());
    let of_all = if firm { common(goal, runs) } else { None };
    let interval = match of_all {
        // Runs without a failure have a common share of none; all their requests leave some open.
        Some(_) if is_share(goal) => share_pooled(runs),
        of_all => of_all.or_else(|| between(runs)),
    };
    if let Some(interval) = interval {
        let (low, high) = (goal.is_met_by(interval.low), goal.is_met_by(interval.high));
        if low == high {
            return Some(low);
        }
    }
    if firm || runs.len() < AGREEING_MIN {
        return None;
    }
    let met = runs.iter().filter(|run| goal.is_met_by(run.value)).count();
    [(0, false), (runs.len(), true)].into_iter().find(|(all, _)| *all == met).map(|(_, met)| met)
}

fn estimates(runs: &[&Reading], place: usize) -> Vec<Estimate> {
    let valid = runs.iter().filter(|reading| reading.is_valid);
    valid.filter_map(|reading| reading.goals.get(place).copied().flatten()).collect()
}

/// Whether the runs lie on the good side of every goal, whatever their uncertainty.
pub(crate) fn leans_to_met(runs: &[&Reading], goals: &[Threshold]) -> bool {
    goals.iter().enumerate().all(|(place, goal)| {
        let estimates = estimates(runs, place);
        let whole: f64 = estimates.iter().map(|run| weight(goal, run)).sum();
        let sum: f64 = estimates.iter().map(|run| weight(goal, run) * run.value).sum();
        goal.is_met_by(sum / whole)
    })
}

/// The interval of the mean of runs, from their own intervals; `None` when these do not explain how
/// far apart the runs lie.
fn common(goal: &Threshold, runs: &[Estimate]) -> Option<Interval> {
    let whole: f64 = runs.iter().map(|run| weight(goal, run)).sum();
    let share = |run: &Estimate| weight(goal, run) / whole;
    let mean: f64 = runs.iter().map(|run| share(run) * run.value).sum();
    let (mut below, mut above, mut apart) = (0.0, 0.0, 0.0);
    for run in runs {
        let interval = run.interval?;
        let (down, up) = (run.value - interval.low, interval.high - run.value);
        below += (share(run) * down) * (share(run) * down);
        above += (share(run) * up) * (share(run) * up);
        let error = interval.half_width() / normal::quantile(UPPER);
        let deviation = run.value - mean;
        if deviation != 0.0 {
            apart += (deviation / error) * (deviation / error);
        }
    }
    if explained(runs.len() as f64 - 1.0) < apart {
        return None;
    }
    let shrink = normal::quantile(SURE) / normal::quantile(UPPER);
    Interval::new(mean - below.sqrt() * shrink, mean + above.sqrt() * shrink)
}

fn weight(goal: &Threshold, run: &Estimate) -> f64 {
    if is_share(goal) { (run.n as f64).max(1.0) } else { 1.0 }
}

/// The sum of squared deviations that chance exceeds one time in twenty: the quantile of chi-square
/// after Wilson and Hilferty, which is within a hundredth of it.
fn explained(degrees: f64) -> f64 {
    if degrees < 1.0 {
        return f64::INFINITY;
    }
    let ninth = 2.0 / (9.0 * degrees);
    let root = 1.0 - ninth + normal::quantile(APART) * ninth.sqrt();
    degrees * root * root * root
}

/// Student's interval of the values of at least three runs.
fn between(runs: &[Estimate]) -> Option<Interval> {
    let values: Vec<f64> = runs.iter().map(|run| run.value).collect();
    if values.len() < 3 {
        return None;
    }
    let RunStatistics { n, mean, std, .. } = RunStatistics::from_values(&values)?;
    let half = student::quantile(SURE, n as f64 - 1.0) * std? / (n as f64).sqrt();
    Interval::new(mean - half, mean + half)
}

#[cfg(test)]
mod tests;
