//! Run directories and sets of them: append while running, seal, read back, recover, list.
//!
//! A run is a directory of a few files. `manifest.json` is written first and holds what was asked;
//! `requests.journal` grows while the run goes on, and so does `telemetry.journal` where the server
//! reports something about itself; `summary.json` is added when the caller has computed it. The layout and its version rule are in `docs/format.md`.
//!
//! This crate keeps bytes and sums. It computes no metric, prints nothing and reads no clock.

mod directory;
mod error;
mod files;
mod frame;
mod import;
mod journal;
mod ledger;
mod manifest;
mod recovery;
mod set;
mod store;
mod telemetry;
mod writer;

pub use crate::store::Stored;
pub use crate::writer::spawn_writer;
pub use directory::{RunDirectory, RunState, StoredRun};
pub use error::StoreError;
pub use files::{read_at_most, write_atomically};
pub use frame::{Damage, Framed, PAYLOAD_BYTES_MAX};
pub use import::{FOREIGN_BYTES_MAX, ImportDirectory, NewImport};
pub use journal::{DamagedFrame, FORMAT_VERSION, Integrity, JournalReader, Tail};
pub use ledger::LedgerError;
pub use recovery::Recovery;
pub use set::{NewSet, SetDirectory, SetLock, SetState};
pub use store::{ImportListing, RunListing, RunStore, SetListing};
pub use telemetry::TelemetryWriter;
pub use writer::{JournalWriter, RunWriter};
