//! Whether a run may be trusted. The rule over its [checks](crate::Check), in full:
//!
//! - any check that is `invalid` makes the run invalid: its numbers are not about the server;
//! - otherwise any that is `degraded` makes it degraded: the numbers hold with a reservation;
//! - otherwise it is valid. What was noted is good to know, what was not checked is not known, and
//!   neither changes anything.
//!
//! A check is as grave as the gravest warning that belongs to it. Too few samples for a percentile
//! withhold that percentile's certificate and change no verdict.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::check::CheckState;

/// How much a warning weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Note,
    Degraded,
    Invalid,
}

/// What a run's numbers are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Valid,
    Degraded,
    Invalid,
}

impl Verdict {
    pub fn of(states: impl IntoIterator<Item = CheckState>) -> Self {
        let of_one = |state| match state {
            CheckState::Invalid => Self::Invalid,
            CheckState::Degraded => Self::Degraded,
            CheckState::Passed | CheckState::Noted | CheckState::NotChecked => Self::Valid,
        };
        states.into_iter().map(of_one).max().unwrap_or(Self::Valid)
    }

    pub const fn key(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Degraded => "degraded",
            Self::Invalid => "invalid",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

impl Severity {
    pub const fn key(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Degraded => "degraded",
            Self::Invalid => "invalid",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

#[cfg(test)]
mod tests {
    use super::Severity::{Degraded, Invalid, Note};
    use super::*;

    /// Every list of up to four states, against the rule as it is written.
    #[test]
    fn the_rule_holds_over_all_combinations() {
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
            assert_eq!(Verdict::of(list.iter().copied()), expected, "{list:?}");
            walked += 1;
            if list.len() < 4 {
                lists.extend(CheckState::ALL.map(|state| [list.as_slice(), &[state]].concat()));
            }
        }
        assert_eq!(walked, 1 + 5 + 25 + 125 + 625);
    }

    #[test]
    fn keys_are_what_serde_writes() {
        for verdict in [Verdict::Valid, Verdict::Degraded, Verdict::Invalid] {
            assert_eq!(serde_json::to_string(&verdict).unwrap(), format!("\"{verdict}\""));
        }
        for severity in [Note, Degraded, Invalid] {
            assert_eq!(serde_json::to_string(&severity).unwrap(), format!("\"{severity}\""));
        }
    }
}
