//! Which run or set a name means.

use std::path::{Path, PathBuf};

use crate::directory::RunDirectory;
use crate::error::StoreError;
use crate::import::ImportDirectory;
use crate::manifest::{self, MANIFEST_FILE};
use crate::set::{SetDirectory, number_of};
use crate::store::{Candidate, RunStore};

/// The name that stands for the newest run or set.
const LATEST: &str = "latest";
/// Names shown in a message.
const NAMES_SHOWN_MAX: usize = 8;

/// What a name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    Run(RunDirectory),
    Set(SetDirectory),
    /// All results of a foreign file, or the one with this number.
    Import(ImportDirectory, Option<u32>),
}

impl Stored {
    pub fn id(&self) -> &str {
        match self {
            Self::Run(run) => run.id(),
            Self::Set(set) => set.id(),
            Self::Import(import, _) => import.id(),
        }
    }

    pub fn path(&self) -> &Path {
        match self {
            Self::Run(run) => run.path(),
            Self::Set(set) => set.path(),
            Self::Import(import, _) => import.path(),
        }
    }
}

impl RunStore {
    /// The run or set that `name` means: an id, the beginning of exactly one id, `latest`, the path
    /// of a directory, or `SET/N` for a point of a set. Only an explicit path leads out of the
    /// store.
    pub fn find(&self, name: &str) -> Result<Stored, StoreError> {
        let candidates = self.candidates()?;
        match (self.find_whole(&candidates, name), point_of(name)) {
            (Err(StoreError::NotFound { .. }), Some((set, number))) => {
                let not_found = || self.not_found(name, &candidates);
                match self.find_whole(&candidates, set) {
                    Ok(Stored::Set(set)) => point(&set, number).map(Stored::Run),
                    Ok(Stored::Import(import, _)) => Ok(Stored::Import(import, Some(number))),
                    Ok(Stored::Run(_)) | Err(StoreError::NotFound { .. }) => Err(not_found()),
                    Err(error) => Err(error),
                }
            }
            (found, _) => found,
        }
    }

    /// The run that `name` means. A set is refused, as it is not one run.
    pub fn resolve(&self, name: &str) -> Result<RunDirectory, StoreError> {
        match self.find(name)? {
            Stored::Run(run) => Ok(run),
            Stored::Set(set) => {
                Err(StoreError::IsSet { name: name.to_owned(), set: set.id().to_owned() })
            }
            Stored::Import(import, _) => {
                Err(StoreError::IsImport { name: name.to_owned(), import: import.id().to_owned() })
            }
        }
    }

    fn find_whole(&self, candidates: &[Candidate], name: &str) -> Result<Stored, StoreError> {
        if name == LATEST {
            return latest(candidates)
                .map(|found| found.stored.clone())
                .ok_or_else(|| self.not_found(name, candidates));
        }
        if let Some(exact) = candidates.iter().find(|found| found.stored.id() == name) {
            return Ok(exact.stored.clone());
        }
        if !name.is_empty() && Path::new(name).join(MANIFEST_FILE).is_file() {
            return Ok(Stored::Run(RunDirectory::at(PathBuf::from(name))));
        }
        if !name.is_empty() && SetDirectory::holds_set(Path::new(name)) {
            return Ok(Stored::Set(SetDirectory::at(PathBuf::from(name))));
        }
        if !name.is_empty() && ImportDirectory::holds_import(Path::new(name)) {
            return Ok(Stored::Import(ImportDirectory::at(PathBuf::from(name)), None));
        }
        let fitting: Vec<&Candidate> = candidates
            .iter()
            .filter(|found| !name.is_empty() && found.stored.id().starts_with(name))
            .collect();
        match fitting.as_slice() {
            [only] => Ok(only.stored.clone()),
            [] => Err(self.not_found(name, candidates)),
            several => Err(StoreError::Ambiguous {
                name: name.to_owned(),
                path: self.path().to_owned(),
                candidates: shown(several.iter().map(|found| found.stored.id())),
            }),
        }
    }

    fn not_found(&self, name: &str, candidates: &[Candidate]) -> StoreError {
        let known = if candidates.is_empty() {
            "there are no runs yet: make one with `inferometer run`, or say where they are with \
             --output"
                .to_owned()
        } else {
            format!("there are {}", shown(candidates.iter().map(|found| found.stored.id())))
        };
        StoreError::NotFound { name: name.to_owned(), path: self.path().to_owned(), known }
    }
}

fn point_of(name: &str) -> Option<(&str, u32)> {
    let (set, number) = name.rsplit_once('/')?;
    Some((set, number_of(number)?))
}

fn point(set: &SetDirectory, number: u32) -> Result<RunDirectory, StoreError> {
    let points = set.points()?;
    if points.contains(&number) {
        return Ok(set.point(number));
    }
    let names: Vec<String> = points.iter().map(u32::to_string).collect();
    let known = match names.len() {
        0 => "none yet".to_owned(),
        _ => shown(names.iter().map(String::as_str)),
    };
    Err(StoreError::NoPoint { set: set.path().to_owned(), number, known })
}

fn shown<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(NAMES_SHOWN_MAX);
    let text = names.take(NAMES_SHOWN_MAX).collect::<Vec<_>>().join(", ");
    if more == 0 { text } else { format!("{text} and {more} more") }
}

/// The newest. One that cannot be read is still the newest: taking an older one in silence would
/// answer for the wrong run.
fn latest(candidates: &[Candidate]) -> Option<&Candidate> {
    let readable = candidates.iter().find(|found| found.started_ns.is_some());
    let is_newer = |found: &&Candidate| {
        readable.is_none_or(|readable| readable.stored.id() < found.stored.id())
    };
    let broken = candidates
        .iter()
        .filter(|found| found.started_ns.is_none() && manifest::is_run_id(found.stored.id()))
        .filter(is_newer)
        .max_by_key(|found| found.stored.id().to_owned());
    broken.or(readable)
}
