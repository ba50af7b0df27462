//! Requirements: thresholds on one number of a run, of several, or of results of other tools, judged
//! by the number's interval and not only by its value.
//!
//! The rule is that of every [threshold](Threshold). On top of it, an invalid run passes nothing, and
//! fails only what its failures are about.

use inferometer_model::spec::{Relation, Slo};
use serde::{Deserialize, Serialize};

use super::slo::{counts_kept, is_of_goodput};
use super::threshold::{Evidence, Ruling, SloProblem, Threshold, ThresholdVerdict};
use super::warnings::ERRORS_SHARE;
use super::{CheckKind, CheckState, Severity, Verdict};
use crate::metric::{self, LatencyOrigin, Quantity};
use crate::statistics::{Estimate, Interval};
use crate::summary::Summary;
use crate::tool_result::ToolResult;

/// A limit on one number of a run.
#[derive(Clone, Debug)]
pub struct Requirement {
    /// As it was typed.
    text: String,
    threshold: Threshold,
}

/// The outcome of a requirement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequirementOutcome {
    /// As it was typed.
    pub requirement: String,
    /// The number that was compared, such as `ttft_schedule.p99`.
    pub quantity: String,
    pub unit: String,
    pub bound: Bound,
    /// In that unit.
    pub limit: f64,
    /// Written as `pass`, `fail` or `undecided`.
    #[serde(with = "PassOrFail")]
    pub verdict: ThresholdVerdict,
    /// Of several runs their mean. An undecided requirement may have one, too.
    pub value: Option<f64>,
    /// Of one run from within it, of several from between them.
    pub interval: Option<Interval>,
    /// Values of the run that it was found from; of several runs, how many there are.
    pub n: Option<u64>,
    pub runs: u64,
    /// Why it is undecided, or what the verdict leaves open.
    pub reason: Option<String>,
}

/// On which side of the limit it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    AtMost,
    AtLeast,
}

/// JSON form of a verdict on a requirement.
#[derive(Serialize, Deserialize)]
#[serde(remote = "ThresholdVerdict", rename_all = "snake_case")]
enum PassOrFail {
    #[serde(rename = "pass")]
    Met,
    #[serde(rename = "fail")]
    Missed,
    Undecided,
}

/// Why a run's number is not simply compared with the limit.
struct Reservation {
    reason: String,
    /// It may miss the limit and never meets one; otherwise it decides nothing.
    may_miss: bool,
}

/// Checks that each requirement can be judged of a run with these SLOs, before a run is spent on it.
pub fn check_requirements(
    required: &[Slo],
    promised: &[Slo],
    streaming: bool,
) -> Result<(), SloProblem> {
    // The origin of latencies changes which numbers are compared, but no name or unit.
    let is_per_request =
        |slo| Threshold::from_slo(slo, LatencyOrigin::Sent).is_ok_and(|it| it.is_per_request());
    let has_promise = promised.iter().any(is_per_request);
    for slo in required {
        let metric = Requirement::from_slo(slo, LatencyOrigin::Sent)?.quantity().metric();
        if is_of_goodput(metric) && !has_promise {
            let promise = "promise something with --slo, such as --slo 'ttft<500ms'";
            return Err(SloProblem::new(slo, format!(": {}; {promise}", counts_kept(metric))));
        }
        if metric.is_within_stream() && !streaming {
            let problem = ": the answers are not streamed, so only their end is seen; require e2e, \
                           or leave out --no-stream where the API streams";
            return Err(SloProblem::new(slo, problem));
        }
    }
    Ok(())
}

impl Requirement {
    /// What a limit means on a load whose latencies begin at `origin`.
    pub fn from_slo(slo: &Slo, origin: LatencyOrigin) -> Result<Self, SloProblem> {
        Ok(Self { text: slo.to_string(), threshold: Threshold::from_requirement(slo, origin)? })
    }

    pub const fn quantity(&self) -> Quantity {
        self.threshold.quantity
    }

    /// Of one run, by its within-run interval.
    pub fn judge(&self, summary: &Summary) -> RequirementOutcome {
        let found = Evidence::from_run(self.quantity(), &summary.metrics, summary.attempted);
        let reservation = invalid_run(self.quantity(), summary)
            .or_else(|| found.as_ref().err().cloned().map(Reservation::without_value));
        let found = found.ok().map(|found| (self.threshold.judge(&found), found.estimate));
        let n = found.as_ref().map(|(_, estimate)| estimate.n);
        self.outcome(found, reservation, n, 1)
    }

    /// Of several runs of the same experiment, by the interval between them. A single one is judged
    /// from within.
    pub fn judge_across(&self, summaries: &[Summary]) -> RequirementOutcome {
        if let [only] = summaries {
            return self.judge(only);
        }
        let mut found: Vec<(&Summary, Estimate)> = Vec::with_capacity(summaries.len());
        let mut reservations = Vec::new();
        if summaries.is_empty() {
            reservations.push(Reservation::new("no run was measured".to_owned(), false));
        }
        for summary in summaries {
            let value = self.quantity().value_in(summary);
            let invalid = invalid_run(self.quantity(), summary);
            let missing = || Some(Reservation::without_value(value.as_ref().err()?.clone()));
            if let Some(Reservation { reason, may_miss }) = invalid.or_else(missing) {
                let reason = format!("run {}: {reason}", summary.run.id);
                reservations.push(Reservation { reason, may_miss });
            }
            found.extend(value.map(|estimate| (summary, estimate)));
        }
        let runs = summaries.len() as u64;
        let across = Evidence::from_runs(self.quantity(), &found);
        let across = across.map(|found| (self.threshold.judge(&found), found.estimate));
        let gravest = reservations.into_iter().min_by_key(|it| it.may_miss);
        self.outcome(across, gravest, Some(runs), runs)
    }

    /// Of results of one configuration and load. One decides by its value where it has no interval;
    /// several by the interval between them.
    pub fn judge_results(&self, results: &[ToolResult]) -> RequirementOutcome {
        let quantity = self.quantity();
        let runs = results.len() as u64;
        let estimates: Result<Vec<Estimate>, String> =
            results.iter().map(|result| result.figure(&quantity)).collect();
        let estimates = match estimates {
            Ok(estimates) => estimates,
            Err(missing) => {
                return self.outcome(None, Some(Reservation::new(missing, false)), None, runs);
            }
        };
        let requests = results.iter().filter_map(|result| result.completed).sum();
        let found = match estimates.as_slice() {
            [Estimate { interval: None, certified: true, value, .. }] => {
                let reason = "no interval: one imported result decides by its value, and nothing \
                              says how far another would be from it";
                let verdict = self.threshold.verdict_of(*value);
                Some((Ruling { verdict, reason: Some(reason.to_owned()) }, estimates[0]))
            }
            [only] => {
                let found = Evidence { estimate: *only, certified: Vec::new(), requests, runs: 1 };
                Some((self.threshold.judge(&found), *only))
            }
            several => Evidence::from_estimates(quantity, several, requests)
                .map(|found| (self.threshold.judge(&found), found.estimate)),
        };
        let n = found.as_ref().map(|(_, found)| if runs == 1 { found.n } else { runs });
        let reservation = results.iter().find_map(|result| cut_result(quantity, result));
        self.outcome(found, reservation, n, runs)
    }

    fn outcome(
        &self,
        found: Option<(Ruling, Estimate)>,
        reservation: Option<Reservation>,
        n: Option<u64>,
        runs: u64,
    ) -> RequirementOutcome {
        let (ruling, estimate) = found.unzip();
        let (verdict, reason) = match (reservation, ruling) {
            (None, Some(Ruling { verdict, reason })) => (verdict, reason),
            (
                Some(Reservation { reason, may_miss: true }),
                Some(Ruling { verdict: ThresholdVerdict::Missed, .. }),
            ) => (ThresholdVerdict::Missed, Some(format!("{reason}; the limit is broken by that"))),
            (Some(Reservation { reason, .. }), _) => (ThresholdVerdict::Undecided, Some(reason)),
            (None, None) => (ThresholdVerdict::Undecided, Some(NO_VALUE.to_owned())),
        };
        RequirementOutcome {
            requirement: self.text.clone(),
            quantity: self.quantity().to_string(),
            unit: self.quantity().metric().unit.name().to_owned(),
            bound: match self.threshold.relation {
                Relation::Below => Bound::AtMost,
                Relation::Above => Bound::AtLeast,
            },
            limit: self.threshold.limit,
            verdict,
            value: estimate.map(|found| found.value),
            interval: estimate.and_then(|found| found.interval),
            n,
            runs,
            reason,
        }
    }
}

const NO_VALUE: &str = "it has no value";

impl Reservation {
    const fn new(reason: String, may_miss: bool) -> Self {
        Self { reason, may_miss }
    }

    fn without_value(reason: String) -> Self {
        Self::new(if reason.is_empty() { NO_VALUE.to_owned() } else { reason }, false)
    }
}

/// A result that lost a part of its requests may miss a limit, and meets none: those that are gone
/// were not the quick ones. What counts failures may be asked of it.
fn cut_result(quantity: Quantity, result: &ToolResult) -> Option<Reservation> {
    let metric = quantity.metric();
    if let Some(latency) = result.latency_of(metric).filter(|latency| !latency.is_defined()) {
        let (tool, kind) = (result.source.tool.name(), latency.kind.name());
        let reason = "so it is held against no limit";
        let reason = format!("{tool} does not say what its {kind} counts, {reason}");
        return Some(Reservation::new(reason, false));
    }
    let completed = result.completed?;
    let planned = result.requests_planned.or_else(|| completed.checked_add(result.failed?))?;
    let lost = planned.saturating_sub(completed);
    let is_cut = ERRORS_SHARE * (planned as f64) < lost as f64;
    let reason = format!("only {completed} of {planned} requests completed");
    (is_cut && *metric != metric::ERROR_RATE).then(|| Reservation::new(reason, true))
}

/// Why an invalid run shows nothing, or nothing good: what makes it invalid may be what was asked
/// about.
fn invalid_run(quantity: Quantity, summary: &Summary) -> Option<Reservation> {
    if summary.verdict != Verdict::Invalid {
        return None;
    }
    let gravest = summary.warnings.iter().find(|warning| warning.severity == Severity::Invalid);
    let why = gravest.map_or_else(String::new, |warning| format!(": {}", warning.text));
    let invalid = summary.checks.iter().filter(|check| check.state == CheckState::Invalid);
    let by_errors = invalid.clone().count() > 0
        && invalid.into_iter().all(|check| check.key == CheckKind::Errors.key());
    let counts_errors =
        *quantity.metric() == metric::ERROR_RATE || is_of_goodput(quantity.metric());
    Some(Reservation::new(format!("the run is invalid{why}"), by_errors && counts_errors))
}

#[cfg(test)]
mod tests;
