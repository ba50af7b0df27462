//! Entries go in and the same entries come out.

use std::fs;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use inferometer_model::{JournalEntry, RequestRecord};
use inferometer_store::{JournalReader, PAYLOAD_BYTES_MAX, RunState, StoreError, spawn_writer};
use proptest::prelude::*;

use crate::samples::{
    ended, journal_bytes, new_run, read_journal, record, started, store, whole_run,
};
use crate::strategies;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_is_written_is_read(entries in strategies::entries(20)) {
        let (read, integrity) = read_journal(&journal_bytes(&entries)).unwrap();
        prop_assert_eq!(read, entries);
        prop_assert!(integrity.is_intact());
    }
}

/// A file that is given out one byte at a time.
struct Dripping(Cursor<Vec<u8>>);

impl Read for Dripping {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = into.len().min(1);
        self.0.read(&mut into[..count])
    }
}

impl Seek for Dripping {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

#[test]
fn the_size_of_reads_does_not_matter() {
    let source = Dripping(Cursor::new(journal_bytes(&whole_run())));
    let reader = JournalReader::new(source, PathBuf::new()).unwrap();
    assert_eq!(reader.collect::<Result<Vec<_>, _>>().unwrap(), whole_run());
}

#[test]
fn a_journal_that_grows_is_read_as_it_grows_wherever_it_is_cut() {
    let whole = journal_bytes(&whole_run());
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), &whole[..4]).unwrap();
    let mut reader = JournalReader::open(file.path()).unwrap();
    let mut read = Vec::new();
    for end in (4..whole.len()).step_by(37).chain([whole.len()]) {
        fs::write(file.path(), &whole[..end]).unwrap();
        reader.extend().unwrap();
        read.extend(reader.by_ref().map(Result::unwrap));
    }
    assert_eq!(read, whole_run());
    assert!(reader.into_integrity().is_intact());
}

#[test]
fn an_entry_over_the_bound_is_refused_and_the_journal_goes_on() {
    let (_place, store) = store();
    let mut writer = store.create(new_run(Some(1))).unwrap();
    let event = record(0).events[0];
    let events = vec![event; PAYLOAD_BYTES_MAX as usize / 6 + 1];
    let huge = JournalEntry::Ended(Box::new(RequestRecord { events, ..record(0) }));
    let refused = writer.append(&huge);
    assert!(matches!(&refused, Err(StoreError::Entry { .. })), "{refused:?}");
    writer.append(&started(0)).unwrap();
    writer.flush().unwrap();
    let journal = JournalReader::open(&writer.directory().path().join("requests.journal")).unwrap();
    assert_eq!(journal.collect::<Result<Vec<_>, _>>().unwrap(), [started(0)]);
}

#[test]
fn the_thread_writes_what_comes_and_gives_the_writer_back() {
    let (_place, store) = store();
    let writer = store.create(new_run(Some(5))).unwrap();
    let directory = writer.directory().clone();
    // Two places: the sender waits for the writer, as the drivers would.
    let (sender, receiver) = mpsc::sync_channel(2);
    let thread = spawn_writer(writer, receiver, |_| (), |notice| panic!("{notice}")).unwrap();
    for entry in whole_run() {
        sender.send(vec![entry]).unwrap();
    }
    drop(sender);
    let stored = thread.join().unwrap().unwrap().seal().unwrap();
    assert_eq!(stored.observations.records, vec![record(0), record(1), record(2)].into());
    assert_eq!(directory.read().unwrap(), stored);
}

#[test]
fn an_entry_reaches_the_kernel_while_the_channel_stays_open() {
    let (_place, store) = store();
    let writer = store.create(new_run(Some(5))).unwrap();
    let path = writer.directory().path().join("requests.journal");
    let (sender, receiver) = mpsc::sync_channel(2);
    let thread = spawn_writer(writer, receiver, |_| (), |notice| panic!("{notice}")).unwrap();
    sender.send(vec![ended(3)]).unwrap();
    let seen = || JournalReader::open(&path).unwrap().next();
    while seen().is_none() {
        std::thread::yield_now();
    }
    assert_eq!(seen().unwrap().unwrap(), ended(3));
    drop(sender);
    thread.join().unwrap().unwrap();
}

/// Faults: 83.
#[test]
fn a_run_that_is_removed_meanwhile_is_written_anew() {
    let (_place, store) = store();
    let writer = store.create(new_run(Some(5))).unwrap();
    let directory = writer.directory().clone();
    let (sender, receiver) = mpsc::sync_channel(2);
    let (noticed, messages) = mpsc::channel();
    let thread =
        spawn_writer(writer, receiver, |_| (), move |notice| noticed.send(notice).unwrap());
    let thread = thread.unwrap();
    let mut entries = whole_run().into_iter();
    let removals: [fn(&Path) -> io::Result<()>; 2] =
        [|run| fs::remove_dir_all(run), |run| fs::remove_file(run.join("requests.journal"))];
    for remove in removals {
        sender.send(entries.by_ref().take(2).collect()).unwrap();
        remove(directory.path()).unwrap();
        let notice = messages.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(notice.contains("records are written again"), "{notice}");
        assert_eq!(directory.state(), RunState::Running, "the new file is locked, too");
    }
    sender.send(entries.collect()).unwrap();
    drop(sender);
    let writer = thread.join().unwrap().unwrap();
    fs::remove_dir_all(directory.path()).unwrap();
    let stored = writer.seal().unwrap();
    assert_eq!(stored.observations.records, vec![record(0), record(1), record(2)].into());
    assert!(stored.integrity.is_intact());
}

#[test]
fn a_writer_that_failed_closes_the_channel() {
    let (_place, store) = store();
    let writer = store.create(new_run(Some(5))).unwrap();
    let directory = writer.directory().clone();
    let (sender, receiver) = mpsc::sync_channel(2);
    let thread = spawn_writer(writer, receiver, |_| (), |notice| panic!("{notice}")).unwrap();
    let event = record(0).events[0];
    let events = vec![event; PAYLOAD_BYTES_MAX as usize / 6 + 1];
    let huge = JournalEntry::Ended(Box::new(RequestRecord { events, ..record(0) }));
    sender.send(vec![huge]).unwrap();
    while sender.send(vec![started(1)]).is_ok() {}
    assert!(matches!(thread.join().unwrap(), Err(StoreError::Entry { .. })));
    // The lock went with the writer, so the run can be finished at once.
    assert_eq!(directory.recover().unwrap().not_sent, 5);
}
