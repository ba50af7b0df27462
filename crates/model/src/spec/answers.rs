//! `[answers]`: how answers are judged, and which are stored.

use clap::Args;
use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};

use super::text::{Grammar, Share, Written};

/// How answers are judged, and which are stored.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[command(next_help_heading = "Answers")]
#[serde(deny_unknown_fields)]
pub struct AnswersTable {
    /// How answers are compared with those of the dataset: exact, numeric (the last number of each),
    /// numeric:TOLERANCE, regex (the dataset has patterns), or regex:PATTERN (what the pattern finds last,
    /// its first group if it has one) [default: not compared]
    #[arg(long, value_name = "HOW")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Written<Expect>>,
    /// Answers to store with the run: all, or a share of them such as 5% [default: none]
    #[arg(long, value_name = "SHARE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_answers: Option<Written<KeptShare>>,
    /// Most MiB of answers to store [default: 64]
    #[arg(long, value_name = "MIB")]
    #[schemars(range(min = 1, max = 65536))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_answers_mib: Option<u32>,
}

impl AnswersTable {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The share of the answers that is stored.
    pub fn kept_share(&self) -> f64 {
        self.keep_answers.as_ref().map_or(0.0, |share| share.0.0)
    }

    pub fn kept_bytes_max(&self) -> u64 {
        u64::from(self.keep_answers_mib.unwrap_or(64)) << 20
    }
}

/// How an answer is compared with the one that is expected.
#[derive(Clone, Debug, PartialEq)]
pub enum Expect {
    /// The same text, but for blanks around it.
    Exact,
    /// The last numbers of both, as close as this.
    Numeric { tolerance: f64 },
    /// What is expected is a pattern, which the answer must hold.
    Pattern,
    /// What a pattern finds last in the answer is the expected text.
    Found(String),
}

/// A share of all answers, all of them included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeptShare(pub f64);

impl Grammar for Expect {
    fn read(text: &str) -> Result<Self, String> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name.trim(), Some(parameter)),
            None => (text.trim(), None),
        };
        let tolerance = |text: &str| {
            let number: Option<f64> = text.trim().parse().ok();
            number.filter(|number| 0.0 <= *number && number.is_finite())
        };
        let read = match (name, parameter) {
            ("exact", None) => Some(Self::Exact),
            ("numeric", None) => Some(Self::Numeric { tolerance: 0.0 }),
            ("numeric", Some(text)) => tolerance(text).map(|tolerance| Self::Numeric { tolerance }),
            ("regex", None) => Some(Self::Pattern),
            ("regex", Some(pattern)) => Some(Self::Found(pattern.to_owned())),
            _ => None,
        };
        read.ok_or_else(|| {
            format!(
                "`{text}` is not known; write exact, numeric, numeric:0.01, regex or regex:PATTERN"
            )
        })
    }

    fn write(&self) -> String {
        match self {
            Self::Exact => "exact".to_owned(),
            Self::Numeric { tolerance: 0.0 } => "numeric".to_owned(),
            Self::Numeric { tolerance } => format!("numeric:{tolerance}"),
            Self::Pattern => "regex".to_owned(),
            Self::Found(pattern) => format!("regex:{pattern}"),
        }
    }

    fn schema() -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^ *(exact|numeric|numeric:.+|regex|regex:.+) *$",
            "examples": ["exact", "numeric:0.01", "regex:#### (.+)"],
        })
    }
}

impl Grammar for KeptShare {
    fn read(text: &str) -> Result<Self, String> {
        match text.trim() {
            "all" | "100%" => Ok(Self(1.0)),
            share => Share::read(share)
                .map(|share| Self(share.0))
                .map_err(|_| format!("`{text}` is not known; write all, or a share such as 5%")),
        }
    }

    fn write(&self) -> String {
        if self.0 < 1.0 { Share(self.0).write() } else { "all".to_owned() }
    }

    fn schema() -> Schema {
        json_schema!({ "type": ["number", "string"], "examples": ["all", "5%", 0.05] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_expected_is_read_as_it_is_written() {
        for text in ["exact", "numeric", "numeric:0.01", "regex", "regex:answer: (\\d+)"] {
            assert_eq!(Expect::read(text).unwrap().write(), text);
        }
        for text in ["", "fuzzy", "exact:3", "numeric:x", "numeric:-1"] {
            assert!(Expect::read(text).unwrap_err().contains("is not known"), "{text}");
        }
    }

    #[test]
    fn a_share_of_answers_may_be_all_of_them() {
        assert_eq!(KeptShare::read("all"), Ok(KeptShare(1.0)));
        assert_eq!(KeptShare::read("5%").unwrap().write(), "5%");
        assert!(KeptShare::read("0").is_err() && KeptShare::read("some").is_err());
    }
}
