//! Runs benchmarks: deploys or reaches a server, probes it, warms it up, measures it, and stores and
//! summarizes what happened.
//!
//! ```
//! use inferometer_runner::Runner;
//! use inferometer_runner::model::SpecDraft;
//! use inferometer_runner::model::spec::LoadTable;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let load = LoadTable { concurrency: Some(4), requests: Some(20), ..LoadTable::default() };
//! // Without a URL the embedded engine is measured.
//! let spec = SpecDraft { load, ..SpecDraft::default() }.resolve()?;
//! let folder = std::env::temp_dir().join("inferometer-example");
//! let run = Runner::new(spec)?.store_in(folder).run(|event| eprintln!("{event}"))?;
//! println!("mean TTFT: {:?} ms", run.summary.vllm.ttft_ms.mean);
//! # assert_eq!(run.summary.attempted, 20);
//! # Ok(())
//! # }
//! ```
//!
//! Nothing here prints. What happens is reported as [`Event`]s; [`Event`]'s `Display` is a line for
//! people. Errors are [`Failure`]s with a message, a hint and an exit code. Other modules do parts of
//! a benchmark, or something beside one: [`simulation`] plays it in virtual time, [`calibration`]
//! measures the client itself, [`check`] examines an endpoint, [`fit`] fits an engine's profile, [`learn`]
//! learns its step times from reconstructed steps.

#![warn(missing_docs)]

mod answers;
pub mod calibration;
pub mod check;
pub mod deployed;
pub mod embedded;
pub mod environment;
pub mod failure;
pub mod fit;
pub mod hooks;
pub mod interruption;
pub mod learn;
mod live;
pub mod measurement;
pub mod merge;
pub mod preflight;
pub mod secrets;
mod session;
pub mod simulation;
mod worker;

pub use inferometer_model as model;

pub use failure::{Exit, Failure};
pub use live::{LiveFigures, RECENT, RunFollower, Spread};
pub use measurement::{Connected, Run, Runner};
pub use session::{Event, Observer, ProgressTick, Session};
pub use worker::Worker;
