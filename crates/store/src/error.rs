//! What can go wrong with a run on disk. Each message names the file and the remedy.

use std::io;
use std::path::{Path, PathBuf};

use crate::journal::Integrity;
use crate::run::{self, LedgerError};

/// What functions of this crate return.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot keep runs in {path}: {error}; choose another folder with --output")]
    NotWritable { path: PathBuf, error: io::Error },
    #[error("cannot read {path}: {error}")]
    Read { path: PathBuf, error: io::Error },
    #[error("{0}; restore the original file and try again")]
    ReadAgain(String),
    #[error("cannot write {path}: {error}; check the free space and the permissions there")]
    Write { path: PathBuf, error: io::Error },
    #[error(
        "cannot append to {path} after {written} bytes ({waiting} more were waiting): {error}; \
         free some space, then finish the run with: {}",
        remedy(run)
    )]
    Append { path: PathBuf, run: PathBuf, written: u64, waiting: u64, error: io::Error },
    #[error("the disk did not confirm {path}: {error}; check the disk and measure again")]
    NotDurable { path: PathBuf, error: io::Error },
    #[error("{path} takes no more entries: an earlier write failed at byte {written}")]
    Stopped { path: PathBuf, written: u64 },
    #[error("an entry for {path} does not fit a frame: {reason}")]
    Entry { path: PathBuf, reason: String },
    #[error("cannot start the thread that writes {path}: {error}; raise the limit on threads")]
    Thread { path: PathBuf, error: io::Error },
    #[error("{run} is in use by another process; wait for it to end, or stop it and try again")]
    Busy { run: PathBuf },
    #[error("cannot lock {path}: {error}; keep runs on a local disk, chosen with --output")]
    Lock { path: PathBuf, error: io::Error },
    #[error("all 65536 names for a run that starts at {stamp} are taken in {path}")]
    NamesTaken { path: PathBuf, stamp: String },
    #[error("{nanos} ns after 1970 is not a date that a run can be named after")]
    Date { nanos: u64 },
    #[error("{path} is missing, so {consequence}")]
    Missing { path: PathBuf, consequence: &'static str },
    #[error("{path} is damaged: {error}; {remedy}")]
    Damaged { path: PathBuf, error: serde_json::Error, remedy: &'static str },
    #[error("the manifest for {path} cannot be written as JSON: {error}")]
    ManifestDraft { path: PathBuf, error: serde_json::Error },
    #[error("{path} is longer than {limit} bytes, so it was not written by this tool")]
    TooLong { path: PathBuf, limit: u64 },
    #[error("{path} has format version {found}, and {known} is known; use a newer inferometer")]
    NewerFormat { path: PathBuf, found: u32, known: u32 },
    #[error("{path} does not begin as a journal (its header is wrong); restore the original file")]
    NotAJournal { path: PathBuf },
    #[error("the journal of {run} has no ending, so it cannot be sealed")]
    NotEnded { run: PathBuf },
    #[error(
        "{run} did not finish: {ended} of {started} started requests have ended; finish it with: {}",
        remedy(run)
    )]
    Unfinished { run: PathBuf, started: u64, ended: u64 },
    #[error("{run} has a summary, but its journal has no ending; restore the original journal")]
    JournalLost { run: PathBuf },
    #[error("{path} has lost entries ({error}; {integrity}); recover with: {}", remedy(run))]
    Incomplete { path: PathBuf, run: PathBuf, error: LedgerError, integrity: Box<Integrity> },
    #[error("{path} contradicts itself ({error}; {integrity}); measure again")]
    Inconsistent { path: PathBuf, error: LedgerError, integrity: Box<Integrity> },
    #[error("{run} has no journal with an entry, so nothing can be recovered; measure again")]
    NothingRecorded { run: PathBuf },
    #[error("{run} is already finished; there is nothing to recover")]
    AlreadyFinished { run: PathBuf },
    #[error("there is no run `{name}` in {path}; {known}")]
    NotFound { name: String, path: PathBuf, known: String },
    #[error("`{name}` fits several runs in {path}: {candidates}; write more of the name")]
    Ambiguous { name: String, path: PathBuf, candidates: String },
    #[error("{set} has no point {number}; it has {known}")]
    NoPoint { set: PathBuf, number: u32, known: String },
}

/// The command that finishes a run: the runs of a set are measured again.
pub(crate) fn remedy(run: &Path) -> String {
    match run::set_of_point(run) {
        Some(set) => format!("inferometer sweep --resume {}", set.display()),
        None => format!("inferometer recover {}", run.display()),
    }
}
