//! Servers that are deployed for a measurement and stopped after it, whatever happens meanwhile.

mod commands;
mod container;
mod environment;
mod log;
pub mod placeholder;
mod process;
pub mod secret;
mod server;

use std::path::Path;
use std::time::Duration;

use inferometer_model::BaseUrl;
use inferometer_model::deployment::{
    Departure, DepartureEnding, DeploymentFacts, DeploymentFailure, DeploymentSpec,
    DeploymentStage, LikelyCause,
};

use self::log::Log;
use self::process::Exit;
pub use self::server::says_port;
use self::server::{Presence, Server};
pub use placeholder::{fill_shell, fill_shell_planned, shell_quoted};
use process::GivenPort;
pub use process::serving;
use process::{Stopwatch, until};
use server::Turn;

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
    _turn: Turn,
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
        server::start(spec, log, None)
    }

    /// Deploys a server whose command has a port of its own. Refused where the port is in use.
    pub fn start_at(
        spec: &DeploymentSpec,
        port: u16,
        log: &Path,
    ) -> Result<Self, DeploymentFailure> {
        server::start(spec, log, Some(port))
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
            Probe::Unable(words) => self.failure(
                DeploymentStage::Generate,
                format!("it answered, and had generated nothing after {seconds} s: {words}"),
            ),
            Probe::NotYet(words) => self.failure(
                DeploymentStage::Ready,
                format!(
                    "it was not ready within {seconds} s: {words}; give it longer, or see its log"
                ),
            ),
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
        let port_closed = until(PORT_PATIENCE, || server::is_closed(&self.base));
        if !port_closed {
            let behind = "; it may be a gateway that stays";
            let hint = if self.base.host == "127.0.0.1" { "" } else { behind };
            gone.troubles.push(format!("something still listens on {}{hint}", self.base));
        }
        let took = since.passed();
        let (gpu_memory, kept) = server::given_back(self.gpu_memory_before);
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
struct Stopped {
    ending: DepartureEnding,
    left: Vec<(u32, String)>,
    troubles: Vec<String>,
}
