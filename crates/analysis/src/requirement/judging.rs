//! A requirement against what was measured.

use super::{Requirement, RequirementOutcome, RequirementVerdict};
use crate::estimate::Estimate;
use crate::judge::{CheckKind, CheckState, Severity, Verdict};
use crate::metric;
use crate::promise::is_of_goodput;
use crate::summary::Summary;
use crate::threshold::{Evidence, Ruling, Standing};

/// Why a run's number is not simply held against the limit.
pub(super) enum Doubt {
    /// It decides nothing.
    Nothing(String),
    /// It may break the limit, and keeps none: what makes the run invalid is what was asked about.
    Keeps(String),
}

impl Requirement {
    /// Of one run, by its within-run interval.
    pub fn judge(&self, summary: &Summary) -> RequirementOutcome {
        let found = Evidence::of(&self.quantity(), summary);
        let missing = found.as_ref().err().map(|reason| Doubt::Nothing(missing(reason)));
        let found = found.ok();
        let n = found.as_ref().map(|found| found.estimate.n);
        self.decide(found, self.invalid(summary).or(missing), n, 1)
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
        let across = Evidence::across(&self.quantity(), &found);
        self.decide(across, gravest, Some(runs), runs)
    }

    fn decide(
        &self,
        found: Option<Evidence>,
        doubt: Option<Doubt>,
        n: Option<u64>,
        runs: u64,
    ) -> RequirementOutcome {
        let ruling = found.as_ref().map(|found| self.threshold.judge(found));
        self.outcome(found, ruling, doubt, n, runs)
    }

    pub(super) fn outcome(
        &self,
        found: Option<Evidence>,
        ruling: Option<Ruling>,
        doubt: Option<Doubt>,
        n: Option<u64>,
        runs: u64,
    ) -> RequirementOutcome {
        let (verdict, reason) = match (doubt, ruling) {
            (None, Some(Ruling { standing, reason })) => (verdict(standing), reason),
            (Some(Doubt::Keeps(why)), Some(Ruling { standing: Standing::Missed, .. })) => {
                (RequirementVerdict::Fail, Some(format!("{why}; the limit is broken by that")))
            }
            (Some(Doubt::Nothing(why) | Doubt::Keeps(why)), _) => {
                (RequirementVerdict::Undecided, Some(why))
            }
            (None, None) => (RequirementVerdict::Undecided, Some(NO_VALUE.to_owned())),
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

const fn verdict(standing: Standing) -> RequirementVerdict {
    match standing {
        Standing::Met => RequirementVerdict::Pass,
        Standing::Missed => RequirementVerdict::Fail,
        Standing::Undecided => RequirementVerdict::Undecided,
    }
}

const NO_VALUE: &str = "it has no value";

fn missing(reason: &str) -> String {
    if reason.is_empty() { NO_VALUE.to_owned() } else { reason.to_owned() }
}
