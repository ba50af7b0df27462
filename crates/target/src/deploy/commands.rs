//! A server that the user's own commands deploy and stop, here or elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, PipeWriter};
use std::net::ToSocketAddrs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use inferometer_model::BaseUrl;
use inferometer_model::deployment::{CommandsSpec, DepartureEnding, DeploymentStage};

use super::placeholder::{self, FillError};
use super::process::{Exit, Process, Start, Stopwatch, until};
use super::{
    Presence, Server, StartContext, StartError, StartedServer, Stopped, not_started, secret,
};
use crate::system::listener;
use crate::system::tool::output;

/// For the command that prints the URL.
const URL_MAX: Duration = Duration::from_secs(20);
const URL_EVERY: Duration = Duration::from_secs(1);
/// For the command that stops it, if the grace is not longer: a cloud takes its time.
const DOWN_MIN: Duration = Duration::from_mins(2);
/// For the command that prints the log, if it does not follow it.
const LOGS_MAX: Duration = Duration::from_secs(10);
/// The log is not read again so soon: a failure is reported, and then the server is stopped.
const LOGS_EVERY: Duration = Duration::from_secs(30);
/// For commands of ours that are in the way.
const COMMAND_GRACE: Duration = Duration::from_secs(2);
const URL_WORDS_MAX: usize = 200;

#[derive(Debug)]
pub(super) struct Commands {
    /// Stays after its end: what it left running is found through it.
    up: Process,
    follower: Option<Process>,
    last_read: Option<Stopwatch>,
    /// The commands, filled in.
    url: String,
    logs: Option<String>,
    down: String,
    mark: String,
    variables: BTreeMap<String, OsString>,
    log: Option<PipeWriter>,
    grace: Duration,
    open_before: BTreeSet<String>,
    is_known: bool,
    last_asked: Option<(Stopwatch, String)>,
}

impl StartContext<'_> {
    pub(super) fn commands(
        &self,
        how: &CommandsSpec,
        log: &Path,
    ) -> Result<StartedServer, StartError> {
        let up = self.start.fill_shell(&how.up)?;
        let down = self.start.fill_shell(&how.down)?;
        let all: Vec<String> =
            [&how.up, &how.url, &how.down].into_iter().chain(&how.logs).cloned().collect();
        // The environment, and the variables that the commands name.
        let mut variables = self.environment.variables();
        for command in &all {
            for name in placeholder::names(command).map_err(FillError::from)? {
                let variable = name.strip_prefix("env:");
                let found = variable.and_then(|name| self.start.ours.get_key_value(name));
                variables.extend(found.map(|(name, value)| (name.clone(), value.clone())));
            }
        }
        let (log, writer) = self.log(log, &all)?;
        let open_before = listener::all_sockets();
        let farewell = shell(&down);
        let copy = writer.try_clone().map_err(|error| not_started(&[], error))?;
        let up = Process::start(&shell(&up), &variables, copy, self.spawned(&farewell))
            .map_err(|error| not_started(&shell(""), error))?;
        let commands = Commands {
            up,
            follower: None,
            last_read: None,
            url: self.start.fill_shell(&how.url)?,
            logs: how.logs.as_ref().map(|logs| self.start.fill_shell(logs)).transpose()?,
            down,
            mark: self.mark.clone(),
            variables,
            log: Some(writer),
            grace: self.spec.grace,
            open_before,
            is_known: false,
            last_asked: None,
        };
        Ok(StartedServer {
            server: Box::new(commands),
            log,
            command: secret::hidden(&[self.start.redact(&how.up)]),
            environment: self.environment.redacted(),
        })
    }
}

fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

impl Server for Commands {
    fn ended(&self) -> Option<Exit> {
        None
    }

    /// Deploys it, learns its URL, reads its log: one step at a look.
    fn presence(&mut self, base: &mut BaseUrl, within: Duration) -> Presence {
        if self.is_known {
            return Presence::Ready;
        }
        let failed = match self.up.ended() {
            None => return Presence::NotYet("the command `up` has not ended".to_owned()),
            Some(Exit::Code(0)) => None,
            Some(Exit::Code(code)) => Some(format!("ended with status {code}")),
            Some(Exit::Signal(signal)) => Some(format!("was ended by {signal}")),
        };
        if let Some(how) = failed {
            return Presence::Failed(DeploymentStage::Start, format!("the command `up` {how}"));
        }
        let found = match self.ask_url(URL_MAX.min(within)) {
            Ok(found) => found,
            Err(words) => return Presence::NotYet(words),
        };
        let addresses = (found.host.as_str(), found.port).to_socket_addrs().into_iter().flatten();
        let mut sockets =
            addresses.filter(|address| address.ip().is_loopback()).flat_map(listener::sockets_at);
        if sockets.any(|socket| self.open_before.contains(&socket)) {
            let what = format!(
                "{found} was in use before the command `up` was run; nothing was sent there. Stop \
                 that server first, or let `up` use {{port}}"
            );
            return Presence::Failed(DeploymentStage::Start, what);
        }
        *base = found;
        self.is_known = true;
        self.follower = self.logs.clone().and_then(|logs| self.run(&logs, "logs").ok());
        Presence::Ready
    }

    /// Reads the log once more, before that is no longer possible. Not where it is
    /// followed all the time.
    fn read_rest_of_log(&mut self) -> bool {
        let is_followed = self.follower.as_ref().is_some_and(|logs| logs.ended().is_none());
        let is_fresh = self.last_read.is_some_and(|read| read.passed() < LOGS_EVERY);
        if is_followed || is_fresh {
            return false;
        }
        self.last_read = Some(Stopwatch::start());
        let Some(logs) = &self.logs else { return false };
        let Ok(mut logs) = self.run(logs, "logs-again") else { return false };
        until(LOGS_MAX, || logs.ended().is_some());
        logs.end(COMMAND_GRACE);
        true
    }

    fn end(&mut self, grace: Duration) -> Stopped {
        // It must not start anything after `down` has stopped the server.
        let interrupted = self.up.ended().is_none().then(|| self.up.end(COMMAND_GRACE));
        if interrupted.is_none() {
            self.read_rest_of_log();
        }
        let down = self.run_down(grace.max(DOWN_MIN));
        if let Some(mut follower) = self.follower.take() {
            follower.end(COMMAND_GRACE);
        }
        self.log = None;
        let mut stopped = interrupted.unwrap_or_else(|| self.up.end(grace));
        stopped.ending = DepartureEnding::OnRequest;
        stopped.troubles.extend(down.err());
        stopped
    }
}

impl Commands {
    /// A server of another machine may have no address for a while, so this is asked again, and not
    /// too often.
    fn ask_url(&mut self, within: Duration) -> Result<BaseUrl, String> {
        if let Some((asked, words)) = &self.last_asked
            && asked.passed() < URL_EVERY
        {
            return Err(words.clone());
        }
        let mut command = Command::new("sh");
        command.args(["-c", &self.url]).env_clear().envs(&self.variables);
        let shown = output(command, within).map_err(|error| format!("the command `url`: {error}"));
        let found = shown.and_then(|shown| {
            let last = shown.lines().map(str::trim).rfind(|line| !line.is_empty());
            let last: String = last.unwrap_or_default().chars().take(URL_WORDS_MAX).collect();
            if last.is_empty() {
                return Err("the command `url` printed nothing".to_owned());
            }
            last.parse().map_err(|error| format!("the command `url`: {error}"))
        });
        if let Err(words) = &found {
            self.last_asked = Some((Stopwatch::start(), words.clone()));
        }
        found
    }

    /// With a mark of its own: its end is not that of the server.
    fn run(&self, script: &str, purpose: &str) -> io::Result<Process> {
        let log = match &self.log {
            Some(log) => log.try_clone()?,
            None => return Err(io::Error::other("its log is closed")),
        };
        let mark = format!("{}-{purpose}", self.mark);
        let start = Start { mark: &mark, folder: None, grace: self.grace, farewell: &[] };
        Process::start(&shell(script), &self.variables, log, start)
    }

    fn run_down(&self, within: Duration) -> Result<(), String> {
        let mut down = self
            .run(&self.down, "down")
            .map_err(|error| format!("the command `down` could not be started: {error}"))?;
        until(within, || down.ended().is_some());
        let exit = down.ended();
        down.end(COMMAND_GRACE);
        match exit {
            Some(Exit::Code(0)) => Ok(()),
            Some(Exit::Code(code)) => Err(format!(
                "the command `down` ended with status {code}; see the log, and check that the \
                 server has stopped"
            )),
            Some(Exit::Signal(signal)) => Err(format!("the command `down` was ended by {signal}")),
            None => Err(format!(
                "the command `down` had not ended after {} s; check that the server has stopped",
                within.as_secs()
            )),
        }
    }
}
