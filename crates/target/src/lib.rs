//! The system under test: deploy and stop servers, find out what they serve, and read what they and
//! their machines report.

pub mod deploy;
pub mod discovery;
pub mod gpu;
pub mod machines;
pub mod metrics;
pub mod process;
pub mod system;

pub use discovery::{DiscoveryError, ListedModel, list_models};
pub use metrics::{Poller, PollerError, Polling};
pub use process::{EngineProcess, StartError};
