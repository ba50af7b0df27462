//! Servers that are deployed for a measurement and stopped after it, whatever happens meanwhile.

use std::io;
use std::net::{Ipv4Addr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use inferometer_model::deployment::{
    Departure, DepartureEnding, DeploymentFacts, DeploymentFailure, DeploymentHow, DeploymentSpec,
    DeploymentStage, EnvironmentSpec, LikelyCause, ProcessSpec,
};
use inferometer_model::{BaseUrl, Redactor, Secret};

use self::environment::Environment;
use self::log::Log;
use self::placeholder::{AtStart, FillError, PlaceholderError};
use self::process::{Exit, GivenPort, Process, Start, Stopwatch, until};
use crate::gpu::memory_in_use;

mod commands;
mod container;
mod environment;
mod log;
pub mod placeholder;
mod process;
pub mod secret;

pub use placeholder::{fill_shell, fill_shell_planned, shell_quoted};
pub use process::serving;

/// A server that we have deployed. It is stopped when this is dropped, if not before.
#[derive(Debug)]
pub struct Deployment {
    server: Box<dyn Server>,
    kind: &'static str,
    base: BaseUrl,
    log: Log,
    command: Vec<String>,
    environment: Vec<(String, String)>,
    since: Stopwatch,
    ready_timeout: Duration,
    grace: Duration,
    was_ready: bool,
    gpu_memory_before: Option<u64>,
    is_down: bool,
    _turn: Arc<()>,
    /// The port is not given away while this exists.
    _port: Option<GivenPort>,
}

/// What a server answered to a request for one token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It generated one.
    Generated,
    /// There is no answer yet, or it reports that it is not ready.
    NotYet(String),
    /// It answers, and cannot generate, in these words.
    Unable(String),
}

/// Whether the answer to a question is not waited for any more: its server has ended, or its time is
/// over.
pub type IsOver<'a> = &'a dyn Fn() -> bool;

/// How waiting for a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// It has generated a token, this long after its start.
    Ready(Duration),
    /// The wait was interrupted.
    Stopped,
}

/// Between two looks at a server that is not ready; longer when it takes long anyway.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOK_EVERY_LATER: Duration = Duration::from_millis(500);
const LATER: Duration = Duration::from_secs(20);
/// A look that is cut short tells nothing, so the last one has this long.
const LOOK_MIN: Duration = Duration::from_secs(1);
const LINES_SHOWN: usize = 15;
/// Lines that are searched for the cause when a server that has served ends.
const LINES_OF_DEATH: usize = 100;
/// A port of a process that has ended is free at once; proxies of containers take a moment.
const PORT_PATIENCE: Duration = Duration::from_secs(3);

impl Deployment {
    /// Deploys it on a free port and returns at once. What it prints goes to `log`, bounded: its
    /// beginning and its end.
    pub fn start(spec: &DeploymentSpec, log: &Path) -> Result<Self, DeploymentFailure> {
        Self::start_at(spec, None, log)
    }

    /// The same for a server whose command has a port of its own. Refused where the port is in use.
    pub fn start_at(
        spec: &DeploymentSpec,
        port: impl Into<Option<u16>>,
        log: &Path,
    ) -> Result<Self, DeploymentFailure> {
        begin(spec, log, port.into()).map_err(|error| DeploymentFailure {
            stage: DeploymentStage::Start,
            what: error.to_string(),
            cause: match error {
                StartError::Taken(_) => Some(LikelyCause::PortInUse),
                StartError::Fill(FillError::NotSet(_)) => Some(LikelyCause::VariableNotSet),
                StartError::NotFound(_) => Some(LikelyCause::NoSuchProgram),
                StartError::Log { .. } | StartError::Spawn { .. } => {
                    log::likely(&error.to_string())
                }
                StartError::Fill(FillError::Placeholder(_))
                | StartError::NoPort
                | StartError::Port(_)
                | StartError::Folder(_) => None,
            },
            log: Vec::new(),
        })
    }

    /// Asks again and again until it has generated a token. `probe` has to return soon when its time
    /// is over. `pause` lets time pass and returns whether to stop. Nothing that listens there but is
    /// not ours is ever asked.
    pub fn wait(
        &mut self,
        probe: &mut dyn FnMut(&BaseUrl, IsOver<'_>) -> Probe,
        pause: &mut dyn FnMut(Duration) -> bool,
    ) -> Result<Waited, DeploymentFailure> {
        loop {
            if let Some(failure) = self.ended() {
                return Err(failure);
            }
            let left = self.time_left().max(LOOK_MIN);
            let last = match self.server.presence(&mut self.base, left) {
                Presence::Ready => probe(&self.base, &|| {
                    self.time_left().is_zero() || self.server.ended().is_some()
                }),
                Presence::NotYet(why) => Probe::NotYet(why),
                Presence::Failed(stage, what) => return Err(self.failure(stage, what)),
            };
            if last == Probe::Generated && self.server.ended().is_none() {
                self.was_ready = true;
                self.server.look_around();
                return Ok(Waited::Ready(self.since.passed()));
            }
            let left = self.time_left();
            let pause_for = if self.since.passed() < LATER { LOOK_EVERY } else { LOOK_EVERY_LATER };
            // Also when no time is left: an interrupted wait has not failed.
            if pause(pause_for.min(left)) {
                return Ok(Waited::Stopped);
            }
            if left.is_zero() {
                return Err(self.ended().unwrap_or_else(|| self.late(&last)));
            }
        }
    }

    fn time_left(&self) -> Duration {
        self.ready_timeout.saturating_sub(self.since.passed())
    }

    fn late(&mut self, last: &Probe) -> DeploymentFailure {
        let seconds = self.ready_timeout.as_secs_f64();
        match last {
            Probe::Unable(why) => {
                let what = format!("it answered, but generated no token within {seconds} s: {why}");
                self.failure(DeploymentStage::Generate, what)
            }
            Probe::NotYet(why) => {
                let what = format!("it was not ready within {seconds} s: {why}; see its log");
                self.failure(DeploymentStage::Ready, what)
            }
            Probe::Generated => {
                self.failure(DeploymentStage::Ended, "it ended when it was ready".to_owned())
            }
        }
    }

    /// Where it listens. For a server that is deployed by commands this is known when they have printed
    /// it, which is before it is asked anything.
    pub fn base(&self) -> &BaseUrl {
        &self.base
    }

    /// The process group that it leads, where it is one of this machine.
    pub fn group(&self) -> Option<i32> {
        self.server.group()
    }

    /// Why it is not there any more; `None` while it is.
    pub fn ended(&mut self) -> Option<DeploymentFailure> {
        let exit = self.server.ended()?;
        self.log.settle();
        let stage = if self.was_ready { DeploymentStage::Died } else { DeploymentStage::Ended };
        let mut failure = self.failure(stage, exit.words());
        if exit == Exit::Signal(nix::sys::signal::Signal::SIGKILL) {
            failure.cause.get_or_insert(LikelyCause::OutOfMemory);
        }
        Some(failure)
    }

    /// A failure with the end of the log and its likely cause. What the server answered is surer than
    /// its log.
    pub fn failure(&mut self, stage: DeploymentStage, what: String) -> DeploymentFailure {
        if self.server.read_rest_of_log() {
            self.log.settle();
        }
        let text = self.log.text();
        let in_log = || match stage {
            DeploymentStage::Died | DeploymentStage::Measure | DeploymentStage::Stop => {
                log::likely(log::end_of(&text, LINES_OF_DEATH))
            }
            DeploymentStage::Start
            | DeploymentStage::Ended
            | DeploymentStage::Ready
            | DeploymentStage::Generate => log::likely(&text),
        };
        let cause = log::likely(&what).or_else(in_log);
        DeploymentFailure { stage, what, cause, log: self.log.last_lines(LINES_SHOWN) }
    }

    pub fn facts(&self, ready_after: Duration, restarts: u32) -> DeploymentFacts {
        DeploymentFacts {
            kind: self.kind.to_owned(),
            command: self.command.clone(),
            image: self.server.image(),
            environment: self.environment.clone(),
            ready_after,
            restarts,
        }
    }

    /// Stops it and proves that it is gone.
    pub fn stop(mut self) -> Departure {
        self.shut_down()
    }

    fn shut_down(&mut self) -> Departure {
        self.is_down = true;
        let since = Stopwatch::start();
        let mut gone = self.server.end(self.grace);
        let port_closed = until(PORT_PATIENCE, || is_closed(&self.base));
        if !port_closed {
            let gateway = "; it may be a permanent gateway";
            let hint = if self.base.host == "127.0.0.1" { "" } else { gateway };
            gone.troubles.push(format!("{} still accepts connections{hint}", self.base));
        }
        let took = since.passed();
        // While the turn of this server lasts.
        let is_alone = Arc::strong_count(&TURNS) <= 2;
        let (gpu_memory, kept) = self
            .gpu_memory_before
            .map_or((None, None), |before| compared(before, is_alone, &mut memory_in_use));
        gone.troubles.extend(kept);
        gone.troubles.extend(self.log.close());
        Departure {
            ending: gone.ending,
            took,
            port_closed,
            left: gone.left,
            gpu_memory,
            troubles: gone.troubles,
        }
    }
}

impl Drop for Deployment {
    fn drop(&mut self) {
        if !self.is_down {
            let _ = self.shut_down();
        }
    }
}

/// How a server of any kind ended.
#[derive(Debug)]
struct Stopped {
    ending: DepartureEnding,
    exit: Option<Exit>,
    /// Processes that are left, by number and name.
    left: Vec<(u32, String)>,
    troubles: Vec<String>,
}

/// A server that was deployed as a process, in a container or by commands.
trait Server: std::fmt::Debug + Send {
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
enum Presence {
    Ready,
    NotYet(String),
    Failed(DeploymentStage, String),
}

/// All that one start needs.
struct StartContext<'a> {
    spec: &'a DeploymentSpec,
    start: AtStart,
    environment: Environment,
    mark: String,
}

/// The started server, before it is ready.
struct StartedServer {
    server: Box<dyn Server>,
    log: Log,
    /// As it may be shown.
    command: Vec<String>,
    environment: Vec<(String, String)>,
}

#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    Fill(#[from] FillError),
    #[error("port {0} is in use already; stop the process that listens on it, or use another port")]
    Taken(u16),
    #[error("the command sets no port; write `{{port}}` in it, such as `--port {{port}}`")]
    NoPort,
    #[error("no free port was found: {0}")]
    Port(io::Error),
    #[error("its log {path} cannot be written: {error}")]
    Log { path: String, error: io::Error },
    #[error("`{0}` was not found; check its spelling and PATH")]
    NotFound(String),
    #[error("the folder `{0}` does not exist; create it, or correct its name")]
    Folder(String),
    #[error("`{program}` could not be started: {error}")]
    Spawn { program: String, error: io::Error },
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
    let turn = Arc::clone(&TURNS);
    let gpu_memory_before = memory_in_use();
    let since = Stopwatch::start();
    let mark = unique();
    let ours = std::env::vars_os();
    let ours = ours.filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect();
    let start = AtStart { port, name: format!("inferometer-{mark}"), ours };
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

    fn spawned<'b>(&'b self, farewell: &'b [String]) -> Start<'b> {
        Start { mark: &self.mark, folder: None, grace: self.spec.grace, farewell }
    }

    /// A log without the keys that these words and the environment have.
    fn log(&self, path: &Path, words: &[String]) -> Result<(Log, io::PipeWriter), StartError> {
        let mut keys: Vec<Secret> = self.environment.keys();
        keys.extend(secret::values(words).into_iter().map(Secret::new));
        keys.extend(words.iter().flat_map(|word| self.start.keys(word)));
        keys.extend(self.spec.environment.set.values().flat_map(|value| self.start.keys(value)));
        let failed = |error| StartError::Log { path: path.display().to_string(), error };
        Log::create(path, Redactor::new(&keys)).map_err(failed)
    }
}

/// With the command as it may be shown.
fn not_started(words: &[String], error: io::Error) -> StartError {
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

/// Whether the port is closed again. On this machine that is looked up: connections that are not accepted
/// would fill the queue of a listener until it seems to be gone.
fn is_closed(base: &BaseUrl) -> bool {
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

/// Drivers take a moment to clean up after a process.
const PATIENCE: Duration = Duration::from_secs(5);
/// Tolerance for other programs that start and end.
const TOLERANCE: u64 = 64 << 20;

/// Servers of this process, from before their start until they are gone: a clone for each.
static TURNS: LazyLock<Arc<()>> = LazyLock::new(Arc::default);

/// Waits until the memory is released. While another server of this process runs, the memory may be
/// that server's: then it is neither waited for nor reported.
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
        "{mebibytes} MiB more of GPU memory are in use than before the start; nvidia-smi or \
         rocm-smi shows the processes that use them"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Faults: 98.
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
