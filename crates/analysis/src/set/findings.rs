//! What the levels of one server show.

use inferometer_model::campaign::Level;
use serde::{Deserialize, Serialize};

use super::curve::Curve;
use super::finding::Finding;
use super::knee::Knee;
use super::level::LevelSummary;
use super::scalability::Scalability;
use super::served::Saturation;
use super::sweet_spot::{Peak, SweetSpot};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    pub peak: Finding<Peak>,
    pub knee: Finding<Knee>,
    pub sweet_spot: Finding<SweetSpot>,
    pub saturation: Finding<Saturation>,
    pub scalability: Finding<Scalability>,
    /// Levels that have no part in peak, knee, sweet spot and scalability: a limit of time cut them, so
    /// that their figures are of the quick requests, or they were never reached.
    #[serde(default)]
    pub left_out: Vec<Level>,
    /// Those of `left_out` that never had as many requests in flight as they ask for: what they say of
    /// a user is of users who were not there.
    #[serde(default)]
    pub not_reached: Vec<Level>,
}

impl Findings {
    /// Levels without a run that counts have no numbers, and so no part in them.
    pub fn of(levels: &[LevelSummary]) -> Self {
        let curve = Curve::of(levels);
        let is_concurrency =
            curve.points.iter().all(|point| matches!(point.level, Level::Concurrency(_)));
        Self {
            peak: Peak::find(levels),
            knee: Knee::find(&curve),
            sweet_spot: SweetSpot::find(levels),
            saturation: Saturation::find(levels),
            scalability: Scalability::find(&curve, is_concurrency),
            left_out: those(levels, |level| !level.is_comparable()),
            not_reached: those(levels, |level| !level.is_reached()),
        }
    }
}

fn those(levels: &[LevelSummary], is_wanted: impl Fn(&LevelSummary) -> bool) -> Vec<Level> {
    levels.iter().filter(|level| is_wanted(level)).map(|level| level.level).collect()
}
