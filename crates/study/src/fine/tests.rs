//! Knees that are known, found by a whole sweep.

use std::num::NonZeroU32;
use std::time::Duration;

use inferometer_analysis::statistics::draws::Draws;
use inferometer_model::SpecDraft;
use inferometer_model::study::{Condition, Question, Repetition, RunOrder};

use super::*;
use crate::Study;

fn sweep(conditions: usize, steps: u32, seed: u64) -> StudySpec {
    let spec =
        SpecDraft { url: Some("http://127.0.0.1:8000".parse().unwrap()), ..SpecDraft::default() }
            .resolve()
            .unwrap();
    let levels = (0..9).map(|power| Level::Concurrency(NonZeroU32::new(1 << power).unwrap()));
    let number = |number| NonZeroU32::new(number).unwrap();
    StudySpec {
        question: Question::Sweep(Sweep {
            dimension: Dimension::Concurrency,
            levels: levels.collect(),
            waves: None,
            fine: Some(Fine { steps: number(steps), runs: number(3) }),
            find: None,
        }),
        conditions: vec![Condition { name: "engine".to_owned(), spec }; conditions],
        repetition: Repetition {
            runs: number(3),
            cool_down: Duration::ZERO,
            restart: None,
            stop_at: None,
        },
        order: RunOrder::Interleaved,
        seed,
    }
}

/// Each engine serves so many at once and no more; runs scatter by half a per cent.
fn measured(study: &mut Study, slots: &[f64]) -> Vec<(Point, f64)> {
    let mut runs = Vec::new();
    while let Some(point) = study.next() {
        let served = point.level.place().unwrap().min(slots[point.condition as usize]);
        let scatter = 1.0 + 0.005 * Draws::new(point.seed, point.condition.into()).normal();
        let throughput = served * 40.0 * scatter;
        runs.push((point, throughput));
        let reading =
            Reading { is_valid: true, output_throughput: Some(throughput), ..Reading::default() };
        study.record(reading);
    }
    runs
}

fn knee_of(runs: &[(Point, f64)]) -> f64 {
    let mut points: Vec<(f64, f64)> =
        runs.iter().map(|(point, value)| (point.level.place().unwrap(), *value)).collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    let levels: Vec<(f64, f64)> = points
        .chunk_by(|one, other| one.0.total_cmp(&other.0).is_eq())
        .map(|runs| (runs[0].0, runs.iter().map(|run| run.1).sum::<f64>() / runs.len() as f64))
        .collect();
    levels[kneedle(&levels).unwrap()].0
}

#[test]
fn the_knee_is_found_within_one_step_on_engines_drawn_at_random() {
    const STEPS: u32 = 8;
    for number in 0..60 {
        // Lower knees are narrower than what such a scatter leaves of the curve over 256 levels.
        let slots = (16 + Draws::new(number, 0).below(140)) as f64;
        let mut study = Study::new(sweep(1, STEPS, number)).unwrap();
        let runs = measured(&mut study, &[slots]);
        let fine = runs.iter().filter(|(point, _)| point.stage == Stage::Fine);
        let places: Vec<f64> = fine.map(|(point, _)| point.level.place().unwrap()).collect();
        let (low, high) = places
            .iter()
            .fold((f64::MAX, 0.0_f64), |(low, high), place| (low.min(*place), high.max(*place)));
        let step = ((high - low) / f64::from(STEPS - 2)).max(1.0);
        let knee = knee_of(&runs);
        assert!((knee - slots).abs() <= step * 1.01, "{slots}: {knee}, step {step}");
    }
}

#[test]
fn the_stretch_around_the_knee_is_cut_into_steps_that_are_new() {
    let fine = Fine { steps: NonZeroU32::new(4).unwrap(), runs: NonZeroU32::MIN };
    let curve = [(1.0, 1.0), (2.0, 2.0), (4.0, 4.0), (8.0, 4.1), (16.0, 4.0)];
    assert_eq!(around_knee(&curve, Dimension::Concurrency, fine), [4.0, 5.0, 7.0]);
    let many = Fine { steps: NonZeroU32::new(20).unwrap(), ..fine };
    let close = around_knee(&curve, Dimension::Concurrency, many);
    assert!(close.iter().all(|place| 2.0 < *place && *place < 8.0), "{close:?}");
    assert_eq!(around_knee(&curve, Dimension::Rate, fine), [3.5, 5.0, 6.5]);
    assert_eq!(around_knee(&curve[..2], Dimension::Rate, fine), [0.0; 0]);
}

/// Reading of planned runs at powers of two, served up to 16 at once.
fn told_of(reading: impl Fn(f64) -> Reading) -> Vec<f64> {
    let mut study = Study::new(sweep(1, 4, 1)).unwrap();
    let mut fine = Vec::new();
    while let Some(point) = study.next() {
        let place = point.level.place().unwrap();
        if point.stage == Stage::Fine {
            fine.push(place);
        }
        study.record(reading(place));
    }
    fine
}

#[test]
fn where_nothing_is_generated_the_knee_is_that_of_requests() {
    let of_requests = |place: f64| Reading {
        is_valid: true,
        request_throughput: Some(place.min(16.0)),
        ..Reading::default()
    };
    assert!(!told_of(of_requests).is_empty());
    let of_both = |place: f64| Reading { output_throughput: Some(place), ..of_requests(place) };
    assert!(told_of(of_both).is_empty(), "tokens rise evenly, and they count first");
}

#[test]
fn a_level_that_was_cut_bends_no_curve() {
    let is_cut = |place: f64| Reading {
        is_valid: true,
        is_cut: 16.0 < place,
        output_throughput: Some(place.min(16.0)),
        ..Reading::default()
    };
    assert!(told_of(is_cut).is_empty());
}

#[test]
fn conditions_are_measured_at_the_levels_of_all_knees() {
    let mut study = Study::new(sweep(2, 4, 1)).unwrap();
    let runs = measured(&mut study, &[12.0, 100.0]);
    let levels = |condition: u32| {
        let fine = runs.iter().map(|(point, _)| point);
        let mut found: Vec<(u64, u32, u64)> = fine
            .filter(|point| point.condition == condition && point.stage == Stage::Fine)
            .map(|point| (point.level.place().unwrap().to_bits(), point.repetition, point.seed))
            .collect();
        found.sort_unstable();
        found
    };
    assert_eq!(levels(0), levels(1));
    let places = levels(0);
    let places = places.iter().map(|(place, ..)| f64::from_bits(*place));
    let (low, high) =
        places.fold((f64::MAX, 0.0_f64), |(low, high), place| (low.min(place), high.max(place)));
    assert!(low < 16.0 && 100.0 < high, "{low} to {high}");
}
