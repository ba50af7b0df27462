//! Whether promises were kept: by how many requests, and by the run.

use inferometer_model::Observations;
use inferometer_model::outcome::Cause;
use inferometer_model::spec::Slo;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::measured::Measured;
use crate::metric::Missing;
use crate::promise::{Promise, SloProblem};
use crate::quantity::LatencyOrigin;
use crate::request_metrics::RequestLatencies;
use crate::statistic::Statistic;
use crate::threshold::{Evidence, Ruling, Standing};
use crate::value::MetricValue;

/// What became of a promise about the whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SloOutcome {
    /// As it was typed.
    pub promise: String,
    /// The metric that was compared; null when the promise names none.
    pub metric: Option<String>,
    pub verdict: SloVerdict,
    /// In the unit of the metric. An undecided promise may have one, too.
    pub value: Option<f64>,
    /// Why it is undecided and what would decide it, or what the verdict rests on.
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SloVerdict {
    Met,
    Missed,
    Undecided,
}

impl SloVerdict {
    const fn of(standing: Standing) -> Self {
        match standing {
            Standing::Met => Self::Met,
            Standing::Missed => Self::Missed,
            Standing::Undecided => Self::Undecided,
        }
    }

    pub const fn key(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::Undecided => "undecided",
        }
    }
}

/// How many requests kept all that was promised of each. A failed request keeps nothing, nor does
/// one on which a promised latency cannot be measured; an answer of one token keeps any TPOT.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestSlos {
    pub promises: Vec<RequestSlo>,
    /// Without the turns that the run's end cut off.
    pub scheduled: u64,
    /// Requests that kept every promise.
    pub met: u64,
}

/// One promise about each request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestSlo {
    /// As it was typed.
    pub promise: String,
    /// The metric that was compared.
    pub metric: String,
    /// Requests that kept it.
    pub met: u64,
    /// Why no `ok` answer shows it; then it was neither kept nor broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What grows while the records are read.
#[derive(Debug)]
pub(crate) struct Keeping {
    promises: Vec<(RequestSlo, Promise)>,
    scheduled: u64,
    met: u64,
}

impl Keeping {
    pub(crate) fn new(observations: &Observations) -> Self {
        let slos = observations.manifest.spec.slos.iter();
        let zero = zero(observations);
        let promises = slos.filter_map(|slo| {
            let promise = Promise::of(slo, zero).ok().filter(Promise::is_per_request)?;
            let metric = promise.metric.name.to_owned();
            Some((RequestSlo { promise: slo.to_string(), metric, met: 0, reason: None }, promise))
        });
        let scheduled = observations.scheduled_count() - time_over(observations);
        Self { promises: promises.collect(), scheduled, met: 0 }
    }

    /// Whether the answer kept all that was promised.
    pub(crate) fn add_ok(&mut self, answer: &RequestLatencies) -> bool {
        let mut kept_all = true;
        for (found, promise) in &mut self.promises {
            let value = answer.for_slo(promise.metric);
            let kept = value.is_some_and(|value| promise.is_kept_by(value));
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

    /// `None` when nothing was promised of each request.
    pub(crate) fn finish(self) -> Option<RequestSlos> {
        let promises: Vec<RequestSlo> = self.promises.into_iter().map(|(found, _)| found).collect();
        let Self { scheduled, met, .. } = self;
        (!promises.is_empty()).then_some(RequestSlos { promises, scheduled, met })
    }
}

/// Requests that were scheduled and not sent because the run's time was over before their
/// conversation came to them.
pub(crate) fn time_over(observations: &Observations) -> u64 {
    let cut = observations.not_sent.iter().filter(|part| part.cause == Cause::TimeOver);
    cut.map(|part| part.count).sum()
}

/// What became of the promises about each request, with the reasons of those that nothing shows.
pub(crate) fn of_each_request(measured: &Measured) -> Option<RequestSlos> {
    let mut slos = measured.request_slos.clone()?;
    for slo in &mut slos.promises {
        slo.reason = measured.unseen(slo).map(|Missing(reason)| reason.to_owned());
    }
    Some(slos)
}

/// Judges every promise about the run, and names those that cannot be judged.
pub(crate) fn judged(observations: &Observations, measured: &Measured) -> Vec<SloOutcome> {
    let slos = observations.manifest.spec.slos.iter();
    let zero = zero(observations);
    slos.filter_map(|slo| judge(slo, Promise::of(slo, zero), measured)).collect()
}

/// `None` for a promise about each request.
fn judge(
    slo: &Slo,
    promise: Result<Promise, SloProblem>,
    measured: &Measured,
) -> Option<SloOutcome> {
    let promise = match promise {
        Ok(promise) => promise,
        Err(problem) => {
            return Some(SloOutcome {
                promise: slo.to_string(),
                metric: None,
                verdict: SloVerdict::Undecided,
                value: None,
                reason: Some(problem.to_string()),
            });
        }
    };
    let threshold = promise.threshold()?;
    let found = evidence(&promise, threshold.quantity.statistic(), measured);
    let (verdict, reason) = match &found {
        Ok(found) => {
            let Ruling { standing, reason } = threshold.judge(found);
            (SloVerdict::of(standing), reason)
        }
        Err(reason) => (SloVerdict::Undecided, Some(reason.clone())),
    };
    let metric = Some(promise.metric.name.to_owned());
    let value = found.ok().map(|found| found.estimate.value);
    Some(SloOutcome { promise: slo.to_string(), metric, verdict, value, reason })
}

/// What the run shows of a number, or why it shows nothing.
fn evidence(
    promise: &Promise,
    statistic: Option<Statistic>,
    measured: &Measured,
) -> Result<Evidence, String> {
    if let Some(statistic) = statistic {
        let found = match promise.metric.distribution(measured) {
            Some(found) => found.map_err(|Missing(reason)| reason.to_owned())?,
            None => return Err("it is no distribution".to_owned()),
        };
        let absent = || found.reason.clone().unwrap_or_else(|| "it has no value".to_owned());
        return Evidence::of_distribution(statistic, found, measured.attempted).ok_or_else(absent);
    }
    let MetricValue::Scalar(scalar) = promise.metric.value(measured) else {
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

pub(crate) fn zero(observations: &Observations) -> LatencyOrigin {
    LatencyOrigin::for_load(observations.manifest.spec.is_open_loop())
}

#[cfg(test)]
mod tests;
