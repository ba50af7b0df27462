//! What can go wrong with a run on disk. Each message names the file and the remedy.

use std::io;
use std::path::{Path, PathBuf};

use crate::directory;
use crate::journal::Integrity;
use crate::ledger::LedgerError;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot keep runs in {path}: {error}; choose another place with --output")]
    NotWritable { path: PathBuf, error: io::Error },
    #[error("cannot read {path}: {error}")]
    Read { path: PathBuf, error: io::Error },
    #[error("cannot write {path}: {error}; check the space and the permissions there")]
    Write { path: PathBuf, error: io::Error },
    #[error(
        "cannot append to {path} after {written} bytes ({waiting} more were waiting): {error}; \
         free some space, then finish the run with: {}",
        remedy(run)
    )]
    Append { path: PathBuf, run: PathBuf, written: u64, waiting: u64, error: io::Error },
    #[error(
        "the disk did not confirm {path}: {error}; what it holds may not survive a power cut, \
         so check the disk and measure again"
    )]
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

    #[error("{path} is missing, so {run} is not a run; name a directory that holds one")]
    NoManifest { path: PathBuf, run: PathBuf },
    #[error(
        "{path} is damaged: {error}; put the original back, because the journal cannot be read \
         without it"
    )]
    Manifest { path: PathBuf, error: serde_json::Error },
    #[error("{path} is missing, so there is no set here; name a directory that holds one")]
    NoSet { path: PathBuf },
    #[error("{path} is damaged: {error}; put the original back, or measure again")]
    Set { path: PathBuf, error: serde_json::Error },
    #[error("{path} is missing, so nothing was imported here; import the file again")]
    NoImport { path: PathBuf },
    #[error("{path} is damaged: {error}; import the file again")]
    Import { path: PathBuf, error: serde_json::Error },
    #[error("the manifest for {path} cannot be written as JSON: {error}")]
    ManifestDraft { path: PathBuf, error: serde_json::Error },
    #[error("{path} is longer than {limit} bytes, so it was not written by this tool")]
    TooLong { path: PathBuf, limit: u64 },
    #[error(
        "{path} has the format version {found}, and this program knows versions up to {known}; \
         use a newer inferometer"
    )]
    NewerFormat { path: PathBuf, found: u32, known: u32 },
    #[error(
        "{path} does not begin as a journal (its first {header} bytes are wrong); put the \
         original back"
    )]
    NotAJournal { path: PathBuf, header: usize },

    #[error("the journal of {run} has no ending, so it cannot be sealed")]
    NotEnded { run: PathBuf },
    #[error(
        "{run} did not finish: {ended} of {started} started requests have ended; finish it with: \
         {}",
        remedy(run)
    )]
    Unfinished { run: PathBuf, started: u64, ended: u64 },
    #[error(
        "{run} has a summary, but its journal holds no ending: the journal was cut or removed after \
         the run; put the original back, the summary is left as it is"
    )]
    JournalLost { run: PathBuf },
    #[error(
        "{path} has lost entries ({error}; {integrity}); account for them with: \
         {}",
        remedy(run)
    )]
    Incomplete { path: PathBuf, run: PathBuf, error: LedgerError, integrity: Box<Integrity> },
    #[error(
        "{path} contradicts itself ({error}; {integrity}), so no figure of this run can be \
         trusted; measure again"
    )]
    Inconsistent { path: PathBuf, error: LedgerError, integrity: Box<Integrity> },
    #[error("{run} is already finished; there is nothing to recover")]
    AlreadyFinished { run: PathBuf },

    #[error("there is no run `{name}` in {path}; {known}")]
    NotFound { name: String, path: PathBuf, known: String },
    #[error("`{name}` fits several runs in {path}: {candidates}; write more of the name")]
    Ambiguous { name: String, path: PathBuf, candidates: String },
    #[error("`{name}` is a set of runs, and one run is wanted; name one of them, such as {set}/0")]
    IsSet { name: String, set: String },
    #[error("`{name}` was imported ({import}), and a run that was measured here is wanted")]
    IsImport { name: String, import: String },
    #[error("{set} has no point {number}; it has {known}")]
    NoPoint { set: PathBuf, number: u32, known: String },
}

/// The command that finishes a run: runs of sets are measured again.
pub(crate) fn remedy(run: &Path) -> String {
    match directory::set_of_point(run) {
        Some(set) => format!("inferometer sweep --resume {}", set.display()),
        None => format!("inferometer recover {}", run.display()),
    }
}
