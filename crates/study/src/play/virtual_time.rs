//! Points in virtual time. Every run has an engine of its own, except in a round of a suite and in a
//! cell of a matrix: there one engine is kept, with its prefix cache.

use inferometer_analysis::Summary;
use inferometer_model::Spec;
use inferometer_runner::simulation::VirtualEngine;
use inferometer_runner::simulator::Simulator;
use inferometer_runner::{Failure, Session};

use super::{Job, PointRunner};

pub(super) struct VirtualRunner<'session> {
    session: &'session Session,
    kept: Option<Kept<'session>>,
}

/// The engine between two runs that share it.
struct Kept<'session> {
    simulator: Simulator<'session>,
    round: u32,
    /// How many runs it has played.
    played: usize,
}

impl<'session> VirtualRunner<'session> {
    pub(super) fn new(session: &'session Session) -> Self {
        Self { session, kept: None }
    }

    /// Plays stored runs again without recording them: the state of an engine follows from its
    /// requests, so a study that is resumed gives the same bytes.
    fn replay(&self, kept: &mut Kept<'_>, before: &[Spec]) -> Result<(), Failure> {
        let missed = before.get(kept.played..).unwrap_or_default();
        if !missed.is_empty() {
            self.session.talk("playing the stored runs again to fill the engine's prefix cache …");
        }
        for spec in missed {
            match kept.simulator.make_ready(spec) {
                Ok(ready) => drop(kept.simulator.summarize(ready)?),
                Err(failure) if failure.is_our_own() => return Err(failure),
                // It failed the first time, too.
                Err(_) => {}
            }
        }
        kept.played = before.len();
        self.session.interruption.check()
    }
}

impl PointRunner for VirtualRunner<'_> {
    fn measure(&mut self, job: &Job<'_>) -> Result<Summary, Failure> {
        let (round, before) = (job.point.repetition, job.before.as_deref().unwrap_or_default());
        let mut kept = if let Some(kept) = self.kept.take().filter(|kept| kept.round == round) {
            kept
        } else {
            let engine = VirtualEngine::new(&job.spec.engine)?;
            Kept { simulator: Simulator { engine, session: self.session }, round, played: 0 }
        };
        self.replay(&mut kept, before)?;
        let measured = match kept.simulator.make_ready(&job.spec) {
            Ok(ready) => kept.simulator.record(&ready, job.location),
            Err(failure) => Err(failure),
        };
        kept.played += 1;
        self.kept = job.before.is_some().then_some(kept);
        measured.map(|simulated| simulated.measured.summary)
    }
}
