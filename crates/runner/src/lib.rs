//! Runs benchmarks: deploys or reaches a server, probes it, warms it up, measures it and stores
//! what happened; the same in virtual time; and calibrates the client itself.
//!
//! Nothing here prints. What happens is reported as [`Event`]s to an [`Observer`].

pub mod calibration;
pub mod check;
pub mod deployed;
pub mod embedded;
pub mod environment;
pub mod event;
pub mod failure;
pub mod fit;
pub mod interruption;
pub mod live;
pub mod log_tail;
pub mod measurement;
pub mod place;
pub mod preflight;
pub mod secrets;
pub mod server_facts;
pub mod session;
pub mod simulation;
pub mod simulator;
mod telemetry;
mod ticker;
mod warm_up;

pub use event::{Event, Observer, ProgressTick};
pub use failure::{Exit, Failure};
pub use session::Session;
