//! Searches whose runs say what the test wants: where they begin, end and give up.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use inferometer_analysis::set::FoundLimit;
use inferometer_model::study::{
    Dimension, Level, Point, Question, Search, Stage, StudySpec, Sweep,
};
use inferometer_study::{Reading, Study};
use support::{assert_refused, conditions, latency, number, rates, search, study};

fn played(spec: StudySpec, reading: impl Fn(&Point) -> Reading) -> (Vec<Point>, Vec<FoundLimit>) {
    let mut study = Study::new(spec).unwrap();
    let mut points = Vec::new();
    while let Some(point) = study.next() {
        study.record(reading(&point));
        points.push(point);
        assert!(points.len() < 500);
    }
    (points, study.limits())
}

fn searched(find: Search, reading: impl Fn(&Point) -> Reading) -> (Vec<Point>, FoundLimit) {
    let (points, limits) = played(study(rates(&[], Some(find)), 1), reading);
    let [limit] = limits.try_into().unwrap();
    (points, limit)
}

/// A server that takes so many milliseconds per request per second, without any noise.
fn exact(ms: f64) -> impl Fn(&Point) -> Reading {
    move |point| latency(point.level.place().unwrap() * ms, 1e-6)
}

#[test]
fn the_load_is_doubled_then_bisected_then_confirmed_on_a_fresh_seed() {
    let (points, limit) = searched(search(100.0, 2.0, 1_000.0), exact(10.0));
    let places: Vec<f64> = points.iter().map(|point| point.level.place().unwrap()).collect();
    assert_eq!(places, [2.0, 4.0, 8.0, 16.0, 11.3, 9.51, 10.4, 9.95, 10.2, 9.95]);
    let last = points.last().unwrap();
    assert_eq!((last.stage, last.repetition), (Stage::Confirmation, 0));
    assert!(points.iter().rev().skip(1).all(|point| point.seed != last.seed));
    assert_eq!((limit.level, limit.lowest_missed), (Some(9.95), Some(10.2)));
    assert!(limit.confirmed && !limit.open_ended);
    assert_eq!(limit.runs, 10);
    assert_eq!(limit.words, "9.95 req/s meets ttft.p99<100ms; 10.2 req/s does not");
}

#[test]
fn a_start_above_the_limit_is_halved() {
    let (points, limit) = searched(search(100.0, 64.0, 1_000.0), exact(10.0));
    let places: Vec<f64> =
        points.iter().take(5).map(|point| point.level.place().unwrap()).collect();
    assert_eq!(places, [64.0, 32.0, 16.0, 8.0, 11.3]);
    assert!(limit.confirmed && (9.6..=10.0).contains(&limit.level.unwrap()));
}

#[test]
fn concurrency_is_whole_and_found_to_one_request() {
    let question = Question::Sweep(Sweep {
        dimension: Dimension::Concurrency,
        levels: Vec::new(),
        waves: None,
        fine: None,
        find: Some(search(100.0, 1.0, 64.0)),
    });
    let (points, limits) = played(study(question, 1), exact(14.0));
    assert!(points.iter().all(|point| matches!(point.level, Level::Concurrency(_))));
    assert_eq!((limits[0].level, limits[0].lowest_missed), (Some(7.0), Some(8.0)));
    assert_eq!(limits[0].words, "c=7 meets ttft.p99<100ms; c=8 does not");
}

#[test]
fn half_a_request_is_never_asked() {
    let question = Question::Sweep(Sweep {
        dimension: Dimension::Concurrency,
        levels: vec![Level::Concurrency(number(20))],
        waves: None,
        fine: None,
        find: Some(search(100.0, 1.5, 10.5)),
    });
    let (points, limits) = played(study(question, 1), exact(9.2));
    assert!(points.iter().skip(1).all(|point| point.level.place().unwrap() <= 10.0));
    assert_eq!((limits[0].level, limits[0].open_ended), (Some(10.0), false));
}

#[test]
fn the_highest_level_that_may_be_asked_ends_the_search() {
    let (points, limit) = searched(search(100.0, 2.0, 5.0), exact(10.0));
    assert!(points.iter().all(|point| point.level.place().unwrap() <= 5.0));
    assert_eq!((limit.level, limit.lowest_missed), (Some(5.0), None));
    assert!(limit.open_ended && limit.confirmed);
}

#[test]
fn a_server_that_never_meets_the_goals_has_no_limit() {
    let (points, limit) = searched(search(100.0, 8.0, 64.0), |_| latency(500.0, 1.0));
    assert_eq!((limit.level, limit.confirmed), (None, false));
    assert_eq!(points.len(), 5);
    assert_eq!(limit.words, "no level meets ttft.p99<100ms, down to 0.5 req/s");
}

#[test]
fn a_level_on_the_edge_takes_all_its_runs_and_counts_as_missed() {
    let find = Search { runs_at_most: number(4), ..search(100.0, 8.0, 1_000.0) };
    let edge = |point: &Point| match point.level.place().unwrap() {
        place if place < 10.0 => latency(50.0, 10.0),
        place if place < 20.0 => latency(100.0, 10.0),
        _ => latency(500.0, 10.0),
    };
    let (points, limit) = searched(find, edge);
    let sixteen = points.iter().filter(|point| point.level == Level::Rate(16.0)).count();
    assert_eq!(sixteen, 4);
    assert!(limit.undecided.contains(&16.0));
    assert!(limit.confirmed && limit.level.unwrap() < 10.0);
    assert!(
        limit.words.ends_with("the limit is inside the confidence interval"),
        "{}",
        limit.words
    );
}

#[test]
fn two_invalid_runs_count_as_missed() {
    let reading = |point: &Point| {
        let place = point.level.place().unwrap();
        Reading { is_valid: place < 10.0, ..latency(50.0, 10.0) }
    };
    let (points, limit) = searched(search(100.0, 8.0, 1_000.0), reading);
    let sixteen = points.iter().filter(|point| point.level == Level::Rate(16.0)).count();
    assert_eq!(sixteen, 2);
    assert!((9.5..10.0).contains(&limit.level.unwrap()), "{limit:?}");
    assert!(limit.words.contains("had no valid results"), "{}", limit.words);
}

#[test]
fn an_answer_that_fresh_runs_do_not_repeat_is_lowered() {
    let reading = |point: &Point| {
        let place = point.level.place().unwrap();
        let limit = if point.stage == Stage::Confirmation { 9.5 } else { 10.0 };
        latency(if place < limit { 50.0 } else { 150.0 }, 10.0)
    };
    let (_, limit) = searched(search(100.0, 2.0, 1_000.0), reading);
    assert!(limit.confirmed);
    assert!((9.2..9.5).contains(&limit.level.unwrap()), "{limit:?}");
    assert!((9.5..9.8).contains(&limit.lowest_missed.unwrap()), "{limit:?}");
    assert!(limit.words.ends_with("did not on fresh seeds"), "{}", limit.words);
}

#[test]
fn a_search_gives_up_when_nothing_is_confirmed() {
    let reading = |point: &Point| {
        let good = point.stage != Stage::Confirmation && point.level.place().unwrap() < 10.0;
        latency(if good { 50.0 } else { 150.0 }, 10.0)
    };
    let (points, limit) = searched(search(100.0, 9.0, 1_000.0), reading);
    let fresh = points.iter().filter(|point| point.stage == Stage::Confirmation).count();
    assert_eq!(fresh, 6);
    assert!(!limit.confirmed);
    assert!(limit.level.is_none(), "{limit:?}");
}

#[test]
fn a_level_that_was_not_confirmed_is_not_said_to_meet_its_goals() {
    let reading = |point: &Point| {
        let good = point.stage != Stage::Confirmation && point.level.place().unwrap() < 10.0;
        latency(if good { 50.0 } else { 150.0 }, 10.0)
    };
    let (_, limit) = searched(search(100.0, 2.0, 1_000.0), reading);
    assert!(limit.level.is_some() && !limit.confirmed, "{limit:?}");
    assert!(limit.words.contains("at first and is not confirmed"), "{}", limit.words);
    assert!(!limit.words.contains("meets"), "{}", limit.words);
}

#[test]
fn runs_of_too_few_requests_end_soon_and_say_what_to_do() {
    let few = |point: &Point| {
        let mut reading = latency(point.level.place().unwrap(), 1.0);
        let estimate = reading.goals[0].as_mut().unwrap();
        (estimate.n, estimate.interval, estimate.certified) = (100, None, false);
        reading
    };
    let (points, limit) = searched(search(100.0, 8.0, 64.0), few);
    assert_eq!(limit.level, None);
    assert!(limit.words.ends_with("n too small, run longer (--requests)"), "{}", limit.words);
    assert_eq!(points.len(), limit.undecided.len(), "one run each: more would not help");
}

#[test]
fn a_rate_that_piles_up_is_missed_however_good_its_answers() {
    let reading = |point: &Point| Reading {
        piles_up: 10.0 <= point.level.place().unwrap(),
        ..latency(50.0, 1.0)
    };
    let (_, limit) = searched(search(100.0, 2.0, 1_000.0), reading);
    assert!((9.6..10.0).contains(&limit.level.unwrap()), "{limit:?}");
    assert!(limit.words.ends_with("does not: requests pile up"), "{}", limit.words);
}

#[test]
fn conditions_share_their_seeds_however_often_each_was_at_a_level_before() {
    let mut spec = study(rates(&[], Some(search(100.0, 2.0, 1_000.0))), 1);
    spec.conditions = conditions(2);
    // The second one needs more than one run of every level, and both have the same limit.
    let reading = |point: &Point| {
        let reach = if point.condition == 0 { 1e-6 } else { 1.0 };
        latency(if point.level.place().unwrap() < 10.0 { 99.2 } else { 100.8 }, reach)
    };
    let (points, limits) = played(spec, reading);
    assert_eq!(limits[0].level, limits[1].level);
    let fresh = |condition: u32| {
        let fresh = points.iter().filter(|point| point.stage == Stage::Confirmation);
        fresh.filter(|point| point.condition == condition).map(|point| point.seed).next().unwrap()
    };
    assert_eq!(fresh(0), fresh(1));
}

#[test]
fn a_sweep_leaves_little_to_search() {
    let spec = study(rates(&[2.0, 5.0, 9.8, 10.1, 20.0], Some(search(100.0, 1.0, 100.0))), 1);
    let (points, limits) = played(spec, exact(10.0));
    let probes = points.iter().filter(|point| point.stage == Stage::Probe).count();
    assert_eq!((probes, points.len()), (0, 6));
    assert_eq!((limits[0].level, limits[0].runs), (Some(9.8), 1));
}

#[test]
fn every_condition_has_a_limit_of_its_own_and_they_take_turns() {
    let mut spec = study(rates(&[], Some(search(100.0, 2.0, 1_000.0))), 1);
    spec.conditions = conditions(2);
    let reading = |point: &Point| exact(if point.condition == 0 { 10.0 } else { 30.0 })(point);
    let (points, limits) = played(spec, reading);
    let turns: Vec<u32> = points.iter().take(6).map(|point| point.condition).collect();
    assert_eq!(turns, [0, 1, 0, 1, 0, 1]);
    assert_eq!(points[0].seed, points[1].seed);
    let levels: Vec<f64> = limits.iter().map(|limit| limit.level.unwrap()).collect();
    assert!((9.6..=10.0).contains(&levels[0]) && (3.2..=3.34).contains(&levels[1]), "{levels:?}");
}

#[test]
fn the_live_view_is_told_why() {
    let mut study = Study::new(study(rates(&[], Some(search(100.0, 8.0, 100.0))), 1)).unwrap();
    let mut why = Vec::new();
    while let Some(point) = study.next() {
        why.push(study.why().unwrap());
        assert_eq!(study.progress().expected, None);
        study.record(exact(10.0)(&point));
    }
    assert_eq!(why[0], "searches the limit: the first level");
    assert_eq!(why[1], "searches the limit: above 8 req/s");
    assert_eq!(why[2], "searches the limit: between 8 req/s and 16 req/s");
    assert_eq!(why.last().unwrap(), "confirms 9.95 req/s as the limit, on a fresh seed");
}

#[test]
fn a_search_that_means_nothing_is_refused() {
    let refused = |find: Search, why: &str| {
        assert_refused(study(rates(&[], Some(find)), 1), why);
    };
    let good = || search(100.0, 2.0, 64.0);
    let goal = |goal: &str| Search { goals: vec![goal.parse().unwrap()], ..good() };
    refused(Search { goals: Vec::new(), ..good() }, "nothing to search for");
    refused(goal("ttft.p99>100ms"), "ttft.p99>100ms");
    refused(goal("attainment>95%"), "attainment");
    refused(goal("ttft<100ms"), "--find needs a statistic of the whole run");
    refused(Search { resolution: 0.0, ..good() }, "such as 5 %, not 0");
    refused(Search { from: 100.0, ..good() }, "not go from 100 to 64");
}
