//! The measurements of a calibration: drives without a store, against engines of our own.

pub mod cache;
mod drive;
pub mod fidelity;
pub mod ladder;
pub mod machine;
pub mod memory;
pub mod pacing;
pub mod scope;
mod server;
mod truth;

pub use drive::{Client, DriveOptions};

use inferometer_model::calibration::CalibrationFacts;

use crate::session::Session;

/// What is known of this client on this machine, in this version.
pub fn known(session: &Session) -> Option<CalibrationFacts> {
    let key = machine::key(&machine::this(), env!("CARGO_PKG_VERSION"));
    // What cannot be read is as if it were not there.
    let ignored = |why: String| session.talk(&format!("warning: {why}"));
    cache::CalibrationFolder::of(&key)?.read(ignored).map(|calibration| calibration.facts())
}
