//! The document of a calibration. Its field names are its JSON keys, in this order.

use serde::{Deserialize, Serialize};

use super::{Capacity, FidelityRow, Ladder, PacingRow, StreamMemory};

/// The form of the document. Adding keys leaves it; changing what a key means raises it.
pub const SCHEMA: &str = "inferometer.calibration/1";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    pub schema: String,
    /// RFC 3339, UTC.
    pub when: String,
    pub tool_version: String,
    pub machine: Machine,
    pub method: Method,
    pub capacity: Capacity,
    pub ladder: Ladder,
    pub fidelity: Vec<FidelityRow>,
    pub pacing: Vec<PacingRow>,
    pub memory: StreamMemory,
    /// What was left out or made smaller, and why.
    pub notes: Vec<String>,
}

/// What the numbers hold for: another machine or kernel has others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    pub cpu_model: Option<String>,
    pub cpus: Option<u32>,
    pub memory_bytes: Option<u64>,
    pub os: String,
    pub architecture: String,
    pub kernel: Option<String>,
}

/// How it was measured, as far as it is not in the rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// The short version: fewer levels, less time.
    pub quick: bool,
    /// Threads that drove the load.
    pub drivers: u32,
    /// About how long every prompt was.
    pub input_tokens: u32,
    /// Tokens of every answer on the ladder, one-shot or streamed.
    pub ladder_tokens: u32,
    /// The TTFT of the engine that fidelity is measured against.
    pub ttft_ms: f64,
}

#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    #[error("it is not the JSON that was expected: {0}")]
    Json(#[from] serde_json::Error),
    #[error("it has the schema `{0}`, and this version reads `{SCHEMA}`")]
    Schema(String),
    #[error("it claims a capacity that no client has")]
    Capacity,
}

impl Calibration {
    /// The document as it is stored: indented, with a line feed at its end.
    ///
    /// # Panics
    ///
    /// Never: a calibration holds no map, and nothing else can fail.
    pub fn to_json_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).expect("a calibration has a JSON form");
        bytes.push(b'\n');
        bytes
    }

    /// Reads a stored document. Keys that this version does not know are passed over.
    pub fn from_json_bytes(bytes: &[u8]) -> Result<Self, CalibrationError> {
        let named: Named = serde_json::from_slice(bytes)?;
        if named.schema != SCHEMA {
            return Err(CalibrationError::Schema(named.schema));
        }
        let calibration: Self = serde_json::from_slice(bytes)?;
        let Capacity { requests_per_s, events_per_s } = calibration.capacity;
        // Loads are divided by these.
        if [requests_per_s, events_per_s].iter().all(|rate| rate.is_finite() && 0.0 < *rate) {
            Ok(calibration)
        } else {
            Err(CalibrationError::Capacity)
        }
    }
}

/// The schema is read first: a document of another form should say so, not complain of a field.
#[derive(Deserialize)]
struct Named {
    schema: String,
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A calibration with nothing measured but its capacity.
    pub(in crate::calibration) fn bare() -> Calibration {
        Calibration {
            schema: SCHEMA.to_owned(),
            when: "2026-01-02T03:04:05Z".to_owned(),
            tool_version: "0.1.0".to_owned(),
            machine: Machine::default(),
            method: Method {
                quick: false,
                drivers: 1,
                input_tokens: 128,
                ladder_tokens: 64,
                ttft_ms: 100.0,
            },
            capacity: Capacity { requests_per_s: 20_000.0, events_per_s: 400_000.0 },
            ladder: Ladder::default(),
            fidelity: Vec::new(),
            pacing: Vec::new(),
            memory: StreamMemory::default(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_document_is_read_back_as_it_was_written() {
        let written = bare().to_json_bytes();
        let read = Calibration::from_json_bytes(&written).unwrap();
        assert_eq!(read, bare());
        assert_eq!(read.to_json_bytes(), written);
    }

    #[test]
    fn what_is_no_calibration_of_this_version_says_why() {
        let said = |bytes: &[u8]| Calibration::from_json_bytes(bytes).unwrap_err().to_string();
        assert!(said(b"{").starts_with("it is not the JSON"));
        assert!(said(b"{\"schema\": \"inferometer.calibration/9\"}").contains("calibration/9"));
        let mut boasting = bare();
        boasting.capacity.requests_per_s = 0.0;
        assert!(said(&boasting.to_json_bytes()).contains("capacity"));
    }
}
