//! Intervals of what one run measured. Neighbours in time resemble each other, and the values of one
//! request do too; an interval that takes them for independent is too narrow, often by far.

use super::blocks::LongRun;
use super::proportion::wilson_at;
use super::{UPPER, student};
use crate::estimate::Interval;
use crate::sample::{Probability, Sample};

/// The values of one request. A series of them is in the order of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cluster {
    pub count: f64,
    pub sum: f64,
}

/// What a series says about a statistic of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// 95 %; `None` where the series is too short to bound both sides.
    pub interval: Option<Interval>,
    /// Independent values that would tell as much.
    pub effective_n: f64,
}

impl Cluster {
    /// A request that has one value.
    pub const fn of(value: f64) -> Self {
        Self { count: 1.0, sum: value }
    }
}

/// The mean of all values: Σ sum over Σ count. Returns `None` without two requests that have values.
pub fn mean_interval(clusters: &[Cluster]) -> Option<Judged> {
    let (mean, doubt) = ratio(clusters)?;
    let reach = student::quantile(UPPER, doubt.degrees) * doubt.error;
    Some(Judged {
        interval: Interval::new(mean - reach, mean + reach),
        effective_n: doubt.effective_n,
    })
}

/// The same of a share, where a cluster's sum is how many of its values succeeded: inside 0 to 1, and
/// of some width even where all succeeded.
pub fn share_interval(clusters: &[Cluster]) -> Option<Judged> {
    let (share, doubt) = ratio(clusters)?;
    let effective_n = doubt.effective_n;
    let reach = student::quantile(UPPER, doubt.degrees);
    let interval = wilson_at((share * effective_n).clamp(0.0, effective_n), effective_n, reach);
    Some(Judged { interval, effective_n })
}

/// The quantile of `sorted` at `p`. `below` has, for each request, how many values it has and how many
/// of them are not above that quantile: the share of these is uncertain, and the sorted values
/// translate that into the quantile's own unit.
pub fn quantile_interval(sorted: &Sample, below: &[Cluster], p: Probability) -> Option<Judged> {
    let (_, doubt) = ratio(below)?;
    let reach = student::quantile(UPPER, doubt.degrees) * doubt.error;
    let at = |p: f64| Probability::new(p).map(|p| sorted.quantile(p));
    let ends = at(p.share() - reach).zip(at(p.share() + reach));
    let interval = ends.and_then(|(low, high)| Interval::new(low, high));
    Some(Judged { interval, effective_n: doubt.effective_n })
}

struct Doubt {
    error: f64,
    degrees: f64,
    effective_n: f64,
}

/// The ratio of two sums, and its doubt from what each request adds to the difference.
fn ratio(clusters: &[Cluster]) -> Option<(f64, Doubt)> {
    let count: f64 = clusters.iter().map(|cluster| cluster.count).sum();
    let sum: f64 = clusters.iter().map(|cluster| cluster.sum).sum();
    if !(count > 0.0 && sum.is_finite()) {
        return None;
    }
    let ratio = sum / count;
    let apart: Vec<f64> =
        clusters.iter().map(|cluster| cluster.sum - ratio * cluster.count).collect();
    let long_run = LongRun::of(&apart)?;
    let effective_n = long_run.effective(clusters.len() as f64);
    let error = long_run.variance.sqrt() / count;
    Some((ratio, Doubt { error, degrees: long_run.degrees, effective_n }))
}
