//! Requirements: thresholds on one number of a run, of several, or of results of other tools, judged
//! by the number's interval and not only by its value.
//!
//! The rule is that of every [threshold](Threshold). On top of it, an invalid run passes nothing, and
//! fails only what its failures are about.

use inferometer_model::spec::{Relation, Slo};
use serde::{Deserialize, Serialize};

use super::slo::{SloProblem, SloTarget, is_of_goodput};
use super::threshold::{Evidence, Ruling, Threshold, ThresholdVerdict};
use super::warnings::ERRORS_SHARE;
use super::{CheckKind, CheckState, Severity, Verdict};
use crate::metric;
use crate::metric::{LatencyOrigin, Quantity};
use crate::statistics::{Estimate, Interval};
use crate::summary::Summary;
use crate::tool_result::{ResultLatency, ToolResult};

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
    #[serde(with = "pass_or_fail")]
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

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequirementProblem {
    #[error(transparent)]
    Slo(SloProblem),
    #[error("`{requirement}`: there is no statistic `{statistic}`; write {STATISTICS}")]
    UnknownStatistic { requirement: String, statistic: String },
    #[error(
        "`{requirement}` is about each request, and a requirement is about the run; write \
         {metric}.p99 instead of {metric}, or promise it with --slo and require attainment>=95%"
    )]
    OfEachRequest { requirement: String, metric: String },
    #[error(
        "`{requirement}`: {metric} counts the requests that keep what is promised of each, and \
         nothing is; promise something with --slo, such as --slo 'ttft<500ms'"
    )]
    NothingPromised { requirement: String, metric: &'static str },
    #[error(
        "`{requirement}`: the answers are not streamed, so only their end is seen; require e2e, or \
         leave out --no-stream where the API streams"
    )]
    NotStreamed { requirement: String },
}

const STATISTICS: &str = "p50, p90, p95, p99, p99.9, mean or max";

/// Checks that each requirement can be judged of a run with these SLOs, before a run is spent on it.
pub fn check_requirements(
    required: &[Slo],
    promised: &[Slo],
    streaming: bool,
) -> Result<(), RequirementProblem> {
    // The origin of latencies changes which numbers are compared, but no name or unit.
    let is_per_request =
        |slo| SloTarget::from_slo(slo, LatencyOrigin::Sent).is_ok_and(|it| it.is_per_request());
    let has_promise = promised.iter().any(is_per_request);
    for slo in required {
        let metric = Requirement::from_slo(slo, LatencyOrigin::Sent)?.quantity().metric();
        let requirement = || slo.to_string();
        if is_of_goodput(metric) && !has_promise {
            let (requirement, metric) = (requirement(), metric.name);
            return Err(RequirementProblem::NothingPromised { requirement, metric });
        }
        if metric.is_within_stream() && !streaming {
            return Err(RequirementProblem::NotStreamed { requirement: requirement() });
        }
    }
    Ok(())
}

impl Requirement {
    /// What a limit means on a load whose latencies begin at `zero`.
    pub fn from_slo(slo: &Slo, zero: LatencyOrigin) -> Result<Self, RequirementProblem> {
        let target = SloTarget::from_slo(slo, zero).map_err(|problem| refused(slo, problem))?;
        let threshold = target.threshold().ok_or_else(|| of_each_request(slo))?;
        Ok(Self { text: slo.to_string(), threshold })
    }

    pub const fn quantity(&self) -> Quantity {
        self.threshold.quantity
    }

    const fn bound(&self) -> Bound {
        match self.threshold.relation {
            Relation::Below => Bound::AtMost,
            Relation::Above => Bound::AtLeast,
        }
    }
}

fn refused(slo: &Slo, problem: SloProblem) -> RequirementProblem {
    match problem {
        SloProblem::NotPerRequest { .. } => of_each_request(slo),
        SloProblem::UnknownStatistic { promise, statistic } => {
            RequirementProblem::UnknownStatistic { requirement: promise, statistic }
        }
        SloProblem::UnknownMetric { .. }
        | SloProblem::OneValue { .. }
        | SloProblem::NotStreamed { .. }
        | SloProblem::WrongUnit { .. }
        | SloProblem::WrongDirection { .. }
        | SloProblem::NothingToAttain { .. } => RequirementProblem::Slo(problem),
    }
}

fn of_each_request(slo: &Slo) -> RequirementProblem {
    let zero = slo.statistic.as_ref().map_or_else(String::new, |zero| format!(".{zero}"));
    let metric = format!("{}{zero}", slo.metric);
    RequirementProblem::OfEachRequest { requirement: slo.to_string(), metric }
}

mod pass_or_fail {
    //! JSON form of a verdict on a requirement.

    use serde::{Deserialize, Deserializer, Serializer};

    use super::ThresholdVerdict;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(super) fn serialize<S: Serializer>(
        verdict: &ThresholdVerdict,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match verdict {
            ThresholdVerdict::Met => "pass",
            ThresholdVerdict::Missed => "fail",
            ThresholdVerdict::Undecided => "undecided",
        })
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<ThresholdVerdict, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "pass" => Ok(ThresholdVerdict::Met),
            "fail" => Ok(ThresholdVerdict::Missed),
            "undecided" => Ok(ThresholdVerdict::Undecided),
            other => Err(serde::de::Error::unknown_variant(other, &["pass", "fail", "undecided"])),
        }
    }
}

/// Why a run's number is not simply held against the limit.
enum Doubt {
    /// It decides nothing.
    Nothing(String),
    /// It may break the limit, and keeps none: what makes the run invalid is what was asked about.
    Keeps(String),
}

impl Requirement {
    /// Of one run, by its within-run interval.
    pub fn judge(&self, summary: &Summary) -> RequirementOutcome {
        let found = Evidence::from_run(&self.quantity(), summary);
        let missing = found.as_ref().err().map(|reason| Doubt::Nothing(missing(reason)));
        let found = found.ok();
        let n = found.as_ref().map(|found| found.estimate.n);
        let ruling = found.as_ref().map(|found| self.threshold.judge(found));
        self.outcome(found, ruling, self.invalid(summary).or(missing), n, 1)
    }

    /// Of several runs of the same experiment, by the interval between them. A single one is judged
    /// from within.
    pub fn judge_across(&self, summaries: &[Summary]) -> RequirementOutcome {
        if let [only] = summaries {
            return self.judge(only);
        }
        let mut found: Vec<(&Summary, Estimate)> = Vec::with_capacity(summaries.len());
        let mut gravest =
            summaries.is_empty().then(|| Doubt::Nothing("no run was measured".to_owned()));
        for summary in summaries {
            let doubt = match self.quantity().value_in(summary) {
                Ok(estimate) => {
                    found.push((summary, estimate));
                    self.invalid(summary)
                }
                Err(reason) => {
                    self.invalid(summary).or_else(|| Some(Doubt::Nothing(missing(&reason))))
                }
            };
            let of_run = doubt.map(|doubt| doubt.of_run(&summary.run.id));
            gravest = match (gravest, of_run) {
                (Some(Doubt::Keeps(_)), Some(graver @ Doubt::Nothing(_))) => Some(graver),
                (None, of_run) => of_run,
                (known, _) => known,
            };
        }
        let runs = summaries.len() as u64;
        let across = Evidence::from_runs(&self.quantity(), &found);
        let ruling = across.as_ref().map(|found| self.threshold.judge(found));
        self.outcome(across, ruling, gravest, Some(runs), runs)
    }

    fn outcome(
        &self,
        found: Option<Evidence>,
        ruling: Option<Ruling>,
        doubt: Option<Doubt>,
        n: Option<u64>,
        runs: u64,
    ) -> RequirementOutcome {
        let (verdict, reason) = match (doubt, ruling) {
            (None, Some(Ruling { verdict, reason })) => (verdict, reason),
            (Some(Doubt::Keeps(why)), Some(Ruling { verdict: ThresholdVerdict::Missed, .. })) => {
                (ThresholdVerdict::Missed, Some(format!("{why}; the limit is broken by that")))
            }
            (Some(Doubt::Nothing(why) | Doubt::Keeps(why)), _) => {
                (ThresholdVerdict::Undecided, Some(why))
            }
            (None, None) => (ThresholdVerdict::Undecided, Some(NO_VALUE.to_owned())),
        };
        RequirementOutcome {
            requirement: self.text.clone(),
            quantity: self.quantity().to_string(),
            unit: self.quantity().metric().unit.name().to_owned(),
            bound: self.bound(),
            limit: self.threshold.limit,
            verdict,
            value: found.as_ref().map(|found| found.estimate.value),
            interval: found.and_then(|found| found.estimate.interval),
            n,
            runs,
            reason,
        }
    }

    /// Of results of one configuration and load. One decides by its value where it has no interval;
    /// several by the interval between them.
    pub fn judge_sheets(&self, sheets: &[ToolResult]) -> RequirementOutcome {
        let quantity = self.quantity();
        let estimates: Result<Vec<Estimate>, String> =
            sheets.iter().map(|sheet| sheet.figure(&quantity)).collect();
        let runs = sheets.len() as u64;
        let doubt = sheets.iter().find_map(|sheet| self.doubt_of(sheet));
        let estimates = match estimates {
            Ok(estimates) => estimates,
            Err(missing) => {
                return self.outcome(None, None, Some(Doubt::Nothing(missing)), None, runs);
            }
        };
        let requests = sheets.iter().filter_map(|sheet| sheet.completed).sum();
        let found = match estimates.as_slice() {
            [only] => Some(Evidence { estimate: *only, certified: Vec::new(), requests, runs: 1 }),
            several => Evidence::from_estimates(&quantity, several, requests),
        };
        let ruling = found.as_ref().map(|found| match found.estimate {
            Estimate { interval: None, certified: true, value, .. } if runs == 1 => {
                self.threshold.judge_value(value)
            }
            _ => self.threshold.judge(found),
        });
        let n = match found.as_ref() {
            Some(found) if runs == 1 => Some(found.estimate.n),
            found => found.map(|_| runs),
        };
        self.outcome(found, ruling, doubt, n, runs)
    }

    /// A result that lost a part of its requests may break a limit, and keeps none: those that are
    /// gone were not the quick ones. What counts failures may be asked of it.
    fn doubt_of(&self, sheet: &ToolResult) -> Option<Doubt> {
        let metric = self.quantity().metric();
        if let Some(latency) = sheet.latency_of(metric).filter(|latency| !latency.is_defined()) {
            return Some(Doubt::Nothing(undefined(sheet, latency)));
        }
        let completed = sheet.completed?;
        let planned = sheet.requests_planned.or_else(|| completed.checked_add(sheet.failed?))?;
        let lost = planned.saturating_sub(completed);
        let is_cut = ERRORS_SHARE * (planned as f64) < lost as f64;
        (is_cut && *metric != metric::ERROR_RATE)
            .then(|| Doubt::Keeps(format!("only {completed} of {planned} requests completed")))
    }

    /// Why an invalid run shows nothing, or nothing good.
    fn invalid(&self, summary: &Summary) -> Option<Doubt> {
        if summary.verdict != Verdict::Invalid {
            return None;
        }
        let gravest = summary.warnings.iter().find(|notice| notice.severity == Severity::Invalid);
        let why = gravest.map_or_else(String::new, |notice| format!(": {}", notice.text));
        let why = format!("the run is invalid{why}");
        let mut invalid =
            summary.checks.iter().filter(|check| check.state == CheckState::Invalid).peekable();
        let by_errors =
            invalid.peek().is_some() && invalid.all(|check| check.key == CheckKind::Errors.key());
        let counts_errors = {
            let metric = self.quantity().metric();
            *metric == metric::ERROR_RATE || is_of_goodput(metric)
        };
        Some(if by_errors && counts_errors { Doubt::Keeps(why) } else { Doubt::Nothing(why) })
    }
}

impl Doubt {
    fn of_run(self, id: &str) -> Self {
        match self {
            Self::Nothing(why) => Self::Nothing(format!("run {id}: {why}")),
            Self::Keeps(why) => Self::Keeps(format!("run {id}: {why}")),
        }
    }
}

const NO_VALUE: &str = "it has no value";

fn missing(reason: &str) -> String {
    if reason.is_empty() { NO_VALUE.to_owned() } else { reason.to_owned() }
}

fn undefined(sheet: &ToolResult, latency: &ResultLatency) -> String {
    format!(
        "{} does not say what its {} counts, so it is held against no limit",
        sheet.source.tool.told(),
        latency.kind.told()
    )
}

#[cfg(test)]
mod tests;
