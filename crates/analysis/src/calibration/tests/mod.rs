//! Tests of `calibration`.

mod document;
mod fidelity;
mod level;
mod lookup;
mod memory;
mod pacing;
