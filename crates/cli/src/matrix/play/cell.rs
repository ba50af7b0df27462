//! One server of a matrix, seen through to its end.

use std::time::Duration;

use inferometer_analysis::Summary;
use inferometer_load::SystemClock;
use inferometer_model::campaign::{Point, PointFailure};
use inferometer_model::deployment::{DeploymentFailure, DeploymentStage};
use inferometer_model::{Outcome, Spec};
use inferometer_study::matrix::Deployment;

use super::errand::{Hall, Way};
use super::ledger::{Known, Ledger};
use super::{live, progress, virtual_time};
use crate::failure::Failure;
use crate::location::RunLocation;
use crate::set::{Found, check_fits, find};

#[derive(Clone, Copy)]
pub(super) struct Cell<'a> {
    pub(super) hall: &'a Hall<'a>,
    pub(super) ledger: &'a Ledger,
    pub(super) deployment: &'a Deployment,
}

impl Cell<'_> {
    /// Measures what is not stored, and returns whether that was anything. An error is never the
    /// server's.
    pub(super) fn play(&self, rest: Duration) -> Result<bool, Failure> {
        let session = self.hall.session;
        session.interruption.check()?;
        let mut left = self.left()?;
        left.retain(|point| self.hall.wish.wants(point));
        let Some(first) = left.first() else { return Ok(false) };
        if let Way::Live(_) = self.hall.way {
            session.interruption.rest(rest)?;
        }
        let (campaign, repetition) = (&self.hall.manifest.campaign, first.repetition);
        session.talk(&progress::opening(campaign, first.condition, repetition));
        match self.hall.way {
            Way::Virtual => virtual_time::play(self, &left)?,
            Way::Live(secrets) => live::play(self, secrets, &left)?,
        }
        Ok(true)
    }

    pub(super) fn spec(&self, point: &Point) -> Result<Spec, Failure> {
        let spec = self.hall.manifest.campaign.spec_of(point);
        spec.ok_or_else(|| Failure::internal("a point of a cell that is not listed"))
    }

    pub(super) fn place(&self, point: &Point) -> RunLocation<'_> {
        RunLocation::in_set(self.hall.store, self.hall.set, point.number)
    }

    pub(super) fn measured(&self, point: &Point, summary: Summary) {
        let campaign = &self.hall.manifest.campaign;
        self.hall.session.talk(&progress::measured(campaign, point, &summary));
        self.ledger.measured(*point, summary, Known::Now);
    }

    /// Notes that these points came to nothing, all for the same reason.
    pub(super) fn failed(
        &self,
        points: &[Point],
        failure: &DeploymentFailure,
    ) -> Result<(), Failure> {
        let at = if self.hall.manifest.simulated { None } else { now() };
        let campaign = &self.hall.manifest.campaign;
        for point in points {
            let noted = PointFailure { point: *point, at: at.clone(), failure: failure.clone() };
            self.hall.set.write_failure(&noted)?;
            self.hall.session.talk(&progress::failed(campaign, point, failure));
            self.ledger.failed(noted);
        }
        Ok(())
    }

    pub(super) fn is_known(&self, point: &Point) -> bool {
        self.ledger.knows(point)
    }

    /// The points that neither were measured nor came to nothing. What is half done is moved aside.
    fn left(&self) -> Result<Vec<Point>, Failure> {
        let mut left = Vec::new();
        for point in &self.deployment.points {
            if !self.ledger.has_failed(point) && !self.is_stored(point)? {
                left.push(*point);
            }
        }
        Ok(left)
    }

    fn is_stored(&self, point: &Point) -> Result<bool, Failure> {
        let Hall { set, session, manifest, wish, .. } = self.hall;
        let directory = set.point(point.number);
        if !directory.path().exists() {
            return Ok(false);
        }
        let why = match find(&directory)? {
            Found::Whole(summary) if wish.rejects(point, &summary) => {
                // What the set came to is true no more.
                set.unseal()?;
                let failed = summary.attempted - summary.count(Outcome::Ok);
                let aside = set.abandon(point.number)?;
                session.talk(&format!(
                    "run {} has {failed} requests that failed: it is kept in {} and measured again",
                    point.number,
                    aside.display()
                ));
                return Ok(false);
            }
            Found::Whole(summary) => {
                check_fits(&directory, &self.spec(point)?, manifest.simulated)?;
                self.ledger.measured(*point, *summary, Known::Before);
                return Ok(true);
            }
            Found::Broken(why) => why,
        };
        let aside = set.abandon(point.number)?;
        session.talk(&format!(
            "run {} is not whole, {why}: it is kept in {} and measured again",
            point.number,
            aside.display()
        ));
        Ok(false)
    }
}

/// What went wrong in measuring, as the failure of a cell.
pub(super) fn not_measured(failure: &Failure) -> DeploymentFailure {
    DeploymentFailure {
        stage: DeploymentStage::Measure,
        what: failure.message().to_owned(),
        cause: None,
        log: failure.lines(),
    }
}

/// RFC 3339, UTC.
fn now() -> Option<String> {
    let nanos = SystemClock::new().anchor().realtime_ns;
    let now = jiff::Timestamp::from_nanosecond(nanos.into()).ok()?;
    Some(now.round(jiff::Unit::Second).unwrap_or(now).to_string())
}
