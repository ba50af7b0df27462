//! A process of this machine that leads a group of its own, and its end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, PipeWriter};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use inferometer_model::deployment::DepartureEnding;
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use super::family::{Family, MARK, Member};
use super::guard::Guard;
use super::stopwatch::until;

/// What is killed is gone after that, or hangs in the kernel.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    leader: i32,
    family: Family,
    _guard: Guard,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    Code(i32),
    Signal(Signal),
}

/// How it went.
#[derive(Debug)]
pub(super) struct Gone {
    pub(super) ending: DepartureEnding,
    pub(super) exit: Option<Exit>,
    pub(super) left: Vec<Member>,
    /// Those that had to be ended after it had ended by itself.
    pub(super) outlived: Vec<Member>,
}

/// What a process is started with besides its words.
pub(super) struct Start<'a> {
    pub(super) mark: &'a str,
    pub(super) variables: &'a BTreeMap<String, OsString>,
    pub(super) log: PipeWriter,
    pub(super) folder: Option<&'a str>,
    pub(super) grace: Duration,
    /// A command that takes down what is not a process, should we be killed.
    pub(super) farewell: &'a [String],
}

impl Process {
    pub(super) fn start(words: &[String], start: Start<'_>) -> io::Result<Self> {
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"))?;
        // First, so that there is no moment without it.
        let mut guard = Guard::start(start.mark, start.grace, start.farewell, start.variables)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(start.variables)
            .env(MARK, start.mark)
            .stdin(Stdio::null())
            .stdout(start.log.try_clone()?)
            .stderr(start.log)
            // What it starts is ended with it, and Ctrl-C does not reach it.
            .process_group(0);
        if let Some(folder) = start.folder {
            command.current_dir(folder);
        }
        let child = command.spawn()?;
        let leader = i32::try_from(child.id()).map_err(io::Error::other)?;
        guard.watch(leader);
        Ok(Self { child, leader, family: Family::new(leader, start.mark), _guard: guard })
    }

    pub(super) const fn group(&self) -> i32 {
        self.leader
    }

    pub(super) fn members(&mut self) -> Vec<Member> {
        self.family.members()
    }

    /// How it ended; `None` while it runs. It is looked at and not reaped, so that its group stays
    /// its own.
    pub(super) fn ended(&self) -> Option<Exit> {
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match waitid(Id::Pid(Pid::from_raw(self.leader)), look) {
            Ok(WaitStatus::Exited(_, code)) => Some(Exit::Code(code)),
            Ok(WaitStatus::Signaled(_, signal, _)) => Some(Exit::Signal(signal)),
            Ok(_) | Err(_) => None,
        }
    }

    /// Tells it to go, waits, kills.
    pub(super) fn end(&mut self, grace: Duration) -> Gone {
        let exit_before = self.ended();
        let alive = self.members();
        let mut ending = DepartureEnding::Before;
        if exit_before.is_none() || !alive.is_empty() {
            self.family.signal(Signal::SIGTERM);
            let went = until(grace, || self.is_gone());
            ending = if went { DepartureEnding::Told } else { DepartureEnding::Killed };
            if !went {
                until(KILL_PATIENCE, || {
                    self.family.signal(Signal::SIGKILL);
                    self.is_gone()
                });
            }
        }
        let exit = self.ended();
        if exit.is_some() {
            let _ = self.child.wait();
        }
        let outlived = if exit_before.is_some() { alive } else { Vec::new() };
        if exit_before.is_some() {
            ending = DepartureEnding::Before;
        }
        Gone { ending, exit, left: self.members(), outlived }
    }

    fn is_gone(&mut self) -> bool {
        self.ended().is_some() && self.family.members().is_empty()
    }
}

impl Exit {
    pub(super) fn words(self) -> String {
        match self {
            Self::Code(0) => {
                "it ended by itself, with status 0; a server must stay in the foreground".to_owned()
            }
            Self::Code(code) => format!("it ended with status {code}"),
            Self::Signal(Signal::SIGKILL) => {
                "it was killed (SIGKILL), as the kernel does when memory runs out".to_owned()
            }
            Self::Signal(signal) => format!("it was ended by {signal}"),
        }
    }
}
