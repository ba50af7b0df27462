//! Whether promises were kept: by how many requests, and by the run.

use inferometer_model::Observations;
use inferometer_model::outcome::Cause;
use inferometer_model::spec::Slo;
use serde::{Deserialize, Serialize};

use crate::estimate::Interval;
use crate::measured::Measured;
use crate::metric::{Missing, Unit};
use crate::promise::{About, Promise, SloProblem};
use crate::quantity::Zero;
use crate::request_metrics::AnswerLatencies;
use crate::statistic::Statistic;
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
    /// Why it is undecided.
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
    pub(crate) fn add_ok(&mut self, answer: &AnswerLatencies) -> bool {
        let mut kept_all = true;
        for (found, promise) in &mut self.promises {
            let About::EachRequest(value) = promise.about else { continue };
            let kept = value(answer).is_some_and(|value| promise.is_kept_by(value));
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
    let found = match promise.about {
        About::EachRequest(_) => return None,
        About::Statistic(statistic) => statistic_of(&promise, statistic, measured),
        About::OneValue => one_value_of(&promise, measured),
    };
    let (verdict, reason) = found.verdict(&promise);
    let metric = Some(promise.metric.name.to_owned());
    Some(SloOutcome { promise: slo.to_string(), metric, verdict, value: found.value, reason })
}

#[derive(Default)]
struct Finding {
    value: Option<f64>,
    interval: Option<Interval>,
    /// Why the value decides nothing, if it does not.
    doubt: Option<String>,
}

impl Finding {
    fn nothing(reason: &str) -> Self {
        Self { doubt: Some(reason.to_owned()), ..Self::default() }
    }

    /// A promise is decided by the whole interval, where there is one.
    fn verdict(&self, promise: &Promise) -> (SloVerdict, Option<String>) {
        let (Some(value), None) = (self.value, &self.doubt) else {
            return (SloVerdict::Undecided, self.doubt.clone());
        };
        let Interval { low, high } = self.interval.unwrap_or(Interval { low: value, high: value });
        match (promise.is_kept_by(low), promise.is_kept_by(high)) {
            (true, true) => (SloVerdict::Met, None),
            (false, false) => (SloVerdict::Missed, None),
            _ => {
                let between = between(promise.metric.unit, low, high);
                let reason = format!("the 95 % interval {between} straddles the limit");
                (SloVerdict::Undecided, Some(reason))
            }
        }
    }
}

/// With digits enough to tell the ends apart.
fn between(unit: Unit, low: f64, high: f64) -> String {
    let (scale, name) = match unit {
        Unit::Share => (100.0, "%"),
        Unit::Milliseconds | Unit::RequestsPerSecond | Unit::TokensPerSecond | Unit::Requests => {
            (1.0, unit.name())
        }
    };
    let (low, high) = (low * scale, high * scale);
    let digits = [0, 1, 2].into_iter().find(|digits| 10_f64.powi(1 - digits) <= high - low);
    let digits = usize::try_from(digits.unwrap_or(3)).unwrap_or(3);
    format!("{low:.digits$}–{high:.digits$} {name}")
}

fn statistic_of(promise: &Promise, statistic: Statistic, measured: &Measured) -> Finding {
    let found = match promise.metric.distribution(measured) {
        Some(Ok(found)) => found,
        Some(Err(Missing(reason))) => return Finding::nothing(reason),
        None => return Finding::nothing("it is no distribution"),
    };
    let (name, needed, count) = (statistic.name(), statistic.certified_from(), found.n);
    let certified = match statistic {
        Statistic::Percentile(percentile) => found.is_certified(percentile),
        Statistic::Mean | Statistic::Max => true,
    };
    let doubt = match (certified, count < needed) {
        (true, _) => None,
        (false, true) => {
            Some(format!("{name} is certified from {needed} samples on, and there are {count}"))
        }
        (false, false) => Some(format!(
            "{name} is certified from {needed} independent samples on, and these {count} resemble \
             each other: they are worth fewer"
        )),
    };
    let interval = found.intervals.of(statistic);
    Finding { value: statistic.stored(found), interval, doubt }
}

fn one_value_of(promise: &Promise, measured: &Measured) -> Finding {
    match promise.metric.value(measured) {
        MetricValue::Scalar(scalar) => {
            Finding { value: scalar.value, interval: scalar.interval, doubt: scalar.reason }
        }
        MetricValue::Distribution(_) => Finding::nothing("it is no single number"),
    }
}

pub(crate) fn zero(observations: &Observations) -> Zero {
    Zero::of(observations.manifest.spec.is_open_loop())
}

#[cfg(test)]
mod tests;
