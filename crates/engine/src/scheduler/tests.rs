//! Properties that hold for any requests, and what single ones come to.

mod asynchronous;
mod queueing;

use std::collections::HashMap;

use proptest::prelude::*;

use super::blocks::{PromptHasher, token};
use super::*;

/// Writes everything down, and checks what must hold at every moment.
#[derive(Debug, Default)]
struct Witness {
    steps: Vec<Step>,
    tokens: Vec<(u64, u32, u64)>,
    ended: Vec<RequestFacts>,
    last_ns: u64,
}

impl Witness {
    fn at(&mut self, at_ns: u64) {
        assert!(self.last_ns <= at_ns, "{at_ns} after {}", self.last_ns);
        self.last_ns = at_ns;
    }
}

impl Listener for Witness {
    fn step_began(&mut self, step: &Step) {
        self.at(step.began_ns);
        self.steps.push(step.clone());
    }

    fn step_ended(&mut self, step: &Step) {
        self.at(step.ends_ns);
    }

    fn token(&mut self, id: u64, index: u32, at_ns: u64) {
        self.at(at_ns);
        self.tokens.push((id, index, at_ns));
    }

    fn ended(&mut self, facts: &RequestFacts) {
        self.at(facts.ended_ns);
        self.ended.push(*facts);
    }
}

#[derive(Clone, Debug)]
struct GenerationRequest {
    at_ns: u64,
    /// Equal families begin alike.
    family: u64,
    prompt: u32,
    output: u32,
    priority: i32,
    /// Taken back so long after it came.
    leaves_after_ns: Option<u64>,
}

const STEP: u64 = 1_000;
const MODEL_LEN: u32 = 250;

fn asks() -> impl Strategy<Value = Vec<GenerationRequest>> {
    let ask = (
        0..40 * STEP,
        0_u64..4,
        1_u32..200,
        1_u32..40,
        0_i32..3,
        prop_oneof![4 => Just(None), 1 => (0..60 * STEP).prop_map(Some)],
    );
    let ask = ask.prop_map(|(at_ns, family, prompt, output, priority, leaves_after_ns)| {
        GenerationRequest { at_ns, family, prompt, output, priority, leaves_after_ns }
    });
    proptest::collection::vec(ask, 1..40)
}

prop_compose! {
    fn configs()(
        blocks in 18_u32..80,
        max_num_seqs in 1_u32..12,
        max_num_batched_tokens in 8_u32..300,
        threshold in prop_oneof![Just(0_u32), 5_u32..60],
        switches in any::<[bool; 5]>(),
        pipeline_stages in 1_u32..4,
        watermark in prop_oneof![Just(0.0), Just(0.05)],
        v0 in prop_oneof![3 => Just(None), 1 => (1_u32..6).prop_map(Some)],
    ) -> SchedulerConfig {
        let [prefix_caching, reserve_full_prompt, by_priority, async_scheduling, cuts] = switches;
        // The older generation takes prompts whole, and a whole prompt needs a step that holds it.
        let chunked_prefill = cuts && v0.is_none();
        let least = if chunked_prefill { max_num_seqs } else { MODEL_LEN };
        SchedulerConfig {
            block_size: 16,
            blocks,
            max_num_seqs,
            max_num_batched_tokens: max_num_batched_tokens.max(least),
            max_model_len: MODEL_LEN,
            long_prefill_token_threshold: threshold,
            chunked_prefill,
            prefix_caching,
            reserve_full_prompt,
            watermark,
            policy: if by_priority { Policy::Priority } else { Policy::Fcfs },
            generation: v0.map_or(Generation::V1, |scheduler_steps| {
                Generation::V0 { scheduler_steps }
            }),
            async_scheduling,
            pipeline_stages: if v0.is_some() { 1 } else { pipeline_stages },
            speculation: None,
        }
    }
}

fn request(id: u64, ask: &GenerationRequest) -> SchedulerRequest {
    let shared = ask.prompt / 2;
    let segments = [(ask.family, shared), (1_000 + id, ask.prompt - shared)];
    SchedulerRequest {
        id,
        prompt: HashedPrompt::of_segments(segments, 16),
        answer_seed: id,
        stop: StopRules::after(ask.output),
        priority: ask.priority,
    }
}

/// Plays all requests to their end.
fn play(
    config: &SchedulerConfig,
    asks: &[GenerationRequest],
) -> (Witness, Scheduler<ConstantStep>) {
    let mut scheduler = Scheduler::new(config.clone(), ConstantStep(STEP));
    let mut witness = Witness::default();
    let mut doings: Vec<(u64, u64, bool)> = Vec::new();
    for (id, ask) in (0..).zip(asks) {
        doings.push((ask.at_ns, id, true));
        doings.extend(ask.leaves_after_ns.map(|after| (ask.at_ns + after, id, false)));
    }
    doings.sort_by_key(|(at_ns, id, comes)| (*at_ns, !comes, *id));
    for (at_ns, id, comes) in doings {
        if comes {
            let request = request(id, &asks[usize::try_from(id).unwrap()]);
            scheduler.submit(at_ns, request, &mut witness).unwrap();
        } else {
            scheduler.abort(at_ns, id, &mut witness);
        }
    }
    let mut rounds = 0;
    while let Some(at_ns) = scheduler.next_event() {
        scheduler.advance(at_ns, &mut witness);
        rounds += 1;
        assert!(rounds < 100_000, "it comes to no end: {:?}", scheduler.gauges());
    }
    (witness, scheduler)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_request_ends_once_and_all_blocks_come_back(config in configs(), asks in asks()) {
        let (witness, scheduler) = play(&config, &asks);
        let mut ids: Vec<u64> = witness.ended.iter().map(|facts| facts.id).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..asks.len() as u64).collect::<Vec<_>>());
        let gauges = scheduler.gauges();
        prop_assert_eq!(gauges, Gauges { running: 0, waiting: 0, kv_usage: 0.0 });
    }

    #[test]
    fn answers_have_their_length_and_moments_their_order(config in configs(), asks in asks()) {
        let (witness, _) = play(&config, &asks);
        let mut seen: HashMap<u64, u32> = HashMap::new();
        for (id, index, _) in &witness.tokens {
            let count = seen.entry(*id).or_default();
            prop_assert_eq!(*count, *index);
            *count += 1;
        }
        for facts in &witness.ended {
            let ask = &asks[usize::try_from(facts.id).unwrap()];
            prop_assert_eq!(facts.output_tokens, seen.get(&facts.id).copied().unwrap_or(0));
            prop_assert!(ask.at_ns <= facts.arrived_ns);
            let moments = [
                Some(facts.arrived_ns),
                facts.scheduled_ns,
                facts.first_token_ns,
                facts.last_token_ns,
                Some(facts.ended_ns),
            ];
            prop_assert!(moments.iter().flatten().is_sorted(), "{facts:?}");
            if facts.end != RequestEnd::Abort {
                let room = config.max_model_len - ask.prompt;
                prop_assert_eq!(facts.output_tokens, ask.output.min(room));
            }
        }
    }

    #[test]
    fn no_step_is_over_its_bounds(config in configs(), asks in asks()) {
        let (witness, _) = play(&config, &asks);
        for step in &witness.steps {
            let tokens: u32 = step.scheduled.iter().map(|(_, tokens)| tokens).sum();
            prop_assert_eq!(u64::from(tokens), step.shape.tokens());
            prop_assert!(step.scheduled.len() <= config.max_num_seqs as usize);
            prop_assert!(step.scheduled.iter().all(|(_, tokens)| 0 < *tokens));
            prop_assert!(tokens <= config.max_num_batched_tokens);
            let mut ids: Vec<u64> = step.scheduled.iter().map(|(id, _)| *id).collect();
            ids.sort_unstable();
            ids.dedup();
            prop_assert_eq!(ids.len(), step.scheduled.len());
        }
    }

    /// Each token of a prompt is computed once, or spared by the cache, or computed again after
    /// its blocks were lost.
    #[test]
    fn no_work_is_lost_or_made_up(config in configs(), asks in asks()) {
        let (witness, _) = play(&config, &asks);
        let mut computed: HashMap<u64, u64> = HashMap::new();
        for step in &witness.steps {
            for (id, cached) in &step.admitted {
                *computed.entry(*id).or_default() += u64::from(*cached);
            }
            for (id, tokens) in &step.scheduled {
                *computed.entry(*id).or_default() += u64::from(*tokens);
            }
        }
        for facts in witness.ended.iter().filter(|facts| facts.end != RequestEnd::Abort) {
            // The last token of an answer is never fed back.
            let once = u64::from(facts.prompt_tokens + facts.output_tokens - 1);
            let computed = computed[&facts.id];
            if facts.preemptions == 0 {
                prop_assert_eq!(computed, once, "{:?}", facts);
            } else {
                prop_assert!(once <= computed, "{facts:?}");
            }
        }
    }

    /// While anybody could be served, a step is under way.
    #[test]
    fn it_never_rests_while_there_is_work(config in configs(), asks in asks()) {
        let asks: Vec<GenerationRequest> =
            asks.into_iter().map(|ask| GenerationRequest { leaves_after_ns: None, ..ask }).collect();
        let (witness, _) = play(&config, &asks);
        let mut gaps = Vec::new();
        let mut busy_until = 0;
        for step in &witness.steps {
            if busy_until < step.began_ns {
                gaps.push((busy_until, step.began_ns));
            }
            busy_until = busy_until.max(step.ends_ns);
        }
        for (from, until) in gaps {
            let here = witness.ended.iter().find(|facts| {
                facts.arrived_ns < until && from < facts.ended_ns && facts.arrived_ns != until
            });
            prop_assert!(here.is_none(), "idle from {from} to {until} with {here:?}");
        }
    }

    /// The moments that it tells are all that it depends on.
    #[test]
    fn a_replay_of_told_arrivals_gives_the_same_steps(config in configs(), asks in asks()) {
        let (first, _) = play(&config, &asks);
        let mut again = asks;
        for facts in &first.ended {
            let ask = &mut again[usize::try_from(facts.id).unwrap()];
            ask.at_ns = facts.arrived_ns;
            ask.leaves_after_ns = (facts.end == RequestEnd::Abort)
                .then(|| facts.ended_ns - facts.arrived_ns);
        }
        let (second, _) = play(&config, &again);
        prop_assert_eq!(first.steps, second.steps);
        prop_assert_eq!(first.tokens, second.tokens);
        prop_assert_eq!(first.ended, second.ended);
    }
}

#[test]
fn a_prompt_that_was_there_before_is_spared_but_for_its_last_block() {
    let config = SchedulerConfig::default();
    let mut scheduler = Scheduler::new(config, ConstantStep(STEP));
    let mut witness = Witness::default();
    for id in 0..2 {
        let prompt = HashedPrompt::of_segments([(7, 64)], 16);
        let stop = StopRules::after(1);
        let request = SchedulerRequest { id, prompt, answer_seed: id, stop, priority: 0 };
        scheduler.submit(id * 10 * STEP, request, &mut witness).unwrap();
    }
    scheduler.advance(100 * STEP, &mut witness);
    let cached: Vec<u32> = witness.ended.iter().map(|facts| facts.cached_tokens).collect();
    assert_eq!(cached, [0, 48]);
    assert_eq!(scheduler.counters().prefix_hits, 48);
    assert_eq!(scheduler.counters().prefix_queries, 128);
}

#[test]
fn an_answer_is_found_again_in_the_next_turn() {
    let config = SchedulerConfig::default();
    let mut scheduler = Scheduler::new(config, ConstantStep(STEP));
    let mut witness = Witness::default();
    let mut ask = |id, segments: &[(u64, u32)], output| {
        let prompt = HashedPrompt::of_segments(segments.iter().copied(), 16);
        let stop = StopRules::after(output);
        let request = SchedulerRequest { id, prompt, answer_seed: 55, stop, priority: 0 };
        scheduler.submit(id * 1_000 * STEP, request, &mut witness).unwrap();
        scheduler.advance((id + 1) * 1_000 * STEP, &mut witness);
    };
    ask(0, &[(7, 40)], 41);
    ask(1, &[(7, 40), (55, 41), (8, 20)], 1);
    // Of the 81 tokens the last was never fed back.
    assert_eq!(witness.ended[1].cached_tokens, 80);
}

#[test]
fn a_request_without_a_prompt_or_without_room_for_an_answer_is_refused() {
    let config = SchedulerConfig { max_model_len: 100, ..SchedulerConfig::default() };
    let mut scheduler = Scheduler::new(config, ConstantStep(STEP));
    let mut submit = |tokens| {
        let prompt = HashedPrompt::of_segments([(1, tokens)], 16);
        let stop = StopRules::after(1);
        let request = SchedulerRequest { id: 1, prompt, answer_seed: 1, stop, priority: 0 };
        scheduler.submit(0, request, &mut ())
    };
    assert_eq!(submit(0), Err(Refusal::Empty));
    assert_eq!(submit(100), Err(Refusal::TooLong { tokens: 100, max_model_len: 100 }));
    assert_eq!(submit(99), Ok(()));
}

#[test]
fn stop_rules_are_checked_in_their_order() {
    let end = |stop: StopRules| {
        let mut scheduler = Scheduler::new(SchedulerConfig::default(), ConstantStep(STEP));
        let mut witness = Witness::default();
        let prompt = HashedPrompt::of_segments([(1, 5)], 16);
        let request = SchedulerRequest { id: 1, prompt, answer_seed: 1, stop, priority: 0 };
        scheduler.submit(0, request, &mut witness).unwrap();
        scheduler.advance(100 * STEP, &mut witness);
        (witness.ended[0].output_tokens, witness.ended[0].end)
    };
    let rules = StopRules::after(10);
    assert_eq!(end(rules), (10, RequestEnd::Length));
    assert_eq!(end(StopRules { eos_at: Some(4), ..rules }), (4, RequestEnd::Stop));
    assert_eq!(end(StopRules { stop_at: Some(10), ..rules }), (10, RequestEnd::Stop));
    assert_eq!(end(StopRules { eos_at: Some(4), min_tokens: 7, ..rules }), (7, RequestEnd::Stop));
    assert_eq!(end(StopRules { eos_at: Some(11), ..rules }), (10, RequestEnd::Length));
}

#[test]
fn a_request_without_an_answer_ends_with_its_prompt() {
    let config = SchedulerConfig { max_num_batched_tokens: 30, ..SchedulerConfig::default() };
    let mut scheduler = Scheduler::new(config, ConstantStep(STEP));
    let mut witness = Witness::default();
    let prompt = HashedPrompt::of_segments([(1, 50)], 16);
    let stop = StopRules::NO_ANSWER;
    let request = SchedulerRequest { id: 1, prompt, answer_seed: 1, stop, priority: 0 };
    scheduler.submit(0, request, &mut witness).unwrap();
    scheduler.advance(100 * STEP, &mut witness);
    let facts = witness.ended[0];
    assert_eq!((facts.output_tokens, facts.first_token_ns), (0, None));
    assert_eq!((facts.ended_ns, facts.end), (2 * STEP, RequestEnd::Stop));
    assert!(witness.tokens.is_empty());
    let counters = scheduler.counters();
    assert_eq!((counters.prompt_tokens, counters.generation_tokens), (50, 0));
    assert_eq!(scheduler.gauges(), Gauges { running: 0, waiting: 0, kv_usage: 0.0 });
}

#[test]
fn blocks_have_the_names_of_all_tokens_before_them() {
    let names =
        |segments: &[(u64, u32)]| HashedPrompt::of_segments(segments.iter().copied(), 16).hashes;
    let (long, short) = (names(&[(1, 64)]), names(&[(1, 40)]));
    assert_eq!((long.len(), short.len()), (4, 2));
    assert_eq!(long[..2], short[..]);
    assert_ne!(names(&[(2, 16), (1, 16)])[1], names(&[(1, 16), (1, 16)])[1]);
    let mut hasher = PromptHasher::new(16);
    let by_hand: Vec<u64> = (0..64).filter_map(|index| hasher.push(token(1, index))).collect();
    assert_eq!(by_hand, long);
}

fn alone(policy: Policy) -> (Scheduler<ConstantStep>, Witness) {
    let config =
        SchedulerConfig { max_num_seqs: 1, prefix_caching: false, policy, ..<_>::default() };
    (Scheduler::new(config, ConstantStep(STEP)), Witness::default())
}

fn asked(id: u64) -> SchedulerRequest {
    let ask = GenerationRequest {
        at_ns: 0,
        family: id,
        prompt: 10,
        output: 1,
        priority: 0,
        leaves_after_ns: None,
    };
    request(id, &ask)
}

#[test]
fn who_leaves_the_line_is_never_first_and_the_others_keep_their_order() {
    for policy in [Policy::Fcfs, Policy::Priority] {
        let (mut scheduler, mut witness) = alone(policy);
        for id in 0..6 {
            scheduler.submit(0, asked(id), &mut witness).unwrap();
        }
        for id in [1, 4, 0] {
            assert!(scheduler.abort(0, id, &mut witness));
        }
        assert_eq!(scheduler.gauges().waiting, 3);
        scheduler.advance(100 * STEP, &mut witness);
        let order: Vec<u64> = witness.tokens.iter().map(|(id, ..)| *id).collect();
        assert_eq!(order, [2, 3, 5], "{policy:?}");
    }
}

#[test]
fn those_who_come_and_leave_behind_one_that_stays_do_not_pile_up() {
    let (mut scheduler, mut witness) = alone(Policy::Fcfs);
    for id in 0..2 {
        scheduler.submit(0, asked(id), &mut witness).unwrap();
    }
    for id in 2..10_000 {
        scheduler.submit(0, asked(id), &mut witness).unwrap();
        assert!(scheduler.abort(0, id, &mut witness));
    }
    assert_eq!(scheduler.gauges().waiting, 2);
    scheduler.advance(100 * STEP, &mut witness);
    assert_eq!(witness.tokens.iter().map(|(id, ..)| *id).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn drafts_bring_the_same_tokens_in_fewer_steps() {
    let run = |speculation| {
        let config = SchedulerConfig { speculation, ..SchedulerConfig::default() };
        let mut scheduler = Scheduler::new(config, ConstantStep(STEP));
        let mut witness = Witness::default();
        for id in 0..5 {
            let prompt = HashedPrompt::of_segments([(id, 20)], 16);
            let stop = StopRules::after(50);
            let request = SchedulerRequest { id, prompt, answer_seed: id, stop, priority: 0 };
            scheduler.submit(0, request, &mut witness).unwrap();
        }
        scheduler.advance(1_000 * STEP, &mut witness);
        assert!(scheduler.gauges().kv_usage <= 0.0, "all blocks are free");
        (witness, scheduler.counters())
    };
    let (plain, counters) = run(None);
    assert_eq!(counters.drafts, Drafts::default());
    let (drafted, counters) = run(Some(Speculation { tokens: 3, acceptance: 0.7 }));
    assert_eq!(counters.generation_tokens, 250);
    let indices = |witness: &Witness, id: u64| -> Vec<u32> {
        let own = witness.tokens.iter().filter(|token| token.0 == id);
        own.map(|token| token.1).collect()
    };
    let mut sum = Drafts::default();
    for facts in &drafted.ended {
        assert_eq!(indices(&drafted, facts.id), (0..50).collect::<Vec<_>>());
        let mut moments: Vec<u64> =
            drafted.tokens.iter().filter(|it| it.0 == facts.id).map(|it| it.2).collect();
        moments.dedup();
        assert_eq!(moments.len() as u64, 50 - facts.drafts.accepted, "one output for each step");
        assert!(facts.drafts.accepted < facts.drafts.drafted && facts.end == RequestEnd::Length);
        sum.steps += facts.drafts.steps;
        sum.accepted += facts.drafts.accepted;
    }
    assert_eq!((sum.steps, sum.accepted), (counters.drafts.steps, counters.drafts.accepted));
    assert!(2 * drafted.steps.len() < plain.steps.len(), "{}", drafted.steps.len());
}
