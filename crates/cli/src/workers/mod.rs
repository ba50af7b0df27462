//! A load of several workers: `inferometer merge`, and `--on`, which starts them with a scheduler for each
//! run.
//!
//! A scheduler is what the user has: its own programs are called, and nothing of ours runs besides the
//! workers. All that the workers get is the resolved spec, their number and the time of the start.

mod kubernetes;
#[cfg(not(feature = "object-store"))]
mod no_objects;
#[cfg(feature = "object-store")]
mod objects;
mod slurm;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use inferometer_analysis::Summary;
use inferometer_model::fmt::count;
use inferometer_model::spec::{ClientSpec, Grammar, Time};
use inferometer_model::{Spec, Stripe, file};
use inferometer_runner::measurement::{Planned, Run, RunLocation};
use inferometer_runner::merge::merge as merge_runs;
use inferometer_runner::{Session, Worker};
use inferometer_store::RunStore;
use inferometer_study::play::Workers;
use inferometer_target::deploy::secret;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::kubernetes::Kubernetes;
use self::slurm::Slurm;
use crate::arguments::{
    Experiment, ExperimentArguments, KubernetesTable, MergeArguments, ResultArguments, Scheduler,
    SchedulerArguments, SlurmTable,
};
use crate::commands::{self, page, run as run_command};
use crate::draft::announce_seed;
use crate::failure::{Failure, Result};
use crate::requirements::Requirements;
use crate::secrets::Secrets;
use crate::{experiment, output, report_files, signals};

#[cfg(not(feature = "object-store"))]
pub(crate) use no_objects::Objects;
#[cfg(feature = "object-store")]
pub(crate) use objects::Objects;

/// `inferometer merge`.
pub(crate) fn merge(arguments: &MergeArguments) -> Result<ExitCode> {
    let session = signals::session(usize::MAX, false);
    let store = commands::store(&arguments.store)?;
    let is_here = |from: &&PathBuf| address(from).is_none();
    let location = RunLocation::in_store(&store);
    let run = if arguments.from.iter().all(|from| is_here(&from)) {
        merge_runs(location, &arguments.from, &session)?
    } else {
        let staged = staging(&store)?;
        let merged = merge_fetched(location, &arguments.from, &staged, &session);
        merged.inspect_err(|_| drop(fs::remove_dir_all(&staged)))?
    };
    report_files::write_run(&run.directory);
    let format = arguments.page.format();
    output::result(&page(&run.summary, &run.directory, &[], format))?;
    let exit = run_command::exit_of(&run.summary, arguments.strict);
    Ok(exit.map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// The address of a folder in an object store, if it is one.
fn address(from: &Path) -> Option<&str> {
    from.to_str().filter(|text| text.contains("://"))
}

/// Refuses the address of an object store that holds a key, without repeating it.
fn refuse_key(address: &str) -> Result<()> {
    if address.starts_with("file:") || !address.contains(['@', '?']) {
        return Ok(());
    }
    let what = "the address of an object store must not hold a key: it is stored with the run";
    Err(Failure::usage(what).hint("set the variables of the store's own tools"))
}

/// Merges the runs of workers that are here or in object stores. What was fetched belongs to the run.
fn merge_fetched(
    location: RunLocation<'_>,
    from: &[PathBuf],
    staged: &Path,
    session: &Session,
) -> Result<Run> {
    let mut folders = Vec::new();
    for (number, from) in from.iter().enumerate() {
        match address(from) {
            None => folders.push(from.clone()),
            Some(url) => {
                let objects = Objects::open(url)?;
                session.talk(&format!("fetching the workers' runs from {url} …"));
                folders.extend(objects.download(&staged.join(format!("fetched-{number}")))?);
            }
        }
    }
    let run = merge_runs(location, &folders, session)?;
    if let Err(error) = fs::rename(staged, run.directory.path().join("workers")) {
        session.warn(format!("what the workers wrote stays in {}: {error}", staged.display()));
    }
    Ok(run)
}

/// A new folder in the store for what workers write. It is no run, so no command lists it.
fn staging(store: &RunStore) -> Result<PathBuf> {
    let now = Timestamp::now().to_zoned(TimeZone::UTC).strftime("%Y%m%d-%H%M%S");
    let folder = store.path().join(format!("workers-{now}-{}", std::process::id()));
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    let unmade = |error| Failure::usage(format!("{}: {error}", folder.display()));
    fs::create_dir_all(&folder).map_err(unmade)?;
    Ok(folder)
}

/// What each worker runs.
struct Task {
    /// What the job and the workers write is kept here; the job is named after it.
    folder: PathBuf,
    /// The resolved spec, as JSON.
    spec: String,
    workers: NonZeroU32,
    /// More flags of every worker.
    flags: Vec<String>,
    /// An object store that the workers leave their runs in.
    results: Option<String>,
    /// How long a worker may go on when another has ended.
    apart_max: Duration,
}

impl Task {
    fn name(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy();
        format!("inferometer-{name}")
    }

    /// The command of a worker, without its number and the start.
    fn words(&self, spec: &str, output: &str) -> Vec<String> {
        let words = ["run", "--no-config", "--progress", "json"];
        let files = ["--spec", spec, "--output", output];
        let words = words.into_iter().chain(files).map(str::to_owned);
        let results = self.results_url().map(|url| format!("--results={url}"));
        words.chain(self.flags.iter().cloned()).chain(results).collect()
    }

    /// A folder of the object store for this job alone.
    fn results_url(&self) -> Option<String> {
        let url = self.results.as_ref()?;
        Some(format!("{}/{}", url.trim_end_matches('/'), self.name()))
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        let unwritten = |error| Failure::from_error(error).about(&path.display().to_string());
        fs::write(&path, text).map_err(unwritten)?;
        Ok(path)
    }
}

/// The workers, as a scheduler starts them.
trait Job {
    /// The script or manifest that the scheduler is given.
    fn text(&self) -> Result<String>;
    fn submit(&mut self) -> Result<()>;
    /// How it ended; `None` while it goes on. What the workers print is in files of its folder.
    fn ended(&mut self, session: &Session) -> Result<Option<String>>;
    fn cancel(&mut self);
    /// The folder of the workers' runs.
    fn runs(&self) -> PathBuf;
}

/// How the workers of each run are started.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Scheduled {
    scheduler: Scheduler,
    slurm: SlurmTable,
    kubernetes: KubernetesTable,
    clock_error: Option<Time>,
    /// An object store that the workers leave their runs in.
    results: Option<String>,
}

impl Scheduled {
    /// `None` where this process sends the load itself.
    pub(crate) fn new(
        asked: &SchedulerArguments,
        typed: &ExperimentArguments,
    ) -> Result<Option<Self>> {
        let SchedulerArguments { on, clock_error, ref results } = *asked;
        let Some(scheduler) = on else {
            return match results {
                None => Ok(None),
                Some(_) => Err(Failure::usage("--results is for workers")
                    .hint("give it with --stripe or --on; the folder of other runs is --output")),
            };
        };
        let Experiment { slurm, kubernetes, .. } =
            experiment::experiment(&experiment::said(typed, None)?)?;
        let of_table = (scheduler == Scheduler::Kubernetes).then(|| kubernetes.results.clone());
        let results = results.clone().or(of_table.flatten());
        results.as_deref().map(refuse_key).transpose()?;
        Ok(Some(Self { scheduler, slurm, kubernetes, clock_error, results }))
    }

    /// Those of a set that is resumed.
    pub(crate) fn from_settings(settings: Value) -> Result<Box<dyn Workers>> {
        serde_json::from_value(settings).map(Self::boxed).map_err(Failure::from_usage)
    }

    pub(crate) fn boxed(self) -> Box<dyn Workers> {
        Box::new(self)
    }

    fn count(&self) -> NonZeroU32 {
        let workers = match self.scheduler {
            Scheduler::Kubernetes => self.kubernetes.workers,
            Scheduler::Slurm => self.slurm.workers,
        };
        NonZeroU32::new(workers.unwrap_or(2)).unwrap_or(NonZeroU32::MIN)
    }

    fn job<'a>(&'a self, task: &'a Task) -> Box<dyn Job + 'a> {
        match self.scheduler {
            Scheduler::Kubernetes => Box::new(Kubernetes::new(task, &self.kubernetes)),
            Scheduler::Slurm => Box::new(Slurm::new(task, &self.slurm)),
        }
    }

    /// The spec and the job are files, so they may hold no key.
    fn task(&self, folder: PathBuf, spec: &Spec, secrets: &Secrets) -> Result<Task> {
        let tree = serde_json::to_value(spec).map_err(Failure::from_error)?;
        if !secrets.header_names.is_empty() || !secret::typed_in(&tree).is_empty() {
            let what = "a header or key that was typed would be in a file of the job";
            return Err(Failure::usage(what).hint(
                "use --api-key-file with a file that every worker can read, or OPENAI_API_KEY in the \
                 environment of the workers",
            ));
        }
        let clock_error = self.clock_error.map(|error| format!("--clock-error={}", error.write()));
        let key_file = secrets.key_file.as_ref();
        let key_file = key_file.map(|path| format!("--api-key-file={}", path.display()));
        Ok(Task {
            folder,
            spec: format!("{tree:#}\n"),
            workers: self.count(),
            flags: clock_error.into_iter().chain(key_file).collect(),
            results: self.results.clone(),
            apart_max: spec.limits.drain.saturating_add(Duration::from_mins(5)),
        })
    }

    /// `inferometer run --on`.
    pub(crate) fn run(
        &self,
        spec: &Spec,
        secrets: &Secrets,
        requirements: &Requirements,
        results: &ResultArguments,
    ) -> Result<ExitCode> {
        self.check(spec, secrets)?;
        if results.dry_run {
            let task = self.task(PathBuf::from("workers"), spec, secrets)?;
            output::result(&self.job(&task).text()?)?;
            return Ok(ExitCode::SUCCESS);
        }
        announce_seed(results.quiet);
        let store = commands::store(&results.store)?;
        let session = signals::begin_session(usize::MAX, results.quiet)?;
        let run = self.measure(spec, secrets, RunLocation::in_store(&store), &session)?;
        run_command::show(run, requirements, results, &session)
    }

    /// Submits the job, follows it to its end, and merges what its workers stored.
    fn measure(
        &self,
        spec: &Spec,
        secrets: &Secrets,
        location: RunLocation<'_>,
        session: &Session,
    ) -> Result<Run> {
        self.results.as_deref().map(Objects::open).transpose()?;
        let mut task = self.task(PathBuf::new(), spec, secrets)?;
        task.folder = staging(location.store)?;
        task.write("spec.json", &task.spec)?;
        let mut job = self.job(&task);
        job.submit()?;
        let ended = follow(job.as_mut(), &task, session)?;
        let staged = &task.folder;
        let from = task.results_url().map_or_else(|| job.runs(), PathBuf::from);
        merge_fetched(location, &[from], staged, session).map_err(|failure| {
            let logs = format!("the job ended ({ended}); its logs are in {}", staged.display());
            failure.shown(last_lines(staged)).about(&logs)
        })
    }
}

impl Workers for Scheduled {
    fn check(&self, spec: &Spec, secrets: &Secrets) -> Result<()> {
        let first = Stripe { index: 0, count: self.count() };
        let worker = Worker { stripe: first, start_ns: 0, clock_error_max: None };
        drop(Planned::new(spec.clone())?.shared(worker)?);
        let task = self.task(PathBuf::from("workers"), spec, secrets)?;
        self.job(&task).text().map(drop)
    }

    fn measure(
        &self,
        spec: &Spec,
        secrets: &Secrets,
        location: RunLocation<'_>,
        session: &Session,
    ) -> Result<Summary> {
        Ok(Self::measure(self, spec, secrets, location, session)?.summary)
    }

    fn settings(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// Of one worker's spec file, played with the cores of this machine.
pub(crate) fn read_spec(path: &Path, own: &ClientSpec) -> Result<Spec> {
    let unread = |error: String| Failure::usage(format!("{}: {error}", path.display()));
    let text = file::read_text(path, SPEC_BYTES_MAX).map_err(|error| unread(error.to_string()))?;
    let mut spec: Spec = serde_json::from_str(&text).map_err(|error| unread(error.to_string()))?;
    if spec.client.drivers_by_load {
        spec.client.drivers.clone_from(&own.drivers);
    }
    Ok(spec)
}

/// A prompt, tools and a schema may be in it.
const SPEC_BYTES_MAX: u64 = 16 << 20;

/// Looks at the job and its workers.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Follows a job to its end, and returns how it ended. A signal cancels the job; what its workers
/// stored until then is merged.
fn follow(job: &mut dyn Job, task: &Task, session: &Session) -> Result<String> {
    let (mut tails, mut shown, mut cancelled) = (Tails::default(), String::new(), false);
    loop {
        if let Some(ended) = job.ended(session)? {
            return Ok(ended);
        }
        let line = progress(&tails.events(logs(&task.folder).into_iter()), task.workers);
        if line != shown {
            session.talk(&line);
            shown = line;
        }
        if cancelled {
            std::thread::sleep(LOOK_EVERY);
        } else if session.interruption.wait(LOOK_EVERY).is_some() {
            cancelled = true;
            job.cancel();
        }
    }
}

/// The progress of all workers as one line.
fn progress(events: &[Value], workers: NonZeroU32) -> String {
    let ticks = || events.iter().filter_map(|event| event.get("progress"));
    let sum = |key: &str| ticks().filter_map(|tick| tick[key].as_u64()).sum::<u64>();
    let ended = events.iter().filter(|event| event["event"] == "finished").count();
    let [ok, failed, in_flight] = ["ok", "failed", "in_flight"].map(|key| count(sum(key)));
    format!(
        "{} of {workers} workers send, {ended} are done: {ok} ok, {failed} failed, {in_flight} in flight",
        ticks().count()
    )
}

/// What workers wrote into files of their own, read as it grows.
#[derive(Default)]
struct Tails {
    /// How far each file was read, the line that is not complete yet, and the last event.
    files: BTreeMap<PathBuf, (u64, String, Option<Value>)>,
}

impl Tails {
    fn events(&mut self, files: impl Iterator<Item = PathBuf>) -> Vec<Value> {
        for path in files {
            let (read, line, last) = self.files.entry(path.clone()).or_default();
            let mut bytes = Vec::new();
            let more = fs::File::open(&path).and_then(|mut file| {
                file.seek(SeekFrom::Start(*read))?;
                file.take(1 << 20).read_to_end(&mut bytes)
            });
            *read += more.unwrap_or(0) as u64;
            line.push_str(&String::from_utf8_lossy(&bytes));
            if let Some((whole, rest)) = line.rsplit_once('\n') {
                let is_shown =
                    |event: &Value| event.get("progress").is_some() || event["event"] == "finished";
                let events = whole.lines().rev().filter_map(|line| serde_json::from_str(line).ok());
                *last = events.into_iter().find(is_shown).or(last.take());
                *line = rest.to_owned();
            }
        }
        self.files.values().filter_map(|(_, _, last)| last.clone()).collect()
    }
}

/// The logs of the workers and of their job.
fn logs(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_log = |path: &PathBuf| path.extension().is_some_and(|it| it == "log" || it == "jsonl");
    let mut logs: Vec<PathBuf> = entries.filter(is_log).collect();
    logs.sort();
    logs
}

/// The last lines of the logs in a folder.
fn last_lines(folder: &Path) -> Vec<String> {
    let last = |path: PathBuf| {
        let text = inferometer_model::file::read_text(&path, 16 << 20).ok()?;
        let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
        Some(format!("{}: {line}", path.file_name()?.to_string_lossy()))
    };
    logs(folder).into_iter().filter_map(last).take(8).collect()
}

#[cfg(test)]
mod tests;
