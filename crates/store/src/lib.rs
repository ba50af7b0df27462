//! Run directories and sets of them: append while running, seal, read back, recover, list.
//!
//! A run is a directory of a few files. `manifest.json` is written first and holds what was asked;
//! `requests.journal` grows while the run goes on, and so does `telemetry.journal` where the server
//! reports something about itself; `summary.json` is added when the caller has computed it. The layout and its version rule are in `docs/format.md`.
//!
//! This crate keeps bytes and sums. It computes no metric, prints nothing and reads no clock.

mod error;
mod files;
mod journal;
mod records;
mod run;
mod set;
mod store;

pub use crate::store::{Listing, Listings, RunStore, Stored};
pub use error::{Result, StoreError};
pub use files::{OutputFile, read_at_most, write_atomically, write_output};
pub use journal::{
    Damage, DamagedFrame, FORMAT_VERSION, Framed, Integrity, JournalReader, JournalWriter,
    PAYLOAD_BYTES_MAX, Tail,
};
pub use run::{
    LedgerError, Recovery, RunDirectory, RunState, RunWriter, StoredRun, TelemetryWriter,
    spawn_writer,
};
pub use set::{FOREIGN_BYTES_MAX, ImportDirectory, SetDirectory, SetLock};
