//! Sets of runs: making them, their points, what is left aside, finding them by name.

use std::fs;
use std::num::NonZeroU32;
use std::time::Duration;

use inferometer_model::Manifest;
use inferometer_model::observations::ClockAnchor;
use inferometer_model::study::{
    Condition, DeploymentRecord, Question, Repetition, RunOrder, StudySpec,
};
use inferometer_store::{
    Listing, RunDirectory, RunState, RunStore, RunWriter, SetDirectory, StoreError, Stored,
};

use crate::samples::{STARTED_NS, new_run, store, whole_run};

const SECOND_NS: u64 = 1_000_000_000;

fn study() -> StudySpec {
    let spec = new_run(Some(5)).spec;
    StudySpec {
        question: Question::Repeat,
        conditions: vec![Condition { name: "as asked".to_owned(), spec }],
        repetition: Repetition {
            runs: NonZeroU32::new(3).unwrap(),
            cool_down: Duration::from_millis(1_500),
            restart: None,
            stop_at: None,
        },
        order: RunOrder::Interleaved,
        seed: 7,
    }
}

fn set() -> (tempfile::TempDir, RunStore, SetDirectory) {
    let (place, store) = store();
    let set = store.create_set(study(), false, Vec::new(), None, STARTED_NS).unwrap();
    (place, store, set)
}

fn run_at(realtime_ns: u64) -> Manifest {
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

#[test]
fn a_set_says_what_it_asks_before_it_has_a_point() {
    let (_place, store, set) = set();
    let manifest = set.manifest().unwrap();
    assert_eq!(manifest.study, study());
    assert_eq!((manifest.format, manifest.started.as_str()), (1, "2026-01-02T03:04:05.5Z"));
    assert_eq!(manifest.set, set.id());
    assert!(set.id().starts_with("20260102-030405-"), "{}", set.id());
    assert_eq!(set.points().unwrap(), [0; 0]);
    assert_eq!(set.state(), RunState::Unfinished);
    let other = store.create_set(study(), false, Vec::new(), None, STARTED_NS).unwrap();
    assert_ne!(other.id(), set.id(), "sets of one instant");
}

#[test]
fn a_point_is_a_run_that_knows_its_set() {
    let (_place, store, set) = set();
    for number in [10, 0, 2] {
        finish(set.create_point(number, new_run(Some(5))).unwrap());
    }
    fs::create_dir(set.path().join("points/notes")).unwrap();
    fs::create_dir(set.path().join("points/007")).unwrap();
    assert_eq!(set.points().unwrap(), [0, 2, 10], "by number, and nothing foreign");
    let point = set.point(10);
    assert_eq!(point.id(), format!("{}/10", set.id()));
    assert_eq!(point.manifest().unwrap().run, point.id());
    assert_eq!(point.read().unwrap().observations.scheduled_count(), 5);
    assert_eq!(RunDirectory::at(point.path().to_owned()).id(), point.id());
    assert!(set.create_point(10, new_run(Some(5))).is_err(), "it is there already");
    assert_eq!(store.list().unwrap().runs, [], "its points are its own");
    assert_eq!(store.list().unwrap().sets.len(), 1);
}

#[test]
fn what_is_measured_again_is_kept_aside() {
    let (_place, _store, set) = set();
    for attempt in ["4-0", "4-1"] {
        drop(set.create_point(4, new_run(Some(5))).unwrap());
        assert_eq!(set.point(4).state(), RunState::Unfinished);
        let aside = set.abandon(4).unwrap();
        assert_eq!(aside, set.path().join("abandoned").join(attempt));
        assert!(aside.join("manifest.json").is_file());
        assert_eq!(set.points().unwrap(), [0; 0]);
    }
    // Killed between the folder and its manifest.
    fs::create_dir(set.path().join("points/4")).unwrap();
    assert!(set.abandon(4).unwrap().ends_with("4-2"));
    finish(set.create_point(4, new_run(Some(5))).unwrap());
}

/// Faults: 89.
#[test]
fn one_process_at_a_time_works_on_a_set() {
    let (_place, _store, set) = set();
    let held = set.lock().unwrap();
    assert_eq!(set.state(), RunState::Running);
    let second = set.lock().unwrap_err();
    assert!(matches!(second, StoreError::Busy { .. }), "{second}");
    drop(held);
    drop(set.lock().unwrap());
    set.write_summary(b"{}\n").unwrap();
    assert_eq!(set.read_summary().unwrap().as_deref(), Some(&b"{}\n"[..]));
    assert_eq!(set.state(), RunState::Sealed);
}

/// Faults: 92.
#[test]
fn a_set_of_a_newer_or_damaged_file_is_refused() {
    let (_place, store, set) = set();
    let path = set.path().join("set.json");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, b"{\"format\": 2, \"something\": \"else\"}").unwrap();
    let newer = set.manifest().unwrap_err();
    assert!(matches!(newer, StoreError::NewerFormat { found: 2, known: 1, .. }), "{newer}");
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(set.manifest(), Err(StoreError::Damaged { .. })));
    let RunState::Unreadable(why) = set.state() else { panic!("{:?}", set.state()) };
    assert!(why.contains("set.json is damaged"), "{why}");
    assert_eq!(store.find("latest").unwrap().id(), set.id(), "broken, and the newest");
    fs::remove_file(&path).unwrap();
    assert!(matches!(set.manifest(), Err(StoreError::Missing { .. })));
}

#[test]
fn a_name_means_a_run_a_set_or_a_point() {
    let (_place, store, set) = set();
    finish(set.create_point(0, new_run(Some(5))).unwrap());
    let run = finish(store.create(run_at(STARTED_NS + SECOND_NS)).unwrap());
    let found_set = Stored::Set(set.clone());
    for name in [set.id(), "20260102-030405"] {
        assert_eq!(store.find(name).unwrap(), found_set, "{name}");
        assert_eq!(store.find(&format!("{name}/0")).unwrap(), Stored::Run(set.point(0)));
    }
    let path = set.path().to_str().unwrap();
    assert_eq!(store.find(path).unwrap().id(), set.id());
    assert_eq!(store.find(&format!("{path}/0")).unwrap().id(), set.point(0).id());
    assert_eq!(store.find(&format!("{path}/points/0")).unwrap().id(), set.point(0).id());
    assert_eq!(store.find("latest").unwrap(), Stored::Run(run.clone()));
    assert_eq!(store.find("20260102-030406").unwrap(), Stored::Run(run.clone()));
    let missing = store.find(&format!("{}/9", set.id())).unwrap_err();
    assert!(matches!(missing, StoreError::NoPoint { number: 9, .. }), "{missing}");
    for wrong in ["1999/0", &format!("{}/0", run.id()), &format!("{}/00", set.id()), "/0"] {
        let error = store.find(wrong).unwrap_err();
        assert!(matches!(error, StoreError::NotFound { .. }), "{wrong}: {error}");
    }
    let ambiguous = store.find("2026").unwrap_err();
    assert!(matches!(ambiguous, StoreError::Ambiguous { .. }), "{ambiguous}");

    let later_ns = STARTED_NS + 2 * SECOND_NS;
    let newer = store.create_set(study(), false, Vec::new(), None, later_ns).unwrap();
    assert_eq!(store.find("latest").unwrap(), Stored::Set(newer));
}

#[test]
fn what_a_set_sent_was_sent_before() {
    let (_place, store, set) = set();
    let new = new_run(Some(5));
    let (spec, base) = (new.spec.clone(), new.endpoint.base.clone());
    let (plan, model) = (new.fingerprints.plan.clone(), new.endpoint.model.clone());
    let seen = |now_ns| store.sent_before(&spec, &plan, &base, &model, now_ns);
    assert_eq!(seen(STARTED_NS), None);
    finish(set.create_point(3, new).unwrap());
    assert_eq!(seen(STARTED_NS).as_deref(), Some(set.point(3).id()));
    set.abandon(3).unwrap();
    assert_eq!(seen(STARTED_NS).as_deref(), Some(set.point(3).id()), "the server has seen it");
    assert_eq!(set.abandoned().unwrap().iter().map(|(number, _)| *number).collect::<Vec<_>>(), [3]);
    let run = finish(store.create(run_at(STARTED_NS + SECOND_NS)).unwrap());
    assert_eq!(seen(STARTED_NS + SECOND_NS).as_deref(), Some(run.id()), "the newest");
}

#[test]
fn what_finishes_a_run_of_a_set_is_its_set() {
    let (_place, store, set) = set();
    drop(set.create_point(0, new_run(Some(5))).unwrap());
    let said = set.point(0).read().unwrap_err().to_string();
    assert!(said.contains("sweep --resume") && !said.contains("recover"), "{said}");
    let run = store.create(new_run(Some(5))).unwrap().directory().clone();
    let said = run.read().unwrap_err().to_string();
    assert!(said.contains("inferometer recover"), "{said}");
}

#[test]
fn a_set_without_its_file_is_listed_all_the_same() {
    let (_place, store, set) = set();
    finish(set.create_point(0, new_run(Some(5))).unwrap());
    fs::remove_file(set.path().join("set.json")).unwrap();
    let listed = store.list().unwrap().sets;
    let [Listing { state: RunState::Unreadable(reason), .. }] = &listed[..] else {
        panic!("{listed:?}");
    };
    assert!(reason.contains("set.json is missing"), "{reason}");
}

#[test]
fn every_server_of_a_cell_has_a_note() {
    let (_place, _, set) = set();
    let record = |repetition, log: Option<&str>| DeploymentRecord {
        condition: 0,
        repetition,
        facts: None,
        departure: None,
        drained_after_s: None,
        log: log.map(str::to_owned),
    };
    let logs = [Some("0-0.log"), Some("0-0.2.log"), Some("0-0.10.log")];
    let mut records: Vec<DeploymentRecord> = logs.map(|log| record(0, log)).to_vec();
    records.push(record(1, None));
    for record in records.iter().rev() {
        set.write_deployment(record).unwrap();
    }
    assert_eq!(set.deployments().unwrap(), records);
    assert!(set.deployment_log(0, 0).with_file_name("0-0.2.json").exists());
    let old =
        r#"{"condition":7,"repetition":0,"facts":null,"departure":null,"drained_after_s":null}"#;
    fs::write(set.deployment_log(7, 0).with_extension("json"), old).unwrap();
    assert_eq!(set.deployments().unwrap().last().unwrap().log, None);
}
