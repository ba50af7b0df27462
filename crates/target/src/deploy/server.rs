//! The ways to put a server up, behind one face.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use inferometer_model::deployment::{
    DeploymentFailure, DeploymentHow, DeploymentSpec, DeploymentStage, EnvironmentSpec,
    LikelyCause, ProcessSpec,
};
use inferometer_model::{BaseUrl, Redactor, Secret};

use super::at_start::{AtStart, FillError};
use super::commands::Commands;
use super::container::Container;
use super::environment::Environment;
use super::gpu_memory::Turn;
use super::log::Log;
use super::placeholder::PlaceholderError;
use super::port::{self, GivenPort, Listener};
use super::process::{Exit, Gone, Process, Start};
use super::stopwatch::Stopwatch;
use super::{Deployment, Taken, cause, gpu_memory, placeholder, secret};

#[derive(Debug)]
pub(super) enum Server {
    Process(Process),
    Container(Container),
    Commands(Box<Commands>),
}

/// Whether there is something to be asked.
pub(super) enum Presence {
    Ready,
    NotYet(String),
    Failed(DeploymentStage, String),
}

/// All that one start needs.
pub(super) struct Beginning<'a> {
    pub(super) spec: &'a DeploymentSpec,
    pub(super) start: AtStart,
    pub(super) environment: Environment,
    pub(super) mark: String,
}

/// What came of it, before anybody waits for it.
pub(super) struct Begun {
    pub(super) server: Server,
    pub(super) log: Log,
    /// As it may be told.
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
            StartError::Log { .. } | StartError::Spawn { .. } => cause::likely(&error.to_string()),
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
        Some(port) if !port::is_free(port) => return Err(StartError::Taken(port)),
        Some(_) => None,
        None if !says_port(&spec.how, &spec.environment).map_err(FillError::from)? => {
            return Err(StartError::NoPort);
        }
        None => Some(port::free().map_err(StartError::Port)?),
    };
    let port = port.or_else(|| given.as_ref().map(GivenPort::number)).unwrap_or_default();
    let turn = Turn::begin();
    let gpu_memory_before = gpu_memory::in_use();
    let since = Stopwatch::start();
    let mark = unique();
    let start = AtStart { port, name: format!("inferometer-{mark}"), ours: ours() };
    let environment = Environment::of(&spec.environment, &start)?;
    let beginning = Beginning { spec, start, environment, mark };
    let begun = match &spec.how {
        DeploymentHow::Process(how) => beginning.process(how, log)?,
        DeploymentHow::Container(how) => beginning.container(how, log)?,
        DeploymentHow::Commands(how) => beginning.commands(how, log)?,
    };
    Ok(Deployment {
        server: begun.server,
        kind: spec.how.kind(),
        base: loopback(port),
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

/// Whether it is told where to listen: a program that does not know its port would listen where we
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

impl Beginning<'_> {
    fn process(&self, how: &ProcessSpec, log: &Path) -> Result<Begun, StartError> {
        let fill = |words: &String| self.start.fill(words);
        let words = how.command.iter().map(fill).collect::<Result<Vec<String>, FillError>>()?;
        let folder = how.folder.as_ref().map(fill).transpose()?;
        if folder.as_ref().is_some_and(|folder| !Path::new(folder).is_dir()) {
            let told = how.folder.as_ref().map(|folder| self.start.told(folder));
            return Err(StartError::Folder(told.unwrap_or_default()));
        }
        let told: Vec<String> = how.command.iter().map(|word| self.start.told(word)).collect();
        let named: Vec<String> = how.command.iter().chain(&how.folder).cloned().collect();
        let (log, writer) = self.log(log, &named)?;
        let start = Start {
            mark: &self.mark,
            variables: &self.environment.variables(),
            log: writer,
            folder: folder.as_deref(),
            grace: self.spec.grace,
            farewell: &[],
        };
        let process = Process::start(&words, start).map_err(|error| not_started(&told, error))?;
        Ok(Begun {
            server: Server::Process(process),
            log,
            command: secret::hidden(&told),
            environment: self.environment.told(),
        })
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

/// By the words as they may be told.
pub(super) fn not_started(words: &[String], error: io::Error) -> StartError {
    let program = words.first().cloned().unwrap_or_default();
    if error.kind() == io::ErrorKind::NotFound {
        return StartError::NotFound(program);
    }
    StartError::Spawn { program, error }
}

/// Of this process and no other, now or later.
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

pub(super) fn loopback(port: u16) -> BaseUrl {
    BaseUrl { tls: false, host: Ipv4Addr::LOCALHOST.to_string(), port, prefix: String::new() }
}

/// Nobody listens there any more. On this machine that is looked up: connections that nobody accepts
/// would fill the queue of a listener until it seems to be gone.
pub(super) fn is_closed(base: &BaseUrl) -> bool {
    const CONNECT: Duration = Duration::from_secs(1);
    let Ok(mut addresses) = (base.host.as_str(), base.port).to_socket_addrs() else { return true };
    addresses.all(|address| {
        if address.ip().is_loopback() {
            port::is_free(base.port)
        } else {
            TcpStream::connect_timeout(&address, CONNECT).is_err()
        }
    })
}

impl Server {
    /// How the process of it that we started ended; what commands put up has none.
    pub(super) fn ended(&self) -> Option<Exit> {
        match self {
            Self::Process(process) => process.ended(),
            Self::Container(container) => container.ended(),
            Self::Commands(_) => None,
        }
    }

    /// Found out within a time.
    pub(super) fn presence(&mut self, base: &mut BaseUrl, within: Duration) -> Presence {
        match self {
            Self::Process(process) => process_presence(process, base.port),
            Self::Container(container) => container.presence(within),
            Self::Commands(commands) => commands.presence(base, within),
        }
    }

    /// Lets whoever keeps its words say the last of them. Whether there were any to wait for.
    pub(super) fn hear_out(&mut self) -> bool {
        match self {
            Self::Process(_) | Self::Container(_) => false,
            Self::Commands(commands) => commands.hear_out(),
        }
    }

    /// When it is ready: remembers all processes of it while their parents are there to tell, and
    /// what image it is.
    pub(super) fn look_around(&mut self) {
        match self {
            Self::Process(process) => drop(process.members()),
            Self::Container(container) => container.learn_image(),
            Self::Commands(_) => {}
        }
    }

    pub(super) fn group(&self) -> Option<i32> {
        match self {
            Self::Process(process) => Some(process.group()),
            Self::Container(container) => Some(container.group()),
            Self::Commands(_) => None,
        }
    }

    pub(super) fn image(&self) -> Option<String> {
        match self {
            Self::Container(container) => container.image(),
            Self::Process(_) | Self::Commands(_) => None,
        }
    }

    pub(super) fn end(&mut self, grace: Duration) -> Taken {
        match self {
            Self::Process(process) => taken(process.end(grace)),
            Self::Container(container) => container.end(grace),
            Self::Commands(commands) => commands.end(grace),
        }
    }
}

fn process_presence(process: &mut Process, port: u16) -> Presence {
    let who = match port::listener(port, &mut || process.members()) {
        Listener::Nobody => return Presence::NotYet(format!("nobody listens on port {port}")),
        Listener::Ours => return Presence::Ready,
        Listener::Stranger(None) => "somebody who cannot be looked at".to_owned(),
        Listener::Stranger(Some((pid, name))) => format!("`{name}` (process {pid})"),
    };
    let what = format!(
        "{who} listens on port {port} and was not started by us; nothing was sent there. \
         A server in a container must be put up as one",
    );
    Presence::Failed(DeploymentStage::Start, what)
}

pub(super) fn taken(gone: Gone) -> Taken {
    let pair = |member: super::family::Member| (member.pid, member.name);
    let outlived: Vec<String> =
        gone.outlived.iter().map(|one| format!("{} ({})", one.name, one.pid)).collect();
    let trouble = (!outlived.is_empty())
        .then(|| format!("processes that outlived it had to be ended: {}", outlived.join(", ")));
    Taken {
        ending: gone.ending,
        left: gone.left.into_iter().map(pair).collect(),
        troubles: trouble.into_iter().collect(),
    }
}
