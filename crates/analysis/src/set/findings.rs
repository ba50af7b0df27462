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
    /// Levels that a limit of time cut: their figures are of the quick requests, so they have no part
    /// in peak, knee, sweet spot and scalability.
    #[serde(default)]
    pub left_out: Vec<Level>,
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
            left_out: levels
                .iter()
                .filter(|level| !level.is_whole())
                .map(|level| level.level)
                .collect(),
        }
    }
}
