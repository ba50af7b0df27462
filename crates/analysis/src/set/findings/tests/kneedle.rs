//! Where a curve bends: the Kneedle algorithm (Satopää, Albrecht, Irwin and Raghavan, 2011), for a.

use super::*;

#[test]
fn the_example_of_the_paper_bends_at_two_ninths() {
    let points: Vec<(f64, f64)> =
        (0..10).map(|i| f64::from(i) / 9.0).map(|x| (x, -1.0 / (x + 0.1) + 5.0)).collect();
    assert_eq!(kneedle(&points), Some(2));
}

#[test]
fn a_server_that_serves_what_is_asked_up_to_a_limit_bends_there() {
    for limit in [3.0, 5.0, 8.0] {
        let points: Vec<(f64, f64)> =
            (1..=12).map(f64::from).map(|rate| (rate, 100.0 * rate.min(limit))).collect();
        let knee = kneedle(&points).unwrap();
        assert!((points[knee].0 - limit).abs() < 1e-9, "{limit}");
    }
}

#[test]
fn what_rises_evenly_or_falls_has_no_knee() {
    let straight: Vec<(f64, f64)> = (1..9).map(f64::from).map(|x| (x, 3.0 * x)).collect();
    assert_eq!(kneedle(&straight), None);
    let bent_up: Vec<(f64, f64)> = (1..9).map(f64::from).map(|x| (x, x * x)).collect();
    assert_eq!(kneedle(&bent_up), None);
    let falling: Vec<(f64, f64)> = (1..9).map(f64::from).map(|x| (x, -x)).collect();
    assert_eq!(kneedle(&falling), None);
    let flat: Vec<(f64, f64)> = (1..9).map(f64::from).map(|x| (x, 5.0)).collect();
    assert_eq!(kneedle(&flat), None);
}

#[test]
fn what_cannot_be_a_curve_has_no_knee() {
    assert_eq!(kneedle(&[]), None);
    assert_eq!(kneedle(&[(1.0, 1.0), (2.0, 2.0)]), None);
    assert_eq!(kneedle(&[(1.0, 1.0), (1.0, 2.0), (2.0, 3.0)]), None);
    assert_eq!(kneedle(&[(1.0, 1.0), (2.0, f64::NAN), (3.0, 3.0)]), None);
}

#[test]
fn a_small_wiggle_before_the_bend_is_no_knee() {
    let points = [
        (1.0, 10.0),
        (2.0, 20.5),
        (3.0, 30.0),
        (4.0, 40.0),
        (6.0, 60.0),
        (8.0, 61.0),
        (10.0, 62.0),
    ];
    assert_eq!(kneedle(&points), Some(4));
}
