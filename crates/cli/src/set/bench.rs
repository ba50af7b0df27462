//! What can measure a point.

use std::time::Duration;

use inferometer_model::Spec;
use inferometer_model::campaign::{Condition, Point};

use crate::failure::Failure;
use crate::location::RunLocation;
use crate::measurement::Run;

/// A point with all that it means.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) point: Point,
    pub(super) condition: &'a Condition,
    pub(super) spec: Spec,
    /// Whether it wants a server that has answered nothing yet, and its server has: then it is
    /// restarted, where somebody said how.
    pub(super) wants_restart: bool,
    /// In a suite the server is kept through each round: what it was asked in this one already, in
    /// that order. `None` where every run has an engine of its own.
    pub(super) kept_since: Option<Vec<Spec>>,
}

pub(super) trait Bench {
    /// Measures a point.
    fn measure(&mut self, asked: &Asked<'_>, place: RunLocation<'_>) -> Result<Run, Failure>;

    /// There are no more points: what is only needed to measure may end.
    fn finish(&mut self) {}

    /// Lets time pass between two runs; a signal is a failure.
    fn rest(&mut self, time: Duration) -> Result<(), Failure>;
}
