//! Runs on disk, through the crate's public door.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod damage;
mod format;
mod imports;
mod journal;
mod recovery;
mod runs;
mod samples;
mod sets;
mod strategies;
mod telemetry;
