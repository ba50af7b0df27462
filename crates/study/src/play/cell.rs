//! A cell of a matrix over the wire: deployed, measured at every load, drained, stopped.

use std::sync::Arc;

use inferometer_analysis::Summary;
use inferometer_model::campaign::{DeploymentRecord, Point};
use inferometer_model::deployment::{DeploymentFailure, DeploymentStage};
use inferometer_model::journal::RunStop;
use inferometer_model::spec::TargetSpec;
use inferometer_model::{Outcome, Spec};
use inferometer_runner::deployed::{self, Deployed, Reason};
use inferometer_runner::live::{Live, Server};
use inferometer_runner::measurement::Planned;
use inferometer_runner::secrets::Secrets;
use inferometer_runner::{Failure, Session};

use super::drain::{self, Drained};
use super::lanes::not_measured;
use super::{Job, Work, found_nobody, was_cut};
use crate::matrix::Deployment;

/// Measures these points of a deployment. Whatever happens, the server is stopped.
pub(super) fn measure(
    work: Work<'_>,
    secrets: &Secrets,
    deployment: &Deployment,
    left: &[Point],
    session: &Session,
) -> Result<(), Failure> {
    let Some(first) = left.first() else { return Ok(()) };
    let spec = work.job(first, None)?.spec;
    let server = match start(work, secrets, deployment, &spec, session)? {
        Ok(server) => Arc::new(server),
        Err(failure) => return work.failed(left, &failure),
    };
    let mut cell = Cell { work, secrets, session, server, drained: Drained::Unsaid };
    let died = cell.measure_all(left);
    cell.stop(deployment)?;
    match died? {
        None => Ok(()),
        Some(failure) => {
            let lost = left.iter().filter(|point| !work.ledger.knows(point));
            work.failed(&lost.copied().collect::<Vec<_>>(), &failure)
        }
    }
}

/// Starts or deploys the server; the inner error is the result of the cell.
fn start(
    work: Work<'_>,
    secrets: &Secrets,
    deployment: &Deployment,
    spec: &Spec,
    session: &Session,
) -> Result<Result<Server, DeploymentFailure>, Failure> {
    let Deployment { condition, repetition, .. } = *deployment;
    match &spec.target {
        TargetSpec::Deployed(_) => {
            let set = work.player.set;
            let log = deployed::free(&set.deployment_log(condition, repetition));
            let not_up = match Deployed::start(spec, secrets, &log, session) {
                Ok(up) => return Ok(Ok(Server::Deployed(Box::new(up)))),
                Err(not_up) => *not_up,
            };
            if let Some(record) = not_up.record(condition, repetition, &log) {
                set.write_deployment(&record)?;
            }
            match not_up.reason {
                Reason::Interrupted(exit) => Err(Failure::interrupted(exit)),
                Reason::Failed { found, .. } => Ok(Err(found)),
            }
        }
        TargetSpec::Url(_) => Server::new(spec).map(Ok),
        TargetSpec::Embedded => {
            let failed = |failure: Failure| failed_at(DeploymentStage::Start, failure.message());
            Ok(Server::new(spec).map_err(failed))
        }
    }
}

fn failed_at(stage: DeploymentStage, what: &str) -> DeploymentFailure {
    DeploymentFailure { stage, what: what.to_owned(), cause: None, log: Vec::new() }
}

fn as_death(failure: DeploymentFailure) -> DeploymentFailure {
    DeploymentFailure { stage: DeploymentStage::Died, ..failure }
}

/// A cell whose server is up.
struct Cell<'a> {
    work: Work<'a>,
    secrets: &'a Secrets,
    session: &'a Session,
    server: Arc<Server>,
    /// After the last run.
    drained: Drained,
}

impl Cell<'_> {
    /// Measures one load after the other. Returns why the server is gone, if it is.
    fn measure_all(&mut self, left: &[Point]) -> Result<Option<DeploymentFailure>, Failure> {
        for point in left {
            let died = self.measure(&self.work.job(point, None)?)?;
            if died.is_some() {
                return Ok(died);
            }
            if let Drained::Stopped(exit) = self.drained {
                return Err(Failure::interrupted(exit));
            }
        }
        Ok(None)
    }

    fn measure(&mut self, job: &Job<'_>) -> Result<Option<DeploymentFailure>, Failure> {
        let summary = match self.try_measure(job) {
            Ok(summary) => summary,
            Err(failure) if failure.is_our_own() => return Err(failure),
            Err(failure) => return self.not_measured(&job.point, &failure),
        };
        if was_cut(&summary) {
            self.session.interruption.check()?;
        }
        let is_spoilt = was_cut(&summary) || summary.count(Outcome::Ok) < summary.attempted;
        let died = self.died(&summary);
        if died.is_some() && is_spoilt {
            self.work.player.set.abandon(job.point.number)?;
        } else {
            self.work.measured(&job.point, summary);
        }
        Ok(died)
    }

    fn try_measure(&mut self, job: &Job<'_>) -> Result<Summary, Failure> {
        let planned = Planned::new(job.spec.clone())?;
        let live = Live::reach(Arc::clone(&self.server), self.secrets, &planned)?;
        self.drained = Drained::Unsaid;
        let measured = live.measure(planned, job.location, self.session)?;
        let path = job.spec.telemetry.as_ref().map(|telemetry| telemetry.path.as_str());
        self.drained = drain::until_idle(live.target(), path, &self.session.interruption);
        Ok(measured.summary)
    }

    /// The server is to blame: it is gone, or its answers are of no use at this load.
    fn not_measured(
        &self,
        point: &Point,
        failure: &Failure,
    ) -> Result<Option<DeploymentFailure>, Failure> {
        let mut found = not_measured(failure);
        if let Some(deployed) = self.server.deployed() {
            if let Some(lost) = deployed.lost(None) {
                return Ok(Some(as_death(lost)));
            }
            let with_log = deployed.failure(found.stage, found.what.clone());
            found = DeploymentFailure { log: [found.log, with_log.log].concat(), ..with_log };
        }
        self.work.failed(&[*point], &found)?;
        Ok(None)
    }

    /// Why the server is gone; `None` while it is there.
    fn died(&self, summary: &Summary) -> Option<DeploymentFailure> {
        let stop = if found_nobody(summary) { RunStop::Unreachable } else { summary.run.stop };
        match self.server.deployed() {
            Some(deployed) => deployed.lost(Some(stop)).map(as_death),
            None => (stop == RunStop::Unreachable)
                .then(|| failed_at(DeploymentStage::Died, "it could not be reached any more")),
        }
    }

    fn stop(self, deployment: &Deployment) -> Result<(), Failure> {
        let deployed = self.server.deployed();
        let mut departure = deployed.and_then(|deployed| deployed.stop(self.session));
        if let (Drained::Busy, Some(departure)) = (self.drained, &mut departure) {
            let trouble = format!("it was still busy {:?} after its last run", drain::PATIENCE);
            departure.troubles.push(trouble);
        }
        let drained_after_s = match self.drained {
            Drained::Idle(after_s) => Some(after_s),
            Drained::Unsaid | Drained::Busy | Drained::Stopped(_) => None,
        };
        Ok(self.work.player.set.write_deployment(&DeploymentRecord {
            condition: deployment.condition,
            repetition: deployment.repetition,
            facts: deployed.map(|deployed| deployed.facts().clone()),
            departure,
            drained_after_s,
            log: deployed.and_then(|deployed| deployed::name_of(deployed.log())),
        })?)
    }
}
