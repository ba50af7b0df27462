//! What statistics needs and nothing of servers: intervals that hold when neighbours in time
//! resemble each other, tests with few runs, and where a series settles.
//!
//! Everything is a pure function. Where chance is used its seed is a constant, so a summary that is
//! made again has the same bytes.

mod autoregression;
mod blocks;
pub mod draws;
mod incomplete_beta;
pub(crate) mod incomplete_gamma;
pub mod multiplicity;
pub mod normal;
pub mod permutation;
pub mod proportion;
pub mod ratio;
pub mod runs;
mod sample;
pub mod series;
pub mod steady;
pub mod student;
pub mod trend;
pub(crate) mod welch;

pub use self::sample::*;

/// The upper end of a central interval that covers 95 %.
pub const UPPER: f64 = 0.975;

#[cfg(test)]
mod tests;
