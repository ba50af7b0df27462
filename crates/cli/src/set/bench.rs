//! What can measure a point.

use std::time::Duration;

use inferometer_model::Spec;
use inferometer_model::campaign::{Condition, Point};

use crate::failure::{Exit, Failure};
use crate::measurement::Measured;
use crate::place::Place;

/// A point with all that it means.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) point: Point,
    pub(super) condition: &'a Condition,
    pub(super) spec: Spec,
    /// Whether its server was asked nothing before, not even by a run that does not count.
    pub(super) is_first: bool,
}

pub(super) trait Bench {
    /// Measures a point, or says by which signal it was stopped before it began.
    fn measure(
        &mut self,
        asked: &Asked<'_>,
        place: Place<'_>,
    ) -> Result<Result<Measured, Exit>, Failure>;

    /// Lets time pass between two runs, unless a signal came or comes.
    fn rest(&mut self, time: Duration) -> Option<Exit>;
}
