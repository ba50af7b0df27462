//! Each warning about the answers, raised and not raised.

use std::time::Duration;

use inferometer_model::RequestRecord;
use inferometer_model::record::{Carried, Event, FinishReason};
use inferometer_model::spec::{DatasetSpec, Images, Lengths, MixPart, Source};

use super::*;
use crate::fixture::{Given, calm, calm_of, raised, run};

/// A calm run in which the first `count` answers are changed.
fn with(count: usize, change: impl Fn(&mut RequestRecord)) -> Vec<(&'static str, Severity)> {
    let mut observations = calm();
    observations.records.held_mut().iter_mut().take(count).for_each(change);
    raised(&observations)
}

const ALL: usize = usize::MAX;

/// Faults: 70.
#[test]
fn another_model_invalidates_the_run() {
    let found = with(1, |record| record.other_model = Some("imposter".to_owned()));
    assert_eq!(found, [("model-mismatch", Severity::Invalid)]);
}

#[test]
fn the_other_model_is_named_in_bounds() {
    let mut observations = calm();
    observations.records.held_mut()[0].other_model = Some("z".to_owned());
    observations.records.held_mut()[1].other_model = Some("y".repeat(500));
    let text = format!("`model` was requested, but `{}` answered 2 requests", "y".repeat(80));
    assert_eq!(warning(&observations, "model-mismatch").text, text);
}

/// Puts all events into the first read.
fn in_one_piece(record: &mut RequestRecord) {
    record.events.iter_mut().for_each(|event| event.read = 0);
}

/// Faults: 65.
#[test]
fn streams_in_one_piece_are_named_above_half() {
    let is_named =
        |found: Vec<(&str, Severity)>| found.contains(&("not-streaming", Severity::Degraded));
    assert!(!is_named(with(20, in_one_piece)));
    assert!(is_named(with(21, in_one_piece)));
}

#[test]
fn answers_that_were_not_to_stream_may_come_in_one_piece() {
    let mut observations = calm();
    observations.manifest.spec.workload.streaming = false;
    observations.records.held_mut().iter_mut().for_each(in_one_piece);
    assert_eq!(raised(&observations), []);
}

/// The severity of `outliers` in a run of so many calm answers, the first of which takes `times` as long.
/// The last token of a calm answer arrives after 120 ms.
fn outliers(requests: u64, times: u64, change: fn(&mut RequestRecord)) -> Option<Severity> {
    let mut observations = calm_of(requests);
    let record = &mut observations.records.held_mut()[0];
    let at = record.sent.unwrap() + Duration::from_millis(120 * times);
    let last = record.reads.last_mut().unwrap();
    (last.kernel, last.user) = (last.kernel.map(|_| at), at);
    record.ending.at = at;
    change(record);
    let found = raised(&observations);
    found.iter().find(|(key, _)| *key == "outliers").map(|(_, severity)| *severity)
}

#[test]
fn an_answer_that_took_many_times_the_median_is_named() {
    assert_eq!(outliers(40, 20, |_| ()), None);
    // One answer is a third of the time of forty, and a twentieth of that of four hundred.
    assert_eq!(outliers(40, 21, |_| ()), Some(Severity::Degraded));
    assert_eq!(outliers(400, 21, |_| ()), Some(Severity::Note));
    assert_eq!(outliers(400, 60, |_| ()), Some(Severity::Degraded));
}

#[test]
fn an_answer_that_takes_long_for_its_length_only_is_no_outlier() {
    let longer = |record: &mut RequestRecord| {
        record.asked.output_tokens = 63;
        record.usage.as_mut().unwrap().completion_tokens = Some(63);
        record.events.iter_mut().for_each(|event| event.tokens = Some(21));
    };
    assert_eq!(outliers(40, 21, longer), Some(Severity::Note));
    let of_long_prompt =
        |record: &mut RequestRecord| record.usage.as_mut().unwrap().prompt_tokens = Some(512 * 21);
    assert_eq!(outliers(40, 21, of_long_prompt), Some(Severity::Note));
}

/// The severity of `tokens-per-event` where usage reports so many tokens for events with these gaps in
/// milliseconds, which nothing marks.
fn unmarked(tokens: u32, gaps: &[u64], change: fn(&mut RequestRecord)) -> Option<Severity> {
    let answer = |id| {
        let sent = 1_000 * id;
        let mut at = sent + 50;
        let mut given = Given::ok(id).moments(sent, sent, sent).arrival(at, &[None]);
        for gap in gaps {
            at += gap;
            given = given.arrival(at, &[None]);
        }
        let mut record = given.asked(512, tokens).usage(512, tokens.into()).record();
        change(&mut record);
        record
    };
    let found = raised(&run((0..40).map(answer).collect()));
    found.iter().find(|(key, _)| *key == "tokens-per-event").map(|(_, severity)| *severity)
}

#[test]
fn tokens_that_neither_events_nor_gaps_explain_degrade_a_run() {
    let even = [10; 11];
    assert_eq!(unmarked(13, &even, |_| ()), None);
    assert_eq!(unmarked(14, &even, |_| ()), Some(Severity::Note));
    assert_eq!(unmarked(16, &even, |_| ()), Some(Severity::Degraded));
    // Text that is held back until its characters are complete leaves longer gaps: llama.cpp with tokens
    // of single bytes sends 18 events for 24 tokens.
    let held_back = [10, 20, 10, 10, 20, 10, 10, 20, 10, 10, 20, 10, 10, 20, 10, 10, 20];
    assert_eq!(unmarked(24, &held_back, |_| ()), Some(Severity::Note));
    // Beyond that the gaps do not help: TPOT and decode speed are null.
    assert_eq!(unmarked(24, &[20; 11], |_| ()), Some(Severity::Degraded));
}

#[test]
fn empty_deltas_and_the_end_of_an_answer_may_be_tokens() {
    let with_empty = |record: &mut RequestRecord| {
        let empty = Event { carried: Carried::CHOICE, text_bytes: 0, ..record.events[0] };
        record.events.extend([empty; 4]);
    };
    assert_eq!(unmarked(16, &[10; 11], with_empty), Some(Severity::Note));
    // Five tokens and the one that ends the answer.
    assert_eq!(unmarked(5, &[10; 3], |_| ()), Some(Severity::Degraded));
    let stopped = |record: &mut RequestRecord| record.finishes[0].reason = FinishReason::Stop;
    assert_eq!(unmarked(5, &[10; 3], stopped), Some(Severity::Note));
}

/// Faults: 67.
#[test]
fn lengths_that_are_off_are_named_above_a_tenth() {
    let shorter = |record: &mut RequestRecord| record.asked.output_tokens = 4;
    assert_eq!(with(4, shorter), []);
    assert_eq!(with(5, shorter), [("output-length", Severity::Note)]);
}

#[test]
fn a_length_within_a_tenth_is_as_asked() {
    let mut observations = calm();
    for record in observations.records.held_mut() {
        record.asked.output_tokens = 100;
        record.usage.as_mut().unwrap().completion_tokens = Some(90);
        record.events.iter_mut().for_each(|event| event.tokens = Some(30));
    }
    assert_eq!(raised(&observations), []);
}

fn dataset(output: Option<Lengths>) -> Source {
    let path = "prompts.jsonl".into();
    Source::Dataset(DatasetSpec { path, output, keep_order: true, ..DatasetSpec::default() })
}

/// A run in which every answer is of three tokens where eight were asked for.
fn shorter(source: Source, reason: &FinishReason) -> Observations {
    let mut observations = calm();
    observations.manifest.spec.workload.source = source;
    for record in observations.records.held_mut() {
        record.asked.output_tokens = 8;
        record.finishes[0].reason = reason.clone();
    }
    observations
}

const OFF: [(&str, Severity); 1] = [("output-length", Severity::Degraded)];

#[test]
fn an_answer_of_the_data_may_end_by_itself() {
    let stop = &FinishReason::Stop;
    assert_eq!(raised(&shorter(dataset(None), stop)), []);
    assert_eq!(raised(&shorter(dataset(None), &FinishReason::ToolCalls)), []);
    // Cut off before its length, for whatever reason: that is not what was asked.
    assert_eq!(raised(&shorter(dataset(None), &FinishReason::Length)), OFF);
    assert_eq!(raised(&shorter(dataset(None), &FinishReason::ContentFilter)), OFF);
    // The workload chose the length itself.
    assert_eq!(raised(&shorter(dataset(Some(Lengths::Fixed(8))), stop)), OFF);
    let synthetic = calm().manifest.spec.workload.source;
    assert_eq!(raised(&shorter(synthetic.clone(), stop)), OFF);
    let part = |source| MixPart { name: "a".to_owned(), weight: 1.0, source };
    let mix = Source::Mix(vec![part(dataset(None)), part(synthetic)]);
    assert_eq!(raised(&shorter(mix, stop)), []);
}

#[test]
fn an_answer_that_was_to_go_on_or_went_on_too_long_is_off() {
    let mut pinned = shorter(dataset(None), &FinishReason::Stop);
    pinned.manifest.endpoint.pinned.ignore_eos = true;
    assert_eq!(raised(&pinned), OFF);
    let mut longer = shorter(dataset(None), &FinishReason::Stop);
    longer.records.held_mut().iter_mut().for_each(|record| record.asked.output_tokens = 2);
    assert_eq!(raised(&longer), [&[("above-max-tokens", Severity::Invalid)], &OFF[..]].concat());
}

#[test]
fn the_history_of_a_later_turn_and_pictures_are_no_wrong_input() {
    let long = |record: &mut RequestRecord| {
        record.usage.as_mut().unwrap().prompt_tokens = Some(900);
        record.asked.turn = 1;
    };
    assert!(!with(20, long).iter().any(|(key, _)| *key == "input-length"));
    let mut observations = calm();
    for record in observations.records.held_mut() {
        record.usage.as_mut().unwrap().prompt_tokens = Some(900);
    }
    assert_eq!(raised(&observations), [("input-length", Severity::Note)]);
    let images = Some(Images { count: 1, width: 512, height: 512 });
    observations.manifest.spec.workload.body.images = images;
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

/// Faults: 62.
#[test]
fn a_usage_of_zero_with_output_is_named() {
    let found = with(1, |record| record.usage.as_mut().unwrap().completion_tokens = Some(0));
    assert_eq!(found, [("usage-zero", Severity::Note)]);
}

/// Faults: 67.
#[test]
fn more_tokens_than_max_tokens_allows_are_named() {
    let counts = |requests, tokens: u32| {
        with(requests, move |record| {
            record.usage.as_mut().unwrap().completion_tokens = Some(u64::from(tokens));
            record.events[2].tokens = record.events[2].tokens.map(|it| it + tokens - 3);
        })
    };
    assert_eq!(counts(ALL, 3), []);
    assert_eq!(
        counts(ALL, 4),
        [("above-max-tokens", Severity::Invalid), ("output-length", Severity::Degraded)]
    );
    // One token more than asked, on every answer, changes the throughput by a few percent only.
    let one_more = with(ALL, |record| {
        record.asked.output_tokens = 16;
        record.usage.as_mut().unwrap().completion_tokens = Some(17);
        record.events.iter_mut().for_each(|event| event.tokens = None);
        record.events.iter_mut().for_each(|event| event.text_bytes = 20);
    });
    assert!(one_more.contains(&("above-max-tokens", Severity::Degraded)), "{one_more:?}");
    assert_eq!(counts(1, 4)[0].0, "above-max-tokens");
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
    assert_eq!(found, [("no-output", Severity::Degraded)], "one of forty");
    let found = with(5, |record| *record = Given::ok(record.id.0).no_usage().record());
    assert_eq!(found[0], ("no-output", Severity::Invalid));
}

/// Faults: 7.
#[test]
fn a_missing_done_is_named_only_where_others_have_it() {
    assert_eq!(with(ALL, |record| record.done.seen = false), []);
    let found = with(3, |record| record.done.seen = false);
    assert_eq!(found, [("missing-done", Severity::Note)]);
}

/// Faults: 68.
#[test]
fn data_after_done_is_named() {
    let found = with(1, |record| record.done.events_after = 2);
    assert_eq!(found, [("data-after-done", Severity::Note)]);
}

#[test]
fn texts_name_their_numbers() {
    let mut off = calm();
    off.records.held_mut().iter_mut().take(10).for_each(|record| record.asked.output_tokens = 4);
    assert_eq!(
        warning(&off, "output-length").text,
        "25 % of the answers are more than 10 % longer or shorter than requested"
    );
    for record in off.records.held_mut() {
        record.usage.as_mut().unwrap().prompt_tokens = Some(700);
    }
    assert_eq!(
        warning(&off, "input-length").text,
        "512 tokens per prompt were requested on average, and the server counts 700"
    );
}
