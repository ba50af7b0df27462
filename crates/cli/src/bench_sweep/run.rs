//! One run of a sweep: `bench serve` in a process of its own, and the folder of all results, laid out
//! as `vllm bench sweep serve` lays it out, because its plot tools read it.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use indexmap::IndexMap;
use inferometer_store::{read_at_most, write_atomically};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::parameters::Combination;
use super::plan::{Plan, shown};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::signals::Interruption;

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Its figures are kept, and the sweep ends with the same code.
const INVALID: i32 = Exit::RunInvalid as i32;

pub(super) struct Run<'a> {
    pub(super) server: &'a Combination,
    pub(super) load: &'a Combination,
    /// `None` of the warm-up, which counts for nothing.
    pub(super) number: Option<u32>,
    pub(super) file: PathBuf,
}

impl Run<'_> {
    /// The result of a run that completed.
    pub(super) fn measure(
        &self,
        plan: &Plan<'_>,
        interruption: &Interruption,
    ) -> Result<RunData, Failure> {
        let failed = |error: io::Error| Failure::internal(format!("bench serve: {error}"));
        let part = Part::beside(&self.file);
        let words = plan.bench_words(self.load, &part.0);
        output::talk(&format!("bench serve {}", shown(&words)));
        let show = if plan.typed.show_stdout { Stdio::inherit } else { Stdio::null };
        let mut child = Command::new(std::env::current_exe().map_err(failed)?)
            .args(["bench", "serve"])
            .args(&words)
            .stdin(Stdio::null())
            .stdout(show())
            // A group of its own: it receives each signal once, from us.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let _companion = interruption.accompanied_by_child(&child);
        let status = await_end(&mut child, interruption).map_err(failed)?;
        // A run that was cut says so by its code, and what it measured is no result of the sweep.
        let data = match status.code() {
            Some(0 | INVALID) => read_result(&part.0)?,
            _ => None,
        };
        match (data, interruption.exit()) {
            (Some(data), _) => Ok(self.with_parameters(data)),
            (None, Some(exit)) => Err(Failure::interrupted(exit)),
            (None, None) => {
                Err(Failure::target(format!("bench serve ended with {status} and no result")))
            }
        }
    }

    /// The result that is there already. A warm-up is made again: the server is another one.
    pub(super) fn read(&self) -> Result<Option<RunData>, Failure> {
        if self.number.is_none() {
            return Ok(None);
        }
        Ok(read_result(&self.file)?.map(|data| self.with_parameters(data)))
    }

    /// Where it is noted that it failed.
    pub(super) fn failure_file(&self) -> PathBuf {
        self.file.with_extension("failure.json")
    }

    fn with_parameters(&self, mut data: RunData) -> RunData {
        data.insert("run_number".to_owned(), self.number.map_or((-1).into(), Into::into));
        data.extend(self.server.entries());
        data.extend(self.load.entries());
        data
    }
}

/// The file that a run writes. Only what is read from it becomes a result, so that a run that was
/// cut is never taken for one.
struct Part(PathBuf);

impl Part {
    fn beside(file: &Path) -> Self {
        let part = Self(file.with_extension("part.json"));
        part.remove();
        part
    }

    fn remove(&self) {
        // Mostly it is not there.
        let _ = fs::remove_file(&self.0);
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Every signal is passed on: by the first the run drains, by the second it cuts.
fn await_end(child: &mut Child, interruption: &Interruption) -> io::Result<ExitStatus> {
    let mut passed_on = 0;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let Some(signal) = interruption.next(passed_on, LOOK_EVERY) else { continue };
        passed_on += 1;
        if let (Ok(child), Ok(signal)) = (i32::try_from(child.id()), Signal::try_from(signal)) {
            // It may have ended by itself meanwhile.
            let _ = kill(Pid::from_raw(child), signal);
        }
    }
}

const RESULT_BYTES_MAX: u64 = 1 << 30;

/// One result: the JSON of a run, with the parameters that it was made with.
/// In the order of its file, which is the order of the columns of a table.
pub(super) type RunData = IndexMap<String, Value>;

#[derive(Clone, Debug)]
pub(super) struct Experiment {
    folder: PathBuf,
}

impl Experiment {
    /// A new folder, or with `resume` one that is there.
    pub(super) fn open(folder: PathBuf, resume: bool) -> Result<Self, Failure> {
        let shown = folder.display();
        match (folder.exists(), resume) {
            (true, false) => Err(Failure::usage(format!("{shown} is there already"))
                .hint("resume it with --resume, or name another with --experiment-name")),
            (false, true) => Err(Failure::usage(format!("{shown} is not there to be resumed"))
                .hint("name it with --output-dir and --experiment-name")),
            (true, true) | (false, false) => Ok(Self { folder }),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the runs of a combination go.
    pub(super) fn pair_folder(&self, serve: &Combination, bench: &Combination) -> PathBuf {
        let mut parts = Vec::new();
        for (side, combination) in [("SERVE-", serve), ("BENCH-", bench)] {
            if !combination.is_empty() {
                parts.extend([side.to_owned(), combination.name()]);
            }
        }
        self.folder.join(file_name(&parts.join("-")))
    }

    pub(super) fn server_log(&self, serve: &Combination) -> PathBuf {
        let name = if serve.is_empty() { "default".to_owned() } else { serve.name() };
        self.folder.join(file_name(&format!("SERVE-{name}.log")))
    }
}

/// As vLLM makes names of files, so that its own results can be gone on with.
fn file_name(text: &str) -> String {
    text.replace('/', "_").replace("..", "__").trim_matches('\'').trim_matches('"').to_owned()
}

pub(super) fn run_file(pair: &Path, number: u32) -> PathBuf {
    pair.join(format!("run={number}.json"))
}

/// Whether any of so many runs is not there.
pub(super) fn lacks_runs(pair: &Path, runs: u32) -> bool {
    (0..runs).any(|number| !run_file(pair, number).exists())
}

pub(super) fn summary_file(pair: &Path) -> PathBuf {
    pair.join("summary.json")
}

/// `None` where there is no such file.
pub(super) fn read_result(path: &Path) -> Result<Option<RunData>, Failure> {
    let failed = |why: String| {
        Failure::usage(format!("{}: {why}", path.display()))
            .hint("remove it, and the run is made again")
    };
    let bytes =
        read_at_most(path, RESULT_BYTES_MAX).map_err(|error| Failure::usage(error.to_string()))?;
    let Some(bytes) = bytes else { return Ok(None) };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| failed(format!("is not the JSON of a result: {error}")))
}

pub(super) fn write_result(path: &Path, document: &impl serde::Serialize) -> Result<(), Failure> {
    let json = serde_json::to_vec_pretty(document)
        .map_err(|error| Failure::internal(format!("{}: {error}", path.display())))?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::usage(format!("{}: {error}", folder.display())))?;
    }
    Ok(write_atomically(path, &json)?)
}

#[cfg(test)]
mod tests {
    use super::super::parameters;
    use super::*;

    #[test]
    fn folders_are_named_as_the_plot_tools_expect() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("p.json");
        std::fs::write(&file, r#"[{"model": "../org/name", "n": 1}]"#).unwrap();
        let serve = &parameters::read("--serve-params", Some(&file)).unwrap()[0];
        let bench = Combination::default();
        let experiment = Experiment::open(folder.path().join("e"), false).unwrap();
        let pair = experiment.pair_folder(serve, &bench);
        assert_eq!(pair.file_name().unwrap(), "SERVE--model=___org_name-n=1");
        assert_eq!(experiment.pair_folder(&bench, &bench), folder.path().join("e").join(""));
        assert!(Experiment::open(folder.path().join("e"), true).is_err());
        assert!(Experiment::open(folder.path().to_owned(), false).is_err());
    }
}
