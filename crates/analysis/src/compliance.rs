//! Whether a run kept the rules of an audit: fixed lengths, a seed that nobody chose, no warm cache, a client
//! with room to spare.
//!
//! An audited run is marked by the nonce in its metadata from which its seed follows.

use inferometer_model::Outcome;
use inferometer_model::fmt::{count, counted, number};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::judge::CheckState;
use crate::summary::Summary;

/// The key of the nonce in the metadata of an audited run.
pub const AUDIT_NONCE: &str = "audit_nonce";
pub const DURATION_MIN_S: f64 = 60.0;
/// So many values certify a p99.
pub const REQUESTS_MIN: u64 = 662;

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

/// The seed that a nonce stands for, with 32 bits like those that are drawn.
pub fn seed_of_nonce(nonce: &str) -> u64 {
    let digest = Sha256::digest(format!("inferometer audit\n{nonce}"));
    digest.iter().take(4).fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}

/// Every rule; `None` for a run that was not audited.
pub fn compliance(summary: &Summary) -> Option<Vec<Compliance>> {
    let nonce = summary.run.metadata.get(AUDIT_NONCE)?;
    let rule = |rule: &str, required: String, found: String, is_kept| Compliance {
        rule: rule.to_owned(),
        required,
        found,
        is_kept,
    };
    let duration = summary.window.duration_s;
    let ok = summary.count(Outcome::Ok);
    let seed = summary.run.seed;
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
            "the seed follows from the published nonce".to_owned(),
            format!("seed {seed} of the nonce {nonce}"),
            Some(seed == seed_of_nonce(nonce)),
        ),
        rule(
            "Accuracy sample",
            "answers are compared with reference answers, where there are some".to_owned(),
            "no reference answers".to_owned(),
            None,
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

    fn audited(nonce: &str, seed: u64) -> Vec<Compliance> {
        let records = (0..3).map(|id| Given::ok(id).record()).collect();
        let mut observations = run(records);
        observations.manifest.spec.seed = seed;
        let nonce = (AUDIT_NONCE.to_owned(), nonce.to_owned());
        observations.manifest.spec.metadata.extend([nonce]);
        compliance(&summarize(&observations)).unwrap()
    }

    fn kept(rules: &[Compliance], rule: &str) -> Option<bool> {
        rules.iter().find(|it| it.rule == rule).unwrap().is_kept
    }

    #[test]
    fn a_short_run_breaks_the_rules_and_a_chosen_seed_is_found() {
        let rules = audited("n", seed_of_nonce("n"));
        assert_eq!(kept(&rules, "Samples"), Some(false));
        assert_eq!(kept(&rules, "Duration"), Some(false));
        assert_eq!(kept(&rules, "Fresh seed"), Some(true));
        assert_eq!(kept(&rules, "Accuracy sample"), None);
        assert_eq!(kept(&audited("n", 42), "Fresh seed"), Some(false));
        assert_eq!(rules.len(), 4 + CHECKS.len());
    }

    #[test]
    fn a_run_that_was_not_audited_has_no_rules() {
        assert_eq!(compliance(&summarize(&run(vec![Given::ok(0).record()]))), None);
    }

    #[test]
    fn a_nonce_has_one_seed_on_every_machine() {
        assert_eq!(seed_of_nonce("a"), seed_of_nonce("a"));
        assert_ne!(seed_of_nonce("a"), seed_of_nonce("b"));
        assert!(u32::try_from(seed_of_nonce("a")).is_ok());
    }
}
