//! One frame of a journal: how an entry becomes bytes, and how bytes prove to be an entry.
//!
//! ```text
//! length u32 | kind u8 | payload, `length` bytes of postcard | crc32c u32      (little endian)
//! ```
//!
//! The checksum covers the frame's own place in the file, then the length, the kind and the
//! payload. A frame is thus valid only where it was written: a reader that looks for the next
//! frame after a damaged one cannot be led astray by bytes that a server put into a message, nor
//! by old blocks of another journal.
//!
//! Payloads name no fields, so whatever changes their bytes needs a new format version
//! (`docs/format.md`). That includes every type of the model that a [`JournalEntry`] or a
//! [`TelemetryEntry`] holds.

use inferometer_model::JournalEntry;
use inferometer_model::telemetry::{TelemetryEntry, TelemetrySample};
use serde::{Deserialize, Serialize};

/// No frame is longer, so a damaged length cannot ask for more memory than this.
pub const PAYLOAD_BYTES_MAX: u32 = 64 << 20;

pub(crate) const HEAD_BYTES: usize = 5;
pub(crate) const CHECKSUM_BYTES: usize = 4;
/// What a frame adds to its payload.
pub(crate) const OVERHEAD_BYTES: u64 = (HEAD_BYTES + CHECKSUM_BYTES) as u64;

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

/// What a journal is made of. Journals of different entries share no kind, so that one in the
/// place of the other holds nothing.
pub trait Framed: Sized {
    fn is_kind(kind: u8) -> bool;

    /// Whether nothing belongs behind this entry.
    fn is_last(&self) -> bool;

    /// Adds the payload, and returns its kind.
    fn write(&self, into: &mut Vec<u8>) -> (u8, postcard::Result<()>);

    /// The entry that a frame with a good checksum holds.
    fn read(kind: u8, payload: &[u8]) -> Result<Self, Damage>;
}

/// The stored numbers of the entries: never renumber, only add (with a new format version).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Started = 1,
    Ended = 2,
    NotSent = 3,
    RunEnded = 4,
}

impl Kind {
    pub(crate) const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Started),
            2 => Some(Self::Ended),
            3 => Some(Self::NotSent),
            4 => Some(Self::RunEnded),
            _ => None,
        }
    }
}

/// The first bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    bytes: [u8; HEAD_BYTES],
}

impl Head {
    pub(crate) const fn from_bytes(bytes: [u8; HEAD_BYTES]) -> Self {
        Self { bytes }
    }

    const fn new(length: u32, kind: u8) -> Self {
        let [a, b, c, d] = length.to_le_bytes();
        Self { bytes: [a, b, c, d, kind] }
    }

    pub(crate) const fn kind(self) -> u8 {
        self.bytes[4]
    }

    /// Bytes of payload, or `None` when no frame has that length.
    pub(crate) fn length(self) -> Option<u32> {
        let [a, b, c, d, _kind] = self.bytes;
        Some(u32::from_le_bytes([a, b, c, d]))
            .filter(|length| 0 < *length && *length <= PAYLOAD_BYTES_MAX)
    }

    pub(crate) fn checksum(self, offset: u64, payload: &[u8]) -> u32 {
        let place = crc32c::crc32c(&offset.to_le_bytes());
        crc32c::crc32c_append(crc32c::crc32c_append(place, &self.bytes), payload)
    }
}

/// Adds the frame of `entry`, which will stand at `offset` of the file. On an error `into` is as
/// it was.
pub(crate) fn encode(entry: &impl Framed, offset: u64, into: &mut Vec<u8>) -> Result<(), String> {
    let start = into.len();
    let encoded = append(entry, offset, into);
    if encoded.is_err() {
        into.truncate(start);
    }
    encoded
}

fn append(entry: &impl Framed, offset: u64, into: &mut Vec<u8>) -> Result<(), String> {
    let head_at = into.len();
    let payload_at = head_at + HEAD_BYTES;
    // The length is known when the payload is written; it is written where it belongs, not copied.
    into.extend_from_slice(&[0; HEAD_BYTES]);
    let (kind, written) = entry.write(into);
    written.map_err(|error| error.to_string())?;
    let bytes = into.len() - payload_at;
    let length = u32::try_from(bytes)
        .ok()
        .filter(|length| *length <= PAYLOAD_BYTES_MAX)
        .ok_or_else(|| format!("it has {bytes} bytes, and the bound is {PAYLOAD_BYTES_MAX}"))?;
    let head = Head::new(length, kind);
    into[head_at..payload_at].copy_from_slice(&head.bytes);
    let checksum = head.checksum(offset, &into[payload_at..]);
    into.extend_from_slice(&checksum.to_le_bytes());
    Ok(())
}

fn write(value: &impl Serialize, into: &mut Vec<u8>) -> postcard::Result<()> {
    postcard::serialize_with_flavor(value, Behind(into))
}

/// Writes a payload behind what is there.
struct Behind<'a>(&'a mut Vec<u8>);

impl postcard::ser_flavors::Flavor for Behind<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

impl Framed for JournalEntry {
    fn is_kind(kind: u8) -> bool {
        Kind::from_number(kind).is_some()
    }

    fn is_last(&self) -> bool {
        matches!(self, Self::RunEnded(_))
    }

    fn write(&self, into: &mut Vec<u8>) -> (u8, postcard::Result<()>) {
        let (kind, written) = match self {
            Self::Started(started) => (Kind::Started, write(started, into)),
            Self::Ended(record) => (Kind::Ended, write(record, into)),
            Self::NotSent(part) => (Kind::NotSent, write(part, into)),
            Self::RunEnded(ending) => (Kind::RunEnded, write(ending, into)),
        };
        (kind as u8, written)
    }

    fn read(kind: u8, payload: &[u8]) -> Result<Self, Damage> {
        match Kind::from_number(kind).ok_or(Damage::Kind(kind))? {
            Kind::Started => whole(payload).map(Self::Started),
            Kind::Ended => whole(payload).map(|record| Self::Ended(Box::new(record))),
            Kind::NotSent => whole(payload).map(Self::NotSent),
            Kind::RunEnded => whole(payload).map(Self::RunEnded),
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

impl Framed for TelemetryEntry {
    fn is_kind(kind: u8) -> bool {
        matches!(kind, SAMPLE..=SAMPLE_WITH_HOST_CACHE)
    }

    fn is_last(&self) -> bool {
        // Where the server has nothing to say its machine may have.
        false
    }

    fn write(&self, into: &mut Vec<u8>) -> (u8, postcard::Result<()>) {
        match self {
            Self::Sample(sample) => match sample.gauges.cpu_kv_usage {
                None => (SAMPLE, write(sample, into)),
                Some(share) => (SAMPLE_WITH_HOST_CACHE, write(&(sample, share), into)),
            },
            Self::Missed(missed) => (MISSED, write(missed, into)),
            Self::Skipped(skipped) => (SKIPPED, write(skipped, into)),
            Self::Absent(absence) => (ABSENT, write(absence, into)),
            Self::Devices(sample) => (DEVICES, write(sample, into)),
            Self::Client(sample) => (CLIENT, write(sample, into)),
            Self::DevicesAbsent(absence) => (DEVICES_ABSENT, write(absence, into)),
            Self::DevicesMissed(look) => (DEVICES_MISSED, write(look, into)),
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
            other => Err(Damage::Kind(other)),
        }
    }
}

fn whole<'a, T: Deserialize<'a>>(payload: &'a [u8]) -> Result<T, Damage> {
    match postcard::take_from_bytes(payload) {
        Ok((value, [])) => Ok(value),
        Ok(_) | Err(_) => Err(Damage::Payload),
    }
}

#[cfg(test)]
mod tests {
    use inferometer_model::record::Asked;
    use inferometer_model::{Moment, RequestId, StartedRequest};

    use super::*;

    fn started() -> JournalEntry {
        JournalEntry::Started(StartedRequest {
            id: RequestId(1),
            intended: Moment::from_nanos(2),
            admitted: Moment::from_nanos(300),
            asked: Asked { input_tokens: 5, output_tokens: 6, part: 7, turn: 8 },
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
    fn a_payload_with_bytes_left_over_is_no_entry() {
        assert!(JournalEntry::read(1, &[1, 2, 3, 4, 5, 6, 7]).is_ok());
        assert_eq!(JournalEntry::read(1, &[1, 2, 3, 4, 5, 6, 7, 8]), Err(Damage::Payload));
        assert_eq!(JournalEntry::read(1, &[1, 2, 3, 4, 5, 6]), Err(Damage::Payload));
        assert_eq!(JournalEntry::read(9, &[1, 2, 3]), Err(Damage::Kind(9)));
    }

    #[test]
    fn a_hostile_count_of_elements_allocates_little_and_fails() {
        // A record that claims 2^64 - 1 reads after its fixed fields.
        let mut payload = vec![0; 11];
        payload.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
        assert_eq!(JournalEntry::read(2, &payload), Err(Damage::Payload));
    }
}
