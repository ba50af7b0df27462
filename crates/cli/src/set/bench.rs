//! What can measure a point.

use std::time::Duration;

use inferometer_model::Spec;
use inferometer_model::campaign::{CampaignSpec, Condition, Point};

use crate::failure::{Exit, Failure};
use crate::measurement::Measured;
use crate::place::Place;

/// A point with all that it means.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) point: Point,
    pub(super) condition: &'a Condition,
    pub(super) spec: Spec,
    /// Whether no run of its condition was measured before.
    pub(super) is_first: bool,
}

pub(super) trait Bench {
    /// Whether all servers can be measured, before a set is made for them.
    fn make_ready(&mut self, campaign: &CampaignSpec) -> Result<(), Failure>;

    /// Measures a point, or says by which signal it was stopped before it began.
    fn measure(
        &mut self,
        asked: &Asked<'_>,
        place: Place<'_>,
    ) -> Result<Result<Measured, Exit>, Failure>;

    /// Lets time pass between two runs, unless a signal came or comes.
    fn rest(&mut self, time: Duration) -> Option<Exit>;
}
