//! A server that is there: started or reached, asked what it serves, and then measured.

use std::sync::Arc;

use inferometer_load::{Target, resources};
use inferometer_model::observations::{Correction, Endpoint};
use inferometer_model::spec::{EngineSpec, Extent, LoadShape, Rate, TargetSpec};
use inferometer_model::system::ServerFacts;
use inferometer_model::{BaseUrl, Plan, Spec};
use inferometer_target::EngineProcess;
use inferometer_workload::{Ingredients, make_plan, make_warm_up};

use crate::deployed::Deployed;
use crate::embedded;
use crate::event::Event;
use crate::failure::Failure;
use crate::measurement::{Measured, Measurement};
use crate::place::Place;
use crate::preflight::{Found, carrying, counting, preflight};
use crate::secrets::Secrets;
use crate::server_facts;
pub use crate::session::Session;

/// The server of one experiment, ready to be measured.
#[derive(Debug)]
pub struct Live {
    found: Found,
    /// What it is and runs on.
    facts: ServerFacts,
    /// How the server counts our words, where it was asked.
    correction: Option<Correction>,
    /// What the names of its requests begin with, where somebody cares.
    request_id_prefix: Option<String>,
    /// Ends with the last measurement, where it is ours.
    _server: Arc<Server>,
}

impl Live {
    /// Asks the server all that must be known before a run.
    pub fn reach(
        server: Arc<Server>,
        spec: &Spec,
        secrets: &Secrets,
        ingredients: &Ingredients,
        plan: &dyn Plan,
    ) -> Result<Self, Failure> {
        let found = preflight(spec, secrets, server.base(), server.is_embedded())?;
        let facts = server_facts::find(spec, &found, server.deployed().map(Deployed::facts))?;
        let body = &spec.workload.body;
        if body.images.is_some() || body.adapters.is_some() {
            carrying::check(&found.target, secrets, plan)?;
        }
        let correction = if ingredients.wants_correction() {
            counting::correction(&found.target)?
        } else {
            None
        };
        Ok(Self { found, facts, correction, request_id_prefix: None, _server: server })
    }

    /// The same server, with requests that are named so.
    pub fn naming_requests(self, request_id_prefix: Option<String>) -> Self {
        Self { request_id_prefix, ..self }
    }

    /// For errands beside the measurement.
    pub fn target(&self) -> &Target {
        &self.found.target
    }

    /// The event that opens the measurement.
    pub fn opening(&self, spec: &Spec) -> Event {
        let Endpoint { model, base, .. } = self.found.endpoint.clone();
        Event::Measuring { api: spec.api, model, base }
    }

    /// Measures. A signal before the first request is a failure, and nothing is stored.
    pub fn measure(
        &self,
        spec: &Spec,
        mut ingredients: Ingredients,
        place: Place<'_>,
        session: &Session,
    ) -> Result<Measured, Failure> {
        if let Some(correction) = self.correction {
            ingredients.correct(correction);
        }
        let (plan, fingerprints) = make_plan(spec, &ingredients);
        check_sends_something(plan.as_ref())?;
        let measurement = Measurement {
            warm_up: make_warm_up(spec, &ingredients),
            spec: spec.clone(),
            plan,
            fingerprints,
            materials: ingredients.materials().clone(),
            request_id_prefix: self.request_id_prefix.clone(),
        };
        measurement.make(place, self.found.clone(), self.facts.clone(), session)
    }
}

pub fn check_sends_something(plan: &dyn Plan) -> Result<(), Failure> {
    if plan.bounds().requests != Some(0) {
        return Ok(());
    }
    Err(Failure::usage("no request falls into --duration at this rate")
        .hint("run longer, raise the rate, or give a number with --requests"))
}

/// Raises the limit on descriptors, and says how many requests may be in flight then.
pub fn ceiling(spec: &Spec) -> usize {
    resources::raise_in_flight_ceiling(spec.client.drivers)
}

/// What is certain to be in flight at once must find its descriptors.
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
    Embedded(EngineProcess),
    Remote(BaseUrl),
    /// Put up by us.
    Deployed(Box<Deployed>),
}

impl Server {
    /// One that is there, or an engine; a server that must be put up needs more than its spec.
    pub fn of(spec: &Spec) -> Result<Self, Failure> {
        match &spec.target {
            TargetSpec::Url(base) => Ok(Self::Remote(base.clone())),
            TargetSpec::Deployed(_) => Err(Failure::usage("this command does not put servers up")
                .hint("start the server by hand and give its URL")),
            TargetSpec::Embedded => {
                let program = std::env::current_exe()
                    .map_err(|error| Failure::internal(format!("own program: {error}")))?;
                // What cannot be served is refused here, with the words that explain it.
                embedded::profile(&spec.engine)?;
                let mode = ["--mode", "serve"].map(str::to_owned);
                let seed = Some(embedded::noise_seed(spec));
                let engine = EngineSpec { seed, ..spec.engine.clone() };
                let arguments = [mode.to_vec(), embedded::flags(&engine)?].concat();
                EngineProcess::start(&program, &arguments)
                    .map(Self::Embedded)
                    .map_err(|error| Failure::internal(error.to_string()))
            }
        }
    }

    pub fn base(&self) -> &BaseUrl {
        match self {
            Self::Embedded(engine) => &engine.base,
            Self::Remote(base) => base,
            Self::Deployed(deployed) => deployed.base(),
        }
    }

    pub fn deployed(&self) -> Option<&Deployed> {
        match self {
            Self::Deployed(deployed) => Some(deployed),
            Self::Embedded(_) | Self::Remote(_) => None,
        }
    }

    pub fn is_embedded(&self) -> bool {
        matches!(self, Self::Embedded(_))
    }
}
