//! Levels, conditions and repetitions that are laid out beforehand, and which of them comes next.

use inferometer_model::campaign::{CampaignSpec, Level, Order, Question, Stage, Suite};

use crate::history::{History, Slot};
use crate::precision::Rule;
use crate::{order, seeds};

/// Every place, so many times.
#[derive(Clone, Debug)]
pub(crate) struct Grid<'campaign> {
    pub(crate) spec: &'campaign CampaignSpec,
    pub(crate) history: &'campaign History,
    pub(crate) places: Vec<Place>,
    /// With a rule, the most that there will be.
    pub(crate) runs: u32,
    pub(crate) rule: Option<Rule>,
    pub(crate) stage: Stage,
}

/// A level, and the conditions that are measured at it side by side.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) level: Level,
    pub(crate) conditions: Vec<u32>,
}

/// Every level for all conditions alike.
pub(crate) fn crossed(levels: &[Level], conditions: usize) -> Vec<Place> {
    let conditions: Vec<u32> = (0..u32::try_from(conditions).unwrap_or(u32::MAX)).collect();
    let place = |level: &Level| Place { level: *level, conditions: conditions.clone() };
    levels.iter().map(place).collect()
}

/// The levels of one scenario after those of the other.
pub(crate) fn in_turn(suite: &Suite) -> Vec<Place> {
    let of_scenario = |(condition, levels): (u32, &Vec<Level>)| {
        let place = move |level: &Level| Place { level: *level, conditions: vec![condition] };
        levels.iter().map(place).collect::<Vec<_>>()
    };
    (0..)
        .zip(suite.scenarios.iter().map(|scenario| &scenario.levels))
        .flat_map(of_scenario)
        .collect()
}

impl Grid<'_> {
    /// Slots are measured in their order, so as many are behind us as the stage has runs.
    pub(crate) fn next(&self) -> Option<Slot> {
        self.slots().nth(self.history.of_stage(self.stage) as usize)
    }

    /// All runs of the grid; `None` when that depends on what they show.
    pub(crate) fn expected(&self) -> Option<u32> {
        let of_round: usize = self.places.iter().map(|place| place.conditions.len()).sum();
        let of_round = u32::try_from(of_round).unwrap_or(u32::MAX);
        self.rule.is_none().then_some(self.runs.saturating_mul(of_round))
    }

    fn slots(&self) -> Box<dyn Iterator<Item = Slot> + '_> {
        let is_suite = matches!(self.spec.question, Question::Suite(_));
        match self.spec.order {
            Order::Interleaved => Box::new((0..self.runs).flat_map(|round| {
                let draws = seeds::order(self.spec.seed, self.stage, round);
                self.round(round, order::shuffled(self.places.len(), draws))
            })),
            // A suite is played as a whole: drift from one round to the next is no difference
            // between its scenarios.
            Order::Listed if is_suite => Box::new(
                (0..self.runs)
                    .flat_map(|round| self.round(round, (0..self.places.len()).collect())),
            ),
            Order::Listed => Box::new((0..self.places.len()).flat_map(move |place| {
                let open = move |&round: &u32| self.is_open(place, round);
                (0..self.runs).take_while(open).flat_map(move |round| {
                    self.at(place, round, self.places[place].conditions.clone())
                })
            })),
        }
    }

    fn round(&self, round: u32, places: Vec<usize>) -> impl Iterator<Item = Slot> {
        places.into_iter().filter(move |&place| self.is_open(place, round)).flat_map(move |place| {
            let conditions = self.places[place].conditions.clone();
            self.at(place, round, order::alternating(conditions, place, round))
        })
    }

    fn at(&self, place: usize, round: u32, conditions: Vec<u32>) -> impl Iterator<Item = Slot> {
        let (level, stage) = (self.places[place].level, self.stage);
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
        let Place { level, conditions } = &self.places[place];
        let reached =
            |condition: &u32| rule.reached_within(self.history, *condition, *level, round);
        !conditions.iter().all(reached)
    }
}
