//! The other side: put servers up, find out what they serve, hear what they say of themselves, stop
//! them.

pub mod deploy;
pub mod discovery;
mod grid;
pub mod machines;
pub mod metrics;
pub mod process;
pub mod system;

pub use discovery::{DiscoveryError, ListedModel, discover_models, list_models};
pub use metrics::{Poller, PollerError, Polling};
pub use process::{EngineProcess, StartError};
