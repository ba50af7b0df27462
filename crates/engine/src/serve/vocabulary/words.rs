//! The rule that makes the words: syllables of one consonant and one vowel, in five patterns.
//!
//! No two ids give the same word, because the pattern of consonants and vowels tells the five
//! apart and every letter stands at a fixed place in its pattern.

use crate::scheduler::tokens::SPECIAL_TOKENS;

/// The word of an id below the size of the vocabulary.
pub(super) fn word(id: u32) -> String {
    let Some(number) = id.checked_sub(SPECIAL_TOKENS) else {
        return special(id);
    };
    let (c1, v1) = syllable(number);
    let (c2, v2) = syllable(number / SYLLABLES);
    match number / (SYLLABLES * SYLLABLES) {
        0 => format!("{c1}{v1}{c2}{v2}"),
        1 => format!("{c1}{v1}{c2}{v2}n"),
        2 => format!("{c1}{v1}r{c2}{v2}"),
        3 => format!("{c1}{v1}n{c2}{v2}s"),
        _ => format!("{c1}{v1}{c2}{v2}la"),
    }
}

fn syllable(number: u32) -> (char, char) {
    let place = number % SYLLABLES;
    let vowels = u32::try_from(VOWELS.len()).unwrap_or(1);
    (CONSONANTS[(place / vowels) as usize], VOWELS[(place % vowels) as usize])
}

/// Padding, begin, end, unknown, the marks of a chat, and some for later.
fn special(id: u32) -> String {
    match NAMED.get(id as usize) {
        Some(name) => (*name).to_owned(),
        None => format!("<|reserved_{id}|>"),
    }
}

const NAMED: [&str; 9] = [
    "<pad>",
    "<s>",
    "</s>",
    "<unk>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|tool|>",
    "<|end|>",
];

const CONSONANTS: [char; 16] =
    ['b', 'd', 'f', 'g', 'h', 'j', 'k', 'l', 'm', 'n', 'p', 'r', 's', 't', 'v', 'z'];
const VOWELS: [char; 5] = ['a', 'e', 'i', 'o', 'u'];
const SYLLABLES: u32 = 80;
