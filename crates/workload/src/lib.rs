//! Spec to plan: when requests leave, and what they say. Everything follows from the spec and its
//! seed, byte for byte, on every machine.

pub mod arrivals;
pub mod curve;
pub mod fingerprint;
pub mod gamma;
pub mod plan;
pub mod prompt;
pub mod stream;

pub use plan::{SyntheticPlan, make_plan, make_warm_up};
