//! The ledger: what was asked of every run before its numbers are believed, and what was found.
//!
//! To add a check: its kind in [`CheckKind`], with its key, title, help and limits, which the compiler
//! asks for; what it found in `check/found.rs`; its warnings in `check/belongs.rs`; then
//! `cargo xtask docs`.

mod belongs;
mod found;
mod kind;

use inferometer_model::Observations;
use serde::{Deserialize, Serialize};

use self::found::Found;
pub use self::kind::CheckKind;
use crate::measured::Measured;
use crate::verdict::Severity;
use crate::warning::Warning;

/// One question about a run, and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    pub key: String,
    /// A question that "yes" is good news to.
    pub title: String,
    pub state: CheckState,
    /// What was found, or why nothing was looked at.
    pub finding: String,
    /// The number that was judged, as far as there is one.
    pub figure: Option<f64>,
    pub unit: Option<String>,
    pub limits: Option<Limits>,
    /// What to do about it; there is one unless it passed or was not checked.
    pub remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    NotChecked,
    Passed,
    Noted,
    Degraded,
    Invalid,
}

/// From where on a figure degrades a run, and from where on it spoils it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    pub degraded: Option<f64>,
    pub invalid: Option<f64>,
}

impl CheckState {
    pub const ALL: [Self; 5] =
        [Self::NotChecked, Self::Passed, Self::Noted, Self::Degraded, Self::Invalid];

    pub const fn key(self) -> &'static str {
        match self {
            Self::NotChecked => "not_checked",
            Self::Passed => "passed",
            Self::Noted => "noted",
            Self::Degraded => "degraded",
            Self::Invalid => "invalid",
        }
    }

    const fn of(severity: Severity) -> Self {
        match severity {
            Severity::Note => Self::Noted,
            Severity::Degraded => Self::Degraded,
            Severity::Invalid => Self::Invalid,
        }
    }
}

/// Every check, in the order of [`CheckKind::all`]. `warnings` are the run's, the gravest first.
pub(crate) fn ledger(
    observations: &Observations,
    measured: &Measured,
    warnings: &[Warning],
) -> Vec<Check> {
    let check = |kind: CheckKind| {
        let own: Vec<&Warning> =
            warnings.iter().filter(|warning| warning.check() == kind).collect();
        Check::of(kind, Found::by(kind, observations, measured), &own)
    };
    CheckKind::all().map(check).collect()
}

impl Check {
    fn of(kind: CheckKind, found: Result<Found, String>, warnings: &[&Warning]) -> Self {
        let (state, finding) = match (warnings.first(), &found) {
            (Some(gravest), _) => {
                let texts: Vec<String> = warnings.iter().map(ToString::to_string).collect();
                (CheckState::of(gravest.severity()), texts.join("; "))
            }
            (None, Ok(found)) => (CheckState::Passed, found.text.clone()),
            (None, Err(reason)) => (CheckState::NotChecked, reason.clone()),
        };
        let (figure, limits) = found.map_or((None, None), |found| (found.figure, found.limits));
        Self {
            key: kind.key().to_owned(),
            title: kind.title().to_owned(),
            state,
            finding,
            figure: figure.filter(|figure| figure.is_finite()),
            unit: figure.and(kind.unit()).map(str::to_owned),
            limits: limits.or(kind.limits()),
            remedy: warnings.first().map(|warning| warning.remedy().to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
