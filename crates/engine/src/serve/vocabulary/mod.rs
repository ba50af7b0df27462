//! The engine's own vocabulary: one word is one token.
//!
//! Any text has as many tokens as it has words between white space. A word that the engine does
//! not know is some token all the same, equal words the same one, so that prompts in any language
//! have exact lengths and share prefixes. The same rule is served as a `tokenizer.json`.

mod chat;
mod tokenizer;
mod words;

use std::collections::HashMap;
use std::sync::LazyLock;

pub(crate) use chat::{Role, Turn};

use crate::scheduler::tokens::{SPECIAL_TOKENS, VOCABULARY, mix};

/// All words, by id and by text.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    words: Vec<String>,
    ids: HashMap<String, u32>,
}

/// Ends a sequence.
pub(crate) const END_OF_SEQUENCE: u32 = 2;
/// Stands for a word that is not known, in `tokenizer.json`.
const UNKNOWN: u32 = 3;

impl Vocabulary {
    /// The one vocabulary: it is made by a rule and never differs.
    pub(crate) fn standard() -> &'static Self {
        static STANDARD: LazyLock<Vocabulary> = LazyLock::new(|| {
            let words: Vec<String> = (0..VOCABULARY).map(words::word).collect();
            let ids = (0..).zip(&words).map(|(id, word)| (word.clone(), id)).collect();
            Vocabulary { words, ids }
        });
        &STANDARD
    }

    pub(crate) fn text(&self, id: u32) -> &str {
        self.words.get(id as usize).map_or("<unk>", String::as_str)
    }

    /// Whether the id stands for no word of a text.
    pub(crate) fn is_special(id: u32) -> bool {
        id < SPECIAL_TOKENS
    }

    /// One token per word that white space separates.
    pub(crate) fn encode(&self, text: &str) -> Vec<u32> {
        text.split_whitespace().map(|word| self.id(word)).collect()
    }

    pub(crate) fn decode(&self, ids: &[u32]) -> String {
        let words: Vec<&str> = ids.iter().map(|id| self.text(*id)).collect();
        words.join(" ")
    }

    fn id(&self, word: &str) -> u32 {
        self.ids.get(word).copied().unwrap_or_else(|| stand_in(word))
    }
}

/// The token that stands for a word which is not known.
fn stand_in(word: &str) -> u32 {
    // FNV-1a, with its weak low bits scattered at the end.
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = mix(word.bytes().fold(0xcbf2_9ce4_8422_2325, step));
    #[expect(clippy::cast_possible_truncation, reason = "below the vocabulary's size")]
    let below = (hash % u64::from(VOCABULARY - SPECIAL_TOKENS)) as u32;
    SPECIAL_TOKENS + below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_one_id_and_is_one_word() {
        let vocabulary = Vocabulary::standard();
        assert_eq!(vocabulary.words.len(), VOCABULARY as usize);
        assert_eq!(vocabulary.ids.len(), VOCABULARY as usize, "two ids have the same word");
        for id in 0..VOCABULARY {
            assert_eq!(vocabulary.encode(vocabulary.text(id)), [id]);
        }
    }

    #[test]
    fn words_that_are_drawn_need_no_escaping() {
        let vocabulary = Vocabulary::standard();
        let drawn = &vocabulary.words[SPECIAL_TOKENS as usize..];
        assert!(drawn.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase())));
        assert!(drawn.iter().all(|word| (4..=6).contains(&word.len())));
    }

    #[test]
    fn unknown_words_are_one_token_each_and_equal_words_equal_tokens() {
        let ids = Vocabulary::standard().encode(" The\u{a0}cat,\n日本語 The\tcat. ");
        assert_eq!(ids.len(), 5);
        assert_eq!(ids[0], ids[3]);
        assert_ne!(ids[1], ids[4]);
        assert!(ids.iter().all(|id| !Vocabulary::is_special(*id) && *id < VOCABULARY));
    }

    #[test]
    fn an_id_that_does_not_exist_has_a_text_all_the_same() {
        assert_eq!(Vocabulary::standard().text(u32::MAX), "<unk>");
    }
}
