//! A server that can be measured: reached, deployed or embedded, and probed.

use std::sync::Arc;

use inferometer_load::{Target, resources};
use inferometer_model::observations::{Correction, Endpoint};
use inferometer_model::spec::{Extent, LoadShape, Rate, TargetSpec};
use inferometer_model::system::ServerFacts;
use inferometer_model::{BaseUrl, Spec};

use crate::deployed::Deployed;
use crate::embedded::Engine;
use crate::event::Event;
use crate::failure::Failure;
use crate::location::RunLocation;
use crate::measurement::{Measurement, Planned, Run};
use crate::preflight::{Found, check_carried, correction, preflight};
use crate::secrets::Secrets;
use crate::server_facts;
pub use crate::session::Session;

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
        let facts = server_facts::find(spec, &found, server.deployed().map(Deployed::facts))?;
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
            Self::Deployed(deployed) => deployed.base(),
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
