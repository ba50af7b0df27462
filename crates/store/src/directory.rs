//! One run's directory: reading it back, and the summary beside its journal.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use inferometer_model::{Manifest, Observations};

use crate::error::{self, StoreError};
use crate::journal::{FORMAT_VERSION, Integrity, JournalReader};
use crate::ledger::Ledger;
use crate::manifest::{self, MANIFEST_FILE};
use crate::{files, set};

pub(crate) const JOURNAL_FILE: &str = "requests.journal";
pub(crate) const SUMMARY_FILE: &str = "summary.json";
/// Summaries hold bounded figures; a longer file is not one.
const SUMMARY_BYTES_MAX: u64 = 256 << 20;

/// What directories of all kinds have: an id, which is the name of a directory (of a point, its set
/// and its number), and a summary.
macro_rules! stored_directory {
    ($kind:ident, $summary_bytes_max:expr) => {
        impl $kind {
            pub fn id(&self) -> &str {
                &self.id
            }

            pub fn path(&self) -> &Path {
                &self.path
            }

            /// Stores the summary, whole or not at all.
            pub fn write_summary(&self, json: &[u8]) -> Result<(), StoreError> {
                let path = self.path.join($crate::directory::SUMMARY_FILE);
                $crate::files::write_atomically(&path, json)
            }

            pub fn read_summary(&self) -> Result<Option<Vec<u8>>, StoreError> {
                let path = self.path.join($crate::directory::SUMMARY_FILE);
                $crate::files::read_at_most(&path, $summary_bytes_max)
            }
        }
    };
}
pub(crate) use stored_directory;

/// A directory that holds a run, finished or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDirectory {
    pub(crate) id: String,
    pub(crate) path: PathBuf,
}

stored_directory!(RunDirectory, SUMMARY_BYTES_MAX);

/// A finished run, read back. Its sums hold.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRun {
    pub observations: Observations,
    /// What of the journal could not be read; a run with damage can still be whole.
    pub integrity: Integrity,
    /// Whether there is a summary.
    pub sealed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    /// Finished, with a summary.
    Sealed,
    /// Finished; the summary is still to be computed.
    Finished,
    /// It died before its end; `recover` finishes it.
    Unfinished,
    /// A live process is writing it.
    Running,
    Unreadable(String),
}

impl RunDirectory {
    /// The run at `path`, inside a store or elsewhere. Nothing is read yet.
    pub fn at(path: PathBuf) -> Self {
        let id = point_id(&path).unwrap_or_else(|| name(&path));
        Self { id, path }
    }

    /// The command that finishes the run, by itself or with its set.
    pub fn remedy(&self) -> String {
        error::remedy(&self.path)
    }

    pub fn manifest(&self) -> Result<Manifest, StoreError> {
        let path = self.path.join(MANIFEST_FILE);
        let damaged = |path, error| StoreError::Manifest { path, error };
        manifest::read_versioned(&path, FORMAT_VERSION.into(), damaged)?
            .ok_or_else(|| StoreError::NoManifest { path, run: self.path.clone() })
    }

    /// Reads a finished run and checks its sums.
    pub fn read(&self) -> Result<StoredRun, StoreError> {
        let manifest = self.manifest()?;
        let (ledger, integrity) = self.read_journal()?;
        let Some(ending) = ledger.ending().cloned() else {
            return Err(self.unfinished(&ledger));
        };
        match ledger.close(manifest, ending) {
            Ok(observations) => {
                let observations = self.with_telemetry(observations);
                Ok(StoredRun { observations, integrity, sealed: self.has_summary() })
            }
            Err(error) => Err(StoreError::Incomplete {
                path: self.journal_path(),
                run: self.path.clone(),
                error,
                integrity: Box::new(integrity),
            }),
        }
    }

    /// The state of the run. A sealed run's journal is not read for this.
    pub fn state(&self) -> RunState {
        let find = || -> Result<RunState, StoreError> {
            self.manifest()?;
            if self.has_summary() {
                return Ok(RunState::Sealed);
            }
            if files::is_locked(self.journal_path())? {
                return Ok(RunState::Running);
            }
            let finished = self.journal_path().exists() && self.open_journal()?.holds_ending()?;
            Ok(if finished { RunState::Finished } else { RunState::Unfinished })
        };
        find().unwrap_or_else(|error| RunState::Unreadable(error.to_string()))
    }

    pub(crate) fn holds_run(path: &Path) -> bool {
        path.join(MANIFEST_FILE).is_file() || path.join(JOURNAL_FILE).is_file()
    }

    pub(crate) fn journal_path(&self) -> PathBuf {
        self.path.join(JOURNAL_FILE)
    }

    /// A run that died before its journal was made has none; that is an empty one.
    pub(crate) fn read_journal(&self) -> Result<(Ledger, Integrity), StoreError> {
        if !self.journal_path().exists() {
            return Ok((Ledger::default(), Integrity::default()));
        }
        let mut reader = self.open_journal()?;
        let ledger = Ledger::read(&mut reader)?;
        Ok((ledger, reader.into_integrity()))
    }

    /// The summary no longer follows from the journal.
    pub(crate) fn remove_summary(&self) -> Result<(), StoreError> {
        files::remove(self.path.join(SUMMARY_FILE))
    }

    fn open_journal(&self) -> Result<JournalReader<File>, StoreError> {
        JournalReader::open(&self.journal_path())
    }

    pub(crate) fn has_summary(&self) -> bool {
        self.path.join(SUMMARY_FILE).is_file()
    }

    fn unfinished(&self, ledger: &Ledger) -> StoreError {
        let run = self.path.clone();
        match files::is_locked(self.journal_path()) {
            Ok(true) => StoreError::Busy { run },
            // A summary is written last: a run that has one did finish.
            Ok(false) if self.has_summary() => StoreError::JournalLost { run },
            Ok(false) => {
                let (started, ended) = ledger.counts();
                StoreError::Unfinished { run, started, ended }
            }
            Err(error) => error,
        }
    }
}

/// The name of a directory.
pub(crate) fn name(path: &Path) -> String {
    // `.` and `runs/x/..` have no name of their own; the real path has.
    let real = || fs::canonicalize(path).ok()?.file_name().map(OsStr::to_owned);
    let name = path.file_name().map(OsStr::to_owned).or_else(real).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The id of a point, where the path is one.
fn point_id(path: &Path) -> Option<String> {
    let number = set::number_of(path.file_name()?.to_str()?)?;
    set_of_point(path).map(|set| format!("{}/{number}", name(set)))
}

/// The folder of the set that a path is a point of.
pub(crate) fn set_of_point(path: &Path) -> Option<&Path> {
    set::number_of(path.file_name()?.to_str()?)?;
    let folder = path.parent().filter(|parent| parent.ends_with(set::POINTS))?.parent()?;
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    folder.join(set::SET_FILE).is_file().then_some(folder)
}
