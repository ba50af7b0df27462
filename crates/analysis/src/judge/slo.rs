//! Service level objectives: what an SLO means, by how many requests it was met, and whether the run
//! met it.

use inferometer_model::Observations;
use inferometer_model::outcome::Cause;
use inferometer_model::spec::{Limit, Relation, Slo};
use serde::{Deserialize, Serialize};

use super::threshold::{Evidence, Ruling, Threshold, ThresholdVerdict, is_met};
use crate::metric::{
    self, Better, LatencyOrigin, Metric, MetricValue, Missing, Quantity, QuantityProblem, Shape,
    Statistic, Unit, Visible, metric_of,
};
use crate::record::{Measured, RequestLatencies};
use crate::statistics::Estimate;

/// An SLO with its names looked up in the table of metrics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SloTarget {
    pub(crate) metric: &'static Metric,
    /// Whether the SLO is about each request.
    per_request: bool,
    /// The statistic of an SLO about the run; `None` of a metric that is one number by itself.
    statistic: Option<Statistic>,
    relation: Relation,
    /// In the unit of the metric.
    pub(crate) limit: f64,
}

/// The outcome of an SLO about the whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SloOutcome {
    /// As it was typed.
    pub promise: String,
    /// The metric that was compared; null when the SLO names none.
    pub metric: Option<String>,
    pub verdict: ThresholdVerdict,
    /// In the unit of the metric. An undecided SLO may have one, too.
    pub value: Option<f64>,
    /// Why it is undecided and what would decide it, or what the verdict rests on.
    pub reason: Option<String>,
}

/// How many requests met every SLO about each request. A failed request meets none, nor does one on
/// which a limited latency cannot be measured; an answer of one token meets any TPOT.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestSlos {
    pub promises: Vec<RequestSlo>,
    /// Without the turns that the run's end cut off.
    pub scheduled: u64,
    /// Requests that met every SLO.
    pub met: u64,
}

/// One SLO about each request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestSlo {
    /// As it was typed.
    pub promise: String,
    /// The metric that was compared.
    pub metric: String,
    /// Requests that met it.
    pub met: u64,
    /// Why no `ok` answer shows it; then it was neither met nor missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
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
    WrongUnit { promise: String, metric: &'static str, unit: String },
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

/// Checks that each SLO can be judged, before a run is spent on it.
pub fn check_slos(slos: &[Slo], streaming: bool) -> Result<(), SloProblem> {
    // The origin of latencies changes which numbers are compared, but no name or unit.
    let targets: Vec<SloTarget> = slos
        .iter()
        .map(|slo| SloTarget::from_slo(slo, LatencyOrigin::Sent))
        .collect::<Result<_, _>>()?;
    let unseen = |target: &SloTarget| {
        !streaming && target.is_per_request() && target.metric.is_within_stream()
    };
    if let Some((slo, _)) = slos.iter().zip(&targets).find(|(_, target)| unseen(target)) {
        return Err(SloProblem::NotStreamed { promise: slo.to_string() });
    }
    if targets.iter().any(SloTarget::is_per_request) {
        return Ok(());
    }
    match slos.iter().zip(&targets).find(|(_, target)| is_of_goodput(target.metric)) {
        Some((slo, target)) => Err(SloProblem::NothingToAttain {
            promise: slo.to_string(),
            metric: target.metric.name,
        }),
        None => Ok(()),
    }
}

pub(crate) fn is_of_goodput(metric: &'static Metric) -> bool {
    [&metric::GOODPUT, &metric::ATTAINMENT].contains(&metric)
}

impl SloTarget {
    pub(crate) fn from_slo(slo: &Slo, zero: LatencyOrigin) -> Result<Self, SloProblem> {
        let found = metric_of(&slo.metric, slo.statistic.as_deref(), zero);
        let (metric, statistic) = found.map_err(|problem| match problem {
            QuantityProblem::UnknownMetric { metric, nearest } => {
                SloProblem::UnknownMetric { promise: slo.to_string(), metric, nearest }
            }
            QuantityProblem::UnknownStatistic { .. }
            | QuantityProblem::OneValue { .. }
            | QuantityProblem::WhichStatistic { .. } => unknown_statistic(slo),
        })?;
        let (per_request, statistic) = match (metric.shape(), statistic) {
            (Shape::Scalar, None) => (false, None),
            (Shape::Scalar, Some(statistic)) => {
                let (promise, statistic) = (slo.to_string(), statistic.to_owned());
                return Err(SloProblem::OneValue { promise, metric: metric.name, statistic });
            }
            (Shape::Distribution, Some(statistic)) => {
                (false, Some(Statistic::named(statistic).ok_or_else(|| unknown_statistic(slo))?))
            }
            (Shape::Distribution, None) => {
                check_per_request(slo, metric)?;
                (true, None)
            }
        };
        let limit = limit(slo, metric)?;
        check_direction(slo, metric)?;
        Ok(Self { metric, per_request, statistic, relation: slo.relation, limit })
    }

    pub(crate) fn is_met_by(&self, value: f64) -> bool {
        is_met(self.relation, self.limit, value)
    }

    /// `None` for an SLO about each request.
    pub(crate) fn threshold(&self) -> Option<Threshold> {
        if self.is_per_request() {
            return None;
        }
        let quantity = Quantity::new(self.metric, self.statistic);
        Some(Threshold { quantity, relation: self.relation, limit: self.limit })
    }

    pub(crate) fn is_per_request(&self) -> bool {
        self.per_request
    }
}

fn check_per_request(slo: &Slo, metric: &'static Metric) -> Result<(), SloProblem> {
    if metric.per_request().is_some_and(|latency| latency.visible != Visible::OnRequests) {
        return Ok(());
    }
    let (why, instead) = if [&metric::ITL, &metric::ICL].contains(&metric) {
        ("gaps are pooled over the run, so a request has no single one", "tpot")
    } else {
        ("it is about the client, not about an answer", "ttft or e2e")
    };
    Err(SloProblem::NotPerRequest { promise: slo.to_string(), metric: metric.name, why, instead })
}

fn limit(slo: &Slo, metric: &'static Metric) -> Result<f64, SloProblem> {
    let wrong = |unit: &str| SloProblem::WrongUnit {
        promise: slo.to_string(),
        metric: metric.name,
        unit: unit.to_owned(),
    };
    let plain = |what| wrong(&format!("a number of {what}; write it without a unit"));
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
        (Unit::RequestsPerSecond, _) => Err(plain("requests per second")),
        (Unit::TokensPerSecond, _) => Err(plain("tokens per second")),
        (Unit::Watts, _) => Err(plain("watts")),
        (Unit::JoulesPerToken, _) => Err(plain("joules per token")),
        (Unit::TokensPerJoule, _) => Err(plain("tokens per joule")),
        (Unit::Requests, _) => Err(plain("requests")),
    }
}

/// Refuses a limit on the wrong side, such as a latency that must be high enough.
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

/// Counts requests that meet the SLOs while the records are read.
#[derive(Debug)]
pub(crate) struct SloCounter {
    promises: Vec<(RequestSlo, SloTarget)>,
    scheduled: u64,
    met: u64,
}

impl SloCounter {
    pub(crate) fn new(observations: &Observations) -> Self {
        let slos = observations.manifest.spec.slos.iter();
        let zero = latency_origin(observations);
        let promises = slos.filter_map(|slo| {
            let target = SloTarget::from_slo(slo, zero).ok().filter(SloTarget::is_per_request)?;
            let metric = target.metric.name.to_owned();
            Some((RequestSlo { promise: slo.to_string(), metric, met: 0, reason: None }, target))
        });
        let scheduled = observations.scheduled_count() - time_over(observations);
        Self { promises: promises.collect(), scheduled, met: 0 }
    }

    /// Whether the answer met every SLO.
    pub(crate) fn add_ok(&mut self, answer: &RequestLatencies) -> bool {
        let mut kept_all = true;
        for (found, target) in &mut self.promises {
            let value = answer.for_slo(target.metric);
            let kept = value.is_some_and(|value| target.is_met_by(value));
            found.met += u64::from(kept);
            kept_all &= kept;
        }
        self.met += u64::from(kept_all);
        kept_all
    }

    /// Requests that were due.
    pub(crate) fn scheduled(&self) -> u64 {
        self.scheduled
    }

    /// `None` without an SLO about each request.
    pub(crate) fn finish(self) -> Option<RequestSlos> {
        let promises: Vec<RequestSlo> = self.promises.into_iter().map(|(found, _)| found).collect();
        let Self { scheduled, met, .. } = self;
        (!promises.is_empty()).then_some(RequestSlos { promises, scheduled, met })
    }
}

/// Requests that were scheduled and not sent because the run's time was over before their
/// conversation reached them.
pub(crate) fn time_over(observations: &Observations) -> u64 {
    let cut = observations.not_sent.iter().filter(|part| part.cause == Cause::TimeOver);
    cut.map(|part| part.count).sum()
}

/// The SLOs about each request, with the reasons of those that no answer shows.
pub(crate) fn request_slos(measured: &Measured) -> Option<RequestSlos> {
    let mut slos = measured.request_slos.clone()?;
    for slo in &mut slos.promises {
        slo.reason = measured.unseen(slo).map(|Missing(reason)| reason.to_owned());
    }
    Some(slos)
}

/// Judges every SLO about the run, and names those that cannot be judged.
pub(crate) fn slo_outcomes(observations: &Observations, measured: &Measured) -> Vec<SloOutcome> {
    let slos = observations.manifest.spec.slos.iter();
    let zero = latency_origin(observations);
    slos.filter_map(|slo| judge(slo, SloTarget::from_slo(slo, zero), measured)).collect()
}

/// `None` for an SLO about each request.
fn judge(
    slo: &Slo,
    target: Result<SloTarget, SloProblem>,
    measured: &Measured,
) -> Option<SloOutcome> {
    let target = match target {
        Ok(target) => target,
        Err(problem) => {
            return Some(SloOutcome {
                promise: slo.to_string(),
                metric: None,
                verdict: ThresholdVerdict::Undecided,
                value: None,
                reason: Some(problem.to_string()),
            });
        }
    };
    let threshold = target.threshold()?;
    let found = evidence(threshold.quantity, measured);
    let (verdict, reason) = match &found {
        Ok(found) => {
            let Ruling { verdict, reason } = threshold.judge(found);
            (verdict, reason)
        }
        Err(reason) => (ThresholdVerdict::Undecided, Some(reason.clone())),
    };
    let metric = Some(target.metric.name.to_owned());
    let value = found.ok().map(|found| found.estimate.value);
    Some(SloOutcome { promise: slo.to_string(), metric, verdict, value, reason })
}

/// What the run shows of a number, or why it shows nothing.
fn evidence(quantity: Quantity, measured: &Measured) -> Result<Evidence, String> {
    if let Some(statistic) = quantity.statistic() {
        let found = match quantity.metric().distribution(measured) {
            Some(found) => found.map_err(|Missing(reason)| reason.to_owned())?,
            None => return Err("it is no distribution".to_owned()),
        };
        let absent = || found.reason.clone().unwrap_or_else(|| "it has no value".to_owned());
        return Evidence::from_distribution(statistic, found, measured.attempted)
            .ok_or_else(absent);
    }
    let MetricValue::Scalar(scalar) = quantity.metric().value(measured) else {
        return Err("it is no single number".to_owned());
    };
    let absent = || scalar.reason.clone().unwrap_or_else(|| "it has no value".to_owned());
    let estimate = Estimate {
        value: scalar.value.ok_or_else(absent)?,
        interval: scalar.interval,
        n: measured.attempted,
        effective_n: None,
        certified: true,
    };
    Ok(Evidence { estimate, certified: Vec::new(), requests: measured.attempted, runs: 1 })
}

pub(crate) fn latency_origin(observations: &Observations) -> LatencyOrigin {
    LatencyOrigin::for_load(observations.manifest.spec.is_open_loop())
}

#[cfg(test)]
mod tests;
