//! What holds for every study, whatever its runs come to.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};

use inferometer_model::study::{
    Dimension, Fine, Level, Point, Question, RunOrder, StopAt, StudySpec, Sweep,
};
use inferometer_study::{Reading, Study};
use proptest::prelude::*;
use support::{conditions, latency, number, search, study};

/// What a run says, drawn without regard to its point.
fn answer() -> impl Strategy<Value = Reading> {
    (prop::bool::weighted(0.9), 1.0..200.0_f64, 0.0..60.0_f64, prop::option::weighted(0.9, 1..900))
        .prop_map(|(is_valid, value, reach, throughput)| Reading {
            is_valid,
            output_throughput: throughput.map(f64::from),
            repeated: throughput.map(|throughput| 1_000.0 + f64::from(throughput) / 100.0),
            ..latency(value, reach)
        })
}

fn question() -> impl Strategy<Value = Question> {
    let levels = prop::collection::btree_set(1..60_u32, 1..6);
    let sweep = (levels, any::<bool>(), any::<bool>(), any::<bool>(), 1..6_u32).prop_map(
        |(levels, at_once, is_fine, is_search, steps)| {
            let level = |level: u32| {
                if at_once { Level::Concurrency(number(level)) } else { Level::Rate(level.into()) }
            };
            Question::Sweep(Sweep {
                dimension: if at_once { Dimension::Concurrency } else { Dimension::Rate },
                levels: levels.into_iter().map(level).collect(),
                waves: None,
                fine: is_fine.then(|| Fine { steps: number(steps), runs: number(2) }),
                find: is_search.then(|| search(100.0, 4.0, 200.0)),
            })
        },
    );
    prop_oneof![Just(Question::Repeat), sweep]
}

fn spec() -> impl Strategy<Value = StudySpec> {
    (question(), 1..4_usize, 1..6_u32, any::<u64>(), any::<bool>(), any::<bool>()).prop_map(
        |(question, servers, runs, seed, listed, stops)| {
            let mut spec = study(question, runs);
            spec.conditions = conditions(servers);
            spec.seed = seed;
            spec.order = if listed { RunOrder::Listed } else { RunOrder::Interleaved };
            let quantity = "output_throughput".to_owned();
            spec.repetition.stop_at = stops.then_some(StopAt { quantity, half_width: 0.01 });
            spec
        },
    )
}

/// More runs than any of these studies may ask for.
const RUNS_MAX: usize = 2_000;

fn played(spec: &StudySpec, answers: &[Reading]) -> Vec<Point> {
    let mut study = Study::new(spec.clone()).expect("only good specs are drawn");
    let mut points = Vec::new();
    for reading in answers.iter().cycle().take(RUNS_MAX) {
        let Some(point) = study.next() else { break };
        assert_eq!(study.next(), Some(point), "asking changes nothing");
        assert!(study.why().is_some());
        let progress = study.progress();
        assert_eq!(progress.done as usize, points.len());
        assert!(progress.expected.is_none_or(|all| progress.done < all));
        points.push(point);
        study.record(reading.clone());
    }
    let progress = study.progress();
    assert_eq!(progress.expected, Some(progress.done), "it is over");
    points
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_study_ends_and_follows_from_its_spec_and_what_it_was_told(
        spec in spec(),
        answers in prop::collection::vec(answer(), 1..40),
    ) {
        let points = played(&spec, &answers);
        prop_assert!(points.len() < RUNS_MAX);
        prop_assert_eq!(&points, &played(&spec, &answers));
        for (place, point) in points.iter().enumerate() {
            prop_assert_eq!(point.number as usize, place);
            prop_assert!(spec.spec_of(point).is_some());
        }
    }

    #[test]
    fn no_run_is_asked_for_twice_and_conditions_share_their_seeds(
        spec in spec(),
        answers in prop::collection::vec(answer(), 1..40),
    ) {
        let mut asked = BTreeSet::new();
        let mut seeds = BTreeMap::new();
        for point in played(&spec, &answers) {
            let place = point.level.place().map(f64::to_bits);
            let stage = format!("{:?}", point.stage);
            prop_assert!(asked.insert((point.condition, place, stage, point.repetition)));
            let what = (place, point.repetition, point.stage);
            prop_assert_eq!(*seeds.entry(what).or_insert(point.seed), point.seed);
        }
        let different: BTreeSet<u64> = seeds.values().copied().collect();
        prop_assert_eq!(different.len(), seeds.len());
    }
}
