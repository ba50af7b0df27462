//! One cell, as far as it is known beforehand.

use std::time::Duration;

use inferometer_model::Spec;
use inferometer_model::campaign::{Level, Matrix, Point, Stage};
use inferometer_model::spec::TargetSpec;

use super::Foresight;
use crate::failure::Failure;
use crate::live::Session;
use crate::simulation::VirtualEngine;
use crate::simulator::Simulator;
use crate::study::StudyPlan;
use crate::sweep::expected;

/// Of all levels, measured once. `None` where the server decides it.
#[derive(Debug)]
pub(super) struct Estimate {
    pub(super) requests: Option<u64>,
    pub(super) time: Option<Duration>,
    /// Requests that the engine refuses or does not finish.
    pub(super) failing: u64,
    pub(super) known_by: KnownBy,
    /// Why it cannot be put up, line by line.
    pub(super) reason: Vec<String>,
}

/// How it was found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KnownBy {
    /// The load alone.
    Load,
    Simulation,
    /// It cannot be put up.
    Foreseen,
}

/// What a dry run simulates at most, so that it keeps nobody waiting: of one run, and of all.
const REQUESTS_MAX: u64 = 100_000;
const TOKENS_MAX: u64 = 100_000_000;

impl Estimate {
    /// In the order of the cells.
    pub(super) fn all(
        plan: &StudyPlan,
        matrix: &Matrix,
        session: &Session,
        foresight: Foresight,
    ) -> Result<Vec<Self>, Failure> {
        // Where nothing is to be simulated, that much was already.
        let mut written = match foresight {
            Foresight::Simulated => 0,
            Foresight::LoadAlone => u64::MAX,
        };
        let mut estimates = Vec::new();
        for (place, _) in plan.campaign.conditions.iter().enumerate() {
            let foreseen = plan.foreseen.iter().find(|(condition, _)| *condition == place);
            if let Some((_, reason)) = foreseen {
                estimates.push(Self::foreseen(reason.clone()));
                continue;
            }
            let mut whole = Self::nothing();
            for level in &matrix.levels {
                let spec = plan.campaign.spec_of(&point(place, *level, plan.campaign.seed));
                let spec = spec.ok_or_else(|| Failure::internal("a cell that is not listed"))?;
                whole = whole.and(&Self::of(&spec, &mut written, session)?);
                // A simulation that a signal cut has no true numbers.
                session.interruption.check()?;
            }
            estimates.push(whole);
        }
        Ok(estimates)
    }

    fn nothing() -> Self {
        let (requests, time) = (Some(0), Some(Duration::ZERO));
        let known_by = KnownBy::Simulation;
        Self { requests, time, failing: 0, known_by, reason: Vec::new() }
    }

    fn foreseen(reason: Vec<String>) -> Self {
        Self { known_by: KnownBy::Foreseen, requests: None, time: None, reason, ..Self::nothing() }
    }

    fn and(self, more: &Self) -> Self {
        let both = self.known_by == more.known_by;
        Self {
            requests: self.requests.zip(more.requests).map(|(a, b)| a.saturating_add(b)),
            time: self.time.zip(more.time).map(|(a, b)| a.saturating_add(b)),
            failing: self.failing.saturating_add(more.failing),
            known_by: if both { self.known_by } else { KnownBy::Load },
            reason: self.reason,
        }
    }

    fn of(spec: &Spec, written: &mut u64, session: &Session) -> Result<Self, Failure> {
        let (requests, time) = expected(spec);
        let planned = Self { requests, time, known_by: KnownBy::Load, ..Self::nothing() };
        let is_short = requests.is_some_and(|requests| requests <= REQUESTS_MAX);
        if spec.target != TargetSpec::Embedded || !is_short || TOKENS_MAX < *written {
            return Ok(planned);
        }
        let mut simulator = Simulator { engine: VirtualEngine::new(&spec.engine)?, session };
        let ready = simulator.make_ready(spec)?;
        let warm_up = ready.warm_up_took();
        let told = simulator.summarize(ready)?;
        *written = written.saturating_add(told.tokens().1);
        let time_s = (told.duration_s() + warm_up.as_secs_f64()) / spec.engine.speed.unwrap_or(1.0);
        Ok(Self {
            requests: Some(told.requests()),
            time: Duration::try_from_secs_f64(time_s).ok(),
            failing: told.requests() - told.ok(),
            known_by: KnownBy::Simulation,
            ..planned
        })
    }
}

fn point(condition: usize, level: Level, seed: u64) -> Point {
    let condition = u32::try_from(condition).unwrap_or(u32::MAX);
    Point { number: 0, condition, level, repetition: 0, seed, stage: Stage::Planned }
}
