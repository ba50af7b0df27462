//! Which runs have confidence intervals, what the others would need, and what the intervals contain.

use std::num::NonZeroU32;
use std::time::Duration;

use inferometer_model::Observations;
use inferometer_model::spec::{Arrivals, LoadShape, Rate, Think};

use crate::fixture::{Given, run};
use crate::metric;
use crate::statistics::Percentile;
use crate::statistics::draws::Draws;
use crate::{Summary, summarize};

/// Answers that take this long, and `delay_ms` more at each place.
const SERVICE_MS: u64 = 100;

/// Poisson arrivals at this rate, each delayed by so much.
fn open(per_s: f64, requests: u64, delay_ms: impl Fn(u64) -> u64) -> Observations {
    let mut draws = Draws::new(6, requests);
    let mut at_s = 0.0;
    let answer = |id: u64| {
        at_s += draws.exponential() / per_s;
        let sent = u64::try_from(Duration::from_secs_f64(at_s).as_millis()).unwrap();
        let first = sent + 20 + id % 3 + delay_ms(id);
        let given = Given::ok(id).moments(sent, sent, sent).arrival(first, &[Some(1)]);
        given.arrival(first + SERVICE_MS, &[Some(2)]).usage(512, 3).record()
    };
    let mut observations = run((0..requests).map(answer).collect());
    shape(&mut observations, Arrivals::Poisson, per_s);
    observations
}

fn shape(observations: &mut Observations, arrivals: Arrivals, per_s: f64) {
    let rate = Rate::Steady { per_s };
    observations.manifest.spec.load.shape = LoadShape::Open { rate, arrivals, cap: None };
}

/// Users whose answers take [`SERVICE_MS`], and the first of each `start` times as long.
fn closed(users: u32, requests: u64, start: u64) -> Observations {
    let users_wide = u64::from(users);
    let answer = |id: u64| {
        let (round, place) = (id / users_wide, id % users_wide);
        let begun = if round == 0 { 0 } else { start * SERVICE_MS + (round - 1) * SERVICE_MS };
        let (sent, took) =
            (begun + place, if round == 0 { start * SERVICE_MS } else { SERVICE_MS });
        let given = Given::ok(id).moments(sent, sent, sent);
        given.arrival(sent + took / 2, &[Some(1)]).arrival(sent + took, &[Some(2)]).record()
    };
    let mut observations = run((0..requests).map(answer).collect());
    let concurrency = NonZeroU32::new(users).unwrap();
    observations.manifest.spec.load.shape = LoadShape::Closed { concurrency, think: Think::None };
    observations
}

/// The number of requests that would do, where there are no intervals.
fn needed(summary: &Summary) -> Option<u64> {
    let metrics = summary.headline();
    let ttft = metrics.distribution(&metric::TTFT).unwrap();
    let rates = [&metric::REQUEST_THROUGHPUT, &metric::OUTPUT_THROUGHPUT];
    let intervals = rates.map(|it| metrics.scalar(it).unwrap().interval);
    let intervals = intervals.into_iter().chain([ttft.intervals.mean, ttft.intervals.p50]);
    let is_withheld = summary.intervals_withheld.is_some();
    assert!(intervals.clone().all(|it| it.is_none() == is_withheld), "{intervals:?}");
    summary.intervals_withheld.as_ref().map(|it| it.requests_needed.unwrap())
}

#[test]
fn a_short_run_has_no_intervals_and_says_how_many_requests_would_do() {
    let no_delay = |_| 0;
    assert_eq!(needed(&summarize(&open(2.0, 99, no_delay))), Some(100), "random arrivals");
    assert_eq!(needed(&summarize(&open(2.0, 101, no_delay))), None);
    let mut bursts = open(2.0, 400, no_delay);
    shape(&mut bursts, Arrivals::Gamma { burstiness: 0.2 }, 2.0);
    assert_eq!(needed(&summarize(&bursts)), Some(500));
    assert_eq!(needed(&summarize(&closed(8, 72, 1))), Some(80), "ten for each user");
    assert_eq!(needed(&summarize(&closed(8, 120, 1))), None);
    // With a hundred in flight at a time, 15 rounds are 1,500 requests.
    let crowded = summarize(&open(50.0, 600, |_| 2_000)).intervals_withheld.unwrap();
    assert!(crowded.requests_needed.unwrap() > 1_000, "{crowded:?}");
    assert!(crowded.reason.contains("start"), "{crowded:?}");
}

#[test]
fn requests_that_wait_for_each_other_need_more() {
    // A queue that is long once in forty requests: 300 ms at five arrivals per second.
    let queue = |id: u64| if id % 40 < 4 { 300 } else { 0 };
    let summary = summarize(&open(5.0, 800, queue));
    assert_eq!(needed(&summary), Some(2_000));
    assert!(summary.intervals_withheld.unwrap().reason.contains("wait for each other"));
    assert_eq!(needed(&summarize(&open(5.0, 2_000, queue))), None);
}

#[test]
fn the_start_moves_no_interval_and_the_value_lies_in_it() {
    let summary = summarize(&closed(8, 400, 10));
    let steady = summary.headline().distribution(&metric::E2E).unwrap().clone();
    let around = steady.intervals.mean.unwrap();
    assert!(around.contains(100.0) && around.high < 101.0, "{around:?}");
    let whole = summary.metrics.distribution(&metric::E2E).unwrap();
    let (mean, around) = (whole.mean.unwrap(), whole.intervals.mean.unwrap());
    assert!(117.0 < mean && around.contains(mean) && around.contains(100.0), "{mean} {around:?}");
    assert!(whole.is_certified(Percentile::P50) && whole.intervals.p50.is_some());
}

#[test]
fn a_load_that_is_not_steady_has_no_true_value_to_bound() {
    let mut at_once = open(5.0, 300, |_| 0);
    at_once.manifest.spec.load.shape =
        LoadShape::Open { rate: Rate::Unlimited, arrivals: Arrivals::Constant, cap: None };
    let withheld = summarize(&at_once).intervals_withheld.unwrap();
    assert_eq!(withheld.requests_needed, None);
    assert!(withheld.reason.contains("at once"), "{withheld:?}");
}

#[test]
fn a_long_tail_of_which_little_was_seen_may_be_longer() {
    let tail = |id: u64| if id % 200 == 150 { 1_000 } else { 0 };
    let found = summarize(&open(2.0, 2_000, tail));
    let ttft = found.headline().distribution(&metric::TTFT).unwrap().clone();
    let (mean, around) = (ttft.mean.unwrap(), ttft.intervals.mean.unwrap());
    assert!(2.0 * (mean - around.low) < around.high - mean, "{mean} {around:?}");
}
