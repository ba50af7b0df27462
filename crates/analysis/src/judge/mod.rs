//! Judging a run or a set: checks, warnings, thresholds and the verdict.
//!
//! The verdict follows from the [checks](Check), by this rule:
//!
//! - any check that is `invalid` makes the run invalid: its numbers are not about the server;
//! - otherwise any check that is `degraded` makes it degraded: the numbers hold with a reservation;
//! - otherwise it is valid. Notes, and checks that could not be made, change nothing.
//!
//! A check is as severe as the most severe warning that belongs to it. Too few samples for a percentile
//! withhold that percentile's certificate and change no verdict.

mod checks;
mod requirement;
mod slo;
mod threshold;
mod warnings;

use inferometer_model::Observations;
use inferometer_model::observations::Manifest;
use serde::{Deserialize, Serialize};

pub(crate) use self::checks::run_checks;
pub use self::checks::{
    CHECKS, Check, CheckDefinition, CheckFigure, CheckKind, CheckState, Limits,
};
pub use self::requirement::{Bound, Requirement, RequirementOutcome, check_requirements};
pub use self::slo::{RequestSlo, RequestSlos, SloOutcome, check_slos};
pub(crate) use self::slo::{due_requests, latency_origin, per_request_slos, slo_outcomes};
pub use self::threshold::{SloProblem, Threshold, ThresholdVerdict, Undecided};
pub(crate) use self::warnings::{CACHED_SHARE, CACHED_SHARE_GRAVE, new_prompts, run_warnings};
use crate::client::ClientHealth;
use crate::machines::ClientFigures;
use crate::metric::Metric;
use crate::record::Measured;

/// How much a warning weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Note,
    Degraded,
    Invalid,
}

/// Whether the numbers of a run may be trusted.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Verdict {
    Valid,
    Degraded,
    Invalid,
}

/// A reason not to rely on a run or a set, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    pub key: String,
    /// Key of the check that the warning belongs to; absent for a warning about a set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    pub severity: Severity,
    pub text: String,
    pub remedy: String,
}

/// An entry of a table of warnings. `raise` is a function from the judged thing to [`Raised`].
pub(crate) struct Rule<F> {
    pub(crate) key: &'static str,
    /// The check that the warning makes fail; none for a warning about a set.
    pub(crate) check: Option<CheckKind>,
    pub(crate) raise: F,
}

/// The part of a warning that depends on what was found.
pub(crate) struct Raised {
    pub(crate) severity: Severity,
    pub(crate) text: String,
    pub(crate) remedy: String,
}

/// The run that checks and warnings look at.
pub(crate) struct RunContext<'a> {
    observations: &'a Observations,
    manifest: &'a Manifest,
    measured: &'a Measured,
    pub(crate) health: ClientHealth,
}

impl<'a> RunContext<'a> {
    pub(crate) fn new(observations: &'a Observations, measured: &'a Measured) -> Self {
        let health = ClientHealth::from_observations(observations, measured);
        Self { observations, manifest: &observations.manifest, measured, health }
    }

    /// The 99th percentile of a latency, if it has values.
    fn p99(&self, metric: &Metric) -> Option<f64> {
        self.measured.series(metric).found.as_ref().ok()?.p99
    }

    fn client_machine(&self) -> Option<&ClientFigures> {
        self.measured.machines.client.as_ref()
    }
}

impl<F> Rule<F> {
    pub(crate) fn warning(&self, raised: Option<Raised>) -> Option<Warning> {
        raised.map(|Raised { severity, text, remedy }| Warning {
            key: self.key.to_owned(),
            check: self.check.map(|check| check.key().to_owned()),
            severity,
            text,
            remedy,
        })
    }
}

impl Raised {
    pub(crate) fn new(
        severity: Severity,
        text: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { severity, text: text.into(), remedy: remedy.into() }
    }
}

pub(crate) fn note(text: impl Into<String>, remedy: impl Into<String>) -> Raised {
    Raised::new(Severity::Note, text, remedy)
}

pub(crate) fn degraded(text: impl Into<String>, remedy: impl Into<String>) -> Raised {
    Raised::new(Severity::Degraded, text, remedy)
}

fn invalid(text: impl Into<String>, remedy: impl Into<String>) -> Raised {
    Raised::new(Severity::Invalid, text, remedy)
}

/// The most severe first, otherwise in the given order.
pub(crate) fn by_severity(mut warnings: Vec<Warning>) -> Vec<Warning> {
    warnings.sort_by_key(|warning| std::cmp::Reverse(warning.severity));
    warnings
}

impl Verdict {
    pub fn from_states(states: impl IntoIterator<Item = CheckState>) -> Self {
        let verdict = |state| match state {
            CheckState::Invalid => Self::Invalid,
            CheckState::Degraded => Self::Degraded,
            CheckState::Passed | CheckState::Noted | CheckState::NotChecked => Self::Valid,
        };
        states.into_iter().map(verdict).max().unwrap_or(Self::Valid)
    }

    pub fn key(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every list of up to four states, against the rule as it is written.
    #[test]
    fn the_rule_holds_over_all_combinations() {
        use CheckState::{Degraded, Invalid, NotChecked, Noted, Passed};
        let states = [NotChecked, Passed, Noted, Degraded, Invalid];
        let mut lists: Vec<Vec<CheckState>> = vec![Vec::new()];
        let mut walked = 0;
        while let Some(list) = lists.pop() {
            let expected = if list.contains(&CheckState::Invalid) {
                Verdict::Invalid
            } else if list.contains(&CheckState::Degraded) {
                Verdict::Degraded
            } else {
                Verdict::Valid
            };
            assert_eq!(Verdict::from_states(list.iter().copied()), expected, "{list:?}");
            walked += 1;
            if list.len() < 4 {
                lists.extend(states.map(|state| [list.as_slice(), &[state]].concat()));
            }
        }
        assert_eq!(walked, 1 + 5 + 25 + 125 + 625);
    }

    #[test]
    fn keys_are_what_serde_writes() {
        for verdict in [Verdict::Valid, Verdict::Degraded, Verdict::Invalid] {
            assert_eq!(serde_json::to_string(&verdict).unwrap(), format!("\"{verdict}\""));
        }
        let severities = [Severity::Note, Severity::Degraded, Severity::Invalid]
            .map(|it| serde_json::to_string(&it).unwrap());
        assert_eq!(severities, ["\"note\"", "\"degraded\"", "\"invalid\""]);
    }
}
