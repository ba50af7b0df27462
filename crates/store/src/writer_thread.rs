//! The thread between the measuring path and the disk.
//!
//! It needs no clock. Whenever its queue is empty, all that it has goes to the kernel; while the
//! queue is not empty it writes as fast as it can, in bounded batches. Either way an entry waits
//! for milliseconds. A second thread syncs once a second, so that a slow disk does not hold up the
//! queue, and with it the requests.

use std::fs::File;
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use inferometer_model::JournalEntry;
use inferometer_model::journal::JournalBatch;

use crate::error::StoreError;
use crate::writer::RunWriter;

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
    while !syncer.has_failed() {
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
        let journal = writer.sync_handle()?;
        let (stop, stopped) = mpsc::channel();
        let thread = Builder::new()
            .name("journal-sync".to_owned())
            .spawn(move || sync_repeatedly(&journal, &stopped))?;
        Ok(Self { stop, thread })
    }

    fn has_failed(&self) -> bool {
        self.thread.is_finished()
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
