//! A cell over the wire: put up, asked what it serves, measured at every load, drained, taken down.

use std::sync::Arc;

use inferometer_analysis::Summary;
use inferometer_model::campaign::{DeploymentRecord, Point};
use inferometer_model::deployment::{DeploymentFailure, DeploymentStage};
use inferometer_model::journal::RunStop;
use inferometer_model::spec::TargetSpec;
use inferometer_model::{Outcome, Spec};
use inferometer_study::matrix::Deployment;

use super::cell::{Cell, not_measured};
use super::drain::{self, Drained};
use super::unfit;
use crate::deployed::{self, Deployed, Reason};
use crate::failure::Failure;
use crate::live::{Live, Server};
use crate::measurement::Planned;
use crate::secrets::Secrets;
use crate::set::{found_nobody, was_cut};

/// Why a server is not measured any further.
enum Ended {
    /// All its loads were.
    Done,
    /// It is gone.
    Died(DeploymentFailure),
}

/// Whatever happens, the server is stopped.
pub(super) fn play(cell: &Cell<'_>, secrets: &Secrets, left: &[Point]) -> Result<(), Failure> {
    let Some(first) = left.first() else { return Ok(()) };
    let server = match put_up(cell, secrets, &cell.spec(first)?)? {
        Ok(server) => Arc::new(server),
        Err(failure) => return cell.failed(left, &failure),
    };
    let up = Up { cell, secrets, server };
    let mut drained = Drained::Unsaid;
    let ended = up.measure_all(left, &mut drained);
    up.take_down(drained)?;
    match ended? {
        Ended::Done => Ok(()),
        Ended::Died(failure) => {
            let lost: Vec<Point> = left.iter().filter(|it| !cell.is_known(it)).copied().collect();
            cell.failed(&lost, &failure)
        }
    }
}

/// A server, or why there is none.
type PutUp = Result<Server, DeploymentFailure>;

fn put_up(cell: &Cell<'_>, secrets: &Secrets, spec: &Spec) -> Result<PutUp, Failure> {
    match &spec.target {
        TargetSpec::Deployed(_) => {
            let Deployment { condition, repetition, .. } = *cell.deployment;
            let log = deployed::free(&cell.hall.set.deployment_log(condition, repetition));
            let not_up = match Deployed::start(spec, secrets, &log, cell.hall.measuring) {
                Ok(up) => return Ok(Ok(Server::Deployed(Box::new(up)))),
                Err(not_up) => *not_up,
            };
            if let Some(record) = not_up.record(condition, repetition, &log) {
                cell.hall.set.write_deployment(&record)?;
            }
            match not_up.reason {
                Reason::Interrupted(exit) => Err(Failure::interrupted(exit)),
                Reason::Failed { found, .. } => Ok(Err(found)),
            }
        }
        TargetSpec::Url(_) => Server::new(spec).map(Ok),
        TargetSpec::Embedded => {
            if let Some(failure) = unfit::reason(&spec.engine)? {
                return Ok(Err(failure));
            }
            let started = Server::new(spec);
            Ok(started.map_err(|failure| not_started(failure.message().to_owned())))
        }
    }
}

fn not_started(what: String) -> DeploymentFailure {
    DeploymentFailure { stage: DeploymentStage::Start, what, cause: None, log: Vec::new() }
}

/// A server that is there.
struct Up<'a> {
    cell: &'a Cell<'a>,
    secrets: &'a Secrets,
    server: Arc<Server>,
}

impl Up<'_> {
    /// Each load after the other; the server is idle before the next begins.
    fn measure_all(&self, left: &[Point], drained: &mut Drained) -> Result<Ended, Failure> {
        for point in left {
            match self.measure(point, drained)? {
                Ended::Done => {}
                died @ Ended::Died(_) => return Ok(died),
            }
            if let Drained::Stopped(exit) = drained {
                return Err(Failure::interrupted(*exit));
            }
        }
        Ok(Ended::Done)
    }

    fn measure(&self, point: &Point, drained: &mut Drained) -> Result<Ended, Failure> {
        let spec = self.cell.spec(point)?;
        let summary = match self.try_measure(point, &spec, drained) {
            Ok(summary) => summary,
            Err(failure) if failure.is_our_own() => return Err(failure),
            Err(failure) => return self.not_measured(point, &failure),
        };
        if was_cut(&summary) {
            self.cell.hall.session.interruption.check()?;
        }
        match self.died(&summary) {
            Some(failure) if is_spoilt(&summary) => {
                self.cell.hall.set.abandon(point.number)?;
                Ok(Ended::Died(failure))
            }
            died => {
                self.cell.measured(point, summary);
                Ok(died.map_or(Ended::Done, Ended::Died))
            }
        }
    }

    fn try_measure(
        &self,
        point: &Point,
        spec: &Spec,
        drained: &mut Drained,
    ) -> Result<Summary, Failure> {
        let planned = Planned::new(spec.clone())?;
        let live = Live::reach(Arc::clone(&self.server), self.secrets, &planned)?;
        let (place, session) = (self.cell.place(point), self.cell.hall.measuring);
        *drained = Drained::Unsaid;
        let measured = live.measure(planned, place, session)?;
        let path = spec.telemetry.as_ref().map(|telemetry| telemetry.path.as_str());
        *drained = drain::until_idle(live.target(), path, &session.interruption);
        Ok(measured.summary)
    }

    /// The server is to blame: it is gone, or what it answers is of no use at this load.
    fn not_measured(&self, point: &Point, failure: &Failure) -> Result<Ended, Failure> {
        if let Some(lost) = self.server.deployed().and_then(|deployed| deployed.lost(None)) {
            return Ok(Ended::Died(as_death(lost)));
        }
        let mut found = not_measured(failure);
        if let Some(deployed) = self.server.deployed() {
            let told = deployed.failure(found.stage, found.what.clone());
            // Its last words come after what became of our question.
            found = DeploymentFailure { log: [found.log, told.log].concat(), ..told };
        }
        self.cell.failed(&[*point], &found).map(|()| Ended::Done)
    }

    /// Why the server is gone; `None` while it is there.
    fn died(&self, summary: &Summary) -> Option<DeploymentFailure> {
        let stop = if found_nobody(summary) { RunStop::Unreachable } else { summary.run.stop };
        match self.server.deployed() {
            Some(deployed) => deployed.lost(Some(stop)).map(as_death),
            None => (stop == RunStop::Unreachable)
                .then(|| as_death(not_started("it could not be reached any more".to_owned()))),
        }
    }

    fn take_down(self, drained: Drained) -> Result<(), Failure> {
        let Cell { hall, deployment, .. } = *self.cell;
        let deployed = self.server.deployed();
        let mut departure = deployed.and_then(|deployed| deployed.stop(hall.measuring));
        if let (Drained::Busy, Some(departure)) = (drained, &mut departure) {
            let patience = drain::PATIENCE;
            departure
                .troubles
                .push(format!("it was still at work {patience:?} after its last run"));
        }
        let drained_after_s = match drained {
            Drained::Idle(after_s) => Some(after_s),
            Drained::Unsaid | Drained::Busy | Drained::Stopped(_) => None,
        };
        Ok(hall.set.write_deployment(&DeploymentRecord {
            condition: deployment.condition,
            repetition: deployment.repetition,
            facts: deployed.map(|deployed| deployed.facts().clone()),
            departure,
            drained_after_s,
            log: deployed.and_then(|deployed| deployed::name_of(deployed.log())),
        })?)
    }
}

fn as_death(failure: DeploymentFailure) -> DeploymentFailure {
    DeploymentFailure { stage: DeploymentStage::Died, ..failure }
}

/// Whether something is missing in a run: where its server died, it tells nothing else.
fn is_spoilt(summary: &Summary) -> bool {
    was_cut(summary) || summary.count(Outcome::Ok) < summary.attempted
}
