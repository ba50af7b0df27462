//! Promises as they are judged: an SLO's names, looked up in the table of metrics.

use inferometer_model::spec::{Limit, Relation, Slo};

use crate::metric::{self, Better, Metric, Shape, Unit, Visible};
use crate::quantity::{LatencyOrigin, Quantity, QuantityProblem, metric_of};
use crate::statistic::Statistic;
use crate::threshold::{Threshold, is_kept};

/// An SLO that means something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promise {
    pub(crate) metric: &'static Metric,
    pub(crate) about: About,
    pub(crate) relation: Relation,
    /// In the unit of the metric.
    pub(crate) limit: f64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum About {
    EachRequest,
    /// A statistic of the run's values.
    Statistic(Statistic),
    /// A metric that is one number by itself.
    OneValue,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SloProblem {
    #[error(
        "`{promise}`: there is no metric `{metric}`; the nearest is `{nearest}` \
         (docs/metrics.md has them all)"
    )]
    UnknownMetric { promise: String, metric: String, nearest: &'static str },
    #[error(
        "`{promise}`: there is no statistic `{statistic}`; write p50, p90, p95, p99, p99.9, mean or \
         max for the whole run, or none for each request"
    )]
    UnknownStatistic { promise: String, statistic: String },
    #[error("`{promise}`: {metric} is one value for the whole run; leave out `.{statistic}`")]
    OneValue { promise: String, metric: &'static str, statistic: String },
    #[error(
        "`{promise}`: {why}; write {metric}.p99 for the whole run, or promise {instead} of each \
         request"
    )]
    NotPerRequest {
        promise: String,
        metric: &'static str,
        why: &'static str,
        instead: &'static str,
    },
    #[error(
        "`{promise}`: the answers are not streamed, so only their end is seen; promise e2e, or leave \
         out --no-stream where the API streams"
    )]
    NotStreamed { promise: String },
    #[error("`{promise}`: {metric} is {unit}")]
    WrongUnit { promise: String, metric: &'static str, unit: &'static str },
    #[error(
        "`{promise}` asks for a worse service: {better} is better for {metric}, so write `{sign}`"
    )]
    WrongDirection { promise: String, metric: &'static str, better: &'static str, sign: char },
    #[error(
        "`{promise}`: {metric} counts the requests that keep what is promised of each, and nothing \
         is; add a promise such as ttft<500ms"
    )]
    NothingToAttain { promise: String, metric: &'static str },
}

/// Whether each promise can be judged, before a run is spent on it.
pub fn check_slos(slos: &[Slo], streaming: bool) -> Result<(), SloProblem> {
    // Where latencies begin changes which numbers are compared, and no name or unit.
    let promises: Vec<Promise> =
        slos.iter().map(|slo| Promise::of(slo, LatencyOrigin::Sent)).collect::<Result<_, _>>()?;
    let unseen = |promise: &Promise| {
        !streaming && promise.is_per_request() && promise.metric.is_within_stream()
    };
    if let Some((slo, _)) = slos.iter().zip(&promises).find(|(_, promise)| unseen(promise)) {
        return Err(SloProblem::NotStreamed { promise: slo.to_string() });
    }
    if promises.iter().any(Promise::is_per_request) {
        return Ok(());
    }
    match slos.iter().zip(&promises).find(|(_, promise)| is_of_goodput(promise.metric)) {
        Some((slo, promise)) => Err(SloProblem::NothingToAttain {
            promise: slo.to_string(),
            metric: promise.metric.name,
        }),
        None => Ok(()),
    }
}

pub(crate) fn is_of_goodput(metric: &'static Metric) -> bool {
    [&metric::GOODPUT, &metric::ATTAINMENT].contains(&metric)
}

impl Promise {
    pub(crate) fn of(slo: &Slo, zero: LatencyOrigin) -> Result<Self, SloProblem> {
        let found = metric_of(&slo.metric, slo.statistic.as_deref(), zero);
        let (metric, statistic) = found.map_err(|problem| match problem {
            QuantityProblem::UnknownMetric { metric, nearest } => {
                SloProblem::UnknownMetric { promise: slo.to_string(), metric, nearest }
            }
            QuantityProblem::UnknownStatistic { .. }
            | QuantityProblem::OneValue { .. }
            | QuantityProblem::WhichStatistic { .. } => unknown_statistic(slo),
        })?;
        let about = about(slo, metric, statistic)?;
        let limit = limit(slo, metric)?;
        check_direction(slo, metric)?;
        Ok(Self { metric, about, relation: slo.relation, limit })
    }

    pub(crate) fn is_kept_by(&self, value: f64) -> bool {
        is_kept(self.relation, self.limit, value)
    }

    /// Of the run; `None` of a promise about each request.
    pub(crate) fn threshold(&self) -> Option<Threshold> {
        let statistic = match self.about {
            About::EachRequest => return None,
            About::Statistic(statistic) => Some(statistic),
            About::OneValue => None,
        };
        let quantity = Quantity::new(self.metric, statistic);
        Some(Threshold { quantity, relation: self.relation, limit: self.limit })
    }

    /// In the unit of the metric.
    pub(crate) fn limit(&self) -> f64 {
        self.limit
    }

    pub(crate) fn is_per_request(&self) -> bool {
        matches!(self.about, About::EachRequest)
    }
}

fn about(slo: &Slo, metric: &'static Metric, statistic: Option<&str>) -> Result<About, SloProblem> {
    match (metric.shape(), statistic) {
        (Shape::Scalar, None) => Ok(About::OneValue),
        (Shape::Scalar, Some(statistic)) => Err(SloProblem::OneValue {
            promise: slo.to_string(),
            metric: metric.name,
            statistic: statistic.to_owned(),
        }),
        (Shape::Distribution, Some(statistic)) => {
            Statistic::named(statistic).map(About::Statistic).ok_or_else(|| unknown_statistic(slo))
        }
        (Shape::Distribution, None) => of_each_request(slo, metric),
    }
}

fn of_each_request(slo: &Slo, metric: &'static Metric) -> Result<About, SloProblem> {
    let is_of_answers =
        metric.per_request().is_some_and(|latency| latency.visible != Visible::OnRequests);
    if is_of_answers {
        return Ok(About::EachRequest);
    }
    let (why, instead) = if [&metric::ITL, &metric::ICL].contains(&metric) {
        ("gaps are pooled over the run, so a request has no single one", "tpot")
    } else {
        ("it is about the client, not about an answer", "ttft or e2e")
    };
    Err(SloProblem::NotPerRequest { promise: slo.to_string(), metric: metric.name, why, instead })
}

fn limit(slo: &Slo, metric: &'static Metric) -> Result<f64, SloProblem> {
    let wrong =
        |unit| SloProblem::WrongUnit { promise: slo.to_string(), metric: metric.name, unit };
    match (metric.unit, slo.limit) {
        (Unit::Milliseconds, Limit::Milliseconds(limit))
        | (Unit::Share, Limit::Share(limit))
        | (
            Unit::RequestsPerSecond
            | Unit::TokensPerSecond
            | Unit::Requests
            | Unit::Watts
            | Unit::JoulesPerToken
            | Unit::TokensPerJoule,
            Limit::Plain(limit),
        ) => Ok(limit),
        (Unit::Milliseconds, _) => {
            Err(wrong("a time; write it with its unit, such as 500ms or 2s"))
        }
        (Unit::Share, _) => Err(wrong("a share; write it as per cent, such as 1%")),
        (Unit::RequestsPerSecond, _) => {
            Err(wrong("a number of requests per second; write it without a unit"))
        }
        (Unit::TokensPerSecond, _) => {
            Err(wrong("a number of tokens per second; write it without a unit"))
        }
        (Unit::Watts, _) => Err(wrong("a number of watts; write it without a unit")),
        (Unit::JoulesPerToken, _) => {
            Err(wrong("a number of joules per token; write it without a unit"))
        }
        (Unit::TokensPerJoule, _) => {
            Err(wrong("a number of tokens per joule; write it without a unit"))
        }
        (Unit::Requests, _) => Err(wrong("a number of requests; write it without a unit")),
    }
}

/// A promise that a service is slow enough is a slip of the finger.
fn check_direction(slo: &Slo, metric: &'static Metric) -> Result<(), SloProblem> {
    let (better, sign) = match (metric.better, slo.relation) {
        (Better::Lower, Relation::Above) => ("lower", '<'),
        (Better::Higher, Relation::Below) => ("higher", '>'),
        (Better::Lower, Relation::Below)
        | (Better::Higher, Relation::Above)
        | (Better::Neither, _) => return Ok(()),
    };
    let promise = slo.to_string();
    Err(SloProblem::WrongDirection { promise, metric: metric.name, better, sign })
}

fn unknown_statistic(slo: &Slo) -> SloProblem {
    SloProblem::UnknownStatistic {
        promise: slo.to_string(),
        statistic: slo.statistic.clone().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
