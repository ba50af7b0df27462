//! Whether the numbers of a level are of what was asked there.

use inferometer_analysis::set::LevelSummary;
use inferometer_analysis::{LoadFacts, Summary};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::narrative) enum Standing {
    #[default]
    Whole,
    /// A limit of time ended it: its numbers are of the quick requests.
    Cut,
    /// Far fewer were ever in flight than its name says.
    NotReached,
}

/// In flight at most, as a share of what was asked: a level with less is a lower level.
const REACHED: f64 = 0.9;

impl Standing {
    pub(super) fn of(level: &LevelSummary, runs: &[&Summary]) -> Self {
        if level.cut.as_ref().is_some_and(|cut| cut.answers_missing) {
            return Self::Cut;
        }
        let asked = runs.first().and_then(|run| match run.run.load {
            LoadFacts::Closed { concurrency, .. } => Some(f64::from(concurrency)),
            LoadFacts::Open { .. } => None,
        });
        let peak = level.quantity("concurrency_peak").and_then(|across| across.mean);
        match (peak, asked) {
            (Some(peak), Some(asked)) if peak < REACHED * asked => Self::NotReached,
            _ => Self::Whole,
        }
    }
}
