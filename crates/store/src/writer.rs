//! Appending to a journal. A write that fails ends the journal: what is in the file stays
//! readable, and nothing is put behind a half-written frame.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use inferometer_model::journal::JournalBatch;
use inferometer_model::{JournalEntry, Manifest};

use crate::directory::{RunDirectory, StoredRun};
use crate::error::StoreError;
use crate::frame::{self, Framed};
use crate::journal;

/// Waiting bytes beyond this go to the kernel at once.
const WAITING_BYTES_MAX: usize = 64 << 10;

/// Frames entries and hands them to the kernel in batches.
#[derive(Debug)]
pub struct JournalWriter<W, E = JournalEntry> {
    sink: W,
    path: PathBuf,
    /// Whole frames that the sink has not taken yet. A `BufWriter` would write them once more
    /// when it is dropped after an error.
    waiting: Vec<u8>,
    written: u64,
    stopped: bool,
    /// Whether the run's ending was appended.
    ended: bool,
    entries: PhantomData<fn(&E)>,
}

impl<W: Write> JournalWriter<W> {
    /// Begins a journal in an empty sink. `path` is for messages only.
    pub fn new(sink: W, path: PathBuf) -> Self {
        Self::of_entries(sink, path)
    }
}

impl<W: Write, E: Framed> JournalWriter<W, E> {
    pub(crate) fn of_entries(sink: W, path: PathBuf) -> Self {
        let waiting = journal::header().to_vec();
        Self { waiting, ..Self::resume(sink, path, 0) }
    }

    /// Continues a journal that has `written` bytes; the sink is at its end.
    pub(crate) fn resume(sink: W, path: PathBuf, written: u64) -> Self {
        Self {
            sink,
            path,
            waiting: Vec::new(),
            written,
            stopped: false,
            ended: false,
            entries: PhantomData,
        }
    }

    pub fn append(&mut self, entry: &E) -> Result<(), StoreError> {
        self.check_going()?;
        let offset = self.written + self.waiting.len() as u64;
        frame::encode(entry, offset, &mut self.waiting)
            .map_err(|reason| StoreError::Entry { path: self.path.clone(), reason })?;
        self.ended |= entry.is_last();
        if WAITING_BYTES_MAX <= self.waiting.len() { self.flush() } else { Ok(()) }
    }

    /// Hands all waiting frames to the kernel: after this a kill cannot take them.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.check_going()?;
        let (taken, outcome) = write_counting(&mut self.sink, &self.waiting);
        self.waiting.drain(..taken);
        self.written += taken as u64;
        outcome.map_err(|error| {
            self.stopped = true;
            StoreError::Append {
                path: self.path.clone(),
                run: self.path.parent().unwrap_or(Path::new(".")).to_owned(),
                written: self.written,
                waiting: self.waiting.len() as u64,
                error,
            }
        })
    }

    /// Bytes that the kernel has taken.
    pub fn written(&self) -> u64 {
        self.written
    }

    fn check_going(&self) -> Result<(), StoreError> {
        if self.stopped {
            return Err(StoreError::Stopped { path: self.path.clone(), written: self.written });
        }
        Ok(())
    }
}

impl<E: Framed> JournalWriter<File, E> {
    /// Hands all waiting frames to the disk: after this a power cut cannot take them.
    pub(crate) fn sync(&mut self) -> Result<(), StoreError> {
        self.flush()?;
        self.sink.sync_data().map_err(|error| {
            // The kernel may have dropped the pages: a second try would succeed and mean nothing.
            self.stopped = true;
            StoreError::NotDurable { path: self.path.clone(), error }
        })
    }
}

/// Like `write_all`, and returns how much was taken before an error.
fn write_counting(sink: &mut impl Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut taken = 0;
    while taken < bytes.len() {
        match sink.write(&bytes[taken..]) {
            Ok(0) => return (taken, Err(ErrorKind::WriteZero.into())),
            Ok(count) => taken += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (taken, Err(error)),
        }
    }
    (taken, Ok(()))
}

/// A run that is being written. It holds the lock of its journal; dropped before the run's ending
/// is appended, it leaves what a crash would leave.
#[derive(Debug)]
pub struct RunWriter {
    directory: RunDirectory,
    manifest: Manifest,
    journal: JournalWriter<File>,
}

impl RunWriter {
    pub(crate) fn new(
        directory: RunDirectory,
        manifest: Manifest,
        journal: JournalWriter<File>,
    ) -> Self {
        Self { directory, manifest, journal }
    }

    pub fn directory(&self) -> &RunDirectory {
        &self.directory
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Bytes of the journal that the kernel has taken.
    pub fn written(&self) -> u64 {
        self.journal.written()
    }

    /// Adds an entry; it reaches the kernel with the next `flush`, or when much is waiting.
    pub fn append(&mut self, entry: &JournalEntry) -> Result<(), StoreError> {
        self.journal.append(entry)
    }

    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.journal.flush()
    }

    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.journal.sync()
    }

    /// Ends the writing: everything is on disk, reads back, and its sums hold.
    pub fn seal(mut self) -> Result<StoredRun, StoreError> {
        if !self.journal.ended {
            return Err(StoreError::NotEnded { run: self.directory.path().to_owned() });
        }
        self.journal.sync()?;
        self.directory.read()
    }

    pub(crate) fn journal_path(&self) -> &Path {
        &self.journal.path
    }
}

const SYNC_EVERY: Duration = Duration::from_secs(1);
/// How often an idle writer looks whether the syncing still works.
const IDLE_CHECK: Duration = Duration::from_millis(200);

/// Appends what comes out of `entries` until the channel closes, then gives the writer back with
/// everything on disk. On an error the thread ends and the channel closes, which tells the senders.
pub fn spawn_writer(
    writer: RunWriter,
    entries: Receiver<JournalBatch>,
) -> Result<JoinHandle<Result<RunWriter, StoreError>>, StoreError> {
    let path = writer.journal_path().to_owned();
    Syncer::spawn(&writer)
        .and_then(|syncer| {
            Builder::new()
                .name("journal".to_owned())
                .spawn(move || write_all(writer, &entries, syncer))
        })
        .map_err(|error| StoreError::Thread { path, error })
}

fn write_all(
    mut writer: RunWriter,
    entries: &Receiver<JournalBatch>,
    syncer: Syncer,
) -> Result<RunWriter, StoreError> {
    let written = write_until_closed(&mut writer, entries, &syncer);
    // Joined even after an error: its handle would keep the journal locked.
    let confirmed = syncer.stop();
    written?;
    confirmed.map_err(|error| {
        let path = writer.journal_path().to_owned();
        StoreError::NotDurable { path, error }
    })?;
    writer.sync()?;
    Ok(writer)
}

fn write_until_closed(
    writer: &mut RunWriter,
    entries: &Receiver<JournalBatch>,
    syncer: &Syncer,
) -> Result<(), StoreError> {
    while !syncer.thread.is_finished() {
        match entries.try_recv() {
            Ok(batch) => append_all(writer, &batch)?,
            Err(TryRecvError::Disconnected) => return Ok(()),
            Err(TryRecvError::Empty) => {
                writer.flush()?;
                match entries.recv_timeout(IDLE_CHECK) {
                    Ok(batch) => append_all(writer, &batch)?,
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                    Err(RecvTimeoutError::Timeout) => {}
                }
            }
        }
    }
    Ok(())
}

fn append_all(writer: &mut RunWriter, batch: &[JournalEntry]) -> Result<(), StoreError> {
    batch.iter().try_for_each(|entry| writer.append(entry))
}

/// Syncs the journal from time to time, through a handle of its own.
struct Syncer {
    /// Dropped to end the thread.
    stop: Sender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl Syncer {
    fn spawn(writer: &RunWriter) -> io::Result<Self> {
        // A second handle, so that it syncs while the other thread goes on writing.
        let journal = writer.journal.sink.try_clone()?;
        let (stop, stopped) = mpsc::channel();
        let thread = Builder::new()
            .name("journal-sync".to_owned())
            .spawn(move || sync_repeatedly(&journal, &stopped))?;
        Ok(Self { stop, thread })
    }

    fn stop(self) -> io::Result<()> {
        drop(self.stop);
        self.thread.join().unwrap_or_else(|_panic| Err(io::Error::other("the syncing panicked")))
    }
}

/// A sync that fails is not tried again: the kernel may have dropped the bytes, and would then
/// report a success that means nothing.
fn sync_repeatedly(journal: &File, stopped: &Receiver<()>) -> io::Result<()> {
    while stopped.recv_timeout(SYNC_EVERY) == Err(RecvTimeoutError::Timeout) {
        journal.sync_data()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use inferometer_model::record::Asked;
    use inferometer_model::{Moment, RequestId, StartedRequest};

    use super::*;
    use crate::journal::JournalReader;

    /// Takes `space` bytes, in small portions, and is full then.
    #[derive(Debug)]
    struct SmallDisk {
        bytes: Vec<u8>,
        space: usize,
    }

    impl Write for &mut SmallDisk {
        fn write(&mut self, from: &[u8]) -> io::Result<usize> {
            let count = from.len().min(7).min(self.space - self.bytes.len());
            if count == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            self.bytes.extend_from_slice(&from[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn started(id: u64) -> JournalEntry {
        JournalEntry::Started(StartedRequest {
            id: RequestId(id),
            intended: Moment::ZERO,
            admitted: Moment::from_nanos(id),
            asked: Asked { input_tokens: 1, output_tokens: 1, part: 0, turn: 0 },
        })
    }

    #[test]
    fn a_full_disk_keeps_every_whole_frame_and_takes_no_more() {
        for space in 0..100 {
            let mut disk = SmallDisk { bytes: Vec::new(), space };
            let mut writer = JournalWriter::new(&mut disk, PathBuf::from("runs/x/j"));
            let error = (0..20)
                .map(|id| writer.append(&started(id)).and_then(|()| writer.flush()))
                .find_map(Result::err)
                .unwrap();
            let message = error.to_string();
            let StoreError::Append { written, .. } = error else { panic!("{message}") };
            assert_eq!(written, space as u64);
            assert!(message.contains("inferometer recover runs/x"), "{message}");
            let refused = writer.append(&started(20));
            assert!(matches!(refused, Err(StoreError::Stopped { .. })), "{refused:?}");

            let entries: Vec<JournalEntry> =
                JournalReader::new(Cursor::new(disk.bytes), PathBuf::new())
                    .unwrap()
                    .collect::<Result<_, _>>()
                    .unwrap();
            let whole_frames = space.saturating_sub(journal::HEADER_BYTES) / 16;
            assert_eq!(entries, (0..whole_frames as u64).map(started).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_disk_that_does_not_confirm_is_not_asked_twice() {
        // A device that takes bytes and cannot sync them.
        let null = File::options().write(true).open("/dev/null").unwrap();
        let mut writer = JournalWriter::new(null, PathBuf::from("j"));
        assert!(matches!(writer.sync(), Err(StoreError::NotDurable { .. })));
        assert!(matches!(writer.sync(), Err(StoreError::Stopped { .. })));
    }
}
