//! Tests of `document`.

use crate::calibration::*;

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
    assert!(said(b"{").contains("is not the expected JSON"));
    assert!(said(b"{\"schema\": \"inferometer.calibration/9\"}").contains("calibration/9"));
    let mut boasting = bare();
    boasting.capacity.requests_per_s = 0.0;
    assert!(said(&boasting.to_json_bytes()).contains("capacity"));
}
