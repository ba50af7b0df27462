//! One number of a run, by its name: `ttft.p99`, `output_throughput`. Thresholds, searches, tables
//! of levels and comparisons all speak of quantities.

use std::fmt;

use crate::estimate::Estimate;
use crate::metric::{METRICS, Metric, Shape};
use crate::statistic::Statistic;
use crate::summary::Summary;
use crate::value::Distribution;

/// A metric, and which statistic of it where it is a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    metric: &'static Metric,
    /// `None` of a metric that is one number by itself.
    statistic: Option<Statistic>,
}

/// Where a bare `ttft` or `e2e` begins: on an open loop at its moment in the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zero {
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
    #[error("{metric} is a distribution; say which of it, such as {metric}.p99 or {metric}.mean")]
    WhichStatistic { metric: &'static str },
}

impl Zero {
    pub const fn of(is_open: bool) -> Self {
        if is_open { Self::Schedule } else { Self::Sent }
    }
}

impl Quantity {
    /// `None` when a distribution has no statistic, or a single number has one.
    pub fn new(metric: &'static Metric, statistic: Option<Statistic>) -> Option<Self> {
        let fits = (metric.shape() == Shape::Distribution) == statistic.is_some();
        fits.then_some(Self { metric, statistic })
    }

    /// What a name means: `ttft.p99`, `ttft.schedule.p99`, `output_throughput`.
    pub fn named(name: &str, zero: Zero) -> Result<Self, QuantityProblem> {
        let (first, rest) = match name.split_once('.') {
            Some((first, rest)) => (first, Some(rest)),
            None => (name, None),
        };
        let (metric, statistic) = metric_of(first, rest, zero)?;
        let statistic = match (metric.shape(), statistic) {
            (Shape::Scalar, None) => None,
            (Shape::Scalar, Some(statistic)) => {
                let statistic = statistic.to_owned();
                return Err(QuantityProblem::OneValue { metric: metric.name, statistic });
            }
            (Shape::Distribution, None) => {
                return Err(QuantityProblem::WhichStatistic { metric: metric.name });
            }
            (Shape::Distribution, Some(statistic)) => {
                Some(Statistic::named(statistic).ok_or_else(|| unknown_statistic(statistic))?)
            }
        };
        Ok(Self { metric, statistic })
    }

    pub const fn metric(&self) -> &'static Metric {
        self.metric
    }

    pub const fn statistic(&self) -> Option<Statistic> {
        self.statistic
    }

    /// Its value in a run, with its within-run interval; or why there is none.
    pub fn of(&self, summary: &Summary) -> Result<Estimate, String> {
        let absent = || format!("the summary has no {}", self.metric.title);
        let Some(statistic) = self.statistic else {
            let scalar = summary.metrics.scalar(self.metric.name).ok_or_else(absent)?;
            let value = scalar.value.ok_or_else(|| scalar.reason.clone().unwrap_or_default())?;
            return Ok(Estimate {
                value,
                interval: scalar.interval,
                n: summary.attempted,
                effective_n: None,
                certified: true,
            });
        };
        let found = summary.metrics.distribution(self.metric.name).ok_or_else(absent)?;
        estimate_of(statistic, found).ok_or_else(|| found.reason.clone().unwrap_or_else(absent))
    }
}

pub(crate) fn estimate_of(statistic: Statistic, found: &Distribution) -> Option<Estimate> {
    Some(Estimate {
        value: statistic.stored(found)?,
        interval: found.intervals.of(statistic),
        n: found.n,
        effective_n: found.effective_n,
        certified: match statistic {
            Statistic::Percentile(percentile) => found.is_certified(percentile),
            Statistic::Mean | Statistic::Max => 0 < found.n,
        },
    })
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.metric.name)?;
        self.statistic.map_or(Ok(()), |statistic| write!(f, ".{}", statistic.name()))
    }
}

/// The metric, and what of the name is left for the statistic. Only `ttft` and `e2e` have a zero.
pub(crate) fn metric_of<'name>(
    first: &str,
    rest: Option<&'name str>,
    zero: Zero,
) -> Result<(&'static Metric, Option<&'name str>), QuantityProblem> {
    let (said, statistic) = split_zero(rest);
    let has_zero = matches!(first, "ttft" | "e2e");
    if let (Some(_), false, Some(rest)) = (said, has_zero, rest) {
        return Err(unknown_statistic(rest));
    }
    let from_schedule = has_zero && said.unwrap_or(zero) == Zero::Schedule;
    let name = if from_schedule { format!("{first}_schedule") } else { first.to_owned() };
    let metric = Metric::named(&name).ok_or_else(|| QuantityProblem::UnknownMetric {
        metric: first.to_owned(),
        nearest: nearest(first),
    })?;
    Ok((metric, statistic))
}

/// `schedule.p99` is a zero and a statistic; either may be alone.
fn split_zero(text: Option<&str>) -> (Option<Zero>, Option<&str>) {
    let Some(text) = text else { return (None, None) };
    let (first, rest) = match text.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (text, None),
    };
    match first {
        "sent" => (Some(Zero::Sent), rest),
        "schedule" => (Some(Zero::Schedule), rest),
        _ => (None, Some(text)),
    }
}

fn unknown_statistic(statistic: &str) -> QuantityProblem {
    QuantityProblem::UnknownStatistic { statistic: statistic.to_owned() }
}

/// The metric whose name takes the fewest changes of a letter.
pub(crate) fn nearest(typed: &str) -> &'static str {
    let names = METRICS.iter().map(|metric| metric.name);
    names.min_by_key(|name| strsim::levenshtein(typed, name)).unwrap_or("ttft")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::calm;
    use crate::summary::summarize;

    fn named(name: &str, zero: Zero) -> String {
        Quantity::named(name, zero).unwrap().to_string()
    }

    #[test]
    fn a_bare_latency_begins_where_the_load_says() {
        assert_eq!(named("ttft.p99", Zero::Sent), "ttft.p99");
        assert_eq!(named("ttft.p99", Zero::Schedule), "ttft_schedule.p99");
        assert_eq!(named("ttft.sent.p99", Zero::Schedule), "ttft.p99");
        assert_eq!(named("e2e.schedule.p99.9", Zero::Sent), "e2e_schedule.p99.9");
        assert_eq!(named("tpot.mean", Zero::Schedule), "tpot.mean");
        assert_eq!(named("output_throughput", Zero::Schedule), "output_throughput");
    }

    #[test]
    fn what_is_no_quantity_is_refused_by_name() {
        use QuantityProblem::{OneValue, UnknownMetric, UnknownStatistic, WhichStatistic};
        let problem = |name| Quantity::named(name, Zero::Sent).unwrap_err();
        assert!(matches!(problem("tftt.p99"), UnknownMetric { nearest: "ttft", .. }));
        assert!(matches!(problem("ttft.p98"), UnknownStatistic { .. }));
        assert!(matches!(problem("tpot.sent.p99"), UnknownStatistic { .. }));
        assert!(matches!(problem("goodput.p99"), OneValue { .. }));
        assert!(matches!(problem("ttft"), WhichStatistic { .. }));
        assert!(matches!(problem("ttft.schedule"), WhichStatistic { .. }));
    }

    #[test]
    fn a_quantity_is_read_from_the_summary() {
        let summary = summarize(&calm());
        let ttft = Quantity::named("ttft.mean", Zero::Sent).unwrap();
        let mean = summary.metrics.distribution("ttft").unwrap().mean;
        assert_eq!(Some(ttft.of(&summary).unwrap().value), mean);
        let goodput = Quantity::named("goodput", Zero::Sent).unwrap();
        assert_eq!(goodput.of(&summary).unwrap_err(), "no SLO was set for each request");
    }
}
