//! Warnings about how the run went, raised and not raised.

use inferometer_model::observations::Connections;
use inferometer_model::outcome::Cause;
use inferometer_model::spec::{LoadShape, Think};

use super::*;
use crate::fixture::{Given, calm, calm_of, calm_record, raised, run};

/// A calm run whose first requests ended otherwise.
fn with_failures(outcome: Outcome, count: usize) -> Observations {
    let mut observations = calm();
    for record in observations.records.held_mut().iter_mut().take(count) {
        record.ending.outcome = outcome;
    }
    observations
}

#[test]
fn a_calm_run_raises_nothing() {
    assert_eq!(raised(&calm()), []);
}

#[test]
fn nothing_ok_is_invalid() {
    let failed = vec![Given::failed(0, Outcome::HttpError).record()];
    assert!(raised(&run(failed)).contains(&("nothing-ok", Severity::Invalid)));
    assert!(raised(&run(vec![])).contains(&("nothing-ok", Severity::Invalid)));
}

#[test]
fn errors_degrade_above_one_percent_and_are_noted_below() {
    let many = with_failures(Outcome::HttpError, 1);
    assert_eq!(raised(&many), [("errors", Severity::Degraded)]);
    let mut few = calm_of(100);
    few.records.held_mut()[0].ending.outcome = Outcome::TimeoutIdle;
    assert_eq!(raised(&few), [("errors", Severity::Note)]);
}

#[test]
fn what_we_cancelled_is_no_error() {
    let mut cut = with_failures(Outcome::Cancelled, 3);
    assert_eq!(raised(&cut), [("cut-at-limit", Severity::Degraded)]);
    cut.ending.stop = RunStop::Cut;
    assert_eq!(raised(&cut), [("partial", Severity::Degraded)]);
}

#[test]
fn every_early_end_is_partial() {
    use RunStop::{ClientExhausted, Cut, Drained, Recovered, Stalled, Unauthorized, Unreachable};
    for (stop, severity) in [
        (Drained, Severity::Degraded),
        (Cut, Severity::Degraded),
        (Recovered, Severity::Degraded),
        (Unauthorized, Severity::Invalid),
        (Unreachable, Severity::Invalid),
        (ClientExhausted, Severity::Invalid),
        (Stalled, Severity::Invalid),
    ] {
        let mut observations = calm();
        observations.ending.stop = stop;
        assert_eq!(raised(&observations), [("partial", severity)]);
    }
}

/// Faults: 12.
#[test]
fn a_stale_connection_is_named_beside_the_error() {
    let mut observations = with_failures(Outcome::TransportError, 1);
    observations.records.held_mut()[0].ending.cause = Some(Cause::StalePool);
    assert!(raised(&observations).contains(&("stale-pool", Severity::Note)));
}

#[test]
fn a_server_that_closes_its_connections_is_noted() {
    let with_opened = |opened: u64, connections| {
        let mut observations = calm();
        observations.manifest.endpoint.connections = connections;
        for record in observations.records.held_mut() {
            record.connection.as_mut().unwrap().reused = opened <= record.id.0;
        }
        raised(&observations)
    };
    assert_eq!(with_opened(20, Connections::Reuse), []);
    assert_eq!(with_opened(21, Connections::Reuse), [("connections-closed", Severity::Note)]);
    assert_eq!(with_opened(40, Connections::New), []);
}

/// Faults: 20.
#[test]
fn proxy_variables_are_noted() {
    let mut observations = calm();
    observations.manifest.environment.proxy_variables = vec!["HTTPS_PROXY".to_owned()];
    assert_eq!(raised(&observations), [("proxy-variables", Severity::Note)]);
}

/// Faults: 16.
#[test]
fn an_address_that_means_no_machine_of_its_own_is_noted() {
    for (address, is_odd) in [
        ("0.0.0.0:80", true),
        ("[::]:80", true),
        ("169.254.10.1:80", true),
        ("[fe80::1]:80", true),
        ("127.0.0.1:80", false),
        ("[::1]:80", false),
        ("10.0.0.1:80", false),
    ] {
        let mut observations = calm();
        observations.manifest.endpoint.address = address.parse().unwrap();
        let noted: &[_] = if is_odd { &[("odd-address", Severity::Note)] } else { &[] };
        assert_eq!(raised(&observations), noted, "{address}");
    }
}

#[test]
fn fewer_than_thirty_answers_are_few() {
    let with = |count| raised(&run((0..count).map(calm_record).collect()));
    assert!(with(29).contains(&("few-requests", Severity::Note)));
    assert!(!with(30).contains(&("few-requests", Severity::Note)));
}

#[test]
fn a_run_of_less_than_a_second_is_short() {
    let with = |count| raised(&run((0..count).map(calm_record).collect()));
    assert!(with(9).contains(&("short-run", Severity::Degraded)), "920 ms");
    assert!(!with(10).contains(&("short-run", Severity::Degraded)), "1,020 ms");
}

#[test]
fn a_run_that_is_short_for_its_load_says_how_many_requests_would_do() {
    // Forty requests of 120 ms, ten a second, on four slots and on five.
    let mut observations = calm();
    assert_eq!(raised(&observations), []);
    let concurrency = std::num::NonZeroU32::new(5).unwrap();
    observations.manifest.spec.load.shape = LoadShape::Closed { concurrency, think: Think::None };
    assert_eq!(raised(&observations), [("few-rounds", Severity::Degraded)]);
    assert!(
        warning(&observations, "few-rounds").text.ends_with("; 50 requests would be long enough")
    );
}

#[test]
fn texts_name_their_numbers() {
    let failed = with_failures(Outcome::HttpError, 3);
    assert_eq!(warning(&failed, "errors").text, "3 of 40 attempted requests failed (7.5 %)");
}
