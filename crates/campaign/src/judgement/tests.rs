//! Levels judged by hand-made runs.

use inferometer_analysis::Zero;

use super::*;

fn goal(text: &str) -> Goal {
    Goal::of(&text.parse().unwrap(), Zero::Sent).unwrap()
}

/// A run with a value and how far its interval reaches to either side.
fn firm(value: f64, reach: f64) -> Told {
    told(Estimate {
        value,
        interval: Interval::new(value - reach, value + reach),
        n: 1_000,
        effective_n: None,
        certified: true,
    })
}

/// A run with a value that has too few samples.
fn weak(value: f64) -> Told {
    told(Estimate { value, interval: None, n: 50, effective_n: None, certified: false })
}

fn told(estimate: Estimate) -> Told {
    Told { is_valid: true, goals: vec![Some(estimate)], ..Told::default() }
}

fn judged(runs: &[Told], runs_at_most: u32) -> Standing {
    let runs: Vec<&Told> = runs.iter().collect();
    standing(&runs, &[goal("ttft.p99<100ms")], runs_at_most)
}

#[test]
fn one_run_decides_when_its_doubt_lies_on_one_side() {
    assert_eq!(judged(&[firm(80.0, 15.0)], 5), Standing::Met);
    assert_eq!(judged(&[firm(120.0, 15.0)], 5), Standing::Missed);
    assert_eq!(judged(&[firm(95.0, 15.0)], 5), Standing::Open);
    assert_eq!(judged(&[firm(95.0, 15.0)], 1), Standing::Undecided);
}

#[test]
fn runs_that_agree_within_their_doubt_narrow_it() {
    let near = |count: usize| judged(&vec![firm(95.0, 10.0); count], 9);
    assert_eq!(near(2), Standing::Open);
    // 10 · 1.645 / 1.96 / √3 is less than 5.
    assert_eq!(near(3), Standing::Met);
}

#[test]
fn runs_farther_apart_than_their_doubt_explains_are_judged_by_their_spread() {
    // Taken at their word these three would be sure of their mean of 95 to within 1.
    let runs = [firm(70.0, 2.0), firm(120.0, 2.0), firm(95.0, 2.0)];
    assert_eq!(judged(&runs[..2], 5), Standing::Open);
    assert_eq!(judged(&runs, 5), Standing::Open);
    assert_eq!(judged(&runs, 3), Standing::Undecided);
}

#[test]
fn values_without_doubt_of_their_own_need_three_runs_or_agreement() {
    assert_eq!(judged(&[weak(10.0)], 5), Standing::Open);
    assert_eq!(judged(&[weak(10.0), weak(11.0)], 5), Standing::Open);
    assert_eq!(judged(&[weak(10.0), weak(11.0), weak(12.0)], 5), Standing::Met);
    // Student's interval of these reaches over the limit, but they agree to the last.
    let agree = [weak(20.0), weak(99.0), weak(60.0), weak(98.0)];
    assert_eq!(judged(&agree, 5), Standing::Open);
    assert_eq!(judged(&agree, 4), Standing::Met);
    assert_eq!(judged(&[weak(20.0), weak(101.0)], 2), Standing::Undecided);
    assert_eq!(judged(&[weak(20.0)], 1), Standing::Undecided);
}

#[test]
fn two_runs_without_numbers_settle_a_level_and_one_does_not() {
    let invalid = Told { is_valid: false, ..firm(10.0, 1.0) };
    let empty = Told { is_valid: true, goals: vec![None], ..Told::default() };
    assert_eq!(judged(&[invalid.clone()], 1), Standing::Open);
    assert_eq!(judged(&[invalid.clone(), firm(80.0, 5.0)], 1), Standing::Met);
    assert_eq!(judged(&[invalid.clone(), empty], 5), Standing::NoNumbers);
    assert_eq!(judged(&[invalid.clone(), invalid, firm(99.0, 5.0)], 5), Standing::NoNumbers);
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
    let run = |latency: Told, value| {
        let mut run = latency;
        run.goals.push(value);
        standing(&[&run], &goals, 5)
    };
    assert_eq!(run(firm(80.0, 5.0), Some(share(0.97))), Standing::Met);
    assert_eq!(run(firm(98.0, 5.0), Some(share(0.90))), Standing::Missed);
    assert_eq!(run(firm(80.0, 5.0), Some(share(0.951))), Standing::Open);
    assert_eq!(run(firm(80.0, 5.0), None), Standing::Open);
}

#[test]
fn a_share_is_pooled_over_requests() {
    let run = |value: f64, n: u64, reach: f64| {
        told(Estimate {
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
    assert_eq!(standing(&[&long, &short], &errors, 5), Standing::Met);
    assert!(leans_to_met(&[&long, &short], &errors));
}

#[test]
fn the_spread_that_chance_explains_follows_chi_square() {
    // SciPy: chi2.ppf(0.95, [1, 2, 4, 9]).
    for (degrees, quantile) in [(1.0, 3.8415), (2.0, 5.9915), (4.0, 9.4877), (9.0, 16.919)] {
        assert!((explained(degrees) / quantile - 1.0).abs() < 0.03, "{degrees}");
    }
    assert!(explained(0.0).is_infinite());
}
