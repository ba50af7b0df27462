//! The doubt of single numbers, on runs that can be worked out by hand.

use crate::metric;
use inferometer_model::{Observations, Outcome};

use crate::fixture::{Given, calm, run};
use crate::{Interval, Scalar, summarize};

fn scalar(observations: &Observations, name: &str) -> Scalar {
    summarize(observations)
        .metrics
        .scalar(crate::metric::Metric::named(name).unwrap())
        .unwrap()
        .clone()
}

/// Streams that run in step: `waves` of eight, 100 ms each, six tokens at the end of each.
fn in_step(waves: u64) -> Observations {
    let answer = |id: u64| {
        let from = 100 * (id / 8);
        Given::ok(id)
            .moments(from, from, from)
            .arrival(from + 40, &[Some(1)])
            .arrival(from + 100, &[Some(5)])
            .usage(512, 6)
            .record()
    };
    run((0..8 * waves).map(answer).collect())
}

const RATES: [&str; 5] = [
    "request_throughput",
    "input_throughput",
    "output_throughput",
    "total_throughput",
    "per_user_throughput",
];

#[test]
fn a_loop_in_step_is_steady_and_not_a_pulse() {
    for name in RATES {
        let found = scalar(&in_step(30), name);
        let (value, interval) = (found.value.unwrap(), found.interval.unwrap());
        assert!(interval.half_width() <= 1e-9 * value, "{name}: {value} {interval:?}");
        assert!((interval.low - value).abs() <= 1e-9 * value, "{name}: {value} {interval:?}");
    }
}

#[test]
fn a_server_that_changes_its_pace_leaves_doubt() {
    let mut at = 0;
    let answer = |id: u64| {
        let (from, took) = (at, if (id / 10).is_multiple_of(2) { 50 } else { 150 });
        at += took;
        Given::ok(id).moments(from, from, from).arrival(from + took, &[Some(1)]).record()
    };
    let observations = run((0..60).map(answer).collect());
    let found = scalar(&observations, "request_throughput");
    let (value, interval) = (found.value.unwrap(), found.interval.unwrap());
    assert!((value - 10.0).abs() < 1e-9 && interval.contains(value), "{value} {interval:?}");
    assert!(2.0 < interval.half_width(), "it runs at 20 or at 6.7: {interval:?}");
}

#[test]
fn what_is_a_most_or_no_time_has_no_interval() {
    for name in ["peak_output_throughput", "concurrency_mean", "concurrency_peak"] {
        let found = scalar(&calm(), name);
        assert!(found.value.is_some() && found.interval.is_none(), "{name}");
    }
}

#[test]
fn no_failure_in_forty_is_not_a_promise_of_none() {
    let found = scalar(&calm(), "error_rate");
    let Interval { low, high } = found.interval.unwrap();
    // Wilson at 40: z²/(n + z²) is 0.088 with the normal reach and a little more with Student's.
    assert!(low.abs() < 1e-12 && (0.087..0.11).contains(&high), "{low} {high}");
}

#[test]
fn requests_that_were_not_sent_count_against_attainment_and_its_interval() {
    let mut observations = calm();
    observations.manifest.spec.slos = vec!["e2e<1s".parse().unwrap()];
    let all = scalar(&observations, "attainment");
    assert_eq!(all.value, Some(1.0));
    assert!(0.89 < all.interval.unwrap().low);
    observations.not_sent = vec![inferometer_model::journal::NotSent {
        first: inferometer_model::RequestId(40),
        count: 40,
        cause: inferometer_model::outcome::Cause::ConversationBroken,
        at: observations.ending.at,
    }];
    let half = scalar(&observations, "attainment");
    assert_eq!(half.value, Some(0.5));
    assert!(half.interval.unwrap().contains(0.5));
}

#[test]
fn speeds_take_the_interval_of_what_they_divide_by() {
    let answer = |id: u64| {
        let (from, ttft) = (200 * id, 40 + 20 * (id * 7 % 5));
        Given::ok(id)
            .moments(from, from, from)
            .arrival(from + ttft, &[Some(1)])
            .arrival(from + ttft + 10, &[Some(1)])
            .usage(512, 2)
            .record()
    };
    let observations = run((0..50).map(answer).collect());
    let pp = scalar(&observations, "pp");
    let value = pp.value.unwrap();
    assert!((value - 512.0 / 0.08).abs() < 1e-6, "{value}");
    let interval = pp.interval.unwrap();
    let ttft = summarize(&observations).metrics.distribution(&metric::TTFT).unwrap().clone();
    let relative = interval.half_width() / value;
    // Above, the interval of a latency reaches further than that of a speed.
    let mean = ttft.mean.unwrap();
    let of_ttft = (mean - ttft.intervals.mean.unwrap().low) / mean;
    assert!((relative / of_ttft - 1.0).abs() < 0.1, "512 tokens each: {relative} {of_ttft}");
    let tg = scalar(&observations, "tg");
    assert!((tg.value.unwrap() - 100.0).abs() < 1e-9);
    assert!(tg.interval.unwrap().half_width() < 1e-9, "every gap is 10 ms");
}

#[test]
fn a_run_that_failed_has_no_rates_and_an_error_rate() {
    let failed = |id| Given::failed(id, Outcome::HttpError).ends(10).record();
    let observations = run((0..40).map(failed).collect());
    assert_eq!(scalar(&observations, "request_throughput").interval, None);
    let found = scalar(&observations, "error_rate");
    assert_eq!(found.value, Some(1.0));
    assert!(0.89 < found.interval.unwrap().low);
}
