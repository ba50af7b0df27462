//! Putting a step together as vLLM v0 did: whole prompts before anything else, and then one token
//! for each answer; never both.

use super::assemble::{cached_tokens, enter, watermark};
use super::batch::Batch;
use super::state::State;

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
            batch.preempted.push(state.entry(loser).id);
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
