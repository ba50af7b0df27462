//! Tests of `pooled`.

use inferometer_model::RequestRecord;

use crate::fixture::{Given, ms};
use crate::record::series::*;

fn gaps(record: &RequestRecord) -> Gaps {
    let records = TimeOrder::sort(vec![record]);
    let chart = Steps::of_charts(&records)[1];
    Gaps::gather(&records, (chart, 0), &Ruler::new(0), Some(8))
}

/// Least, mean and largest value, and how many there are.
fn figures(found: Option<&Series>) -> (f64, f64, f64, u64) {
    let found = found.unwrap().found.as_ref().unwrap();
    (found.min.unwrap(), found.mean.unwrap(), found.max.unwrap(), found.n)
}

/// Faults: 66.
#[test]
fn an_arrival_of_three_tokens_has_three_gaps_of_a_third() {
    let record = Given::ok(0)
        .moments(10, 12, 15)
        .arrival(115, &[Some(1), Some(1)])
        .arrival(145, &[Some(1)])
        .arrival(205, &[Some(3)])
        .record();
    let found = gaps(&record);
    assert_eq!(figures(found.icl.as_ref()), (30.0, 45.0, 60.0, 2));
    assert_eq!(figures(found.itl.as_ref()), (20.0, 22.5, 30.0, 4));
}

#[test]
fn text_without_tokens_passes_its_gap_on() {
    let record = Given::ok(0)
        .arrival(100, &[Some(1)])
        .arrival(110, &[Some(0)])
        .arrival(130, &[Some(2)])
        .record();
    let found = gaps(&record);
    assert_eq!(figures(found.icl.as_ref()), (10.0, 15.0, 20.0, 2));
    assert_eq!(figures(found.itl.as_ref()), (15.0, 15.0, 15.0, 2));
}

#[test]
fn one_token_in_each_arrival_makes_both_the_same() {
    let record = Given::ok(0).arrival(100, &[Some(4)]).arrival(110, &[Some(1)]).record();
    let found = gaps(&record);
    assert_eq!(figures(found.icl.as_ref()), (10.0, 10.0, 10.0, 1));
    assert_eq!(found.itl, found.icl);
}

#[test]
fn unknown_counts_leave_the_gaps_between_chunks() {
    let record = Given::ok(0).arrival(100, &[None]).arrival(120, &[None]).record();
    let found = gaps(&record);
    assert_eq!(figures(found.icl.as_ref()), (20.0, 20.0, 20.0, 1));
    assert!(found.itl_unknown && found.itl.is_none());
}

#[test]
fn one_arrival_has_no_gap_and_neither_has_a_failure() {
    let record = Given::ok(0).arrival(50, &[Some(4), Some(4)]).record();
    assert_eq!(gaps(&record).icl, None);
    let failed = Given::failed(0, Outcome::Truncated);
    let failed = failed.arrival(50, &[Some(1)]).arrival(60, &[Some(1)]).record();
    assert_eq!(gaps(&failed).icl, None);
}

#[test]
fn the_client_lag_is_of_every_stamped_read() {
    let mut record = Given::ok(0).arrival(100, &[Some(1)]).arrival(120, &[Some(1)]).record();
    record.reads[0].user = ms(103);
    record.reads[1].kernel = None;
    let records = TimeOrder::sort(vec![&record]);
    let found = client_lag(&records, 2, &mut Ruler::new(0), Some(8));
    assert_eq!(figures(found.as_ref()), (3.0, 3.0, 3.0, 1));
}
