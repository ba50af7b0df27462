//! Spec to plan: when requests leave, and what they say. Everything follows from the spec, the
//! files that it names, and its seed, byte for byte, on every machine.

pub mod arrivals;
pub mod curve;
pub mod error;
pub mod fingerprint;
pub mod gamma;
pub mod ingredients;
mod lengths;
pub mod plan;
mod prompts;
pub mod stream;
pub mod text;
pub mod tokenizer;
mod turns;

pub use error::WorkloadError;
pub use ingredients::Ingredients;
pub use plan::{WorkloadPlan, make_plan, make_warm_up};
