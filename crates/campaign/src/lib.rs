//! Many runs as one question: repeat, sweep, search. Pure state machines.
//!
//! A [`Campaign`] is told what each run came to and answers which is next. It is a function of its
//! spec and of what it was told, so a set is resumed by telling it again what is already stored.

use inferometer_analysis::Summary;
use inferometer_model::campaign::{CampaignSpec, Level, Point, Stage};

/// What to measure next, and why, until there is nothing left to ask.
#[derive(Clone, Debug)]
pub struct Campaign {
    spec: CampaignSpec,
    finished: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CampaignError {
    #[error("nothing is measured: there is no server in the list")]
    NoCondition,
}

impl Campaign {
    pub fn new(spec: CampaignSpec) -> Result<Self, CampaignError> {
        if spec.conditions.is_empty() {
            return Err(CampaignError::NoCondition);
        }
        Ok(Self { spec, finished: 0 })
    }

    /// The next run; the same until [`Self::finished`] is told of it. `None` when all is asked.
    pub fn next(&self) -> Option<Point> {
        (self.finished < self.spec.repetition.runs.get()).then(|| Point {
            number: self.finished,
            condition: 0,
            level: Level::AsAsked,
            repetition: self.finished,
            seed: self.spec.seed.wrapping_add(self.finished.into()),
            stage: Stage::Planned,
        })
    }

    /// What the run that [`Self::next`] named came to.
    pub fn finished(&mut self, _summary: &Summary) {
        self.finished += 1;
    }
}
