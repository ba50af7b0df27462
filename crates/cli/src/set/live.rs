//! Points over the wire. A server of others is asked once what it serves, and again after each
//! restart; the embedded engine is started anew for every run.

use std::path::Path;
use std::time::Duration;

use inferometer_model::Spec;
use inferometer_model::campaign::{CampaignSpec, Condition};
use inferometer_model::spec::TargetSpec;
use inferometer_report::escape::terminal;
use inferometer_workload::{Ingredients, make_plan};

use super::bench::{Asked, Bench};
use super::restart::Restart;
use crate::failure::{Exit, Failure};
use crate::live::{Live, Server, Session};
use crate::measurement::Measured;
use crate::output;
use crate::place::Place;
use crate::secrets::Secrets;

pub(super) struct LiveBench<'session> {
    session: &'session Session,
    /// In the order of the conditions.
    sides: Vec<Side>,
    restart: Option<Restart>,
}

/// One of the servers.
pub(super) struct Side {
    secrets: Secrets,
    /// `None` until it was asked what it serves.
    live: Option<Live>,
}

impl Side {
    pub(super) fn unasked(secrets: Secrets) -> Self {
        Self { secrets, live: None }
    }
}

/// Asks all servers what they serve, before a set is made for them.
pub(super) fn ask_all(
    secrets: Vec<Secrets>,
    campaign: &CampaignSpec,
    quiet: bool,
) -> Result<Vec<Side>, Failure> {
    let mut sides = Vec::new();
    for (condition, secrets) in campaign.conditions.iter().zip(secrets) {
        let mut side = Side::unasked(secrets);
        if !is_ours(condition) {
            if !quiet {
                output::talk(&format!("asking {} what it serves …", terminal(&condition.name)));
            }
            let ingredients = Ingredients::gather(&condition.spec)?;
            side.live = Some(reach(&condition.spec, &side.secrets, &ingredients)?);
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
        Self { session, sides, restart }
    }

    /// Restarts the server and waits until it answers again. `Err` is the signal that came first.
    fn restart(
        &mut self,
        asked: &Asked<'_>,
        ingredients: &Ingredients,
        log: &Path,
    ) -> Result<Option<Exit>, Failure> {
        let Some(restart) = self.restart.clone() else { return Ok(None) };
        let side = side(&mut self.sides, asked)?;
        side.live = None;
        let interruption = &self.session.interruption;
        let deadline = restart.begin();
        if let Some(exit) = restart.run(&deadline, asked.condition, log, interruption)? {
            return Ok(Some(exit));
        }
        loop {
            match reach(&asked.spec, &side.secrets, ingredients) {
                Ok(live) => {
                    side.live = Some(live);
                    return Ok(None);
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
            if let Some(exit) = interruption.wait(ASK_AGAIN) {
                return Ok(Some(exit));
            }
        }
    }
}

/// Between two questions to a server that is still starting.
const ASK_AGAIN: Duration = Duration::from_secs(1);

fn side<'sides>(sides: &'sides mut [Side], asked: &Asked<'_>) -> Result<&'sides mut Side, Failure> {
    let place = usize::try_from(asked.point.condition).unwrap_or(usize::MAX);
    sides.get_mut(place).ok_or_else(|| Failure::internal("a point of a server that is not listed"))
}

fn is_ours(condition: &Condition) -> bool {
    condition.spec.target == TargetSpec::Embedded
}

fn reach(spec: &Spec, secrets: &Secrets, ingredients: &Ingredients) -> Result<Live, Failure> {
    let (plan, _) = make_plan(spec, ingredients);
    Live::reach(Server::of(spec)?, spec, secrets, ingredients, plan.as_ref())
}

impl Bench for LiveBench<'_> {
    fn measure(
        &mut self,
        asked: &Asked<'_>,
        place: Place<'_>,
    ) -> Result<Result<Measured, Exit>, Failure> {
        let ingredients = Ingredients::gather(&asked.spec)?;
        if let Some(log) = place.restart_log().filter(|_| !asked.is_first)
            && let Some(exit) = self.restart(asked, &ingredients, &log)?
        {
            return Ok(Err(exit));
        }
        let session = self.session;
        let side = side(&mut self.sides, asked)?;
        let live = match side.live.take() {
            Some(live) => live,
            None => reach(&asked.spec, &side.secrets, &ingredients)?,
        };
        let measured = live.measure(&asked.spec, ingredients, place, session)?;
        // An engine of ours ends here, with its cache and its queue.
        side.live = Some(live).filter(|_| !is_ours(asked.condition));
        Ok(measured)
    }

    fn rest(&mut self, time: Duration) -> Option<Exit> {
        self.session.interruption.wait(time)
    }
}
