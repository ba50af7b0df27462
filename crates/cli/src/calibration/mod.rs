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
