//! What must hold for any run, however odd its records.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use inferometer_model::journal::NotSent;
use inferometer_model::outcome::Cause;
use inferometer_model::record::{Carried, Event, Read, Usage};
use inferometer_model::records::{RecordFile, RecordOrder, Records, StoredIter, TimeOrder};
use inferometer_model::{Moment, Observations, Outcome, RequestId, RequestRecord};
use proptest::prelude::*;
use serde_json::Value;

use crate::figures::tests::figures;
use crate::fixture::{Given, ms, run};
use crate::record::Measured;
use crate::summarize;

/// A file from which only so many records can be read, in all passes together.
#[derive(Debug)]
struct FailingFile {
    by_id: Vec<RequestRecord>,
    in_time: Vec<RequestRecord>,
    readable: AtomicUsize,
}

impl RecordFile for FailingFile {
    fn count(&self) -> usize {
        self.by_id.len()
    }

    fn read(&self, order: RecordOrder, positions: Range<usize>) -> StoredIter<'_> {
        let records = match order {
            RecordOrder::Id => &self.by_id,
            RecordOrder::Time => &self.in_time,
        };
        let take = |left: usize| left.checked_sub(1);
        Box::new(records[positions].iter().map_while(move |record| {
            let taken = self.readable.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
            taken.is_ok().then(|| record.clone())
        }))
    }

    fn span(&self) -> Option<(Moment, Moment)> {
        let ends = self.by_id.iter().map(|record| record.ending.at);
        Some((self.in_time.first()?.left(), ends.max()?))
    }

    fn read_error(&self) -> Option<&str> {
        (self.readable.load(Ordering::Relaxed) == 0).then_some("no more can be read")
    }
}

fn event() -> impl Strategy<Value = Event> {
    (0_u32..6, 0_u16..512, prop::option::of(0_u32..9)).prop_map(|(read, bits, tokens)| Event {
        read,
        choice: 0,
        carried: Carried::from_bits_truncate(bits),
        tokens,
        text_bytes: 1,
    })
}

fn read() -> impl Strategy<Value = Read> {
    (prop::option::of(0_u64..5_000), 0_u64..5_000, 0_u64..5_000).prop_map(|(kernel, user, turn)| {
        Read { kernel: kernel.map(ms), user: ms(user), turn: ms(turn), bytes: 1, drained: true }
    })
}

fn usage() -> impl Strategy<Value = Usage> {
    let count = || prop::option::of(0_u64..50);
    (count(), count(), count()).prop_map(|(prompt_tokens, completion_tokens, cached_tokens)| {
        Usage { prompt_tokens, completion_tokens, cached_tokens }
    })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let attempted: Vec<Outcome> =
        Outcome::all().filter(|outcome| *outcome != Outcome::NotSent).collect();
    prop_oneof![3 => Just(Outcome::Ok), 1 => prop::sample::select(attempted)]
}

/// Any record at all: moments need not be in order, nor events have their reads.
fn record() -> impl Strategy<Value = RequestRecord> {
    let moments = (0_u64..5_000, 0_u64..5_000, prop::option::of(0_u64..5_000), 0_u64..5_000);
    let stream = (prop::collection::vec(read(), 0..5), prop::collection::vec(event(), 0..8));
    let place = (0_u16..3, 0_u16..14);
    (moments, stream, prop::option::of(usage()), outcome(), place).prop_map(
        |((intended, admitted, sent, end), (reads, events), usage, outcome, (part, turn))| {
            let mut record = Given::failed(0, outcome).record();
            record.intended = ms(intended);
            record.admitted = ms(admitted);
            record.sent = sent.map(ms);
            record.ending.at = ms(end);
            record.ending.message = Some(format!("ended at {end}"));
            (record.reads, record.events, record.usage) = (reads, events, usage);
            (record.asked.part, record.asked.turn) = (part, turn);
            record
        },
    )
}

fn observations() -> impl Strategy<Value = Observations> {
    (prop::collection::vec(record(), 0..12), 0_u64..4).prop_map(|(mut records, not_sent)| {
        for (id, record) in (0..).zip(&mut records) {
            record.id = RequestId(id);
        }
        let mut observations = run(records);
        let slos = ["ttft<900ms", "tpot<300ms", "e2e.p50<2s", "output_throughput>1"];
        observations.manifest.spec.slos = slos.map(|slo| slo.parse().unwrap()).to_vec();
        observations.not_sent = vec![NotSent {
            first: RequestId(observations.records.len() as u64),
            count: not_sent,
            cause: Cause::RunStopped,
            at: Moment::ZERO,
        }];
        observations
    })
}

/// Every metric is either there or null with a reason.
fn check_metric(key: &str, value: &Value) {
    let missing = value.get("reason").is_some();
    let is_null = |field: &str| value[field].is_null();
    if key.ends_with("_ms") {
        assert_eq!(value["n"] == 0, missing, "{key}: {value}");
        for field in ["mean", "p50", "p90", "p95", "p99", "min", "max"] {
            assert_eq!(is_null(field), missing, "{key}.{field}: {value}");
        }
        assert!(!missing || is_null("std"), "{key}: {value}");
    } else {
        assert_eq!(is_null("value"), missing, "{key}: {value}");
    }
}

proptest! {
    #[test]
    fn the_outcomes_add_up_to_what_was_scheduled(observations in observations()) {
        let summary = summarize(&observations);
        prop_assert_eq!(summary.outcomes.values().sum::<u64>(), summary.scheduled);
        let not_sent = summary.count(Outcome::NotSent);
        prop_assert_eq!(summary.attempted + not_sent, summary.scheduled);
        let failed: u64 = summary.failures.iter().map(|group| group.count).sum();
        let listed = failed + summary.failures_not_listed;
        let not_failed = summary.count(Outcome::Ok) + summary.count(Outcome::Abandoned);
        prop_assert_eq!(listed, summary.scheduled - not_failed);
    }

    #[test]
    fn what_is_missing_is_null_with_a_reason_and_never_zero(observations in observations()) {
        let document: Value =
            serde_json::from_slice(&summarize(&observations).to_json_bytes()).unwrap();
        for (key, value) in document["metrics"].as_object().unwrap() {
            check_metric(key, value);
        }
    }

    #[test]
    fn groups_add_up_to_the_run_and_no_promise_is_kept_more_often_than_all_requests_are_ok(
        observations in observations(),
    ) {
        let summary = summarize(&observations);
        let ok = summary.count(Outcome::Ok);
        let of_turns: u64 = summary.turns.iter().map(|turn| turn.figures.requests).sum();
        prop_assert!(summary.turns.is_empty() || of_turns == summary.attempted);
        let of_parts: u64 = summary.parts.iter().map(|part| part.figures.ok).sum();
        prop_assert!(summary.parts.is_empty() || of_parts == ok);
        let slos = summary.request_slos.unwrap();
        for promise in &slos.promises {
            prop_assert!(slos.met <= promise.met && promise.met <= ok);
        }
    }

    #[test]
    fn figures_agree_with_the_metrics(observations in observations()) {
        figures::check(&summarize(&observations), &observations);
    }

    #[test]
    fn the_order_of_the_records_changes_no_byte(
        observations in observations(),
        seed in prop::collection::vec(any::<u32>(), 12),
    ) {
        let expected = summarize(&observations).to_json_bytes();
        let mut shuffled = observations.clone();
        let mut keyed: Vec<_> = seed.into_iter().zip(shuffled.records.into_held()).collect();
        keyed.sort_by_key(|(key, _)| *key);
        let records: Vec<_> = keyed.into_iter().map(|(_, record)| record).collect();
        shuffled.records = records.into();
        prop_assert_eq!(summarize(&shuffled).to_json_bytes(), expected);
    }

    /// Whoever reads a summary of a file checks afterwards whether it could be read to its end.
    #[test]
    fn records_that_end_early_do_not_panic(
        mut observations in observations(),
        readable in 0_usize..200,
    ) {
        let held = observations.records.into_held();
        let in_time = TimeOrder::sort(held.iter().collect()).iter().map(Cow::into_owned).collect();
        let file = Arc::new(FailingFile { by_id: held, in_time, readable: readable.into() });
        observations.records = Records::Stored(file.clone());
        summarize(&observations);
        file.readable.store(readable, Ordering::Relaxed);
        Measured::gather(&observations, 0);
    }

    #[test]
    fn attempts_that_are_computed_anew_are_the_same(observations in observations()) {
        let held = Measured::gather(&observations, usize::MAX);
        let anew = Measured::gather(&observations, 0);
        prop_assert_eq!(format!("{held:?}"), format!("{anew:?}"));
    }

    #[test]
    fn a_summary_survives_its_document(observations in observations()) {
        let summary = summarize(&observations);
        let bytes = summary.to_json_bytes();
        let read = crate::Summary::from_json_bytes(&bytes).unwrap();
        prop_assert_eq!(read.to_json_bytes(), bytes);
        prop_assert_eq!(read, summary);
    }
}
