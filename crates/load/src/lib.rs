//! Plan to records: the instrument itself.
//!
//! What decides is pure and has no I/O: the [`dispatcher`], the [`limits`], the decoders of event streams ([`sse`])
//! and of `json_lines`, the [`dialect`]s and the [`answer`] reader. What acts decides nothing:
//! [`clock`], `socket`, `connection`, `exchange` and the `driver`s around them. No metric is computed
//! here; this crate cannot even see the crate that computes them.

pub mod answer;
mod bodies;
pub mod clock;
mod connection;
pub mod contexts;
mod control;
mod dial_ahead;
pub mod dialect;
pub mod dispatcher;
mod drive;
mod exchange;
pub mod fetch;
pub mod http1;
mod http2;
pub mod limits;
mod platform;
pub mod resources;
mod socket;
pub mod sse;
pub mod target;

pub use clock::SystemClock;
pub use control::{Control, Progress, ProgressView, Stop};
pub use dial_ahead::connections_needed;
pub use drive::{Drive, Drivers, LoadError, drive};
pub use fetch::{HttpFetch, Probe, probe};
pub use target::Target;
