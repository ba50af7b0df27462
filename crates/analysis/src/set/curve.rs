//! Throughput against the load, as findings look at it.

use crate::metric::{self, Metric};
use inferometer_model::campaign::Level;

use super::across::Across;
use super::finding::Figure;
use super::level::LevelSummary;

/// Levels that have a place and a throughput, were reached and not cut, from the lowest to the highest.
#[derive(Debug)]
pub(super) struct Curve<'a> {
    pub(super) metric: &'static Metric,
    pub(super) points: Vec<CurvePoint<'a>>,
}

#[derive(Debug)]
pub(super) struct CurvePoint<'a> {
    pub(super) level: Level,
    pub(super) place: f64,
    pub(super) mean: f64,
    pub(super) across: &'a Across,
}

impl<'a> Curve<'a> {
    /// Of output tokens; where nothing generates any, of requests.
    pub(super) fn of(levels: &'a [LevelSummary]) -> Self {
        let tokens = Self::of_metric(levels, &metric::OUTPUT_THROUGHPUT);
        if tokens.points.is_empty() {
            return Self::of_metric(levels, &metric::REQUEST_THROUGHPUT);
        }
        tokens
    }

    fn of_metric(levels: &'a [LevelSummary], metric: &'static Metric) -> Self {
        let point = |summary: &'a LevelSummary| {
            let across = summary.quantity(metric)?;
            // What is unlimited has no place on an axis.
            let place = summary.level.place().filter(|place| place.is_finite())?;
            Some(CurvePoint { level: summary.level, place, mean: across.mean?, across })
        };
        let comparable = levels.iter().filter(|level| level.is_comparable());
        Self { metric, points: comparable.filter_map(point).collect() }
    }

    pub(super) fn places(&self) -> impl Iterator<Item = f64> + '_ {
        self.points.iter().map(|point| point.place)
    }

    pub(super) fn means(&self) -> Vec<(f64, f64)> {
        self.points.iter().map(|point| (point.place, point.mean)).collect()
    }
}

impl CurvePoint<'_> {
    pub(super) fn figure(&self) -> Figure {
        Figure { value: self.mean, interval: self.across.doubt() }
    }
}
