//! A set of runs on disk: what it asks, its points, and their results; and another tool's file, kept
//! as it is with what was read from it.
//!
//! `set.json` is written first, so that a set which died can be resumed; every point is an
//! ordinary run below `points/`. Nothing that was measured is ever removed: a point that must be
//! measured again is moved to `abandoned/`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use inferometer_model::Manifest;
use inferometer_model::import::ImportManifest;
use inferometer_model::study::{DeploymentRecord, PointFailure, SetManifest};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Result, StoreError};
use crate::files::{self, ManifestFile, SUMMARY_FILE, stored_directory};
use crate::run::{RunDirectory, RunState, RunWriter};

/// Its version is that of `set.json` alone: points have the version of runs.
pub(crate) const SET: ManifestFile = ManifestFile {
    name: "set.json",
    format: 1,
    missing: "there is no set here; name a directory that holds one",
    remedy: "restore the original file, or measure again",
};
pub(crate) const IMPORT: ManifestFile = ManifestFile {
    name: "import.json",
    format: 1,
    missing: "nothing was imported here; import the file again",
    remedy: "import the file again",
};
pub(crate) const POINTS: &str = "points";
const ABANDONED: &str = "abandoned";
/// Points that failed, each with its reason.
const FAILURES: &str = "failures";
/// For a matrix: what became of each server, and what it printed.
const DEPLOYMENTS: &str = "deployments";
const LOCK_FILE: &str = "lock";
/// One name for every foreign file: what a file is called elsewhere must not choose a path here.
const FOREIGN_FILE: &str = "foreign";
/// Files with every gap of every request are large.
pub const FOREIGN_BYTES_MAX: u64 = 1 << 30;

stored_directory!(
    /// A directory that holds a set, finished or not.
    SetDirectory, SetManifest, SET, 256 << 20
);
stored_directory!(
    /// A directory that holds another tool's file.
    ImportDirectory, ImportManifest, IMPORT, 2 << 30
);

/// Holds a set for one process, until it is dropped.
#[derive(Debug)]
pub struct SetLock {
    _file: File,
}

impl SetDirectory {
    /// Whether the runs of a set were kept here, even if its own file is lost.
    pub(crate) fn held_set(path: &Path) -> bool {
        path.join(SET.name).is_file() || path.join(POINTS).is_dir()
    }

    /// The bytes of `set.json`; `None` where there is none.
    pub fn manifest_bytes(&self) -> Result<Option<Vec<u8>>> {
        files::read_at_most(&self.path.join(SET.name), files::MANIFEST_BYTES_MAX)
    }

    /// What a restarted server printed.
    pub fn restart_log(&self) -> PathBuf {
        self.path.join("restart.log")
    }

    /// A point by its number, whether it is there or not.
    pub fn point(&self, number: u32) -> RunDirectory {
        let path = self.path.join(POINTS).join(number.to_string());
        RunDirectory { id: format!("{}/{number}", self.id), path }
    }

    /// The points that have a folder, by number.
    pub fn points(&self) -> Result<Vec<u32>> {
        let names = names_in(&self.path.join(POINTS))?;
        let mut numbers: Vec<u32> = names.iter().filter_map(|name| number_of(name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Points that were moved aside, with the numbers that they had.
    pub fn abandoned(&self) -> Result<Vec<(u32, RunDirectory)>> {
        let folder = self.path.join(ABANDONED);
        let mut found = Vec::new();
        for name in names_in(&folder)? {
            let number = name.split_once('-').and_then(|(number, _)| number_of(number));
            found.extend(number.map(|number| (number, RunDirectory::at(folder.join(&name)))));
        }
        found.sort_by_key(|(number, _)| *number);
        Ok(found)
    }

    /// Whether a run was begun or moved aside since then. A set can be resumed long after the time
    /// that it is named after.
    pub(crate) fn changed_since(&self, earliest: SystemTime) -> bool {
        let changed =
            |folder: &str| fs::metadata(self.path.join(folder)).and_then(|at| at.modified());
        [POINTS, ABANDONED]
            .iter()
            .filter_map(|folder| changed(folder).ok())
            .any(|at| earliest <= at)
    }

    /// Makes a point's directory, writes its manifest, and opens and locks its journal.
    pub fn create_point(&self, number: u32, new: Manifest) -> Result<RunWriter> {
        let directory = self.point(number);
        let started = files::timestamp(new.clock.realtime_ns)?;
        fs::create_dir_all(self.path.join(POINTS))
            .and_then(|()| fs::create_dir(directory.path()))
            .map_err(|error| StoreError::Write { path: directory.path().to_owned(), error })?;
        RunWriter::begin(directory, new, started)
    }

    /// Moves a point aside so that it can be measured again, and returns where it is now.
    pub fn abandon(&self, number: u32) -> Result<PathBuf> {
        self.move_aside(self.point(number).path(), |attempt| format!("{number}-{attempt}"))
    }

    /// The log of a server that was deployed for this set.
    pub fn deployment_log(&self, condition: u32, repetition: u32) -> PathBuf {
        self.path.join(DEPLOYMENTS).join(format!("{condition}-{repetition}.log"))
    }

    /// Notes what became of a server that was deployed, under the name of its log: a cell that had
    /// several servers has a note of each.
    pub fn write_deployment(&self, record: &DeploymentRecord) -> Result<()> {
        let log = self.deployment_log(record.condition, record.repetition);
        let log = record.log.as_ref().map_or(log, PathBuf::from).with_extension("json");
        let name = log.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.write_beside(DEPLOYMENTS, &name, record)
    }

    /// In the order of cells and repetitions, and then in which they were deployed.
    pub fn deployments(&self) -> Result<Vec<DeploymentRecord>> {
        let mut records: Vec<DeploymentRecord> = self.read_beside(DEPLOYMENTS)?;
        records.sort_by_key(|record| {
            let log = record.log.clone().unwrap_or_default();
            // Numbers in the names grow longer.
            (record.condition, record.repetition, log.len(), log)
        });
        Ok(records)
    }

    /// Notes that a point failed.
    pub fn write_failure(&self, failure: &PointFailure) -> Result<()> {
        self.write_beside(FAILURES, &format!("{}.json", failure.point.number), failure)
    }

    /// In the order of their points.
    pub fn failures(&self) -> Result<Vec<PointFailure>> {
        let mut failures: Vec<PointFailure> = self.read_beside(FAILURES)?;
        failures.sort_by_key(|failure| failure.point.number);
        Ok(failures)
    }

    /// Moves the note of a failure aside, so that its point can be measured again.
    pub fn abandon_failure(&self, number: u32) -> Result<()> {
        let from = self.path.join(FAILURES).join(format!("{number}.json"));
        self.move_aside(&from, |attempt| format!("failure-{number}-{attempt}.json")).map(|_to| ())
    }

    fn write_beside<T: Serialize>(&self, folder: &str, name: &str, value: &T) -> Result<()> {
        let folder = self.path.join(folder);
        let not_made = |error| StoreError::Write { path: folder.clone(), error };
        fs::create_dir_all(&folder).map_err(not_made)?;
        files::write_json(&folder.join(name), value)
    }

    fn read_beside<T: DeserializeOwned>(&self, folder: &str) -> Result<Vec<T>> {
        let mut found = Vec::new();
        let paths = files::paths_in(&self.path.join(folder))?.into_iter();
        for path in paths.filter(|path| path.extension().is_some_and(|it| it == "json")) {
            let Some(json) = files::read_at_most(&path, 4 << 20)? else { continue };
            let remedy = SET.remedy;
            let damaged = |error| StoreError::Damaged { path, error, remedy };
            found.push(serde_json::from_slice(&json).map_err(damaged)?);
        }
        Ok(found)
    }

    /// Removes the results of the points: some of them are to be measured again.
    pub fn unseal(&self) -> Result<()> {
        files::remove(self.path.join(SUMMARY_FILE))
    }

    /// Takes the set for this process. Fails with `Busy` while another has it.
    pub fn lock(&self) -> Result<SetLock> {
        let file = files::open_locked(self.path.join(LOCK_FILE), &self.path)?;
        Ok(SetLock { _file: file })
    }

    /// The state of the set. No point is read for this.
    pub fn state(&self) -> RunState {
        let find = || -> Result<RunState> {
            self.manifest()?;
            if files::is_locked(self.path.join(LOCK_FILE))? {
                return Ok(RunState::Running);
            }
            Ok(if self.has_summary() { RunState::Sealed } else { RunState::Unfinished })
        };
        find().unwrap_or_else(|error| RunState::Unreadable(error.to_string()))
    }

    /// Moves something aside, under the first name that is free, and returns where it is now.
    fn move_aside(&self, from: &Path, name: impl Fn(u32) -> String) -> Result<PathBuf> {
        let folder = self.path.join(ABANDONED);
        let moved = || {
            fs::create_dir_all(&folder)?;
            let free = (0..=u32::MAX)
                .map(|attempt| folder.join(name(attempt)))
                .find(|to| !to.exists())
                .ok_or(std::io::ErrorKind::AlreadyExists)?;
            fs::rename(from, &free)?;
            files::sync_parent(&free)?;
            files::sync_parent(from)?;
            Ok(free)
        };
        moved().map_err(|error| StoreError::Write { path: from.to_owned(), error })
    }
}

/// The names of what lies in a folder.
fn names_in(folder: &Path) -> Result<Vec<String>> {
    let paths = files::paths_in(folder)?;
    Ok(paths.iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect())
}

/// The number of a point's folder; `007` is not one.
pub(crate) fn number_of(name: &str) -> Option<u32> {
    name.parse().ok().filter(|number: &u32| number.to_string() == name)
}

impl ImportDirectory {
    /// A file whose manifest was never written is one that was cut off: it is listed as broken, so
    /// that the user can delete it.
    pub(crate) fn holds_import(path: &Path) -> bool {
        [IMPORT.name, FOREIGN_FILE].iter().any(|name| path.join(name).is_file())
    }

    pub fn foreign_path(&self) -> PathBuf {
        self.path.join(FOREIGN_FILE)
    }

    /// The other tool's file, byte for byte.
    pub fn foreign(&self) -> Result<Vec<u8>> {
        let path = self.foreign_path();
        files::read_at_most(&path, FOREIGN_BYTES_MAX)?
            .ok_or(StoreError::Missing { path, consequence: IMPORT.missing })
    }

    /// An import is there when its manifest is readable.
    pub fn state(&self) -> RunState {
        match self.manifest() {
            Ok(_) => RunState::Sealed,
            Err(error) => RunState::Unreadable(error.to_string()),
        }
    }
}
