//! Tests of `fidelity`.

use crate::calibration::*;
use crate::fixture::{Given, ms};

fn truth(id: u64, received: u64, events: &[u64]) -> TrueAnswer {
    let events = events.iter().map(|at| ms(*at)).collect();
    TrueAnswer { id: RequestId(id), received: ms(received), events }
}

fn row(records: &[RequestRecord], answers: &[TrueAnswer]) -> FidelityRow {
    let asked = FidelityRow {
        streams: 1,
        gap_ms: 10.0,
        tokens: 3,
        kernel_stamps: true,
        engine_late_ms_p99: Some(0.1),
        ..FidelityRow::default()
    };
    asked.compare(records, answers)
}

/// Sent at 100 ms; tokens at 205, 216 and 225 ms.
fn record(id: u64) -> RequestRecord {
    Given::ok(id)
        .moments(100, 100, 100)
        .arrival(205, &[Some(1)])
        .arrival(216, &[Some(1)])
        .arrival(225, &[Some(1)])
        .record()
}

#[test]
fn errors_are_reported_less_true() {
    let records = [record(0), record(1)];
    let truths = [0, 1].map(|id| truth(id, 101, &[203, 213, 223]));
    let row = row(&records, &truths);
    assert_eq!((row.requests, row.requests_unmatched, row.gaps), (2, 0, 4), "the first, too");
    let error = row.error.unwrap();
    assert!((error.ttft_ms.p50 - 3.0).abs() < 1e-9, "105 reported, 102 true");
    // Gaps of 11 and 9 were reported where both were 10.
    assert!((error.itl_ms.p50 - 1.0).abs() < 1e-9);
    assert_eq!(row.width_ms_max, Some(0.0));
    assert_eq!(row.in_flight, Some(2));
}

#[test]
fn events_of_one_arrival_share_its_gap() {
    let mut coalesced =
        Given::ok(1).moments(0, 0, 0).arrival(100, &[Some(1)]).arrival(130, &[Some(1); 2]).record();
    coalesced.reads[1].turn = ms(110);
    let row = row(&[coalesced], &[truth(1, 0, &[100, 110, 130])]);
    let error = row.error.unwrap();
    // 15 and 15 reported, 10 and 20 true.
    assert!((error.itl_ms.p99 - 5.0).abs() < 1e-9);
    assert_eq!(row.width_ms_max, Some(20.0));
}

#[test]
fn an_answer_that_does_not_match_is_counted_and_not_compared() {
    let mut failed = record(2);
    failed.ending.outcome = Outcome::Truncated;
    let records = [record(1), failed, record(3)];
    let truths = [truth(1, 0, &[1]), truth(2, 0, &[1, 2, 3])];
    let row = row(&records, &truths);
    assert_eq!((row.requests, row.requests_unmatched), (0, 3));
    assert_eq!((row.error, row.width_ms_max), (None, None));
}

#[test]
fn streams_in_flight_are_the_engines_count() {
    let truths = [truth(1, 0, &[10]), truth(2, 5, &[20]), truth(3, 12, &[30])];
    assert_eq!(row(&[], &truths).in_flight, Some(2));
    assert_eq!(row(&[], &[]).in_flight, None);
}

#[test]
fn tokens_that_come_together_first_hide_their_gaps() {
    let heap = Given::ok(1).arrival(100, &[Some(1); 3]).arrival(120, &[Some(1)]).record();
    let row = row(&[heap], &[truth(1, 0, &[80, 90, 100, 120])]);
    assert_eq!((row.gaps, row.gaps_unseen), (1, 2));
    assert!(!row.is_sound());
}

#[test]
fn a_late_engine_proves_nothing() {
    let sound = row(&[record(1)], &[truth(1, 101, &[203, 213, 223])]);
    assert!(sound.is_sound());
    assert!(!FidelityRow { engine_late_ms_p99: Some(11.0), ..sound }.is_sound());
}
