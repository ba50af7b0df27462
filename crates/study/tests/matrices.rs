//! Matrices: which points there are, which share a server, and which preset comes next.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};

use inferometer_model::study::{
    Cell, Condition, Level, Matrix, MatrixModel, Point, Preset, Question, RunOrder, StopAt,
    StudySpec,
};
use inferometer_study::matrix::{Deployment, deployments};
use inferometer_study::{Reading, Study};
use support::{assert_refused, conditions, number, study};

/// Cells by the places of their presets, in the order of the plan.
fn matrix(presets: &[u32], levels: &[u32], runs: u32, order: RunOrder) -> StudySpec {
    let cell = |preset: &u32| Cell {
        preset: *preset,
        model: 0,
        context: Some(2048),
        strategy: None,
        tp: None,
        pp: None,
        flags: BTreeMap::new(),
    };
    let known = presets.iter().max().map_or(0, |last| last + 1);
    let preset = |place: u32| Preset { name: format!("preset {place}"), ..Preset::default() };
    let question = Question::Matrix(Matrix {
        name: "own".to_owned(),
        title: "Own".to_owned(),
        description: None,
        presets: (0..known).map(preset).collect(),
        models: vec![MatrixModel::default()],
        cells: presets.iter().map(cell).collect(),
        levels: levels.iter().map(|level| Level::Concurrency(number(*level))).collect(),
        lanes: number(1),
        currency: None,
    });
    let spec = conditions(1).remove(0).spec;
    let condition = |place: usize| Condition { name: format!("cell {place}"), spec: spec.clone() };
    let conditions = (0..presets.len()).map(condition).collect();
    StudySpec { conditions, order, ..study(question, runs) }
}

fn places(deployments: &[Deployment]) -> Vec<(u32, u32)> {
    deployments.iter().map(|it| (it.condition, it.repetition)).collect()
}

#[test]
fn listed_cells_come_with_all_their_repetitions_and_interleaved_ones_round_by_round() {
    let listed = deployments(&matrix(&[0, 0, 1], &[1, 10], 2, RunOrder::Listed));
    assert_eq!(places(&listed), [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]);
    assert_eq!(listed[4].preset, 1);

    let mixed = places(&deployments(&matrix(&[0; 9], &[1], 3, RunOrder::Interleaved)));
    let rounds: Vec<Vec<u32>> =
        mixed.chunks(9).map(|round| round.iter().map(|(cell, _)| *cell).collect()).collect();
    assert!(mixed.iter().enumerate().all(|(place, (_, round))| *round as usize == place / 9));
    assert!(rounds[0] != rounds[1] && rounds[1] != rounds[2], "{rounds:?}");
    assert!(rounds.iter().all(|round| round.iter().collect::<BTreeSet<_>>().len() == 9));
}

#[test]
fn loads_share_a_server_and_cells_share_their_seeds() {
    for order in [RunOrder::Listed, RunOrder::Interleaved] {
        let spec = matrix(&[0, 1], &[1, 10, 25], 2, order);
        let planned = deployments(&spec);
        let points: Vec<Point> = planned.iter().flat_map(|it| it.points.clone()).collect();
        let numbers: Vec<u32> = points.iter().map(|point| point.number).collect();
        assert_eq!(numbers, (0..12).collect::<Vec<_>>());
        assert!(planned.iter().all(|it| it.points.len() == 3));
        let seed = |condition, level: u32, repetition| {
            let level = Level::Concurrency(number(level));
            let is = |it: &&Point| {
                (it.condition, it.level, it.repetition) == (condition, level, repetition)
            };
            points.iter().find(is).unwrap().seed
        };
        assert_eq!(seed(0, 10, 1), seed(1, 10, 1), "paired");
        let seeds: BTreeSet<u64> = points.iter().map(|point| point.seed).collect();
        assert_eq!(seeds.len(), 6, "each load and repetition has its own");

        let mut study = Study::new(spec).unwrap();
        assert_eq!(study.progress().expected, Some(12));
        for point in points {
            assert_eq!(study.next(), Some(point), "the same from both sides");
            study.record(Reading::default());
        }
        assert_eq!(study.next(), None);
    }
}

#[test]
fn what_is_no_matrix_is_refused() {
    let sound = matrix(&[0, 1], &[1, 10], 1, RunOrder::Listed);
    let refused = |change: fn(&mut StudySpec, &mut Matrix), why: &str| {
        let mut spec = sound.clone();
        let Question::Matrix(mut matrix) = spec.question.clone() else { unreachable!() };
        change(&mut spec, &mut matrix);
        spec.question = Question::Matrix(matrix);
        assert_refused(spec, why);
    };
    assert_eq!(Study::new(sound.clone()).map(|_| ()), Ok(()));
    refused(|_, matrix| matrix.levels.clear(), "the matrix has no load");
    let twice = "the level `c=10` is listed twice";
    refused(|_, matrix| matrix.levels.push(matrix.levels[1]), twice);
    let short = "the matrix describes 2 cells but has 1 conditions";
    refused(|spec, _| drop(spec.conditions.pop()), short);
    let named = "two cells are called `cell 0`";
    refused(|spec, _| spec.conditions[1].name = "cell 0".to_owned(), named);
    let astray = "the cell `cell 1` names a preset or a model";
    refused(|_, matrix| matrix.cells[1].preset = 2, astray);
    let stopping = |spec: &mut StudySpec, _: &mut Matrix| {
        let quantity = "output_throughput".to_owned();
        spec.repetition.stop_at = Some(StopAt { quantity, half_width: 0.02 });
    };
    refused(stopping, "--stop-at does not apply to a matrix");
}
