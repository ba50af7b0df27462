//! The API process in front of a scheduler.

use serde::{Deserialize, Serialize};

/// Time that the API process spends before a request reaches the scheduler and on what it sends:
/// one process, so requests queue for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Front {
    /// Parsing, checking and handing over.
    pub per_request_ns: u64,
    /// Tokenising.
    pub per_prompt_token_ns: u64,
    /// Turning a token back into text and sending it.
    pub per_output_token_ns: u64,
}

impl Front {
    /// One that takes no time at all.
    pub const IMMEDIATE: Self =
        Self { per_request_ns: 0, per_prompt_token_ns: 0, per_output_token_ns: 0 };
}

/// Plausible for one Python process and a tokenizer in native code; measured nowhere in particular.
impl Default for Front {
    fn default() -> Self {
        Self { per_request_ns: 1_500_000, per_prompt_token_ns: 1_000, per_output_token_ns: 20_000 }
    }
}
