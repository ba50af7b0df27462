//! Tests of `requests`.

use crate::figures::*;
use crate::fixture::{Given, calm_record, run};

fn reasons(figure: &RequestsFigure, why: RowReason) -> usize {
    figure.rows.iter().filter(|row| row.why == why).count()
}

#[test]
fn a_rare_failure_is_drawn_beside_a_common_one() {
    let common = |id| Given::failed(id, Outcome::Rejected).moments(id, id, id).ends(id + 1);
    let mut records: Vec<RequestRecord> = (0..500).map(|id| common(id).record()).collect();
    records[77] = Given::failed(77, Outcome::TimeoutIdle).moments(77, 77, 77).record();
    let figure = RequestsFigure::choose(&run(records));
    assert_eq!((figure.of, figure.rows.len()), (500, ROWS_MAX));
    assert_eq!(reasons(&figure, RowReason::Failed), FAILED_MAX);
    assert_eq!(reasons(&figure, RowReason::Slowest), 0);
    let rare: Vec<_> =
        figure.rows.iter().filter(|row| row.outcome == Outcome::TimeoutIdle).collect();
    assert_eq!((rare.len(), rare[0].id, rare[0].why), (1, 77, RowReason::Failed));
}

#[test]
fn the_slowest_by_either_latency_are_drawn() {
    let mut records: Vec<RequestRecord> = (0..300).map(calm_record).collect();
    let late_first = Given::ok(150).moments(15_000, 15_000, 15_000).arrival(15_115, &[Some(1)]);
    records[150] = late_first.record();
    let late_end = Given::ok(30).moments(3_000, 3_000, 3_000).arrival(3_010, &[Some(1)]);
    records[30] = late_end.arrival(3_900, &[Some(1)]).record();
    let figure = RequestsFigure::choose(&run(records));
    assert_eq!(figure.rows.len(), ROWS_MAX);
    for id in [30, 150] {
        let row = figure.rows.iter().find(|row| row.id == id).unwrap();
        assert_eq!(row.why, RowReason::Slowest);
    }
    assert!(figure.rows.is_sorted_by_key(|row| row.sent_ms.unwrap()));
    // The sample reaches over the whole run.
    let sampled: Vec<u64> =
        figure.rows.iter().filter(|row| row.why == RowReason::Sample).map(|r| r.id).collect();
    assert!(sampled[0] < 30 && 270 < sampled[sampled.len() - 1], "{sampled:?}");
}

#[test]
fn what_is_not_known_of_a_request_is_null() {
    let mut refused = Given::failed(0, Outcome::TransportError).ends(5).record();
    refused.sent = None;
    let cut = Given::failed(1, Outcome::Cancelled).moments(2, 3, 4).arrival(9, &[Some(2)]);
    let figure = RequestsFigure::choose(&run(vec![refused, cut.ends(12).record()]));
    let [refused, cut] = figure.rows.as_slice() else { panic!("two rows") };
    assert_eq!((refused.sent_ms, refused.first_ms), (None, None));
    assert_eq!((refused.ended_ms, refused.output_tokens), (5.0, None));
    assert_eq!((cut.intended_ms, cut.sent_ms, cut.first_ms), (2.0, Some(4.0), Some(9.0)));
    assert_eq!((cut.ended_ms, cut.output_tokens), (12.0, Some(2)));
    assert_eq!((cut.outcome, cut.why), (Outcome::Cancelled, RowReason::Failed));
}

#[test]
fn the_first_token_of_an_answer_that_comes_whole_is_not_seen() {
    let mut observations = run(vec![calm_record(0)]);
    observations.manifest.spec.workload.streaming = false;
    assert_eq!(RequestsFigure::choose(&observations).rows[0].first_ms, None);
}

#[test]
fn places_are_spread_evenly_and_none_is_taken_twice() {
    assert_eq!(evenly(10, 2).collect::<Vec<_>>(), [2, 7]);
    assert_eq!(evenly(10, 30).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    assert_eq!(evenly(0, 3).count(), 0);
}
