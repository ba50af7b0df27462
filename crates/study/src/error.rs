//! Everything that can be wrong with a study, reported before anything is measured.

use inferometer_analysis::{QuantityProblem, SloProblem, check_slos};
use inferometer_model::Spec;
use inferometer_model::spec::{Relation, Slo};
use inferometer_model::study::{
    Condition, Dimension, Level, Matrix, Question, Search, StudySpec, Suite, Sweep,
};

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StudyError {
    #[error("nothing to measure: the list of servers is empty")]
    NoCondition,
    #[error("nothing to sweep: give levels, such as --rates 1,2,5, or a goal with --find")]
    NoLevel,
    #[error("the level `{level}` is not a {dimension} above zero")]
    NotALevel { level: Level, dimension: &'static str },
    #[error("the level `{0}` is listed twice; ask for more runs instead")]
    DuplicateLevel(Level),
    #[error("--stop-at: {0}")]
    StopAtQuantity(QuantityProblem),
    #[error("--stop-at needs a half-width above zero, as a share of the mean such as 2 %, not {0}")]
    StopAtShare(f64),
    #[error("--stop-at does not apply to a matrix: its runs are fixed; ask for more with --repeat")]
    StopAtOfMatrix,
    #[error("nothing to search for: give a goal, such as ttft.p99<500ms")]
    NoGoal,
    #[error(transparent)]
    Goal(#[from] SloProblem),
    #[error("`{goal}`: --find needs a statistic of the whole run, such as ttft.p99: {problem}")]
    GoalQuantity { goal: String, problem: QuantityProblem },
    #[error(
        "`{goal}` has no highest load: {metric} rises with the load; search for something that \
         falls with it, such as ttft.p99<500ms or attainment>95%"
    )]
    RisesWithLoad { goal: String, metric: String },
    #[error("the resolution must be a share of the level between 0 and 1, such as 5 %, not {0}")]
    Resolution(f64),
    #[error(
        "a search must start above zero and end above its start, not go from {from} to {at_most}"
    )]
    Range { from: f64, at_most: f64 },
    #[error("the {kind} describes {described} {parts} but has {conditions} conditions")]
    Conditions { kind: &'static str, parts: &'static str, described: usize, conditions: usize },
    #[error("two {parts} are called `{name}`; rename one of them")]
    DuplicateName { parts: &'static str, name: String },
    #[error("the scenario `{0}` has no level; give it one, or leave the scenario out")]
    NoLevelOf(String),
    #[error(
        "the scenario `{scenario}` cannot run at the level `{level}`: it needs one level as \
         written, or several of concurrency"
    )]
    NotALevelOf { scenario: String, level: Level },
    #[error(
        "the scenarios `{0}` and `{1}` have different servers, but a suite runs on one; make a \
         suite for each server"
    )]
    TwoServers(String, String),
    #[error("the matrix has no load; give one, such as concurrency = [10]")]
    NoLoad,
    #[error("the cell `{0}` names a preset or a model that is not in the lists of the matrix")]
    UnlistedCell(String),
}

pub(crate) fn check(spec: &StudySpec) -> Result<(), StudyError> {
    if spec.conditions.is_empty() {
        return Err(StudyError::NoCondition);
    }
    let half_width = spec.repetition.stop_at.as_ref().map(|stop_at| stop_at.half_width);
    if let Some(wrong) = half_width.filter(|share| !(share.is_finite() && 0.0 < *share)) {
        return Err(StudyError::StopAtShare(wrong));
    }
    match &spec.question {
        Question::Repeat => Ok(()),
        Question::Matrix(matrix) => check_matrix(spec, matrix),
        Question::Suite(suite) => check_suite(spec, suite),
        Question::Sweep(sweep) => check_sweep(spec, sweep),
    }
}

/// Every condition must be described, and no two may share a name.
fn check_conditions(
    conditions: &[Condition],
    kind: &'static str,
    parts: &'static str,
    described: usize,
) -> Result<(), StudyError> {
    let (count, mut names) = (conditions.len(), std::collections::BTreeSet::new());
    if count != described {
        return Err(StudyError::Conditions { kind, parts, described, conditions: count });
    }
    match conditions.iter().find(|condition| !names.insert(&condition.name)) {
        Some(twice) => Err(StudyError::DuplicateName { parts, name: twice.name.clone() }),
        None => Ok(()),
    }
}

fn check_unique(levels: &[Level]) -> Result<(), StudyError> {
    let twice = (1..levels.len()).find(|&place| levels[..place].contains(&levels[place]));
    twice.map_or(Ok(()), |place| Err(StudyError::DuplicateLevel(levels[place])))
}

fn check_matrix(spec: &StudySpec, matrix: &Matrix) -> Result<(), StudyError> {
    check_conditions(&spec.conditions, "matrix", "cells", matrix.cells.len())?;
    if matrix.levels.is_empty() {
        return Err(StudyError::NoLoad);
    }
    check_unique(&matrix.levels)?;
    if spec.repetition.stop_at.is_some() {
        return Err(StudyError::StopAtOfMatrix);
    }
    for (condition, cell) in spec.conditions.iter().zip(&matrix.cells) {
        let is_listed = |place: u32, list: usize| (place as usize) < list;
        if !is_listed(cell.preset, matrix.presets.len())
            || !is_listed(cell.model, matrix.models.len())
        {
            return Err(StudyError::UnlistedCell(condition.name.clone()));
        }
    }
    Ok(())
}

fn check_suite(spec: &StudySpec, suite: &Suite) -> Result<(), StudyError> {
    check_conditions(&spec.conditions, "suite", "scenarios", suite.scenarios.len())?;
    let first = &spec.conditions[0];
    for (Condition { name, spec }, scenario) in spec.conditions.iter().zip(&suite.scenarios) {
        let server = |spec: &Spec| (spec.target.clone(), spec.engine.clone());
        if server(spec) != server(&first.spec) {
            return Err(StudyError::TwoServers(first.name.clone(), name.clone()));
        }
        if scenario.levels.is_empty() {
            return Err(StudyError::NoLevelOf(name.clone()));
        }
        check_unique(&scenario.levels)?;
        let fits = |level: &Level| match level {
            Level::AsAsked => scenario.levels.len() == 1,
            Level::Concurrency(_) => true,
            Level::Rate(_) | Level::Unlimited => false,
        };
        if let Some(&level) = scenario.levels.iter().find(|level| !fits(level)) {
            return Err(StudyError::NotALevelOf { scenario: name.clone(), level });
        }
    }
    Ok(())
}

fn check_sweep(spec: &StudySpec, sweep: &Sweep) -> Result<(), StudyError> {
    if sweep.levels.is_empty() && sweep.find.is_none() {
        return Err(StudyError::NoLevel);
    }
    for &level in &sweep.levels {
        let (fits, dimension) = match (sweep.dimension, level) {
            (Dimension::Rate, Level::Rate(per_s)) => (per_s.is_finite() && 0.0 < per_s, "rate"),
            (Dimension::Rate, level) => (level == Level::Unlimited, "rate"),
            (Dimension::Concurrency, level) => {
                (matches!(level, Level::Concurrency(_)), "concurrency")
            }
        };
        if !fits {
            return Err(StudyError::NotALevel { level, dimension });
        }
    }
    check_unique(&sweep.levels)?;
    sweep.find.as_ref().map_or(Ok(()), |find| check_search(spec, sweep.dimension, find))
}

fn check_search(spec: &StudySpec, dimension: Dimension, find: &Search) -> Result<(), StudyError> {
    let &Search { ref goals, from, at_most, resolution, .. } = find;
    if goals.is_empty() {
        return Err(StudyError::NoGoal);
    }
    if let Some(goal) = goals.iter().find(|goal| rises_with_load(goal)) {
        let metric = goal.metric.clone();
        return Err(StudyError::RisesWithLoad { goal: goal.to_string(), metric });
    }
    if !(0.0 < resolution && resolution < 1.0) {
        return Err(StudyError::Resolution(resolution));
    }
    let lowest = match dimension {
        Dimension::Rate => f64::MIN_POSITIVE,
        Dimension::Concurrency => 1.0,
    };
    if !(lowest <= from && from <= at_most && at_most.is_finite()) {
        return Err(StudyError::Range { from, at_most });
    }
    for condition in &spec.conditions {
        let slos: Vec<_> = condition.spec.slos.iter().chain(goals).cloned().collect();
        check_slos(&slos, condition.spec.workload.streaming)?;
    }
    Ok(())
}

/// Whether more load brings more of it, so that there is no highest load that meets the goal.
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
