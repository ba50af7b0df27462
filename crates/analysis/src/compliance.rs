//! Whether a run kept the rules of an audit: fixed lengths, a seed that nobody chose, no warm cache, a client
//! with room to spare.
//!
//! The seed of an audited run follows from two nonces in its metadata: one that is drawn, and whose hash is
//! published before anything is measured, and one that an auditor chooses then.

use inferometer_model::Outcome;
use inferometer_model::fmt::{count, counted, number};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::judge::CheckState;
use crate::summary::Summary;

/// Keys in the metadata of an audited run: the drawn nonce, its hash, and the nonce of the auditor.
pub const AUDIT_DRAWN: &str = "audit_drawn";
pub const AUDIT_COMMITMENT: &str = "audit_commitment";
pub const AUDIT_NONCE: &str = "audit_nonce";
pub const AUDIT_KEYS: [&str; 3] = [AUDIT_DRAWN, AUDIT_COMMITMENT, AUDIT_NONCE];
pub const DURATION_MIN_S: f64 = 60.0;
/// So many values certify a p99.
pub const REQUESTS_MIN: u64 = 662;
/// So many compared answers show a share within ten points.
pub const ANSWERS_MIN: u64 = 100;

/// One rule and whether the run kept it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compliance {
    pub rule: String,
    pub required: String,
    pub found: String,
    /// `None` where it cannot be shown.
    pub is_kept: Option<bool>,
}

/// Rules that are checks of the run's validity: their keys and what is required.
const CHECKS: [(&str, &str); 7] = [
    ("complete-run", "the plan was played to its end"),
    ("errors", "requests do not fail"),
    ("steady-state", "most of the run is steady"),
    ("cache", "prompts do not come from a warm cache"),
    ("output-length", "answers have the length that was asked for"),
    ("send-lag", "requests leave in time"),
    ("client-capacity", "the client was measured here and has room to spare"),
];

/// The hash of a drawn nonce, which binds whoever publishes it.
pub fn commitment(drawn: &str) -> String {
    let digest = Sha256::digest(format!("inferometer audit\n{drawn}"));
    digest.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// The seed that two nonces give, with 32 bits like those that are drawn.
pub fn seed_of_nonces(drawn: &str, auditor: &str) -> u64 {
    let digest = Sha256::digest(format!("inferometer audit\n{drawn}\n{auditor}"));
    digest.iter().take(4).fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}

/// Every rule; `None` for a run that was not audited.
pub fn compliance(summary: &Summary) -> Option<Vec<Compliance>> {
    let metadata = |key: &str| summary.run.metadata.get(key).map(String::as_str);
    let (drawn, committed) = (metadata(AUDIT_DRAWN)?, metadata(AUDIT_COMMITMENT)?);
    let auditor = metadata(AUDIT_NONCE);
    let rule = |rule: &str, required: String, found: String, is_kept| Compliance {
        rule: rule.to_owned(),
        required,
        found,
        is_kept,
    };
    let duration = summary.window.duration_s;
    let ok = summary.count(Outcome::Ok);
    let seed = summary.run.seed;
    let answers = summary.answers.as_ref().filter(|answers| 0 < answers.compared);
    let rules = [
        rule(
            "Duration",
            format!("at least {} s", number(DURATION_MIN_S)),
            format!("{} s", number(duration)),
            duration.map(|found| DURATION_MIN_S <= found),
        ),
        rule(
            "Samples",
            format!("at least {} that ended ok", counted(REQUESTS_MIN, "request")),
            count(ok),
            Some(REQUESTS_MIN <= ok),
        ),
        rule(
            "Fresh seed",
            "the seed follows from a committed nonce and one of an auditor".to_owned(),
            format!(
                "seed {seed} of the nonces {drawn}, committed as {committed}, and {}",
                auditor.unwrap_or("none of an auditor")
            ),
            // Without an auditor, nonces can be drawn until one pleases.
            (committed != commitment(drawn)
                || seed != seed_of_nonces(drawn, auditor.unwrap_or_default()))
            .then_some(false)
            .or(auditor.map(|_| true)),
        ),
        rule(
            "Accuracy sample",
            format!(
                "at least {} are compared with reference answers",
                counted(ANSWERS_MIN, "answer")
            ),
            answers.map_or_else(
                || "no reference answers (--expect)".to_owned(),
                |it| format!("{} of {} are right", count(it.correct), count(it.compared)),
            ),
            answers.map(|it| ANSWERS_MIN <= it.compared),
        ),
    ];
    let of_check = |(key, required): &(&str, &str)| {
        let check = summary.checks.iter().find(|check| check.key == *key);
        let is_kept = match check.map_or(CheckState::NotChecked, |check| check.state) {
            CheckState::NotChecked => None,
            CheckState::Passed | CheckState::Noted => Some(true),
            CheckState::Degraded | CheckState::Invalid => Some(false),
        };
        let (title, found) = check.map_or((*key, "not checked"), |it| (&it.title, &it.finding));
        rule(title, (*required).to_owned(), found.to_owned(), is_kept)
    };
    Some(rules.into_iter().chain(CHECKS.iter().map(of_check)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Given, run};
    use crate::summary::summarize;

    fn audited(auditor: Option<&str>, seed: u64, committed: String) -> Vec<Compliance> {
        let records = (0..3).map(|id| Given::ok(id).record()).collect();
        let mut observations = run(records);
        observations.manifest.spec.seed = seed;
        let nonces = [
            (AUDIT_DRAWN, Some("n".to_owned())),
            (AUDIT_COMMITMENT, Some(committed)),
            (AUDIT_NONCE, auditor.map(str::to_owned)),
        ];
        let known = nonces.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        observations.manifest.spec.metadata.extend(known);
        compliance(&summarize(&observations)).unwrap()
    }

    fn kept(rules: &[Compliance], rule: &str) -> Option<bool> {
        rules.iter().find(|it| it.rule == rule).unwrap().is_kept
    }

    #[test]
    fn a_short_run_breaks_the_rules_and_a_chosen_seed_is_found() {
        let (seed, committed) = (seed_of_nonces("n", "a"), commitment("n"));
        let rules = audited(Some("a"), seed, committed.clone());
        assert_eq!(kept(&rules, "Samples"), Some(false));
        assert_eq!(kept(&rules, "Duration"), Some(false));
        assert_eq!(kept(&rules, "Fresh seed"), Some(true));
        assert_eq!(kept(&rules, "Accuracy sample"), None);
        assert_eq!(rules.len(), 4 + CHECKS.len());
        for (auditor, seed, committed) in [
            (Some("a"), 42, committed.clone()),
            (Some("b"), seed, committed.clone()),
            (Some("a"), seed, commitment("m")),
            (None, seed, committed.clone()),
        ] {
            assert_eq!(kept(&audited(auditor, seed, committed), "Fresh seed"), Some(false));
        }
        // Nobody else had a say.
        let alone = audited(None, seed_of_nonces("n", ""), committed);
        assert_eq!(kept(&alone, "Fresh seed"), None);
    }

    #[test]
    fn a_run_that_was_not_audited_has_no_rules() {
        assert_eq!(compliance(&summarize(&run(vec![Given::ok(0).record()]))), None);
    }

    #[test]
    fn nonces_have_one_seed_on_every_machine() {
        assert_eq!(
            commitment("n"),
            "8f1cdad2efaeaa8d575dea1a2278e0b614d8fc64b0fbfb2da87bd46bcd5f8c1d"
        );
        assert_eq!(seed_of_nonces("n", "a"), 233_509_185);
        assert_ne!(seed_of_nonces("n", "a"), seed_of_nonces("n", "b"));
    }
}
