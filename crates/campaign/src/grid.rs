//! Levels, conditions and repetitions that are laid out beforehand, and which of them comes next.

use inferometer_model::campaign::{CampaignSpec, Level, Order, Stage};

use crate::history::{History, Slot};
use crate::precision::Rule;
use crate::{order, seeds};

/// Every level of every condition, so many times.
#[derive(Clone, Debug)]
pub(crate) struct Grid<'campaign> {
    pub(crate) spec: &'campaign CampaignSpec,
    pub(crate) history: &'campaign History,
    pub(crate) levels: Vec<Level>,
    /// With a rule, the most that there will be.
    pub(crate) runs: u32,
    pub(crate) rule: Option<Rule>,
    pub(crate) stage: Stage,
}

impl Grid<'_> {
    /// Slots are measured in their order, so as many are behind us as the stage has runs.
    pub(crate) fn next(&self) -> Option<Slot> {
        self.slots().nth(self.history.of_stage(self.stage) as usize)
    }

    /// All runs of the grid; `None` when that depends on what they show.
    pub(crate) fn expected(&self) -> Option<u32> {
        let levels = u32::try_from(self.levels.len()).unwrap_or(u32::MAX);
        let runs = self.runs.saturating_mul(levels).saturating_mul(self.conditions());
        self.rule.is_none().then_some(runs)
    }

    fn conditions(&self) -> u32 {
        u32::try_from(self.spec.conditions.len()).unwrap_or(u32::MAX)
    }

    fn slots(&self) -> Box<dyn Iterator<Item = Slot> + '_> {
        match self.spec.order {
            Order::Interleaved => Box::new((0..self.runs).flat_map(|round| self.round(round))),
            Order::Listed => Box::new((0..self.levels.len()).flat_map(move |place| {
                let open = move |&round: &u32| self.is_open(place, round);
                (0..self.runs)
                    .take_while(open)
                    .flat_map(move |round| self.at(place, round, (0..self.conditions()).collect()))
            })),
        }
    }

    fn round(&self, round: u32) -> impl Iterator<Item = Slot> {
        let draws = seeds::order(self.spec.seed, self.stage, round);
        let places = order::shuffled(self.levels.len(), draws);
        places.into_iter().filter(move |&place| self.is_open(place, round)).flat_map(move |place| {
            self.at(place, round, order::alternating(self.conditions(), place, round))
        })
    }

    fn at(&self, place: usize, round: u32, conditions: Vec<u32>) -> impl Iterator<Item = Slot> {
        let (level, stage) = (self.levels[place], self.stage);
        conditions.into_iter().map(move |condition| Slot {
            condition,
            level,
            repetition: round,
            stage,
        })
    }

    /// Conditions stop together, so that they stay paired.
    fn is_open(&self, place: usize, round: u32) -> bool {
        let Some(rule) = self.rule else { return true };
        let level = self.levels[place];
        let reached = |condition| rule.reached_within(self.history, condition, level, round);
        !(0..self.conditions()).all(reached)
    }
}
