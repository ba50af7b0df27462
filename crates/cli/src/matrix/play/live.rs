//! A cell over the wire: put up, asked what it serves, measured at every load, drained, taken down.

use std::sync::Arc;

use inferometer_analysis::Summary;
use inferometer_model::campaign::{DeploymentRecord, Point};
use inferometer_model::deployment::{DeploymentFailure, DeploymentStage};
use inferometer_model::journal::RunStop;
use inferometer_model::spec::TargetSpec;
use inferometer_model::{Outcome, Spec};
use inferometer_study::matrix::Deployment;
use inferometer_workload::{Ingredients, make_plan};

use super::cell::{Cell, not_measured};
use super::drain::{self, Drained};
use super::unfit;
use crate::deployed::{self, Deployed, Reason};
use crate::failure::{Exit, Failure};
use crate::live::{Live, Server};
use crate::secrets::Secrets;
use crate::set::{found_nobody, was_cut};

/// Why a server is not measured any further.
enum Ended {
    /// All its loads were.
    Done,
    /// It is gone.
    Died(DeploymentFailure),
    Stopped(Exit),
}

/// `Some` is the signal that stopped it. Whatever happens, the server is taken down.
pub(super) fn play(
    cell: &Cell<'_>,
    secrets: &Secrets,
    left: &[Point],
) -> Result<Option<Exit>, Failure> {
    let Some(first) = left.first() else { return Ok(None) };
    let server = match put_up(cell, secrets, &cell.spec(first)?)? {
        Ok(Ok(server)) => Arc::new(server),
        Ok(Err(exit)) => return Ok(Some(exit)),
        Err(failure) => return cell.failed(left, &failure).map(|()| None),
    };
    let up = Up { cell, secrets, server };
    let mut drained = Drained::Unsaid;
    let ended = up.measure_all(left, &mut drained);
    up.take_down(drained)?;
    match ended? {
        Ended::Done => Ok(None),
        Ended::Stopped(exit) => Ok(Some(exit)),
        Ended::Died(failure) => {
            let lost: Vec<Point> = left.iter().filter(|it| !cell.is_known(it)).copied().collect();
            cell.failed(&lost, &failure).map(|()| None)
        }
    }
}

/// A server, a signal that came first, or why there is none.
type PutUp = Result<Result<Server, Exit>, DeploymentFailure>;

fn put_up(cell: &Cell<'_>, secrets: &Secrets, spec: &Spec) -> Result<PutUp, Failure> {
    match &spec.target {
        TargetSpec::Deployed(_) => {
            let Deployment { condition, repetition, .. } = *cell.deployment;
            let log = deployed::free(&cell.hall.set.deployment_log(condition, repetition));
            let not_up = match Deployed::put_up(spec, secrets, &log, cell.hall.measuring) {
                Ok(up) => return Ok(Ok(Ok(Server::Deployed(Box::new(up))))),
                Err(not_up) => *not_up,
            };
            if let Some(record) = not_up.record(condition, repetition, &log) {
                cell.hall.set.write_deployment(&record)?;
            }
            Ok(match not_up.reason {
                Reason::Stopped(exit) => Ok(Err(exit)),
                Reason::Failed { found, .. } => Err(found),
            })
        }
        TargetSpec::Url(_) => Server::of(spec).map(|server| Ok(Ok(server))),
        TargetSpec::Embedded => {
            if let Some(failure) = unfit::reason(&spec.engine)? {
                return Ok(Err(failure));
            }
            let started = Server::of(spec);
            Ok(started.map(Ok).map_err(|failure| not_started(failure.message().to_owned())))
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
                ended @ (Ended::Died(_) | Ended::Stopped(_)) => return Ok(ended),
            }
            if let Drained::Stopped(exit) = drained {
                return Ok(Ended::Stopped(*exit));
            }
        }
        Ok(Ended::Done)
    }

    fn measure(&self, point: &Point, drained: &mut Drained) -> Result<Ended, Failure> {
        let spec = self.cell.spec(point)?;
        let measured = match self.try_measure(point, &spec, drained) {
            Ok(measured) => measured,
            Err(failure) if failure.is_internal() => return Err(failure),
            Err(failure) => return self.not_measured(point, &failure),
        };
        let summary = match measured {
            Ok(summary) => summary,
            Err(exit) => return Ok(Ended::Stopped(exit)),
        };
        let signal = self.cell.hall.session.interruption.exit();
        let died = self.died(&summary);
        match (signal, died) {
            (Some(exit), _) if was_cut(&summary) => Ok(Ended::Stopped(exit)),
            (_, Some(failure)) if is_spoilt(&summary) => {
                self.cell.hall.set.abandon(point.number)?;
                Ok(Ended::Died(failure))
            }
            (_, died) => {
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
    ) -> Result<Result<Summary, Exit>, Failure> {
        let ingredients = Ingredients::gather(spec)?;
        let (plan, _) = make_plan(spec, &ingredients);
        let server = Arc::clone(&self.server);
        let live = Live::reach(server, spec, self.secrets, &ingredients, plan.as_ref())?;
        let (place, session) = (self.cell.place(point), self.cell.hall.measuring);
        let measured = live.measure(spec, ingredients, place, session)?;
        let path = spec.telemetry.as_ref().map(|telemetry| telemetry.path.as_str());
        *drained = drain::until_idle(live.target(), path, &session.interruption);
        Ok(measured.map(|measured| measured.summary))
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
        let mut departure = deployed.and_then(|deployed| deployed.take_down(hall.measuring));
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
