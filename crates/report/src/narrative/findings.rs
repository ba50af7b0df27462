//! Sentences made from the numbers by rules. A rule speaks only where its numbers are there, and
//! every sentence says which they are.

use inferometer_analysis::Summary;
use inferometer_analysis::set::{PointResult, SetSummary};

use super::{Facts, Narrative};

/// Of a suite, a sweep or a repetition; the facts are those of the same set.
pub fn of_set(_set: &SetSummary, _points: &[PointResult], _facts: &Facts) -> Narrative {
    Narrative::default()
}

/// Of a single run; the facts are those of the same run.
pub fn of_run(_summary: &Summary, _facts: &Facts) -> Narrative {
    Narrative::default()
}

/// Of numbers that others have published.
pub fn of_published(_facts: &Facts) -> Narrative {
    Narrative::default()
}
