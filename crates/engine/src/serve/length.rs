//! How long an answer becomes that nobody bounds, and what decides its tokens.

use crate::draws::{Draws, Purpose};
use crate::scheduler::tokens::mix;

/// With how many tokens the answer of a seed ends by itself, its end of sequence included.
pub(crate) fn natural_length(seed: u64) -> u32 {
    let mut draws = Draws::new(seed, 0, Purpose::Length);
    let tokens = MEDIAN_TOKENS * libm::exp(SIGMA * draws.normal());
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and a float becomes the largest integer rather than wrap"
    )]
    let tokens = libm::round(tokens) as u32;
    tokens.max(1)
}

/// The seed of the answers to a prompt: the request's own seed, or else the engine's, and the
/// prompt, because a model does not say the same to everybody.
pub(crate) fn prompt_seed(asked: Option<u64>, engine_seed: u64, prompt: &[u32]) -> u64 {
    let start = asked.map_or(engine_seed ^ PROMPT_SEED, |seed| seed ^ ASKED_SEED);
    prompt.iter().fold(mix(start), |state, id| mix(state ^ u64::from(*id)))
}

/// The seed of one of the answers to a prompt.
pub(crate) fn answer_seed(prompt_seed: u64, sibling: u16) -> u64 {
    if sibling == 0 { prompt_seed } else { mix(prompt_seed ^ u64::from(sibling)) }
}

const MEDIAN_TOKENS: f64 = 256.0;
const SIGMA: f64 = 0.7;

/// Keeps the empty prompt of the seed zero from being zero again.
const PROMPT_SEED: u64 = 0x2545_f491_4f6c_dd1d;
/// Keeps a request's seed from meaning the same as the engine's.
const ASKED_SEED: u64 = 0x9fb2_1c65_1e98_df25;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_log_normal_around_their_median() {
        let mut lengths: Vec<u32> = (0..10_001).map(natural_length).collect();
        lengths.sort_unstable();
        let median = lengths[5_000];
        assert!((248..=264).contains(&median), "{median}");
        // One sigma to each side: 256·e^±0.7.
        let (low, high) = (lengths[1_587], lengths[8_413]);
        assert!((121..=133).contains(&low) && (495..=536).contains(&high), "{low} {high}");
    }

    #[test]
    fn the_same_prompt_and_seed_say_the_same_and_choices_differ() {
        let of = |asked, engine, prompt: &[u32], sibling| {
            answer_seed(prompt_seed(asked, engine, prompt), sibling)
        };
        assert_eq!(of(None, 1, &[5, 6], 0), of(None, 1, &[5, 6], 0));
        assert_ne!(of(None, 1, &[5, 6], 0), of(None, 2, &[5, 6], 0));
        assert_ne!(of(None, 1, &[5, 6], 0), of(None, 1, &[6, 5], 0));
        assert_ne!(of(None, 1, &[5, 6], 0), of(None, 1, &[5, 6], 1));
        assert_eq!(of(Some(9), 1, &[5], 0), of(Some(9), 2, &[5], 0));
        assert_ne!(of(Some(9), 1, &[5], 0), of(Some(9), 1, &[6], 0));
        assert_ne!(of(Some(9), 1, &[5], 0), of(None, 9, &[5], 0));
    }
}
