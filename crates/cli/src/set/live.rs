//! Points over the wire. A server of others is asked once what it serves, and again after each
//! restart; the embedded engine is started anew for every run, and in a suite for every round; a
//! server that we put up is kept as long as its spec says.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use inferometer_model::Spec;
use inferometer_model::campaign::{CampaignSpec, Condition, Question};
use inferometer_model::spec::{TargetSpec, Workload};
use inferometer_report::escape::terminal;

use super::bench::{Asked, Bench};
use super::deployed::Keeper;
use super::name_of;
use super::restart::Restart;
use crate::failure::Failure;
use crate::live::{Live, Server, Session};
use crate::location::RunLocation;
use crate::measurement::{Planned, Run};
use crate::output;
use crate::secrets::Secrets;

pub(super) struct LiveBench<'session> {
    session: &'session Session,
    /// In the order of the conditions.
    sides: Vec<Side>,
    /// The engine that a suite keeps.
    engine: Option<Arc<Server>>,
    restart: Option<Restart>,
    keeper: Keeper<'session>,
}

/// One of the conditions, and its server.
pub(super) struct Side {
    secrets: Secrets,
    /// `None` until the server was asked what it serves.
    live: Option<Arc<Live>>,
    /// What it was asked with.
    spec: Option<Spec>,
}

impl Side {
    pub(super) fn unasked(secrets: Secrets) -> Self {
        Self { secrets, live: None, spec: None }
    }

    /// With what the server has answered to another condition, where it would answer the same.
    fn answered(sides: &[Self], spec: &Spec) -> Option<Arc<Live>> {
        let alike = |side: &&Self| side.spec.as_ref().is_some_and(|other| asks_alike(other, spec));
        sides.iter().find(alike)?.live.clone()
    }
}

/// Asks all servers what they serve, before a set is made for them.
pub(super) fn ask_all(
    secrets: Vec<Secrets>,
    campaign: &CampaignSpec,
    quiet: bool,
) -> Result<Vec<Side>, Failure> {
    let mut sides: Vec<Side> = Vec::new();
    for (Condition { name, spec }, secrets) in campaign.conditions.iter().zip(secrets) {
        let mut side = Side { spec: Some(spec.clone()), ..Side::unasked(secrets) };
        if is_suite(campaign) {
            side.live = Side::answered(&sides, spec);
        }
        if !is_ours(spec) && side.live.is_none() {
            if !quiet {
                let of_suite = name_of(spec);
                let server = if is_suite(campaign) { &of_suite } else { name };
                output::talk(&format!("asking {} what it serves …", terminal(server)));
            }
            let planned = Planned::new(spec.clone())?;
            let server = Arc::new(Server::new(spec)?);
            side.live = Some(Arc::new(Live::reach(server, &side.secrets, &planned)?));
        }
        sides.push(side);
    }
    Ok(sides)
}

impl<'session> LiveBench<'session> {
    pub(super) fn new(
        sides: Vec<Side>,
        restart_timeout: Duration,
        campaign: &CampaignSpec,
        session: &'session Session,
    ) -> Self {
        let command = campaign.repetition.restart.clone();
        let restart = command.map(|command| Restart { command, timeout: restart_timeout });
        Self { session, sides, engine: None, restart, keeper: Keeper::new(session) }
    }

    /// A server that has answered nothing yet: a new engine, or one that was restarted.
    fn renew(
        &mut self,
        asked: &Asked<'_>,
        planned: &Planned,
        place: RunLocation<'_>,
    ) -> Result<(), Failure> {
        self.engine = None;
        if is_ours(&asked.spec) {
            self.forget();
            return Ok(());
        }
        match (place.restart_log(), self.restart.clone()) {
            (Some(log), Some(restart)) => self.restart(&restart, asked, planned, &log),
            (None, _) | (_, None) => Ok(()),
        }
    }

    /// What a server said before it was restarted counts no more: where a suite is played, for all
    /// conditions, as they have one server.
    fn forget(&mut self) {
        for side in &mut self.sides {
            side.live = None;
        }
    }

    /// Restarts the server and waits until it answers again.
    fn restart(
        &mut self,
        restart: &Restart,
        asked: &Asked<'_>,
        planned: &Planned,
        log: &Path,
    ) -> Result<(), Failure> {
        if asked.kept_since.is_some() {
            self.forget();
        }
        let side = side(&mut self.sides, asked)?;
        side.live = None;
        let interruption = &self.session.interruption;
        let deadline = restart.begin();
        restart.run(&deadline, asked.condition, log, interruption)?;
        loop {
            let server = Arc::new(Server::new(&asked.spec)?);
            match Live::reach(server, &side.secrets, planned) {
                Ok(live) => {
                    (side.live, side.spec) = (Some(Arc::new(live)), Some(asked.spec.clone()));
                    return Ok(());
                }
                // A key that is refused now is refused later too.
                Err(failure) if !failure.is_passing() => return Err(failure),
                Err(failure) if deadline.is_over() => {
                    return Err(failure.hint(format!(
                        "`{}` was done, and the server did not answer within {:?}; give it longer \
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
    fn live(&mut self, asked: &Asked<'_>, planned: &Planned) -> Result<Arc<Live>, Failure> {
        if let Some(server) = self.keeper.server() {
            let side = side(&mut self.sides, asked)?;
            return Live::reach(server, &side.secrets, planned).map(Arc::new);
        }
        let shared = asked.kept_since.as_ref();
        let known = shared.and_then(|_| Side::answered(&self.sides, &asked.spec));
        let engine = self.engine.take();
        let before = shared.map_or(0, Vec::len);
        let (session, side) = (self.session, side(&mut self.sides, asked)?);
        if let Some(live) = side.live.take().or(known) {
            self.engine = engine;
            return Ok(live);
        }
        if is_ours(&asked.spec) && engine.is_none() && 0 < before {
            session.talk(
                "the engine is a new one: what the stored runs left in its prefix cache is gone",
            );
        }
        let server = match engine {
            Some(engine) => engine,
            None => Arc::new(Server::new(&asked.spec)?),
        };
        let live = Arc::new(Live::reach(Arc::clone(&server), &side.secrets, planned)?);
        self.engine = Some(server).filter(|_| shared.is_some() && is_ours(&asked.spec));
        Ok(live)
    }
}

/// Between two questions to a server that is still starting.
const ASK_AGAIN: Duration = Duration::from_secs(1);

fn side<'sides>(sides: &'sides mut [Side], asked: &Asked<'_>) -> Result<&'sides mut Side, Failure> {
    let place = usize::try_from(asked.point.condition).unwrap_or(usize::MAX);
    sides.get_mut(place).ok_or_else(|| Failure::internal("a point of a server that is not listed"))
}

/// Not there before it is measured: an engine, or a server that is put up.
fn is_ours(spec: &Spec) -> bool {
    match spec.target {
        TargetSpec::Embedded | TargetSpec::Deployed(_) => true,
        TargetSpec::Url(_) => false,
    }
}

fn is_suite(campaign: &CampaignSpec) -> bool {
    matches!(campaign.question, Question::Suite(_))
}

/// Whether a server would answer both the same before a run: when, how much and how often it will be
/// asked is no part of it.
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

impl Bench for LiveBench<'_> {
    fn measure(&mut self, asked: &Asked<'_>, place: RunLocation<'_>) -> Result<Run, Failure> {
        let planned = Planned::new(asked.spec.clone())?;
        if asked.wants_restart {
            self.renew(asked, &planned, place)?;
        }
        let secrets = &side(&mut self.sides, asked)?.secrets;
        self.keeper.provide(asked, secrets, place)?;
        let measured = self.live(asked, &planned).and_then(|live| {
            let measured = live.measure(planned, place, self.session)?;
            Ok((live, measured))
        });
        // What was measured of a server that ended meanwhile is no result of the set.
        let stop = measured.as_ref().ok().map(|(_, measured)| measured.summary.run.stop);
        if let Some(failure) = self.keeper.lost(stop) {
            place.abandon()?;
            return Err(failure);
        }
        let (live, measured) = measured?;
        // Outside of a suite an engine of ours ends here, with its cache and its queue. What was put
        // up is kept by its keeper alone.
        let is_kept =
            self.keeper.server().is_none() && (asked.kept_since.is_some() || !is_ours(&asked.spec));
        let side = side(&mut self.sides, asked)?;
        (side.live, side.spec) = (Some(live).filter(|_| is_kept), Some(asked.spec.clone()));
        Ok(measured)
    }

    fn finish(&mut self) {
        self.keeper.take_down();
    }

    fn rest(&mut self, time: Duration) -> Result<(), Failure> {
        self.session.interruption.rest(time)
    }
}
