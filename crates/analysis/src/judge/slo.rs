//! Service level objectives: by how many requests an SLO was met, and whether the run met it.

use inferometer_model::Observations;
use inferometer_model::outcome::Cause;
use inferometer_model::spec::Slo;
use serde::{Deserialize, Serialize};

use super::threshold::{Evidence, Ruling, SloProblem, Threshold, ThresholdVerdict};
use crate::metric::{self, LatencyOrigin, Metric, MetricValues, Missing};
use crate::record::{Attempt, Measured};

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

/// Checks that each SLO can be judged, before a run is spent on it.
pub fn check_slos(slos: &[Slo], streaming: bool) -> Result<(), SloProblem> {
    // The origin of latencies changes which numbers are compared, but no name or unit.
    let threshold = |slo| Ok((slo, Threshold::from_slo(slo, LatencyOrigin::Sent)?));
    let thresholds: Vec<(&Slo, Threshold)> =
        slos.iter().map(threshold).collect::<Result<_, _>>()?;
    let mut per_request = thresholds.iter().filter(|(_, it)| it.is_per_request()).peekable();
    let has_per_request = per_request.peek().is_some();
    let unseen = per_request.find(|(_, it)| it.quantity.metric().is_within_stream() && !streaming);
    if let Some((slo, _)) = unseen {
        let problem = ": the answers are not streamed, so only their end is seen; promise e2e, or \
                       leave out --no-stream where the API streams";
        return Err(SloProblem::new(slo, problem));
    }
    let mut of_goodput = thresholds.iter().filter(|(_, it)| is_of_goodput(it.quantity.metric()));
    let Some((slo, found)) = of_goodput.next().filter(|_| !has_per_request) else { return Ok(()) };
    let counts = counts_kept(found.quantity.metric());
    Err(SloProblem::new(slo, format!(": {counts}; add a promise such as ttft<500ms")))
}

pub(super) fn is_of_goodput(metric: &'static Metric) -> bool {
    [&metric::GOODPUT, &metric::ATTAINMENT].contains(&metric)
}

/// Why goodput has no value where nothing is promised of each request.
pub(super) fn counts_kept(metric: &Metric) -> String {
    format!(
        "{} counts the requests that keep what is promised of each, and nothing is",
        metric.name
    )
}

/// The SLOs about each request.
pub(crate) fn per_request_slos(observations: &Observations) -> Vec<(String, Threshold)> {
    let origin = latency_origin(observations);
    let slos = observations.manifest.spec.slos.iter();
    let found =
        slos.filter_map(|slo| Some((slo.to_string(), Threshold::from_slo(slo, origin).ok()?)));
    found.filter(|(_, threshold)| threshold.is_per_request()).collect()
}

impl RequestSlos {
    /// `None` without an SLO about each request.
    pub(crate) fn from_attempts(
        observations: &Observations,
        slos: &[(String, Threshold)],
        attempts: &[Attempt<'_>],
    ) -> Option<Self> {
        let promise = |(promise, threshold): &(String, Threshold)| {
            let met = attempts.iter().filter(|it| it.is_ok() && it.latencies.meet(threshold));
            RequestSlo {
                promise: promise.clone(),
                metric: threshold.quantity.metric().name.to_owned(),
                met: met.count() as u64,
                reason: None,
            }
        };
        (!slos.is_empty()).then(|| Self {
            promises: slos.iter().map(promise).collect(),
            scheduled: due_requests(observations),
            met: attempts.iter().filter(|attempt| attempt.meets_slos).count() as u64,
        })
    }

    /// With the reasons of those that no answer shows.
    pub(crate) fn with_reasons(mut self, measured: &Measured) -> Self {
        for slo in &mut self.promises {
            slo.reason = measured.unseen(slo).map(|Missing(reason)| reason.to_owned());
        }
        self
    }
}

/// Requests that were scheduled, without the turns that the run's end cut off.
pub(crate) fn due_requests(observations: &Observations) -> u64 {
    observations.scheduled_count() - observations.not_sent_because(Cause::TimeOver)
}

/// Judges every SLO about the run, and names those that cannot be judged.
pub(crate) fn slo_outcomes(observations: &Observations, metrics: &MetricValues) -> Vec<SloOutcome> {
    let attempted = observations.records.len() as u64;
    let judge = |slo: &Slo| {
        let promise = slo.to_string();
        let threshold = match Threshold::from_slo(slo, latency_origin(observations)) {
            Ok(threshold) if threshold.is_per_request() => return None,
            Ok(threshold) => threshold,
            Err(problem) => {
                let (verdict, reason) = (ThresholdVerdict::Undecided, Some(problem.to_string()));
                return Some(SloOutcome { promise, metric: None, verdict, value: None, reason });
            }
        };
        let found = Evidence::from_run(threshold.quantity, metrics, attempted);
        let Ruling { verdict, reason } = match &found {
            Ok(found) => threshold.judge(found),
            Err(why) => Ruling { verdict: ThresholdVerdict::Undecided, reason: Some(why.clone()) },
        };
        let metric = Some(threshold.quantity.metric().name.to_owned());
        let value = found.ok().map(|found| found.estimate.value);
        Some(SloOutcome { promise, metric, verdict, value, reason })
    };
    observations.manifest.spec.slos.iter().filter_map(judge).collect()
}

pub(crate) fn latency_origin(observations: &Observations) -> LatencyOrigin {
    LatencyOrigin::for_load(observations.manifest.spec.is_open_loop())
}

#[cfg(test)]
mod tests;
