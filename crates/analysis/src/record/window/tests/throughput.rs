//! Tests of `throughput`.

use crate::fixture::{Given, ms};
use crate::record::window::*;

fn delivered_by(given: impl IntoIterator<Item = Given>) -> Vec<(u64, u64)> {
    let records: Vec<RequestRecord> = given.into_iter().map(Given::record).collect();
    deliveries(&TimeOrder::sort(records.iter().collect()), true)
}

#[test]
fn the_busiest_second_slides_and_is_half_open() {
    let first = Given::ok(0).arrival(600, &[Some(3)]).arrival(1_599, &[Some(4)]);
    let first = first.arrival(1_600, &[Some(5)]);
    let found = delivered_by([first, Given::ok(1).arrival(2_598, &[Some(1)])]);
    // 3 + 4 lie within a second, 3 and 5 do not; 4 + 5 + 1 do.
    assert_eq!(busiest_second(found), Some(10));
    assert_eq!(busiest_second(Vec::new()), None);
}

#[test]
fn an_unknown_count_is_spread_over_the_events_and_loses_no_token() {
    let given = Given::ok(0).arrival(0, &[None]).arrival(500, &[None, None]);
    let found = delivered_by([given.arrival(5_000, &[None]).usage(1, 10)]);
    let counts: Vec<u64> = found.iter().map(|(_, count)| *count).collect();
    assert_eq!(counts, [2, 5, 3]);
    assert_eq!(busiest_second(found), Some(7));
}

#[test]
fn the_window_is_null_before_anything_is_sent() {
    let mut extremes = Extremes::default();
    assert_eq!(extremes.duration_s(), None);
    assert_eq!(extremes.window().from_ms, None);
    extremes.add(ms(200), ms(900));
    extremes.add(ms(100), ms(400));
    assert_eq!(
        extremes.window(),
        Window {
            kind: WindowKind::Whole,
            from_ms: Some(100.0),
            to_ms: Some(900.0),
            duration_s: Some(0.8),
        }
    );
}

#[test]
fn a_window_without_length_divides_nothing() {
    let mut extremes = Extremes::default();
    extremes.add(ms(5), ms(5));
    assert_eq!(extremes.duration_s(), None);
    assert_eq!(extremes.window().duration_s, Some(0.0));
}
