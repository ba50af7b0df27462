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
}

impl Findings {
    /// Levels without a run that counts have no numbers, and so no part in them.
    pub(super) fn of(levels: &[LevelSummary]) -> Self {
        let curve = Curve::of(levels);
        let is_concurrency =
            curve.points.iter().all(|point| matches!(point.level, Level::Concurrency(_)));
        Self {
            peak: Peak::find(levels),
            knee: Knee::find(&curve),
            sweet_spot: SweetSpot::find(levels),
            saturation: Saturation::find(levels),
            scalability: Scalability::find(&curve, is_concurrency),
        }
    }
}
