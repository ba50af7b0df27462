//! The scheduler on a wall that the test moves.

mod replay;

use std::time::Duration;

use super::*;
use crate::metrics::MetricNames;
use crate::physics::Front;
use crate::scheduler::{HashedPrompt, StopRules};
use crate::serve::ServeOptions;
use crate::serve::flights::ClientEvent;

const START: u64 = 1_000_000_000;
const STEP: u64 = 1_000_000;

fn core() -> Core {
    core_of(SchedulerConfig::default(), Front::IMMEDIATE)
}

fn core_of(config: SchedulerConfig, front: Front) -> Core {
    let options =
        ServeOptions { step: Some(Duration::from_nanos(STEP)), ..ServeOptions::default() };
    let scheduler = Scheduler::new(config, options.step_model(0));
    let metrics = Metrics::new(MetricNames::VllmV1, options.labels("m", scheduler.config(), 0));
    Core::new(scheduler, ApiProcess::new(front), Pace::new(at(0), 1.0), metrics, true)
}

fn at(ns: u64) -> Moment {
    Moment::from_ns(START + ns)
}

fn arrive(core: &mut Core, slot: usize, at_ns: u64, tokens: u32) -> FlightKey {
    let ids = core.new_ids(1);
    let key = core.events.flights.open(slot, true, &ids);
    let prompt = HashedPrompt::of_tokens(100..140, core.config().block_size);
    let stop = StopRules::after(tokens);
    core.arrive(at_ns, SchedulerRequest { id: ids[0], prompt, answer_seed: 1, stop, priority: 0 });
    key
}

fn woken(core: &mut Core, ns: u64) -> Vec<usize> {
    let mut ready = Vec::new();
    core.wake(at(ns), &mut ready);
    ready
}

#[test]
fn steps_keep_their_cadence_however_late_the_loop_is() {
    let mut core = core();
    assert_eq!(core.next_due(), None);
    arrive(&mut core, 3, 500, 4);
    assert_eq!(core.next_due(), Some(at(500)));
    assert!(woken(&mut core, 700).is_empty());
    assert_eq!(core.next_due(), Some(at(500 + STEP)));
    // Two and a half steps late: both that are over are heard of, and the next is on its grid.
    assert_eq!(woken(&mut core, 500 + 2 * STEP + STEP / 2), [3, 3]);
    assert_eq!(core.next_due(), Some(at(500 + 3 * STEP)));
    let late = &core.events.steps;
    assert_eq!((late.summary().count, late.over_1ms), (2, 1));
    assert_eq!(woken(&mut core, 500 + 4 * STEP), [3, 3, 3]);
    assert_eq!(core.next_due(), None);
}

#[test]
fn who_is_read_late_is_dated_behind_what_has_happened_since() {
    let mut core = core();
    arrive(&mut core, 0, 0, 3);
    woken(&mut core, STEP);
    arrive(&mut core, 1, STEP / 2, 1);
    woken(&mut core, STEP + 10);
    let text = String::from_utf8(core.events.log.as_ref().unwrap().text()).unwrap();
    let dated: Vec<&str> =
        text.lines().filter(|line| line.contains("arrival")).map(|line| &line[..30]).collect();
    assert_eq!(dated, [r#"{"arrival":{"at_ns":0,"id":0,""#, r#"{"arrival":{"at_ns":1000001,"i"#]);
}

#[test]
fn who_leaves_is_taken_back_wherever_its_request_is() {
    let mut core = core();
    let running = arrive(&mut core, 0, 0, 100);
    let ahead = arrive(&mut core, 1, 5 * STEP, 100);
    woken(&mut core, STEP);
    assert_eq!((core.scheduler.gauges().running, core.waiting()), (1, 1));
    assert!(core.abandon(ahead, at(STEP + 5)).is_some());
    assert_eq!((core.scheduler.gauges().running, core.waiting()), (1, 0));
    assert!(core.abandon(running, at(STEP + 5)).is_some());
    assert!(core.scheduler.gauges().kv_usage <= 0.0);
    assert!(core.abandon(running, at(STEP + 5)).is_none());
    woken(&mut core, 9 * STEP);
    assert_eq!((core.next_due(), core.waiting()), (None, 0));
    let text = String::from_utf8(core.events.log.as_ref().unwrap().text()).unwrap();
    assert_eq!(text.matches("abort").count(), 1);
    let mut metrics = String::new();
    core.render_metrics(&mut metrics);
    let aborted = metrics.lines().find(|line| line.contains(r#"finished_reason="abort""#)).unwrap();
    assert!(aborted.ends_with(" 2.0"), "{aborted}");
}

#[test]
fn one_that_is_far_behind_catches_up_in_parts() {
    let mut core = core();
    let key = arrive(&mut core, 0, 0, 1_000);
    let now = 2_000 * STEP;
    let mut wakes = 0;
    let mut steps = 0;
    while core.next_due().is_some_and(|due| due <= at(now)) {
        woken(&mut core, now);
        wakes += 1;
        let done = core.events.steps.summary().count;
        assert!(done - steps <= u64::from(EVENTS_PER_WAKE), "{done} after {steps}");
        steps = done;
    }
    assert_eq!(steps, 1_000);
    assert!(10 < wakes, "{wakes}");
    assert!(core.events.flights.choices(key)[0].end.is_some());
}

#[test]
fn who_leaves_one_that_is_far_behind_does_not_wait_for_it() {
    let mut core = core();
    let key = arrive(&mut core, 0, 0, 1_000);
    arrive(&mut core, 1, 0, 1_000);
    woken(&mut core, 2_000 * STEP);
    let before = core.events.steps.summary().count;
    assert!(core.abandon(key, at(2_000 * STEP)).is_some());
    assert_eq!(core.events.steps.summary().count, before);
    assert_eq!(core.scheduler.gauges().running, 1);
}

#[test]
fn tokens_are_due_when_the_api_process_has_handed_them_out() {
    let costs =
        Front { per_request_ns: 1_000, per_prompt_token_ns: 10, per_output_token_ns: 300_000 };
    let mut core = core_of(SchedulerConfig::default(), costs);
    let came: Vec<u64> = (0..2).map(|_| core.events.front.take_in(500, 40)).collect();
    assert_eq!(came, [1_900, 3_300]);
    let keys: Vec<FlightKey> =
        (0..).zip(&came).map(|(slot, at_ns)| arrive(&mut core, slot, *at_ns, 3)).collect();
    woken(&mut core, 10 * STEP);
    // The first is alone in its first step; its fellow catches up with a step of its own, behind
    // which both have a token each time.
    let due = |core: &mut Core, key| {
        let mut due = Vec::new();
        while let ClientEvent::One(pending) = core.events.flights.next(key, 1) {
            due.push(pending.at.ns() - START);
        }
        due
    };
    let step = |number: u64| 1_900 + number * STEP;
    let token = |count: u64| count * 300_000;
    let first = [step(1) + token(1), step(2) + token(1), step(3) + token(1)];
    let second = [step(2) + token(2), step(3) + token(2), step(4) + token(1)];
    assert_eq!(due(&mut core, keys[0]), first);
    assert_eq!(due(&mut core, keys[1]), second);
    // A request that comes meanwhile waits until the tokens are out.
    assert_eq!(core.events.front.take_in(step(4), 0), step(4) + token(1) + 1_000);
}
