//! The scheduler on a wall that the test moves.

use std::time::Duration;

use super::*;
use crate::metrics::MetricNames;
use crate::scheduler::{HashedPrompt, StopRules};
use crate::serve::ServeOptions;

const START: u64 = 1_000_000_000;
const STEP: u64 = 1_000_000;

fn core() -> Core {
    let options =
        ServeOptions { step: Some(Duration::from_nanos(STEP)), ..ServeOptions::default() };
    let scheduler = Scheduler::new(SchedulerConfig::default(), options.step_model(0));
    let metrics = Metrics::new(MetricNames::VllmV1, options.labels("m", scheduler.config(), 0));
    Core::new(scheduler, Pace::new(at(0), 1.0), metrics, true)
}

fn at(ns: u64) -> Moment {
    Moment::from_ns(START + ns)
}

fn arrive(core: &mut Core, slot: usize, at_ns: u64, tokens: u32) -> FlightKey {
    let ids = core.new_ids(1);
    let key = core.flights().open(slot, true, &ids);
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
    let late = core.step_lateness();
    assert_eq!((late.summary().count, late.over_1ms()), (2, 1));
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
    let text = String::from_utf8(core.log().unwrap().text()).unwrap();
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
    assert!(core.abandon(running, at(STEP + 5)).is_some());
    assert!(core.scheduler.gauges().kv_usage <= 0.0);
    assert!(core.abandon(running, at(STEP + 5)).is_none());
    woken(&mut core, 9 * STEP);
    assert_eq!((core.next_due(), core.waiting()), (None, 0));
    let text = String::from_utf8(core.log().unwrap().text()).unwrap();
    assert_eq!(text.matches("abort").count(), 1);
}
