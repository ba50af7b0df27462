//! Tests of `level`.

use crate::calibration::*;
use crate::fixture::Given;

/// Two slots; each request takes `took` ms and the next leaves at once.
fn answers(took: &[u64]) -> Vec<RequestRecord> {
    let mut free = [0, 0];
    took.iter()
        .enumerate()
        .map(|(id, took)| {
            let slot = usize::from(free[1] < free[0]);
            let at = free[slot];
            free[slot] += took;
            Given::ok(id as u64)
                .moments(at, at, at)
                .arrival(at + took, &[Some(2)])
                .usage(10, 2)
                .record()
        })
        .collect()
}

#[test]
fn rates_are_of_the_time_when_all_slots_were_busy() {
    // Both slots end their first request at 100 ms at the latest; the last leaves at 300 ms.
    let level = Level::from_records(2, &answers(&[50, 100, 50, 100, 100, 100, 100, 100]));
    assert_eq!((level.requests, level.success), (8, Some(1.0)));
    assert_eq!(level.steady_s, Some(0.2));
    assert_eq!(level.steady_requests, 4, "two end at 200 ms and two at 300 ms");
    assert_eq!(level.requests_per_s, Some(20.0));
    assert_eq!(level.tokens_per_s, Some(40.0));
    assert_eq!(level.events_per_s, Some(20.0));
    let latency = level.latency_ms.unwrap();
    assert!((latency.p50 - 100.0).abs() < 1e-9 && (latency.p99 - 100.0).abs() < 1e-9);
}

#[test]
fn a_stream_over_the_edge_counts_with_what_lies_inside() {
    let first = Given::ok(0).arrival(100, &[Some(1)]).usage(10, 1).record();
    let over_the_edge = Given::ok(1)
        .moments(100, 100, 100)
        .arrival(150, &[Some(2)])
        .arrival(250, &[Some(2)])
        .usage(10, 4)
        .record();
    let last = Given::ok(2).moments(200, 200, 200).arrival(300, &[Some(1)]).record();
    let level = Level::from_records(1, &[first, over_the_edge, last]);
    assert_eq!((level.steady_s, level.steady_requests), (Some(0.1), 0));
    assert_eq!(level.requests_per_s, Some(5.0));
    assert_eq!(level.events_per_s, Some(10.0));
    assert_eq!(level.tokens_per_s, Some(20.0));
}

#[test]
fn a_failure_is_in_the_share_and_not_in_the_rate() {
    let mut records = answers(&[100, 100, 100, 100, 100, 100]);
    records[3].ending.outcome = Outcome::Truncated;
    let level = Level::from_records(2, &records);
    assert_eq!(level.success, Some(5.0 / 6.0));
    assert_eq!(level.steady_requests, 1);
}

#[test]
fn a_level_that_never_was_steady_has_no_rate() {
    let level = Level::from_records(2, &answers(&[100, 100]));
    assert_eq!((level.requests, level.requests_per_s, level.latency_ms), (2, None, None));
    assert_eq!(Level::from_records(2, &[]).success, None);
}

#[test]
fn the_capacity_is_that_of_the_best_levels() {
    let level = |took: u64| Level::from_records(2, &answers(&[took; 10]));
    let ladder = Ladder {
        one_shot: vec![level(10), level(5), Level::from_records(2, &[])],
        streamed: vec![level(20)],
    };
    let capacity = ladder.capacity().unwrap();
    assert!((capacity.requests_per_s - 400.0).abs() < 1e-6);
    assert!((capacity.events_per_s - 100.0).abs() < 1e-6);
    assert_eq!(Ladder { streamed: vec![], ..ladder }.capacity(), None);
}
