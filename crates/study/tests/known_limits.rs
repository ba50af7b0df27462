//! Searches on queues whose limit is drawn at random and known by theory.
//!
//! `INFEROMETER_ENGINES` sets how many are drawn; the small number of every day is 40.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::sync::LazyLock;

use inferometer_model::study::StudySpec;
use inferometer_study::{Reading, Study};
use support::queue::Queue;
use support::{rates, search, study};

const RESOLUTION: f64 = 0.1;

fn engines() -> u64 {
    std::env::var("INFEROMETER_ENGINES").map_or(40, |count| count.parse().unwrap())
}

/// How many steps of the resolution a rate lies above the truth.
fn steps_above(rate: f64, truth: f64) -> f64 {
    (rate / truth).ln() / (1.0 + RESOLUTION).ln()
}

fn spec(number: u64, levels: &[f64]) -> (Queue, f64, StudySpec) {
    let (queue, truth) = Queue::drawn(number);
    // The search begins anywhere from far below to four times above.
    let from = truth * 0.05 * 1.1_f64.powi(i32::try_from(number % 46).unwrap());
    let levels: Vec<f64> = levels.iter().map(|share| share * truth).collect();
    let find = search(queue.p99(truth), from, truth * 64.0);
    (queue, truth, StudySpec { seed: number, ..study(rates(&levels, Some(find)), 2) })
}

/// What a search came to: how many steps above the truth, and by how many runs.
#[derive(Clone, Copy, Debug)]
struct Searched {
    error: f64,
    runs: u32,
}

fn found(number: u64, levels: &[f64]) -> Searched {
    let (queue, truth, spec) = spec(number, levels);
    let mut study = Study::new(spec).unwrap();
    while let Some(point) = study.next() {
        let estimate = queue.measured(point.level.place().unwrap(), point.seed);
        study.record(Reading { is_valid: true, goals: vec![Some(estimate)], ..Reading::default() });
    }
    let [limit] = study.limits().try_into().unwrap();
    Searched { error: steps_above(limit.level.unwrap(), truth), runs: limit.runs }
}

/// The searches without a sweep.
static SEARCHED: LazyLock<Vec<Searched>> =
    LazyLock::new(|| (0..engines()).map(|number| found(number, &[])).collect());

fn errors(searched: &[Searched]) -> Vec<f64> {
    searched.iter().map(|one| one.error).collect()
}

fn share(errors: &[f64], counts: impl Fn(f64) -> bool) -> f64 {
    errors.iter().filter(|error| counts(**error)).count() as f64 / errors.len() as f64
}

#[test]
fn the_theory_agrees_with_a_long_simulation() {
    for number in 0..4 {
        let (queue, truth) = Queue::drawn(number);
        let mut latencies = queue.latencies(truth, 1_000_000, 1);
        let (_, p99, _) = latencies.select_nth_unstable_by(990_000, f64::total_cmp);
        let ratio = *p99 / queue.p99(truth);
        assert!((ratio - 1.0).abs() < 0.05, "{queue:?}: {ratio}");
    }
}

#[test]
fn limits_are_found_within_one_step_and_hardly_ever_above() {
    let errors = errors(&SEARCHED);
    let within = share(&errors, |error| error.abs() <= 1.0);
    let above = share(&errors, |error| 1.0 < error);
    assert!(0.95 <= within && above <= 0.05, "within {within}, above {above}: {errors:?}");
}

#[test]
fn what_a_sweep_measured_is_the_first_evidence() {
    let levels = [0.3, 0.6, 0.9, 1.2, 2.0];
    let errors: Vec<f64> =
        (100..100 + engines() / 2).map(|number| found(number, &levels).error).collect();
    let within = share(&errors, |error| error.abs() <= 1.0);
    assert!(0.95 <= within, "within {within}: {errors:?}");
}

/// Near the limit no run certifies its p99, so a level there takes three runs and more.
#[test]
fn a_search_takes_tens_of_runs_and_not_hundreds() {
    let mut runs: Vec<u32> = SEARCHED.iter().map(|one| one.runs).collect();
    runs.sort_unstable();
    let (median, most) = (runs[runs.len() / 2], runs[runs.len() - 1]);
    assert!(median <= 60 && most <= 150, "median {median}, most {most}");
}

/// The rule of going down in small steps until one run passes by its value.
fn found_by_retrying(number: u64) -> f64 {
    let (queue, truth) = Queue::drawn(number);
    let limit = queue.p99(truth);
    let mut rate = truth * 1.5;
    for seed in 0.. {
        if queue.measured(rate, number * 1_000 + seed).value <= limit {
            break;
        }
        rate /= 1.02;
    }
    steps_above(rate, truth)
}

#[test]
fn retrying_until_it_passes_finds_too_much_and_the_search_does_not() {
    let retried: Vec<f64> = (0..engines()).map(found_by_retrying).collect();
    let mean = |errors: &[f64]| errors.iter().sum::<f64>() / errors.len() as f64;
    assert!(0.7 < share(&retried, |error| 0.0 < error), "{retried:?}");
    assert!(0.3 < mean(&retried), "{}", mean(&retried));
    let searched = errors(&SEARCHED);
    assert!(share(&searched, |error| 0.0 < error) < 0.35, "{searched:?}");
    assert!(mean(&searched) < 0.0, "{}", mean(&searched));
}
