//! Making, sealing, listing and finding runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use inferometer_model::observations::ClockAnchor;
use inferometer_model::spec::{Arrivals, LoadShape, Rate};
use inferometer_model::{JournalEntry, Manifest, Records, Spec};
use inferometer_store::{RunDirectory, RunState, RunStore, RunWriter, StoreError, Stored};
use proptest::prelude::*;

use crate::samples::{STARTED_NS, new_run, not_sent, record, run_ended, started, store, whole_run};

const SECOND_NS: u64 = 1_000_000_000;

fn new_run_at(realtime_ns: u64) -> Manifest {
    Manifest { clock: ClockAnchor { monotonic_ns: 0, realtime_ns }, ..new_run(Some(5)) }
}

fn finish(mut writer: RunWriter) -> RunDirectory {
    for entry in whole_run() {
        writer.append(&entry).unwrap();
    }
    let directory = writer.directory().clone();
    writer.seal().unwrap();
    directory
}

fn file_names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn run_named(store: &RunStore, name: &str) -> Result<RunDirectory, StoreError> {
    let found = store.find(name)?;
    let Stored::Run(run) = found else { panic!("{name} is {found:?}") };
    Ok(run)
}

#[test]
fn a_new_run_has_a_manifest_that_says_what_was_asked() {
    let (_place, store) = store();
    let writer = store.create(new_run(Some(5))).unwrap();
    let manifest = writer.directory().manifest().unwrap();
    assert_eq!(&manifest, writer.manifest());
    assert_eq!(manifest.started, "2026-01-02T03:04:05.5Z");
    assert_eq!(manifest.format, 2);
    assert_eq!(manifest.run, writer.directory().id());
    assert!(manifest.run.starts_with("20260102-030405-"), "{}", manifest.run);
    assert_eq!(manifest.run.len(), "20260102-030405-xxxx".len());
    assert_eq!(file_names(writer.directory().path()), ["manifest.json", "requests.journal"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_rate_comes_back_bit_for_bit(per_s in 1e-9..1e6_f64, seed in any::<u64>()) {
        let (_place, store) = store();
        let mut new = new_run(Some(5));
        new.spec.load.shape = LoadShape::Open {
            rate: Rate::Steady { per_s },
            arrivals: Arrivals::Gamma { burstiness: per_s },
            cap: None,
        };
        new.spec.seed = seed;
        let writer = store.create(new).unwrap();
        prop_assert_eq!(&writer.directory().manifest().unwrap(), writer.manifest());
    }
}

#[test]
fn runs_of_the_same_instant_get_different_names() {
    let (_place, store) = store();
    let first = store.create(new_run(Some(5))).unwrap();
    let second = store.create(new_run(Some(5))).unwrap();
    assert_ne!(first.directory(), second.directory());
}

#[test]
fn a_sealed_run_reads_back_and_a_run_without_an_ending_is_not_sealed() {
    let (_place, store) = store();
    let run = finish(store.create(new_run(Some(5))).unwrap());
    let stored = run.read().unwrap();
    assert_eq!(stored.observations.scheduled_count(), 5);
    assert!(stored.integrity.is_intact() && !stored.sealed);

    let mut writer = store.create(new_run(Some(5))).unwrap();
    writer.append(&started(0)).unwrap();
    assert!(matches!(writer.seal(), Err(StoreError::NotEnded { .. })));
}

/// The records of a long journal stay there, and are the same in every order, wherever they lie in it.
#[test]
fn records_that_stay_in_the_journal_are_those_that_were_written() {
    let (_place, store) = store();
    let mut writer = store.create(new_run(Some(7_000))).unwrap();
    // They end in another order than they were sent in, and frames lie across the blocks of a reader.
    for id in (0..7_000).map(|number| number * 1_009 % 7_000) {
        writer.append(&started(id)).unwrap();
        writer.append(&JournalEntry::Ended(Box::new(record(id)))).unwrap();
    }
    writer.append(&run_ended()).unwrap();
    let run = writer.directory().clone();
    let held = writer.seal().unwrap().observations;
    assert!(matches!(held.records, Records::Held(_)));
    let stored = run.read_holding(0).unwrap().observations;
    assert!(matches!(stored.records, Records::Stored(_)));
    assert_eq!(stored, held);
    let ids = |records: &Records| -> Vec<u64> {
        records.in_time_order().iter().map(|record| record.id.0).collect()
    };
    assert_eq!(ids(&stored.records), ids(&held.records));
    assert_eq!(stored.records.clone().into_held(), held.records.into_held());
}

#[test]
fn records_that_cannot_be_read_again_are_an_error() {
    // A few, and so many that they are decoded ahead.
    for count in [300, 7_000] {
        let (_place, store) = store();
        let mut writer = store.create(new_run(Some(count))).unwrap();
        for id in 0..count {
            writer.append(&started(id)).unwrap();
            writer.append(&JournalEntry::Ended(Box::new(record(id)))).unwrap();
        }
        writer.append(&run_ended()).unwrap();
        let run = writer.directory().clone();
        drop(writer.seal().unwrap());
        let stored = run.read_holding(0).unwrap();
        assert_eq!(stored.observations.records.iter().count() as u64, count);
        stored.check_read().unwrap();
        let path = run.path().join("requests.journal");
        let journal = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        journal.set_len(path.metadata().unwrap().len() / 2).unwrap();
        let left = stored.observations.records.iter().count() as u64;
        assert!(0 < left && left < count, "{left}");
        let error = stored.check_read().unwrap_err().to_string();
        assert!(error.contains("requests.journal cannot be read again at byte"), "{error}");
    }
}

#[test]
fn a_run_whose_sums_do_not_hold_is_not_sealed() {
    for entry in [started(0), not_sent(0, 4)] {
        let (_place, store) = store();
        let mut writer = store.create(new_run(Some(5))).unwrap();
        writer.append(&entry).unwrap();
        writer.append(&run_ended()).unwrap();
        let error = writer.seal().unwrap_err();
        assert!(matches!(error, StoreError::Incomplete { .. }), "{error}");
    }
}

#[test]
fn a_summary_is_replaced_as_a_whole() {
    let (_place, store) = store();
    let run = finish(store.create(new_run(Some(5))).unwrap());
    assert_eq!(run.read_summary().unwrap(), None);
    run.write_summary(b"{\"long\": 1}").unwrap();
    run.write_summary(b"{}").unwrap();
    assert_eq!(run.read_summary().unwrap().as_deref(), Some(&b"{}"[..]));
    assert!(run.read().unwrap().sealed);
    let files = ["manifest.json", "requests.journal", "summary.json"];
    assert_eq!(file_names(run.path()), files, "no draft stays behind");

    // A directory in the way: the write fails, and what was there stays.
    fs::remove_file(run.path().join("summary.json")).unwrap();
    fs::create_dir(run.path().join("summary.json")).unwrap();
    assert!(matches!(run.write_summary(b"{}"), Err(StoreError::Write { .. })));
    assert_eq!(file_names(run.path()), files);
}

#[test]
fn the_list_has_every_run_in_its_state_and_nothing_foreign() {
    let (_place, store) = store();
    assert_eq!(store.list().unwrap().runs, []);
    let at = |second| new_run_at(STARTED_NS + second * SECOND_NS);
    let sealed = finish(store.create(at(0)).unwrap());
    sealed.write_summary(b"{}").unwrap();
    // Nanoseconds decide, not the names: these two have the same second.
    let finished = finish(store.create(at(1)).unwrap());
    let dead = store.create(new_run_at(STARTED_NS + SECOND_NS + 1)).unwrap().directory().clone();
    let live = store.create(at(2)).unwrap();
    let broken = finish(store.create(at(9)).unwrap());
    fs::write(broken.path().join("manifest.json"), b"{\"format\": 1").unwrap();
    fs::write(store.path().join("notes.txt"), b"mine").unwrap();
    fs::create_dir(store.path().join("20260102-030405-beef")).unwrap();

    let list = store.list().unwrap().runs;
    let ids: Vec<&str> = list.iter().map(|run| run.directory.id()).collect();
    let expected = [live.directory(), &dead, &finished, &sealed, &broken];
    assert_eq!(ids, expected.map(RunDirectory::id));
    let states: Vec<&RunState> = list.iter().map(|run| &run.state).collect();
    let [RunState::Running, RunState::Unfinished, RunState::Finished, RunState::Sealed, why] =
        states[..]
    else {
        panic!("{states:?}")
    };
    let RunState::Unreadable(why) = why else { panic!("{why:?}") };
    assert!(why.contains("manifest.json is damaged: EOF"), "{why}");
    assert_eq!(list.iter().filter(|run| run.manifest.is_none()).count(), 1);
}

#[test]
fn a_run_is_found_by_id_prefix_latest_or_path() {
    let (place, store) = store();
    let first = finish(store.create(new_run_at(STARTED_NS)).unwrap());
    let second = finish(store.create(new_run_at(STARTED_NS + SECOND_NS)).unwrap());

    assert_eq!(run_named(&store, "latest").unwrap(), second);
    assert_eq!(run_named(&store, first.id()).unwrap(), first);
    assert_eq!(run_named(&store, "20260102-030405").unwrap(), first);
    assert_eq!(run_named(&store, first.path().to_str().unwrap()).unwrap().id(), first.id());
    let roundabout = first.path().join("../").join(second.id()).join(".");
    let found = run_named(&store, roundabout.to_str().unwrap()).unwrap();
    assert_eq!(found.id(), second.id());

    let error = run_named(&store, "2026").unwrap_err();
    assert!(matches!(error, StoreError::Ambiguous { .. }), "{error}");
    assert!(error.to_string().contains(first.id()), "{error}");
    let outside = place.path().to_str().unwrap().to_owned();
    for name in ["1999", "", ".", "..", "../runs", "../../etc", "/etc", "/", &outside, "\0"] {
        let error = run_named(&store, name).unwrap_err();
        assert!(matches!(error, StoreError::NotFound { .. }), "{name}: {error}");
        assert!(error.to_string().contains(second.id()), "{error}");
    }
}

#[test]
fn a_run_outside_the_store_is_found_by_its_path_alone() {
    let (place, store) = store();
    let inside = finish(store.create(new_run(Some(5))).unwrap());
    let outside = place.path().join("copied");
    fs::rename(inside.path(), &outside).unwrap();
    assert!(matches!(run_named(&store, "copied"), Err(StoreError::NotFound { .. })));
    assert!(matches!(run_named(&store, "latest"), Err(StoreError::NotFound { .. })));
    let found = run_named(&store, outside.to_str().unwrap()).unwrap();
    assert_eq!(found.id(), "copied");
    assert!(found.read().is_ok());
}

/// Faults: 88.
#[test]
fn a_place_that_cannot_hold_runs_is_refused_early() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    fs::write(&file, b"").unwrap();
    assert!(matches!(RunStore::open(file.clone()), Err(StoreError::NotWritable { .. })));

    let below_a_file = RunStore::open(place.path().join("new")).unwrap();
    fs::write(below_a_file.path(), b"").unwrap();
    let error = below_a_file.check_writable().unwrap_err();
    assert!(error.to_string().contains("--output"), "{error}");
    assert!(below_a_file.create(new_run(Some(5))).is_err());

    let store = RunStore::open(place.path().join("deep/runs")).unwrap();
    assert!(!store.path().exists());
    store.check_writable().unwrap();
    assert_eq!(file_names(store.path()), [""; 0]);
    fs::set_permissions(store.path(), fs::Permissions::from_mode(0o555)).unwrap();
    // The administrator may write everywhere, and then there is nothing to refuse.
    if fs::write(store.path().join("probe"), b"").is_err() {
        assert!(matches!(store.check_writable(), Err(StoreError::NotWritable { .. })));
    }
}

#[test]
fn a_damaged_manifest_is_an_error_that_names_file_and_place() {
    let (_place, store) = store();
    let run = finish(store.create(new_run(Some(5))).unwrap());
    let path = run.path().join("manifest.json");
    let whole = fs::read(&path).unwrap();
    // The last byte is a line end, which the JSON does without.
    for cut in 0..whole.len() - 1 {
        fs::write(&path, &whole[..cut]).unwrap();
        assert!(matches!(run.read(), Err(StoreError::Damaged { .. })), "cut at {cut}");
    }
    for bit in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, flipped).unwrap();
        if let Err(error) = run.manifest() {
            assert!(error.to_string().contains("manifest.json"), "{error}");
        }
    }
    fs::write(&path, b"{\"format\": 3, \"something\": \"else\"}").unwrap();
    let newer = run.read().unwrap_err();
    assert!(matches!(newer, StoreError::NewerFormat { found: 3, known: 2, .. }), "{newer}");
    fs::remove_file(&path).unwrap();
    assert!(matches!(run.read(), Err(StoreError::Missing { .. })));
    assert!(matches!(run.state(), RunState::Unreadable(_)));
}

#[test]
fn prompts_of_the_same_seed_to_the_same_server_were_sent_before() {
    let folder = tempfile::tempdir().unwrap();
    let store = RunStore::open(folder.path().join("runs")).unwrap();
    let new = new_run(Some(1));
    let (spec, base, now) = (new.spec.clone(), new.endpoint.base.clone(), new.clock.realtime_ns);
    let model = new.endpoint.model.clone();
    assert_eq!(store.sent_before(&spec, "p-2", &base, &model, now), None);
    let run = store.create(new).unwrap().directory().id().to_owned();
    assert_eq!(store.sent_before(&spec, "p-2", &base, &model, now).as_ref(), Some(&run));
    let other_seed = Spec { seed: spec.seed + 1, ..spec.clone() };
    assert_eq!(store.sent_before(&other_seed, "p-2", &base, &model, now), None);
    assert_eq!(store.sent_before(&other_seed, "p-1", &base, &model, now).as_ref(), Some(&run));
    let elsewhere = "http://127.0.0.1:8001".parse().unwrap();
    assert_eq!(store.sent_before(&spec, "p-1", &elsewhere, &model, now), None);
    assert_eq!(store.sent_before(&spec, "p-1", &base, "another model", now), None);
    let days_later = |days: u64| now + days * 86_400 * 1_000_000_000;
    let found = |days| store.sent_before(&spec, "p-1", &base, &model, days_later(days));
    assert_eq!((found(3).as_ref(), found(4)), (Some(&run), None), "a weekend lies between");
}
