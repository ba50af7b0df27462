//! A step while it is put together: who has a part in it, and what it will cost.

use super::entry::Entry;
use super::state::State;
use super::step::StepShape;

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
        let (serial, preemptions) = (entry.serial, entry.preemptions());
        let yields = entry.computed + tokens == entry.known();
        self.parts.push(Part { place, serial, preemptions, tokens, yields });
    }

    /// Takes a request out again; gives back the tokens of its part.
    pub(super) fn remove(&mut self, place: usize) -> Option<u32> {
        let index = self.parts.iter().position(|part| part.place == place)?;
        Some(self.parts.remove(index).tokens)
    }

    /// Counts the tokens of all parts as computed, and says what computing them takes.
    pub(super) fn settle(&self, state: &mut State) -> StepShape {
        let mut shape = StepShape::default();
        for part in &self.parts {
            let entry = state.entry_mut(part.place);
            let before = entry.computed;
            entry.computed += part.tokens;
            let is_decode =
                part.tokens == 1 && 0 < entry.outputs && entry.computed == entry.known();
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
