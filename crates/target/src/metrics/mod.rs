//! What a server reports about itself at `/metrics`, in the one vocabulary of the model.
//!
//! `text` takes Prometheus text apart, `reading` has the table of what each server calls things and
//! adds up, and `poller` asks again and again while a run goes on.
//!
//! To add a server: its [`Dialect`](inferometer_model::telemetry::Dialect), a row in
//! `reading::DIALECTS` with its rules, and an excerpt of its metrics in the tests of `reading`.

mod poller;
mod reading;
pub(crate) mod text;

pub use poller::{BODY_BYTES_MAX, Poller, PollerError, Polling, other_path, read_reply};
