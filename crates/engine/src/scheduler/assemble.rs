//! Putting a step together as vLLM v1 does: running requests first, then those that wait; prompts
//! and answers alike are requests with tokens to catch up on.

use super::blocks::BlockId;
use super::request::{Policy, StepShape};
use super::state::{Entry, State, rank};

/// Who may come in from the queue: those who had arrived by this moment; all without one.
pub(super) type Until = Option<u64>;

pub(super) fn assemble(state: &mut State, now_ns: u64, until: Until) -> Batch {
    let mut batch = Batch::default();
    let mut budget = state.config.max_num_batched_tokens;
    go_on(state, &mut batch, &mut budget);
    // Who has just lost blocks would only lose them again to newcomers.
    if batch.preempted.is_empty() {
        admit(state, &mut batch, &mut budget, now_ns, until);
    }
    batch
}

/// Gives running requests their next tokens, in order.
fn go_on(state: &mut State, batch: &mut Batch, budget: &mut u32) {
    let mut next = 0;
    while next < state.running.len() && 0 < *budget {
        let place = state.running[next];
        let entry = state.entry(place);
        let room = state.config.max_model_len.saturating_sub(entry.computed + 1);
        let missing = entry.known().saturating_sub(entry.computed);
        let tokens = capped(state, missing).min(*budget).min(room);
        if tokens == 0 {
            // Its step is under way.
            next += 1;
            continue;
        }
        let target = entry.computed + tokens;
        if !make_room(state, batch, budget, &mut next, place, target) {
            return;
        }
        batch.add(place, state.entry(place), tokens);
        *budget -= tokens;
        next += 1;
    }
}

/// Allocates blocks for a running request, if need be at the cost of others. Returns whether it kept
/// its own.
fn make_room(
    state: &mut State,
    batch: &mut Batch,
    budget: &mut u32,
    next: &mut usize,
    place: usize,
    tokens: u32,
) -> bool {
    while !state.allocate(place, tokens, &[]) {
        let index = victim(state);
        let loser = state.running.remove(index);
        if index < *next {
            *next -= 1;
        }
        *budget += batch.remove(loser).unwrap_or(0);
        batch.preempted.push(state.entry(loser).facts.id);
        state.preempt(loser);
        if loser == place {
            return false;
        }
    }
    true
}

/// The index in the running list of the request that gives way.
fn victim(state: &State) -> usize {
    let last = state.running.len() - 1;
    match state.config.policy {
        Policy::Fcfs => last,
        Policy::Priority => {
            let worst = (0..=last).max_by_key(|index| rank(state.entry(state.running[*index])));
            worst.unwrap_or(last)
        }
    }
}

/// Lets requests in from the queue until one does not fit: none overtakes.
fn admit(state: &mut State, batch: &mut Batch, budget: &mut u32, now_ns: u64, until: Until) {
    let mut found = Vec::new();
    while 0 < *budget
        && state.running.len() < state.config.max_num_seqs as usize
        && let Some(place) = state.first_waiting(until)
    {
        state.cached_blocks(place, &mut found);
        let Some(tokens) = first_part(state, place, &found, *budget) else { return };
        enter(state, batch, place, &found, tokens, now_ns);
        *budget -= tokens;
    }
}

/// How many tokens of a waiting request the step takes, and gives it its blocks; `None` when it
/// does not fit.
fn first_part(state: &mut State, place: usize, found: &[BlockId], budget: u32) -> Option<u32> {
    let known = state.entry(place).known();
    let cached = cached_tokens(state, found);
    let wanted = capped(state, known - cached);
    if !state.config.chunked_prefill && budget < wanted {
        return None;
    }
    let tokens = wanted.min(budget);
    let whole = if state.config.reserve_full_prompt { known } else { cached + tokens };
    if state.pool.free() < state.blocks_missing(place, whole, found) + watermark(state) {
        return None;
    }
    state.allocate(place, cached + tokens, found).then_some(tokens)
}

/// A waiting request that has its blocks becomes a running one.
pub(super) fn enter(
    state: &mut State,
    batch: &mut Batch,
    place: usize,
    found: &[BlockId],
    tokens: u32,
    now_ns: u64,
) {
    state.admit(place);
    let cached = cached_tokens(state, found);
    let looked_up = state.config.prefix_caching;
    let entry = state.entry_mut(place);
    entry.computed = cached;
    entry.admit(now_ns, cached);
    let (known, again) = (u64::from(entry.known()), 0 < entry.facts.preemptions);
    batch.admitted.push((entry.facts.id, cached));
    batch.add(place, state.entry(place), tokens);
    if looked_up {
        let counters = &mut state.counters;
        let (queries, hits) = if again {
            (&mut counters.prefix_queries_preempted, &mut counters.prefix_hits_preempted)
        } else {
            (&mut counters.prefix_queries, &mut counters.prefix_hits)
        };
        *queries += known;
        *hits += u64::from(cached);
    }
}

pub(super) fn cached_tokens(state: &State, found: &[BlockId]) -> u32 {
    u32::try_from(found.len()).unwrap_or(u32::MAX) * state.config.block_size
}

/// A long prompt leaves some of the step to others, if there are others.
fn capped(state: &State, tokens: u32) -> u32 {
    match state.config.long_prefill_token_threshold {
        0 => tokens,
        _ if state.running.len() + state.waiting.len() <= 1 => tokens,
        most => tokens.min(most),
    }
}

/// Blocks that admission leaves free; none while nothing runs, or nothing ever would.
pub(super) fn watermark(state: &State) -> u32 {
    if state.running.is_empty() {
        return 0;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count that fits"
    )]
    let blocks = (state.config.watermark * f64::from(state.config.blocks)) as u32;
    blocks
}

/// A step of prompts; empty when none waits or none fits.
pub(super) fn prompts(state: &mut State, now_ns: u64) -> Batch {
    let mut batch = Batch::default();
    let mut budget = state.config.max_num_batched_tokens;
    let mut found = Vec::new();
    while state.running.len() < state.config.max_num_seqs as usize
        && let Some(place) = state.first_waiting(None)
    {
        let known = state.entry(place).known();
        // The budget counts whole prompts, whatever the cache spares.
        if budget < known && !batch.parts.is_empty() {
            break;
        }
        state.cached_blocks(place, &mut found);
        let fits = state.blocks_missing(place, known, &found) + watermark(state);
        if state.pool.free() < fits || !state.allocate(place, known, &found) {
            break;
        }
        let cached = cached_tokens(state, &found);
        enter(state, &mut batch, place, &found, known - cached, now_ns);
        budget = budget.saturating_sub(known);
    }
    batch
}

/// A step of one token for each running answer. Those that find no block give way, the last first.
pub(super) fn answers(state: &mut State) -> Batch {
    let mut batch = Batch::default();
    let mut next = 0;
    while next < state.running.len() {
        let place = state.running[next];
        let entry = state.entry(place);
        let tokens = entry.known().saturating_sub(entry.computed);
        let target = entry.computed + tokens;
        let mut kept = true;
        while kept && !state.allocate(place, target, &[]) {
            let loser = state.running.pop().unwrap_or(place);
            batch.preempted.push(state.entry(loser).facts.id);
            state.preempt(loser);
            kept = loser != place;
        }
        if !kept {
            break;
        }
        if 0 < tokens {
            batch.add(place, state.entry(place), tokens);
        }
        next += 1;
    }
    batch
}

/// A request's part in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) place: usize,
    pub(super) serial: u64,
    /// How often it had lost its blocks: what a step computed for blocks that are gone is void.
    pub(super) preemptions: u32,
    pub(super) tokens: u32,
    /// Whether it brings a token: all that was known is computed with it.
    pub(super) yields: bool,
}

#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) parts: Vec<Part>,
    /// Ids of requests that lost their blocks.
    pub(super) preempted: Vec<u64>,
    /// Ids of requests that came in, with the tokens that the cache spared them.
    pub(super) admitted: Vec<(u64, u32)>,
}

impl Batch {
    pub(super) fn add(&mut self, place: usize, entry: &Entry, tokens: u32) {
        let (serial, preemptions) = (entry.serial, entry.facts.preemptions);
        let yields = entry.computed + tokens == entry.known();
        self.parts.push(Part { place, serial, preemptions, tokens, yields });
    }

    /// Takes a request out again; gives back the tokens of its part.
    pub(super) fn remove(&mut self, place: usize) -> Option<u32> {
        let index = self.parts.iter().position(|part| part.place == place)?;
        Some(self.parts.remove(index).tokens)
    }

    /// Counts the tokens of all parts as computed, and returns what computing them takes.
    pub(super) fn settle(&self, state: &mut State) -> StepShape {
        let mut shape = StepShape::default();
        for part in &self.parts {
            let entry = state.entry_mut(part.place);
            let before = entry.computed;
            entry.computed += part.tokens;
            let is_decode = part.tokens == 1
                && 0 < entry.facts.output_tokens
                && entry.computed == entry.known();
            if is_decode {
                shape.decodes += 1;
                shape.decode_context += u64::from(entry.computed);
                shape.decode_context_max = shape.decode_context_max.max(entry.computed);
            } else {
                let (tokens, before) = (f64::from(part.tokens), f64::from(before));
                shape.prefills += 1;
                shape.prefill_tokens += u64::from(part.tokens);
                shape.prefill_pairs += tokens * (before + tokens / 2.0);
            }
        }
        shape
    }
}
