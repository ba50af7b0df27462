//! Steps that are put together while another runs.

use super::*;

fn config(policy: Policy) -> SchedulerConfig {
    SchedulerConfig { async_scheduling: true, policy, ..SchedulerConfig::default() }
}

/// Plays prompts of ten tokens that come at given moments with given priorities; gives the moments
/// at which they had their first part in a step.
fn scheduled(config: SchedulerConfig, asks: &[(u64, i32, u32)]) -> Vec<u64> {
    let mut scheduler = Scheduler::new(config, ConstantStep(STEP));
    let mut witness = Witness::default();
    for (id, (at_ns, priority, output)) in (0..).zip(asks) {
        let prompt = HashedPrompt::of_segments([(id, 10)], 16);
        let stop = StopRules::after(*output);
        let request = SchedulerRequest { id, prompt, answer_seed: id, stop, priority: *priority };
        scheduler.submit(*at_ns, request, &mut witness).unwrap();
    }
    scheduler.advance(100 * STEP, &mut witness);
    let mut ended = witness.ended;
    ended.sort_by_key(|facts| facts.id);
    ended.iter().map(|facts| facts.scheduled_ns.unwrap()).collect()
}

#[test]
fn who_comes_while_a_step_runs_waits_for_one_boundary_more() {
    let asks = [(0, 0, 10), (STEP / 2, 0, 1)];
    assert_eq!(scheduled(config(Policy::Fcfs), &asks), [0, 2 * STEP]);
    let in_turn = SchedulerConfig { async_scheduling: false, ..config(Policy::Fcfs) };
    assert_eq!(scheduled(in_turn, &asks), [0, STEP]);
}

#[test]
fn who_comes_when_nothing_runs_any_more_waits_for_nobody() {
    // The first has left with the step that ran when the second came.
    assert_eq!(scheduled(config(Policy::Fcfs), &[(0, 0, 1), (STEP / 2, 0, 1)]), [0, STEP]);
}

#[test]
fn one_that_is_too_new_holds_up_nobody_that_came_before_it() {
    let one_by_one = SchedulerConfig { max_num_batched_tokens: 10, ..config(Policy::Priority) };
    // A step holds ten tokens. The last comes while the second runs; the third comes first.
    let asks = [(0, 0, 10), (0, 1, 1), (0, 1, 1), (3 * STEP / 2, 0, 1)];
    assert_eq!(scheduled(one_by_one, &asks), [0, STEP, 2 * STEP, 3 * STEP]);
}
