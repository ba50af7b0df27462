//! What is left on the disk after a run, a crash or damage, and what must be read from it.

use std::collections::BTreeSet;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use inferometer_model::journal::RunStop;
use inferometer_model::observations::{
    ClockAnchor, Connections, Endpoint, Materials, PinnedOutput, UsageAsk,
};
use inferometer_model::plan::{Bounds, Fingerprints};
use inferometer_model::{Environment, JournalEntry, Manifest, Observations, SpecDraft};
use inferometer_store::{JournalReader, RunDirectory, RunStore};

use super::Draw;
use super::world::Played;

/// Reads the run back as it is, then with its end torn off, then with flipped bits.
pub(super) fn check(played: &Played, place: &Path, seed: u64) {
    let mut draw = Draw(!seed);
    let entries = read(&played.disk);
    assert_eq!(entries, played.entries[..entries.len()], "the journal begins as it was written");
    assert!(played.flushed <= entries.len(), "what was handed over is there");
    let run = stored(played.bounds, place, &played.disk);
    if played.is_complete {
        assert_eq!(entries.len(), played.entries.len());
        add_up(&run.read().unwrap().observations, played.bounds, &entries);
    } else {
        let recovered = run.recover().unwrap().run.observations;
        assert_eq!(recovered.ending.stop, RunStop::Recovered);
        add_up(&recovered, played.bounds, &entries);
        assert_eq!(run.read().unwrap().observations, recovered, "it is a run like any other now");
    }
    fs::remove_dir_all(place).unwrap();

    let torn = &played.disk[..draw.size(played.disk.len() + 1)];
    let entries = read(torn);
    assert_eq!(entries, played.entries[..entries.len()]);
    let run = stored(played.bounds, place, torn);
    // A whole run that lost nothing but its torn tail needs no recovery.
    if let Ok(recovery) = run.recover() {
        add_up(&recovery.run.observations, played.bounds, &entries);
    }
    fs::remove_dir_all(place).unwrap();

    let mut flipped = played.disk.clone();
    for _ in 0..=draw.below(3) {
        let bit = draw.size(flipped.len().max(1) * 8);
        flipped.iter_mut().skip(bit / 8).take(1).for_each(|byte| *byte ^= 1 << (bit % 8));
    }
    let run = stored(played.bounds, place, &flipped);
    if let Ok(recovery) = run.recover() {
        let observations = recovery.run.observations;
        let written: BTreeSet<u64> = ended(&played.entries).map(|(id, _)| id).collect();
        let invented = observations
            .records
            .iter()
            .find(|record| record.sent.is_some() && !written.contains(&record.id.0));
        assert_eq!(invented, None, "a record that nobody wrote");
    }
    fs::remove_dir_all(place).unwrap();
}

fn read(bytes: &[u8]) -> Vec<JournalEntry> {
    // Not even the header is there when a disk was full from the start.
    let Ok(reader) = JournalReader::new(Cursor::new(bytes), PathBuf::new()) else {
        return Vec::new();
    };
    reader.collect::<Result<_, _>>().unwrap()
}

fn ended(entries: &[JournalEntry]) -> impl Iterator<Item = (u64, &JournalEntry)> {
    entries.iter().filter_map(|entry| match entry {
        JournalEntry::Ended(record) => Some((record.id.0, entry)),
        JournalEntry::Started(_) | JournalEntry::NotSent(_) | JournalEntry::RunEnded(_) => None,
    })
}

/// Every scheduled request ends once, and every record that was read is there.
fn add_up(observations: &Observations, bounds: Bounds, entries: &[JournalEntry]) {
    let scheduled = observations.scheduled_count();
    match bounds.requests {
        Some(requests) => assert_eq!(scheduled, requests),
        None => assert!(bounds.requests_min <= scheduled),
    }
    let sum: u64 = observations.outcome_counts().values().sum();
    assert_eq!(sum, scheduled);
    for (id, entry) in ended(entries) {
        let kept = observations.records.iter().find(|record| record.id.0 == id);
        assert_eq!(
            kept.map(|record| JournalEntry::Ended(Box::new(record.into_owned()))).as_ref(),
            Some(entry)
        );
    }
}

/// A run's folder with these bytes for a journal.
fn stored(bounds: Bounds, place: &Path, journal: &[u8]) -> RunDirectory {
    let store = RunStore::open(place.to_owned()).unwrap();
    let writer = store.create(manifest(bounds)).unwrap();
    let directory = writer.directory().clone();
    drop(writer);
    fs::write(directory.path().join("requests.journal"), journal).unwrap();
    directory
}

fn manifest(bounds: Bounds) -> Manifest {
    Manifest {
        format: 0,
        run: String::new(),
        started: String::new(),
        clock: ClockAnchor { monotonic_ns: 7, realtime_ns: 1_767_323_045_500_000_000 },
        spec: SpecDraft::default().resolve().unwrap(),
        bounds,
        fingerprints: Fingerprints { workload: "w".to_owned(), plan: "p".to_owned() },
        materials: Materials::default(),
        endpoint: Endpoint {
            base: "http://127.0.0.1:8000".parse().unwrap(),
            address: "127.0.0.1:8000".parse().unwrap(),
            model: "tiny".to_owned(),
            usage: UsageAsk::Final,
            connections: Connections::Reuse,
            pinned: PinnedOutput::default(),
            embedded: false,
        },
        warm_up: None,
        seen_before: None,
        calibration: None,
        environment: Environment::default(),
        server: None,
        simulated: None,
        stripe: None,
        merged: None,
    }
}
