//! The ways to deploy a server, behind one interface.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use inferometer_model::deployment::{
    DeploymentFailure, DeploymentHow, DeploymentSpec, DeploymentStage, EnvironmentSpec,
    LikelyCause, ProcessSpec,
};
use inferometer_model::{BaseUrl, Redactor, Secret};

use super::environment::Environment;
use super::log::{self, Log};
use super::placeholder::{self, AtStart, FillError, PlaceholderError};
use super::process::{
    self, Exit, GivenPort, Listener, Process, ProcessEnd, Start, Stopwatch, until,
};
use super::{Deployment, Stopped, secret};
use crate::gpu::memory_in_use;

/// A server that was deployed in one of the three ways.
pub(super) trait Server: std::fmt::Debug + Send {
    /// How the process of it that we started ended; what commands deploy has none.
    fn ended(&self) -> Option<Exit>;

    /// Found out within a time.
    fn presence(&mut self, base: &mut BaseUrl, within: Duration) -> Presence;

    /// Reads the rest of its log. Returns whether there was any to wait for.
    fn read_rest_of_log(&mut self) -> bool {
        false
    }

    /// When it is ready: remembers all its processes while their parents exist, and its image.
    fn look_around(&mut self) {}

    /// The process group that it leads.
    fn group(&self) -> Option<i32> {
        None
    }

    fn image(&self) -> Option<String> {
        None
    }

    fn end(&mut self, grace: Duration) -> Stopped;
}

/// Whether there is something to be asked.
pub(super) enum Presence {
    Ready,
    NotYet(String),
    Failed(DeploymentStage, String),
}

/// All that one start needs.
pub(super) struct StartContext<'a> {
    pub(super) spec: &'a DeploymentSpec,
    pub(super) start: AtStart,
    pub(super) environment: Environment,
    pub(super) mark: String,
}

/// The started server, before it is ready.
pub(super) struct StartedServer {
    pub(super) server: Box<dyn Server>,
    pub(super) log: Log,
    /// As it may be shown.
    pub(super) command: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error(transparent)]
    Fill(#[from] FillError),
    #[error("something listens on port {0} already; end it, or take another port")]
    Taken(u16),
    #[error(
        "the command does not say where to listen; write `{{port}}` where its port belongs, such as `--port {{port}}`"
    )]
    NoPort,
    #[error("no port of this machine can be had: {0}")]
    Port(io::Error),
    #[error("its log {path} cannot be written: {error}")]
    Log { path: String, error: io::Error },
    #[error("`{0}` was not found; check its spelling and PATH")]
    NotFound(String),
    #[error("the folder `{0}` is not there; make it, or correct its name")]
    Folder(String),
    #[error("`{program}` could not be started: {error}")]
    Spawn { program: String, error: io::Error },
}

pub(super) fn start(
    spec: &DeploymentSpec,
    log: &Path,
    port: Option<u16>,
) -> Result<Deployment, DeploymentFailure> {
    begin(spec, log, port).map_err(|error| DeploymentFailure {
        stage: DeploymentStage::Start,
        what: error.to_string(),
        cause: match error {
            StartError::Taken(_) => Some(LikelyCause::PortInUse),
            StartError::Fill(FillError::NotSet(_)) => Some(LikelyCause::VariableNotSet),
            StartError::NotFound(_) => Some(LikelyCause::NoSuchProgram),
            StartError::Log { .. } | StartError::Spawn { .. } => log::likely(&error.to_string()),
            StartError::Fill(FillError::Placeholder(_))
            | StartError::NoPort
            | StartError::Port(_)
            | StartError::Folder(_) => None,
        },
        log: Vec::new(),
    })
}

fn begin(spec: &DeploymentSpec, log: &Path, port: Option<u16>) -> Result<Deployment, StartError> {
    let given = match port {
        Some(port) if !process::is_free(port) => return Err(StartError::Taken(port)),
        Some(_) => None,
        None if !says_port(&spec.how, &spec.environment).map_err(FillError::from)? => {
            return Err(StartError::NoPort);
        }
        None => Some(process::free().map_err(StartError::Port)?),
    };
    let port = port.or_else(|| given.as_ref().map(|GivenPort(port)| *port)).unwrap_or_default();
    let turn = Turn::begin();
    let gpu_memory_before = memory_in_use();
    let since = Stopwatch::start();
    let mark = unique();
    let start = AtStart { port, name: format!("inferometer-{mark}"), ours: ours() };
    let environment = Environment::resolve(&spec.environment, &start)?;
    let beginning = StartContext { spec, start, environment, mark };
    let begun = match &spec.how {
        DeploymentHow::Process(how) => beginning.process(how, log)?,
        DeploymentHow::Container(how) => beginning.container(how, log)?,
        DeploymentHow::Commands(how) => beginning.commands(how, log)?,
    };
    Ok(Deployment {
        server: begun.server,
        kind: spec.how.kind(),
        base: BaseUrl {
            tls: false,
            host: Ipv4Addr::LOCALHOST.to_string(),
            port,
            prefix: String::new(),
        },
        log: begun.log,
        command: begun.command,
        environment: begun.environment,
        since,
        ready_timeout: spec.ready_timeout,
        grace: spec.grace,
        was_ready: false,
        gpu_memory_before,
        is_down: false,
        _turn: turn,
        _port: given,
    })
}

/// Whether it is given its port: a program that does not know its port would listen where we
/// do not look. Containers and commands know theirs.
pub fn says_port(
    how: &DeploymentHow,
    environment: &EnvironmentSpec,
) -> Result<bool, PlaceholderError> {
    let DeploymentHow::Process(process) = how else { return Ok(true) };
    for word in process.command.iter().chain(environment.set.values()) {
        if placeholder::names(word)?.iter().any(|name| name == "port") {
            return Ok(true);
        }
    }
    Ok(false)
}

impl StartContext<'_> {
    fn process(&self, how: &ProcessSpec, log: &Path) -> Result<StartedServer, StartError> {
        let fill = |words: &String| self.start.fill(words);
        let words = how.command.iter().map(fill).collect::<Result<Vec<String>, FillError>>()?;
        let folder = how.folder.as_ref().map(fill).transpose()?;
        if folder.as_ref().is_some_and(|folder| !Path::new(folder).is_dir()) {
            let shown = how.folder.as_ref().map(|folder| self.start.redact(folder));
            return Err(StartError::Folder(shown.unwrap_or_default()));
        }
        let shown: Vec<String> = how.command.iter().map(|word| self.start.redact(word)).collect();
        let named: Vec<String> = how.command.iter().chain(&how.folder).cloned().collect();
        let (log, writer) = self.log(log, &named)?;
        let start = Start { folder: folder.as_deref(), ..self.spawned(&[]) };
        let process = Process::start(&words, &self.environment.variables(), writer, start)
            .map_err(|error| not_started(&shown, error))?;
        Ok(StartedServer {
            server: Box::new(process),
            log,
            command: secret::hidden(&shown),
            environment: self.environment.redacted(),
        })
    }

    pub(super) fn spawned<'b>(&'b self, farewell: &'b [String]) -> Start<'b> {
        Start { mark: &self.mark, folder: None, grace: self.spec.grace, farewell }
    }

    /// A log without the keys that these words and the environment have.
    pub(super) fn log(
        &self,
        path: &Path,
        words: &[String],
    ) -> Result<(Log, io::PipeWriter), StartError> {
        let mut keys: Vec<Secret> = self.environment.keys();
        keys.extend(secret::values(words).into_iter().map(Secret::new));
        keys.extend(words.iter().flat_map(|word| self.start.keys(word)));
        keys.extend(self.spec.environment.set.values().flat_map(|value| self.start.keys(value)));
        let failed = |error| StartError::Log { path: path.display().to_string(), error };
        Log::create(path, Redactor::new(&keys)).map_err(failed)
    }
}

/// With the command as it may be shown.
pub(super) fn not_started(words: &[String], error: io::Error) -> StartError {
    let program = words.first().cloned().unwrap_or_default();
    if error.kind() == io::ErrorKind::NotFound {
        return StartError::NotFound(program);
    }
    StartError::Spawn { program, error }
}

/// A name that no other process has, now or later.
fn unique() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    // The number of a process comes again; its start does not, as ticks since boot.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let started = after_name.split_whitespace().nth(19).unwrap_or("0");
    format!("{process}-{started}-{count}")
}

fn ours() -> BTreeMap<String, OsString> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .collect()
}

/// Whether the port is closed again. On this machine that is looked up: connections that are not accepted
/// would fill the queue of a listener until it seems to be gone.
pub(super) fn is_closed(base: &BaseUrl) -> bool {
    const CONNECT: Duration = Duration::from_secs(1);
    let Ok(mut addresses) = (base.host.as_str(), base.port).to_socket_addrs() else { return true };
    addresses.all(|address| {
        if address.ip().is_loopback() {
            process::is_free(base.port)
        } else {
            TcpStream::connect_timeout(&address, CONNECT).is_err()
        }
    })
}

impl Server for Process {
    fn ended(&self) -> Option<Exit> {
        Self::ended(self)
    }

    fn presence(&mut self, base: &mut BaseUrl, _within: Duration) -> Presence {
        let port = base.port;
        let who = match process::find_listener(port, &mut || self.members()) {
            Listener::Absent => return Presence::NotYet(format!("port {port} is not open yet")),
            Listener::Ours => return Presence::Ready,
            Listener::Stranger(None) => "an unknown process".to_owned(),
            Listener::Stranger(Some((pid, name))) => format!("`{name}` (process {pid})"),
        };
        let what = format!(
            "{who} listens on port {port} and was not started by us; nothing was sent there. \
             A server in a container must be deployed as one",
        );
        Presence::Failed(DeploymentStage::Start, what)
    }

    fn look_around(&mut self) {
        drop(self.members());
    }

    fn group(&self) -> Option<i32> {
        Some(Self::group(self))
    }

    fn end(&mut self, grace: Duration) -> Stopped {
        stopped(Self::end(self, grace))
    }
}

pub(super) fn stopped(gone: ProcessEnd) -> Stopped {
    let outlived: Vec<String> =
        gone.outlived.iter().map(|one| format!("{} ({})", one.name, one.pid)).collect();
    let trouble = (!outlived.is_empty())
        .then(|| format!("processes that outlived it had to be ended: {}", outlived.join(", ")));
    Stopped {
        ending: gone.ending,
        left: gone.left.into_iter().map(|member| (member.pid, member.name)).collect(),
        troubles: trouble.into_iter().collect(),
    }
}

/// Drivers take a moment to clean up after a process.
const PATIENCE: Duration = Duration::from_secs(5);
/// Tolerance for other programs that start and end.
const TOLERANCE: u64 = 64 << 20;

/// Servers of this process, from before their start until they are gone.
static TURNS: AtomicUsize = AtomicUsize::new(0);

/// The time of one of them.
#[derive(Debug)]
pub(super) struct Turn(());

impl Turn {
    pub(super) fn begin() -> Self {
        TURNS.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        TURNS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// In use before and after, and what to say when it did not come back. To be asked while the turn of
/// the server lasts.
pub(super) fn given_back(before: Option<u64>) -> (Option<(u64, u64)>, Option<String>) {
    let Some(before) = before else { return (None, None) };
    let is_alone = TURNS.load(Ordering::SeqCst) <= 1;
    compared(before, is_alone, &mut memory_in_use)
}

/// The latter when it is as before or has had its time. While another server of ours is up it may be
/// that one's: it is neither waited for nor missed.
fn compared(
    before: u64,
    is_alone: bool,
    look: &mut dyn FnMut() -> Option<u64>,
) -> (Option<(u64, u64)>, Option<String>) {
    let mut after = None;
    until(if is_alone { PATIENCE } else { Duration::ZERO }, || {
        after = look();
        after.is_none_or(|after| after <= before.saturating_add(TOLERANCE))
    });
    let figures = after.map(|after| (before, after));
    (figures, figures.filter(|_| is_alone).and_then(trouble))
}

fn trouble((before, after): (u64, u64)) -> Option<String> {
    let kept = after.checked_sub(before).filter(|kept| TOLERANCE < *kept)?;
    let mebibytes = kept >> 20;
    Some(format!(
        "{mebibytes} MiB more of GPU memory are in use than before it was started; \
         see who has them with nvidia-smi or rocm-smi"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_not_given_back_is_reported() {
        assert_eq!(trouble((1 << 30, (1 << 30) + 5)), None);
        assert!(trouble((0, 1 << 30)).unwrap().starts_with("1024 MiB"));
    }

    #[test]
    fn what_another_server_of_ours_has_is_not_missed() {
        let mut looks = 0;
        let other = compared(0, false, &mut || {
            looks += 1;
            Some(1 << 30)
        });
        assert_eq!((other, looks), ((Some((0, 1 << 30)), None), 1));
        let mut looks = 0;
        let late = compared(0, true, &mut || {
            looks += 1;
            Some(if looks < 3 { 1 << 30 } else { 5 })
        });
        assert_eq!((late, looks), ((Some((0, 5)), None), 3));
        assert_eq!(compared(0, true, &mut || None), (None, None));
    }
}
