//! Saying words one after the other, token by token, in sentences where there are such.

use super::units::Units;
use crate::stream::Stream;

/// An endless talk that follows from a seed; each step is one token.
#[derive(Debug)]
pub(super) struct Speech<'a> {
    units: &'a Units,
    stream: Stream,
    bits: u64,
    draws_left: u32,
    /// Words until the full stop.
    words_left: u32,
    begins: bool,
}

const DRAWS_PER_NUMBER: u32 = 4;
const DRAW_BITS: u32 = u64::BITS / DRAWS_PER_NUMBER;
/// How many words a sentence can have behind its first.
const SENTENCE_WORDS: [u32; 10] = [6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Rare enough that tokenizers join them to little.
const CRUMBS: [&str; 16] =
    ["q", "z", "x", "j", "k", "v", "?", "!", ";", ":", ",", "-", " q", " z", " x", " ?"];

impl<'a> Speech<'a> {
    pub(super) fn new(units: &'a Units, seed: u64) -> Self {
        let stream = Stream::new(seed, "prompt-words", 0);
        Self { units, stream, bits: 0, draws_left: 0, words_left: 0, begins: true }
    }

    /// The first words of a text have no space before them, and are chosen by what they cost there.
    pub(super) fn say_first(&mut self, text: &mut String, firsts: &[String]) {
        self.begin_sentence();
        let place = self.below(firsts.len());
        text.push_str(&firsts[place]);
        self.begins = false;
    }

    pub(super) fn say(&mut self, text: &mut String) {
        let units = self.units;
        if self.words_left == 0 && !self.begins {
            text.push('.');
            self.begins = true;
            return;
        }
        if self.begins {
            self.begin_sentence();
        } else {
            self.words_left = self.words_left.saturating_sub(1);
        }
        let words = match (self.begins, self.words_left) {
            (true, _) => &units.openers,
            (false, 0) => &units.enders,
            (false, _) => &units.words,
        };
        text.push_str(units.gap);
        let place = self.below(words.len());
        text.push_str(&words[place]);
        self.begins = false;
    }

    /// Whether the next token is a full stop.
    pub(super) fn stops(&self) -> bool {
        self.words_left == 0 && !self.begins
    }

    /// Goes on with a word where a full stop would be.
    pub(super) fn say_word(&mut self, text: &mut String) {
        text.push_str(self.units.gap);
        let place = self.below(self.units.words.len());
        text.push_str(&self.units.words[place]);
    }

    /// A letter or a mark behind the last word: the least that a text can be longer by.
    pub(super) fn say_crumb(&mut self, text: &mut String) {
        let place = self.below(CRUMBS.len());
        text.push_str(CRUMBS[place]);
    }

    fn begin_sentence(&mut self) {
        self.words_left = if self.units.enders.is_empty() {
            u32::MAX
        } else {
            let lengths = SENTENCE_WORDS.len();
            SENTENCE_WORDS[self.below(lengths)]
        };
    }

    /// A quarter of a number is enough to choose a word with.
    fn below(&mut self, count: usize) -> usize {
        if self.draws_left == 0 {
            self.bits = self.stream.bits();
            self.draws_left = DRAWS_PER_NUMBER;
        }
        let draw = self.bits & ((1 << DRAW_BITS) - 1);
        self.bits >>= DRAW_BITS;
        self.draws_left -= 1;
        ((draw * count as u64) >> DRAW_BITS) as usize
    }
}
