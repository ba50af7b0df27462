//! The journal of what the server said of itself: written, incomplete, foreign, and not there.

use std::fs;
use std::time::Duration;

use inferometer_model::Telemetry;
use inferometer_model::telemetry::{
    Absence, ClientSample, Counters, DeviceReading, DeviceSource, DevicesAbsence, DevicesSample,
    Dialect, Gauges, LookMiss, MissReason, MissedLook, MissedScrape, SkippedScrapes,
    SpeculationCounters, SumCount, TelemetryEntry, TelemetrySample, Timings, gather,
};
use inferometer_store::RunDirectory;
use tempfile::TempDir;

use crate::samples::{ms, new_run, store, whole_run};

pub(crate) const FILE: &str = "telemetry.journal";

/// Some words are known and some are not.
fn sample(second: u64) -> TelemetrySample {
    TelemetrySample {
        at: ms(1_000 * second),
        took: Duration::from_micros(1_500),
        dialect: Dialect::VllmV1,
        process_start_s: Some(1_767_323_000.25),
        gauges: Gauges {
            running: Some(8.0),
            waiting: Some(0.0),
            swapped: None,
            kv_usage: Some(1.0 / 3.0),
            cpu_kv_usage: None,
        },
        counters: Counters {
            prefix_queries: Some(512.0),
            prefix_hits: Some(16.0),
            preemptions: None,
            prompt_tokens: Some(512.0),
            generation_tokens: Some(64.0 * second as f64),
        },
        timings: Timings {
            ttft: Some(SumCount { sum_s: 0.1 + 0.2, count: 3.0 }),
            e2e: None,
            queue: None,
        },
        speculation: None,
        dropped: 1,
    }
}

pub(crate) fn entries() -> Vec<TelemetryEntry> {
    let missed = |second: u64, reason| {
        TelemetryEntry::Missed(MissedScrape { at: ms(1_000 * second), reason })
    };
    vec![
        TelemetryEntry::Sample(sample(0)),
        missed(1, MissReason::Status(503)),
        missed(2, MissReason::Timeout),
        missed(3, MissReason::BackedOff),
        TelemetryEntry::Sample(sample(4)),
    ]
}

/// A run that ended well, and what was written down of its server, if anything.
pub(crate) fn finished_run(telemetry: Option<&[TelemetryEntry]>) -> (TempDir, RunDirectory) {
    let (place, store) = store();
    let mut writer = store.create(new_run(Some(5))).unwrap();
    let directory = writer.directory().clone();
    if let Some(entries) = telemetry {
        let mut telemetry = directory.create_telemetry().unwrap();
        for entry in entries {
            telemetry.append(entry).unwrap();
        }
        telemetry.finish().unwrap();
    }
    for entry in whole_run() {
        writer.append(&entry).unwrap();
    }
    writer.seal().unwrap();
    (place, directory)
}

fn telemetry(run: &RunDirectory) -> Telemetry {
    run.read().unwrap().observations.telemetry
}

#[test]
fn what_is_written_is_read() {
    let (_place, run) = finished_run(Some(&entries()));
    assert_eq!(telemetry(&run), gather(entries()).0);
    let recording = telemetry(&run).recording().cloned().unwrap();
    assert_eq!(recording.samples, [sample(0), sample(4)]);
    assert_eq!(recording.missed.len(), 3);
    let asleep = SkippedScrapes { from: ms(5_000), number: 70_000 };
    let (_place, run) =
        finished_run(Some(&[entries(), vec![TelemetryEntry::Skipped(asleep)]].concat()));
    assert_eq!(telemetry(&run).recording().unwrap().skipped, 70_000);
    let refused = Absence::Refused(MissReason::Status(404));
    let (_place, run) = finished_run(Some(&[TelemetryEntry::Absent(refused)]));
    assert_eq!(telemetry(&run), Telemetry::Absent(refused));
}

#[test]
fn entries_of_several_sources_and_of_speculation_are_kept_apart() {
    let mut speculating = sample(5);
    speculating.gauges.cpu_kv_usage = Some(0.5);
    speculating.speculation = Some(Box::new(SpeculationCounters {
        steps: Some(4.0),
        drafted: None,
        accepted: Some(5.0),
        by_position: vec![3.0, 2.0],
    }));
    let from = |source, entry| TelemetryEntry::FromSource(source, Box::new(entry));
    let refused = Absence::Refused(MissReason::Status(404));
    let entries = [
        TelemetryEntry::Sample(sample(0)),
        from(2, TelemetryEntry::Absent(refused)),
        from(1, TelemetryEntry::Sample(speculating.clone())),
        TelemetryEntry::Sample(sample(4)),
    ];
    let (_place, run) = finished_run(Some(&entries));
    let observations = run.read().unwrap().observations;
    assert_eq!(observations.telemetry.recording().unwrap().samples, [sample(0), sample(4)]);
    let more = observations.more_telemetry;
    assert_eq!(more[&1].recording().unwrap().samples, [speculating]);
    assert_eq!((more.len(), &more[&2]), (2, &Telemetry::Absent(refused)));
}

#[test]
fn machines_and_the_hosts_cache_lie_beside_the_servers_words() {
    let mut swapping = sample(5);
    swapping.gauges.cpu_kv_usage = Some(0.25);
    let gpu = DeviceReading { index: 1, power_w: Some(700.5), ..DeviceReading::default() };
    let devices = DevicesSample {
        at: ms(1_500),
        took: Duration::from_millis(2),
        source: DeviceSource::Nvml,
        devices: vec![DeviceReading::default(), gpu],
    };
    let client = ClientSample {
        at: ms(1_400),
        cpu_share: Some(0.5),
        steal_share: Some(0.0),
        own_cpus: None,
        received_bytes: Some(1 << 40),
        sent_bytes: Some(7),
        memory_available_bytes: None,
    };
    let missed = MissedLook { at: ms(2_500), reason: LookMiss::Timeout };
    // The machines are told of even where the server has nothing to say.
    let entries = [
        TelemetryEntry::Absent(Absence::Refused(MissReason::Status(404))),
        TelemetryEntry::Sample(swapping.clone()),
        TelemetryEntry::Devices(devices.clone()),
        TelemetryEntry::Client(client),
        TelemetryEntry::DevicesMissed(missed),
    ];
    let (_place, run) = finished_run(Some(&entries));
    let observations = run.read().unwrap().observations;
    assert_eq!(observations.telemetry.recording().unwrap().samples, [swapping]);
    let machines = observations.machines;
    assert_eq!((machines.devices, machines.client), (vec![devices], vec![client]));
    assert_eq!((machines.devices_missed, machines.devices_absence), (vec![missed], None));
    let absence = DevicesAbsence::Failed("no driver".to_owned());
    let (_place, run) = finished_run(Some(&[TelemetryEntry::DevicesAbsent(absence.clone())]));
    assert_eq!(run.read().unwrap().observations.machines.devices_absence, Some(absence));
}

#[test]
fn a_run_without_the_file_is_whole() {
    let (_place, run) = finished_run(None);
    assert_eq!(telemetry(&run), Telemetry::Absent(Absence::NothingRecorded));
    // An older run's manifest does not speak of telemetry.
    let path = run.path().join("manifest.json");
    let mut manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert!(manifest["spec"].as_object_mut().unwrap().remove("telemetry").is_some());
    fs::write(&path, manifest.to_string()).unwrap();
    assert_eq!(telemetry(&run), Telemetry::Absent(Absence::NotAsked));
}

#[test]
fn every_cut_leaves_what_was_whole_and_the_run_as_it_is() {
    let (_place, run) = finished_run(Some(&entries()));
    let path = run.path().join(FILE);
    let bytes = fs::read(&path).unwrap();
    let mut known = 0;
    for cut in 0..bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        let stored = run.read().unwrap();
        assert!(stored.integrity.is_intact(), "the requests are not touched");
        let found = match stored.observations.telemetry {
            Telemetry::Recorded(recording) => recording.samples.len() + recording.missed.len(),
            Telemetry::Absent(absence) => {
                assert_eq!(absence, Absence::NothingRecorded);
                0
            }
        };
        assert!((known..=entries().len()).contains(&found), "cut at {cut}");
        known = found;
    }
    assert_eq!(known, entries().len() - 1, "a byte less takes only the last");
}

#[test]
fn a_damaged_frame_is_a_gap() {
    let (_place, run) = finished_run(Some(&entries()));
    let path = run.path().join(FILE);
    let mut bytes = fs::read(&path).unwrap();
    // Into the first sample.
    bytes[30] ^= 0x40;
    fs::write(&path, bytes).unwrap();
    assert_eq!(telemetry(&run).recording().unwrap().samples, [sample(4)]);
}

#[test]
fn a_foreign_file_is_named_and_stops_nothing() {
    let (_place, run) = finished_run(None);
    fs::write(run.path().join(FILE), "not what you think it is").unwrap();
    assert_eq!(telemetry(&run), Telemetry::Absent(Absence::Unreadable));
    // The requests' own journal in its place holds no telemetry.
    fs::copy(run.path().join("requests.journal"), run.path().join(FILE)).unwrap();
    assert_eq!(telemetry(&run), Telemetry::Absent(Absence::NothingRecorded));
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_stops_nothing() {
    let (_place, run) = finished_run(None);
    let path = run.path().join(FILE);
    // A folder opens and is not read; a link to itself is not even opened.
    fs::create_dir(&path).unwrap();
    assert_eq!(telemetry(&run), Telemetry::Absent(Absence::Unreadable));
    fs::remove_dir(&path).unwrap();
    std::os::unix::fs::symlink(FILE, &path).unwrap();
    assert_eq!(telemetry(&run), Telemetry::Absent(Absence::Unreadable));
    fs::remove_file(&path).unwrap();
    // The header of a later format.
    let mut bytes = fs::read(run.path().join("requests.journal")).unwrap();
    bytes[8..10].copy_from_slice(&u16::MAX.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    assert_eq!(telemetry(&run), Telemetry::Absent(Absence::Unreadable));
}

#[test]
fn a_recovered_run_keeps_what_its_server_said() {
    let (_place, store) = store();
    let writer = store.create(new_run(Some(5))).unwrap();
    let directory = writer.directory().clone();
    let mut telemetry = directory.create_telemetry().unwrap();
    telemetry.append(&entries()[0]).unwrap();
    drop((writer, telemetry));
    let recovered = directory.recover().unwrap().run.observations;
    assert_eq!(recovered.telemetry.recording().unwrap().samples, [sample(0)]);
    assert_eq!(directory.read().unwrap().observations, recovered);
}
