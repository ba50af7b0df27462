//! What a server reports about itself at `/metrics`, in the one vocabulary of the model.
//!
//! `reading` takes Prometheus text apart, and has the table of what each server calls things and
//! adds up; `poller` asks periodically while a run goes on.
//!
//! To add a server: its [`Dialect`](inferometer_model::telemetry::Dialect), a row in
//! `names.toml` with its rules, and an excerpt of its metrics in the tests of `reading`.

mod poller;
pub(crate) mod reading;

pub use poller::{BODY_BYTES_MAX, Poller, PollerError, Polling, other_path, read_reply};
