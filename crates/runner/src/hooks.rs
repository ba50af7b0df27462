//! What the user has called around measurements: commands of the shell, and POSTs to a server, such as
//! the ones that empty its caches or start its profiler.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use inferometer_load::{SystemClock, Target};
use inferometer_model::fetch::{Post as _, PostRequest};
use inferometer_model::spec::{Hook, HookCall};
use inferometer_model::{BaseUrl, Clock, Spec, fmt};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::deployed;
use crate::failure::{Failure, Result};
use crate::interruption::Interruption;
use crate::measurement::keyless;
use crate::preflight::fetching;
use crate::session::Session;

/// A command of the user, by `sh`.
#[derive(Clone, Copy, Debug)]
pub struct Shell<'a> {
    /// The flag that set it, for messages.
    pub flag: &'a str,
    /// The command.
    pub command: &'a str,
    /// How long it may take.
    pub timeout: Duration,
    /// Variables of its environment.
    pub variables: &'a [(&'a str, &'a str)],
}

/// How long a hook may take: writing a profile takes its time.
const PATIENCE: Duration = Duration::from_mins(10);

impl Shell<'_> {
    /// Runs the command to its end, at this time of a clock at the latest; its output goes to the log. A
    /// signal ends the command too, and is a failure.
    pub fn run(&self, clock: &SystemClock, log: &Path, interruption: &Interruption) -> Result<()> {
        let Self { flag, command, timeout, .. } = *self;
        let failed = |error: io::Error| Failure::usage(format!("{flag} `{command}`: {error}"));
        let opened = File::options().create(true).append(true).open(log);
        let mut file = opened.map_err(|error| {
            Failure::usage(format!("{}, the log of {flag}: {error}", log.display()))
        })?;
        let from = file.seek(SeekFrom::End(0)).map_err(failed)?;
        let ended = |why: String| {
            // Lines that are shown of a command that failed.
            let last = deployed::last_lines(log, from, 10).unwrap_or_default();
            let where_all = format!("(the whole log is in {})", log.display());
            let shown = last.into_iter().map(|line| format!("  {line}")).chain([where_all]);
            Failure::target(format!("{flag} `{command}` {why}")).shown(shown.collect())
        };
        let mut child = Command::new("sh")
            .args(["-c", command])
            .envs(self.variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(failed)?)
            .stderr(file)
            // A new process group: its children end with it, and Ctrl-C does not reach it.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        loop {
            match child.try_wait().map_err(failed)? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(ended(format!("ended with {status}"))),
                None => {}
            }
            if timeout <= Duration::from_nanos(clock.now().as_nanos()) {
                end(&mut child);
                return Err(ended(format!("did not end within {}", fmt::duration(timeout))));
            }
            // How often a running command is checked.
            interruption.rest(Duration::from_millis(50)).inspect_err(|_| end(&mut child))?;
        }
    }
}

/// Ends a command with all that it started.
fn end(child: &mut Child) {
    if let Ok(group) = i32::try_from(child.id()) {
        // It may have ended meanwhile.
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
    let _ = child.wait();
}

/// Where hooks are called, and the log of those that are commands.
#[derive(Clone, Copy)]
pub(crate) struct Hooks<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) target: &'a Target,
    pub(crate) log: &'a Path,
    pub(crate) session: &'a Session,
}

impl Hooks<'_> {
    /// Calls one after the other, up to the first that fails.
    pub(crate) fn call(self, flag: &str, hooks: &[Hook], stop: &Interruption) -> Result<()> {
        hooks.iter().try_for_each(|hook| self.call_one(flag, hook, stop))
    }

    fn call_one(self, flag: &str, hook: &Hook, stop: &Interruption) -> Result<()> {
        self.session.talk(&format!("{flag}: {} …", hook.text()));
        match hook.call() {
            HookCall::Path(path) => {
                self.target.each().try_for_each(|target| post(flag, &target, path))
            }
            HookCall::Url(url) => {
                let host_at = url.find("://").map_or(0, |at| at + "://".len());
                let path_at = url[host_at..].find(['/', '?']).map_or(url.len(), |at| host_at + at);
                let (base, path) = url.split_at(path_at);
                let unusable = |why: String| Failure::usage(format!("{flag} {base}: {why}"));
                let base: BaseUrl = base.parse().map_err(|why| unusable(format!("{why}")))?;
                let target = keyless(self.spec, &base).map_err(|why| unusable(why.to_string()))?;
                post(flag, &target, if path.is_empty() { "/" } else { path })
            }
            HookCall::Command(command) => {
                let url = self.target.base.to_string();
                let variables = [("INFEROMETER_URL", url.as_str())];
                let shell = Shell { flag, command, timeout: PATIENCE, variables: &variables };
                shell.run(&SystemClock::new(), self.log, stop)
            }
        }
    }
}

fn post(flag: &str, target: &Target, path: &str) -> Result<()> {
    let request = PostRequest { path, json: "{}", body_limit: 1 << 20, patience: PATIENCE };
    let failed = |why: String| Failure::target(format!("{flag} {path} {why}"));
    match fetching(target, async |fetch| fetch.post(request).await)? {
        Ok(reply) if (200..300).contains(&reply.status) => Ok(()),
        Ok(reply) => Err(failed(format!("answered HTTP {}", reply.status))
            .hint("see whether the server has it, and with which options it must be started")),
        Err(error) => Err(failed(format!("did not answer: {error}"))),
    }
}
