//! How fast and how exact this client is on this machine, from records of drives against an engine
//! whose truth is known.
//!
//! [`Level`] is one rung of the ladder: how much the client can take. [`FidelityRow`] compares what
//! it reports with what the engine did. [`PacingRow`] compares when requests left with when they
//! should have. [`StreamMemory`] is what a stream costs. A [`Calibration`] holds them all, and
//! answers whether a load was within what was measured.

mod document;
mod fidelity;
mod level;
mod lookup;
mod memory;
mod pacing;

pub use document::{Calibration, CalibrationError, Machine, Method, SCHEMA};
pub use fidelity::{
    AbsoluteError, EngineTruth, FidelityAsk, FidelityError, FidelityRow, TrueAnswer,
};
pub use level::{Capacity, Ladder, Level, LevelLatency};
pub use memory::{MemorySample, StreamMemory};
pub use pacing::{PacingRow, SendDelay};
