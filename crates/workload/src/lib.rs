//! Spec to plan: when requests leave, and what they say. Everything follows from the spec, the
//! files that it names, and its seed, byte for byte, on every machine.

pub mod arrivals;
mod counter;
mod data_file;
mod dataset;
mod error;
pub mod fingerprint;
pub mod gamma;
pub mod inputs;
mod lengths;
pub mod plan;
mod prompts;
pub mod saved;
pub mod text;
pub mod tokenizer;
mod trace;

pub use data_file::DataFileError;
pub use dataset::DatasetError;
pub use error::WorkloadError;
pub use inputs::Inputs;
pub use plan::{make_plan, make_warm_up};
pub use trace::TraceError;
