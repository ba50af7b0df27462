//! Points over the wire. A server of others is asked once what it serves, and again after each
//! restart. The embedded engine is started anew for every run, in a suite for every round. A server
//! that is deployed here is kept for as long as its spec says.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use inferometer_analysis::Summary;
use inferometer_model::Spec;
use inferometer_model::campaign::{CampaignSpec, Condition, DeploymentRecord, Question};
use inferometer_model::deployment::{DeploymentSpec, Renewal};
use inferometer_model::spec::{TargetSpec, Workload};
use inferometer_runner::deployed::{self, Deployed};
use inferometer_runner::live::{Live, Server};
use inferometer_runner::measurement::Planned;
use inferometer_runner::secrets::Secrets;
use inferometer_runner::{Failure, Session};
use inferometer_store::SetDirectory;

use super::restart::Restart;
use super::{Job, PointRunner, server_name};

/// Between two questions to a server that is still starting.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// The server of one condition.
#[derive(Debug)]
pub struct Side {
    secrets: Secrets,
    /// `None` until the server was asked what it serves.
    live: Option<Arc<Live>>,
    /// What it was asked with.
    spec: Option<Spec>,
}

impl Side {
    pub(super) fn new(secrets: Secrets) -> Self {
        Self { secrets, live: None, spec: None }
    }

    pub(super) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    fn remember(&mut self, live: Option<Arc<Live>>, spec: &Spec) {
        (self.live, self.spec) = (live, Some(spec.clone()));
    }

    /// What the server has answered to another condition, where it would answer the same.
    fn answered(sides: &[Self], spec: &Spec) -> Option<Arc<Live>> {
        let alike = |side: &&Self| side.spec.as_ref().is_some_and(|other| asks_alike(other, spec));
        sides.iter().find(alike)?.live.clone()
    }
}

/// Asks all servers that are already running what they serve.
pub(super) fn probe(
    sides: &mut [Side],
    campaign: &CampaignSpec,
    talk: &dyn Fn(String),
) -> Result<(), Failure> {
    let is_suite = matches!(campaign.question, Question::Suite(_));
    for (place, Condition { name, spec }) in campaign.conditions.iter().enumerate() {
        let known = if is_suite { Side::answered(sides, spec) } else { None };
        let Some(side) = sides.get_mut(place) else { break };
        side.remember(known, spec);
        if !is_ours(spec) && side.live.is_none() {
            let server = if is_suite { server_name(spec) } else { name.clone() };
            talk(format!("asking {server} what it serves …"));
            let planned = Planned::new(spec.clone())?;
            let server = Arc::new(Server::new(spec)?);
            side.live = Some(Arc::new(Live::reach(server, &side.secrets, &planned)?));
        }
    }
    Ok(())
}

pub(super) struct LiveRunner<'session> {
    session: &'session Session,
    /// In the order of the conditions.
    sides: Vec<Side>,
    /// The engine that a suite keeps.
    engine: Option<Arc<Server>>,
    restart: Option<Restart>,
    keeper: Keeper<'session>,
}

impl<'session> LiveRunner<'session> {
    pub(super) fn new(
        sides: Vec<Side>,
        restart_timeout: Duration,
        campaign: &CampaignSpec,
        session: &'session Session,
    ) -> Self {
        let command = campaign.repetition.restart.clone();
        let restart = command.map(|command| Restart { command, timeout: restart_timeout });
        Self { session, sides, engine: None, restart, keeper: Keeper { session, up: None } }
    }

    /// Provides a server that has answered nothing yet: a new engine, or one that was restarted.
    fn renew(&mut self, job: &Job<'_>, planned: &Planned) -> Result<(), Failure> {
        self.engine = None;
        if is_ours(&job.spec) {
            self.forget();
            return Ok(());
        }
        match (job.location.restart_log(), self.restart.clone()) {
            (Some(log), Some(restart)) => self.restart(&restart, job, planned, &log),
            (None, _) | (_, None) => Ok(()),
        }
    }

    /// Drops what the servers answered before they were restarted.
    fn forget(&mut self) {
        self.sides.iter_mut().for_each(|side| side.live = None);
    }

    /// Restarts the server and waits until it answers again.
    fn restart(
        &mut self,
        restart: &Restart,
        job: &Job<'_>,
        planned: &Planned,
        log: &Path,
    ) -> Result<(), Failure> {
        if job.before.is_some() {
            // All scenarios of a suite have the same server.
            self.forget();
        }
        let side = side(&mut self.sides, job)?;
        side.live = None;
        let interruption = &self.session.interruption;
        let deadline = restart.begin();
        restart.run(&deadline, job.condition, log, interruption)?;
        loop {
            let server = Arc::new(Server::new(&job.spec)?);
            match Live::reach(server, &side.secrets, planned) {
                Ok(live) => {
                    side.remember(Some(Arc::new(live)), &job.spec);
                    return Ok(());
                }
                // A key that is refused now is refused later too.
                Err(failure) if !failure.is_passing() => return Err(failure),
                Err(failure) if deadline.is_over() => {
                    return Err(failure.hint(format!(
                        "`{}` ended, and the server did not answer within {:?}; give it longer \
                         with --restart-timeout",
                        restart.command, restart.timeout
                    )));
                }
                Err(_) => {}
            }
            interruption.rest(ASK_AGAIN)?;
        }
    }

    /// The server of a point, asked what it serves.
    fn live(&mut self, job: &Job<'_>, planned: &Planned) -> Result<Arc<Live>, Failure> {
        let is_shared = job.before.is_some();
        let known = is_shared.then(|| Side::answered(&self.sides, &job.spec)).flatten();
        let (session, side) = (self.session, side(&mut self.sides, job)?);
        if let Some(server) = self.keeper.server() {
            return Live::reach(server, &side.secrets, planned).map(Arc::new);
        }
        if let Some(live) = side.live.take().or(known) {
            return Ok(live);
        }
        let server = if let Some(engine) = self.engine.take() {
            engine
        } else {
            if is_ours(&job.spec) && job.before.as_ref().is_some_and(|it| !it.is_empty()) {
                session.talk("the engine is new: its prefix cache has nothing of stored runs");
            }
            Arc::new(Server::new(&job.spec)?)
        };
        let live = Arc::new(Live::reach(Arc::clone(&server), &side.secrets, planned)?);
        self.engine = (is_shared && is_ours(&job.spec)).then_some(server);
        Ok(live)
    }
}

impl PointRunner for LiveRunner<'_> {
    fn measure(&mut self, job: &Job<'_>) -> Result<Summary, Failure> {
        let planned = Planned::new(job.spec.clone())?;
        if job.needs_restart {
            self.renew(job, &planned)?;
        }
        self.keeper.provide(job, &side(&mut self.sides, job)?.secrets)?;
        let measured = self.live(job, &planned).and_then(|live| {
            let measured = live.measure(planned, job.location, self.session)?;
            Ok((live, measured.summary))
        });
        // A run whose server ended meanwhile is no result of the set.
        let stop = measured.as_ref().ok().map(|(_, summary)| summary.run.stop);
        if let Some(up) = &self.keeper.up
            && let Some(deployed) = up.server.deployed()
            && let Some(found) = deployed.lost(stop)
        {
            job.location.abandon()?;
            return Err(deployed.explain(&found, &up.log));
        }
        let (live, summary) = measured?;
        // Outside of a suite the embedded engine ends here, with its cache and its queue. A deployed
        // server is kept by its keeper alone.
        let is_kept = self.keeper.up.is_none() && (job.before.is_some() || !is_ours(&job.spec));
        side(&mut self.sides, job)?.remember(Some(live).filter(|_| is_kept), &job.spec);
        Ok(summary)
    }

    fn finish(&mut self) {
        self.keeper.stop();
    }
}

fn side<'sides>(sides: &'sides mut [Side], job: &Job<'_>) -> Result<&'sides mut Side, Failure> {
    let place = usize::try_from(job.point.condition).unwrap_or(usize::MAX);
    sides.get_mut(place).ok_or_else(|| Failure::internal("a point of a server that is not listed"))
}

/// Whether the server is started for the measurement: an engine, or a deployment.
fn is_ours(spec: &Spec) -> bool {
    !matches!(spec.target, TargetSpec::Url(_))
}

/// Whether a server would answer both the same before a run: when, how much and how often it will be
/// asked makes no difference.
fn asks_alike(one: &Spec, other: &Spec) -> bool {
    let (from, to) = (&one.workload.source, &other.workload.source);
    let bare = |spec: &Spec| Spec {
        load: one.load.clone(),
        seed: 0,
        slos: Vec::new(),
        telemetry: None,
        metadata: one.metadata.clone(),
        workload: Workload { source: from.clone(), ..spec.workload.clone() },
        ..spec.clone()
    };
    from.kind() == to.kind()
        && from.chooses_output() == to.chooses_output()
        && one.workload.body.images.is_none()
        && bare(one) == bare(other)
}

/// Deploys the servers of a set. At most one is up: two would share the hardware. It is stopped when
/// this is dropped.
struct Keeper<'session> {
    session: &'session Session,
    up: Option<Up>,
}

struct Up {
    server: Arc<Server>,
    how: DeploymentSpec,
    condition: u32,
    repetition: u32,
    log: PathBuf,
    set: Option<SetDirectory>,
}

impl Up {
    /// Whether the spec lets this server answer another point, too.
    fn serves(&self, job: &Job<'_>, how: &DeploymentSpec) -> bool {
        self.how == *how
            && match how.renewal {
                Renewal::EachRepetition => self.repetition == job.point.repetition,
                Renewal::EachRun => false,
                Renewal::Never => true,
            }
    }
}

impl Keeper<'_> {
    /// Makes sure that the server of a point is up, if it is to be deployed.
    fn provide(&mut self, job: &Job<'_>, secrets: &Secrets) -> Result<(), Failure> {
        let TargetSpec::Deployed(how) = &job.spec.target else {
            self.stop();
            return Ok(());
        };
        if self.up.as_ref().is_some_and(|up| up.serves(job, how)) {
            return Ok(());
        }
        self.stop();
        let (condition, repetition) = (job.point.condition, job.point.repetition);
        let log = deployed::free(&job.location.deployment_log(condition, repetition));
        let deployed = match Deployed::start(&job.spec, secrets, &log, self.session) {
            Ok(deployed) => deployed,
            Err(not_up) => {
                let record = not_up.record(condition, repetition, &log);
                if let (Some(set), Some(record)) = (job.location.set(), record) {
                    self.note(set, &record);
                }
                return Err(not_up.failure(&job.spec, &log));
            }
        };
        self.up = Some(Up {
            server: Arc::new(Server::Deployed(Box::new(deployed))),
            how: (**how).clone(),
            condition,
            repetition,
            log,
            set: job.location.set().cloned(),
        });
        Ok(())
    }

    /// The server that is up.
    fn server(&self) -> Option<Arc<Server>> {
        self.up.as_ref().map(|up| Arc::clone(&up.server))
    }

    fn stop(&mut self) {
        let Some(up) = self.up.take() else { return };
        let Some(deployed) = up.server.deployed() else { return };
        let departure = deployed.stop(self.session);
        let Some(set) = up.set else { return };
        let record = DeploymentRecord {
            condition: up.condition,
            repetition: up.repetition,
            facts: Some(deployed.facts().clone()),
            departure,
            drained_after_s: None,
            log: deployed::name_of(&up.log),
        };
        self.note(&set, &record);
    }

    fn note(&self, set: &SetDirectory, record: &DeploymentRecord) {
        if let Err(error) = set.write_deployment(record) {
            self.session.warn(format!("the record of the deployment is not stored: {error}"));
        }
    }
}

impl Drop for Keeper<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}
