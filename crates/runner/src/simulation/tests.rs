//! Virtual time, observers and counters of simulated runs.

mod coverage;
mod steps;

use super::*;

#[test]
fn who_leaves_has_seen_what_has_arrived_and_no_more() {
    let at = Moment::from_nanos;
    let mut way = OnTheWay::default();
    assert_eq!((way.last_by(at(5)), way.after(at(5))), (None, 0));
    way.add(at(10), at(14));
    way.add(at(11), at(18));
    assert_eq!((way.last_by(at(13)), way.after(at(13))), (None, 2));
    assert_eq!((way.last_by(at(14)), way.after(at(14))), (Some(at(14)), 1));
    way.add(at(20), at(20));
    assert_eq!((way.last_by(at(20)), way.after(at(20))), (Some(at(20)), 0));
    way.add(at(30), at(33));
    assert_eq!((way.last_by(at(31)), way.after(at(31))), (Some(at(20)), 1));
}

#[test]
fn requests_are_handled_one_after_the_other() {
    let costs = FrontCosts { per_request_ns: 10, per_prompt_token_ns: 1, per_output_token_ns: 2 };
    let mut front = ApiServer { process: ApiProcess::new(costs), queue: VecDeque::new() };
    front.take_in(100, 0, RequestId(0), 5);
    front.take_in(101, 1, RequestId(1), 0);
    assert_eq!(front.queue.front().map(|waiting| waiting.at_ns), Some(115));
    assert_eq!(front.process.hand_out(1, 101), 127);
    assert_eq!(front.pass_on(114), None);
    assert_eq!(front.pass_on(115).map(|waiting| waiting.place), Some(0));
    assert_eq!(front.pass_on(200).map(|waiting| waiting.id), Some(RequestId(1)));
    assert_eq!(front.process.hand_out(1, 300), 302);
}

use inferometer_engine::scheduler;

fn recorded(generation: Generation) -> TelemetrySample {
    let gauges = scheduler::Gauges { running: 3, waiting: 1, kv_usage: 0.5 };
    let counters = scheduler::Counters { prefix_queries: 32, ..<_>::default() };
    let sample = Sample { at: Moment::from_nanos(7), stands_for: 1, gauges, counters };
    let TelemetryEntry::Sample(sample) = telemetry_entry(&sample, generation) else {
        panic!("no sample")
    };
    sample
}

#[test]
fn each_generation_tells_what_its_servers_do() {
    let newer = recorded(Generation::V1);
    assert_eq!((newer.dialect, newer.gauges.swapped), (Dialect::VllmV1, None));
    assert_eq!(newer.counters.prefix_queries, Some(32.0));
    let older = recorded(Generation::V0 { scheduler_steps: 1 });
    assert_eq!((older.dialect, older.gauges.swapped), (Dialect::VllmV0, Some(0.0)));
    assert_eq!((older.gauges.cpu_kv_usage, older.counters.prefix_queries), (Some(0.0), None));
    assert_eq!(older.gauges.running, Some(3.0));
}

#[test]
fn every_time_is_near_the_middle_of_its_step() {
    let some = (0..5_000).chain((13..63).flat_map(|n| [(1 << n) - 1, 1 << n, (1 << n) + 7]));
    let mut last = 0;
    for ns in some {
        let step = log_step(ns, STEP_BITS);
        assert!(last <= step, "{ns}");
        last = step;
        let (first, end) = log_step_limits(step, STEP_BITS);
        let middle = first + (end - first) / 2;
        let off = middle.abs_diff(ns);
        assert!(off * 100 <= ns, "{ns} is taken for {middle}");
    }
}

#[test]
fn quantiles_and_mean_of_a_thousand_times() {
    let mut times = Histogram::default();
    let empty = Times::from_histogram(&times);
    assert_eq!((empty.p50, empty.mean), (None, None));
    for ns in 1..=1_000 {
        times.add(ns * 1_000_000);
    }
    let found = Times::from_histogram(&times);
    assert_eq!((found.n, found.mean, found.max), (1_000, Some(500.5), Some(1_000.0)));
    for (share, ms) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0), (1.0, 1_000.0)] {
        let found = times.quantile_ns(share).unwrap() as f64 / 1e6;
        assert!((found - ms).abs() <= ms * 0.01, "{share}: {found}");
    }
}
