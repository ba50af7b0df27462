//! What a record costs to write down and to read back. An item is a record.
//!
//! `cargo bench -p inferometer-store` measures; `cargo test` runs each case once. `encode` writes
//! into nothing, `append` into a run directory of the system's temporary folder (`TMPDIR` chooses
//! another disk), up to the kernel: syncing is the disk's time, and a thread of its own does it.

use std::hint::black_box;
use std::io::Cursor;
use std::path::PathBuf;

use divan::counter::{BytesCount, ItemsCount};
use inferometer_model::observations::{
    ClockAnchor, Connections, Endpoint, Materials, PinnedOutput, UsageAsk,
};
use inferometer_model::plan::{Bounds, Fingerprints};
use inferometer_model::{Environment, JournalEntry, Manifest, SpecDraft};
use inferometer_store::{JournalReader, JournalWriter, RunStore, StoreError};

mod records;

use records::Answer;

/// The allocator of the binary that ships.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const RECORDS: u32 = 64;
const ANSWERS: [Answer; 2] = [Answer::OneShot, Answer::Streamed];

fn main() {
    divan::main();
}

#[divan::bench(args = ANSWERS)]
fn encode(bencher: divan::Bencher<'_, '_>, answer: Answer) {
    let entries = entries(answer);
    counted(bencher, &entries).bench_local(|| {
        let mut journal = JournalWriter::new(std::io::sink(), PathBuf::new());
        let written = append_all(black_box(&entries), |entry| journal.append(entry));
        assert!(written.and_then(|()| journal.flush()).is_ok());
    });
}

/// The run grows from one iteration to the next, as a run does.
#[divan::bench(args = ANSWERS, sample_count = 100, sample_size = 1)]
fn append(bencher: divan::Bencher<'_, '_>, answer: Answer) {
    let entries = entries(answer);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = RunStore::open(folder.path().join("runs")).expect("a new store");
    let mut run = store.create(new_run()).expect("a new run");
    counted(bencher, &entries).bench_local(|| {
        let written = append_all(black_box(&entries), |entry| run.append(entry));
        assert!(written.and_then(|()| run.flush()).is_ok());
    });
}

#[divan::bench(args = ANSWERS)]
fn read_back(bencher: divan::Bencher<'_, '_>, answer: Answer) {
    let entries = entries(answer);
    let bytes = journal_of(&entries);
    counted(bencher, &entries).bench_local(|| {
        let source = Cursor::new(black_box(bytes.as_slice()));
        let journal = JournalReader::new(source, PathBuf::new()).expect("a journal");
        assert_eq!(journal.flatten().count(), entries.len());
    });
}

fn entries(answer: Answer) -> Vec<JournalEntry> {
    (0..RECORDS).map(|id| answer.ended(id)).collect()
}

fn append_all(
    entries: &[JournalEntry],
    append: impl FnMut(&JournalEntry) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    entries.iter().try_for_each(append)
}

fn journal_of(entries: &[JournalEntry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut journal = JournalWriter::new(&mut bytes, PathBuf::new());
    append_all(entries, |entry| journal.append(entry)).expect("memory takes every record");
    journal.flush().expect("memory takes every byte");
    bytes
}

fn counted<'a, 'b>(
    bencher: divan::Bencher<'a, 'b>,
    entries: &[JournalEntry],
) -> divan::Bencher<'a, 'b> {
    bencher
        .counter(ItemsCount::new(entries.len()))
        .counter(BytesCount::new(journal_of(entries).len()))
}

/// What a run directory wants to know; a journal does not depend on it.
fn new_run() -> Manifest {
    Manifest {
        format: 0,
        run: String::new(),
        started: String::new(),
        spec: SpecDraft::default().resolve().expect("the defaults make a spec"),
        bounds: Bounds { requests: None, release_before: None, requests_min: 0, slots: None },
        fingerprints: Fingerprints { workload: String::new(), plan: String::new() },
        materials: Materials::default(),
        endpoint: Endpoint {
            base: "http://127.0.0.1:8000".parse().expect("a URL"),
            address: ([127, 0, 0, 1], 8000).into(),
            model: "tiny".to_owned(),
            usage: UsageAsk::Final,
            connections: Connections::Reuse,
            pinned: PinnedOutput::default(),
            embedded: false,
        },
        warm_up: None,
        seen_before: None,
        calibration: None,
        simulated: None,
        stripe: None,
        merged: None,
        environment: Environment::default(),
        server: None,
        clock: ClockAnchor { monotonic_ns: 0, realtime_ns: 0 },
    }
}
