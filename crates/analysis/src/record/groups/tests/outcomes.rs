//! Tests of `outcomes`.

use inferometer_model::Observations;
use inferometer_model::journal::NotSent;
use inferometer_model::record::{Finish, FinishReason, ResponseHead};

use crate::fixture::{Given, ms, run};
use crate::record::groups::*;

fn refused(id: u64, status: u16, at: u64, message: &str) -> RequestRecord {
    let mut record = Given::failed(id, Outcome::HttpError).ends(at).record();
    record.head = Some(ResponseHead { status, read: 0, streamed: true });
    record.ending.message = Some(message.to_owned());
    record
}

fn failure_groups(observations: &Observations) -> (Vec<FailureGroup>, u64) {
    let mut tally = FailureTally::default();
    for record in &observations.records {
        tally.add(&record);
    }
    tally.finish(&observations.not_sent)
}

#[test]
fn failures_are_grouped_with_their_first_words_and_the_largest_group_first() {
    let observations = run(vec![
        Given::ok(0).arrival(50, &[Some(1)]).record(),
        refused(1, 400, 900, "later"),
        refused(2, 500, 300, "boom"),
        refused(3, 400, 200, "too long"),
    ]);
    let (groups, not_listed) = failure_groups(&observations);
    assert_eq!((groups.len(), not_listed), (2, 0));
    let first = &groups[0];
    assert_eq!((first.status, first.count), (Some(400), 2));
    assert_eq!((first.first_ms, first.last_ms), (200.0, 900.0));
    assert_eq!(first.example.as_deref(), Some("too long"));
    assert_eq!(groups[1].status, Some(500));
}

#[test]
fn what_the_client_ended_on_purpose_is_no_failure() {
    let left = Given::failed(0, Outcome::Abandoned).record();
    let (groups, _) = failure_groups(&run(vec![left, refused(1, 500, 300, "boom")]));
    assert_eq!(groups.iter().map(|group| group.outcome).collect::<Vec<_>>(), [Outcome::HttpError]);
}

#[test]
fn requests_never_sent_are_a_group_without_a_stage() {
    let mut observations = run(vec![Given::ok(0).arrival(50, &[Some(1)]).record()]);
    let part = |first, count, at| NotSent {
        first: inferometer_model::RequestId(first),
        count,
        cause: Cause::RunStopped,
        at: ms(at),
    };
    observations.not_sent = vec![part(1, 4, 70), part(5, 1, 80)];
    let (groups, _) = failure_groups(&observations);
    let [group] = groups.as_slice() else { panic!("one group") };
    assert_eq!((group.outcome, group.count, group.stage), (Outcome::NotSent, 5, None));
    assert_eq!((group.first_ms, group.last_ms), (70.0, 80.0));
}

#[test]
fn more_ways_to_fail_than_a_page_holds_are_counted() {
    let records = (0..25).map(|id| refused(id, 400 + u16::try_from(id).unwrap(), 10, "x"));
    let (groups, not_listed) = failure_groups(&run(records.collect()));
    assert_eq!((groups.len(), not_listed), (GROUPS_MAX, 5));
}

/// Faults: 69.
#[test]
fn finish_reasons_are_bounded_and_none_is_lost() {
    let records: Vec<RequestRecord> = (0..30)
        .map(|id| {
            let mut record = Given::ok(id).record();
            let reason = if id < 6 { "stop".to_owned() } else { format!("odd {id:02}") };
            record.finishes = vec![Finish { choice: 0, reason: FinishReason::parse(&reason) }];
            record
        })
        .collect();
    let mut found = BTreeMap::new();
    for record in &records {
        count_finish_reasons(record, &mut found);
    }
    let found = most_frequent(found);
    assert_eq!(found["stop"], 6);
    assert_eq!(found[OTHER_REASONS], 5);
    assert_eq!(found.values().sum::<u64>(), 30);
}
