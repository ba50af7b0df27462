//! The measurements of a calibration: drives without a store, against engines of our own.

pub(crate) mod cache;
mod drive;
pub(crate) mod fidelity;
pub(crate) mod ladder;
pub(crate) mod machine;
pub(crate) mod memory;
pub(crate) mod pacing;
pub(crate) mod scope;
mod server;
mod truth;

pub(crate) use drive::{Client, DriveOptions};

use inferometer_model::calibration::CalibrationFacts;
use inferometer_report::escape;

use crate::output;

/// What is known of this client on this machine, in this version.
pub(crate) fn known(quiet: bool) -> Option<CalibrationFacts> {
    let key = machine::key(&machine::this(), env!("CARGO_PKG_VERSION"));
    let warn = |why: String| {
        if !quiet {
            output::talk(&format!("warning: {}", escape::terminal(&why)));
        }
    };
    cache::CalibrationFolder::of(&key)?.read(warn).map(|calibration| calibration.facts())
}
