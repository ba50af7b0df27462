//! Warnings about the server's metrics, raised and not raised.

use inferometer_model::telemetry::SumCount;

use super::*;
use crate::fixture::{calm, raised, scraped};

#[test]
fn a_server_that_counts_as_we_do_raises_nothing() {
    // 40 requests of 512 and 3 tokens.
    assert_eq!(raised(&scraped(calm(), 20_480.0, 120.0)), []);
    assert_eq!(raised(&scraped(calm(), 20_684.0, 120.0)), [], "within a hundredth");
}

#[test]
fn work_for_others_is_named_and_much_of_it_degrades() {
    let more = [("server-tokens-more", Severity::Note)];
    assert_eq!(raised(&scraped(calm(), 20_480.0, 122.0)), more);
    let grave = [("server-tokens-more", Severity::Degraded)];
    assert_eq!(raised(&scraped(calm(), 30_000.0, 120.0)), grave);
    let fewer = [("server-tokens-fewer", Severity::Note)];
    assert_eq!(raised(&scraped(calm(), 20_480.0, 60.0)), fewer);
}

#[test]
fn what_failed_may_explain_a_difference() {
    let mut failed = scraped(calm(), 99_999.0, 999.0);
    failed.records.held_mut()[0].ending.outcome = inferometer_model::Outcome::HttpError;
    assert_eq!(raised(&failed), [("errors", Severity::Degraded)]);
}

/// Faults: 97.
#[test]
fn a_restart_makes_a_run_invalid() {
    let mut observations = scraped(calm(), 20_480.0, 120.0);
    if let inferometer_model::Telemetry::Recorded(recording) = &mut observations.telemetry {
        recording.samples[1].process_start_s = Some(2_000.0);
    }
    assert_eq!(raised(&observations), [("server-restarted", Severity::Invalid)]);
}

#[test]
fn replicas_behind_one_address_are_a_note() {
    let mut observations = scraped(calm(), 20_480.0, 120.0);
    if let inferometer_model::Telemetry::Recorded(recording) = &mut observations.telemetry {
        recording.samples[1].process_start_s = Some(500.0);
    }
    assert_eq!(raised(&observations), [("server-replicas", Severity::Note)]);
}

#[test]
fn a_delay_between_server_and_client_is_named() {
    // The first token of every answer came after 50 ms.
    let by_server = |ms: f64| {
        let mut observations = scraped(calm(), 20_480.0, 120.0);
        if let inferometer_model::Telemetry::Recorded(recording) = &mut observations.telemetry {
            for (sample, count) in recording.samples.iter_mut().zip([0.0, 40.0]) {
                sample.timings.ttft = Some(SumCount { sum_s: count * ms / 1e3, count });
            }
        }
        raised(&observations)
    };
    assert_eq!(by_server(40.5), []);
    assert_eq!(by_server(39.5), [("server-ttft", Severity::Degraded)]);
}

#[test]
fn preemptions_are_a_note_with_their_number() {
    let mut observations = scraped(calm(), 20_480.0, 120.0);
    if let inferometer_model::Telemetry::Recorded(recording) = &mut observations.telemetry {
        for (sample, total) in recording.samples.iter_mut().zip([5.0, 12.0]) {
            sample.counters.preemptions = Some(total);
        }
    }
    assert_eq!(raised(&observations), [("preemptions", Severity::Note)]);
    let text = warning(&observations, "preemptions").text;
    assert!(text.contains("preempted requests 7 times"), "{text}");
}

#[test]
fn texts_name_their_numbers() {
    assert_eq!(
        warning(&scraped(calm(), 20_480.0, 135.0), "server-tokens-more").text,
        "the server counted 12.5 % more generated tokens than this run"
    );
}
