//! One benchmark from its spec to a stored run, and the server that it measures: reached, deployed or
//! embedded, and probed.

use std::path::PathBuf;
use std::sync::Arc;

use inferometer_analysis::check_slos;
use inferometer_load::{Target, resources};
use inferometer_model::observations::{Correction, Endpoint};
use inferometer_model::spec::{Extent, LoadShape, Rate, TargetSpec};
use inferometer_model::system::ServerFacts;
use inferometer_model::{BaseUrl, Spec};
use inferometer_store::RunStore;

use crate::deployed::{self, Deployed};
use crate::embedded::Engine;
use crate::environment;
use crate::failure::Failure;
use crate::measurement::{Measurement, Planned, Run, RunLocation};
use crate::preflight::{Found, check_carried, correction, preflight};
use crate::secrets::Secrets;
use crate::session::Event;
pub use crate::session::Session;

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
        let ceiling = ceiling(&planned.spec);
        check_ceiling(&planned.spec, ceiling)?;
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
        let is_deployed = matches!(spec.target, TargetSpec::Deployed(_));
        let log = is_deployed.then(|| deployed::log_in(store.path()));
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
        let location = RunLocation { server_log: log.as_deref(), ..RunLocation::in_store(&store) };
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
        Some(lost) if !failure.is_interruption() => deployed.explain(&lost, &deployed.log),
        Some(_) | None => failure,
    }
}

/// A server that was probed and is ready to be measured.
#[derive(Debug)]
#[must_use]
pub struct Live {
    pub(crate) found: Found,
    /// What the server is and what it runs on.
    pub(crate) facts: ServerFacts,
    /// How the server counts our words, where it was asked.
    correction: Option<Correction>,
    /// Begins the id of every request; `None` uses the id of the run.
    pub(crate) request_id_prefix: Option<String>,
    /// Ends with the last measurement, where it is ours.
    _server: Arc<Server>,
}

impl Live {
    /// Probes everything that must be known before a run.
    pub fn reach(
        server: Arc<Server>,
        secrets: &Secrets,
        planned: &Planned,
    ) -> Result<Self, Failure> {
        let Planned { spec, inputs, plan, .. } = planned;
        let found = preflight(spec, secrets, server.base(), server.is_embedded())?;
        let facts = environment::find_server(
            spec,
            &found,
            server.deployed().map(|deployed| &deployed.facts),
        )?;
        let body = &spec.workload.body;
        if body.images.is_some() || body.adapters.is_some() {
            check_carried(&found.target, secrets, plan.as_ref())?;
        }
        let correction = if inputs.wants_correction() { correction(&found.target)? } else { None };
        Ok(Self { found, facts, correction, request_id_prefix: None, _server: server })
    }

    /// The same server, with request ids that begin with this prefix.
    pub fn naming_requests(self, request_id_prefix: Option<String>) -> Self {
        Self { request_id_prefix, ..self }
    }

    /// Where requests are sent.
    pub fn target(&self) -> &Target {
        &self.found.target
    }

    /// The event that opens the measurement.
    pub fn opening(&self) -> Event {
        let Endpoint { model, base, .. } = self.found.endpoint.clone();
        Event::Measuring { api: self.found.target.api, model, base }
    }

    /// Measures. A signal before the first request is a failure, and nothing is stored.
    pub fn measure(
        &self,
        planned: Planned,
        location: RunLocation<'_>,
        session: &Session,
    ) -> Result<Run, Failure> {
        // Only lengths as the server counts them change the plan.
        let planned = match self.correction {
            Some(correction) => planned.corrected(correction),
            None => planned,
        };
        planned.check_sends_something()?;
        Measurement { planned, live: self, session }.make(location)
    }
}

/// Raises the limit on file descriptors, and returns how many requests may be in flight then.
pub fn ceiling(spec: &Spec) -> usize {
    resources::raise_in_flight_ceiling(spec.client.drivers)
}

/// Fails if requests that are certain to be in flight at once need more file descriptors.
pub fn check_ceiling(spec: &Spec, ceiling: usize) -> Result<(), Failure> {
    if ceiling == 0 {
        return Err(Failure::usage(
            "this system gives too few file descriptors: no request can be in flight",
        )
        .hint("raise the limit with `ulimit -n`"));
    }
    let (flag, wanted) = match (&spec.load.shape, spec.load.extent) {
        (LoadShape::Closed { concurrency, .. }, _) => ("--concurrency", concurrency.get().into()),
        (LoadShape::Open { cap: Some(cap), .. }, _) => ("--max-concurrency", cap.get().into()),
        (LoadShape::Open { rate: Rate::Unlimited, .. }, Extent::Requests(requests)) => {
            ("--rate inf with --requests", requests.get())
        }
        (LoadShape::Open { .. }, _) => return Ok(()),
    };
    if wanted <= ceiling as u64 {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{flag} {wanted} needs more file descriptors than this system gives: {ceiling} requests \
         can be in flight"
    ))
    .hint("raise the limit with `ulimit -n`, or ask for fewer requests at once"))
}

/// The server to measure, kept alive while it is needed.
#[derive(Debug)]
pub enum Server {
    /// The engine of this program.
    Embedded(Engine),
    /// A server that runs already.
    Remote(BaseUrl),
    /// A server that we deployed.
    Deployed(Box<Deployed>),
}

impl Server {
    /// A server that runs already, or the embedded engine. A server that must be deployed needs
    /// more than its spec: see [`Deployed::start`].
    pub fn new(spec: &Spec) -> Result<Self, Failure> {
        match &spec.target {
            TargetSpec::Url(base) => Ok(Self::Remote(base.clone())),
            TargetSpec::Deployed(_) => Err(Failure::usage("this command does not deploy servers")
                .hint("start the server by hand and give its URL")),
            TargetSpec::Embedded => Engine::for_spec(spec).map(Self::Embedded),
        }
    }

    /// The base URL of the server.
    pub fn base(&self) -> &BaseUrl {
        match self {
            Self::Embedded(engine) => engine.base(),
            Self::Remote(base) => base,
            Self::Deployed(deployed) => &deployed.base,
        }
    }

    /// The deployment, if we deployed the server.
    pub fn deployed(&self) -> Option<&Deployed> {
        match self {
            Self::Deployed(deployed) => Some(deployed),
            Self::Embedded(_) | Self::Remote(_) => None,
        }
    }

    /// Whether it is the embedded engine.
    pub fn is_embedded(&self) -> bool {
        matches!(self, Self::Embedded(_))
    }
}
