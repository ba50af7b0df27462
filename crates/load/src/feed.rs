//! The way from a driver to the journal's writer: in batches, so that a request costs no wake-up.

use std::sync::mpsc::{SyncSender, TrySendError};

use inferometer_model::journal::{JournalBatch, JournalEntry};
use inferometer_model::record::{Event, Read};

/// The journal takes no more: its writer failed, and says why itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalClosed;

/// One driver's end of the queue.
#[derive(Debug)]
pub(crate) struct Feed {
    queue: SyncSender<JournalBatch>,
    batch: JournalBatch,
    batch_bytes: usize,
    waits: u64,
}

/// A batch goes out at this size at the latest, so that a bounded number of batches is a bounded
/// number of bytes.
const BATCH_BYTES: usize = 64 << 10;
/// What an entry takes beside its lists.
const ENTRY_BYTES: usize = 512;

impl Feed {
    pub(crate) fn new(queue: SyncSender<JournalBatch>) -> Self {
        Self { queue, batch: Vec::new(), batch_bytes: 0, waits: 0 }
    }

    pub(crate) fn note(&mut self, entry: JournalEntry) -> Result<(), JournalClosed> {
        self.batch_bytes += bytes_of(&entry);
        self.batch.push(entry);
        if BATCH_BYTES <= self.batch_bytes { self.hand_over() } else { Ok(()) }
    }

    /// Passes on what was noted. A full queue is waited for and counted, never dropped.
    pub(crate) fn hand_over(&mut self) -> Result<(), JournalClosed> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let room = self.batch.len();
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(room));
        self.batch_bytes = 0;
        match self.queue.try_send(batch) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(batch)) => {
                self.waits += room as u64;
                self.queue.send(batch).map_err(|_| JournalClosed)
            }
            Err(TrySendError::Disconnected(_)) => Err(JournalClosed),
        }
    }

    /// Entries that found the queue full.
    pub(crate) fn waits(&self) -> u64 {
        self.waits
    }
}

/// About what an entry takes in memory.
fn bytes_of(entry: &JournalEntry) -> usize {
    let lists = match entry {
        JournalEntry::Ended(record) => {
            size_of::<Read>() * record.reads.len() + size_of::<Event>() * record.events.len()
        }
        JournalEntry::Started(_) | JournalEntry::NotSent(_) | JournalEntry::RunEnded(_) => 0,
    };
    ENTRY_BYTES + lists
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use inferometer_model::outcome::Cause;
    use inferometer_model::{Moment, NotSent, RequestId};

    use super::*;

    fn entry(id: u64) -> JournalEntry {
        let cause = Cause::RunStopped;
        JournalEntry::NotSent(NotSent { first: RequestId(id), count: 1, cause, at: Moment::ZERO })
    }

    #[test]
    fn entries_leave_in_order_and_in_bounded_batches() {
        let (queue, batches) = sync_channel(1_000);
        let mut feed = Feed::new(queue);
        for id in 0..1_000 {
            feed.note(entry(id)).unwrap();
        }
        feed.hand_over().unwrap();
        feed.hand_over().unwrap();
        drop(feed);
        let batches: Vec<JournalBatch> = batches.into_iter().collect();
        assert!(batches.iter().all(|batch| batch.len() <= BATCH_BYTES / ENTRY_BYTES));
        assert!(batches.len() < 10, "{} batches", batches.len());
        let entries: Vec<JournalEntry> = batches.into_iter().flatten().collect();
        assert_eq!(entries, (0..1_000).map(entry).collect::<Vec<_>>());
    }

    #[test]
    fn a_writer_that_is_gone_is_noticed() {
        let (queue, batches) = sync_channel(1);
        drop(batches);
        let mut feed = Feed::new(queue);
        feed.note(entry(0)).unwrap();
        assert_eq!(feed.hand_over(), Err(JournalClosed));
    }
}
