//! A request as the scheduler sees it: lengths, hashes and rules, but no text.

use super::tokens::{PromptHasher, token};

/// A request to generate.
#[derive(Clone, Debug)]
pub struct SchedulerRequest {
    /// Unique among the requests that are under way.
    pub id: u64,
    pub prompt: HashedPrompt,
    /// Decides the tokens of the answer: the one at `index` is `tokens::token(seed, index)`.
    pub answer_seed: u64,
    pub stop: StopRules,
    /// Counts under `Policy::Priority` only; the smaller number goes first.
    pub priority: i32,
}

/// When an answer ends. Checked in vLLM's order after each token: nothing before `min_tokens`,
/// then the end of sequence, then stop strings, then the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopRules {
    pub min_tokens: u32,
    /// The answer would end by itself with this many tokens, its last one the end of sequence;
    /// `None` when that is to be ignored.
    pub eos_at: Option<u32>,
    /// A stop string or stop token is complete with this many tokens.
    pub stop_at: Option<u32>,
    /// Zero asks for no answer at all.
    pub max_tokens: u32,
}

impl StopRules {
    /// No answer: the request is over when its prompt is computed, as one for an embedding is.
    pub const NO_ANSWER: Self = Self { min_tokens: 0, eos_at: None, stop_at: None, max_tokens: 0 };

    /// An answer of exactly so many tokens.
    pub fn after(tokens: u32) -> Self {
        Self { min_tokens: 0, eos_at: None, stop_at: None, max_tokens: tokens }
    }
}

/// The prompt's length, and the chained hashes of its full blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashedPrompt {
    pub tokens: u32,
    pub hashes: Vec<u64>,
    /// What the answer's blocks are chained to: the tokens behind the last full block.
    pub rest: PromptHasher,
}

impl HashedPrompt {
    /// Of token ids.
    pub fn of_tokens(ids: impl IntoIterator<Item = u32>, block_size: u32) -> Self {
        let mut rest = PromptHasher::new(block_size);
        let mut hashes = Vec::new();
        let mut tokens = 0;
        for id in ids {
            tokens += 1;
            hashes.extend(rest.push(id));
        }
        Self { tokens, hashes, rest }
    }

    /// Of runs of tokens, each a seed and a length: equal seeds begin with equal tokens.
    pub fn of_segments(segments: impl IntoIterator<Item = (u64, u32)>, block_size: u32) -> Self {
        let ids = segments
            .into_iter()
            .flat_map(|(seed, tokens)| (0..tokens).map(move |index| token(seed, index)));
        Self::of_tokens(ids, block_size)
    }
}
