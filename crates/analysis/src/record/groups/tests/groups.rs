//! Turns and parts of hand-made runs.

use inferometer_model::spec::{FixedPrompt, Lengths, MixPart};

use inferometer_model::{Observations, Outcome};

use crate::fixture::{Given, calm, run};
use crate::metric;
use crate::record::Measured;
use crate::record::groups::*;

/// First token `ttft` ms after it is sent, and two more tokens 20 ms later.
fn answer(id: u64, ttft: u64) -> Given {
    Given::ok(id).arrival(ttft, &[Some(1)]).arrival(ttft + 20, &[Some(2)])
}

fn groups(observations: &Observations) -> (Vec<TurnFigures>, Vec<PartFigures>) {
    let measured = Measured::from_observations(observations);
    (measured.turns, measured.parts)
}

#[test]
fn a_run_of_single_requests_has_neither_turns_nor_parts() {
    assert_eq!(groups(&calm()), (vec![], vec![]));
}

#[test]
fn every_turn_has_its_own_figures() {
    let (turns, parts) = groups(&run(vec![
        answer(0, 100).usage(100, 3).cached(0).record(),
        answer(1, 40).turn(1).usage(300, 3).cached(100).record(),
        answer(2, 200).usage(200, 3).cached(0).record(),
        answer(3, 60).turn(1).usage(500, 3).cached(300).record(),
        Given::failed(4, Outcome::Truncated).turn(2).arrival(500, &[Some(1)]).record(),
    ]));
    assert_eq!(parts, []);
    let [first, second, third] = turns.as_slice() else { panic!("three turns") };
    assert_eq!((first.turn, first.figures.requests, first.figures.ok), (1, 2, 2));
    let expected = Figures { mean: Some(150.0), p50: Some(150.0), p99: Some(199.0), n: 2 };
    assert_eq!(first.figures.latencies.get(&metric::TTFT).copied().unwrap(), expected);
    assert_eq!(first.figures.latencies.get(&metric::TPOT).unwrap().mean, Some(10.0));
    assert_eq!(first.figures.latencies.get(&metric::E2E).unwrap().mean, Some(170.0));
    assert_eq!(first.figures.input_tokens_mean, Some(150.0));
    assert_eq!(first.figures.cached_share, Some(0.0));
    assert_eq!(
        (second.turn, second.figures.latencies.get(&metric::TTFT).unwrap().mean),
        (2, Some(50.0))
    );
    assert_eq!(second.figures.input_tokens_mean, Some(400.0));
    assert_eq!(second.figures.cached_share, Some(0.5));
    assert_eq!((third.turn, third.figures.requests, third.figures.ok), (3, 1, 0));
}

#[test]
fn what_was_not_measured_is_null() {
    let (turns, _) = groups(&run(vec![
        answer(0, 100).no_usage().record(),
        Given::ok(1).turn(1).usage(10, 0).record(),
    ]));
    let [first, second] = turns.as_slice() else { panic!("two turns") };
    assert_eq!((first.figures.input_tokens_mean, first.figures.cached_share), (None, None));
    let nothing = Figures { mean: None, p50: None, p99: None, n: 0 };
    assert_eq!(
        (second.figures.ok, second.figures.latencies.get(&metric::TTFT).copied().unwrap()),
        (1, nothing)
    );
    assert_eq!(
        (
            second.figures.latencies.get(&metric::TPOT).copied().unwrap(),
            second.figures.latencies.get(&metric::E2E).copied().unwrap()
        ),
        (nothing, nothing)
    );
    assert!(!nothing.is_certified(Percentile::P50));
}

#[test]
fn turns_past_the_tenth_are_one_row() {
    let records = (0..13).map(|id| answer(id, 100).turn(u16::try_from(id).unwrap()).record());
    let (turns, _) = groups(&run(records.collect()));
    assert_eq!(turns.len(), 11);
    let last = turns.last().unwrap();
    assert_eq!((last.turn, last.and_later, last.figures.requests), (11, true, 3));
    assert!(turns[..10].iter().all(|turn| !turn.and_later && turn.figures.requests == 1));
}

#[test]
fn parts_are_named_by_the_mix_and_an_empty_one_is_shown() {
    let part = |name: &str| MixPart {
        name: name.to_owned(),
        weight: 1.0,
        source: Source::Fixed(FixedPrompt { prompt: "hi".to_owned(), output: Lengths::Fixed(3) }),
    };
    let records = vec![answer(0, 100).record(), answer(1, 300).part(2).record()];
    let mut observations = run(records);
    observations.manifest.spec.workload.source =
        Source::Mix(vec![part("short"), part("never"), part("long")]);
    let (turns, parts) = groups(&observations);
    assert_eq!(turns, []);
    let found: Vec<(&str, u64, Option<f64>)> = parts
        .iter()
        .map(|part| {
            (
                part.part.as_str(),
                part.figures.requests,
                part.figures.latencies.get(&metric::TTFT).unwrap().mean,
            )
        })
        .collect();
    assert_eq!(found, [("short", 1, Some(100.0)), ("never", 0, None), ("long", 1, Some(300.0))]);
}

#[test]
fn parts_of_a_saved_plan_are_numbered() {
    let records = vec![answer(0, 100).record(), answer(1, 300).part(1).record()];
    let (_, parts) = groups(&run(records));
    let names: Vec<&str> = parts.iter().map(|part| part.part.as_str()).collect();
    assert_eq!(names, ["part 1", "part 2"]);
}
