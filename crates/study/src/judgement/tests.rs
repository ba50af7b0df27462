//! Levels judged by hand-made runs.

use inferometer_analysis::LatencyOrigin;

use super::*;

fn goal(text: &str) -> Threshold {
    super::goal(&text.parse().unwrap(), LatencyOrigin::Sent).unwrap()
}

/// A run with a value and how far its interval reaches to either side.
fn firm(value: f64, reach: f64) -> Reading {
    reading(Estimate {
        value,
        interval: Interval::new(value - reach, value + reach),
        n: 1_000,
        effective_n: None,
        certified: true,
    })
}

/// A run whose requests are enough, but hang together: its percentile is not certified.
fn weak(value: f64) -> Reading {
    reading(Estimate { value, interval: None, n: 662, effective_n: Some(90.0), certified: false })
}

/// A run with too few requests for a p99.
fn scarce(value: f64) -> Reading {
    reading(Estimate { value, interval: None, n: 661, effective_n: None, certified: false })
}

fn reading(estimate: Estimate) -> Reading {
    Reading { is_valid: true, goals: vec![Some(estimate)], ..Reading::default() }
}

fn judged(runs: &[Reading], runs_at_most: u32) -> LevelVerdict {
    let runs: Vec<&Reading> = runs.iter().collect();
    verdict(&runs, &[goal("ttft.p99<100ms")], runs_at_most)
}

#[test]
fn one_run_decides_when_its_doubt_lies_on_one_side() {
    assert_eq!(judged(&[firm(80.0, 15.0)], 5), LevelVerdict::Met);
    assert_eq!(judged(&[firm(120.0, 15.0)], 5), LevelVerdict::Missed);
    assert_eq!(judged(&[firm(95.0, 15.0)], 5), LevelVerdict::Open);
    assert_eq!(judged(&[firm(95.0, 15.0)], 1), LevelVerdict::Undecided);
}

#[test]
fn runs_that_agree_within_their_doubt_narrow_it() {
    let near = |count: usize| judged(&vec![firm(95.0, 10.0); count], 9);
    assert_eq!(near(2), LevelVerdict::Open);
    // 10 · 1.645 / 1.96 / √3 is less than 5.
    assert_eq!(near(3), LevelVerdict::Met);
}

#[test]
fn runs_farther_apart_than_their_doubt_explains_are_judged_by_their_spread() {
    // Taken at their word these three would be sure of their mean of 95 to within 1.
    let runs = [firm(70.0, 2.0), firm(120.0, 2.0), firm(95.0, 2.0)];
    assert_eq!(judged(&runs[..2], 5), LevelVerdict::Open);
    assert_eq!(judged(&runs, 5), LevelVerdict::Open);
    assert_eq!(judged(&runs, 3), LevelVerdict::Undecided);
}

#[test]
fn values_without_doubt_of_their_own_need_three_runs_or_five_that_agree() {
    assert_eq!(judged(&[weak(10.0)], 5), LevelVerdict::Open);
    assert_eq!(judged(&[weak(10.0), weak(11.0)], 5), LevelVerdict::Open);
    assert_eq!(judged(&[weak(10.0), weak(11.0), weak(12.0)], 5), LevelVerdict::Met);
    // Student's interval of these reaches over the limit, but they agree to the last.
    let agree = [weak(1.0), weak(99.0), weak(99.0), weak(98.0), weak(99.5)];
    let student = between(&agree.clone().map(|run| run.goals[0].unwrap())).unwrap();
    assert!(100.0 < student.high, "{student:?}");
    assert_eq!(judged(&agree[..4], 5), LevelVerdict::Open);
    assert_eq!(judged(&agree[..4], 4), LevelVerdict::Undecided);
    assert_eq!(judged(&agree, 5), LevelVerdict::Met);
    assert_eq!(judged(&[weak(20.0), weak(101.0)], 2), LevelVerdict::Undecided);
    assert_eq!(judged(&[weak(20.0)], 1), LevelVerdict::Undecided);
}

#[test]
fn percentiles_of_too_few_requests_may_show_a_miss_and_never_that_a_goal_is_met() {
    let runs = |values: &[f64]| values.iter().copied().map(scarce).collect::<Vec<Reading>>();
    assert_eq!(judged(&runs(&[10.0]), 9), LevelVerdict::TooFewRequests);
    assert_eq!(judged(&runs(&[10.0, 11.0, 12.0]), 9), LevelVerdict::TooFewRequests);
    assert_eq!(judged(&runs(&[10.0; 9]), 9), LevelVerdict::TooFewRequests);
    assert_eq!(judged(&runs(&[200.0]), 9), LevelVerdict::TooFewRequests);
    assert_eq!(judged(&runs(&[200.0, 201.0, 199.0]), 9), LevelVerdict::Missed);
    let mixed = [weak(10.0), weak(11.0), scarce(12.0)];
    assert_eq!(judged(&mixed, 9), LevelVerdict::TooFewRequests);
    // Too low is the wrong side of a limit from below: it shows nothing at all.
    let fast = [goal("ttft.p99>100ms")];
    let slow = runs(&[10.0, 11.0, 12.0]);
    let slow: Vec<&Reading> = slow.iter().collect();
    assert_eq!(verdict(&slow, &fast, 9), LevelVerdict::TooFewRequests);
}

#[test]
fn a_rate_at_which_most_runs_pile_up_is_not_kept() {
    let piling = || Reading { piles_up: true, ..firm(10.0, 1.0) };
    let calm = || firm(10.0, 1.0);
    assert_eq!(judged(&[piling()], 5), LevelVerdict::PilesUp);
    assert_eq!(judged(&[calm(), piling()], 5), LevelVerdict::Met);
    assert_eq!(judged(&[calm(), piling(), piling()], 5), LevelVerdict::PilesUp);
    let invalid = || Reading { is_valid: false, ..piling() };
    assert_eq!(judged(&[invalid(), invalid(), calm()], 5), LevelVerdict::Met);
}

#[test]
fn two_runs_without_numbers_settle_a_level_and_one_does_not() {
    let invalid = Reading { is_valid: false, ..firm(10.0, 1.0) };
    let empty = Reading { is_valid: true, goals: vec![None], ..Reading::default() };
    assert_eq!(judged(std::slice::from_ref(&invalid), 1), LevelVerdict::Open);
    assert_eq!(judged(&[invalid.clone(), firm(80.0, 5.0)], 1), LevelVerdict::Met);
    assert_eq!(judged(&[invalid.clone(), empty], 5), LevelVerdict::NoNumbers);
    assert_eq!(judged(&[invalid.clone(), invalid, firm(99.0, 5.0)], 5), LevelVerdict::NoNumbers);
}

#[test]
fn one_missed_goal_is_enough_and_all_must_be_met() {
    let goals = [goal("ttft.p99<100ms"), goal("attainment>95%")];
    let share = |value: f64| Estimate {
        value,
        interval: Interval::new(value - 0.01, value + 0.01),
        n: 1_000,
        effective_n: None,
        certified: true,
    };
    let run = |latency: Reading, value| {
        let mut run = latency;
        run.goals.push(value);
        verdict(&[&run], &goals, 5)
    };
    assert_eq!(run(firm(80.0, 5.0), Some(share(0.97))), LevelVerdict::Met);
    assert_eq!(run(firm(98.0, 5.0), Some(share(0.90))), LevelVerdict::Missed);
    assert_eq!(run(firm(80.0, 5.0), Some(share(0.951))), LevelVerdict::Open);
    assert_eq!(run(firm(80.0, 5.0), None), LevelVerdict::Open);
}

#[test]
fn a_share_is_pooled_over_requests() {
    let run = |value: f64, n: u64, reach: f64| {
        reading(Estimate {
            value,
            interval: Interval::new(value - reach, value + reach),
            n,
            effective_n: None,
            certified: true,
        })
    };
    // The mean of the two is beyond the limit; of all requests 0.55 % failed.
    let (long, short) = (run(0.005, 9_900, 0.002), run(0.06, 100, 0.06));
    let errors = [goal("error_rate<1%")];
    assert_eq!(verdict(&[&long, &short], &errors, 5), LevelVerdict::Met);
    assert!(leans_to_met(&[&long, &short], &errors));
}

#[test]
fn runs_without_a_failure_show_little_alone_and_more_together() {
    let run = reading(Estimate {
        value: 0.0,
        interval: Interval::new(0.0, 0.037),
        n: 100,
        effective_n: None,
        certified: true,
    });
    let errors = [goal("error_rate<1%")];
    assert_eq!(verdict(&[&run], &errors, 10), LevelVerdict::Open);
    assert_eq!(verdict(&[&run; 10], &errors, 10), LevelVerdict::Met);
}

#[test]
fn the_spread_that_chance_explains_follows_chi_square() {
    // SciPy: chi2.ppf(0.95, [1, 2, 4, 9]).
    for (degrees, quantile) in [(1.0, 3.8415), (2.0, 5.9915), (4.0, 9.4877), (9.0, 16.919)] {
        assert!((explained(degrees) / quantile - 1.0).abs() < 0.03, "{degrees}");
    }
    assert!(explained(0.0).is_infinite());
}
