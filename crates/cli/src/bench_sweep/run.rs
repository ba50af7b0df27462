//! One run of a sweep: `bench serve` in a process of its own.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::experiment::{self, RunData};
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
        let show = if plan.asked.show_output { Stdio::inherit } else { Stdio::null };
        let mut child = Command::new(std::env::current_exe().map_err(failed)?)
            .args(["bench", "serve"])
            .args(&words)
            .stdin(Stdio::null())
            .stdout(show())
            // A group of its own: it gets each signal once, from us, whoever else got it.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let _companion = interruption.accompanied_by_child(&child);
        let status = await_end(&mut child, interruption).map_err(failed)?;
        // A run that was cut says so by its code, and what it measured is no result of the sweep.
        let data = match status.code() {
            Some(0 | INVALID) => experiment::read(&part.0)?,
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
        Ok(experiment::read(&self.file)?.map(|data| self.with_parameters(data)))
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
