//! Tests of `estimate`.

use crate::statistics::sample::*;

fn share(value: f64, interval: Option<Interval>, n: u64) -> Estimate {
    Estimate { value, interval, n, effective_n: None, certified: true }
}

fn close(runs: &[Estimate], expected: Interval) {
    let found = share_across(runs).unwrap();
    let near = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
    assert!(near(found.low, expected.low) && near(found.high, expected.high), "{found:?}");
}

#[test]
fn runs_without_a_failure_leave_as_much_open_as_all_their_requests() {
    let none = share(0.0, wilson(0.0, 10.0), 10);
    let bare = share(0.0, None, 10);
    for runs in [[none, none], [bare, bare], [none, bare]] {
        close(&runs, wilson(0.0, 20.0).unwrap());
    }
    close(&[none], wilson(0.0, 10.0).unwrap());
}

#[test]
fn runs_that_lie_apart_are_judged_by_their_spread() {
    let runs = [0.10, 0.20, 0.30].map(|value| share(value, None, 100_000));
    let found = share_across(&runs).unwrap();
    // t(0.975; 2) = 4.303 and s = 0.1, so ± 0.248, and no share is below none.
    assert!(found.low == 0.0 && (found.high - 0.448_4).abs() < 1e-3, "{found:?}");
}

#[test]
fn bursts_of_failures_are_worth_fewer_requests() {
    let burst = share(0.1, wilson(2.0, 20.0), 200);
    close(&[burst, burst], wilson(4.0, 40.0).unwrap());
}

#[test]
fn what_is_no_share_has_no_interval() {
    assert_eq!(share_across(&[]), None);
    assert_eq!(share_across(&[share(1.5, None, 10)]), None);
    assert_eq!(share_across(&[share(0.0, None, 0)]), None);
}

#[test]
fn an_interval_is_the_right_way_round_and_finite() {
    assert_eq!(Interval::new(2.0, 1.0), None);
    assert_eq!(Interval::new(f64::NAN, 1.0), None);
    assert_eq!(Interval::new(0.0, f64::INFINITY), None);
    let interval = Interval::new(1.0, 3.0).unwrap();
    assert!(interval.contains(1.0) && interval.contains(3.0) && !interval.contains(3.1));
    assert!((interval.half_width() - 1.0).abs() < 1e-12);
    assert_eq!(interval.clamped(0.0, 2.0), Interval { low: 1.0, high: 2.0 });
}
