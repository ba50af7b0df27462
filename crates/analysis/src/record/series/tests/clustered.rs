//! What values in the order of time come to, where it can be said by hand.

use crate::record::series::*;

/// Draws between 0 and 1 that have nothing to do with each other.
fn draws(count: usize) -> Vec<f64> {
    let mut state = 7_u64;
    let next = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..count).map(next).collect()
}

fn pooled(requests: &[&[f64]]) -> Distribution {
    let mut clustered = Clustered::default();
    for values in requests {
        values.iter().for_each(|value| clustered.push(*value));
        clustered.end_request();
    }
    clustered.distribution(Some(8)).unwrap()
}

#[test]
fn nothing_comes_to_nothing() {
    assert_eq!(Clustered::default().distribution(Some(8)), None);
    assert_eq!(Clustered::one_each(Vec::new()).distribution(Some(8)), None);
}

#[test]
fn equal_values_have_intervals_of_no_width() {
    let found = Clustered::one_each(vec![4.0; 700]).distribution(Some(8)).unwrap();
    let exactly = Some(crate::Interval { low: 4.0, high: 4.0 });
    assert_eq!((found.intervals.mean, found.intervals.p99), (exactly, exactly));
    assert_eq!((found.effective_n, found.intervals.p999), (Some(700.0), None));
    assert_eq!(found.not_certified, [Percentile::P999]);
}

#[test]
fn one_request_says_nothing_about_how_requests_differ() {
    let found = pooled(&[&[1.0; 900]]);
    assert_eq!((found.effective_n, found.intervals.mean), (None, None));
    assert_eq!(found.not_certified, Percentile::ALL);
}

#[test]
fn independent_values_are_worth_their_number() {
    let found = Clustered::one_each(draws(1_000)).distribution(Some(8)).unwrap();
    assert!(800.0 < found.effective_n.unwrap(), "{found:?}");
    assert_eq!(found.not_certified, [Percentile::P999]);
    let mean = found.intervals.mean.unwrap();
    // Student's reach times the standard error of a thousand: 1.962 · 0.2887 / √1000.
    // A few batches may ask for more, and never for less.
    assert!((0.0178..0.036).contains(&mean.half_width()), "{mean:?}");
    let p50 = found.intervals.p50.unwrap();
    assert!(p50.contains(found.p50.unwrap()) && p50.half_width() < 0.06, "{p50:?}");
}

#[test]
fn neighbours_that_resemble_each_other_are_worth_fewer() {
    let alike: Vec<f64> = draws(20).iter().flat_map(|value| [*value; 50]).collect();
    let found = Clustered::one_each(alike).distribution(Some(8)).unwrap();
    assert_eq!(found.n, 1_000);
    assert!(found.effective_n.unwrap() < 100.0, "{found:?}");
    assert!(found.not_certified.contains(&Percentile::P99), "{found:?}");
    assert_eq!(found.intervals.p99, None);
    assert!(found.p99.is_some(), "the number is kept");
}

#[test]
fn values_of_one_request_count_by_what_they_have_of_their_own() {
    let values = draws(2_000);
    let apart: Vec<&[f64]> = values.chunks(10).collect();
    let found = pooled(&apart);
    assert!(1_000.0 < found.effective_n.unwrap(), "two hundred requests of ten: {found:?}");
    let copies: Vec<[f64; 10]> = draws(200).into_iter().map(|value| [value; 10]).collect();
    let alike: Vec<&[f64]> = copies.iter().map(<[f64; 10]>::as_slice).collect();
    let found = pooled(&alike);
    assert!(found.effective_n.unwrap() <= 200.5, "each says one thing ten times: {found:?}");
    assert!(found.not_certified.contains(&Percentile::P99));
}

#[test]
fn a_counted_value_is_its_copies() {
    let mut counted = Clustered::default();
    let mut copied = Clustered::default();
    for (place, value) in draws(60).into_iter().enumerate() {
        let count = 1 + place as u64 % 3;
        counted.push_counted(value, count);
        (0..count).for_each(|_| copied.push(value));
        if place % 4 == 3 {
            counted.end_request();
            copied.end_request();
        }
    }
    let (counted, copied) =
        (counted.distribution(Some(8)).unwrap(), copied.distribution(Some(8)).unwrap());
    assert_eq!((counted.n, counted.p90), (copied.n, copied.p90));
    let close = |one: f64, other: f64| assert!((one - other).abs() < 1e-9, "{one} {other}");
    close(counted.effective_n.unwrap(), copied.effective_n.unwrap());
    close(counted.intervals.mean.unwrap().low, copied.intervals.mean.unwrap().low);
    assert_eq!(counted.not_certified, copied.not_certified);
}

#[test]
fn a_mean_of_times_is_not_below_zero() {
    let found = Clustered::one_each(vec![1.0, 100.0]).distribution(Some(8)).unwrap();
    assert!(0.0 <= found.intervals.mean.unwrap().low);
}
