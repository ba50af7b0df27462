//! Each warning about a run, raised and not raised.

mod answers;
mod client;
mod machines;
mod run;
mod server;
mod workload;

use std::collections::BTreeSet;

use inferometer_model::Observations;

use super::*;

/// The warning with this key, which the run must raise.
fn warning(observations: &Observations, key: &str) -> Warning {
    let measured = Measured::from_observations(observations);
    let raised = run_warnings(&RunContext::new(observations, &measured));
    raised.into_iter().find(|warning| warning.key == key).unwrap()
}

#[test]
fn keys_are_unique_but_for_the_two_causes_of_throttling() {
    let keys: BTreeSet<&str> = RULES.iter().map(|rule| rule.key).collect();
    assert_eq!(keys.len(), RULES.len() - 1);
}

#[test]
fn every_warning_has_a_remedy() {
    for rule in RULES {
        let raised = Raised { severity: Severity::Note, text: String::new(), remedy_suffix: "" };
        assert!(!rule.warning(Some(raised)).unwrap().remedy.is_empty());
    }
}
