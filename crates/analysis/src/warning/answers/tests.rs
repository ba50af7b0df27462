//! Each warning about the answers, raised and not raised.

use inferometer_model::RequestRecord;

use super::*;
use crate::fixture::{Given, calm, raised};

/// A calm run in which the first `count` answers are changed.
fn with(count: usize, change: impl Fn(&mut RequestRecord)) -> Vec<(&'static str, Severity)> {
    let mut observations = calm();
    observations.records.iter_mut().take(count).for_each(change);
    raised(&observations)
}

const ALL: usize = usize::MAX;

#[test]
fn another_model_invalidates_the_run() {
    let found = with(1, |record| record.other_model = Some("imposter".to_owned()));
    assert_eq!(found, [("model-mismatch", Severity::Invalid)]);
}

#[test]
fn the_other_model_is_named_in_bounds() {
    let mut observations = calm();
    observations.records[0].other_model = Some("z".to_owned());
    observations.records[1].other_model = Some("y".repeat(500));
    let measured = Measured::of(&observations);
    let expected = AnswerWarning::ModelMismatch {
        asked: "model".to_owned(),
        answered: "y".repeat(80),
        requests: 2,
    };
    assert_eq!(AnswerWarning::found(&observations, &measured), [expected]);
}

/// Puts all events into the first read.
fn in_one_piece(record: &mut RequestRecord) {
    record.events.iter_mut().for_each(|event| event.read = 0);
}

#[test]
fn streams_in_one_piece_are_named_above_half() {
    assert_eq!(with(20, in_one_piece), []);
    assert_eq!(with(21, in_one_piece), [("not-streaming", Severity::Note)]);
}

#[test]
fn answers_that_were_not_to_stream_may_come_in_one_piece() {
    let mut observations = calm();
    observations.manifest.spec.workload.streaming = false;
    observations.records.iter_mut().for_each(in_one_piece);
    assert_eq!(raised(&observations), []);
}

#[test]
fn lengths_that_are_off_are_named_above_a_tenth() {
    let shorter = |record: &mut RequestRecord| record.asked.output_tokens = 4;
    assert_eq!(with(4, shorter), []);
    assert_eq!(with(5, shorter), [("output-length", Severity::Note)]);
}

#[test]
fn a_length_within_a_tenth_is_as_asked() {
    let mut observations = calm();
    for record in &mut observations.records {
        record.asked.output_tokens = 100;
        record.usage.as_mut().unwrap().completion_tokens = Some(90);
        record.events.iter_mut().for_each(|event| event.tokens = Some(30));
    }
    assert_eq!(raised(&observations), []);
}

#[test]
fn an_estimate_of_the_input_that_is_off_is_named() {
    let reports = |prompt: u64| {
        with(ALL, move |record| record.usage.as_mut().unwrap().prompt_tokens = Some(prompt))
    };
    assert_eq!(reports(614), []);
    assert_eq!(reports(410), []);
    assert_eq!(reports(615), [("input-length", Severity::Note)]);
    assert_eq!(reports(400), [("input-length", Severity::Note)]);
}

#[test]
fn a_usage_of_zero_with_output_is_named() {
    let found = with(1, |record| record.usage.as_mut().unwrap().completion_tokens = Some(0));
    assert_eq!(found, [("usage-zero", Severity::Note)]);
}

#[test]
fn marks_that_do_not_add_up_are_named() {
    let found = with(1, |record| record.events[2].tokens = Some(2));
    assert_eq!(found, [("usage-mismatch", Severity::Note)]);
}

#[test]
fn tokens_counted_as_events_are_named() {
    let found = with(1, |record| {
        record.usage = None;
        record.events[2].tokens = None;
    });
    assert_eq!(found, [("token-source", Severity::Note)]);
}

#[test]
fn an_answer_without_output_is_named_and_counts_no_events() {
    let found = with(1, |record| *record = Given::ok(record.id.0).no_usage().record());
    assert_eq!(found, [("no-output", Severity::Note)]);
}

#[test]
fn a_missing_done_is_named_only_where_others_have_it() {
    assert_eq!(with(ALL, |record| record.done.seen = false), []);
    let found = with(3, |record| record.done.seen = false);
    assert_eq!(found, [("missing-done", Severity::Note)]);
}

#[test]
fn data_after_done_is_named() {
    let found = with(1, |record| record.done.events_after = 2);
    assert_eq!(found, [("data-after-done", Severity::Note)]);
}

#[test]
fn texts_name_their_numbers() {
    assert_eq!(
        AnswerWarning::OutputLength { share: 0.25 }.to_string(),
        "25.0 % of the answers are more than 10 % longer or shorter than asked"
    );
    let warning = AnswerWarning::InputLength { asked_mean: 512.0, reported_mean: 700.4 };
    assert_eq!(
        warning.to_string(),
        "prompts were to have 512 tokens on average, and the server counts 700"
    );
}
