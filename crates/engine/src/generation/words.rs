//! What the engine says: one word per token, drawn from a small vocabulary.

use crate::draws::{Draws, Purpose};

/// The tokens of one answer, in order.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    draws: Draws,
}

impl Words {
    pub(crate) fn new(seed: u64, ordinal: u64) -> Self {
        Self { draws: Draws::new(seed, ordinal, Purpose::Words) }
    }

    /// The next token's place in the vocabulary.
    pub(crate) fn next(&mut self) -> WordId {
        // The top six bits choose one of the 64 words evenly.
        WordId((self.draws.next() >> 58) as u8)
    }
}

/// A token's place in the vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WordId(u8);

impl WordId {
    /// The word; in an answer, a space goes ahead of it.
    pub(crate) fn word(self) -> &'static str {
        VOCABULARY[usize::from(self.0) % VOCABULARY.len()]
    }

    /// The token id as a tokenizer would number it.
    pub(crate) fn token_id(self) -> u32 {
        FIRST_TOKEN_ID + u32::from(self.0)
    }
}

/// Below it are the ids that tokenizers keep for special tokens.
const FIRST_TOKEN_ID: u32 = 256;

/// Plain ASCII without quotes, so that a word needs no escaping in JSON.
const VOCABULARY: [&str; 64] = [
    "amber", "anchor", "apple", "autumn", "basil", "beacon", "birch", "bridge", "candle", "canyon",
    "cedar", "cinder", "cloud", "cobalt", "copper", "coral", "cotton", "crane", "delta", "dune",
    "ember", "falcon", "fern", "field", "flint", "forest", "garnet", "glacier", "granite",
    "harbor", "hazel", "heron", "indigo", "iris", "island", "ivory", "jasper", "juniper",
    "lantern", "lichen", "linen", "maple", "marble", "meadow", "mint", "north", "oak", "olive",
    "opal", "orchard", "pearl", "pine", "quartz", "raven", "river", "saffron", "sage", "silver",
    "slate", "spruce", "tide", "valley", "willow", "winter",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_fixes_the_words() {
        let say = |seed| {
            let mut words = Words::new(seed, 0);
            [words.next(), words.next(), words.next()].map(WordId::word).join(" ")
        };
        assert_eq!(say(1), say(1));
        assert_ne!(say(1), say(2));
    }

    #[test]
    fn every_word_comes_up_and_needs_no_escaping() {
        let mut words = Words::new(0, 0);
        let mut seen = [false; 64];
        (0..2_000).for_each(|_| seen[usize::from(words.next().0)] = true);
        assert!(seen.iter().all(|seen| *seen));
        assert!(VOCABULARY.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase())));
    }
}
