//! Schedules of every shape: their number, their order, and how they vary.

use std::num::NonZeroU64;
use std::time::Duration;

use inferometer_model::spec::{RampCurve, RampSegment};
use proptest::prelude::*;

use super::*;

fn steady_rate(per_s: f64) -> Rate {
    Rate::Steady { per_s }
}

fn up_and_down(curve: RampCurve) -> Rate {
    let segment = |from_per_s, to_per_s, seconds| RampSegment {
        from_per_s,
        to_per_s,
        over: Duration::from_secs(seconds),
    };
    Rate::Ramp { segments: vec![segment(2.0, 20.0, 60), segment(20.0, 5.0, 30)], curve }
}

fn requests(count: u64) -> Extent {
    Extent::Requests(NonZeroU64::new(count).unwrap())
}

fn seconds(count: u64) -> Extent {
    Extent::Duration(Duration::from_secs(count))
}

#[test]
fn constant_arrivals_do_not_drift() {
    let schedule = Schedule::draw(&steady_rate(3.0), Arrivals::Constant, requests(300_001), 1);
    assert_eq!(schedule.moment(RequestId(1)), Some(Moment::from_nanos(333_333_333)));
    let last = schedule.moment(RequestId(300_000)).unwrap();
    assert_eq!(last, Moment::from_nanos(100_000 * 1_000_000_000));
}

#[test]
fn a_duration_holds_what_arrives_before_its_end() {
    let rate = steady_rate(10.0);
    assert_eq!(Schedule::draw(&rate, Arrivals::Constant, seconds(1), 1).len(), 10);
    let schedule = Schedule::draw(&steady_rate(1_000.0), Arrivals::Poisson, seconds(1), 1);
    assert!((900..1_100).contains(&schedule.len()), "{}", schedule.len());
}

#[test]
fn a_number_and_a_time_hold_the_longer_or_the_shorter() {
    let drawn = |count, time, both: bool| {
        let requests = NonZeroU64::new(count).unwrap();
        let duration = Duration::from_secs(time);
        let extent = if both {
            Extent::UntilBoth { requests, duration }
        } else {
            Extent::UntilFirst { requests, duration }
        };
        Schedule::draw(&steady_rate(10.0), Arrivals::Constant, extent, 1).len()
    };
    assert_eq!([drawn(7, 1, true), drawn(12, 1, true)], [10, 12]);
    assert_eq!([drawn(7, 1, false), drawn(12, 1, false)], [7, 10]);
}

#[test]
fn everything_at_once_is_at_moment_zero() {
    let schedule = Schedule::draw(&Rate::Unlimited, Arrivals::Constant, requests(5), 1);
    assert_eq!(schedule, Schedule(vec![0; 5]));
}

#[test]
fn a_stretched_schedule_ends_at_its_number_over_the_rate() {
    for burstiness in [0.01, 0.3, 1.0, 7.0] {
        for count in [1, 2, 60, 1_000] {
            for seed in 0..5 {
                let arrivals = Arrivals::Stretched { burstiness };
                let drawn = Schedule::draw(&steady_rate(4.0), arrivals, requests(count), seed);
                assert_eq!(drawn.len(), count);
                assert_eq!(drawn.last(), Some(Moment::from_nanos(count * 250_000_000)));
                assert!(drawn.0.is_sorted(), "{burstiness} {count} {seed}");
            }
        }
    }
}

#[test]
fn stretching_keeps_the_draws_and_their_proportions() {
    for burstiness in [0.3, 1.0] {
        let of = |arrivals| Schedule::draw(&steady_rate(4.0), arrivals, requests(60), 9);
        let drawn =
            of(if burstiness < 1.0 { Arrivals::Gamma { burstiness } } else { Arrivals::Poisson });
        let stretched = of(Arrivals::Stretched { burstiness });
        let factor = 15e9 / drawn.last().unwrap().as_nanos() as f64;
        assert!(1e-3 < (factor - 1.0).abs(), "chance left nothing to stretch");
        for (drawn, stretched) in drawn.0.iter().zip(&stretched.0) {
            let off = *drawn as f64 * factor - *stretched as f64;
            assert!(off.abs() < 100.0, "{drawn} became {stretched}");
        }
    }
}

/// Mean and coefficient of variation of the gaps, in units of the mean asked for.
fn gaps(arrivals: Arrivals, count: u64) -> (f64, f64) {
    let schedule = Schedule::draw(&steady_rate(100.0), arrivals, requests(count), 3);
    let gaps: Vec<f64> =
        schedule.0.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e7).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / gaps.len() as f64;
    (mean, variance.sqrt() / mean)
}

#[test]
fn random_arrivals_vary_as_they_should() {
    let (mean, variation) = gaps(Arrivals::Poisson, 50_000);
    assert!((mean - 1.0).abs() < 0.02 && (variation - 1.0).abs() < 0.02, "{mean} {variation}");
    for burstiness in [0.25_f64, 0.5, 4.0, 400.0] {
        let (mean, variation) = gaps(Arrivals::Gamma { burstiness }, 50_000);
        let expected = 1.0 / burstiness.sqrt();
        assert!((mean - 1.0).abs() < 0.03 * expected.max(0.1), "{burstiness}: {mean}");
        assert!((variation / expected - 1.0).abs() < 0.03, "{burstiness}: {variation}");
    }
}

#[test]
fn a_ramp_sends_as_many_as_the_area_under_it() {
    // 660 in the first minute, 375 in the half after it, then five a second.
    let even = |time| {
        let rate = up_and_down(RampCurve::Linear);
        Schedule::draw(&rate, Arrivals::Constant, seconds(time), 1).len()
    };
    assert_eq!([even(60), even(90), even(100)], [660, 1_035, 1_085]);
    for (curve, expected) in [(RampCurve::Linear, 1_035.0), (RampCurve::Exponential, 793.5)] {
        let rate = up_and_down(curve);
        assert!((rate.expected_within(Duration::from_secs(90)) - expected).abs() < 0.5, "{rate:?}");
        let runs = 40;
        let drawn = (0..runs)
            .map(|seed| Schedule::draw(&rate, Arrivals::Poisson, seconds(90), seed).len())
            .sum::<u64>();
        let mean = drawn as f64 / runs as f64;
        // Five standard errors of a Poisson count.
        assert!((mean - expected).abs() < 5.0 * (expected / runs as f64).sqrt(), "{mean}");
    }
}

#[test]
fn a_ramp_that_never_changes_is_a_steady_rate() {
    let flat = RampSegment { from_per_s: 8.0, to_per_s: 8.0, over: Duration::from_secs(3) };
    for curve in [RampCurve::Linear, RampCurve::Exponential] {
        let ramp = Rate::Ramp { segments: vec![flat; 3], curve };
        for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
            let one = Schedule::draw(&ramp, arrivals, requests(500), 1);
            let other = Schedule::draw(&steady_rate(8.0), arrivals, requests(500), 1);
            // A sum of rounded gaps is off by the sum of their roundings.
            let close = |(a, b): (&u64, &u64)| a.abs_diff(*b) < 500;
            assert!(one.0.iter().zip(&other.0).all(close), "{arrivals:?}");
        }
    }
}

#[test]
fn a_ramp_down_to_zero_ends_by_itself() {
    let segments =
        vec![RampSegment { from_per_s: 10.0, to_per_s: 0.0, over: Duration::from_secs(10) }];
    let rate = Rate::Ramp { segments, curve: RampCurve::Linear };
    assert_eq!(Schedule::draw(&rate, Arrivals::Constant, seconds(1_000), 1).len(), 50);
}

proptest! {
    #[test]
    fn moments_never_decrease(
        burstiness in 0.01_f64..20.0,
        seed in any::<u64>(),
        exponential in any::<bool>(),
    ) {
        let curve = if exponential { RampCurve::Exponential } else { RampCurve::Linear };
        for rate in [up_and_down(curve), steady_rate(50.0)] {
            let arrivals = Arrivals::Gamma { burstiness };
            let schedule = Schedule::draw(&rate, arrivals, requests(300), seed);
            prop_assert!(schedule.0.is_sorted());
            prop_assert_eq!(schedule.len(), 300);
        }
    }
}
