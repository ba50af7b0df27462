//! The server that a set has put up: kept as long as its spec says, and never beside another.

use std::path::PathBuf;
use std::sync::Arc;

use inferometer_model::campaign::DeploymentRecord;
use inferometer_model::deployment::{DeploymentSpec, Renewal};
use inferometer_model::journal::RunStop;
use inferometer_model::spec::TargetSpec;
use inferometer_store::SetDirectory;

use super::bench::Asked;
use crate::deployed::{self, Deployed};
use crate::failure::Failure;
use crate::live::{Server, Session};
use crate::location::RunLocation;
use crate::output;
use crate::secrets::Secrets;

/// At most one server is up: two would share the hardware. It is taken down when this is dropped.
pub(super) struct Keeper<'session> {
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
    /// Whether the spec lets this server answer a point, too. The first point of a server is its
    /// own.
    fn serves(&self, asked: &Asked<'_>, how: &DeploymentSpec) -> bool {
        self.how == *how
            && match how.renewal {
                Renewal::EachRepetition => self.repetition == asked.point.repetition,
                Renewal::EachRun => false,
                Renewal::Never => true,
            }
    }
}

impl<'session> Keeper<'session> {
    pub(super) fn new(session: &'session Session) -> Self {
        Self { session, up: None }
    }

    /// Sees to it that the server of a point is up, if it is one of ours.
    pub(super) fn provide(
        &mut self,
        asked: &Asked<'_>,
        secrets: &Secrets,
        place: RunLocation<'_>,
    ) -> Result<(), Failure> {
        let TargetSpec::Deployed(how) = &asked.spec.target else {
            self.take_down();
            return Ok(());
        };
        if self.up.as_ref().is_some_and(|up| up.serves(asked, how)) {
            return Ok(());
        }
        self.take_down();
        let (condition, repetition) = (asked.point.condition, asked.point.repetition);
        let log = deployed::free(&place.deployment_log(condition, repetition));
        let deployed = match Deployed::start(&asked.spec, secrets, &log, self.session) {
            Ok(deployed) => deployed,
            Err(not_up) => {
                if let (Some(set), Some(record)) =
                    (place.set(), not_up.record(condition, repetition, &log))
                {
                    note(set, &record);
                }
                return Err(not_up.failure(&asked.spec, &log));
            }
        };
        self.up = Some(Up {
            server: Arc::new(Server::Deployed(Box::new(deployed))),
            how: (**how).clone(),
            condition,
            repetition,
            log,
            set: place.set().cloned(),
        });
        Ok(())
    }

    /// The server that is up.
    pub(super) fn server(&self) -> Option<Arc<Server>> {
        self.up.as_ref().map(|up| Arc::clone(&up.server))
    }

    /// Why a run that stopped so has lost its server.
    pub(super) fn lost(&self, stop: Option<RunStop>) -> Option<Failure> {
        let up = self.up.as_ref()?;
        let deployed = up.server.deployed()?;
        Some(deployed.explain(&deployed.lost(stop)?, &up.log))
    }

    pub(super) fn take_down(&mut self) {
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
        note(&set, &record);
    }
}

fn note(set: &SetDirectory, record: &DeploymentRecord) {
    if let Err(error) = set.write_deployment(record) {
        output::talk(&format!("warning: what became of the server is not stored: {error}"));
    }
}

impl Drop for Keeper<'_> {
    fn drop(&mut self) {
        self.take_down();
    }
}
