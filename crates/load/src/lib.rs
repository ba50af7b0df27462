//! Plan to records: the instrument itself.
//!
//! What decides is pure and has no I/O: the [`dispatcher`], the event-stream decoder ([`sse`]), the
//! [`dialect`]s and the [`answer`] reader. What acts decides nothing: [`clock`], `socket`,
//! `connection`, `exchange` and the [`driver`] around them. No metric is computed here; this crate
//! cannot even see the crate that computes them.

pub mod answer;
mod bodies;
pub mod clock;
mod connection;
mod control;
mod deadline;
pub mod dialect;
pub mod dispatcher;
pub mod driver;
mod exchange;
pub mod fetch;
mod pacer;
mod probe;
pub mod progress;
pub mod resolve;
pub mod resources;
mod socket;
pub mod sse;
pub mod target;
mod wire;

pub use clock::SystemClock;
pub use control::{Control, Stop};
pub use driver::{Drive, LoadError, drive};
pub use fetch::HttpFetch;
pub use probe::{Probe, probe};
pub use progress::Progress;
pub use target::Target;
