//! A load of several workers: `inferometer merge`, and `run --on`, which starts them with a scheduler.
//!
//! A scheduler is what the user has: its own programs are called, and nothing of ours runs besides the
//! workers. All that the workers get is one experiment file, their number and the time of the start.

mod kubernetes;
#[cfg(not(feature = "object-store"))]
mod no_objects;
#[cfg(feature = "object-store")]
mod objects;
mod slurm;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use inferometer_model::fmt::count;
use inferometer_model::spec::{Extent, Grammar};
use inferometer_model::{Spec, Stripe};
use inferometer_runner::measurement::{Planned, Run};
use inferometer_runner::merge::merge as merge_runs;
use inferometer_runner::{Session, Worker};
use inferometer_store::RunStore;
use inferometer_target::deploy::secret;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::arguments::{Experiment, MergeArguments, RunArguments, Scheduler};
use crate::commands::{self, page, run as run_command};
use crate::draft::{Drafted, announce_seed, draft};
use crate::experiment::{self, Layer, config};
use crate::failure::{Failure, Result};
use crate::requirements::{Requirements, with_enough_requests};
use crate::{output, report_files, signals};

#[cfg(not(feature = "object-store"))]
pub(crate) use no_objects::Objects;
#[cfg(feature = "object-store")]
pub(crate) use objects::Objects;

/// `inferometer merge`.
pub(crate) fn merge(arguments: &MergeArguments) -> Result<ExitCode> {
    let session = signals::session(usize::MAX, false);
    let store = commands::store(&arguments.store)?;
    let is_here = |from: &&PathBuf| address(from).is_none();
    let run = if arguments.from.iter().all(|from| is_here(&from)) {
        merge_runs(&store, &arguments.from, &session)?
    } else {
        let staged = staging(&store)?;
        let merged = merge_fetched(&store, &arguments.from, &staged, &session);
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
    store: &RunStore,
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
    let run = merge_runs(store, &folders, session)?;
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
    experiment: String,
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
    fn words(&self, experiment: &str, output: &str) -> Vec<String> {
        let words = ["run", "--no-config", "--progress", "json"];
        let files = ["--experiment", experiment, "--output", output];
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

impl Scheduler {
    fn workers(self, tables: &Experiment) -> NonZeroU32 {
        let workers = match self {
            Self::Kubernetes => tables.kubernetes.workers,
            Self::Slurm => tables.slurm.workers,
        };
        NonZeroU32::new(workers.unwrap_or(2)).unwrap_or(NonZeroU32::MIN)
    }

    /// The object store of its table.
    fn results(self, tables: &Experiment) -> Option<String> {
        match self {
            Self::Kubernetes => tables.kubernetes.results.clone(),
            Self::Slurm => None,
        }
    }

    fn job<'a>(self, task: &'a Task, tables: &'a Experiment) -> Box<dyn Job + 'a> {
        match self {
            Self::Kubernetes => Box::new(kubernetes::Kubernetes::new(task, &tables.kubernetes)),
            Self::Slurm => Box::new(slurm::Slurm::new(task, &tables.slurm)),
        }
    }
}

/// `inferometer run --on`.
pub(crate) fn run(arguments: &RunArguments, scheduler: Scheduler) -> Result<ExitCode> {
    let RunArguments { experiment: typed, results, workers, .. } = arguments;
    let drafted = draft(typed)?;
    config::announce(results.quiet);
    let spec = with_enough_requests(drafted.resolve()?, &drafted.spec, results)?;
    workers.check(&drafted, arguments)?;
    let requirements = Requirements::for_run(&results.require, &spec)?;
    let mut said = experiment::said(typed, None)?;
    let tables = experiment::experiment(&said)?;
    let number = scheduler.workers(&tables);
    // What no worker could do is refused before a job is in a queue.
    let first = Stripe { index: 0, count: number };
    let worker = Worker { stripe: first, start_ns: 0, clock_error_max: None };
    let _ = Planned::new(spec.clone())?.shared(worker)?;
    check_no_secret(&said, &typed.headers)?;
    if scheduler == Scheduler::Slurm {
        let here = std::env::current_dir().map_err(Failure::from_error)?;
        said.find_files_beside(&here.join("experiment.toml"));
    }
    let clock_error = workers.clock_error.map(|error| format!("--clock-error={}", error.write()));
    let mut task = Task {
        folder: PathBuf::from("workers"),
        experiment: experiment_text(&said, &spec, &drafted),
        workers: number,
        flags: clock_error.into_iter().collect(),
        results: workers.results.clone().or_else(|| scheduler.results(&tables)),
        apart_max: spec.limits.drain.saturating_add(Duration::from_mins(5)),
    };
    task.results.as_deref().map(refuse_key).transpose()?;
    let shown = scheduler.job(&task, &tables).text()?;
    if results.dry_run {
        output::result(&shown)?;
        return Ok(ExitCode::SUCCESS);
    }
    task.results.as_deref().map(Objects::open).transpose()?;
    announce_seed(results.quiet);
    let store = commands::store(&results.store)?;
    let session = signals::begin_session(usize::MAX, results.quiet)?;
    task.folder = staging(&store)?;
    task.write("experiment.toml", &task.experiment)?;
    let mut job = scheduler.job(&task, &tables);
    job.submit()?;
    let ended = follow(job.as_mut(), &task, &session)?;
    let staged = &task.folder;
    let from = task.results_url().map_or_else(|| job.runs(), PathBuf::from);
    let run = merge_fetched(&store, &[from], staged, &session).map_err(|failure| {
        let logs = format!("the job ended ({ended}); its logs are in {}", staged.display());
        failure.shown(last_lines(staged)).about(&logs)
    })?;
    run_command::show(run, &requirements, results, &session)
}

/// The experiment and the job are files, so they may hold no key.
fn check_no_secret(said: &Layer, headers: &[String]) -> Result<()> {
    if headers.is_empty() && secret::typed_in(&said.tree).is_empty() {
        return Ok(());
    }
    Err(Failure::usage("a header or key that was typed would be in a file of the job").hint(
        "use --api-key-file with a file that every worker can read, or OPENAI_API_KEY in the \
         environment of the workers",
    ))
}

/// The experiment as a file that leaves nothing to be drawn or found.
fn experiment_text(said: &Layer, spec: &Spec, drafted: &Drafted) -> String {
    let mut tree = said.tree.clone();
    for table in ["slurm", "kubernetes", "sweep", "repeat"] {
        tree.as_object_mut().and_then(|tree| tree.remove(table));
    }
    if drafted.spec.saved.is_none() {
        tree["workload"]["seed"] = spec.seed.into();
        let load = &drafted.spec.load;
        if let Extent::Requests(requests) = spec.load.extent
            && load.requests.is_none()
            && load.duration.is_none()
        {
            tree["load"]["requests"] = requests.get().into();
        }
    }
    let tables = tree.as_object().into_iter().flatten();
    tables.fold(String::new(), |mut text, (table, keys)| {
        let _ = writeln!(text, "[{table}]");
        for (key, value) in keys.as_object().into_iter().flatten() {
            let _ = writeln!(text, "{} = {}", Value::from(key.as_str()), toml_value(value));
        }
        text + "\n"
    })
}

/// A value in TOML: texts, numbers and lists are written as in JSON.
fn toml_value(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml_value).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(keys) => {
            let keys = keys.iter().filter(|(_, value)| !value.is_null());
            let key = |(key, value): (&String, &Value)| {
                format!("{} = {}", Value::from(key.as_str()), toml_value(value))
            };
            format!("{{ {} }}", keys.map(key).collect::<Vec<_>>().join(", "))
        }
        // JSON leaves this sign as it is, and TOML does not allow it.
        Value::String(_) => value.to_string().replace('\u{7f}', "\\u007f"),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

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
