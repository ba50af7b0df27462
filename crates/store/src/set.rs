//! A set of runs on disk: what it asks, its points, and their results.
//!
//! `set.json` is written first, so that a set which died can be gone on with; every point is an
//! ordinary run below `points/`. Nothing that was measured is ever removed: a point that must be
//! measured again is moved to `abandoned/`.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use inferometer_model::Manifest;
use inferometer_model::study::{DeploymentRecord, PointFailure, SetManifest, StudySpec};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::directory::{self, RunDirectory, SUMMARY_FILE, stored_directory};
use crate::error::StoreError;
use crate::manifest;
use crate::writer::RunWriter;
use crate::{files, store};

pub(crate) const SET_FILE: &str = "set.json";
pub(crate) const POINTS: &str = "points";
const ABANDONED: &str = "abandoned";
/// Points that failed, each with its reason.
const FAILURES: &str = "failures";
/// For a matrix: what became of each server, and what it printed.
const DEPLOYMENTS: &str = "deployments";
const FAILURE_BYTES_MAX: u64 = 4 << 20;
const LOCK_FILE: &str = "lock";
/// What a restarted server printed; kept beside the points.
const RESTART_LOG: &str = "restart.log";
/// The version of `set.json`. Its points have the version of runs.
const SET_FORMAT: u32 = 1;
const SUMMARY_BYTES_MAX: u64 = 256 << 20;

/// All that is known of a set before its first run.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSet {
    pub study: StudySpec,
    /// Whether it happens in virtual time.
    pub simulated: bool,
    /// One for each condition, or none at all; see [`SetManifest`].
    pub key_files: Vec<Option<PathBuf>>,
    pub tool_version: String,
    /// The wall time that names the set.
    pub realtime_ns: u64,
}

/// A directory that holds a set, finished or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetDirectory {
    id: String,
    path: PathBuf,
}

stored_directory!(SetDirectory, SUMMARY_BYTES_MAX);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetState {
    /// Nothing is left to ask, and the results of the points is stored.
    Sealed,
    /// A live process works on it.
    Running,
    /// It can be gone on with.
    Unfinished,
    Unreadable(String),
}

/// Holds a set for one process, until it is dropped.
#[derive(Debug)]
pub struct SetLock {
    _file: File,
}

impl NewSet {
    pub(crate) fn into_manifest(self, set: String, started: Timestamp) -> SetManifest {
        SetManifest {
            format: SET_FORMAT,
            set,
            started: started.to_string(),
            tool_version: self.tool_version,
            simulated: self.simulated,
            study: self.study,
            key_files: self.key_files,
        }
    }
}

impl SetDirectory {
    /// The set at `path`, inside a store or elsewhere. Nothing is read yet.
    pub fn at(path: PathBuf) -> Self {
        Self { id: directory::name(&path), path }
    }

    pub(crate) fn holds_set(path: &Path) -> bool {
        path.join(SET_FILE).is_file()
    }

    /// Whether runs were kept here as a set's, though its own file may be lost.
    pub(crate) fn held_set(path: &Path) -> bool {
        Self::holds_set(path) || path.join(POINTS).is_dir()
    }

    pub fn restart_log(&self) -> PathBuf {
        self.path.join(RESTART_LOG)
    }

    pub fn manifest(&self) -> Result<SetManifest, StoreError> {
        let path = self.path.join(SET_FILE);
        let damaged = |path, error| StoreError::Set { path, error };
        let read = manifest::read_versioned(&path, SET_FORMAT, damaged)?;
        read.ok_or(StoreError::NoSet { path })
    }

    /// A point by its number, whether it is there or not.
    pub fn point(&self, number: u32) -> RunDirectory {
        let path = self.path.join(POINTS).join(number.to_string());
        RunDirectory { id: format!("{}/{number}", self.id), path }
    }

    /// The points that have a folder, by number.
    pub fn points(&self) -> Result<Vec<u32>, StoreError> {
        let names = names_in(&self.path.join(POINTS))?;
        let mut numbers: Vec<u32> = names.iter().filter_map(|name| number_of(name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Points that were moved aside, with the numbers that they had.
    pub fn abandoned(&self) -> Result<Vec<(u32, RunDirectory)>, StoreError> {
        let folder = self.path.join(ABANDONED);
        let mut found = Vec::new();
        for name in names_in(&folder)? {
            let number = name.split_once('-').and_then(|(number, _)| number_of(number));
            found.extend(number.map(|number| (number, RunDirectory::at(folder.join(&name)))));
        }
        found.sort_by_key(|(number, _)| *number);
        Ok(found)
    }

    /// Whether a run was begun or moved aside since then. A set can be gone on with long after
    /// the moment that it is named after.
    pub(crate) fn changed_since(&self, earliest: SystemTime) -> bool {
        let changed =
            |folder: &str| fs::metadata(self.path.join(folder)).and_then(|at| at.modified());
        [POINTS, ABANDONED]
            .into_iter()
            .filter_map(|folder| changed(folder).ok())
            .any(|at| earliest <= at)
    }

    /// Makes a point's directory, writes its manifest, and opens and locks its journal.
    pub fn create_point(&self, number: u32, new: Manifest) -> Result<RunWriter, StoreError> {
        let directory = self.point(number);
        let not_made = |error| StoreError::Write { path: directory.path().to_owned(), error };
        let started = manifest::timestamp(new.clock.realtime_ns)?;
        fs::create_dir_all(self.path.join(POINTS)).map_err(not_made)?;
        fs::create_dir(directory.path()).map_err(not_made)?;
        store::begin(directory, new, started)
    }

    /// Moves a point aside so that it can be measured again, and returns where it is now.
    pub fn abandon(&self, number: u32) -> Result<PathBuf, StoreError> {
        self.move_aside(self.point(number).path(), |attempt| format!("{number}-{attempt}"))
    }

    /// Where the log of a server that was deployed for this set are kept.
    pub fn deployment_log(&self, condition: u32, repetition: u32) -> PathBuf {
        self.path.join(DEPLOYMENTS).join(format!("{condition}-{repetition}.log"))
    }

    /// Notes what became of a server that was deployed, under the name of its log: a cell that had
    /// several servers has a note of each.
    pub fn write_deployment(&self, record: &DeploymentRecord) -> Result<(), StoreError> {
        let log = self.deployment_log(record.condition, record.repetition);
        let log = record.log.as_ref().map_or(log, PathBuf::from).with_extension("json");
        let name = log.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.write_beside(DEPLOYMENTS, &name, record)
    }

    /// In the order of cells and repetitions, and then in which they were deployed.
    pub fn deployments(&self) -> Result<Vec<DeploymentRecord>, StoreError> {
        let mut records: Vec<DeploymentRecord> = self.read_beside(DEPLOYMENTS)?;
        records.sort_by_key(|record| {
            let log = record.log.clone().unwrap_or_default();
            // Numbers in the names grow longer.
            (record.condition, record.repetition, log.len(), log)
        });
        Ok(records)
    }

    /// Notes that a point failed.
    pub fn write_failure(&self, failure: &PointFailure) -> Result<(), StoreError> {
        self.write_beside(FAILURES, &format!("{}.json", failure.point.number), failure)
    }

    /// In the order of their points.
    pub fn failures(&self) -> Result<Vec<PointFailure>, StoreError> {
        let mut failures: Vec<PointFailure> = self.read_beside(FAILURES)?;
        failures.sort_by_key(|failure| failure.point.number);
        Ok(failures)
    }

    /// Moves the note of a failure aside, so that its point can be measured again.
    pub fn abandon_failure(&self, number: u32) -> Result<(), StoreError> {
        let from = self.path.join(FAILURES).join(format!("{number}.json"));
        self.move_aside(&from, |attempt| format!("failure-{number}-{attempt}.json")).map(|_to| ())
    }

    fn write_beside<T: Serialize>(
        &self,
        folder: &str,
        name: &str,
        value: &T,
    ) -> Result<(), StoreError> {
        let folder = self.path.join(folder);
        let not_made = |error| StoreError::Write { path: folder.clone(), error };
        fs::create_dir_all(&folder).map_err(not_made)?;
        manifest::write_json(&folder.join(name), value)
    }

    fn read_beside<T: DeserializeOwned>(&self, folder: &str) -> Result<Vec<T>, StoreError> {
        let folder = self.path.join(folder);
        let mut found = Vec::new();
        let paths = files::paths_in(&folder)?.into_iter();
        for path in paths.filter(|path| path.extension().is_some_and(|it| it == "json")) {
            let Some(json) = files::read_at_most(&path, FAILURE_BYTES_MAX)? else { continue };
            let value =
                serde_json::from_slice(&json).map_err(|error| StoreError::Set { path, error })?;
            found.push(value);
        }
        Ok(found)
    }

    /// Removes the results of the points: some of them are to be measured again.
    pub fn unseal(&self) -> Result<(), StoreError> {
        files::remove(self.path.join(SUMMARY_FILE))
    }

    /// Takes the set for this process. Fails with `Busy` while another has it.
    pub fn lock(&self) -> Result<SetLock, StoreError> {
        let file = files::open_locked(self.path.join(LOCK_FILE), &self.path)?;
        Ok(SetLock { _file: file })
    }

    /// The state of the set. No point is read for this.
    pub fn state(&self) -> SetState {
        let find = || -> Result<SetState, StoreError> {
            self.manifest()?;
            if files::is_locked(self.path.join(LOCK_FILE))? {
                return Ok(SetState::Running);
            }
            let sealed = self.path.join(SUMMARY_FILE).is_file();
            Ok(if sealed { SetState::Sealed } else { SetState::Unfinished })
        };
        find().unwrap_or_else(|error| SetState::Unreadable(error.to_string()))
    }

    /// Moves something aside, under the first name that is free, and returns where it is now.
    fn move_aside(&self, from: &Path, name: impl Fn(u32) -> String) -> Result<PathBuf, StoreError> {
        let folder = self.path.join(ABANDONED);
        let moved = || {
            fs::create_dir_all(&folder)?;
            let free = (0..=u32::MAX)
                .map(|attempt| folder.join(name(attempt)))
                .find(|to| !to.exists())
                .ok_or(ErrorKind::AlreadyExists)?;
            fs::rename(from, &free)?;
            files::sync_parent(&free)?;
            files::sync_parent(from)?;
            Ok(free)
        };
        moved().map_err(|error| StoreError::Write { path: from.to_owned(), error })
    }
}

/// The names of what lies in a folder.
fn names_in(folder: &Path) -> Result<Vec<String>, StoreError> {
    let paths = files::paths_in(folder)?;
    Ok(paths.iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect())
}

/// The number of a point's folder; `007` is not one.
pub(crate) fn number_of(name: &str) -> Option<u32> {
    name.parse().ok().filter(|number: &u32| number.to_string() == name)
}
