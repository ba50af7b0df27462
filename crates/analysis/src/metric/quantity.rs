//! One number of a run, by its name: `ttft.p99`, `output_throughput`. Thresholds, searches, tables
//! of levels and comparisons all speak of quantities.

use std::fmt;

use crate::metric::{self, Distribution, METRICS, Metric, MetricValues, Shape};
use crate::statistics::{Estimate, Percentile};
use crate::summary::Summary;

/// A metric, and which statistic of it where it is a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    metric: &'static Metric,
    /// `None` of a metric that is one number by itself.
    statistic: Option<Statistic>,
}

/// Where TTFT and E2E begin: on an open loop at the request's moment in the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyOrigin {
    Sent,
    Schedule,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityProblem {
    #[error(
        "there is no metric `{metric}`; the nearest is `{nearest}` (docs/metrics.md has them all)"
    )]
    UnknownMetric { metric: String, nearest: &'static str },
    #[error("there is no statistic `{statistic}`; write p50, p90, p95, p99, p99.9, mean or max")]
    UnknownStatistic { statistic: String },
    #[error("{metric} is one value for the whole run; leave out `.{statistic}`")]
    OneValue { metric: &'static str, statistic: String },
    #[error("{metric} is a distribution; add a statistic, such as {metric}.p99 or {metric}.mean")]
    WhichStatistic { metric: &'static str },
}

impl LatencyOrigin {
    pub const fn for_load(is_open: bool) -> Self {
        if is_open { Self::Schedule } else { Self::Sent }
    }

    /// TTFT as this load is judged by it.
    pub const fn ttft(self) -> &'static Metric {
        match self {
            Self::Sent => &metric::TTFT,
            Self::Schedule => &metric::TTFT_SCHEDULE,
        }
    }

    /// E2E as this load is judged by it.
    pub const fn e2e(self) -> &'static Metric {
        match self {
            Self::Sent => &metric::E2E,
            Self::Schedule => &metric::E2E_SCHEDULE,
        }
    }
}

impl Quantity {
    /// A distribution has a statistic and a single number has none; other quantities have no value
    /// in any run.
    pub const fn new(metric: &'static Metric, statistic: Option<Statistic>) -> Self {
        debug_assert!(matches!(metric.shape(), Shape::Distribution) == statistic.is_some());
        Self { metric, statistic }
    }

    /// What a name means: `ttft.p99`, `ttft.schedule.p99`, `output_throughput`.
    pub fn named(name: &str, origin: LatencyOrigin) -> Result<Self, QuantityProblem> {
        let (first, rest) = split(name);
        let found = Self::parse(first, rest, origin)?;
        if found.is_per_request() {
            return Err(QuantityProblem::WhichStatistic { metric: found.metric.name });
        }
        Ok(found)
    }

    /// The same where a latency may stand without a statistic, for that of each request.
    pub(crate) fn parse(
        first: &str,
        rest: Option<&str>,
        origin: LatencyOrigin,
    ) -> Result<Self, QuantityProblem> {
        let (metric, statistic) = metric_of(first, rest, origin)?;
        let Some(statistic) = statistic else { return Ok(Self { metric, statistic: None }) };
        if metric.shape() == Shape::Scalar {
            let statistic = statistic.to_owned();
            return Err(QuantityProblem::OneValue { metric: metric.name, statistic });
        }
        let found = Statistic::named(statistic).ok_or_else(|| unknown_statistic(statistic))?;
        Ok(Self { metric, statistic: Some(found) })
    }

    /// Whether it is a latency of each request, and no number of a run.
    pub(crate) fn is_per_request(&self) -> bool {
        self.metric.shape() == Shape::Distribution && self.statistic.is_none()
    }

    pub const fn metric(&self) -> &'static Metric {
        self.metric
    }

    pub const fn statistic(&self) -> Option<Statistic> {
        self.statistic
    }

    /// What pages call it: `TTFT p99`.
    pub fn title(&self) -> String {
        let statistic = self.statistic.map(|it| format!(" {}", it.name())).unwrap_or_default();
        format!("{}{statistic}", self.metric.title)
    }

    /// Its value in a run, with its within-run interval; or why there is none.
    pub fn value_in(&self, summary: &Summary) -> Result<Estimate, String> {
        self.value_among(&summary.headline(), summary.attempted)
    }

    /// The same of the metrics of a run with so many attempted requests.
    pub(crate) fn value_among(
        &self,
        metrics: &MetricValues,
        attempted: u64,
    ) -> Result<Estimate, String> {
        let absent = || format!("the summary has no {}", self.metric.title);
        let Some(statistic) = self.statistic else {
            let scalar = metrics.scalar(self.metric).ok_or_else(absent)?;
            let value = scalar.value.ok_or_else(|| scalar.reason.clone().unwrap_or_default())?;
            let (interval, n) = (scalar.interval, attempted);
            return Ok(Estimate { value, interval, n, effective_n: None, certified: true });
        };
        let found = metrics.distribution(self.metric).ok_or_else(absent)?;
        let missing = || found.reason.clone().unwrap_or_else(absent);
        Ok(Estimate {
            value: statistic.stored(found).ok_or_else(missing)?,
            interval: found.intervals.get(statistic),
            n: found.n,
            effective_n: found.effective_n,
            certified: match statistic {
                Statistic::Percentile(percentile) => found.is_certified(percentile),
                Statistic::Mean | Statistic::Max => 0 < found.n,
            },
        })
    }
}

impl From<&'static Metric> for Quantity {
    /// The quantity of a metric that is a single number.
    fn from(metric: &'static Metric) -> Self {
        Self::new(metric, None)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.metric.name)?;
        self.statistic.map_or(Ok(()), |statistic| write!(f, ".{}", statistic.name()))
    }
}

/// The metric, and what of the name is left for the statistic. Only `ttft` and `e2e` have an origin.
pub(crate) fn metric_of<'name>(
    first: &str,
    rest: Option<&'name str>,
    origin: LatencyOrigin,
) -> Result<(&'static Metric, Option<&'name str>), QuantityProblem> {
    let named = Metric::named(first).ok_or_else(|| {
        // The name that takes the fewest changes of a letter.
        let nearest = METRICS.iter().min_by_key(|it| strsim::levenshtein(first, it.name));
        let nearest = nearest.map_or(metric::TTFT.name, |metric| metric.name);
        QuantityProblem::UnknownMetric { metric: first.to_owned(), nearest }
    })?;
    // `schedule.p99` is an origin and a statistic; either may be alone.
    let (written, statistic) = match rest.map(split) {
        Some(("sent", rest)) => (Some(LatencyOrigin::Sent), rest),
        Some(("schedule", rest)) => (Some(LatencyOrigin::Schedule), rest),
        _ => (None, rest),
    };
    let from = written.unwrap_or(origin);
    let metric = match (named, written.and(rest)) {
        (ttft, _) if *ttft == metric::TTFT => from.ttft(),
        (e2e, _) if *e2e == metric::E2E => from.e2e(),
        (_, Some(rest)) => return Err(unknown_statistic(rest)),
        (other, None) => other,
    };
    Ok((metric, statistic))
}

/// At the first dot.
fn split(text: &str) -> (&str, Option<&str>) {
    text.split_once('.').map_or((text, None), |(first, rest)| (first, Some(rest)))
}

fn unknown_statistic(statistic: &str) -> QuantityProblem {
    QuantityProblem::UnknownStatistic { statistic: statistic.to_owned() }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Statistic {
    Mean,
    Max,
    Percentile(Percentile),
}

impl Statistic {
    pub fn named(name: &str) -> Option<Self> {
        let percentiles = Percentile::ALL.map(Self::Percentile);
        let mut all = [Self::Mean, Self::Max].into_iter().chain(percentiles);
        all.find(|statistic| statistic.name() == name)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Max => "max",
            Self::Percentile(percentile) => percentile.name(),
        }
    }

    /// The number, as a summary has it.
    pub fn stored(self, distribution: &Distribution) -> Option<f64> {
        match self {
            Self::Mean => distribution.mean,
            Self::Max => distribution.max,
            Self::Percentile(percentile) => distribution.percentile(percentile),
        }
    }

    /// The fewest values that it can be judged from.
    pub const fn certified_from(self) -> u64 {
        match self {
            Self::Mean | Self::Max => 1,
            Self::Percentile(percentile) => percentile.certified_from(),
        }
    }
}

#[cfg(test)]
mod tests;
