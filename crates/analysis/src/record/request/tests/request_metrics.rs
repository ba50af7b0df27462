//! Tests of `request_metrics`.

use inferometer_model::record::Carried;

use crate::fixture::{Given, ms};
use crate::record::request::*;

fn latencies(record: &RequestRecord) -> (RequestLatencies, u64) {
    let mut ruler = Ruler::new(0);
    let mut output = Output::default();
    output.read(record, &mut ruler);
    let tokens = OutputTokens::from_record(record, &output);
    let latencies = RequestLatencies::measure(record, &output, tokens, &mut ruler);
    (latencies, ruler.out_of_order)
}

fn widths(record: &RequestRecord) -> Widths {
    let (mut ruler, mut output) = (Ruler::new(0), Output::default());
    output.read(record, &mut ruler);
    let mut widths = Widths::default();
    widths.add_ok(record, &output, &mut ruler);
    widths
}

#[test]
fn every_latency_of_a_plain_stream() {
    // Intended at 10, let go at 12, sent at 15; two tokens at 115, one at 135, three at 195.
    let record = Given::ok(0)
        .moments(10, 12, 15)
        .arrival(115, &[Some(1), Some(1)])
        .arrival(135, &[Some(1)])
        .arrival(195, &[Some(3)])
        .usage(20, 6)
        .record();
    let (found, out_of_order) = latencies(&record);
    assert_eq!(found.get(&metric::TTFT), Some(100.0));
    assert_eq!(found.get(&metric::TTFT_SCHEDULE), Some(105.0));
    assert_eq!(found.get(&metric::TTFC), Some(100.0));
    assert_eq!(found.get(&metric::TTST), Some(20.0), "two tokens in one read are one arrival");
    assert_eq!(found.get(&metric::TPOT), Some(80.0 / 4.0));
    assert_eq!(found.get(&metric::E2E), Some(180.0));
    assert_eq!(found.get(&metric::E2E_SCHEDULE), Some(185.0));
    assert_eq!(found.get(&metric::CLIENT_QUEUE), Some(2.0));
    assert_eq!(found.get(&metric::SEND_LAG), Some(3.0));
    assert!(!found.tpot_assumed);
    assert_eq!(out_of_order, 0);
}

/// Faults: 60.
#[test]
fn a_reasoning_model_answers_later_than_it_speaks() {
    let record = Given::ok(0)
        .moments(0, 0, 0)
        .event(5, Carried::CHOICE | Carried::ROLE)
        .event(40, Carried::CHOICE | Carried::REASONING)
        .event(70, Carried::CHOICE | Carried::CONTENT)
        .record();
    let (found, _) = latencies(&record);
    assert_eq!(found.get(&metric::TTFT), Some(40.0));
    assert_eq!(found.get(&metric::TTFC), Some(70.0));
}

#[test]
fn an_answer_without_output_has_no_latency() {
    let (found, out_of_order) = latencies(&Given::ok(0).usage(10, 0).record());
    assert!(
        found.get(&metric::TTFT).is_none()
            && found.get(&metric::E2E).is_none()
            && found.get(&metric::TPOT).is_none()
    );
    assert!(found.get(&metric::SEND_LAG).is_some());
    assert_eq!(out_of_order, 0);
}

/// Faults: 64.
#[test]
fn one_token_has_no_time_per_token_after_it() {
    let (found, _) = latencies(&Given::ok(0).arrival(50, &[Some(1)]).usage(10, 1).record());
    assert!(found.get(&metric::TTFT).is_some());
    assert!(found.get(&metric::TPOT).is_none() && found.get(&metric::TTST).is_none());
}

/// Faults: 65.
#[test]
fn all_tokens_in_one_arrival_have_no_time_per_token() {
    let record = Given::ok(0).arrival(50, &[Some(4), Some(4)]).usage(10, 8).record();
    let (found, _) = latencies(&record);
    assert!(found.get(&metric::TPOT).is_none());
}

#[test]
fn no_token_after_the_first_arrival_is_no_tpot() {
    let record = Given::ok(0).arrival(50, &[Some(2)]).arrival(60, &[Some(0)]).usage(10, 2).record();
    let (found, _) = latencies(&record);
    assert!(found.get(&metric::TPOT).is_none(), "two tokens, both in the first arrival");
}

#[test]
fn unknown_counts_mark_tpot() {
    let with_tokens = |tokens| {
        let given = Given::ok(0).asked(10, 7).arrival(100, &[None]).arrival(120, &[None]);
        latencies(&given.arrival(160, &[None]).usage(10, tokens).record()).0
    };
    let found = with_tokens(3);
    assert_eq!(found.get(&metric::TPOT), Some(30.0), "60 ms over 3 − 1 tokens");
    assert!(found.tpot_assumed);
    // Two or three of seven tokens came with the first event, and nobody knows which.
    assert_eq!(with_tokens(7).get(&metric::TPOT), None);
}

#[test]
fn a_width_reaches_back_to_the_last_read_or_the_last_wake() {
    let mut record = Given::ok(0)
        .moments(0, 0, 0)
        .arrival(100, &[Some(1)])
        .arrival(120, &[Some(1), Some(1)])
        .arrival(150, &[Some(1), Some(1)])
        .arrival(170, &[Some(1), Some(1)])
        .record();
    record.reads[1].turn = ms(90);
    record.reads[2].turn = ms(145);
    record.reads[3].turn = ms(175);
    let found = widths(&record);
    assert_eq!(found.events, [(20.0, 2), (5.0, 2), (0.0, 2)]);
    assert_eq!(found.events_alone, 1);
}

#[test]
fn a_width_reaches_past_a_read_that_left_bytes_behind() {
    let mut record = Given::ok(0)
        .moments(0, 0, 0)
        .arrival(100, &[Some(1)])
        .arrival(120, &[Some(1)])
        .arrival(150, &[Some(1), Some(1)])
        .record();
    record.reads[1].drained = false;
    record.reads[2].turn = ms(0);
    assert_eq!(widths(&record).events, [(50.0, 2)]);
}

#[test]
fn moments_out_of_order_give_no_latency_and_are_counted() {
    let record = Given::ok(0).moments(100, 100, 100).arrival(50, &[Some(1)]).record();
    let (found, out_of_order) = latencies(&record);
    assert!(found.get(&metric::TTFT).is_none() && found.get(&metric::E2E).is_none());
    assert_eq!(out_of_order, 5, "TTFT and E2E from both origins, and TTFC");
}

#[test]
fn an_ok_answer_to_a_request_never_sent_is_counted() {
    let mut record = Given::ok(0).arrival(50, &[Some(1)]).record();
    record.sent = None;
    let (found, out_of_order) = latencies(&record);
    assert!(found.get(&metric::TTFT).is_none() && found.get(&metric::SEND_LAG).is_none());
    assert_eq!(out_of_order, 1);
}
