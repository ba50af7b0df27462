//! What is required of a run, or of several: a limit on one of its numbers, judged by where that
//! number can lie and not only by where it fell.
//!
//! The rule is that of every [threshold](crate::Threshold). Around it stands what only a gate needs:
//! an invalid run passes nothing, and fails only what its failures are about.

mod imported;
mod judging;

use inferometer_model::spec::{Relation, Slo};
use serde::{Deserialize, Serialize};

use crate::estimate::Interval;
use crate::promise::{Promise, SloProblem, is_of_goodput};
use crate::quantity::{LatencyOrigin, Quantity};
use crate::threshold::Threshold;

/// A limit on one number of a run.
#[derive(Clone, Debug)]
pub struct Requirement {
    /// As it was typed.
    text: String,
    threshold: Threshold,
}

/// What became of a requirement.
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
    pub verdict: RequirementVerdict,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequirementVerdict {
    Pass,
    Fail,
    Undecided,
}

/// What an undecided requirement counts as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Undecided {
    Pass,
    /// What could not be shown is not met.
    #[default]
    Fail,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequirementProblem {
    #[error(transparent)]
    Promise(SloProblem),
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

/// Whether each requirement can be judged of a run with these promises, before one is spent on it.
pub fn check_requirements(
    required: &[Slo],
    promised: &[Slo],
    streaming: bool,
) -> Result<(), RequirementProblem> {
    // Where latencies begin changes which numbers are compared, and no name or unit.
    let is_per_request =
        |slo| Promise::of(slo, LatencyOrigin::Sent).is_ok_and(|it| it.is_per_request());
    let has_promise = promised.iter().any(is_per_request);
    for slo in required {
        let metric = Requirement::of(slo, LatencyOrigin::Sent)?.quantity().metric();
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
    pub fn of(slo: &Slo, zero: LatencyOrigin) -> Result<Self, RequirementProblem> {
        let promise = Promise::of(slo, zero).map_err(|problem| refused(slo, problem))?;
        let threshold = promise.threshold().ok_or_else(|| of_each_request(slo))?;
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
        | SloProblem::NothingToAttain { .. } => RequirementProblem::Promise(problem),
    }
}

fn of_each_request(slo: &Slo) -> RequirementProblem {
    let zero = slo.statistic.as_ref().map_or_else(String::new, |zero| format!(".{zero}"));
    let metric = format!("{}{zero}", slo.metric);
    RequirementProblem::OfEachRequest { requirement: slo.to_string(), metric }
}

impl RequirementVerdict {
    pub const fn key(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Undecided => "undecided",
        }
    }

    /// Whether the gate opens.
    pub const fn is_met(self, undecided: Undecided) -> bool {
        match (self, undecided) {
            (Self::Pass, _) | (Self::Undecided, Undecided::Pass) => true,
            (Self::Fail, _) | (Self::Undecided, Undecided::Fail) => false,
        }
    }
}

#[cfg(test)]
mod tests;
