//! One benchmark from its spec to a stored run.

use std::path::PathBuf;
use std::sync::Arc;

use inferometer_analysis::check_slos;
use inferometer_model::Spec;
use inferometer_model::spec::TargetSpec;
use inferometer_store::RunStore;

use crate::deployed::{self, Deployed};
use crate::event::Event;
use crate::failure::Failure;
use crate::live::{self, Live, Server, Session};
use crate::location::RunLocation;
use crate::measurement::{Planned, Run};
use crate::secrets::Secrets;

/// A benchmark that is planned and checked, and has sent nothing yet.
#[derive(Debug)]
#[must_use]
pub struct Runner {
    planned: Planned,
    secrets: Secrets,
    folder: PathBuf,
    ceiling: usize,
}

impl Runner {
    /// Reads what the spec names, plans every request, and checks what can be checked without a
    /// server.
    pub fn new(spec: Spec) -> Result<Self, Failure> {
        check_slos(&spec.slos, spec.workload.streaming).map_err(Failure::from_usage)?;
        Self::from_planned(Planned::new(spec)?)
    }

    /// The same for a plan that was made before.
    pub fn from_planned(planned: Planned) -> Result<Self, Failure> {
        planned.check_sends_something()?;
        let ceiling = live::ceiling(&planned.spec);
        live::check_ceiling(&planned.spec, ceiling)?;
        Ok(Self { planned, secrets: Secrets::default(), folder: PathBuf::from("runs"), ceiling })
    }

    /// Keys and headers to send. The default is none.
    pub fn secrets(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// The folder in which runs are stored. The default is `./runs`.
    pub fn store_in(self, folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), ..self }
    }

    /// Requests that may be in flight before the system runs out of file descriptors.
    pub fn ceiling(&self) -> usize {
        self.ceiling
    }

    /// Runs the benchmark to its end. Every [`Event`] is passed to `observe`, from several threads.
    /// Signals are not handled; see [`Runner::connect`].
    pub fn run(self, observe: impl Fn(Event) + Send + Sync + 'static) -> Result<Run, Failure> {
        let session = Session::new(self.ceiling, Arc::new(observe));
        self.connect(&session)?.measure(&session)
    }

    /// Deploys or reaches the server and probes it. What comes next is [`Connected::measure`].
    pub fn connect(self, session: &Session) -> Result<Connected, Failure> {
        let store = RunStore::open(self.folder).map_err(Failure::from_usage)?;
        store.check_writable().map_err(Failure::from_usage)?;
        let spec = &self.planned.spec;
        let log = match &spec.target {
            TargetSpec::Deployed(_) => Some(deployed::log_in(store.path())),
            TargetSpec::Embedded | TargetSpec::Url(_) => None,
        };
        let server = if let Some(log) = &log {
            Deployed::server(spec, &self.secrets, log, session)?
        } else {
            let server = Server::new(spec)?;
            session.emit(Event::Probing { base: server.base().clone() });
            server
        };
        let server = Arc::new(server);
        let live = Live::reach(Arc::clone(&server), &self.secrets, &self.planned)
            .map_err(|failure| explain(failure, &server, session))?;
        session.emit(live.opening());
        Ok(Connected { planned: self.planned, store, log, server, live })
    }
}

/// A benchmark whose server was probed.
#[derive(Debug)]
pub struct Connected {
    planned: Planned,
    store: RunStore,
    log: Option<PathBuf>,
    server: Arc<Server>,
    live: Live,
}

impl Connected {
    /// Measures, stores and summarizes. A server that was deployed for it is stopped, whatever
    /// happens.
    pub fn measure(self, session: &Session) -> Result<Run, Failure> {
        let Self { planned, store, log, server, live } = self;
        let mut location = RunLocation::in_store(&store);
        if let Some(log) = &log {
            location = location.with_server_log(log);
        }
        let run = live
            .measure(planned, location, session)
            .map_err(|failure| explain(failure, &server, session))?;
        let (Some(deployed), Some(log)) = (server.deployed(), log) else { return Ok(run) };
        let lost = deployed.lost(Some(run.summary.run.stop));
        deployed.stop(session);
        let log = deployed::keep_log(&log, run.directory.path());
        let server_failure = lost
            .filter(|_| session.interruption.exit().is_none())
            .map(|lost| deployed.explain(&lost, &log));
        Ok(Run { server_failure, ..run })
    }
}

/// What a deployed server wrote last explains a failure better than the failure does. The server is
/// stopped.
fn explain(failure: Failure, server: &Server, session: &Session) -> Failure {
    let Some(deployed) = server.deployed() else { return failure };
    let lost = deployed.lost(None);
    let failure = failure.shown(deployed.last_lines());
    deployed.stop(session);
    match lost {
        Some(lost) if !failure.is_interruption() => deployed.explain(&lost, deployed.log()),
        Some(_) | None => failure,
    }
}
