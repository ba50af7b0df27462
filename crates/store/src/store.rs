//! The place where runs are kept: making them, listing them, finding them by name.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use inferometer_model::spec::Source;
use inferometer_model::{BaseUrl, Manifest, Spec};

use crate::directory::{self, RunDirectory, RunState};
use crate::error::StoreError;
use crate::files;
use crate::manifest::{self, MANIFEST_FILE, NewRun};
use crate::writer::{JournalWriter, RunWriter};

/// The name that stands for the newest run.
const LATEST: &str = "latest";
/// How long a server is taken to remember prompts.
const CACHE_MEMORY_NS: u64 = 24 * 3_600 * 1_000_000_000;
/// Names shown in a message.
const NAMES_SHOWN_MAX: usize = 8;

/// A directory of runs. It need not exist before the first run is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunStore {
    path: PathBuf,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RunListing {
    pub id: String,
    pub path: PathBuf,
    pub state: RunState,
    /// `None` when it cannot be read; the state says why.
    pub manifest: Option<Manifest>,
}

/// A run directory as found, with its manifest if there is a good one.
struct Candidate {
    directory: RunDirectory,
    manifest: Option<Manifest>,
}

impl RunStore {
    /// Refuses a path that is not a directory. Nothing is made before a run is.
    pub fn open(path: PathBuf) -> Result<Self, StoreError> {
        match fs::metadata(&path) {
            Ok(found) if !found.is_dir() => {
                Err(StoreError::NotWritable { path, error: ErrorKind::NotADirectory.into() })
            }
            Ok(_) => Ok(Self { path }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self { path }),
            Err(error) => Err(StoreError::Read { path, error }),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fails when no run could be made here. For the time before a server is started or asked.
    pub fn check_writable(&self) -> Result<(), StoreError> {
        let probe = files::draft_path(&self.path.join("probe"));
        fs::create_dir_all(&self.path)
            .and_then(|()| File::create_new(&probe))
            .and_then(|_file| fs::remove_file(&probe))
            .map_err(|error| self.not_writable(error))
    }

    /// Makes the run's directory, writes its manifest, and opens and locks its journal.
    pub fn create(&self, new: NewRun) -> Result<RunWriter, StoreError> {
        let started = new.started()?;
        fs::create_dir_all(&self.path).map_err(|error| self.not_writable(error))?;
        let distinction = new.distinction(std::process::id());
        let (id, path) = self.claim_directory(&manifest::stamp(started), distinction)?;
        let manifest = new.into_manifest(id, started);
        let directory = RunDirectory::at(path);
        let journal = manifest::write_manifest(directory.path(), &manifest)
            .and_then(|()| create_journal(&directory))
            .inspect_err(|_error| {
                // Nothing was measured yet, so what is left of it would only litter the list.
                let _ = fs::remove_dir_all(directory.path());
            })?;
        files::sync_parent(directory.path()).map_err(|error| self.not_writable(error))?;
        Ok(RunWriter::new(directory, manifest, journal))
    }

    /// All runs, the newest first; those whose manifest cannot be read come last. Files and
    /// directories that are not runs are passed over.
    pub fn list(&self) -> Result<Vec<RunListing>, StoreError> {
        let candidates = self.candidates()?;
        let listing = |Candidate { directory, manifest }: Candidate| RunListing {
            id: directory.id().to_owned(),
            path: directory.path().to_owned(),
            state: directory.state(),
            manifest,
        };
        Ok(candidates.into_iter().map(listing).collect())
    }

    /// The newest run of the last day that may have sent the same prompts to the same server: the
    /// same plan, or words drawn from the same seed. A prefix cache may know them.
    pub fn sent_before(
        &self,
        spec: &Spec,
        plan: &str,
        base: &BaseUrl,
        now_ns: u64,
    ) -> Option<String> {
        let is_recent = |manifest: &Manifest| {
            now_ns.saturating_sub(manifest.clock.realtime_ns) < CACHE_MEMORY_NS
        };
        let is_alike = |manifest: &Manifest| {
            // Token ids and words of the same seed have nothing in common.
            let draws_ids = |spec: &Spec| matches!(spec.workload.source, Source::VllmRandom(_));
            let both_write = |other: &Spec| {
                spec.workload.source.writes_words()
                    && other.workload.source.writes_words()
                    && draws_ids(spec) == draws_ids(other)
            };
            manifest.fingerprints.plan == plan
                || manifest.spec.seed == spec.seed && both_write(&manifest.spec)
        };
        let runs = self.candidates().unwrap_or_default();
        let manifests = runs.into_iter().filter_map(|found| found.manifest);
        manifests
            .filter(|manifest| manifest.endpoint.base == *base && !manifest.endpoint.embedded)
            .filter(is_recent)
            .find(is_alike)
            .map(|manifest| manifest.run)
    }

    /// The run that `name` means: an id, the beginning of exactly one id, `latest`, or the path of
    /// a run's directory. Only an explicit path leads out of the store.
    pub fn resolve(&self, name: &str) -> Result<RunDirectory, StoreError> {
        let candidates = self.candidates()?;
        let names: Vec<&str> = candidates.iter().map(|found| found.directory.id()).collect();
        if name == LATEST {
            return latest(&candidates)
                .map(|found| found.directory.clone())
                .ok_or_else(|| self.not_found(name, &names));
        }
        if let Some(exact) = candidates.iter().find(|found| found.directory.id() == name) {
            return Ok(exact.directory.clone());
        }
        if !name.is_empty() && Path::new(name).join(MANIFEST_FILE).is_file() {
            return Ok(RunDirectory::at(PathBuf::from(name)));
        }
        let fitting: Vec<&Candidate> = candidates
            .iter()
            .filter(|found| !name.is_empty() && found.directory.id().starts_with(name))
            .collect();
        match fitting.as_slice() {
            [only] => Ok(only.directory.clone()),
            [] => Err(self.not_found(name, &names)),
            several => Err(StoreError::Ambiguous {
                name: name.to_owned(),
                path: self.path.clone(),
                candidates: shown(several.iter().map(|found| found.directory.id())),
            }),
        }
    }

    /// Takes an id that no other run has: making a directory is the one step that two processes
    /// cannot both do.
    fn claim_directory(
        &self,
        stamp: &str,
        distinction: u16,
    ) -> Result<(String, PathBuf), StoreError> {
        for step in 0..=u16::MAX {
            let id = manifest::run_id(stamp, distinction.wrapping_add(step));
            let path = self.path.join(&id);
            match fs::create_dir(&path) {
                Ok(()) => return Ok((id, path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(self.not_writable(error)),
            }
        }
        Err(StoreError::NamesTaken { path: self.path.clone(), stamp: stamp.to_owned() })
    }

    /// The newest first.
    fn candidates(&self) -> Result<Vec<Candidate>, StoreError> {
        let read_error = |error| StoreError::Read { path: self.path.clone(), error };
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(read_error(error)),
        };
        let mut candidates = Vec::new();
        for entry in entries {
            let path = entry.map_err(read_error)?.path();
            if RunDirectory::holds_run(&path) {
                let directory = RunDirectory::at(path);
                let manifest = directory.manifest().ok();
                candidates.push(Candidate { directory, manifest });
            }
        }
        let age = |found: &Candidate| {
            let started = found.manifest.as_ref().map(|manifest| manifest.clock.realtime_ns);
            (started, found.directory.id().to_owned())
        };
        candidates.sort_by_cached_key(|found| std::cmp::Reverse(age(found)));
        Ok(candidates)
    }

    fn not_writable(&self, error: io::Error) -> StoreError {
        StoreError::NotWritable { path: self.path.clone(), error }
    }

    fn not_found(&self, name: &str, names: &[&str]) -> StoreError {
        let known = if names.is_empty() {
            "there are no runs yet: make one with `inferometer run`, or say where they are with \
             --output"
                .to_owned()
        } else {
            format!("there are {}", shown(names.iter().copied()))
        };
        StoreError::NotFound { name: name.to_owned(), path: self.path.clone(), known }
    }
}

/// The journal gets its name when it is locked and has its header, so that nobody ever finds a
/// live run that looks dead.
fn create_journal(directory: &RunDirectory) -> Result<JournalWriter<File>, StoreError> {
    let path = directory.journal_path();
    let draft = files::draft_path(&path);
    let file = match File::create_new(&draft) {
        Ok(file) => file,
        Err(error) => return Err(StoreError::Write { path, error }),
    };
    directory::lock(&file, &path, directory.path())?;
    let mut journal = JournalWriter::new(file, path.clone());
    journal.sync()?;
    fs::rename(&draft, &path)
        .and_then(|()| files::sync_parent(&path))
        .map_err(|error| StoreError::Write { path, error })?;
    Ok(journal)
}

fn shown<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(NAMES_SHOWN_MAX);
    let text = names.take(NAMES_SHOWN_MAX).collect::<Vec<_>>().join(", ");
    if more == 0 { text } else { format!("{text} and {more} more") }
}

/// The newest run. One that cannot be read is still the newest: taking an older one in silence
/// would answer for the wrong run.
fn latest(candidates: &[Candidate]) -> Option<&Candidate> {
    let readable = candidates.iter().find(|found| found.manifest.is_some());
    let is_newer = |found: &&Candidate| {
        readable.is_none_or(|readable| readable.directory.id() < found.directory.id())
    };
    let broken = candidates
        .iter()
        .filter(|found| found.manifest.is_none() && manifest::is_run_id(found.directory.id()))
        .filter(is_newer)
        .max_by_key(|found| found.directory.id());
    broken.or(readable)
}
