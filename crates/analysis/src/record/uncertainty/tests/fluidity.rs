//! Deadlines met and missed, token by token.

use crate::metric;
use inferometer_model::journal::NotSent;
use inferometer_model::outcome::Cause;
use inferometer_model::spec::{Arrivals, LoadShape, Rate};
use inferometer_model::{RequestId, RequestRecord};

use crate::fixture::{Given, run};
use crate::record::uncertainty::*;
use crate::{Scalar, summarize};

/// The index of a run of which TTFT within 100 ms and TPOT within 20 ms were promised.
fn index(records: Vec<RequestRecord>) -> Scalar {
    fluidity(&promising(records, &["ttft<100ms", "tpot<20ms"]))
}

fn promising(records: Vec<RequestRecord>, slos: &[&str]) -> Observations {
    let mut observations = run(records);
    observations.manifest.spec.slos = slos.iter().map(|slo| slo.parse().unwrap()).collect();
    observations
}

fn fluidity(observations: &Observations) -> Scalar {
    summarize(observations).metrics.scalar(&metric::FLUIDITY).unwrap().clone()
}

#[test]
fn time_that_is_saved_is_kept_for_later_tokens() {
    // 60 ms saved by the first; the second takes 75 of 20 + 60; the third 25 of 20 + 5.
    let within = Given::ok(0).arrival(40, &[Some(1)]).arrival(115, &[Some(1)]);
    let record = within.arrival(140, &[Some(1)]).usage(9, 3).record();
    assert_eq!(index(vec![record]).value, Some(1.0));
}

#[test]
fn a_miss_is_forgiven_and_leaves_no_time_saved() {
    // 60 ms saved, then 81 ms: missed. 20 ms after it: met to the moment. 21 ms after that: missed.
    let record = Given::ok(0)
        .arrival(40, &[Some(1)])
        .arrival(121, &[Some(1)])
        .arrival(141, &[Some(1)])
        .arrival(162, &[Some(1)])
        .usage(9, 4)
        .record();
    assert_eq!(index(vec![record]).value, Some(0.5));
}

#[test]
fn the_tokens_of_one_arrival_come_at_one_moment() {
    // Late by 50; the two that came with it are early by 20 each, which the next one uses up.
    let record = |last: u64| {
        let three = Given::ok(0).arrival(150, &[Some(3)]);
        three.arrival(150 + last, &[Some(1)]).usage(9, 4).record()
    };
    assert_eq!(index(vec![record(60)]).value, Some(0.75));
    assert_eq!(index(vec![record(61)]).value, Some(0.5));
}

#[test]
fn text_without_a_token_is_no_token() {
    let held = Given::ok(0).arrival(100, &[Some(1)]).arrival(110, &[Some(0)]);
    assert_eq!(index(vec![held.arrival(121, &[Some(1)]).record()]).value, Some(0.5));
}

/// An answer of four tokens where up to eight were asked for, and one that failed.
fn half_failed() -> Observations {
    let whole = Given::ok(0).asked(9, 8).arrival(50, &[Some(4)]).usage(9, 4).record();
    let cut = Given::failed(1, Outcome::Truncated).asked(9, 12).arrival(50, &[Some(2)]).record();
    promising(vec![whole, cut], &["ttft<100ms", "tpot<20ms"])
}

fn unsent(observations: &Observations, count: u64) -> Vec<NotSent> {
    let at = observations.ending.at;
    let part = |first, count, cause| NotSent { first: RequestId(first), count, cause, at };
    vec![part(2, count, Cause::ConversationBroken), part(2 + count, 5, Cause::TimeOver)]
}

#[test]
fn what_failed_or_was_not_sent_misses_as_much_as_answers_bring() {
    let mut observations = half_failed();
    assert_eq!(fluidity(&observations).value, Some(4.0 / 8.0));
    observations.not_sent = unsent(&observations, 2);
    assert_eq!(fluidity(&observations).value, Some(4.0 / 16.0));
}

#[test]
fn a_length_that_is_forced_is_what_a_failure_misses() {
    let mut observations = half_failed();
    observations.manifest.endpoint.pinned.ignore_eos = true;
    assert_eq!(fluidity(&observations).value, Some(4.0 / 16.0));
    observations.not_sent = unsent(&observations, 2);
    assert_eq!(fluidity(&observations).value, Some(4.0 / 36.0), "two more of ten on average");
}

#[test]
fn every_request_that_was_not_sent_counts() {
    let mut observations = half_failed();
    observations.not_sent = unsent(&observations, 2_999_998);
    let share = fluidity(&observations).value.unwrap();
    assert!((share * 3e6 - 1.0).abs() < 1e-6, "{share}");
}

#[test]
fn an_open_loop_counts_from_the_schedule() {
    let late = Given::ok(0).moments(0, 60, 60).arrival(120, &[Some(1)]).record();
    let mut observations = promising(vec![late], &["ttft<100ms", "tpot<20ms"]);
    assert_eq!(fluidity(&observations).value, Some(1.0));
    observations.manifest.spec.load.shape = LoadShape::Open {
        rate: Rate::Steady { per_s: 1.0 },
        arrivals: Arrivals::Constant,
        cap: None,
    };
    assert_eq!(fluidity(&observations).value, Some(0.0));
}

#[test]
fn without_both_promises_there_are_no_deadlines() {
    let record = || Given::ok(0).arrival(50, &[Some(1)]).record();
    for slos in [&[][..], &["ttft<1s"], &["tpot<1s", "ttft.p99<1s"]] {
        let found = fluidity(&promising(vec![record()], slos));
        assert_eq!((found.value, found.interval), (None, None));
        assert!(found.reason.unwrap().contains("SLOs on ttft and tpot of each request"));
    }
    let mut whole = promising(vec![record()], &["ttft<1s", "tpot<1s"]);
    whole.manifest.spec.workload.streaming = false;
    assert!(fluidity(&whole).reason.unwrap().contains("not streamed"));
}

#[test]
fn the_interval_is_that_of_a_share() {
    let answer = |id: u64| {
        let from = 1_000 * id;
        let ttft = if id.is_multiple_of(4) { 200 } else { 50 };
        Given::ok(id).moments(from, from, from).arrival(from + ttft, &[Some(1)]).record()
    };
    let found = index((0..80).map(answer).collect());
    assert_eq!(found.value, Some(0.75));
    let interval = found.interval.unwrap();
    assert!(interval.contains(0.75) && 0.6 < interval.low && interval.high < 0.86, "{interval:?}");
}
