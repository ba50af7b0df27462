//! Speculative decoding: a draft of several tokens is verified in one step, which yields those that are
//! accepted and one more.

use super::blocks::mix;

/// No draft is longer.
pub const DRAFT_TOKENS_MAX: u32 = 16;
const LENGTHS: usize = DRAFT_TOKENS_MAX as usize + 1;

/// How drafts are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speculation {
    /// Tokens of a draft.
    pub tokens: u32,
    /// How likely each of them is accepted if all before it are.
    pub acceptance: f64,
}

/// Drafts that were verified, of one request or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drafts {
    pub steps: u64,
    pub drafted: u64,
    pub accepted: u64,
    /// Steps by how many tokens they accepted.
    pub histogram: [u64; LENGTHS],
}

impl Speculation {
    /// How many of so many drafted tokens are accepted behind the token at `index` of an answer. A model
    /// that is asked again does the same again.
    pub(super) fn accepted(self, seed: u64, index: u32, drafted: u32) -> u32 {
        let is_accepted = |place: &u32| {
            let drawn = mix(seed ^ mix(u64::from(index + place) ^ 0x5bec_0de5));
            ((drawn >> 11) as f64) < self.acceptance * (1_u64 << 53) as f64
        };
        u32::try_from((0..drafted).take_while(is_accepted).count()).unwrap_or(drafted)
    }
}

impl Drafts {
    pub(super) fn add(&mut self, drafted: u32, accepted: u32) {
        self.steps += 1;
        self.drafted += u64::from(drafted);
        self.accepted += u64::from(accepted);
        self.histogram[(accepted as usize).min(LENGTHS - 1)] += 1;
    }

    /// Steps that accepted the token at this position of their draft, from zero.
    pub fn accepted_at(&self, position: usize) -> u64 {
        self.histogram.iter().skip(position + 1).sum()
    }
}
