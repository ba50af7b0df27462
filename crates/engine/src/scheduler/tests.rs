//! Properties that hold for any requests, and queues that theory knows the answers for.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;

use super::tokens::{PromptHasher, mix, token};
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
struct Ask {
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

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let ask = (
        0..40 * STEP,
        0_u64..4,
        1_u32..200,
        1_u32..40,
        0_i32..3,
        prop_oneof![4 => Just(None), 1 => (0..60 * STEP).prop_map(Some)],
    );
    let ask = ask.prop_map(|(at_ns, family, prompt, output, priority, leaves_after_ns)| Ask {
        at_ns,
        family,
        prompt,
        output,
        priority,
        leaves_after_ns,
    });
    proptest::collection::vec(ask, 1..40)
}

prop_compose! {
    fn configs()(
        blocks in 18_u32..80,
        max_num_seqs in 1_u32..12,
        max_num_batched_tokens in 8_u32..300,
        threshold in prop_oneof![Just(0_u32), 5_u32..60],
        switches in any::<[bool; 4]>(),
        pipeline_stages in 1_u32..4,
        watermark in prop_oneof![Just(0.0), Just(0.05)],
        v0 in prop_oneof![3 => Just(None), 1 => (1_u32..6).prop_map(Some)],
    ) -> SchedulerConfig {
        let [prefix_caching, reserve_full_prompt, by_priority, async_scheduling] = switches;
        SchedulerConfig {
            block_size: 16,
            blocks,
            max_num_seqs,
            max_num_batched_tokens: max_num_batched_tokens.max(max_num_seqs),
            max_model_len: 250,
            long_prefill_token_threshold: threshold,
            chunked_prefill: true,
            prefix_caching,
            reserve_full_prompt,
            watermark,
            policy: if by_priority { Policy::Priority } else { Policy::Fcfs },
            generation: v0.map_or(Generation::V1, |scheduler_steps| {
                Generation::V0 { scheduler_steps }
            }),
            async_scheduling,
            pipeline_stages: if v0.is_some() { 1 } else { pipeline_stages },
        }
    }
}

fn request(id: u64, ask: &Ask) -> SchedulerRequest {
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
fn play(config: &SchedulerConfig, asks: &[Ask]) -> (Witness, Scheduler<ConstantStep>) {
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
            // A prompt that is longer than the budget has a step of v0 for itself.
            if config.generation == Generation::V1 {
                prop_assert!(tokens <= config.max_num_batched_tokens);
            }
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
        let asks: Vec<Ask> =
            asks.into_iter().map(|ask| Ask { leaves_after_ns: None, ..ask }).collect();
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

/// Even draws from (0, 1).
struct Draws(u64);

impl Draws {
    fn exponential_ns(&mut self, mean_ns: f64) -> u64 {
        self.0 += 1;
        let unit = (mix(self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 11) as f64 + 0.5;
        let unit = unit / (1_u64 << 53) as f64;
        u64::try_from(Duration::from_secs_f64(-unit.ln() * mean_ns / 1e9).as_nanos()).unwrap()
    }
}

struct ExponentialStep(Draws, f64);

impl StepTime for ExponentialStep {
    fn step_ns(&mut self, _: &StepShape) -> u64 {
        self.0.exponential_ns(self.1)
    }
}

/// Mean waiting time of requests of one step each, one at a time, in units of the mean step; with
/// the half-width of its 99.9 % interval from means of batches.
fn waiting(time: impl StepTime, load: f64) -> (f64, f64) {
    const SERVICE_NS: f64 = 1_000_000.0;
    const REQUESTS: u64 = 400_000;
    const BATCHES: usize = 40;
    let config = SchedulerConfig { max_num_seqs: 1, ..SchedulerConfig::default() };
    let mut scheduler = Scheduler::new(config, time);
    let mut witness = Witness::default();
    let mut draws = Draws(17);
    let mut at_ns = 0;
    for id in 0..REQUESTS {
        at_ns += draws.exponential_ns(SERVICE_NS / load);
        let prompt = HashedPrompt::of_segments([(id, 4)], 16);
        let stop = StopRules::after(1);
        let request = SchedulerRequest { id, prompt, answer_seed: id, stop, priority: 0 };
        scheduler.submit(at_ns, request, &mut witness).unwrap();
    }
    scheduler.advance(u64::MAX, &mut witness);
    let waits: Vec<f64> = witness
        .ended
        .iter()
        .map(|facts| (facts.scheduled_ns.unwrap() - facts.arrived_ns) as f64 / SERVICE_NS)
        .collect();
    let means: Vec<f64> = waits
        .chunks(waits.len() / BATCHES)
        .map(|batch| batch.iter().sum::<f64>() / batch.len() as f64)
        .collect();
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    let squares: f64 = means.iter().map(|batch| (batch - mean).powi(2)).sum();
    let error = (squares / (means.len() - 1) as f64 / means.len() as f64).sqrt();
    // Student's t for 39 degrees of freedom.
    (mean, 3.558 * error)
}

#[test]
fn one_slot_with_a_constant_step_waits_as_an_m_d_1_queue() {
    for load in [0.3, 0.6, 0.8] {
        let (mean, half_width) = waiting(ConstantStep(1_000_000), load);
        let theory = load / (2.0 * (1.0 - load));
        assert!((mean - theory).abs() < half_width, "{load}: {mean} ± {half_width}, {theory}");
        assert!(half_width < 0.1 * theory, "{load}: ± {half_width} says nothing of {theory}");
    }
}

#[test]
fn one_slot_with_exponential_steps_waits_as_an_m_m_1_queue() {
    for load in [0.3, 0.6, 0.8] {
        let (mean, half_width) = waiting(ExponentialStep(Draws(1 << 40), 1_000_000.0), load);
        let theory = load / (1.0 - load);
        assert!((mean - theory).abs() < half_width, "{load}: {mean} ± {half_width}, {theory}");
        assert!(half_width < 0.1 * theory, "{load}: ± {half_width} says nothing of {theory}");
    }
}
