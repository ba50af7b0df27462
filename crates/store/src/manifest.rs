//! The manifest of a run: made once, before a request leaves, and named after its first second.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::files;

pub(crate) const MANIFEST_FILE: &str = "manifest.json";
/// Manifests have a few kilobytes, and those of sets of many servers some hundred; a longer file is
/// not one.
const BYTES_MAX: u64 = 16 << 20;

pub(crate) fn timestamp(nanos: u64) -> Result<Timestamp, StoreError> {
    Timestamp::from_nanosecond(nanos.into()).map_err(|_error| StoreError::Date { nanos })
}

pub(crate) fn distinction(asked: &[u8], process: u32, realtime_ns: u64) -> u16 {
    let and_process = crc32c::crc32c_append(crc32c::crc32c(asked), &process.to_le_bytes());
    let hash = crc32c::crc32c_append(and_process, &realtime_ns.to_le_bytes());
    let [a, b, c, d] = hash.to_le_bytes();
    u16::from_le_bytes([a ^ c, b ^ d])
}

/// Whether a name has the form of a run's id.
pub(crate) fn is_run_id(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let [date, time, distinction] = parts.as_slice() else { return false };
    let is_number = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    is_number(date, 8)
        && is_number(time, 6)
        && distinction.len() == 4
        && distinction.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The second that a run's id names; `None` of any other name.
pub(crate) fn stamped_ns(id: &str) -> Option<u64> {
    let (stamp, _) = is_run_id(id).then(|| id.rsplit_once('-'))??;
    let moment = DateTime::strptime("%Y%m%d-%H%M%S", stamp).ok()?.to_zoned(TimeZone::UTC).ok()?;
    u64::try_from(moment.timestamp().as_nanosecond()).ok()
}

pub(crate) fn stamp(started: Timestamp) -> String {
    started.strftime("%Y%m%d-%H%M%S").to_string()
}

pub(crate) fn write_json(path: &Path, manifest: &impl Serialize) -> Result<(), StoreError> {
    let mut json = match serde_json::to_vec_pretty(manifest) {
        Ok(json) => json,
        Err(error) => return Err(StoreError::ManifestDraft { path: path.to_owned(), error }),
    };
    json.push(b'\n');
    files::write_atomically(path, &json)
}

/// A file's content, where there is such a file. The version comes first: a newer file may lack what
/// this program looks for.
pub(crate) fn read_versioned<T: DeserializeOwned>(
    path: &Path,
    known: u32,
    damaged: fn(PathBuf, serde_json::Error) -> StoreError,
) -> Result<Option<T>, StoreError> {
    let Some(json) = files::read_at_most(path, BYTES_MAX)? else { return Ok(None) };
    let read = || {
        let Versioned { format } = serde_json::from_slice(&json)?;
        if known < format { Ok(Err(format)) } else { serde_json::from_slice(&json).map(Ok) }
    };
    match read() {
        Ok(Ok(content)) => Ok(Some(content)),
        Ok(Err(found)) => Err(StoreError::NewerFormat { path: path.to_owned(), found, known }),
        Err(error) => Err(damaged(path.to_owned(), error)),
    }
}

#[derive(Deserialize)]
struct Versioned {
    format: u32,
}
