//! A journal: a header, then frames, one for each entry.
//!
//! The header is eight bytes of magic and the format version (`u16`, little endian). A frame is
//!
//! ```text
//! length u32 | kind u8 | payload, `length` bytes of postcard | crc32c u32      (little endian)
//! ```
//!
//! The checksum covers the frame's own offset in the file, then the length, the kind and the
//! payload. A frame is thus valid only where it was written: a reader that looks for the next
//! frame after a damaged one cannot be led astray by bytes that a server put into a message, nor
//! by old blocks of another journal.
//!
//! Payloads name no fields, so whatever changes their bytes needs a new format version
//! (`docs/format.md`). That includes every type of the model that a [`JournalEntry`] or a
//! [`TelemetryEntry`] holds.
//!
//! The reader gives every entry whose checksum holds, in order. It never panics, and it asks for no
//! more memory than the longest frame. What it could not read is reported by [`Integrity`]:
//!
//! - Bytes at the end that form no frame are an incomplete tail: a crash cut the last write short.
//! - A damaged frame with good frames behind it is skipped and named. The next frame is searched
//!   for, and is at the latest where the damaged one's length ends.
//!
//! A write that fails ends the journal: what is in the file stays readable, and nothing is written
//! behind a partial frame.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use inferometer_model::journal::Dialling;
use inferometer_model::record::SessionPlace;
use inferometer_model::telemetry::{TelemetryEntry, TelemetrySample};
use inferometer_model::{JournalEntry, RequestRecord, RunEnding, StartedRequest};
use serde::{Deserialize, Serialize};

use crate::error::{Result, StoreError};
use crate::files;

/// No frame is longer, so a damaged length cannot ask for more memory than this.
pub const PAYLOAD_BYTES_MAX: u32 = 64 << 20;

const HEAD_BYTES: usize = 5;
const CHECKSUM_BYTES: usize = 4;
/// What a frame adds to its payload.
const OVERHEAD_BYTES: u64 = (HEAD_BYTES + CHECKSUM_BYTES) as u64;

/// Why a frame was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("the checksum does not match")]
    Checksum,
    #[error("the length is not possible")]
    Length,
    #[error("the kind {0} is not known")]
    Kind(u8),
    #[error("the payload is not an entry")]
    Payload,
}

/// An entry of a journal. Journals of different entries share no kind, so that a journal under the
/// other's name holds no entry.
pub trait Framed: Sized {
    /// The numbers of the kinds of entries.
    const KINDS: RangeInclusive<u8>;

    /// Whether nothing belongs behind this entry.
    fn is_last(&self) -> bool;

    /// Adds the payload, and returns its kind.
    fn write(&self, into: &mut Vec<u8>) -> (u8, postcard::Result<()>);

    /// The entry that a frame with a good checksum holds.
    fn read(kind: u8, payload: &[u8]) -> Result<Self, Damage>;
}

/// The stored numbers of the entries: never renumber, only add (with a new format version).
const STARTED: u8 = 1;
const ENDED: u8 = 2;
const NOT_SENT: u8 = 3;
const RUN_ENDED: u8 = 4;
/// The end of a run, and the CPU time of its busiest driver (since format 2).
const RUN_ENDED_WITH_DRIVER_CPU: u8 = 5;
/// The end of a run, the CPU time of its busiest driver, and the connections that were opened before
/// its plan began (since format 2).
const RUN_ENDED_WITH_DIALLING: u8 = 6;
/// The end of a request whose server reported more than its answer (since format 2).
const ENDED_WITH_REPORT: u8 = 7;
/// The payload of [`STARTED`] or of [`ENDED`], and where the request stands in its session; at the end
/// also what its server reported, as an option (since format 2).
const STARTED_IN_SESSION: u8 = 9;
const ENDED_IN_SESSION: u8 = 10;
/// The payload of [`ENDED_IN_SESSION`], and how the answer was judged (since format 2).
const ENDED_JUDGED: u8 = 11;
const ENDINGS: RangeInclusive<u8> = RUN_ENDED..=RUN_ENDED_WITH_DIALLING;

/// The first bytes of a frame: the length of its payload and its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head([u8; HEAD_BYTES]);

impl Head {
    const fn kind(self) -> u8 {
        self.0[4]
    }

    /// Bytes of payload, or `None` when no frame has that length.
    fn length(self) -> Option<u32> {
        let [a, b, c, d, _kind] = self.0;
        Some(u32::from_le_bytes([a, b, c, d]))
            .filter(|length| 0 < *length && *length <= PAYLOAD_BYTES_MAX)
    }

    fn checksum(self, offset: u64, payload: &[u8]) -> u32 {
        let of_offset = crc32c::crc32c(&offset.to_le_bytes());
        crc32c::crc32c_append(crc32c::crc32c_append(of_offset, &self.0), payload)
    }
}

/// Adds the frame of `entry`, which will be at `offset` of the file. On an error `into` is
/// unchanged.
fn encode(entry: &impl Framed, offset: u64, into: &mut Vec<u8>) -> Result<(), String> {
    let head_at = into.len();
    let payload_at = head_at + HEAD_BYTES;
    let mut append = || -> Result<(), String> {
        // The length is known once the payload is written in place.
        into.extend_from_slice(&[0; HEAD_BYTES]);
        let (kind, written) = entry.write(into);
        written.map_err(|error| error.to_string())?;
        let bytes = into.len() - payload_at;
        let length = u32::try_from(bytes).ok().filter(|length| *length <= PAYLOAD_BYTES_MAX);
        let [a, b, c, d] = length
            .ok_or_else(|| format!("it has {bytes} bytes, and the bound is {PAYLOAD_BYTES_MAX}"))?
            .to_le_bytes();
        let head = Head([a, b, c, d, kind]);
        into[head_at..payload_at].copy_from_slice(&head.0);
        let checksum = head.checksum(offset, &into[payload_at..]);
        into.extend_from_slice(&checksum.to_le_bytes());
        Ok(())
    };
    let encoded = append();
    if encoded.is_err() {
        into.truncate(head_at);
    }
    encoded
}

fn write(value: &impl Serialize, into: &mut Vec<u8>) -> postcard::Result<()> {
    postcard::to_io(value, into).map(|_into| ())
}

impl Framed for JournalEntry {
    const KINDS: RangeInclusive<u8> = STARTED..=ENDED_JUDGED;

    fn is_last(&self) -> bool {
        matches!(self, Self::RunEnded(_))
    }

    fn write(&self, into: &mut Vec<u8>) -> (u8, postcard::Result<()>) {
        let alone = SessionPlace::default();
        match self {
            Self::Started(started) if started.asked.session == alone => {
                (STARTED, write(started, into))
            }
            Self::Started(started) => {
                (STARTED_IN_SESSION, write(&(started, started.asked.session), into))
            }
            Self::Ended(record) => match (record.asked.session, &record.server) {
                (session, report) if record.grade.is_some() => {
                    (ENDED_JUDGED, write(&(record, session, report, record.grade), into))
                }
                (session, None) if session == alone => (ENDED, write(record, into)),
                (session, report) if session == alone => {
                    (ENDED_WITH_REPORT, write(&(record, report), into))
                }
                (session, report) => (ENDED_IN_SESSION, write(&(record, session, report), into)),
            },
            Self::NotSent(part) => (NOT_SENT, write(part, into)),
            Self::RunEnded(ending) => {
                let client = &ending.client;
                match (client.driver_cpu_us, &client.dialling) {
                    (None, None) => (RUN_ENDED, write(ending, into)),
                    (Some(cpu_us), None) => {
                        (RUN_ENDED_WITH_DRIVER_CPU, write(&(ending, cpu_us), into))
                    }
                    (cpu_us, Some(dialling)) => {
                        (RUN_ENDED_WITH_DIALLING, write(&(ending, cpu_us, dialling), into))
                    }
                }
            }
        }
    }

    fn read(kind: u8, payload: &[u8]) -> Result<Self, Damage> {
        match kind {
            STARTED => whole(payload).map(Self::Started),
            ENDED | ENDED_WITH_REPORT | ENDED_IN_SESSION | ENDED_JUDGED => {
                whole_record(kind, payload).map(|record| Self::Ended(Box::new(record)))
            }
            NOT_SENT => whole(payload).map(Self::NotSent),
            RUN_ENDED => whole(payload).map(Self::RunEnded),
            RUN_ENDED_WITH_DRIVER_CPU => {
                let (mut ending, cpu_us): (RunEnding, u32) = whole(payload)?;
                ending.client.driver_cpu_us = Some(cpu_us);
                Ok(Self::RunEnded(ending))
            }
            RUN_ENDED_WITH_DIALLING => {
                let (mut ending, cpu_us, dialling): (RunEnding, Option<u32>, Dialling) =
                    whole(payload)?;
                ending.client.driver_cpu_us = cpu_us;
                ending.client.dialling = Some(dialling);
                Ok(Self::RunEnded(ending))
            }
            STARTED_IN_SESSION => {
                let (mut started, session): (StartedRequest, SessionPlace) = whole(payload)?;
                started.asked.session = session;
                Ok(Self::Started(started))
            }
            other => Err(Damage::Kind(other)),
        }
    }
}

const SAMPLE: u8 = 16;
const MISSED: u8 = 17;
const ABSENT: u8 = 18;
const SKIPPED: u8 = 19;
const DEVICES: u8 = 20;
const CLIENT: u8 = 21;
const DEVICES_ABSENT: u8 = 22;
const DEVICES_MISSED: u8 = 23;
/// A sample, and the share of the cache in the host's memory.
const SAMPLE_WITH_HOST_CACHE: u8 = 24;
/// A sample, that share as an option, and the totals of speculative decoding.
const SAMPLE_WITH_SPECULATION: u8 = 25;
/// An entry of another source than the first: its number, and the kind and payload of the entry.
const FROM_SOURCE: u8 = 26;

impl Framed for TelemetryEntry {
    const KINDS: RangeInclusive<u8> = SAMPLE..=FROM_SOURCE;

    fn is_last(&self) -> bool {
        // Where the server reports nothing, its machine may.
        false
    }

    fn write(&self, into: &mut Vec<u8>) -> (u8, postcard::Result<()>) {
        match self {
            Self::Sample(sample) => match (sample.gauges.cpu_kv_usage, &sample.speculation) {
                (None, None) => (SAMPLE, write(sample, into)),
                (Some(share), None) => (SAMPLE_WITH_HOST_CACHE, write(&(sample, share), into)),
                (share, Some(totals)) => {
                    (SAMPLE_WITH_SPECULATION, write(&(sample, share, totals), into))
                }
            },
            Self::Missed(missed) => (MISSED, write(missed, into)),
            Self::Skipped(skipped) => (SKIPPED, write(skipped, into)),
            Self::Absent(absence) => (ABSENT, write(absence, into)),
            Self::Devices(sample) => (DEVICES, write(sample, into)),
            Self::Client(sample) => (CLIENT, write(sample, into)),
            Self::DevicesAbsent(absence) => (DEVICES_ABSENT, write(absence, into)),
            Self::DevicesMissed(look) => (DEVICES_MISSED, write(look, into)),
            Self::FromSource(source, entry) => {
                into.extend_from_slice(&source.to_le_bytes());
                let kind_at = into.len();
                into.push(0);
                let (kind, written) = entry.write(into);
                into[kind_at] = kind;
                (FROM_SOURCE, written)
            }
        }
    }

    fn read(kind: u8, payload: &[u8]) -> Result<Self, Damage> {
        match kind {
            SAMPLE => whole(payload).map(Self::Sample),
            MISSED => whole(payload).map(Self::Missed),
            SKIPPED => whole(payload).map(Self::Skipped),
            ABSENT => whole(payload).map(Self::Absent),
            DEVICES => whole(payload).map(Self::Devices),
            CLIENT => whole(payload).map(Self::Client),
            DEVICES_ABSENT => whole(payload).map(Self::DevicesAbsent),
            DEVICES_MISSED => whole(payload).map(Self::DevicesMissed),
            SAMPLE_WITH_HOST_CACHE => {
                let (mut sample, share): (TelemetrySample, f64) = whole(payload)?;
                sample.gauges.cpu_kv_usage = Some(share);
                Ok(Self::Sample(sample))
            }
            SAMPLE_WITH_SPECULATION => {
                let (mut sample, share, totals): (TelemetrySample, _, _) = whole(payload)?;
                (sample.gauges.cpu_kv_usage, sample.speculation) = (share, Some(totals));
                Ok(Self::Sample(sample))
            }
            FROM_SOURCE => match payload {
                // Sources are not inside of each other.
                [a, b, kind, payload @ ..] if *kind != FROM_SOURCE => {
                    let entry = Self::read(*kind, payload)?;
                    Ok(Self::FromSource(u16::from_le_bytes([*a, *b]), Box::new(entry)))
                }
                _ => Err(Damage::Payload),
            },
            other => Err(Damage::Kind(other)),
        }
    }
}

/// The record of a request, with what its server reported besides.
fn whole_record(kind: u8, payload: &[u8]) -> Result<RequestRecord, Damage> {
    match kind {
        ENDED => whole(payload),
        ENDED_WITH_REPORT => {
            let (record, server): (RequestRecord, _) = whole(payload)?;
            Ok(RequestRecord { server, ..record })
        }
        ENDED_IN_SESSION => {
            let (mut record, session, server): (RequestRecord, SessionPlace, _) = whole(payload)?;
            record.asked.session = session;
            Ok(RequestRecord { server, ..record })
        }
        ENDED_JUDGED => {
            let (mut record, session, server, grade): (RequestRecord, SessionPlace, _, _) =
                whole(payload)?;
            record.asked.session = session;
            Ok(RequestRecord { server, grade, ..record })
        }
        other => Err(Damage::Kind(other)),
    }
}

fn whole<'a, T: Deserialize<'a>>(payload: &'a [u8]) -> Result<T, Damage> {
    match postcard::take_from_bytes(payload) {
        Ok((value, [])) => Ok(value),
        Ok(_) | Err(_) => Err(Damage::Payload),
    }
}

/// The version of a run's files, in the journal's header and in the manifest.
pub const FORMAT_VERSION: u16 = 2;

const HEADER_BYTES: usize = MAGIC.len() + 2;
/// Like PNG's: not text, and broken by programs that change line ends.
const MAGIC: [u8; 8] = *b"\x89IFM\r\n\x1a\n";

/// Longer frames are not searched for: a few bytes of any payload look like a great length, and
/// each of those would cost a checksum over that length.
const SEARCHED_LENGTH_MAX: u32 = 1 << 20;
const WINDOW_BYTES: usize = 64 << 10;

fn header() -> [u8; HEADER_BYTES] {
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
            write!(f, ", and at {} more offsets", self.damaged_count - 1)?;
        }
        if let Tail::Torn { at, bytes } = self.tail {
            let joint = if self.damaged.is_empty() { "" } else { "; " };
            write!(f, "{joint}the last {bytes} bytes, from byte {at} on, are incomplete")?;
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
    /// A frame whose checksum holds, up to `end`.
    Whole { kind: u8, end: u64 },
    /// `end` is where the frame would end if its length were right.
    Broken { reason: Damage, end: Option<u64> },
}

impl JournalReader<File> {
    pub fn open(path: &Path) -> Result<Self> {
        let file =
            File::open(path).map_err(|error| StoreError::Read { path: path.to_owned(), error })?;
        Self::new(file, path.to_owned())
    }
}

impl<R: Read + Seek> JournalReader<R> {
    /// Reads the header. `path` is for messages only.
    pub fn new(source: R, path: PathBuf) -> Result<Self> {
        Self::of_entries(source, path)
    }

    /// Whether a run's ending is in the rest of the journal. Records are not decoded.
    pub(crate) fn holds_ending(mut self) -> Result<bool> {
        loop {
            match self.next_frame() {
                Ok(Some((kind, _offset))) if ENDINGS.contains(&kind) => return Ok(true),
                Ok(Some(_)) => {}
                Ok(None) => return Ok(false),
                Err(error) => return Err(self.read_error(error)),
            }
        }
    }
}

impl<R: Read + Seek, E: Framed> JournalReader<R, E> {
    pub(crate) fn of_entries(source: R, path: PathBuf) -> Result<Self> {
        let mut reader = Self {
            source: BufReader::with_capacity(WINDOW_BYTES, source),
            cursor: 0,
            path,
            length: 0,
            position: 0,
            payload: Vec::new(),
            integrity: Integrity::default(),
            // Bytes that the search for a next frame may checksum. Honest damage needs a small part of it;
            // it bounds the time that a hostile file can take.
            search_bytes_left: 1 << 30,
            entries: PhantomData,
        };
        reader.read_header()?;
        Ok(reader)
    }

    /// Continues with what was appended since the last entry was read. A frame that was incomplete
    /// may be whole now.
    pub fn extend(&mut self) -> Result<()> {
        if let Tail::Torn { at, .. } = std::mem::take(&mut self.integrity.tail) {
            self.position = at;
        }
        if self.position < HEADER_BYTES as u64 {
            return self.read_header();
        }
        match self.source.seek(SeekFrom::End(0)) {
            Ok(length) => {
                (self.length, self.cursor) = (length, length);
                Ok(())
            }
            Err(error) => Err(self.read_error(error)),
        }
    }

    /// What could not be read so far; it is complete when there are no more entries.
    pub fn into_integrity(self) -> Integrity {
        self.integrity
    }

    fn read_header(&mut self) -> Result<()> {
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
            return Err(StoreError::NotAJournal { path: self.path.clone() });
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
        let head = Head(bytes);
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
                if !self.may_begin_at(offset, Head(*head)) {
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
        E::KINDS.contains(&head.kind())
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
        // More damaged frames than this are counted and not described.
        if self.integrity.damaged.len() < 100 {
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

impl<R: Read + Seek, E: Framed> JournalReader<R, E> {
    /// The next entry, and where its frame is.
    pub(crate) fn next_entry(&mut self) -> Option<Result<(u64, E)>> {
        loop {
            let (kind, offset) = match self.next_frame() {
                Ok(frame) => frame?,
                Err(error) => return Some(Err(self.read_error(error))),
            };
            match E::read(kind, &self.payload) {
                Ok(entry) => return Some(Ok((offset, entry))),
                Err(reason) => self.note_damage(offset, self.position - offset, reason),
            }
        }
    }

    /// The length of the whole file.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }
}

impl<R: Read + Seek, E: Framed> Iterator for JournalReader<R, E> {
    type Item = Result<E>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_entry().map(|entry| entry.map(|(_, entry)| entry))
    }
}

/// Reads the record whose frame is at `offset`; `payload` is memory to be used again.
pub(crate) fn read_record(
    mut read: impl FnMut(u64, &mut [u8]) -> io::Result<()>,
    offset: u64,
    payload: &mut Vec<u8>,
) -> io::Result<RequestRecord> {
    let mut head = Head([0; HEAD_BYTES]);
    read(offset, &mut head.0)?;
    let no_record = |reason: Damage| io::Error::new(ErrorKind::InvalidData, reason);
    let length = head.length().ok_or_else(|| no_record(Damage::Length))?;
    payload.resize(length as usize, 0);
    read(offset + HEAD_BYTES as u64, payload)?;
    let mut checksum = [0; CHECKSUM_BYTES];
    read(offset + HEAD_BYTES as u64 + u64::from(length), &mut checksum)?;
    if head.checksum(offset, payload) != u32::from_le_bytes(checksum) {
        return Err(no_record(Damage::Checksum));
    }
    whole_record(head.kind(), payload).map_err(no_record)
}

/// Frames entries and hands them to the kernel in batches.
#[derive(Debug)]
pub struct JournalWriter<W, E = JournalEntry> {
    pub(crate) sink: W,
    pub(crate) path: PathBuf,
    /// Whole frames that the sink has not taken yet. A `BufWriter` would write them once more
    /// when it is dropped after an error.
    waiting: Vec<u8>,
    written: u64,
    stopped: bool,
    /// Whether the run's ending was appended.
    pub(crate) ended: bool,
    entries: PhantomData<fn(&E)>,
}

impl<W: Write, E: Framed> JournalWriter<W, E> {
    /// Begins a journal in an empty sink. `path` is for messages only.
    pub fn new(sink: W, path: PathBuf) -> Self {
        let waiting = header().to_vec();
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

    pub fn append(&mut self, entry: &E) -> Result<()> {
        self.check_going()?;
        let offset = self.written + self.waiting.len() as u64;
        encode(entry, offset, &mut self.waiting)
            .map_err(|reason| StoreError::Entry { path: self.path.clone(), reason })?;
        self.ended |= entry.is_last();
        // Waiting bytes beyond this go to the kernel at once.
        if (64 << 10) <= self.waiting.len() { self.flush() } else { Ok(()) }
    }

    /// Hands all waiting frames to the kernel: after this a kill cannot take them.
    pub fn flush(&mut self) -> Result<()> {
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

    fn check_going(&self) -> Result<()> {
        if self.stopped {
            return Err(StoreError::Stopped { path: self.path.clone(), written: self.written });
        }
        Ok(())
    }
}

impl<E: Framed> JournalWriter<File, E> {
    /// Hands all waiting frames to the disk: after this a power cut cannot take them.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.flush()?;
        self.sink.sync_data().map_err(|error| {
            // The kernel may have dropped the pages: a second try would succeed and mean nothing.
            self.stopped = true;
            StoreError::NotDurable { path: self.path.clone(), error }
        })
    }

    /// Writes the journal anew where its name has gone, from the file that is still open. Returns
    /// whether it had gone.
    pub(crate) fn restore(&mut self) -> Result<bool> {
        if files::is_named(&self.sink, &self.path) {
            return Ok(false);
        }
        self.flush()?;
        self.sink = files::restore_name(&self.sink, &self.path)
            .map_err(|error| StoreError::Write { path: self.path.clone(), error })?;
        Ok(true)
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

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use inferometer_model::answer::{Grade, Validity};
    use inferometer_model::record::RequestedLengths;
    use inferometer_model::{Ending, Moment, RequestId, StartedRequest};

    use super::*;

    fn started() -> JournalEntry {
        JournalEntry::Started(StartedRequest {
            id: RequestId(1),
            intended: Moment::from_nanos(2),
            admitted: Moment::from_nanos(300),
            asked: RequestedLengths {
                input_tokens: 5,
                output_tokens: 6,
                part: 7,
                turn: 8,
                ..RequestedLengths::default()
            },
        })
    }

    #[test]
    fn a_frame_has_the_documented_bytes() {
        let mut bytes = Vec::new();
        encode(&started(), 10, &mut bytes).unwrap();
        assert_eq!(bytes[..13], [8, 0, 0, 0, 1, 1, 2, 0xac, 0x02, 5, 6, 7, 8]);
        let covered = [&10_u64.to_le_bytes()[..], &bytes[..13]].concat();
        assert_eq!(bytes[13..], crc32c::crc32c(&covered).to_le_bytes());
    }

    #[test]
    fn a_judged_answer_has_its_grade_and_no_text() {
        let JournalEntry::Started(started) = started() else { panic!("it was started") };
        let mut record = RequestRecord::without_answer(&started, Ending::ok(Moment::ZERO));
        let validity = Some(Validity::Cut);
        record.grade = Some(Grade { validity, is_correct: Some(false), question: Some(7) });
        let entry = JournalEntry::Ended(Box::new(record.clone()));
        record.answer = Some(Box::default());
        let mut bytes = Vec::new();
        let (kind, written) = JournalEntry::Ended(Box::new(record)).write(&mut bytes);
        written.unwrap();
        assert_eq!((kind, JournalEntry::read(kind, &bytes)), (11, Ok(entry)));
    }

    #[test]
    fn a_payload_with_bytes_left_over_is_no_entry() {
        assert!(JournalEntry::read(1, &[1, 2, 3, 4, 5, 6, 7]).is_ok());
        assert_eq!(JournalEntry::read(1, &[1, 2, 3, 4, 5, 6, 7, 8]), Err(Damage::Payload));
        assert_eq!(JournalEntry::read(1, &[1, 2, 3, 4, 5, 6]), Err(Damage::Payload));
        assert_eq!(JournalEntry::read(8, &[1, 2, 3]), Err(Damage::Kind(8)));
    }

    #[test]
    fn a_hostile_count_of_elements_allocates_little_and_fails() {
        // A record that claims 2^64 - 1 reads after its fixed fields.
        let mut payload = vec![0; 11];
        payload.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
        assert_eq!(JournalEntry::read(2, &payload), Err(Damage::Payload));
    }

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

    fn started_at(id: u64) -> JournalEntry {
        JournalEntry::Started(StartedRequest {
            id: RequestId(id),
            intended: Moment::ZERO,
            admitted: Moment::from_nanos(id),
            asked: RequestedLengths {
                input_tokens: 1,
                output_tokens: 1,
                part: 0,
                turn: 0,
                ..RequestedLengths::default()
            },
        })
    }

    /// Faults: 83.
    #[test]
    fn a_full_disk_keeps_every_whole_frame_and_takes_no_more() {
        for space in 0..100 {
            let mut disk = SmallDisk { bytes: Vec::new(), space };
            let mut writer = JournalWriter::new(&mut disk, PathBuf::from("runs/x/j"));
            let error = (0..20)
                .map(|id| writer.append(&started_at(id)).and_then(|()| writer.flush()))
                .find_map(Result::err)
                .unwrap();
            let message = error.to_string();
            let StoreError::Append { written, .. } = error else { panic!("{message}") };
            assert_eq!(written, space as u64);
            assert!(message.contains("inferometer recover runs/x"), "{message}");
            let refused = writer.append(&started_at(20));
            assert!(matches!(refused, Err(StoreError::Stopped { .. })), "{refused:?}");

            let entries: Vec<JournalEntry> =
                JournalReader::new(Cursor::new(disk.bytes), PathBuf::new())
                    .unwrap()
                    .collect::<Result<_, _>>()
                    .unwrap();
            let whole_frames = space.saturating_sub(HEADER_BYTES) / 16;
            assert_eq!(entries, (0..whole_frames as u64).map(started_at).collect::<Vec<_>>());
        }
    }

    /// Faults: 84.
    #[test]
    fn a_disk_that_does_not_confirm_is_not_asked_twice() {
        // A device that takes bytes and cannot sync them.
        let null = File::options().write(true).open("/dev/null").unwrap();
        let mut writer: JournalWriter<_> = JournalWriter::new(null, PathBuf::from("j"));
        assert!(matches!(writer.sync(), Err(StoreError::NotDurable { .. })));
        assert!(matches!(writer.sync(), Err(StoreError::Stopped { .. })));
    }
}
