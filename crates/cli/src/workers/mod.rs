//! A load of several workers: `inferometer merge`, and `run --on`, which starts them with a scheduler.
//!
//! A scheduler is what the user has: its own programs are called, and nothing of ours runs besides the
//! workers. All that the workers get is one experiment file, their number and the time of the start.

mod slurm;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode};
use std::time::Duration;

use inferometer_model::fmt::count;
use inferometer_model::spec::{Extent, Grammar};
use inferometer_model::{Spec, Stripe};
use inferometer_runner::measurement::Planned;
use inferometer_runner::merge::merge as merge_runs;
use inferometer_runner::{Session, Worker};
use inferometer_store::RunStore;
use inferometer_target::deploy::secret;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::arguments::{MergeArguments, RunArguments};
use crate::commands::{self, page, run as run_command};
use crate::draft::{Drafted, announce_seed, draft};
use crate::experiment::{self, Layer, config};
use crate::failure::{Failure, Result};
use crate::requirements::{Requirements, with_enough_requests};
use crate::{output, report_files, signals};

/// `inferometer merge`.
pub(crate) fn merge(arguments: &MergeArguments) -> Result<ExitCode> {
    let session = signals::session(usize::MAX, false);
    let run = merge_runs(&commands::store(&arguments.store)?, &arguments.from, &session)?;
    report_files::write_run(&run.directory);
    let format = arguments.page.format();
    output::result(&page(&run.summary, &run.directory, &[], format))?;
    let exit = run_command::exit_of(&run.summary, arguments.strict);
    Ok(exit.map_or(ExitCode::SUCCESS, ExitCode::from))
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
    experiment: String,
    workers: NonZeroU32,
    /// Flags of every worker, as a shell reads them.
    flags: String,
    start_in: Duration,
    /// How long a worker may go on when another has ended.
    apart_max: Duration,
}

/// `inferometer run --on`.
pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode> {
    let RunArguments { experiment: typed, results, workers, .. } = arguments;
    let drafted = draft(typed)?;
    config::announce(results.quiet);
    let spec = with_enough_requests(drafted.resolve()?, &drafted.spec, results)?;
    workers.check(&drafted, arguments)?;
    let requirements = Requirements::for_run(&results.require, &spec)?;
    let mut said = experiment::said(typed, None)?;
    let table = experiment::experiment(&said)?.slurm;
    let number = NonZeroU32::new(table.workers.unwrap_or(2)).unwrap_or(NonZeroU32::MIN);
    // What no worker could do is refused before a job is in a queue.
    let first = Stripe { index: 0, count: number };
    let clock_error_max = Duration::ZERO;
    let worker = Worker { stripe: first, start_ns: 0, clock_error_max };
    let _ = Planned::new(spec.clone())?.shared(worker)?;
    check_no_secret(&said, &typed.headers)?;
    let here = std::env::current_dir().map_err(Failure::from_error)?;
    said.find_files_beside(&here.join("experiment.toml"));
    let clock_error = workers.clock_error.map(|error| format!("--clock-error={}", error.write()));
    let task = Task {
        experiment: experiment_text(&said, &spec, &drafted),
        workers: number,
        flags: clock_error.unwrap_or_default(),
        start_in: table.start_in.map_or(Duration::from_secs(20), |time| time.0),
        apart_max: spec.limits.drain.saturating_add(Duration::from_mins(5)),
    };
    if results.dry_run {
        let script = slurm::script(&task, &table, Path::new("FOLDER"))?;
        output::result(&format!("{script}\n# FOLDER/experiment.toml\n{}", task.experiment))?;
        return Ok(ExitCode::SUCCESS);
    }
    announce_seed(results.quiet);
    let store = commands::store(&results.store)?;
    let session = signals::begin_session(usize::MAX, results.quiet)?;
    let staged = staging(&store)?;
    let unwritten = |error| Failure::from_error(error).about(&staged.display().to_string());
    fs::write(staged.join("experiment.toml"), &task.experiment).map_err(unwritten)?;
    let mut job = slurm::submit(&task, &table, &staged)?;
    let ended = follow(&mut job, &staged, number, &session)?;
    let run = merge_runs(&store, &[staged.join("runs")], &session).map_err(|failure| {
        let logs = format!("the job ended ({ended}); its logs are in {}", staged.display());
        failure.shown(last_lines(&staged)).about(&logs)
    })?;
    // What the workers wrote belongs to the run.
    if let Err(error) = fs::rename(&staged, run.directory.path().join("workers")) {
        session.warn(format!("what the workers wrote stays in {}: {error}", staged.display()));
    }
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
    for table in ["slurm", "sweep", "repeat"] {
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
fn follow(
    job: &mut Child,
    staged: &Path,
    workers: NonZeroU32,
    session: &Session,
) -> Result<String> {
    let (mut tails, mut shown, mut cancelled) = (Tails::default(), String::new(), false);
    loop {
        if let Some(status) = job.try_wait().map_err(Failure::from_error)? {
            return Ok(status.to_string());
        }
        let line = progress(&tails.events(logs(staged).into_iter()), workers);
        if line != shown {
            session.talk(&line);
            shown = line;
        }
        if cancelled {
            std::thread::sleep(LOOK_EVERY);
        } else if session.interruption.wait(LOOK_EVERY).is_some() {
            cancelled = true;
            slurm::cancel(job, staged);
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
