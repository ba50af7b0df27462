//! What a matrix would do: `matrix --dry-run`.

mod estimate;
mod page;

use std::collections::BTreeSet;
use std::time::Duration;

use inferometer_model::campaign::{CampaignSpec, Cell, Matrix, Question};
use inferometer_model::spec::TargetSpec;

use self::estimate::{Estimate, KnownBy};
use crate::arguments::{PageFormat, ResultArguments};
use crate::failure::Failure;
use crate::live::Session;
use crate::signals::begin_session;
use crate::study::StudyPlan;

const SECONDS_PER_HOUR: f64 = 3_600.0;

/// The page or document, or the signal that came before it was whole.
pub(crate) fn outline(plan: &StudyPlan, results: &ResultArguments) -> Result<String, Failure> {
    let Question::Matrix(matrix) = &plan.campaign.question else {
        return Err(Failure::internal("the outline of a matrix is asked of something else"));
    };
    let session = begin_session(usize::MAX, results.quiet)?;
    let outline = Outline::of(plan, matrix, &session, Foresight::Simulated)?;
    Ok(match results.page.format() {
        PageFormat::Json => page::document(&outline),
        PageFormat::Page | PageFormat::Vllm => page::page(&outline),
    })
}

/// Says what is about to be measured, before anything is. `Some` is a signal that came meanwhile.
pub(crate) fn announce(
    plan: &StudyPlan,
    session: &Session,
    is_virtual: bool,
) -> Result<(), Failure> {
    if session.is_quiet() {
        return Ok(());
    }
    let Question::Matrix(matrix) = &plan.campaign.question else {
        return Err(Failure::internal("the outline of a matrix is asked of something else"));
    };
    let foresight = if is_virtual { Foresight::LoadAlone } else { Foresight::Simulated };
    let outline = Outline::of(plan, matrix, session, foresight)?;
    plan.notes.iter().for_each(|note| session.talk(&format!("note: {note}")));
    plan.warnings.iter().for_each(|warning| session.talk(&format!("warning: {warning}")));
    session.talk(&format!("plan: {}", page::total(&outline)));
    Ok(())
}

/// How far cells are looked into before they are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Foresight {
    /// The embedded engine is simulated.
    Simulated,
    /// In virtual time the simulation is the measurement, and nobody does it twice.
    LoadAlone,
}

struct Outline<'a> {
    plan: &'a StudyPlan,
    matrix: &'a Matrix,
    /// One for each cell, in their order: of all levels, measured once.
    estimates: Vec<Estimate>,
    foresight: Foresight,
}

/// Of all runs together; `None` where a cell does not know.
struct Whole {
    runs: u64,
    requests: Option<u64>,
    /// Of all servers together, with the rests between them; without the time to start them.
    time: Option<Duration>,
    cost: Option<f64>,
}

impl<'a> Outline<'a> {
    fn of(
        plan: &'a StudyPlan,
        matrix: &'a Matrix,
        session: &Session,
        foresight: Foresight,
    ) -> Result<Self, Failure> {
        let estimates = Estimate::all(plan, matrix, session, foresight)?;
        Ok(Self { plan, matrix, estimates, foresight })
    }

    fn campaign(&self) -> &CampaignSpec {
        &self.plan.campaign
    }

    /// The cells that can be, as far as is known.
    fn possible(&self) -> impl Iterator<Item = (&Cell, &Estimate)> {
        let cells = self.matrix.cells.iter().zip(&self.estimates);
        cells.filter(|(_, estimate)| estimate.known_by != KnownBy::Foreseen)
    }

    fn whole(&self) -> Whole {
        let each = self.campaign().repetition.runs.get();
        let levels = self.matrix.levels.len() as u64;
        let runs = self.possible().count() as u64 * levels * u64::from(each);
        let requests = self
            .possible()
            .try_fold(0_u64, |sum, (_, it)| Some(sum.saturating_add(it.requests?)))
            .map(|requests| requests.saturating_mul(each.into()));
        let rests = self.campaign().repetition.cool_down.saturating_mul(self.rests());
        let time = self
            .possible()
            .try_fold(Duration::ZERO, |sum, (_, it)| Some(sum.saturating_add(it.time?)));
        let time = time.map(|time| time.saturating_mul(each).saturating_add(rests));
        let cost =
            self.possible().try_fold(0.0, |sum, (cell, it)| Some(sum + self.cost(cell, it)?));
        Whole { runs, requests, time, cost: cost.map(|cost: f64| cost * f64::from(each)) }
    }

    /// Between the servers of each lane.
    fn rests(&self) -> u32 {
        let presets: BTreeSet<u32> = self.possible().map(|(cell, _)| cell.preset).collect();
        let lanes = presets.len().min(usize::try_from(self.matrix.lanes.get()).unwrap_or(1));
        let runs = usize::try_from(self.campaign().repetition.runs.get()).unwrap_or(usize::MAX);
        let servers = self.possible().count().saturating_mul(runs);
        u32::try_from(servers.saturating_sub(lanes)).unwrap_or(u32::MAX)
    }

    /// Of a cell that is measured once: the time of its preset.
    fn cost(&self, cell: &Cell, estimate: &Estimate) -> Option<f64> {
        let preset = self.matrix.presets.get(usize::try_from(cell.preset).ok()?)?;
        Some(preset.price_per_hour? * estimate.time?.as_secs_f64() / SECONDS_PER_HOUR)
    }

    fn has_prices(&self) -> bool {
        self.matrix.presets.iter().any(|preset| preset.price_per_hour.is_some())
    }

    /// Whether the embedded engine plays all servers, so that it can be known how long it takes.
    fn is_ours(&self) -> bool {
        let conditions = &self.campaign().conditions;
        conditions.iter().all(|condition| condition.spec.target == TargetSpec::Embedded)
    }
}
