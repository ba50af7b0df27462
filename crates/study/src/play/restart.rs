//! The user's command that restarts a server between runs.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use inferometer_load::SystemClock;
use inferometer_model::Clock;
use inferometer_model::campaign::Condition;
use inferometer_model::spec::TargetSpec;
use inferometer_runner::Failure;
use inferometer_runner::interruption::Interruption;
use inferometer_runner::log_tail::last_lines;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

#[derive(Clone, Debug)]
pub(super) struct Restart {
    pub(super) command: String,
    /// How long the server has to answer again.
    pub(super) timeout: Duration,
}

/// How often a running command is checked.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Lines that are shown of a command that failed.
const LINES_SHOWN: usize = 10;

/// When a restart must be done.
#[derive(Debug)]
pub(super) struct Deadline {
    clock: SystemClock,
    timeout: Duration,
}

impl Deadline {
    pub(super) fn is_over(&self) -> bool {
        self.timeout <= Duration::from_nanos(self.clock.now().as_nanos())
    }
}

impl Restart {
    pub(super) fn begin(&self) -> Deadline {
        Deadline { clock: SystemClock::new(), timeout: self.timeout }
    }

    /// Runs the command to its end; what it says goes to the log. A signal ends the
    /// command too, and is a failure.
    pub(super) fn run(
        &self,
        deadline: &Deadline,
        condition: &Condition,
        log: &Path,
        interruption: &Interruption,
    ) -> Result<(), Failure> {
        let failed =
            |error: io::Error| Failure::usage(format!("--restart `{}`: {error}", self.command));
        let opened = OpenOptions::new().create(true).append(true).open(log);
        let mut file = opened.map_err(|error| {
            Failure::usage(format!("{}, the log of --restart: {error}", log.display()))
        })?;
        let from = file.seek(SeekFrom::End(0)).map_err(failed)?;
        let mut child = self.start(condition, &file).map_err(failed)?;
        loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                return self.ended(status, log, from);
            }
            if deadline.is_over() {
                end(&mut child);
                let why = format!("did not end within {:?}", self.timeout);
                return Err(self.failure(&why, log, from).hint(
                    "give it longer with --restart-timeout, or let it start its server in the \
                           background",
                ));
            }
            interruption.rest(LOOK_EVERY).inspect_err(|_| end(&mut child))?;
        }
    }

    fn start(&self, condition: &Condition, log: &File) -> io::Result<Child> {
        let url = match &condition.spec.target {
            TargetSpec::Url(base) => base.to_string(),
            TargetSpec::Embedded | TargetSpec::Deployed(_) => String::new(),
        };
        Command::new("sh")
            .args(["-c", &self.command])
            .env("INFEROMETER_CONDITION", &condition.name)
            .env("INFEROMETER_URL", url)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?)
            // A group of its own: what it starts is ended with it, and Ctrl-C does not reach it.
            .process_group(0)
            .spawn()
    }

    fn ended(&self, status: ExitStatus, log: &Path, from: u64) -> Result<(), Failure> {
        if status.success() {
            return Ok(());
        }
        Err(self.failure(&format!("ended with {status}"), log, from))
    }

    fn failure(&self, why: &str, log: &Path, from: u64) -> Failure {
        let said = last_lines(log, from, LINES_SHOWN).unwrap_or_default();
        let where_all = format!("(the whole log is in {})", log.display());
        let shown = said.into_iter().map(|line| format!("  {line}")).chain([where_all]);
        Failure::target(format!("--restart `{}` {why}", self.command)).shown(shown.collect())
    }
}

/// Ends a command with all that it started.
fn end(child: &mut Child) {
    if let Ok(group) = i32::try_from(child.id()) {
        // It may have ended by itself meanwhile, which is as good.
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use inferometer_model::SpecDraft;

    use super::*;

    fn run(command: &str, timeout: Duration) -> (Result<(), Failure>, String) {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("restart.log");
        let url = Some("http://127.0.0.1:9".parse().unwrap());
        let spec = SpecDraft { url, ..SpecDraft::default() }.resolve().unwrap();
        let condition = Condition { name: "v1".to_owned(), spec };
        let restart = Restart { command: command.to_owned(), timeout };
        let ended = restart.run(&restart.begin(), &condition, &log, &Interruption::default());
        (ended, std::fs::read_to_string(&log).unwrap())
    }

    #[test]
    fn a_command_knows_its_server_and_its_words_are_kept() {
        let command = "echo \"$INFEROMETER_CONDITION $INFEROMETER_URL\"; echo oops >&2";
        let (ended, log) = run(command, Duration::from_mins(1));
        ended.unwrap();
        assert!(log.starts_with("v1 http://127.0.0.1:9") && log.ends_with("\noops\n"), "{log}");
    }

    #[test]
    fn a_command_that_fails_or_hangs_is_an_error_with_its_last_lines() {
        let (ended, _) = run("echo one; echo two; exit 7", Duration::from_mins(1));
        let failure = format!("{:?}", ended.unwrap_err());
        assert!(failure.contains("exit status: 7") && failure.contains("  two"), "{failure}");
        let (ended, _) = run("echo waiting; sleep 1000", Duration::from_millis(300));
        let failure = format!("{:?}", ended.unwrap_err());
        assert!(failure.contains("did not end within") && failure.contains("waiting"), "{failure}");
    }
}
