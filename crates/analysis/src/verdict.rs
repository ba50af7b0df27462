//! Whether a run may be trusted. The rule, in full:
//!
//! - any warning that is `invalid` makes the run invalid: its numbers are not about the server;
//! - otherwise any that is `degraded` makes it degraded: the numbers hold with a reservation;
//! - otherwise it is valid. Notes say what to know, and change nothing.
//!
//! Too few samples for a percentile withhold that percentile's certificate and change no verdict.

use std::fmt;

use serde::{Deserialize, Serialize};

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
    pub fn of(severities: impl IntoIterator<Item = Severity>) -> Self {
        match severities.into_iter().max() {
            Some(Severity::Invalid) => Self::Invalid,
            Some(Severity::Degraded) => Self::Degraded,
            Some(Severity::Note) | None => Self::Valid,
        }
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

    #[test]
    fn the_worst_warning_decides_and_notes_do_not_count() {
        assert_eq!(Verdict::of([]), Verdict::Valid);
        assert_eq!(Verdict::of([Note, Note]), Verdict::Valid);
        assert_eq!(Verdict::of([Note, Degraded, Note]), Verdict::Degraded);
        assert_eq!(Verdict::of([Degraded, Invalid, Note]), Verdict::Invalid);
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
