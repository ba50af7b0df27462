//! The ledger as a whole.

use std::collections::BTreeSet;

use inferometer_model::Outcome;
use inferometer_model::observations::Simulated;

use super::*;
use crate::fixture::{calm, calm_of, run, scraped};
use crate::summarize;

fn state(checks: &[Check], kind: CheckKind) -> CheckState {
    checks.iter().find(|check| check.key == kind.key()).unwrap().state
}

#[test]
fn keys_are_unique_and_titles_are_questions() {
    let keys: BTreeSet<&str> = CHECKS.iter().map(|check| check.kind.key()).collect();
    assert_eq!(keys.len(), CHECKS.len());
    assert_eq!((CheckKind::CompleteRun.key(), CheckKind::Cache.key()), ("complete-run", "cache"));
    for (place, check) in CHECKS.iter().enumerate() {
        let (title, help) = check.kind.texts();
        assert!(title.ends_with('?') && !help.is_empty(), "{:?}", check.kind);
        assert_eq!(check.kind as usize, place, "every kind has its entry");
    }
}

#[test]
fn a_calm_run_passes_or_says_what_was_not_looked_at() {
    let summary = summarize(&scraped(calm(), 20_480.0, 120.0));
    assert_eq!(summary.checks.len(), CHECKS.len());
    for check in &summary.checks {
        let at_rest = matches!(check.state, CheckState::Passed | CheckState::NotChecked);
        assert!(at_rest && !check.finding.is_empty() && check.remedy.is_none(), "{check:?}");
    }
    for kind in [CheckKind::CompleteRun, CheckKind::LittlesLaw, CheckKind::ServerAlone] {
        assert_eq!(state(&summary.checks, kind), CheckState::Passed);
    }
    for kind in [CheckKind::SteadyState, CheckKind::DeliveredLoad, CheckKind::SendLag] {
        assert_eq!(state(&summary.checks, kind), CheckState::NotChecked);
    }
    let long = summarize(&calm_of(400)).checks;
    assert_eq!(state(&long, CheckKind::SteadyState), CheckState::Passed);
    assert_eq!(state(&long, CheckKind::DeliveredLoad), CheckState::Passed);
}

#[test]
fn a_check_is_as_grave_as_its_gravest_warning_and_keeps_its_figure() {
    let mut observations = calm();
    for record in observations.records.held_mut().iter_mut().take(2) {
        record.ending.outcome = Outcome::HttpError;
    }
    let summary = summarize(&observations);
    let errors = summary.checks.iter().find(|check| check.key == "errors").unwrap();
    assert_eq!((errors.state, errors.figure), (CheckState::Degraded, Some(0.05)));
    assert_eq!(errors.limits, Some(Limits { degraded: Some(0.01), invalid: Some(0.5) }));
    assert_eq!(errors.finding, "2 of 40 attempted requests failed (5 %)");
    assert!(errors.remedy.as_ref().unwrap().contains("failures"));
    assert_eq!(summary.verdict, Verdict::Degraded);
    assert_eq!(summary.warnings[0].check.as_deref(), Some("errors"));
}

#[test]
fn every_failed_check_has_a_remedy_and_every_warning_a_check() {
    for observations in [run(vec![]), calm_of(3)] {
        let summary = summarize(&observations);
        for check in &summary.checks {
            let failed = CheckState::Noted <= check.state;
            assert_eq!(failed, check.remedy.is_some(), "{check:?}");
        }
        for warning in &summary.warnings {
            let check =
                CHECKS.iter().find(|check| Some(check.kind.key()) == warning.check.as_deref());
            assert!(CheckState::Noted <= state(&summary.checks, check.unwrap().kind));
        }
    }
}

#[test]
fn there_is_no_client_in_virtual_time() {
    let mut observations = calm_of(400);
    observations.manifest.simulated = Some(Simulated {
        profile: "p".to_owned(),
        engine: "e".to_owned(),
        model_error: None,
        prediction: None,
    });
    observations.ending.client.journal_waits = 400;
    let checks = summarize(&observations).checks;
    for check in checks {
        let found = CHECKS.iter().find(|one| one.kind.key() == check.key).unwrap();
        if found.kind.is_about_client() {
            assert_eq!(check.state, CheckState::NotChecked);
            assert!(check.finding.contains("virtual time"));
        }
    }
}

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

#[test]
fn every_remedy_is_of_a_warning_and_has_a_text() {
    let keys: BTreeSet<&str> = REMEDIES.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys.len(), REMEDIES.len());
    assert!(REMEDIES.iter().all(|(_, text)| !text.is_empty() && !text.contains('\n')));
}
