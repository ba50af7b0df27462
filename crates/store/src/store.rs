//! The place where runs and sets are kept: making them, listing them, and what was sent before.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use inferometer_model::import::{ForeignFile, ImportManifest, ImportReading};
use inferometer_model::spec::Source;
use inferometer_model::study::{SetManifest, StudySpec};
use inferometer_model::{BaseUrl, Manifest, Redactor, Spec};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Result, StoreError};
use crate::files::{self, ManifestFile};
use crate::run::{MANIFEST, RunDirectory, RunState, RunWriter};
use crate::set::{IMPORT, ImportDirectory, SET, SetDirectory, number_of};

const TOOL_VERSION: &str = env!("CARGO_PKG_VERSION");
/// How long a server is taken to remember prompts: longer than from one night to the next, or over a weekend.
const CACHE_MEMORY_NS: u64 = 4 * 24 * 3_600 * 1_000_000_000;

/// A directory of runs. It need not exist before the first run is made.
#[derive(Clone, Debug)]
pub struct RunStore {
    path: PathBuf,
    /// Struck out of every manifest.
    secrets: Redactor,
}

/// All that a store holds, of each kind the newest first; what cannot be read comes last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listings {
    /// Runs that are in no set.
    pub runs: Vec<Listing<RunDirectory, Manifest>>,
    pub sets: Vec<Listing<SetDirectory, SetManifest>>,
    pub imports: Vec<Listing<ImportDirectory, ImportManifest>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Listing<D, M> {
    pub directory: D,
    pub state: RunState,
    /// `None` when it cannot be read; the state explains why.
    pub manifest: Option<M>,
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
    pub fn open(path: PathBuf) -> Result<Self> {
        match fs::metadata(&path) {
            Ok(found) if !found.is_dir() => {
                Err(StoreError::NotWritable { path, error: ErrorKind::NotADirectory.into() })
            }
            Ok(_) => Ok(Self { path, secrets: Redactor::default() }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Ok(Self { path, secrets: Redactor::default() })
            }
            Err(error) => Err(StoreError::Read { path, error }),
        }
    }

    /// The same store, which strikes these secrets out of what is stored.
    #[must_use]
    pub fn hiding(mut self, secrets: &Redactor) -> Self {
        self.secrets = self.secrets.merge(secrets);
        self
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A value as it may be stored here.
    pub fn redacted<T: Serialize + DeserializeOwned>(&self, value: T) -> Result<T> {
        let drafted = |error| StoreError::ManifestDraft { path: self.path.clone(), error };
        self.secrets.redact_value(value).map_err(drafted)
    }

    /// The files of a folder that hold one of the secrets all the same.
    pub fn exposed(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        if self.secrets.longest() == 0 {
            return Ok(found);
        }
        let paths =
            if folder.is_file() { vec![folder.to_path_buf()] } else { files::paths_in(folder)? };
        for path in paths {
            let is_exposed = path.is_file() && files::holds_secret(&path, &self.secrets)?;
            found.extend(is_exposed.then_some(path));
        }
        Ok(found)
    }

    /// Fails when no run could be made here. For the time before a server is started or asked.
    pub fn check_writable(&self) -> Result<()> {
        let probe = files::draft_path(&self.path.join("probe"));
        fs::create_dir_all(&self.path)
            .and_then(|()| File::create_new(&probe))
            .and_then(|_file| fs::remove_file(&probe))
            .map_err(|error| self.not_writable(error))
    }

    /// Makes the run's directory, writes its manifest, and opens and locks its journal.
    /// Its wall time names the run; the format, the name and the start of `new` are written here.
    pub fn create(&self, new: Manifest) -> Result<RunWriter> {
        let new = self.redacted(new)?;
        let asked = new.fingerprints.plan.as_bytes();
        let (_, started, path) = self.claim(asked, new.clock.realtime_ns)?;
        RunWriter::begin(RunDirectory::at(path), new, started)
    }

    /// Makes a set's directory and writes what it asks. It has no point yet. The wall time names it;
    /// `key_files` has one for each condition, or none at all (see [`SetManifest`]).
    pub fn create_set(
        &self,
        study: StudySpec,
        simulated: bool,
        key_files: Vec<Option<PathBuf>>,
        workers: Option<Value>,
        realtime_ns: u64,
    ) -> Result<SetDirectory> {
        let (set, started, path) = self.claim(&study.seed.to_le_bytes(), realtime_ns)?;
        let manifest = SetManifest {
            format: SET.format,
            set,
            started: started.to_string(),
            tool_version: TOOL_VERSION.to_owned(),
            simulated,
            study: self.redacted(study)?,
            key_files,
            workers,
        };
        self.describe(&path, &SET, &manifest)?;
        Ok(SetDirectory::at(path))
    }

    /// Keeps a foreign file as it is. What it was mapped to is written by the caller.
    pub fn create_import(
        &self,
        file: ForeignFile,
        reading: ImportReading,
        realtime_ns: u64,
        foreign: &[u8],
    ) -> Result<ImportDirectory> {
        let (import, started, path) = self.claim(file.sha256.as_bytes(), realtime_ns)?;
        let directory = ImportDirectory::at(path);
        let manifest = ImportManifest {
            format: IMPORT.format,
            import,
            imported: started.to_string(),
            tool_version: TOOL_VERSION.to_owned(),
            file,
            reading,
        };
        // The manifest last: with it an import is whole.
        files::write_atomically(&directory.foreign_path(), foreign)
            .inspect_err(|_error| drop(fs::remove_dir_all(directory.path())))?;
        self.describe(directory.path(), &IMPORT, &manifest)?;
        Ok(directory)
    }

    /// Writes the manifest of a new directory. Without it the directory would only litter the list,
    /// so it is removed then.
    fn describe(&self, path: &Path, file: &ManifestFile, manifest: &impl Serialize) -> Result<()> {
        file.write(path, manifest).inspect_err(|_error| drop(fs::remove_dir_all(path)))?;
        files::sync_parent(path).map_err(|error| self.not_writable(error))
    }

    /// All runs, sets and imports. Files and directories that are none of them are passed over.
    pub fn list(&self) -> Result<Listings> {
        let mut all = Listings::default();
        for Candidate { stored, manifest, .. } in self.candidates()? {
            match stored {
                Stored::Run(directory) => {
                    all.runs.push(Listing { state: directory.state(), manifest, directory });
                }
                Stored::Set(directory) => {
                    let (state, manifest) = (directory.state(), directory.manifest().ok());
                    all.sets.push(Listing { directory, state, manifest });
                }
                Stored::Import(directory, _) => {
                    let (state, manifest) = (directory.state(), directory.manifest().ok());
                    all.imports.push(Listing { directory, state, manifest });
                }
            }
        }
        Ok(all)
    }

    /// The newest run of the last days that may have sent the same prompts to the same model: the
    /// same plan, or words drawn from the same seed. A prefix cache may know them.
    pub fn sent_before(
        &self,
        spec: &Spec,
        plan: &str,
        base: &BaseUrl,
        model: &str,
        now_ns: u64,
    ) -> Option<String> {
        let is_recent =
            |it: &Manifest| now_ns.saturating_sub(it.clock.realtime_ns) < CACHE_MEMORY_NS;
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
            // Workers that share a plan send different parts of it.
            .filter(|manifest| manifest.stripe.is_none())
            .filter(is_recent)
            .find(is_alike)
            .map(|manifest| manifest.run)
    }

    /// All runs that may be of the last days, those of sets among them, and those of sets that
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
            let stamped = files::stamped_ns(&files::directory_id(&path));
            // The stamp is cut to the second.
            let is_old = stamped.is_some_and(|at| at.saturating_add(1_000_000_000) < earliest_ns);
            if is_old { Vec::new() } else { Vec::from_iter(RunDirectory::at(path).manifest().ok()) }
        };
        paths.flat_map(of_one).collect()
    }

    /// Takes an id that no other run has: making a directory is the one step that two processes
    /// cannot both do. What is `asked` distinguishes those of the same second.
    fn claim(&self, asked: &[u8], realtime_ns: u64) -> Result<(String, Timestamp, PathBuf)> {
        let started = files::timestamp(realtime_ns)?;
        let stamp = files::stamp(started);
        let distinction = files::distinction(asked, std::process::id(), realtime_ns);
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
    pub(crate) fn candidates(&self) -> Result<Vec<Candidate>> {
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
        let nanos = |started: String| {
            u64::try_from(started.parse::<Timestamp>().ok()?.as_nanosecond()).ok()
        };
        let stored = Stored::at(path)?;
        let started = match &stored {
            Stored::Run(directory) => {
                let manifest = directory.manifest().ok();
                let started_ns = manifest.as_ref().map(|manifest| manifest.clock.realtime_ns);
                return Some(Self { stored, started_ns, manifest });
            }
            Stored::Import(import, _) => import.manifest().ok().map(|manifest| manifest.imported),
            Stored::Set(set) => set.manifest().ok().map(|manifest| manifest.started),
        };
        Some(Self { stored, started_ns: started.and_then(nanos), manifest: None })
    }
}

fn manifests_of(set: &SetDirectory) -> Vec<Manifest> {
    let points = set.points().unwrap_or_default();
    let points = points.into_iter().map(|number| set.point(number));
    let abandoned = set.abandoned().unwrap_or_default().into_iter().map(|(_, point)| point);
    points.chain(abandoned).filter_map(|point| point.manifest().ok()).collect()
}

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
    /// What is stored in a folder; `None` where it is neither a run, a set nor an import. No manifest
    /// is read for this.
    pub fn at(path: PathBuf) -> Option<Self> {
        if RunDirectory::holds_run(&path) {
            Some(Self::Run(RunDirectory::at(path)))
        } else if ImportDirectory::holds_import(&path) {
            Some(Self::Import(ImportDirectory::at(path), None))
        } else if SetDirectory::held_set(&path) {
            Some(Self::Set(SetDirectory::at(path)))
        } else {
            None
        }
    }

    pub fn path(&self) -> &Path {
        match self {
            Self::Run(run) => run.path(),
            Self::Set(set) => set.path(),
            Self::Import(import, _) => import.path(),
        }
    }

    pub fn id(&self) -> &str {
        match self {
            Self::Run(run) => run.id(),
            Self::Set(set) => set.id(),
            Self::Import(import, _) => import.id(),
        }
    }
}

impl RunStore {
    /// The run or set that `name` means: an id, the beginning of exactly one id, `latest`, the path
    /// of a directory, or `SET/N` for a point of a set. Only an explicit path leads out of the
    /// store.
    pub fn find(&self, name: &str) -> Result<Stored> {
        self.find_usable(name, |_| true)
    }

    /// The same for a command that can use only some of them: `latest` is the newest that it can.
    pub fn find_usable(&self, name: &str, is_usable: impl Fn(&Stored) -> bool) -> Result<Stored> {
        let mut candidates = self.candidates()?;
        if name.split('/').next() == Some("latest") {
            let all = candidates.len();
            candidates.retain(|found| is_usable(&found.stored));
            if candidates.is_empty() && 0 < all {
                let known = format!("this command can use none of the {all} that are there");
                let (name, path) = (name.to_owned(), self.path().to_owned());
                return Err(StoreError::NotFound { name, path, known });
            }
        }
        let point_of_set = name.rsplit_once('/').and_then(|(set, n)| Some((set, number_of(n)?)));
        match (self.find_whole(&candidates, name), point_of_set) {
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

    fn find_whole(&self, candidates: &[Candidate], name: &str) -> Result<Stored> {
        // The name of the newest run or set.
        if name == "latest" {
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
        if path.join(MANIFEST.name).is_file() {
            return Ok(Stored::Run(RunDirectory::at(path)));
        }
        if path.join(SET.name).is_file() {
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
            "there are no runs yet: make one with `inferometer run`, or name their folder with --output"
                .to_owned()
        } else {
            format!("there are {}", shown(candidates.iter().map(|found| found.stored.id())))
        };
        StoreError::NotFound { name: name.to_owned(), path: self.path().to_owned(), known }
    }
}

fn point(set: &SetDirectory, number: u32) -> Result<RunDirectory> {
    let points = set.points()?;
    if points.contains(&number) {
        return Ok(set.point(number));
    }
    let names: Vec<String> = points.iter().map(u32::to_string).collect();
    let names = if names.is_empty() { vec!["none yet".to_owned()] } else { names };
    let known = shown(names.iter().map(String::as_str));
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
    let mut readable = candidates.iter().filter(|found| found.started_ns.is_some());
    // The share of a worker is not meant where there is a run that stands for itself.
    let is_whole =
        |found: &&Candidate| found.manifest.as_ref().is_none_or(|it| it.stripe.is_none());
    let readable = readable.clone().find(is_whole).or_else(|| readable.next());
    let is_newer = |found: &&Candidate| {
        readable.is_none_or(|readable| readable.stored.id() < found.stored.id())
    };
    let broken = candidates
        .iter()
        .filter(|found| found.started_ns.is_none() && files::is_run_id(found.stored.id()))
        .filter(is_newer)
        .max_by_key(|found| found.stored.id().to_owned());
    broken.or(readable)
}
