//! That tool's numbers, recomputed by hand.

use inferometer_model::record::{ConnectionFacts, Dial};
use std::num::NonZeroU32;

use inferometer_model::spec::Arrivals;

use crate::definitions::vllm::*;
use crate::fixture::{Given, calm, ms, run};
use crate::record::Measured;

fn result(observations: &Observations) -> VllmResult {
    Measured::from_observations(observations).vllm
}

fn close(found: Option<f64>, expected: f64) {
    let found = found.unwrap();
    assert!((found - expected).abs() < 1e-9, "found {found}, expected {expected}");
}

/// Planned at 0, sent at 10: a role at 20, text at 520, 540 and 560, usage at 860.
fn chat_like(id: u64) -> Given {
    Given::ok(id)
        .moments(0, 10, 10)
        .event(20, Carried::CHOICE | Carried::ROLE)
        .arrival(520, &[None])
        .arrival(540, &[None])
        .arrival(560, &[None])
        .event(860, Carried::USAGE)
        .event(870, Carried::DONE)
        .usage(30, 3)
}

#[test]
fn a_role_is_a_first_token_there() {
    let found = result(&run(vec![chat_like(0).record()]));
    close(found.ttft_ms.mean, 10.0);
    // np.mean([500, 20, 20]), np.std([500, 20, 20]), np.percentile([500, 20, 20], 99)
    close(found.itl_ms.mean, 180.0);
    close(found.itl_ms.std, 226.274_169_979_695_2);
    close(found.itl_ms.median, 20.0);
    close(found.itl_ms.p99, 490.4);
    close(found.e2el_ms.mean, 550.0);
    close(found.tpot_ms.mean, 270.0);
    assert_eq!((found.completed, found.failed), (1, 0));
    assert_eq!((found.total_input_tokens, found.total_output_tokens), (30, 3));
    // From the planned moment to the last ending, at 870.
    close(found.duration_s, 0.87);
    close(found.request_throughput, 1.0 / 0.87);
    close(found.output_throughput, 3.0 / 0.87);
    close(found.total_token_throughput, 33.0 / 0.87);
    assert_eq!((found.max_concurrency, found.request_rate), (Some(4), None));
}

#[test]
fn on_chat_the_usage_message_ends_the_latency() {
    let mut observations = run(vec![chat_like(0).record()]);
    observations.manifest.spec.api = Api::Chat;
    let found = result(&observations);
    close(found.e2el_ms.mean, 850.0);
    close(found.tpot_ms.mean, 420.0);
}

#[test]
fn dialling_counts_and_waiting_for_a_slot_does_not() {
    let mut record = chat_like(0).record();
    let dial = Dial { started: ms(4), connected: ms(6), secured: None };
    record.connection = Some(ConnectionFacts { ordinal: 0, reused: false, dial: Some(dial) });
    close(result(&run(vec![record])).ttft_ms.mean, 16.0);
}

#[test]
fn events_of_one_read_are_gaps_of_zero_there() {
    let record = Given::ok(0).arrival(100, &[None, None, None]).usage(10, 3).record();
    let found = result(&run(vec![record]));
    assert_eq!(found.itl_ms.mean, Some(0.0));
    assert_eq!(found.tpot_ms.mean, Some(0.0));
}

#[test]
fn nothing_is_null() {
    let found = result(&run(vec![Given::failed(0, Outcome::HttpError).ends(50).record()]));
    assert_eq!((found.completed, found.failed), (0, 1));
    assert_eq!(found.ttft_ms, VllmLatency::default());
    assert_eq!(found.request_throughput, None);
    assert_eq!(found.max_output_tokens_per_s, None);
    assert_eq!(found.max_concurrent_requests, None);
}

#[test]
fn one_token_has_no_tpot() {
    let found = result(&run(vec![Given::ok(0).arrival(9, &[None]).usage(1, 1).record()]));
    assert_eq!(found.ttft_ms.mean, Some(9.0));
    assert_eq!(found.tpot_ms, VllmLatency::default());
}

#[test]
fn peaks_are_over_whole_seconds_and_overcount_short_requests() {
    // Forty requests, one after another, in four seconds: 30 chunks in a second, and ten
    // requests "at once" although there were never more than two.
    let found = result(&calm());
    assert_eq!(found.max_output_tokens_per_s, Some(30));
    assert_eq!(found.max_concurrent_requests, Some(11));
}

#[test]
fn an_open_loop_has_a_rate_and_may_have_a_cap() {
    let mut observations = calm();
    let mut found = |rate, cap| {
        let arrivals = Arrivals::Poisson;
        observations.manifest.spec.load.shape = LoadShape::Open { rate, arrivals, cap };
        let found = result(&observations);
        (found.max_concurrency, found.request_rate)
    };
    let steady = || Rate::Steady { per_s: 10.0 };
    assert_eq!(found(steady(), None), (None, Some(10.0)));
    assert_eq!(found(steady(), NonZeroU32::new(4)), (Some(4), Some(10.0)));
    assert_eq!(found(Rate::Unlimited, None), (None, None));
}

#[test]
fn a_stretched_schedule_is_timed_from_its_start() {
    let mut observations = calm();
    observations.records.held_mut().drain(..10);
    let rate = Rate::Steady { per_s: 10.0 };
    let mut duration_s = |arrivals| {
        let shape = LoadShape::Open { rate: rate.clone(), arrivals, cap: None };
        observations.manifest.spec.load.shape = shape;
        result(&observations).duration_s.unwrap()
    };
    let (chance, stretched) =
        (duration_s(Arrivals::Poisson), duration_s(Arrivals::Stretched { burstiness: 1.0 }));
    // The first of those that are left came after a second.
    assert!((stretched - chance - 1.0).abs() < 1e-9, "{stretched} instead of {chance}");
}
