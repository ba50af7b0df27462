//! Plan to records: the instrument itself.
//!
//! What decides is pure and has no I/O: the [`dispatcher`], the [`limits`], the decoders of event streams ([`sse`])
//! and of [`json_lines`], the [`dialect`]s and the [`answer`] reader. What acts decides nothing:
//! [`clock`], `socket`, `connection`, `exchange` and the `driver`s around them. No metric is computed
//! here; this crate cannot even see the crate that computes them.

pub mod answer;
mod bodies;
pub mod clock;
mod conductor;
mod connection;
mod control;
pub mod cores;
mod deadline;
pub mod dialect;
pub mod dispatcher;
mod drive;
mod driver;
mod exchange;
mod feed;
pub mod fetch;
mod flight;
mod histories;
mod hopes;
pub mod json_lines;
mod landings;
pub mod limits;
mod opening;
mod pacer;
mod probe;
pub mod progress;
pub mod resolve;
pub mod resources;
mod socket;
pub mod sse;
pub mod target;
pub mod tls;
mod turns;
mod wire;

pub use clock::SystemClock;
pub use control::{Control, Stop};
pub use drive::{Drive, Drivers, LoadError, drive};
pub use fetch::HttpFetch;
pub use probe::{Probe, probe};
pub use progress::Progress;
pub use target::Target;
