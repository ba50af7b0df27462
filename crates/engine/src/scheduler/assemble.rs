//! Putting a step together as vLLM v1 does: running requests first, then those that wait; prompts
//! and answers alike are requests with tokens to catch up on.

use super::batch::Batch;
use super::blocks::BlockId;
use super::config::Policy;
use super::state::State;
use super::waiting::rank;

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

/// Allocates blocks for a running request, if need be at the cost of others. Says whether it kept
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
        batch.preempted.push(state.entry(loser).id);
        state.preempt(loser);
        if loser == place {
            return false;
        }
    }
    true
}

/// Where in the running list the request stands that gives way.
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

/// Lets requests in from the queue until one does not fit: nobody overtakes.
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
    let (known, again) = (u64::from(entry.known()), 0 < entry.preemptions());
    batch.admitted.push((entry.id, cached));
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
