//! Reading a journal: a header, then frames, from a stream that may end or lie anywhere.
//!
//! The header is eight bytes of magic and the format version (`u16`, little endian). The reader
//! gives every entry whose checksum holds, in order. It never panics, and it asks for no more
//! memory than the longest frame. What it could not read is reported by [`Integrity`]:
//!
//! - Bytes at the end that form no frame are a torn tail: a crash cut the last write short.
//! - A damaged frame with good frames behind it is skipped and named. The next frame is searched
//!   for, and is at the latest where the damaged one's length ends.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use inferometer_model::JournalEntry;

use crate::error::StoreError;
use crate::frame::{CHECKSUM_BYTES, Damage, Framed, HEAD_BYTES, Head, Kind, OVERHEAD_BYTES};

/// The version of a run's files, in the journal's header and in the manifest.
pub const FORMAT_VERSION: u16 = 1;

pub(crate) const HEADER_BYTES: usize = MAGIC.len() + 2;
/// Like PNG's: not text, and broken by programs that change line ends.
const MAGIC: [u8; 8] = *b"\x89IFM\r\n\x1a\n";

/// More damaged frames than this are counted and not described.
const DESCRIBED_MAX: usize = 100;
/// Bytes that the search for a next frame may checksum. Honest damage needs a small part of it;
/// it bounds the time that a hostile file can take.
const SEARCH_BYTES_MAX: u64 = 1 << 30;
/// Longer frames are not searched for: a few bytes of any payload look like a great length, and
/// each of those would cost a checksum over that length.
const SEARCHED_LENGTH_MAX: u32 = 1 << 20;
const WINDOW_BYTES: usize = 64 << 10;

pub(crate) fn header() -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..MAGIC.len()].copy_from_slice(&MAGIC);
    header[MAGIC.len()..].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    header
}

/// What of a journal could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Integrity {
    /// The first damaged frames that have good ones behind them.
    pub damaged: Vec<DamagedFrame>,
    /// All of them.
    pub damaged_count: u64,
    pub tail: Tail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedFrame {
    pub offset: u64,
    /// How far the next good frame is.
    pub bytes: u64,
    pub reason: Damage,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tail {
    #[default]
    Clean,
    /// The last `bytes` bytes, from `at` on, hold no frame.
    Torn { at: u64, bytes: u64 },
}

impl Integrity {
    pub fn is_intact(&self) -> bool {
        self.damaged_count == 0 && self.tail == Tail::Clean
    }
}

impl fmt::Display for Integrity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_intact() {
            return f.write_str("every frame is whole");
        }
        if let Some(first) = self.damaged.first() {
            write!(f, "damaged at byte {}: {}", first.offset, first.reason)?;
        }
        if 1 < self.damaged_count {
            write!(f, ", and at {} more places", self.damaged_count - 1)?;
        }
        if let Tail::Torn { at, bytes } = self.tail {
            let joint = if self.damaged.is_empty() { "" } else { "; " };
            write!(f, "{joint}the last {bytes} bytes are torn, from byte {at} on")?;
        }
        Ok(())
    }
}

/// Gives the entries of a journal, and afterwards its [`Integrity`].
#[derive(Debug)]
pub struct JournalReader<R, E = JournalEntry> {
    source: BufReader<R>,
    /// The position of `source`.
    cursor: u64,
    path: PathBuf,
    /// As found at the beginning: a journal that grows meanwhile is read up to here.
    length: u64,
    /// Where the next frame should be.
    position: u64,
    /// The payload of the frame that was read last.
    payload: Vec<u8>,
    integrity: Integrity,
    search_bytes_left: u64,
    entries: PhantomData<fn() -> E>,
}

/// What is at a position of the file.
enum Found {
    Whole {
        kind: u8,
        end: u64,
    },
    /// `end` is where the frame would end if its length were right.
    Broken {
        reason: Damage,
        end: Option<u64>,
    },
}

impl JournalReader<File> {
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let file =
            File::open(path).map_err(|error| StoreError::Read { path: path.to_owned(), error })?;
        Self::new(file, path.to_owned())
    }
}

impl<R: Read + Seek> JournalReader<R> {
    /// Reads the header. `path` is for messages only.
    pub fn new(source: R, path: PathBuf) -> Result<Self, StoreError> {
        Self::of_entries(source, path)
    }

    /// Whether a run's ending is in the rest of the journal. Records are not decoded.
    pub(crate) fn holds_ending(mut self) -> Result<bool, StoreError> {
        loop {
            match self.next_frame() {
                Ok(Some((kind, _offset))) if kind == Kind::RunEnded as u8 => return Ok(true),
                Ok(Some(_)) => {}
                Ok(None) => return Ok(false),
                Err(error) => return Err(self.read_error(error)),
            }
        }
    }
}

impl<R: Read + Seek, E: Framed> JournalReader<R, E> {
    pub(crate) fn of_entries(source: R, path: PathBuf) -> Result<Self, StoreError> {
        let mut reader = Self {
            source: BufReader::with_capacity(WINDOW_BYTES, source),
            cursor: 0,
            path,
            length: 0,
            position: 0,
            payload: Vec::new(),
            integrity: Integrity::default(),
            search_bytes_left: SEARCH_BYTES_MAX,
            entries: PhantomData,
        };
        reader.read_header()?;
        Ok(reader)
    }

    /// What could not be read so far; it is complete when there are no more entries.
    pub fn integrity(&self) -> &Integrity {
        &self.integrity
    }

    pub fn into_integrity(self) -> Integrity {
        self.integrity
    }

    fn read_header(&mut self) -> Result<(), StoreError> {
        let mut found = [0; HEADER_BYTES];
        let read = self.source.seek(SeekFrom::End(0)).and_then(|length| {
            self.length = length;
            self.cursor = length;
            let present = usize::try_from(length).unwrap_or(usize::MAX).min(HEADER_BYTES);
            self.read_at(0, &mut found[..present]).map(|()| present)
        });
        let present = read.map_err(|error| self.read_error(error))?;
        if present < HEADER_BYTES && found[..present] == header()[..present] {
            // The crash came while the header was written: a journal without entries.
            self.tear(0);
            return Ok(());
        }
        let version = u16::from_le_bytes([found[MAGIC.len()], found[MAGIC.len() + 1]]);
        if found[..MAGIC.len()] != MAGIC || version == 0 {
            return Err(StoreError::NotAJournal { path: self.path.clone(), header: HEADER_BYTES });
        }
        if FORMAT_VERSION < version {
            return Err(StoreError::NewerFormat {
                path: self.path.clone(),
                found: version.into(),
                known: FORMAT_VERSION.into(),
            });
        }
        self.position = HEADER_BYTES as u64;
        Ok(())
    }

    /// The kind and the place of the next whole frame; its payload is in `self.payload`.
    fn next_frame(&mut self) -> io::Result<Option<(u8, u64)>> {
        while self.position < self.length {
            let offset = self.position;
            match self.look_at(offset)? {
                Found::Whole { kind, end } => {
                    self.position = end;
                    return Ok(Some((kind, offset)));
                }
                Found::Broken { reason, end } => match self.frame_after(offset, end)? {
                    Some(next) => {
                        self.note_damage(offset, next - offset, reason);
                        self.position = next;
                    }
                    None => self.tear(offset),
                },
            }
        }
        Ok(None)
    }

    fn look_at(&mut self, offset: u64) -> io::Result<Found> {
        let space = self.length - offset;
        if space < OVERHEAD_BYTES {
            return Ok(Found::Broken { reason: Damage::Length, end: None });
        }
        let mut bytes = [0; HEAD_BYTES];
        self.read_at(offset, &mut bytes)?;
        let head = Head::from_bytes(bytes);
        let length = head.length().filter(|length| u64::from(*length) <= space - OVERHEAD_BYTES);
        let Some(length) = length else {
            return Ok(Found::Broken { reason: Damage::Length, end: None });
        };
        let end = offset + OVERHEAD_BYTES + u64::from(length);
        let mut payload = std::mem::take(&mut self.payload);
        payload.resize(length as usize, 0);
        let mut checksum = [0; CHECKSUM_BYTES];
        self.read_at(offset + HEAD_BYTES as u64, &mut payload)?;
        self.read_at(end - CHECKSUM_BYTES as u64, &mut checksum)?;
        self.payload = payload;
        if head.checksum(offset, &self.payload) == u32::from_le_bytes(checksum) {
            Ok(Found::Whole { kind: head.kind(), end })
        } else {
            Ok(Found::Broken { reason: Damage::Checksum, end: Some(end) })
        }
    }

    /// Where the reading can go on after the broken frame at `offset`, if anywhere: at the nearest
    /// frame, because a damaged length may point behind good ones.
    fn frame_after(&mut self, offset: u64, end: Option<u64>) -> io::Result<Option<u64>> {
        let by_length = match end {
            Some(end) if matches!(self.look_at(end)?, Found::Whole { .. }) => Some(end),
            Some(_) | None => None,
        };
        let nearest = self.search(offset + 1, by_length.unwrap_or(self.length))?;
        Ok(nearest.or(by_length))
    }

    /// The first place in `start..limit` where a whole frame is.
    fn search(&mut self, start: u64, limit: u64) -> io::Result<Option<u64>> {
        let mut window = vec![0; WINDOW_BYTES];
        let mut window_at = start;
        while HEAD_BYTES as u64 <= limit.saturating_sub(window_at) {
            let rest = usize::try_from(limit - window_at).unwrap_or(usize::MAX);
            let filled = rest.min(WINDOW_BYTES);
            self.read_at(window_at, &mut window[..filled])?;
            let heads = window[..filled].windows(HEAD_BYTES).filter_map(<[u8]>::first_chunk);
            for (offset, head) in (window_at..).zip(heads) {
                if !self.may_begin_at(offset, Head::from_bytes(*head)) {
                    continue;
                }
                if self.search_bytes_left == 0 {
                    return Ok(None);
                }
                if let Found::Whole { .. } = self.look_at(offset)? {
                    return Ok(Some(offset));
                }
                let checked = self.payload.len() as u64;
                self.search_bytes_left = self.search_bytes_left.saturating_sub(checked);
            }
            window_at += (filled - (HEAD_BYTES - 1)) as u64;
        }
        Ok(None)
    }

    /// Whether it is worth the while to compute a checksum.
    fn may_begin_at(&self, offset: u64, head: Head) -> bool {
        let space = self.length - offset;
        let length = head.length().filter(|length| *length <= SEARCHED_LENGTH_MAX);
        E::is_kind(head.kind())
            && length.is_some_and(|length| u64::from(length) + OVERHEAD_BYTES <= space)
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        if self.cursor != offset {
            self.cursor = self.source.seek(SeekFrom::Start(offset))?;
        }
        self.source.read_exact(into)?;
        self.cursor += into.len() as u64;
        Ok(())
    }

    fn note_damage(&mut self, offset: u64, bytes: u64, reason: Damage) {
        self.integrity.damaged_count += 1;
        if self.integrity.damaged.len() < DESCRIBED_MAX {
            self.integrity.damaged.push(DamagedFrame { offset, bytes, reason });
        }
    }

    fn tear(&mut self, at: u64) {
        self.integrity.tail = Tail::Torn { at, bytes: self.length - at };
        self.position = self.length;
    }

    /// After this nothing more is read: a failing disk would fail at every frame.
    fn read_error(&mut self, error: io::Error) -> StoreError {
        self.position = self.length;
        StoreError::Read { path: self.path.clone(), error }
    }
}

impl<R: Read + Seek, E: Framed> Iterator for JournalReader<R, E> {
    type Item = Result<E, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (kind, offset) = match self.next_frame() {
                Ok(frame) => frame?,
                Err(error) => return Some(Err(self.read_error(error))),
            };
            match E::read(kind, &self.payload) {
                Ok(entry) => return Some(Ok(entry)),
                Err(reason) => self.note_damage(offset, self.position - offset, reason),
            }
        }
    }
}
