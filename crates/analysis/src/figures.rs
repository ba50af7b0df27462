//! What charts are drawn from: a bounded number of points, bins and rows, whatever the length of
//! the run. Pages never see records.

mod course;
mod curve;
mod gaps;
mod requests;
mod steps;

use crate::metric::{self, Metric};
use inferometer_model::Observations;
use inferometer_model::spec::LoadShape;
use serde::{Deserialize, Serialize};

pub use self::course::CourseFigure;
pub(crate) use self::course::CourseTally;
pub(crate) use self::curve::curve;
pub(crate) use self::gaps::GapSteps;
pub use self::gaps::GapsFigure;
pub use self::requests::{RequestRow, RequestsFigure, RowReason};
use crate::measured::Measured;
use crate::ruler::ns_to_ms;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFigures {
    /// How latencies are distributed, by metric; none for a metric without values.
    pub distributions: Vec<DistributionFigure>,
    /// The client's side over time.
    pub course: CourseFigure,
    /// Requests chosen to be drawn one by one.
    pub requests: RequestsFigure,
    /// Gaps between tokens over time; null where there are none.
    pub gaps: Option<GapsFigure>,
    /// How late the driver's loop woke: upper limits in milliseconds, rising, and how many lags are
    /// within each and above the one before. Limits without lags are left out.
    #[serde(default)]
    pub loop_lag: Vec<(f64, u64)>,
}

/// Exact quantiles at shares that are denser towards the tail.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DistributionFigure {
    /// The name of the metric, such as `ttft`.
    pub metric: String,
    pub n: u64,
    /// Shares and the values in milliseconds at or below which they lie, both rising.
    pub points: Vec<(f64, f64)>,
}

impl RunFigures {
    pub(crate) fn of(observations: &Observations, measured: &Measured) -> Self {
        let lags = &observations.ending.client.loop_lag;
        Self {
            distributions: distributions(measured),
            course: measured.course.clone(),
            requests: RequestsFigure::of(observations),
            gaps: measured.gaps.clone(),
            loop_lag: lags.steps().map(|(limit_ns, count)| (ns_to_ms(limit_ns), count)).collect(),
        }
    }
}

/// Those of the server's answers first, then those of the client.
fn distributions(measured: &Measured) -> Vec<DistributionFigure> {
    let open = matches!(measured.shape, LoadShape::Open { .. });
    let gaps =
        if measured.series(&metric::ITL).found.is_ok() { &metric::ITL } else { &metric::ICL };
    let drawn = [
        Some(&metric::TTFT),
        open.then_some(&metric::TTFT_SCHEDULE),
        Some(gaps),
        Some(&metric::TPOT),
        Some(&metric::E2E),
        Some(&metric::SEND_LAG),
        Some(&metric::CLIENT_LAG),
    ];
    let figure = |metric: &Metric| {
        let series = measured.series(metric);
        let n = series.found.as_ref().ok()?.n;
        let metric = metric.name.to_owned();
        Some(DistributionFigure { metric, n, points: series.curve.clone() })
    };
    drawn.into_iter().flatten().filter_map(figure).collect()
}

#[cfg(test)]
pub(crate) mod tests;
