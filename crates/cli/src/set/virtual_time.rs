//! Points in virtual time. Each has an engine of its own, so that no run knows of another.

use std::time::Duration;

use super::bench::{Asked, Bench};
use crate::failure::{Exit, Failure};
use crate::live::Session;
use crate::measurement::Measured;
use crate::place::Place;
use crate::simulation::VirtualEngine;
use crate::simulator::Simulator;

pub(super) struct VirtualBench<'session> {
    pub(super) session: &'session Session,
}

impl Bench for VirtualBench<'_> {
    fn measure(
        &mut self,
        asked: &Asked<'_>,
        place: Place<'_>,
    ) -> Result<Result<Measured, Exit>, Failure> {
        let engine = VirtualEngine::of(&asked.spec.engine)?;
        let mut simulator = Simulator { engine, session: self.session };
        Ok(match simulator.make_ready(&asked.spec)? {
            Ok(ready) => Ok(simulator.record(ready, place)?.measured),
            Err(exit) => Err(exit),
        })
    }

    /// A new engine has nothing to recover from.
    fn rest(&mut self, _time: Duration) -> Option<Exit> {
        self.session.interruption.exit()
    }
}
