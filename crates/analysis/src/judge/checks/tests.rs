//! The ledger as a whole.

use std::collections::BTreeSet;

use inferometer_model::Outcome;
use inferometer_model::observations::Simulated;

use super::*;
use crate::fixture::{calm, calm_of, run, scraped};
use crate::judge::Verdict;
use crate::summarize;

fn state(checks: &[Check], kind: CheckKind) -> CheckState {
    checks.iter().find(|check| check.key == kind.key()).unwrap().state
}

#[test]
fn keys_are_unique_and_titles_are_questions() {
    let keys: BTreeSet<&str> = CheckKind::all().map(CheckKind::key).collect();
    assert_eq!(keys.len(), CheckKind::all().len());
    for kind in CheckKind::all() {
        assert!(kind.title().ends_with('?') && !kind.help().is_empty(), "{kind:?}");
    }
    for state in CheckState::ALL {
        assert_eq!(serde_json::to_string(&state).unwrap(), format!("\"{}\"", state.key()));
    }
}

#[test]
fn a_calm_run_passes_or_says_what_was_not_looked_at() {
    let summary = summarize(&scraped(calm(), 20_480.0, 120.0));
    assert_eq!(summary.checks.len(), CheckKind::all().len());
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
    for record in observations.records.iter_mut().take(2) {
        record.ending.outcome = Outcome::HttpError;
    }
    let summary = summarize(&observations);
    let errors = summary.checks.iter().find(|check| check.key == "errors").unwrap();
    assert_eq!((errors.state, errors.figure), (CheckState::Degraded, Some(0.05)));
    assert_eq!(errors.limits, Some(Limits { degraded: Some(0.01), invalid: Some(0.5) }));
    assert_eq!(errors.finding, "2 of 40 attempted requests failed (5.0 %)");
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
            let kind = CheckKind::all().find(|kind| Some(kind.key()) == warning.check.as_deref());
            assert!(CheckState::Noted <= state(&summary.checks, kind.unwrap()));
        }
    }
}

#[test]
fn there_is_no_client_in_virtual_time() {
    let mut observations = calm_of(400);
    observations.manifest.simulated =
        Some(Simulated { profile: "p".to_owned(), engine: "e".to_owned() });
    observations.ending.client.journal_waits = 400;
    let checks = summarize(&observations).checks;
    for check in checks {
        let kind = CheckKind::all().find(|kind| kind.key() == check.key).unwrap();
        if kind.is_about_client() {
            assert_eq!(check.state, CheckState::NotChecked);
            assert!(check.finding.contains("virtual time"));
        }
    }
}
