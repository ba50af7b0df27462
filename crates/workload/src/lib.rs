//! Spec to plan: when requests leave, and what they say. Everything follows from the spec, the
//! files that it names, and its seed, byte for byte, on every machine.

pub mod arrivals;
pub mod curve;
mod data_file;
#[cfg_attr(not(test), expect(dead_code, reason = "no ingredient is read from a file yet"))]
mod dataset;
pub mod error;
pub mod fingerprint;
pub mod gamma;
pub mod ingredients;
mod lengths;
pub mod plan;
#[cfg_attr(not(test), expect(dead_code, reason = "no ingredient is read from a file yet"))]
mod prompts;
pub mod stream;
pub mod text;
#[cfg_attr(not(test), expect(dead_code, reason = "no ingredient is read from a file yet"))]
mod trace;
mod turns;

pub use data_file::DataFileError;
pub use dataset::DatasetError;
pub use error::WorkloadError;
pub use ingredients::Ingredients;
pub use plan::{WorkloadPlan, make_plan, make_warm_up};
pub use trace::TraceError;
