//! Everything that can be wrong with a study, reported before anything is measured.

use std::collections::BTreeSet;

use inferometer_analysis::{check_slos, metric};
use inferometer_model::spec::{Relation, Slo};
use inferometer_model::study::{
    Condition, Dimension, Level, Matrix, Question, Search, StudySpec, Suite, Sweep,
};

/// What functions return that check a study.
pub(crate) type Result<T> = std::result::Result<T, StudyError>;

/// Why a study cannot be measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StudyError(pub(crate) String);

/// Refuses a study for which this does not hold.
fn ensure(holds: bool, why: impl Into<String>) -> Result<()> {
    if holds { Ok(()) } else { Err(StudyError(why.into())) }
}

pub(crate) fn check(spec: &StudySpec) -> Result<()> {
    ensure(!spec.conditions.is_empty(), "nothing to measure: the list of servers is empty")?;
    if let Some(share) = spec.repetition.stop_at.as_ref().map(|stop_at| stop_at.half_width) {
        ensure(
            share.is_finite() && 0.0 < share,
            format!(
                "--stop-at needs a half-width above zero, as a share of the mean such as 2 %, not \
                 {share}"
            ),
        )?;
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
    kind: &str,
    parts: &str,
    described: usize,
) -> Result<()> {
    let (count, mut names) = (conditions.len(), BTreeSet::new());
    ensure(
        count == described,
        format!("the {kind} describes {described} {parts} but has {count} conditions"),
    )?;
    conditions.iter().try_for_each(|Condition { name, .. }| {
        ensure(names.insert(name), format!("two {parts} are called `{name}`; rename one of them"))
    })
}

fn check_unique(levels: &[Level]) -> Result<()> {
    levels.iter().enumerate().try_for_each(|(place, level)| {
        ensure(
            !levels[..place].contains(level),
            format!("the level `{level}` is listed twice; ask for more runs instead"),
        )
    })
}

fn check_matrix(spec: &StudySpec, matrix: &Matrix) -> Result<()> {
    check_conditions(&spec.conditions, "matrix", "cells", matrix.cells.len())?;
    ensure(
        !matrix.levels.is_empty(),
        "the matrix has no load; give one, such as concurrency = [10]",
    )?;
    check_unique(&matrix.levels)?;
    ensure(
        spec.repetition.stop_at.is_none(),
        "--stop-at does not apply to a matrix: its runs are fixed; ask for more with --repeat",
    )?;
    spec.conditions.iter().zip(&matrix.cells).try_for_each(|(Condition { name, .. }, cell)| {
        let has_preset = (cell.preset as usize) < matrix.presets.len();
        ensure(
            has_preset && (cell.model as usize) < matrix.models.len(),
            format!(
                "the cell `{name}` names a preset or a model that is not in the lists of the matrix"
            ),
        )
    })
}

fn check_suite(spec: &StudySpec, suite: &Suite) -> Result<()> {
    check_conditions(&spec.conditions, "suite", "scenarios", suite.scenarios.len())?;
    let first = &spec.conditions[0];
    for (Condition { name, spec }, scenario) in spec.conditions.iter().zip(&suite.scenarios) {
        let is_same = spec.target == first.spec.target && spec.engine == first.spec.engine;
        ensure(
            is_same,
            format!(
                "the scenarios `{}` and `{name}` have different servers, but a suite runs on one; \
                 make a suite for each server",
                first.name
            ),
        )?;
        ensure(
            !scenario.levels.is_empty(),
            format!("the scenario `{name}` has no level; give it one, or leave the scenario out"),
        )?;
        check_unique(&scenario.levels)?;
        for level in &scenario.levels {
            let fits = match level {
                Level::AsAsked => scenario.levels.len() == 1,
                Level::Concurrency(_) => true,
                Level::Rate(_) | Level::Unlimited => false,
            };
            ensure(
                fits,
                format!(
                    "the scenario `{name}` cannot run at the level `{level}`: it needs one level \
                     as written, or several of concurrency"
                ),
            )?;
        }
    }
    Ok(())
}

fn check_sweep(spec: &StudySpec, sweep: &Sweep) -> Result<()> {
    ensure(
        !sweep.levels.is_empty() || sweep.find.is_some(),
        "nothing to sweep: give levels, such as --rates 1,2,5, or a goal with --find",
    )?;
    for level in &sweep.levels {
        let (fits, dimension) = match (sweep.dimension, level) {
            (Dimension::Rate, Level::Rate(per_s)) => (per_s.is_finite() && 0.0 < *per_s, "rate"),
            (Dimension::Rate, level) => (*level == Level::Unlimited, "rate"),
            (Dimension::Concurrency, level) => {
                (matches!(level, Level::Concurrency(_)), "concurrency")
            }
        };
        ensure(fits, format!("the level `{level}` is not a {dimension} above zero"))?;
    }
    check_unique(&sweep.levels)?;
    sweep.find.as_ref().map_or(Ok(()), |find| check_search(spec, sweep.dimension, find))
}

fn check_search(spec: &StudySpec, dimension: Dimension, find: &Search) -> Result<()> {
    let &Search { ref goals, from, at_most, resolution, .. } = find;
    ensure(!goals.is_empty(), "nothing to search for: give a goal, such as ttft.p99<500ms")?;
    for goal in goals {
        ensure(
            !rises_with_load(goal),
            format!(
                "`{goal}` has no highest load: {} rises with the load; search for something that \
                 falls with it, such as ttft.p99<500ms or attainment>95%",
                goal.metric
            ),
        )?;
    }
    ensure(
        0.0 < resolution && resolution < 1.0,
        format!(
            "the resolution must be a share of the level between 0 and 1, such as 5 %, not \
             {resolution}"
        ),
    )?;
    let lowest = match dimension {
        Dimension::Rate => f64::MIN_POSITIVE,
        Dimension::Concurrency => 1.0,
    };
    ensure(
        lowest <= from && from <= at_most && at_most.is_finite(),
        format!(
            "a search must start above zero and end above its start, not go from {from} to \
             {at_most}"
        ),
    )?;
    spec.conditions.iter().try_for_each(|Condition { spec, .. }| {
        let slos: Vec<_> = spec.slos.iter().chain(goals).cloned().collect();
        check_slos(&slos, spec.workload.streaming).map_err(|why| StudyError(why.to_string()))
    })
}

/// Whether more load brings more of it, so that there is no highest load that meets the goal.
fn rises_with_load(goal: &Slo) -> bool {
    let is_served =
        goal.metric.ends_with("_throughput") && goal.metric != metric::PER_USER_THROUGHPUT.name;
    goal.relation == Relation::Above && (is_served || goal.metric == metric::GOODPUT.name)
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
