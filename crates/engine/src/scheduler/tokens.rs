//! Tokens without text: a pure function gives each run of tokens its ids, and chained hashes give
//! each full block its name.

use serde::{Deserialize, Serialize};

/// Words that the engine knows; token ids are below this, special ones are not drawn.
pub const VOCABULARY: u32 = 32_000;
/// Ids below this are special: padding, begin, end, and the marks of a chat.
pub const SPECIAL_TOKENS: u32 = 16;

/// The token at `index` of the run that `seed` names.
pub fn token(seed: u64, index: u32) -> u32 {
    let drawn = mix(seed ^ (u64::from(index) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let range = u64::from(VOCABULARY - SPECIAL_TOKENS);
    // The high half times the range, shifted: even enough, and without a division.
    let below = ((drawn >> 32) * range) >> 32;
    SPECIAL_TOKENS + u32::try_from(below).unwrap_or_default()
}

/// Names blocks of tokens: a block's hash depends on all tokens before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptHasher {
    /// Of the last full block, and then of the tokens behind it.
    state: u64,
    filled: u32,
    block_size: u32,
}

impl PromptHasher {
    pub fn new(block_size: u32) -> Self {
        Self { state: 0x6c62_272e_07bb_0142, filled: 0, block_size }
    }

    /// Takes one more token; gives the hash of the block that it completes.
    pub fn push(&mut self, id: u32) -> Option<u64> {
        self.state = mix(self.state ^ u64::from(id).wrapping_add(0x51_7cc1_b727_220a));
        self.filled += 1;
        if self.filled < self.block_size {
            return None;
        }
        self.filled = 0;
        Some(self.state)
    }
}

/// Scatters the bits of a number; one to one.
pub fn mix(mut x: u64) -> u64 {
    x ^= x >> 30;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
