//! Whether the numbers of a level are of what was asked there.

use inferometer_analysis::set::LevelSummary;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::narrative) enum Standing {
    #[default]
    Whole,
    /// A limit of time ended it: its numbers are of the quick requests.
    Cut,
    /// Far fewer were ever in flight than its name says.
    NotReached,
}

impl Standing {
    pub(super) fn of(level: &LevelSummary) -> Self {
        if level.cut.as_ref().is_some_and(|cut| cut.answers_missing) {
            Self::Cut
        } else if level.is_reached() {
            Self::Whole
        } else {
            Self::NotReached
        }
    }
}
