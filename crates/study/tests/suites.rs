//! Suites: the order of their scenarios, their seeds, and what is refused.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::collections::BTreeSet;

use inferometer_model::study::{
    Condition, Level, Point, Prompts, Question, RunOrder, Scenario, StudySpec, Suite,
};
use inferometer_study::{Reading, Study};
use support::{assert_refused, conditions, number, study};

const SCALING: &str = "Concurrency Scaling";

fn at_once(requests: u32) -> Level {
    Level::Concurrency(number(requests))
}

fn suite(prompts: Prompts, scenarios: &[(&str, &[Level])], runs: u32) -> StudySpec {
    let scenario = |levels: &[Level]| Scenario {
        category: "Latency".to_owned(),
        purpose: "shows something".to_owned(),
        levels: levels.to_vec(),
        waves: None,
    };
    let question = Question::Suite(Suite {
        name: "own".to_owned(),
        title: "Own".to_owned(),
        hash: "00".to_owned(),
        changes: Vec::new(),
        prompts,
        scenarios: scenarios.iter().map(|(_, levels)| scenario(levels)).collect(),
    });
    let named = |(name, _): &(&str, &[Level])| Condition {
        name: (*name).to_owned(),
        spec: conditions(1).remove(0).spec,
    };
    StudySpec {
        conditions: scenarios.iter().map(named).collect(),
        order: RunOrder::Listed,
        ..study(question, runs)
    }
}

fn three(prompts: Prompts, runs: u32) -> StudySpec {
    let scaling = [2, 4, 8].map(at_once);
    suite(
        prompts,
        &[("Single User", &[Level::AsAsked]), ("Mixed", &[Level::AsAsked]), (SCALING, &scaling)],
        runs,
    )
}

fn played(spec: StudySpec) -> Vec<Point> {
    let mut study = Study::new(spec).unwrap();
    let mut points = Vec::new();
    while let Some(point) = study.next() {
        study.record(Reading { is_valid: true, ..Reading::default() });
        points.push(point);
    }
    points
}

fn places(points: &[Point]) -> Vec<(u32, u32, Level)> {
    points.iter().map(|point| (point.repetition, point.condition, point.level)).collect()
}

#[test]
fn a_suite_is_played_scenario_by_scenario_and_round_by_round() {
    let round = |round| {
        let scaling = [2, 4, 8].map(|users| (round, 2, at_once(users)));
        [(round, 0, Level::AsAsked), (round, 1, Level::AsAsked)].into_iter().chain(scaling)
    };
    let points = played(three(Prompts::Fresh, 2));
    assert_eq!(places(&points), round(0).chain(round(1)).collect::<Vec<_>>());

    let shuffled = StudySpec { order: RunOrder::Interleaved, ..three(Prompts::Fresh, 2) };
    let points = places(&played(shuffled));
    for (number, drawn) in points.chunks(5).enumerate() {
        let mut drawn = drawn.to_vec();
        drawn.sort_by_key(|(round, condition, level)| (*round, *condition, level.to_string()));
        assert_eq!(drawn, round(u32::try_from(number).unwrap()).collect::<Vec<_>>());
    }
    assert_ne!(points[..5].iter().map(|it| it.2).collect::<Vec<_>>(), [Level::AsAsked; 5]);
}

#[test]
fn a_suite_says_which_scenario_is_next() {
    let mut study = Study::new(three(Prompts::Fresh, 1)).unwrap();
    assert_eq!(study.progress().expected, Some(5));
    assert_eq!(study.why().as_deref(), Some("Single User"));
    for _ in 0..3 {
        study.record(Reading { is_valid: true, ..Reading::default() });
    }
    assert_eq!(study.why().as_deref(), Some("Concurrency Scaling, c=4"));
    let twice = Study::new(three(Prompts::Fresh, 2)).unwrap();
    assert_eq!(twice.why().as_deref(), Some("Single User, round 1 of 2"));
}

#[test]
fn fresh_prompts_have_a_seed_of_their_own_and_the_same_ones_have_that_of_the_suite() {
    let seeds = |points: &[Point]| points.iter().map(|point| point.seed).collect::<Vec<_>>();
    let fresh = played(three(Prompts::Fresh, 3));
    assert_eq!(seeds(&fresh).into_iter().collect::<BTreeSet<_>>().len(), 15);
    assert!(fresh.iter().all(|point| u32::try_from(point.seed).is_ok()));
    let same = played(three(Prompts::Same, 3));
    assert!(same.iter().all(|point| point.seed == 1 + u64::from(point.repetition)));
}

#[test]
fn a_scenario_alone_sends_what_it_sends_within_its_suite() {
    let scaling = [2, 4, 8].map(at_once);
    let alone = played(suite(Prompts::Fresh, &[(SCALING, &scaling)], 1));
    let within = played(three(Prompts::Fresh, 1));
    let seeds = |points: &[Point]| points.iter().map(|point| point.seed).collect::<Vec<_>>();
    assert_eq!(seeds(&alone), seeds(&within[2..]));
}

#[test]
fn what_is_no_suite_is_refused() {
    let mut short = three(Prompts::Fresh, 1);
    short.conditions.pop();
    assert_refused(short, "the suite describes 3 scenarios but has 2 conditions");
    let one = |levels: &[Level]| suite(Prompts::Fresh, &[(SCALING, levels)], 1);
    assert_refused(one(&[]), &format!("the scenario `{SCALING}` has no level"));
    let wrong =
        |level: Level| format!("the scenario `{SCALING}` cannot run at the level `{level}`");
    assert_refused(one(&[Level::Rate(2.0)]), &wrong(Level::Rate(2.0)));
    assert_refused(one(&[at_once(2), Level::AsAsked]), &wrong(Level::AsAsked));
    assert_refused(one(&[at_once(2), at_once(2)]), "the level `c=2` is listed twice");
    let asked: &[Level] = &[Level::AsAsked];
    let double = suite(Prompts::Fresh, &[(SCALING, asked), (SCALING, asked)], 1);
    assert_refused(double, &format!("two scenarios are called `{SCALING}`"));
    let mut apart = three(Prompts::Fresh, 1);
    apart.conditions[1].spec.engine.tp = Some(2);
    assert_refused(apart, "have different servers");
}
