//! Loads that left as asked, and loads that did not.

mod cap;
mod gaps;

use std::num::NonZeroU32;
use std::time::Duration;

use inferometer_model::journal::NotSent;
use inferometer_model::spec::{RampCurve, RampSegment};
use inferometer_model::{Moment, Observations, Outcome, RequestId};

use super::*;
use crate::fixture::{Given, calm, calm_of, raised, run};
use crate::judge::Severity;
use crate::statistics::draws::Draws;
use crate::summarize;

/// A calm answer to each, sent `late_ms` after the moment that was planned.
fn played(
    gap_ms: impl FnMut(u64) -> f64,
    late_ms: impl Fn(u64, f64) -> f64,
    (arrivals, cap): (Arrivals, Option<NonZeroU32>),
) -> Observations {
    let mut now = 0.0;
    let records = (0..400).map(gap_ms).zip(0..).map(|(gap, id)| {
        now += gap;
        let mut record = crate::fixture::calm_record(id);
        let at = |ms: f64| Moment::ZERO + Duration::from_secs_f64(ms / 1e3);
        let left = now + late_ms(id, now);
        let shift = |moment: Moment| {
            let since = moment.as_nanos() - (100 * id) * 1_000_000;
            Moment::from_nanos(at(left).as_nanos() + since)
        };
        (record.intended, record.admitted, record.sent) = (at(now), at(now), Some(at(left)));
        for read in &mut record.reads {
            (read.kernel, read.user, read.turn) =
                (read.kernel.map(shift), shift(read.user), shift(read.turn));
        }
        record.ending.at = shift(record.ending.at);
        record
    });
    let mut observations = run(records.collect());
    let rate = Rate::Steady { per_s: 10.0 };
    observations.manifest.spec.load.shape = LoadShape::Open { rate, arrivals, cap };
    observations
}

const EVEN: (Arrivals, Option<NonZeroU32>) = (Arrivals::Constant, None);
const POISSON: (Arrivals, Option<NonZeroU32>) = (Arrivals::Poisson, None);

fn schedule(observations: &Observations) -> ScheduleDelivered {
    let Delivered::Schedule(schedule) = summarize(observations).delivered else {
        panic!("an open loop has a schedule");
    };
    schedule
}

fn slots(observations: &Observations) -> SlotsDelivered {
    let Delivered::Slots(slots) = summarize(observations).delivered else {
        panic!("a closed loop has slots");
    };
    slots
}

fn close(found: Option<f64>, expected: f64) {
    let found = found.unwrap();
    assert!((found - expected).abs() < 1e-6, "found {found}, expected {expected}");
}

#[test]
fn a_schedule_that_was_kept_raises_nothing() {
    let kept = played(|_| 100.0, |_, _| 0.5, EVEN);
    let found = schedule(&kept);
    close(found.intended_per_s, 10.0);
    close(found.sent_per_s, 10.0);
    close(found.late_share, 0.0);
    close(found.intended.cv, 0.0);
    assert_eq!((found.requests, found.unsent, found.fit_reason), (400, 0, None));
    let fit = found.fit.unwrap();
    assert_eq!((fit.process.as_str(), fit.n), ("even", 399));
    assert_eq!(raised(&kept), []);
}

#[test]
fn a_rate_that_was_missed_degrades_and_a_grave_miss_is_invalid() {
    let slower = |by: f64| raised(&played(|_| 100.0, move |_, now| now * by, EVEN));
    assert!(!slower(0.001).iter().any(|(key, _)| *key == "rate-missed"));
    assert!(slower(0.05).contains(&("rate-missed", Severity::Degraded)));
    assert!(slower(0.30).contains(&("rate-missed", Severity::Invalid)));
}

#[test]
fn requests_that_never_left_lower_the_rate() {
    let mut refused = played(|_| 100.0, |_, _| 0.5, EVEN);
    for record in refused.records.held_mut().iter_mut().filter(|record| record.id.0 % 5 == 2) {
        record.sent = None;
        record.reads.clear();
        record.events.clear();
        record.ending.outcome = Outcome::TransportError;
        record.ending.cause = Some(Cause::Refused);
    }
    let found = schedule(&refused);
    assert_eq!((found.requests, found.unsent), (320, 80));
    close(found.intended_per_s, 10.0);
    close(found.sent_per_s, 319.0 / 39.9);
    // That the server took no connection is about the server: the run is not invalid for it.
    assert!(raised(&refused).contains(&("rate-missed", Severity::Degraded)));

    let mut wanting = played(|_| 100.0, |_, _| 0.5, EVEN);
    wanting.records.held_mut().truncate(380);
    let at = wanting.ending.at;
    let part = NotSent { first: RequestId(380), count: 20, cause: Cause::ClientResource, at };
    wanting.not_sent = vec![part];
    let found = schedule(&wanting);
    assert_eq!((found.requests, found.unsent), (380, 20));
    close(found.intended_per_s, 10.0);
    assert!((found.rate_apart.unwrap() + 0.05).abs() < 0.001, "{found:?}");
    assert!(found.fit_reason.unwrap().contains("not known"));
}

/// Once shown as planned at 703.85 per second, of a schedule of 300 whose tail never left.
#[test]
fn a_tail_that_never_left_does_not_raise_the_planned_rate() {
    let mut cut = played(|_| 100.0, |_, _| 0.5, EVEN);
    cut.records.held_mut().truncate(170);
    let at = cut.ending.at;
    let part = NotSent { first: RequestId(170), count: 230, cause: Cause::ClientResource, at };
    cut.not_sent = vec![part];
    let found = schedule(&cut);
    assert_eq!((found.requests, found.unsent), (170, 230));
    close(found.intended_per_s, 10.0);
    close(found.sent_per_s, 169.0 / 39.9);
}

#[test]
fn a_schedule_without_one_law_says_so() {
    let mut ramp = played(|_| 100.0, |_, _| 0.5, EVEN);
    let segments =
        vec![RampSegment { from_per_s: 1.0, to_per_s: 9.0, over: Duration::from_secs(9) }];
    ramp.manifest.spec.load.shape = LoadShape::Open {
        rate: Rate::Ramp { segments, curve: RampCurve::Linear },
        arrivals: Arrivals::Poisson,
        cap: None,
    };
    let found = schedule(&ramp);
    assert_eq!(found.fit, None);
    assert!(found.fit_reason.unwrap().contains("the rate changes"));
    let gamma = played(|_| 100.0, |_, _| 0.0, (Arrivals::Gamma { burstiness: 0.5 }, None));
    assert!(raised(&gamma).contains(&("arrivals-unlike", Severity::Degraded)));
    let uneven = played(|id| if id == 7 { 101.0 } else { 100.0 }, |_, _| 0.0, EVEN);
    assert!(raised(&uneven).contains(&("arrivals-unlike", Severity::Degraded)));
}

#[test]
fn what_a_cap_holds_back_is_no_missed_rate() {
    let capped = played(|_| 100.0, |_, now| now * 0.3, (Arrivals::Constant, NonZeroU32::new(4)));
    assert!(!raised(&capped).iter().any(|(key, _)| *key == "rate-missed"));
}

#[test]
fn requests_that_leave_in_bunches_are_noted() {
    // Held until the next whole two seconds: twenty at once.
    let held = |_, now: f64| (now / 2_000.0).ceil() * 2_000.0 - now;
    assert!(raised(&played(|_| 100.0, held, EVEN)).contains(&("arrivals-bunched", Severity::Note)));
}

#[test]
fn a_poisson_schedule_fits_and_an_even_one_does_not() {
    let mut draws = Draws::new(7, 0);
    let poisson = played(move |_| draws.exponential() * 100.0, |_, _| 0.0, POISSON);
    let found = schedule(&poisson);
    let fit = found.fit.unwrap();
    assert!(0.001 < fit.p && fit.n == 399, "{fit:?}");
    assert!((0.8..1.2).contains(&found.intended.cv.unwrap()));
    assert!(!raised(&poisson).iter().any(|(key, _)| *key == "arrivals-unlike"));
    let even = played(|_| 100.0, |_, _| 0.0, POISSON);
    assert!(raised(&even).contains(&("arrivals-unlike", Severity::Degraded)));
}

#[test]
fn slots_that_were_empty_degrade() {
    // One user at a time where four were asked for.
    let mut observations = calm_of(200);
    let LoadShape::Closed { concurrency, .. } = &mut observations.manifest.spec.load.shape else {
        panic!("a closed loop");
    };
    *concurrency = NonZeroU32::new(4).unwrap();
    assert_eq!(raised(&observations), [("slots-empty", Severity::Invalid)]);
    // 120 ms each, every 100 ms.
    assert!((slots(&observations).in_use_mean - 1.2).abs() < 0.01);
}

#[test]
fn the_drain_does_not_count_against_the_slots() {
    // Two users, and one answer at the end that takes as long as half of the run.
    let user = |first: u64| {
        (0..100_u64).map(move |n| {
            let (id, at) = (2 * n + first, 100 * n);
            let end = if id == 199 { at + 5_000 } else { at + 100 };
            let given = Given::ok(id).moments(at, at, at).arrival(at + 50, &[Some(1)]);
            given.arrival(end, &[Some(2)]).usage(512, 3).record()
        })
    };
    let mut records: Vec<_> = user(0).chain(user(1)).collect();
    records.sort_by_key(|record| record.id);
    let mut observations = run(records);
    observations.manifest.spec.load.shape =
        LoadShape::Closed { concurrency: NonZeroU32::new(2).unwrap(), think: Think::None };
    let slots = slots(&observations);
    assert!((slots.share - 1.0).abs() < 1e-9, "{slots:?}");
    assert!((slots.to_ms - 10_000.0).abs() < 1e-9, "{slots:?}");
}

/// Slots whose answers take about 200 ms, each 20 ms empty before the next.
fn resting(slots: usize, requests: u64) -> Observations {
    let mut draws = Draws::new(8, 0);
    let mut free_at = vec![0; slots];
    let answer = |id| {
        let free = free_at.iter_mut().min().unwrap();
        let (at, end) = (*free, *free + whole(150.0 + 100.0 * draws.unit()));
        *free = end + 20;
        let given = Given::ok(id).moments(at, at, at);
        given.arrival(end, &[Some(3)]).usage(512, 3).record()
    };
    let records = (0..requests).map(answer).collect();
    let mut observations = run(records);
    let concurrency = NonZeroU32::new(u32::try_from(slots).unwrap()).unwrap();
    observations.manifest.spec.load.shape = LoadShape::Closed { concurrency, think: Think::None };
    observations
}

fn whole(ms: f64) -> u64 {
    u64::try_from(Duration::from_secs_f64(ms / 1e3).as_millis()).unwrap()
}

#[test]
fn many_slots_that_rest_between_requests_are_seen() {
    let observations = resting(256, 10_000);
    let slots = slots(&observations);
    // 200 of 220 ms; the peak of 256 is over after the first answers.
    assert!((slots.share - 200.0 / 220.0).abs() < 0.01, "{slots:?}");
    assert!(slots.from_ms < 1.0 && 8_000.0 < slots.to_ms, "{slots:?}");
    assert!(raised(&observations).contains(&("slots-empty", Severity::Degraded)));
    let window = summarize(&observations).steady.window.unwrap();
    assert!(8_000.0 < window.to_ms.unwrap(), "{window:?}");
}

#[test]
fn the_last_turns_of_conversations_are_part_of_the_drain() {
    // Two slots: one talks for 120 turns, the other for 20 and has nobody after that.
    let talk = |first: u64, turns: u16| {
        (0..turns).map(move |turn| {
            let at = 100 * u64::from(turn);
            let given = Given::ok(first + u64::from(turn)).turn(turn).moments(at, at, at);
            given.arrival(at + 100, &[Some(3)]).usage(512, 3).record()
        })
    };
    let mut observations = run(talk(0, 120).chain(talk(120, 20)).collect());
    observations.manifest.spec.load.shape =
        LoadShape::Closed { concurrency: NonZeroU32::new(2).unwrap(), think: Think::None };
    let slots = slots(&observations);
    assert!((slots.share - 1.0).abs() < 1e-9 && (slots.to_ms - 2_000.0).abs() < 1e-9, "{slots:?}");
}

#[test]
fn what_cannot_be_told_says_why() {
    let reason = |observations: &Observations| {
        let Delivered::NotChecked { reason } = Delivered::from_observations(observations) else {
            panic!("it was checked");
        };
        reason
    };
    assert!(reason(&calm()).contains("too few requests"));
    let mut thinking = calm_of(200);
    thinking.manifest.spec.load.shape = LoadShape::Closed {
        concurrency: NonZeroU32::MIN,
        think: Think::Fixed(Duration::from_secs(1)),
    };
    assert!(reason(&thinking).contains("think"));
    let mut at_once = calm();
    at_once.manifest.spec.load.shape =
        LoadShape::Open { rate: Rate::Unlimited, arrivals: Arrivals::Constant, cap: None };
    assert!(reason(&at_once).contains("at once"));
}
