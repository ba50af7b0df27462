//! The records of a long run, which stay in its journal: where each is, and its reading.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};
use std::thread;

use inferometer_model::records::{RecordFile, RecordOrder, StoredIter};
use inferometer_model::{Moment, RequestId, RequestRecord};

use crate::error::{Result, StoreError};
use crate::journal::read_record;

/// Where a record is, and what it is sorted by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    pub(crate) id: RequestId,
    pub(crate) left: Moment,
    pub(crate) offset: u64,
}

/// Twelve bytes for each request.
#[derive(Debug)]
pub(crate) struct JournalRecords(Arc<Journal>);

#[derive(Debug)]
struct Journal {
    file: File,
    path: PathBuf,
    /// Where the records are, in the order of their ids.
    offsets: Vec<u64>,
    /// Indices of `offsets` in the order of time.
    in_time: Vec<u32>,
    /// When the first request left and the last one ended.
    span: Option<(Moment, Moment)>,
    /// Records that are decoded at once.
    batch: usize,
    /// Why a record that was read before could not be read again.
    read_error: OnceLock<String>,
}

impl JournalRecords {
    /// The positions are in the order of their ids.
    pub(crate) fn open(path: &Path, positions: &[Position], last_end: Moment) -> Result<Self> {
        let unread = |error| StoreError::Read { path: path.to_owned(), error };
        let file = File::open(path).map_err(unread)?;
        let count = u32::try_from(positions.len());
        let count = count.map_err(|_| unread(io::Error::other("it has too many records")))?;
        let mut in_time: Vec<u32> = (0..count).collect();
        in_time.sort_unstable_by_key(|index| (positions[*index as usize].left, *index));
        let first = in_time.first().map(|index| positions[*index as usize].left);
        let span = first.map(|first| (first, last_end));
        let offsets: Vec<u64> = positions.iter().map(|position| position.offset).collect();
        let bytes = offsets.iter().max().copied().unwrap_or_default();
        let batch = BATCH_BYTES * offsets.len() as u64 / bytes.max(1);
        let batch = in_memory(batch).clamp(BATCH_LEAST, BATCH_MOST);
        let (path, read_error) = (path.to_owned(), OnceLock::new());
        Ok(Self(Arc::new(Journal { file, path, offsets, in_time, span, batch, read_error })))
    }
}

impl RecordFile for JournalRecords {
    fn count(&self) -> usize {
        self.0.offsets.len()
    }

    fn read(&self, order: RecordOrder, positions: Range<usize>) -> StoredIter<'_> {
        let readers = thread::available_parallelism().map_or(1, usize::from).min(READERS_MAX);
        if AHEAD_LEAST <= positions.len()
            && let Ok(batches) = read_ahead(&self.0, order, positions.clone(), readers)
        {
            return batches;
        }
        Box::new(positions.map_while(self.0.reader(order)))
    }

    fn span(&self) -> Option<(Moment, Moment)> {
        self.0.span
    }

    fn read_error(&self) -> Option<&str> {
        self.0.read_error.get().map(String::as_str)
    }
}

impl Journal {
    /// Reads the record at a position of an order.
    fn reader(&self, order: RecordOrder) -> impl FnMut(usize) -> Option<RequestRecord> {
        let (mut blocks, mut payload) = (Blocks::new(&self.file), Vec::new());
        move |position| {
            let index = match order {
                RecordOrder::Id => position,
                RecordOrder::Time => self.in_time[position] as usize,
            };
            let offset = self.offsets[index];
            let read = |at: u64, into: &mut [u8]| blocks.read(at, into);
            let failed = |error: &io::Error| {
                let path = self.path.display();
                let reason = || format!("{path} cannot be read again at byte {offset}: {error}");
                self.read_error.get_or_init(reason);
            };
            read_record(read, offset, &mut payload).inspect_err(failed).ok()
        }
    }
}

/// Two thirds of a pass over millions of records are their decoding: two threads keep up with it.
const READERS_MAX: usize = 2;
/// A record has from a hundred bytes to a hundred kilobytes. Batches are bounded by their bytes, and not too
/// short, because each of them wakes a thread.
const BATCH_BYTES: u64 = 16 << 10;
const BATCH_LEAST: usize = 16;
const BATCH_MOST: usize = 128;
/// Shorter passes are read by the thread that asks.
const AHEAD_LEAST: usize = 6_400;

/// Records that readers decode in turn, a batch each, before they are asked for.
fn read_ahead(
    journal: &Arc<Journal>,
    order: RecordOrder,
    positions: Range<usize>,
    readers: usize,
) -> io::Result<StoredIter<'static>> {
    let batch = journal.batch;
    let begin = |reader: usize| {
        let (sender, batches) = sync_channel(1);
        let (journal, positions) = (Arc::clone(journal), positions.clone());
        thread::Builder::new().name("records".to_owned()).spawn(move || {
            let mut record = journal.reader(order);
            for start in positions.clone().skip(reader * batch).step_by(readers * batch) {
                let end = positions.end.min(start + batch);
                let decoded: Vec<RequestRecord> = (start..end).map_while(&mut record).collect();
                if sender.send(decoded).is_err() {
                    return;
                }
            }
        })?;
        Ok(batches)
    };
    let readers = (0..readers).map(begin).collect::<io::Result<Vec<_>>>()?;
    let mut is_whole = true;
    let batches = (0..).map_while(move |number| {
        // What follows a record that cannot be read is not returned.
        let decoded = readers[number % readers.len()].recv().ok().filter(|_| is_whole)?;
        is_whole = decoded.len() == batch;
        Some(decoded)
    });
    Ok(Box::new(batches.flatten()))
}

/// The parts of a file that were read last. Records are written when a request ends, and read in other
/// orders: as many parts are kept as thousands of requests in flight lie apart.
struct Blocks<'a> {
    file: &'a File,
    /// The number of the block in each slot, and its bytes.
    slots: Vec<(u64, Vec<u8>)>,
}

const BLOCK_BYTES: u64 = 64 << 10;
const SLOTS: u64 = 64;

impl<'a> Blocks<'a> {
    fn new(file: &'a File) -> Self {
        Self { file, slots: (0..SLOTS).map(|_| (u64::MAX, Vec::new())).collect() }
    }

    fn read(&mut self, mut offset: u64, mut into: &mut [u8]) -> io::Result<()> {
        while !into.is_empty() {
            let (number, from) = (offset / BLOCK_BYTES, in_memory(offset % BLOCK_BYTES));
            let (held, bytes) = &mut self.slots[in_memory(number % SLOTS)];
            if *held != number {
                *held = u64::MAX;
                fill(self.file, number * BLOCK_BYTES, bytes)?;
                *held = number;
            }
            let part = bytes.get(from..).filter(|part| !part.is_empty());
            let part = part.ok_or(io::ErrorKind::UnexpectedEof)?;
            let taken = part.len().min(into.len());
            into[..taken].copy_from_slice(&part[..taken]);
            into = &mut into[taken..];
            offset += taken as u64;
        }
        Ok(())
    }
}

/// Reads a block; the last one is shorter.
fn fill(file: &File, offset: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    bytes.resize(in_memory(BLOCK_BYTES), 0);
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(())
}

/// A number of bytes or slots within one block or list.
fn in_memory(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
