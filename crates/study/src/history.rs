//! What was measured so far: all that a campaign remembers.

use inferometer_model::campaign::{Level, Point, Stage};

use crate::reading::Told;

#[derive(Clone, Debug, Default)]
pub(crate) struct History(Vec<(Point, Told)>);

/// A run before it has its number and its seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slot {
    pub(crate) condition: u32,
    pub(crate) level: Level,
    pub(crate) repetition: u32,
    pub(crate) stage: Stage,
}

impl History {
    pub(crate) fn add(&mut self, point: Point, told: Told) {
        self.0.push((point, told));
    }

    pub(crate) fn runs(&self) -> impl Iterator<Item = (&Point, &Told)> {
        self.0.iter().map(|(point, told)| (point, told))
    }

    pub(crate) fn count(&self) -> u32 {
        count(&self.0)
    }

    pub(crate) fn of_stage(&self, stage: Stage) -> u32 {
        count(self.0.iter().filter(|(point, _)| point.stage == stage))
    }

    /// The repetition that a further run at this level would be. Each stage counts for itself, so that
    /// conditions that came to a level by different ways still share their seeds there.
    pub(crate) fn repetition(&self, condition: u32, level: Level, stage: Stage) -> u32 {
        let same = |point: &Point| {
            point.condition == condition && point.level == level && point.stage == stage
        };
        count(self.0.iter().filter(|(point, _)| same(point)))
    }
}

/// A set has far fewer runs than there are numbers for them.
fn count(runs: impl IntoIterator) -> u32 {
    u32::try_from(runs.into_iter().count()).unwrap_or(u32::MAX)
}
