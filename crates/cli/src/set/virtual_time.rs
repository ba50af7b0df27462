//! Points in virtual time. Each has an engine of its own, so that no run knows of another; in a
//! suite one engine is kept through each round, with its prefix cache.

use std::time::Duration;

use inferometer_model::Spec;

use super::bench::{Asked, Bench};
use crate::failure::Failure;
use crate::live::Session;
use crate::location::RunLocation;
use crate::measurement::Run;
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
    fn simulator(&mut self, asked: &Asked<'_>) -> Result<Simulator<'session>, Failure> {
        let round = asked.point.repetition;
        if let Some(kept) = self.kept.take().filter(|kept| kept.round == round) {
            return Ok(kept.simulator);
        }
        let engine = VirtualEngine::new(&asked.spec.engine)?;
        let mut simulator = Simulator { engine, session: self.session };
        let before = asked.kept_since.as_deref().unwrap_or_default();
        self.play_again(&mut simulator, before)?;
        Ok(simulator)
    }

    /// Plays the stored runs of this round again without recording them: the state of an engine
    /// follows from its requests, so that a resumed suite gives the same bytes.
    fn play_again(&self, simulator: &mut Simulator<'_>, before: &[Spec]) -> Result<(), Failure> {
        if !before.is_empty() {
            self.session
                .talk("playing the stored runs of this round again, for the engine's cache …");
        }
        for spec in before {
            let ready = simulator.make_ready(spec)?;
            simulator.summarize(ready)?;
        }
        self.session.interruption.check()
    }
}

impl Bench for VirtualBench<'_> {
    fn measure(&mut self, asked: &Asked<'_>, place: RunLocation<'_>) -> Result<Run, Failure> {
        let mut simulator = self.simulator(asked)?;
        let ready = simulator.make_ready(&asked.spec)?;
        let measured = simulator.record(ready, place)?.measured;
        let round = asked.point.repetition;
        self.kept = asked.kept_since.as_ref().map(|_| Kept { simulator, round });
        Ok(measured)
    }

    /// A new engine has nothing to recover from, and an idle one does not change.
    fn rest(&mut self, _time: Duration) -> Result<(), Failure> {
        self.session.interruption.check()
    }
}
