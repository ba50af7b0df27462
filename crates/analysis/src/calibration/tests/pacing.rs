//! Tests of `pacing`.

use crate::calibration::*;
use crate::fixture::Given;

#[test]
fn delays_and_gaps_are_of_what_was_sent() {
    let left = |id, intended, sent| Given::ok(id).moments(intended, intended, sent).record();
    let mut never_sent = left(3, 40, 40);
    never_sent.sent = None;
    never_sent.ending.outcome = Outcome::TransportError;
    let records = [left(0, 10, 11), left(1, 20, 21), left(2, 30, 35), never_sent];
    let row = PacingRow::from_records(100.0, &records, 2);
    assert_eq!((row.requests, row.not_sent, row.success), (6, 2, Some(0.5)));
    let delay = row.delay_ms.unwrap();
    assert!((delay.p50 - 1.0).abs() < 1e-9 && (delay.max - 5.0).abs() < 1e-9);
    assert_eq!(row.planned_per_s, Some(100.0));
    assert_eq!(row.planned_gap_cv, Some(0.0), "evenly planned");
    // Gaps of 10 and 14: mean 12, deviation 2.
    assert!((row.sent_per_s.unwrap() - 1e3 / 12.0).abs() < 1e-9);
    assert!((row.sent_gap_cv.unwrap() - 2.0 / 12.0).abs() < 1e-9);
}

#[test]
fn nothing_sent_has_no_delay() {
    let row = PacingRow::from_records(100.0, &[], 0);
    assert_eq!((row.delay_ms, row.sent_per_s, row.sent_gap_cv), (None, None, None));
    let one = PacingRow::from_records(100.0, &[Given::ok(0).moments(5, 5, 5).record()], 0);
    assert!(one.delay_ms.is_some() && one.sent_gap_cv.is_none());
}
