//! The records of a long run, which stay in its journal: where each is, and its reading.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

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
pub(crate) struct JournalRecords {
    file: File,
    path: PathBuf,
    /// Where the records are, in the order of their ids.
    offsets: Vec<u64>,
    /// Indices of `offsets` in the order of time.
    in_time: Vec<u32>,
    /// Why a record that was read before could not be read again.
    read_error: OnceLock<String>,
}

impl JournalRecords {
    /// The positions are in the order of their ids.
    pub(crate) fn open(path: &Path, positions: &[Position]) -> Result<Self> {
        let unread = |error| StoreError::Read { path: path.to_owned(), error };
        let file = File::open(path).map_err(unread)?;
        let count = u32::try_from(positions.len());
        let count = count.map_err(|_| unread(io::Error::other("it has too many records")))?;
        let mut in_time: Vec<u32> = (0..count).collect();
        in_time.sort_unstable_by_key(|index| (positions[*index as usize].left, *index));
        let offsets = positions.iter().map(|position| position.offset).collect();
        Ok(Self { file, path: path.to_owned(), offsets, in_time, read_error: OnceLock::new() })
    }
}

impl RecordFile for JournalRecords {
    fn count(&self) -> usize {
        self.offsets.len()
    }

    fn read(&self, order: RecordOrder, positions: Range<usize>) -> StoredIter<'_> {
        let mut blocks = Blocks::new(&self.file);
        let mut payload = Vec::new();
        let mut record = move |offset: u64| -> Option<RequestRecord> {
            let read = |at: u64, into: &mut [u8]| blocks.read(at, into);
            read_record(read, offset, &mut payload)
                .inspect_err(|error| {
                    let path = self.path.display();
                    let reason =
                        || format!("{path} cannot be read again at byte {offset}: {error}");
                    self.read_error.get_or_init(reason);
                })
                .ok()
        };
        match order {
            RecordOrder::Id => {
                Box::new(self.offsets[positions].iter().map_while(move |offset| record(*offset)))
            }
            RecordOrder::Time => {
                let indices = self.in_time[positions].iter();
                Box::new(indices.map_while(move |index| record(self.offsets[*index as usize])))
            }
        }
    }

    fn read_error(&self) -> Option<&str> {
        self.read_error.get().map(String::as_str)
    }
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
