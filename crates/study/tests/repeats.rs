//! Repeated runs: their order, their seeds, and when they are enough.

use crate::support;

use inferometer_model::study::{Level, Point, Question, RunOrder, StopAt, StudySpec};
use inferometer_study::{Reading, Study};
use support::{assert_refused, conditions, rates, study};

fn value(value: f64) -> Reading {
    Reading { is_valid: true, repeated: Some(value), ..Reading::default() }
}

fn played(study: &mut Study, reading: impl Fn(&Point) -> Reading) -> Vec<Point> {
    let mut points = Vec::new();
    while let Some(point) = study.next() {
        study.record(reading(&point));
        points.push(point);
    }
    points
}

fn stopping(half_width: f64, runs: u32) -> StudySpec {
    let mut spec = study(Question::Repeat, runs);
    let quantity = "output_throughput".to_owned();
    spec.repetition.stop_at = Some(StopAt { quantity, half_width });
    spec
}

#[test]
fn repeats_count_their_seeds_on_and_conditions_alternate() {
    let spec = StudySpec { conditions: conditions(2), ..study(Question::Repeat, 3) };
    let mut study = Study::new(spec).unwrap();
    assert_eq!(study.why().as_deref(), Some("run 1 of 3"));
    assert_eq!(study.progress().expected, Some(6));
    let points = played(&mut study, |_| value(1.0));
    let order: Vec<(u32, u64)> = points.iter().map(|point| (point.condition, point.seed)).collect();
    assert_eq!(order, [(0, 1), (1, 1), (1, 2), (0, 2), (0, 3), (1, 3)]);
    assert!(points.iter().all(|point| point.level == Level::AsAsked));
}

#[test]
fn a_listed_sweep_finishes_a_level_before_the_next_and_an_interleaved_one_does_not() {
    let levels = [1.0, 2.0, 4.0, 8.0];
    let order = |order| {
        let mut study = Study::new(StudySpec { order, ..study(rates(&levels, None), 2) }).unwrap();
        let points = played(&mut study, |_| value(1.0));
        points.iter().map(|point| point.level.place().unwrap()).collect::<Vec<f64>>()
    };
    assert_eq!(order(RunOrder::Listed), [1.0, 1.0, 2.0, 2.0, 4.0, 4.0, 8.0, 8.0]);
    let interleaved = order(RunOrder::Interleaved);
    for round in interleaved.chunks(4) {
        let mut round = round.to_vec();
        round.sort_by(f64::total_cmp);
        assert_eq!(round, levels);
    }
    assert_ne!(interleaved[..4], interleaved[4..]);
}

#[test]
fn calm_runs_stop_early_and_restless_ones_hit_the_cap() {
    let mut calm = Study::new(stopping(0.02, 10)).unwrap();
    assert_eq!(calm.progress().expected, None);
    let points = played(&mut calm, |point| value(100.0 + f64::from(point.repetition) * 0.1));
    assert_eq!(points.len(), 3);

    let mut restless = Study::new(stopping(0.02, 10)).unwrap();
    let swing = |point: &Point| value(100.0 + 20.0 * f64::from(point.repetition % 2));
    assert_eq!(played(&mut restless, swing).len(), 10);
}

#[test]
fn an_invalid_run_makes_nothing_narrower() {
    let mut study = Study::new(stopping(0.02, 5)).unwrap();
    let reading = |point: &Point| Reading { is_valid: point.repetition != 1, ..value(100.0) };
    assert_eq!(played(&mut study, reading).len(), 4);
}

#[test]
fn conditions_stop_together() {
    let spec = StudySpec { conditions: conditions(2), ..stopping(0.02, 6) };
    let mut study = Study::new(spec).unwrap();
    let reading = |point: &Point| {
        let swing = f64::from(point.condition) * 30.0 * f64::from(point.repetition % 2);
        value(100.0 + swing)
    };
    assert_eq!(played(&mut study, reading).len(), 12);
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let empty = StudySpec { conditions: Vec::new(), ..study(Question::Repeat, 1) };
    assert_refused(empty, "the list of servers is empty");
    assert_refused(study(rates(&[], None), 1), "nothing to sweep");
    let twice = study(rates(&[2.0, 2.0], None), 1);
    assert_refused(twice, "the level `2 req/s` is listed twice");
    assert_refused(study(rates(&[f64::NAN], None), 1), "is not a rate above zero");
    assert_refused(stopping(0.0, 5), "half-width above zero");
    let mut unknown = stopping(0.1, 5);
    unknown.repetition.stop_at.as_mut().unwrap().quantity = "thruput".to_owned();
    assert_refused(unknown, "--stop-at: ");
}
