//! Every format version is readable forever: once it is released, the files under `fixtures/vN` are
//! never written again, and a new version gets its own directory. Before that, with the variable
//! `INFEROMETER_REWRITE_FIXTURE` set, the tests write those of the newest version anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use inferometer_model::observations::{CalibrationFacts, ErrorFacts, WarmUpFacts};
use inferometer_model::spec::{DevicesAsked, LoadTable, Ramp, RampSegment, TargetTable, WarmUp};
use inferometer_model::telemetry::gather;
use inferometer_model::{JournalEntry, Manifest, Spec, SpecDraft};
use inferometer_store::{RunDirectory, StoredRun};

use crate::samples::{journal_bytes, new_run, record, run_ended, whole_run};
use crate::telemetry;

/// Lazy, so that two tests do not write the files at once.
static FIXTURE: LazyLock<PathBuf> = LazyLock::new(|| {
    let path = folder(2);
    if std::env::var_os("INFEROMETER_REWRITE_FIXTURE").is_some() {
        let json = serde_json::to_vec_pretty(&manifest(2)).unwrap();
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("manifest.json"), [&json[..], b"\n"].concat()).unwrap();
        fs::write(path.join("requests.journal"), journal_bytes(&whole_run())).unwrap();
        fs::write(path.join(telemetry::FILE), telemetry_bytes()).unwrap();
    }
    path
});

fn folder(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/v{version}"))
}

fn telemetry_bytes() -> Vec<u8> {
    let (_place, run) = telemetry::finished_run(Some(&telemetry::entries()));
    fs::read(run.path().join(telemetry::FILE)).unwrap()
}

const OVER: Duration = Duration::from_millis(90_500);

/// A rate that has no short form, and a ramp's every part.
fn spec() -> Spec {
    let segment = RampSegment { from_per_s: 0.1 + 0.2, to_per_s: 20.0, over: OVER };
    let load = LoadTable {
        ramp: Some(Ramp(vec![segment])),
        burstiness: Some(0.1 + 0.2),
        max_concurrency: Some(8),
        requests: Some(5),
        duration: Some(OVER.into()),
        warm_up: Some(WarmUp::Requests(3)),
        ..LoadTable::default()
    };
    // The fixture is older than the question about GPUs: nobody was asked.
    let gpu_telemetry = Some(DevicesAsked::Off);
    let target = TargetTable { gpu_telemetry, ..TargetTable::default() };
    SpecDraft { load, target, ..SpecDraft::default() }.resolve().unwrap()
}

fn calibration() -> CalibrationFacts {
    let error = ErrorFacts {
        streams: 64,
        kernel_stamps: true,
        ttft_ms_p50: 0.005,
        ttft_ms_p99: 0.036,
        itl_ms_p50: 0.0004,
        itl_ms_p99: 0.012,
    };
    CalibrationFacts {
        when: "2026-01-01T10:00:00Z".to_owned(),
        drivers: 1,
        requests_per_s: 61_023.5,
        events_per_s: 421_411.0,
        errors: vec![error],
    }
}

fn manifest(format: u32) -> Manifest {
    let new = new_run(Some(5));
    let mut spec = spec();
    // A manifest without this key is of a version in which the number of drivers was as it stands.
    spec.client.drivers_by_load = false;
    Manifest {
        format,
        run: "20260102-030405-c0de".to_owned(),
        started: "2026-01-02T03:04:05.5Z".to_owned(),
        clock: new.clock,
        spec,
        bounds: new.bounds,
        fingerprints: new.fingerprints,
        materials: new.materials,
        endpoint: new.endpoint,
        warm_up: Some(WarmUpFacts { requests: 3, ok: 2, failed: 1, took: OVER }),
        seen_before: Some("20260101-000000-beef".to_owned()),
        calibration: Some(calibration()),
        environment: new.environment,
        server: new.server,
        simulated: None,
        stripe: None,
        merged: None,
    }
}

#[test]
fn a_run_of_every_format_is_read() {
    for (version, path) in [(1, folder(1)), (2, FIXTURE.clone())] {
        let StoredRun { observations, integrity, sealed } = RunDirectory::at(path).read().unwrap();
        assert!(integrity.is_intact() && !sealed);
        assert_eq!(observations.manifest, manifest(version));
        assert_eq!(observations.records, vec![record(0), record(1), record(2)].into());
        assert_eq!(observations.not_sent_count(), 2);
        let JournalEntry::RunEnded(mut expected) = run_ended() else { panic!("not an ending") };
        if version == 1 {
            expected.client.driver_cpu_us = None;
        }
        assert_eq!(observations.ending, expected);
        assert_eq!(observations.telemetry, gather(telemetry::entries()).0);
    }
}

/// Postcard names no fields, so a change in the model can change the bytes unseen.
#[test]
fn the_bytes_of_the_newest_format_do_not_change() {
    let stored = fs::read(FIXTURE.join("requests.journal")).unwrap();
    assert_eq!(
        journal_bytes(&whole_run()),
        stored,
        "the stored form of an entry has changed: it needs a new format version (docs/format.md)"
    );
    let stored = fs::read(FIXTURE.join(telemetry::FILE)).unwrap();
    assert_eq!(telemetry_bytes(), stored, "the same of the telemetry journal");
}
