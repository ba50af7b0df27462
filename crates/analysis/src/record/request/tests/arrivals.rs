//! Tests of `arrivals`.

use crate::fixture::{Given, ms};
use crate::record::request::*;

fn output(record: &RequestRecord) -> (Output, u64) {
    let mut ruler = Ruler::new(0);
    let mut output = Output::default();
    output.read(record, &mut ruler);
    (output, ruler.out_of_order)
}

/// Faults: 41.
#[test]
fn events_of_one_read_are_one_arrival_with_their_tokens_added() {
    let record = Given::ok(0).arrival(50, &[Some(1), Some(2)]).arrival(60, &[Some(4)]).record();
    let (output, _) = output(&record);
    assert_eq!(
        output.arrivals,
        [
            Arrival { at: ms(50), read: 0, events: 2, tokens: Some(3) },
            Arrival { at: ms(60), read: 1, events: 1, tokens: Some(4) },
        ]
    );
    assert_eq!(output.events, 3);
    assert_eq!(output.marked_tokens(), Some(7));
}

#[test]
fn reads_with_one_stamp_are_one_arrival() {
    let record = Given::ok(0).arrival(50, &[Some(1)]).arrival(50, &[Some(2)]).record();
    let (output, _) = output(&record);
    assert_eq!(output.arrivals, [Arrival { at: ms(50), read: 0, events: 2, tokens: Some(3) }]);
}

#[test]
fn one_unmarked_event_makes_the_arrival_unknown() {
    let record = Given::ok(0).arrival(50, &[Some(1), None]).arrival(60, &[Some(4)]).record();
    let (output, _) = output(&record);
    assert_eq!(output.arrivals[0].tokens, None);
    assert_eq!(output.arrivals[1].tokens, Some(4));
    assert_eq!(output.marked_tokens(), None);
}

/// Faults: 59.
#[test]
fn roles_usage_and_silence_are_no_output() {
    let record = Given::ok(0)
        .event(10, Carried::CHOICE | Carried::ROLE)
        .event(20, Carried::CHOICE)
        .event(30, Carried::CHOICE | Carried::REASONING)
        .event(40, Carried::CHOICE | Carried::CONTENT)
        .event(50, Carried::USAGE)
        .record();
    let (output, _) = output(&record);
    assert_eq!(
        output.arrivals.iter().map(|arrival| arrival.at).collect::<Vec<_>>(),
        [ms(30), ms(40)]
    );
    assert_eq!(output.silent_events, 1);
    assert_eq!(output.first_content, Some(ms(40)));
}

#[test]
fn an_event_without_its_read_is_counted_as_disorder() {
    let mut record = Given::ok(0).arrival(50, &[None]).record();
    record.events[0].read = 7;
    let (output, out_of_order) = output(&record);
    assert!(output.arrivals.is_empty());
    assert_eq!((output.events, out_of_order), (1, 1));
}
