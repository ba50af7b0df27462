//! What cannot be asked, said before anything is measured.

use inferometer_analysis::{QuantityProblem, SloProblem, check_slos};
use inferometer_model::Spec;
use inferometer_model::campaign::{CampaignSpec, Dimension, Level, Question, Search, Suite, Sweep};
use inferometer_model::spec::{Relation, Slo};

use crate::matrix;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CampaignError {
    #[error("nothing is measured: there is no server in the list")]
    NoCondition,
    #[error("nothing is swept: give levels, such as --rates 1,2,5, or something to find")]
    NoLevel,
    #[error("the level `{level}` is no {dimension} above zero")]
    NotALevel { level: Level, dimension: &'static str },
    #[error("the level `{0}` is listed twice; ask for more runs instead")]
    TwiceTheLevel(Level),
    #[error("the runs cannot stop by their doubt: {0}")]
    StopAtQuantity(QuantityProblem),
    #[error("a half-width is a share of the mean above zero, such as 2 %; {0} is none")]
    StopAtShare(f64),
    #[error("nothing is searched: give a goal, such as ttft.p99<500ms")]
    NoGoal,
    #[error(transparent)]
    Goal(#[from] SloProblem),
    #[error("a search judges whole runs, and `{goal}` is about no run: {problem}")]
    GoalQuantity { goal: String, problem: QuantityProblem },
    #[error(
        "`{goal}` holds from some load on and not up to one: {metric} rises with the load; search \
         for what falls with it, such as ttft.p99<500ms or attainment>95%"
    )]
    RisesWithLoad { goal: String, metric: String },
    #[error("the resolution is a share of the level between 0 and 1, such as 5 %; {0} is none")]
    Resolution(f64),
    #[error(
        "a search begins above zero and not above its end; {from} to {at_most} is no such range"
    )]
    Range { from: f64, at_most: f64 },
    #[error(
        "the suite describes {scenarios} scenarios and asks {conditions}: each needs both, its \
         description and what it asks"
    )]
    Scenarios { scenarios: usize, conditions: usize },
    #[error("two scenarios are called `{0}`; give one of them another name")]
    TwiceTheName(String),
    #[error("the scenario `{0}` has no level; give it one, or leave the scenario out")]
    NoLevelOf(String),
    #[error(
        "the scenario `{scenario}` cannot be played at the level `{level}`: it has one level, as \
         asked, or several of concurrency"
    )]
    NotALevelOf { scenario: String, level: Level },
    #[error(
        "the scenario `{scenario}` lists the level `{level}` twice; play the suite more often \
         instead"
    )]
    TwiceTheLevelOf { scenario: String, level: Level },
    #[error(
        "the scenarios `{0}` and `{1}` ask different servers, and a suite is played on one; make a \
         suite for each server"
    )]
    TwoServers(String, String),
    #[error(
        "the matrix describes {cells} cells and asks {conditions}: each needs both, its place and \
         what it asks"
    )]
    Cells { cells: usize, conditions: usize },
    #[error("nothing is asked of the cells: give a load, such as concurrency = [10]")]
    NoLoad,
    #[error("two cells are called `{0}`; give one of them another name")]
    TwiceTheCell(String),
    #[error("the cell `{0}` names a preset or a model that is not in the lists of the matrix")]
    CellOfNothing(String),
    #[error(
        "the runs of a matrix are all known beforehand, and --stop-at is for those that are not; \
         ask for more with --repeat"
    )]
    StopAtOfMatrix,
}

pub(crate) fn check(spec: &CampaignSpec) -> Result<(), CampaignError> {
    if spec.conditions.is_empty() {
        return Err(CampaignError::NoCondition);
    }
    let half_width = spec.repetition.stop_at.as_ref().map(|stop_at| stop_at.half_width);
    if let Some(wrong) = half_width.filter(|share| !(share.is_finite() && 0.0 < *share)) {
        return Err(CampaignError::StopAtShare(wrong));
    }
    match &spec.question {
        Question::Repeat => Ok(()),
        Question::Matrix(matrix) => matrix::check(spec, matrix),
        Question::Suite(suite) => check_suite(spec, suite),
        Question::Sweep(sweep) => check_sweep(spec, sweep),
    }
}

fn check_suite(spec: &CampaignSpec, suite: &Suite) -> Result<(), CampaignError> {
    let (scenarios, conditions) = (suite.scenarios.len(), spec.conditions.len());
    if scenarios != conditions {
        return Err(CampaignError::Scenarios { scenarios, conditions });
    }
    let first = &spec.conditions[0];
    for (place, (condition, scenario)) in spec.conditions.iter().zip(&suite.scenarios).enumerate() {
        let name = || condition.name.clone();
        if spec.conditions[..place].iter().any(|other| other.name == condition.name) {
            return Err(CampaignError::TwiceTheName(name()));
        }
        let server = |spec: &Spec| (spec.target.clone(), spec.engine.clone());
        if server(&condition.spec) != server(&first.spec) {
            return Err(CampaignError::TwoServers(first.name.clone(), name()));
        }
        check_levels(&condition.name, &scenario.levels)?;
    }
    Ok(())
}

fn check_levels(scenario: &str, levels: &[Level]) -> Result<(), CampaignError> {
    if levels.is_empty() {
        return Err(CampaignError::NoLevelOf(scenario.to_owned()));
    }
    for (place, &level) in levels.iter().enumerate() {
        let scenario = scenario.to_owned();
        if levels[..place].contains(&level) {
            return Err(CampaignError::TwiceTheLevelOf { scenario, level });
        }
        let fits = match level {
            Level::AsAsked => levels.len() == 1,
            Level::Concurrency(_) => true,
            Level::Rate(_) | Level::Unlimited => false,
        };
        if !fits {
            return Err(CampaignError::NotALevelOf { scenario, level });
        }
    }
    Ok(())
}

fn check_sweep(spec: &CampaignSpec, sweep: &Sweep) -> Result<(), CampaignError> {
    if sweep.levels.is_empty() && sweep.find.is_none() {
        return Err(CampaignError::NoLevel);
    }
    for (place, &level) in sweep.levels.iter().enumerate() {
        let (fits, dimension) = match (sweep.dimension, level) {
            (Dimension::Rate, Level::Rate(per_s)) => (per_s.is_finite() && 0.0 < per_s, "rate"),
            (Dimension::Rate, Level::Unlimited) => (true, "rate"),
            (Dimension::Rate, Level::AsAsked | Level::Concurrency(_)) => (false, "rate"),
            (Dimension::Concurrency, Level::Concurrency(_)) => (true, "concurrency"),
            (Dimension::Concurrency, Level::AsAsked | Level::Rate(_) | Level::Unlimited) => {
                (false, "concurrency")
            }
        };
        if !fits {
            return Err(CampaignError::NotALevel { level, dimension });
        }
        if sweep.levels[..place].contains(&level) {
            return Err(CampaignError::TwiceTheLevel(level));
        }
    }
    sweep.find.as_ref().map_or(Ok(()), |find| check_search(spec, sweep.dimension, find))
}

fn check_search(
    spec: &CampaignSpec,
    dimension: Dimension,
    find: &Search,
) -> Result<(), CampaignError> {
    let &Search { ref goals, from, at_most, resolution, .. } = find;
    if goals.is_empty() {
        return Err(CampaignError::NoGoal);
    }
    if let Some(goal) = goals.iter().find(|goal| rises_with_load(goal)) {
        let metric = goal.metric.clone();
        return Err(CampaignError::RisesWithLoad { goal: goal.to_string(), metric });
    }
    if !(0.0 < resolution && resolution < 1.0) {
        return Err(CampaignError::Resolution(resolution));
    }
    let lowest = match dimension {
        Dimension::Rate => f64::MIN_POSITIVE,
        Dimension::Concurrency => 1.0,
    };
    if !(lowest <= from && from <= at_most && at_most.is_finite()) {
        return Err(CampaignError::Range { from, at_most });
    }
    for condition in &spec.conditions {
        let promises: Vec<_> = condition.spec.slos.iter().chain(goals).cloned().collect();
        check_slos(&promises, condition.spec.workload.streaming)?;
    }
    Ok(())
}

/// More load brings more of it, at least at first, so there is no highest load that keeps it.
fn rises_with_load(goal: &Slo) -> bool {
    let served = goal.metric.ends_with("_throughput") && goal.metric != "per_user_throughput";
    goal.relation == Relation::Above && (served || goal.metric == "goodput")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_falls_with_the_load_has_a_highest_load() {
        let rises = |goal: &str| rises_with_load(&goal.parse().unwrap());
        for wrong in ["output_throughput>1000", "goodput>5", "request_throughput>=3"] {
            assert!(rises(wrong), "{wrong}");
        }
        for right in ["ttft.p99<500ms", "attainment>95%", "per_user_throughput>20", "tg>30"] {
            assert!(!rises(right), "{right}");
        }
    }
}
