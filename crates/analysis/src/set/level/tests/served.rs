//! Whether the server kept up with the rate that was asked of it.

use super::*;
use crate::run::RateFacts;
use crate::set::Saturation;
use crate::set::fixture::summary;

/// So many requests at ten a second, the last answered so many seconds after the first left.
fn run(requests: u64, window_s: f64, extent: ExtentFacts) -> Summary {
    let mut run = summary();
    (run.scheduled, run.attempted) = (requests, requests);
    run.outcomes.insert(Outcome::Ok, requests);
    run.window.duration_s = Some(window_s);
    run.run.extent = extent;
    run.run.load = LoadFacts::Open {
        rate: RateFacts::Steady { per_s: 10.0 },
        arrivals: Arrivals::Poisson,
        max_concurrency: None,
    };
    run
}

fn served(runs: &[Summary]) -> Served {
    Served::from_runs(Level::Rate(10.0), runs.iter()).unwrap()
}

#[test]
fn a_rate_over_a_time_is_compared_with_what_left_in_it() {
    let whole = ExtentFacts::DurationS(100.0);
    let kept = served(&[run(1_040, 100.3, whole)]);
    assert!(!kept.saturated && 0.98 < kept.share && kept.chance == 0.0, "{kept:?}");
    let behind = served(&[run(1_040, 125.0, whole)]);
    assert!(behind.saturated && behind.share < 0.85, "{behind:?}");
}

/// N12: "served 100 %" beside half of the rate. What was served is a rate of its own, and its share is of the
/// requests that the schedule had.
#[test]
fn a_schedule_that_had_few_requests_is_served_at_its_own_rate() {
    let found = served(&[run(460, 100.0, ExtentFacts::DurationS(100.0))]);
    assert!((found.served_per_s - 4.6).abs() < 0.01 && 0.99 < found.share, "{found:?}");
    assert!((found.asked_per_s - 10.0).abs() < 1e-9);
}

#[test]
fn few_requests_of_a_random_schedule_are_given_the_doubt() {
    let count = ExtentFacts::Requests(100);
    assert!(!served(&[run(100, 11.5, count)]).saturated, "it may have come slower");
    assert!(served(&[run(100, 20.0, count)]).saturated);
    let many = ExtentFacts::Requests(10_000);
    assert!(served(&[run(10_000, 1_150.0, many)]).saturated);
}

#[test]
fn a_stretched_schedule_leaves_nothing_to_chance() {
    let mut late = run(100, 11.5, ExtentFacts::Requests(100));
    let LoadFacts::Open { arrivals, .. } = &mut late.run.load else { panic!("an open loop") };
    *arrivals = Arrivals::Stretched { burstiness: 1.0 };
    let found = served(&[late]);
    assert!(found.saturated && found.chance == 0.0, "{found:?}");
}

#[test]
fn the_last_answers_need_their_own_time() {
    let mut slow = run(100, 16.0, ExtentFacts::DurationS(10.0));
    assert!(served(&[slow.clone()]).saturated);
    let metrics = crate::set::fixture::with_latencies(&slow, 100.0, 6_000.0);
    slow.metrics = metrics;
    assert!(!served(&[slow]).saturated);
}

#[test]
fn most_runs_that_pile_up_are_saturated_whatever_their_share() {
    let calm = run(1_000, 100.0, ExtentFacts::DurationS(100.0));
    let mut piling = calm.clone();
    piling.warnings = vec![crate::judge::Warning {
        key: PILING_UP.to_owned(),
        check: None,
        severity: crate::judge::Severity::Degraded,
        text: String::new(),
        remedy: String::new(),
    }];
    assert!(!served(&[calm.clone(), piling.clone()]).saturated);
    let most: Vec<Summary> = [&calm, &piling, &piling].into_iter().cloned().collect();
    assert!(served(&most).saturated);
}

#[test]
fn the_last_rate_kept_and_the_first_missed_are_told() {
    let level = |per_s: f64, share: f64| {
        let mut level = crate::set::fixture::level(1, []);
        level.level = Level::Rate(per_s);
        level.served = Some(Served {
            asked_per_s: per_s,
            served_per_s: per_s * share,
            share,
            chance: 0.0,
            piling_up: 0,
            saturated: share < 0.95,
        });
        level
    };
    let found = Saturation::find(&[level(1.0, 1.0), level(3.0, 0.97), level(5.0, 0.8)]);
    let found = *found.found().unwrap();
    assert_eq!((found.highest_served, found.lowest_missed), (Some(3.0), Some(5.0)));
    assert_eq!(found.missed_share, Some(0.8));
    assert!(!found.missed_piling_up && found.served_above.is_none());
    let all = Saturation::find(&[level(1.0, 1.0)]);
    assert_eq!(all.found().unwrap().lowest_missed, None);
    assert!(Saturation::find(&[crate::set::fixture::level(4, [])]).found().is_none());
    let torn = Saturation::find(&[level(1.0, 1.0), level(3.0, 0.8), level(5.0, 1.0)]);
    let torn = *torn.found().unwrap();
    assert_eq!((torn.highest_served, torn.lowest_missed), (Some(1.0), Some(3.0)));
    assert_eq!(torn.served_above, Some(5.0));
    let mut piling = level(7.0, 1.07);
    piling.served.as_mut().unwrap().saturated = true;
    let piling = *Saturation::find(&[piling]).found().unwrap();
    assert!(piling.missed_piling_up && piling.highest_served.is_none());
}
