//! The manifest of a run: made once, before a request leaves, and named after its first second.

use std::path::Path;

use inferometer_model::observations::{
    CalibrationFacts, ClockAnchor, Endpoint, Materials, Simulated, WarmUpFacts,
};
use inferometer_model::plan::{Bounds, Fingerprints};
use inferometer_model::system::ServerFacts;
use inferometer_model::{Environment, Manifest, Spec};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::files;
use crate::journal::FORMAT_VERSION;

pub(crate) const MANIFEST_FILE: &str = "manifest.json";
/// Manifests have a few kilobytes; a longer file is not one.
const MANIFEST_BYTES_MAX: u64 = 16 << 20;

/// All that is known of a run before it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRun {
    pub spec: Spec,
    pub bounds: Bounds,
    pub fingerprints: Fingerprints,
    pub materials: Materials,
    pub endpoint: Endpoint,
    /// What was sent before the run; `None` when nothing was.
    pub warm_up: Option<WarmUpFacts>,
    pub seen_before: Option<String>,
    pub calibration: Option<CalibrationFacts>,
    pub environment: Environment,
    pub server: Option<ServerFacts>,
    /// What answered, where no server did.
    pub simulated: Option<Simulated>,
    /// Its wall time names the run.
    pub clock: ClockAnchor,
}

impl NewRun {
    pub(crate) fn started(&self) -> Result<Timestamp, StoreError> {
        timestamp(self.clock.realtime_ns)
    }

    /// Four hexadecimal digits that tell apart runs of the same second.
    pub(crate) fn distinction(&self, process: u32) -> u16 {
        distinction(self.fingerprints.plan.as_bytes(), process, self.clock.realtime_ns)
    }

    pub(crate) fn into_manifest(self, run: String, started: Timestamp) -> Manifest {
        Manifest {
            format: FORMAT_VERSION.into(),
            run,
            started: started.to_string(),
            clock: self.clock,
            spec: self.spec,
            bounds: self.bounds,
            fingerprints: self.fingerprints,
            materials: self.materials,
            endpoint: self.endpoint,
            warm_up: self.warm_up,
            seen_before: self.seen_before,
            calibration: self.calibration,
            environment: self.environment,
            server: self.server,
            simulated: self.simulated,
        }
    }
}

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

/// `YYYYMMDD-HHMMSS-xxxx`, in UTC: ids sort by time, and say it.
pub(crate) fn run_id(stamp: &str, distinction: u16) -> String {
    format!("{stamp}-{distinction:04x}")
}

pub(crate) fn stamp(started: Timestamp) -> String {
    started.strftime("%Y%m%d-%H%M%S").to_string()
}

pub(crate) fn write_manifest(run: &Path, manifest: &Manifest) -> Result<(), StoreError> {
    write_json(&run.join(MANIFEST_FILE), manifest)
}

pub(crate) fn write_json(path: &Path, manifest: &impl Serialize) -> Result<(), StoreError> {
    let mut json = match serde_json::to_vec_pretty(manifest) {
        Ok(json) => json,
        Err(error) => return Err(StoreError::ManifestDraft { path: path.to_owned(), error }),
    };
    json.push(b'\n');
    files::write_atomically(path, &json)
}

pub(crate) fn read_manifest(run: &Path) -> Result<Manifest, StoreError> {
    let path = run.join(MANIFEST_FILE);
    let Some(json) = files::read_at_most(&path, MANIFEST_BYTES_MAX)? else {
        return Err(StoreError::NoManifest { path, run: run.to_owned() });
    };
    let known = u32::from(FORMAT_VERSION);
    match read_versioned(&json, known) {
        Ok(Ok(manifest)) => Ok(manifest),
        Ok(Err(found)) => Err(StoreError::NewerFormat { path, found, known }),
        Err(error) => Err(StoreError::Manifest { path, error }),
    }
}

/// The content of a file, or the version that it has when that is newer than `known`. The version
/// comes first: a newer file may lack what this program looks for.
pub(crate) fn read_versioned<T: DeserializeOwned>(
    json: &[u8],
    known: u32,
) -> Result<Result<T, u32>, serde_json::Error> {
    let Versioned { format } = serde_json::from_slice(json)?;
    if known < format { Ok(Err(format)) } else { serde_json::from_slice(json).map(Ok) }
}

#[derive(Deserialize)]
struct Versioned {
    format: u32,
}
