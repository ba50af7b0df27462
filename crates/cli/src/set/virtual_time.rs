//! Points in virtual time. Each has an engine of its own, so that no run knows of another; in a
//! suite one engine is kept through each round, with its prefix cache.

use std::time::Duration;

use inferometer_model::Spec;

use super::bench::{Asked, Bench};
use crate::failure::{Exit, Failure};
use crate::live::Session;
use crate::measurement::Measured;
use crate::place::Place;
use crate::simulation::VirtualEngine;
use crate::simulator::Simulator;

pub(super) struct VirtualBench<'session> {
    session: &'session Session,
    kept: Option<Kept<'session>>,
}

/// The engine of a suite between two of its runs.
struct Kept<'session> {
    simulator: Simulator<'session>,
    round: u32,
}

impl<'session> VirtualBench<'session> {
    pub(super) fn new(session: &'session Session) -> Self {
        Self { session, kept: None }
    }

    /// The engine for a point, in the state that it has by then.
    fn simulator(
        &mut self,
        asked: &Asked<'_>,
    ) -> Result<Result<Simulator<'session>, Exit>, Failure> {
        let round = asked.point.repetition;
        if let Some(kept) = self.kept.take().filter(|kept| kept.round == round) {
            return Ok(Ok(kept.simulator));
        }
        let engine = VirtualEngine::of(&asked.spec.engine)?;
        let mut simulator = Simulator { engine, session: self.session };
        let before = asked.kept_since.as_deref().unwrap_or_default();
        Ok(self.play_again(&mut simulator, before)?.map_or(Ok(simulator), Err))
    }

    /// Plays what is stored once more without recording it: an engine follows from what it was asked,
    /// so that a suite which was stopped comes to the same bytes.
    fn play_again(
        &self,
        simulator: &mut Simulator<'_>,
        before: &[Spec],
    ) -> Result<Option<Exit>, Failure> {
        if !before.is_empty() {
            self.session
                .talk("playing the stored runs of this round again, for the engine's cache …");
        }
        for spec in before {
            match simulator.make_ready(spec)? {
                Ok(ready) => drop(simulator.tell(ready)?),
                Err(exit) => return Ok(Some(exit)),
            }
        }
        Ok(self.session.interruption.exit())
    }
}

impl Bench for VirtualBench<'_> {
    fn measure(
        &mut self,
        asked: &Asked<'_>,
        place: Place<'_>,
    ) -> Result<Result<Measured, Exit>, Failure> {
        let mut simulator = match self.simulator(asked)? {
            Ok(simulator) => simulator,
            Err(exit) => return Ok(Err(exit)),
        };
        let measured = match simulator.make_ready(&asked.spec)? {
            Ok(ready) => simulator.record(ready, place)?.measured,
            Err(exit) => return Ok(Err(exit)),
        };
        let round = asked.point.repetition;
        self.kept = asked.kept_since.as_ref().map(|_| Kept { simulator, round });
        Ok(Ok(measured))
    }

    /// A new engine has nothing to recover from, and an idle one does not change.
    fn rest(&mut self, _time: Duration) -> Option<Exit> {
        self.session.interruption.exit()
    }
}
