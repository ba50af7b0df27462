//! The other side: start servers, find out what they serve, stop them.

pub mod discovery;
pub mod process;

pub use discovery::{DiscoveryError, discover_models};
pub use process::{EngineProcess, StartError};
