//! The place where runs and sets are kept: making them, listing them, and what was sent before.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use inferometer_model::import::ImportManifest;
use inferometer_model::spec::Source;
use inferometer_model::study::SetManifest;
use inferometer_model::{BaseUrl, Manifest, Spec};
use jiff::Timestamp;

use crate::directory::{self, RunDirectory, RunState};
use crate::error::StoreError;
use crate::files;
use crate::import::{ImportDirectory, NewImport};
use crate::journal::FORMAT_VERSION;
use crate::manifest::{self, MANIFEST_FILE};
use crate::set::{NewSet, SET_FILE, SetDirectory, SetState, number_of};
use crate::writer::{JournalWriter, RunWriter};

/// How long a server is taken to remember prompts.
const CACHE_MEMORY_NS: u64 = 24 * 3_600 * 1_000_000_000;

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
    /// `None` when it cannot be read; the state explains why.
    pub manifest: Option<Manifest>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SetListing {
    pub set: SetDirectory,
    pub state: SetState,
    /// `None` when it cannot be read; the state explains why.
    pub manifest: Option<SetManifest>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportListing {
    pub import: ImportDirectory,
    /// The reason where it cannot be read.
    pub manifest: Result<ImportManifest, String>,
}

/// A run or a set as found.
pub(crate) struct Candidate {
    pub(crate) stored: Stored,
    /// `None` when its manifest cannot be read.
    pub(crate) started_ns: Option<u64>,
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
    /// Its wall time names the run; the format, the name and the start of `new` are written here.
    pub fn create(&self, new: Manifest) -> Result<RunWriter, StoreError> {
        let asked = new.fingerprints.plan.as_bytes();
        let (_, started, path) = self.claim(asked, new.clock.realtime_ns)?;
        begin(RunDirectory::at(path), new, started)
    }

    /// Makes a set's directory and writes what it asks. It has no point yet.
    pub fn create_set(&self, new: NewSet) -> Result<SetDirectory, StoreError> {
        let asked = new.study.seed.to_le_bytes();
        let (id, started, path) = self.claim(&asked, new.realtime_ns)?;
        let set = SetDirectory::at(path);
        let path = set.path().join(SET_FILE);
        manifest::write_json(&path, &new.into_manifest(id, started)).inspect_err(|_error| {
            // Nothing was measured yet, so what is left of it would only litter the list.
            let _ = fs::remove_dir_all(set.path());
        })?;
        files::sync_parent(set.path()).map_err(|error| self.not_writable(error))?;
        Ok(set)
    }

    /// All runs that are in no set, the newest first; those whose manifest cannot be read come
    /// last. Files and directories that are not runs are passed over.
    pub fn list(&self) -> Result<Vec<RunListing>, StoreError> {
        let runs = self.candidates()?.into_iter().filter_map(|found| match found.stored {
            Stored::Run(directory) => Some(RunListing {
                id: directory.id().to_owned(),
                path: directory.path().to_owned(),
                state: directory.state(),
                manifest: found.manifest,
            }),
            Stored::Set(_) | Stored::Import(..) => None,
        });
        Ok(runs.collect())
    }

    /// All sets, in the same order.
    pub fn sets(&self) -> Result<Vec<SetListing>, StoreError> {
        let sets = self.candidates()?.into_iter().filter_map(|found| match found.stored {
            Stored::Set(set) => {
                let (state, manifest) = (set.state(), set.manifest().ok());
                Some(SetListing { set, state, manifest })
            }
            Stored::Run(_) | Stored::Import(..) => None,
        });
        Ok(sets.collect())
    }

    /// All foreign files that were taken in, in the same order.
    pub fn imports(&self) -> Result<Vec<ImportListing>, StoreError> {
        let imports = self.candidates()?.into_iter().filter_map(|found| match found.stored {
            Stored::Import(import, _) => {
                let manifest = import.manifest().map_err(|error| error.to_string());
                Some(ImportListing { import, manifest })
            }
            Stored::Run(_) | Stored::Set(_) => None,
        });
        Ok(imports.collect())
    }

    /// Keeps a foreign file as it is. What it was mapped to is written by the caller.
    pub fn create_import(
        &self,
        new: NewImport,
        foreign: &[u8],
    ) -> Result<ImportDirectory, StoreError> {
        let (id, started, path) = self.claim(new.file.sha256.as_bytes(), new.realtime_ns)?;
        let import = ImportDirectory::at(path);
        import.write(&new.into_manifest(id, started), foreign)?;
        files::sync_parent(import.path()).map_err(|error| self.not_writable(error))?;
        Ok(import)
    }

    /// The newest run of the last day that may have sent the same prompts to the same model: the
    /// same plan, or words drawn from the same seed. A prefix cache may know them.
    pub fn sent_before(
        &self,
        spec: &Spec,
        plan: &str,
        base: &BaseUrl,
        model: &str,
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
        let mut sent = self.recent_manifests(now_ns);
        sent.sort_by_key(|manifest| std::cmp::Reverse(manifest.clock.realtime_ns));
        sent.into_iter()
            .filter(|manifest| manifest.endpoint.base == *base && manifest.endpoint.model == model)
            .filter(|manifest| !manifest.endpoint.embedded)
            .filter(is_recent)
            .find(is_alike)
            .map(|manifest| manifest.run)
    }

    /// All runs that may be of the last day, those of sets among them, and those of sets that
    /// do not count too: the server has seen them all the same. Older folders are not opened.
    fn recent_manifests(&self, now_ns: u64) -> Vec<Manifest> {
        let earliest_ns = now_ns.saturating_sub(CACHE_MEMORY_NS);
        let earliest = SystemTime::UNIX_EPOCH + Duration::from_nanos(earliest_ns);
        let paths = files::paths_in(&self.path).unwrap_or_default().into_iter();
        let of_one = |path: PathBuf| {
            if SetDirectory::held_set(&path) {
                let set = SetDirectory::at(path);
                return if set.changed_since(earliest) { manifests_of(&set) } else { Vec::new() };
            }
            let stamped = manifest::stamped_ns(&directory::name(&path));
            // The stamp is cut to the second.
            let is_old = stamped.is_some_and(|at| at.saturating_add(1_000_000_000) < earliest_ns);
            if is_old { Vec::new() } else { Vec::from_iter(RunDirectory::at(path).manifest().ok()) }
        };
        paths.flat_map(of_one).collect()
    }

    /// Takes an id that no other run has: making a directory is the one step that two processes
    /// cannot both do. What is `asked` tells apart those of the same second.
    fn claim(
        &self,
        asked: &[u8],
        realtime_ns: u64,
    ) -> Result<(String, Timestamp, PathBuf), StoreError> {
        let started = manifest::timestamp(realtime_ns)?;
        let stamp = manifest::stamp(started);
        let distinction = manifest::distinction(asked, std::process::id(), realtime_ns);
        fs::create_dir_all(&self.path).map_err(|error| self.not_writable(error))?;
        // In UTC: ids sort by time, and say it.
        for step in 0..=u16::MAX {
            let id = format!("{stamp}-{:04x}", distinction.wrapping_add(step));
            let path = self.path.join(&id);
            match fs::create_dir(&path) {
                Ok(()) => return Ok((id, started, path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(self.not_writable(error)),
            }
        }
        Err(StoreError::NamesTaken { path: self.path.clone(), stamp })
    }

    /// The newest first.
    pub(crate) fn candidates(&self) -> Result<Vec<Candidate>, StoreError> {
        let mut candidates: Vec<Candidate> =
            files::paths_in(&self.path)?.into_iter().filter_map(Candidate::at).collect();
        candidates.sort_by_cached_key(|found| {
            std::cmp::Reverse((found.started_ns, found.stored.id().to_owned()))
        });
        Ok(candidates)
    }

    fn not_writable(&self, error: io::Error) -> StoreError {
        StoreError::NotWritable { path: self.path.clone(), error }
    }
}

impl Candidate {
    fn at(path: PathBuf) -> Option<Self> {
        if RunDirectory::holds_run(&path) {
            let directory = RunDirectory::at(path);
            let manifest = directory.manifest().ok();
            let started_ns = manifest.as_ref().map(|manifest| manifest.clock.realtime_ns);
            return Some(Self { stored: Stored::Run(directory), started_ns, manifest });
        }
        if ImportDirectory::holds_import(&path) {
            let import = ImportDirectory::at(path);
            let imported = || import.manifest().ok()?.imported.parse::<Timestamp>().ok();
            let started_ns =
                imported().and_then(|moment| u64::try_from(moment.as_nanosecond()).ok());
            return Some(Self { stored: Stored::Import(import, None), started_ns, manifest: None });
        }
        if !SetDirectory::held_set(&path) {
            return None;
        }
        let set = SetDirectory::at(path);
        let started = || set.manifest().ok()?.started.parse::<Timestamp>().ok();
        let started_ns = started().and_then(|moment| u64::try_from(moment.as_nanosecond()).ok());
        Some(Self { stored: Stored::Set(set), started_ns, manifest: None })
    }
}

fn manifests_of(set: &SetDirectory) -> Vec<Manifest> {
    let points = set.points().unwrap_or_default();
    let points = points.into_iter().map(|number| set.point(number));
    let abandoned = set.abandoned().unwrap_or_default().into_iter().map(|(_, point)| point);
    points.chain(abandoned).filter_map(|point| point.manifest().ok()).collect()
}

/// Writes the manifest of a run into its empty directory and opens its journal.
pub(crate) fn begin(
    directory: RunDirectory,
    new: Manifest,
    started: Timestamp,
) -> Result<RunWriter, StoreError> {
    let (run, started) = (directory.id().to_owned(), started.to_string());
    let manifest = Manifest { format: FORMAT_VERSION.into(), run, started, ..new };
    let journal = manifest::write_json(&directory.path().join(MANIFEST_FILE), &manifest)
        .and_then(|()| create_journal(&directory))
        .inspect_err(|_error| {
            // Nothing was measured yet, so what is left of it would only litter the list.
            let _ = fs::remove_dir_all(directory.path());
        })?;
    files::sync_parent(directory.path())
        .map_err(|error| StoreError::Write { path: directory.path().to_owned(), error })?;
    Ok(RunWriter::new(directory, manifest, journal))
}

/// The journal gets its name when it is locked and has its header, so that no reader ever finds a
/// live run that looks dead.
fn create_journal(directory: &RunDirectory) -> Result<JournalWriter<File>, StoreError> {
    let path = directory.journal_path();
    let draft = files::draft_path(&path);
    let file = match File::create_new(&draft) {
        Ok(file) => file,
        Err(error) => return Err(StoreError::Write { path, error }),
    };
    files::lock(&file, &path, directory.path())?;
    let mut journal = JournalWriter::new(file, path.clone());
    journal.sync()?;
    fs::rename(&draft, &path)
        .and_then(|()| files::sync_parent(&path))
        .map_err(|error| StoreError::Write { path, error })?;
    Ok(journal)
}

/// The name of the newest run or set.
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
        if name.is_empty() {
            return Err(self.not_found(name, candidates));
        }
        let path = PathBuf::from(name);
        if path.join(MANIFEST_FILE).is_file() {
            return Ok(Stored::Run(RunDirectory::at(path)));
        }
        if SetDirectory::holds_set(&path) {
            return Ok(Stored::Set(SetDirectory::at(path)));
        }
        if ImportDirectory::holds_import(&path) {
            return Ok(Stored::Import(ImportDirectory::at(path), None));
        }
        let fits = |found: &&Candidate| found.stored.id().starts_with(name);
        let fitting: Vec<&Candidate> = candidates.iter().filter(fits).collect();
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
