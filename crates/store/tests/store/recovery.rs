//! Runs that died, and what is left of them.

use std::collections::BTreeSet;
use std::fs;

use inferometer_model::StartedRequest;
use inferometer_model::journal::NotSent;
use inferometer_model::journal::RunStop;
use inferometer_model::outcome::Cause;
use inferometer_model::record::RequestedLengths;
use inferometer_model::{JournalEntry, Moment, Outcome, RequestId};
use inferometer_store::{RunDirectory, RunState, StoreError, Tail};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::samples::{
    ended, journal_bytes, ms, new_run, not_sent, read_journal, record, run_ended, started, store,
    whole_run,
};

/// A run that wrote `entries` and died.
fn dead_run(requests: Option<u64>, entries: &[JournalEntry]) -> (TempDir, RunDirectory) {
    let (place, store) = store();
    let mut writer = store.create(new_run(requests)).unwrap();
    for entry in entries {
        writer.append(entry).unwrap();
    }
    writer.flush().unwrap();
    let directory = writer.directory().clone();
    (place, directory)
}

fn change_journal(directory: &RunDirectory, change: impl FnOnce(&mut Vec<u8>)) {
    let path = directory.path().join("requests.journal");
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(&path, bytes).unwrap();
}

fn lost(first: u64, count: u64, at: Moment) -> NotSent {
    NotSent { first: RequestId(first), count, cause: Cause::RunCrashed, at }
}

#[test]
fn a_dead_run_by_count_accounts_for_every_planned_request() {
    let entries = [started(0), started(1), ended(0), started(3), not_sent(5, 2)];
    let (_place, run) = dead_run(Some(10), &entries);

    let error = run.read().unwrap_err();
    assert!(matches!(error, StoreError::Unfinished { started: 3, ended: 1, .. }), "{error}");
    assert!(error.to_string().contains("inferometer recover "), "{error}");
    assert_eq!(run.state(), RunState::Unfinished);

    let recovery = run.recover().unwrap();
    assert_eq!((recovery.cancelled, recovery.not_sent, recovery.cut_bytes), (2, 5, 0));
    let observations = &recovery.run.observations;
    assert_eq!(observations.ending.stop, RunStop::Recovered);
    assert!(observations.ending.stop.is_partial());
    // The last moment that the journal spoke of.
    assert_eq!(observations.ending.at, ms(50));
    let records = observations.records.clone().into_held();
    assert_eq!(records[0], record(0));
    for lost in &records[1..] {
        assert_eq!((lost.intended, lost.admitted), (ms(lost.id.0), ms(lost.id.0 + 1)));
        assert_eq!((lost.sent, lost.reads.len(), lost.asked.input_tokens), (None, 0, 512));
        assert_eq!(lost.ending.outcome, Outcome::Cancelled);
        assert_eq!((lost.ending.cause, lost.ending.at), (Some(Cause::RunCrashed), ms(50)));
    }
    assert_eq!(
        observations.not_sent[1..],
        [lost(2, 1, ms(50)), lost(4, 1, ms(50)), lost(7, 3, ms(50))]
    );
    assert_eq!(observations.scheduled_count(), 10);

    assert_eq!(run.state(), RunState::Finished);
    assert_eq!(run.read().unwrap(), recovery.run);
}

#[test]
fn a_dead_run_by_time_counts_what_was_started() {
    let (_place, run) = dead_run(None, &[started(0), started(1), ended(0)]);
    let recovery = run.recover().unwrap();
    assert_eq!((recovery.cancelled, recovery.not_sent), (1, 0));
    assert_eq!(recovery.run.observations.scheduled_count(), 2);
}

#[test]
fn a_dead_run_with_a_least_number_accounts_for_it() {
    let (_place, store) = store();
    let mut new = new_run(None);
    new.bounds.requests_min = 5;
    let mut writer = store.create(new).unwrap();
    for entry in [started(0), started(1), ended(0)] {
        writer.append(&entry).unwrap();
    }
    writer.flush().unwrap();
    let directory = writer.directory().clone();
    drop(writer);
    let recovery = directory.recover().unwrap();
    assert_eq!((recovery.cancelled, recovery.not_sent), (1, 3));
    assert_eq!(recovery.run.observations.scheduled_count(), 5);
}

#[test]
fn a_hole_in_a_run_by_time_was_not_sent() {
    // Two drivers: the second one's entry arrived, the first one's died in the queue.
    let (_place, run) = dead_run(None, &[started(0), started(2)]);
    let recovery = run.recover().unwrap();
    assert_eq!(recovery.run.observations.not_sent, [lost(1, 1, ms(3))]);
    assert_eq!(recovery.cancelled, 2);
}

#[test]
fn a_run_of_which_nothing_is_left_is_not_recovered() {
    let (_place, run) = dead_run(None, &[]);
    assert!(matches!(run.recover(), Err(StoreError::NothingRecorded { .. })));
    let (_place, run) = dead_run(Some(4), &[started(0), ended(0)]);
    fs::remove_file(run.path().join("requests.journal")).unwrap();
    assert!(matches!(run.recover(), Err(StoreError::NothingRecorded { .. })));
    assert!(!run.path().join("requests.journal").exists(), "nothing is made up");
}

#[test]
fn a_run_that_died_before_its_first_request_is_finished_too() {
    for cut in [0, 3, 9, 10] {
        let (_place, run) = dead_run(Some(4), &[]);
        let path = run.path().join("requests.journal");
        change_journal(&run, |bytes| bytes.truncate(cut));
        assert_eq!(run.state(), RunState::Unfinished, "{cut}");
        assert!(matches!(run.read(), Err(StoreError::Unfinished { .. })), "{cut}");
        let recovery = run.recover().unwrap();
        assert_eq!(recovery.run.observations.not_sent, [lost(0, 4, Moment::ZERO)]);
        assert_eq!(run.read().unwrap(), recovery.run);
        assert!(fs::read(&path).unwrap().starts_with(&journal_bytes(&[])));
    }
}

#[test]
fn recovering_twice_says_so_and_changes_nothing() {
    let (_place, run) = dead_run(Some(3), &[started(0)]);
    run.recover().unwrap();
    let path = run.path().join("requests.journal");
    let before = fs::read(&path).unwrap();
    assert!(matches!(run.recover(), Err(StoreError::AlreadyFinished { .. })));
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// Faults: 86.
#[test]
fn a_torn_tail_is_cut_and_the_rest_is_kept() {
    let (_place, run) = dead_run(Some(5), &whole_run());
    let whole = fs::read(run.path().join("requests.journal")).unwrap().len();
    change_journal(&run, |bytes| bytes.truncate(whole - 3));
    let recovery = run.recover().unwrap();
    assert_eq!(recovery.run.integrity.tail, Tail::Clean);
    assert!(0 < recovery.cut_bytes);
    // Only the run's own ending was lost: every request is as it was.
    assert_eq!(recovery.run.observations.records, vec![record(0), record(1), record(2)].into());
    assert_eq!((recovery.cancelled, recovery.not_sent), (0, 0));
    assert!(run.read().unwrap().integrity.is_intact());
}

#[test]
fn a_finished_run_that_lost_a_record_is_not_read_until_it_is_accounted_for() {
    for requests in [Some(5), None] {
        let (_place, run) = dead_run(requests, &whole_run());
        run.write_summary(b"{}").unwrap();
        // The record of request 2, the last that was sent.
        let record_at = journal_bytes(&whole_run()[..5]).len();
        change_journal(&run, |bytes| bytes[record_at + 20] ^= 1);

        let error = run.read().unwrap_err();
        assert!(matches!(error, StoreError::Incomplete { .. }), "{error}");
        assert!(error.to_string().contains(&format!("damaged at byte {record_at}: ")), "{error}");

        let recovery = run.recover().unwrap();
        assert_eq!((recovery.cancelled, recovery.not_sent), (1, 0));
        let observations = &recovery.run.observations;
        let third = observations.records.iter().nth(2).unwrap();
        assert_eq!(third.ending.outcome, Outcome::Cancelled);
        assert_eq!(observations.ending.stop, RunStop::Recovered);
        // What the client had said of itself is kept, and the damage is still told.
        assert_eq!(observations.ending.client.loop_lag.count(), 1);
        assert_eq!(recovery.run.integrity.damaged_count, 1);
        assert_eq!(run.read().unwrap(), recovery.run);
        assert_eq!(run.read_summary().unwrap(), None, "the old summary no longer follows");
        assert!(matches!(run.recover(), Err(StoreError::AlreadyFinished { .. })));
    }
}

#[test]
fn damage_that_cost_no_record_leaves_the_run_readable() {
    let (_place, run) = dead_run(Some(5), &whole_run());
    change_journal(&run, |bytes| bytes[16] ^= 1);
    let stored = run.read().unwrap();
    assert_eq!(stored.observations.records.len(), 3);
    assert_eq!(stored.integrity.damaged_count, 1);
    assert!(matches!(run.recover(), Err(StoreError::AlreadyFinished { .. })));
}

#[test]
fn a_journal_that_contradicts_itself_is_refused_and_left_alone() {
    let most = u64::MAX;
    for (requests, entries) in [
        (Some(3), vec![ended(0), ended(0)]),
        (Some(3), vec![ended(0), not_sent(0, 2)]),
        (Some(3), vec![ended(7)]),
        (Some(3), vec![not_sent(0, 2), not_sent(1, 2)]),
        (Some(3), vec![ended(0), ended(0), run_ended()]),
        (None, vec![not_sent(0, 5), not_sent(0, 5), run_ended()]),
        (None, vec![not_sent(1, most), not_sent(1, most), run_ended()]),
        (None, vec![not_sent(0, most), not_sent(5, most)]),
        (
            None,
            vec![JournalEntry::Started(StartedRequest {
                id: RequestId(most),
                intended: Moment::ZERO,
                admitted: Moment::ZERO,
                asked: RequestedLengths {
                    input_tokens: 1,
                    output_tokens: 1,
                    part: 0,
                    turn: 0,
                    ..RequestedLengths::default()
                },
            })],
        ),
    ] {
        let (_place, run) = dead_run(requests, &entries);
        let path = run.path().join("requests.journal");
        let before = fs::read(&path).unwrap();
        assert!(run.read().is_err(), "{entries:?}");
        let error = run.recover().unwrap_err();
        assert!(matches!(error, StoreError::Inconsistent { .. }), "{entries:?}: {error}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

/// Faults: 92.
#[test]
fn a_journal_of_a_newer_version_is_refused_and_left_alone() {
    let (_place, run) = dead_run(Some(5), &[started(0)]);
    change_journal(&run, |bytes| bytes[8] = 3);
    let path = run.path().join("requests.journal");
    let before = fs::read(&path).unwrap();
    for error in [run.read().unwrap_err(), run.recover().unwrap_err()] {
        assert!(matches!(error, StoreError::NewerFormat { found: 3, known: 2, .. }), "{error}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// Faults: 89.
#[test]
fn a_live_run_is_neither_read_nor_recovered() {
    let (_place, store) = store();
    let mut writer = store.create(new_run(Some(5))).unwrap();
    let run = writer.directory().clone();
    writer.append(&started(0)).unwrap();
    writer.flush().unwrap();
    assert_eq!(run.state(), RunState::Running);
    assert!(matches!(run.read(), Err(StoreError::Busy { .. })));
    assert!(matches!(run.recover(), Err(StoreError::Busy { .. })));
    drop(writer);
    assert!(run.recover().is_ok());
}

/// What became of one request before the crash.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Unmentioned,
    NotSent,
    InFlight,
    Answered,
    AnsweredWithoutStart,
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    proptest::collection::vec(
        prop_oneof![
            Just(Fate::Unmentioned),
            Just(Fate::NotSent),
            Just(Fate::InFlight),
            Just(Fate::Answered),
            Just(Fate::AnsweredWithoutStart),
        ],
        0..12,
    )
}

fn entries_of(fates: &[Fate]) -> Vec<JournalEntry> {
    (0..)
        .zip(fates)
        .flat_map(|(id, fate)| match fate {
            Fate::Unmentioned => vec![],
            Fate::NotSent => vec![not_sent(id, 1)],
            Fate::InFlight => vec![started(id)],
            Fate::Answered => vec![started(id), ended(id)],
            Fate::AnsweredWithoutStart => vec![ended(id)],
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Any order, any cut, with and without a number of requests in the plan.
    /// Faults: 85, 86.
    #[test]
    fn whatever_is_left_of_a_run_can_be_finished(
        (fates, entries) in fates().prop_flat_map(|fates| {
            let entries = entries_of(&fates);
            (Just(fates), Just(entries).prop_shuffle())
        }),
        by_count in any::<bool>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let requests = by_count.then_some(fates.len() as u64);
        let (_place, run) = dead_run(requests, &entries);
        change_journal(&run, |bytes| bytes.truncate(cut.index(bytes.len() + 1)));
        let path = run.path().join("requests.journal");
        let (survivors, _) = read_journal(&fs::read(&path).unwrap()).unwrap();

        // Of a plan of no requests, or of none that is known, there may be nothing to account for.
        if survivors.is_empty() && requests.unwrap_or(0) == 0 {
            let is_refused = matches!(run.recover(), Err(StoreError::NothingRecorded { .. }));
            prop_assert!(is_refused);
            return Ok(());
        }
        let recovery = run.recover().unwrap();
        let observations = &recovery.run.observations;
        prop_assert_eq!(&run.read().unwrap(), &recovery.run);
        prop_assert_eq!(observations.ending.stop, RunStop::Recovered);
        if let Some(requests) = requests {
            prop_assert_eq!(observations.scheduled_count(), requests);
        }
        let answered: BTreeSet<RequestId> = survivors
            .iter()
            .filter_map(|entry| match entry {
                JournalEntry::Ended(record) => Some(record.id),
                JournalEntry::Started(_)
                | JournalEntry::NotSent(_)
                | JournalEntry::RunEnded(_) => None,
            })
            .collect();
        for stored in &observations.records {
            if answered.contains(&stored.id) {
                prop_assert_eq!(&*stored, &record(stored.id.0));
            } else {
                prop_assert_eq!(stored.ending.outcome, Outcome::Cancelled);
            }
        }
        let finished = matches!(run.recover(), Err(StoreError::AlreadyFinished { .. }));
        prop_assert!(finished);
    }

    /// A recovery that dies at any byte of what it appends can be done again.
    #[test]
    fn a_recovery_that_died_can_be_done_again(
        fates in fates(),
        ended_before in any::<bool>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut entries = entries_of(&fates);
        if ended_before {
            entries.push(run_ended());
        }
        let (_place, run) = dead_run(Some(fates.len() as u64), &entries);
        let before = journal_bytes(&entries).len();
        let Ok(recovery) = run.recover() else {
            prop_assert!(fates.is_empty() || ended_before && run.read().is_ok());
            return Ok(());
        };
        change_journal(&run, |bytes| {
            let appended = bytes.len() - before;
            bytes.truncate(before + cut.index(appended + 1));
        });
        match run.recover() {
            Ok(again) => {
                let counts = recovery.run.observations.outcome_counts();
                prop_assert_eq!(again.run.observations.outcome_counts(), counts);
            }
            Err(error) => {
                let finished = matches!(error, StoreError::AlreadyFinished { .. });
                prop_assert!(finished, "{}", error);
            }
        }
        prop_assert_eq!(run.read().unwrap().observations.ending.stop, RunStop::Recovered);
    }
}

#[test]
fn a_started_request_that_this_machine_could_not_send_is_accounted_for() {
    let entries = vec![started(0), ended(0), started(1), not_sent(1, 1), run_ended()];
    let (_place, run) = dead_run(Some(2), &entries);
    let observations = run.read().unwrap().observations;
    assert_eq!(observations.scheduled_count(), 2);
    assert_eq!(observations.not_sent_count(), 1);
    let (_place, run) = dead_run(Some(2), &entries[..4]);
    let recovery = run.recover().unwrap();
    assert_eq!((recovery.cancelled, recovery.not_sent), (0, 0));
}
