//! Text of a requested length, in tokens.
//!
//! With the model's tokenizer a text has exactly as many tokens as were asked for. Without it the
//! number of words is an *estimate* of the number of tokens, and every result reports it: the words
//! are short and common, so that most tokenizers give one token for each.

mod exact;

#[cfg(test)]
mod tests;

pub use exact::{Frame, TextError};
pub use inferometer_model::Segment;

use std::sync::{Arc, LazyLock};

use inferometer_model::TokenCounter as _;
use inferometer_model::observations::{Correction, InputLength};
use inferometer_model::whole::{to_u32, to_u64};

use crate::plan::Stream;
use crate::tokenizer::Tokenizer;
use exact::Exact;

/// Makes texts of a requested number of tokens.
#[derive(Clone, Debug)]
pub enum TextMaker {
    /// By words, as if each were a token, or as a probe has shown the server to count them.
    Estimating(Option<Correction>),
    Exact(Arc<Exact>),
}

impl TextMaker {
    /// By the model's tokenizer, with what surrounds a prompt as a part of its length.
    pub fn exact(tokenizer: Arc<Tokenizer>, frame: Frame) -> Result<Self, TextError> {
        Ok(Self::Exact(Arc::new(Exact::new(tokenizer, frame)?)))
    }

    pub fn input_length(&self) -> InputLength {
        match self {
            Self::Estimating(None) => InputLength::Estimated,
            Self::Estimating(Some(correction)) => InputLength::Corrected(*correction),
            Self::Exact(_) => InputLength::Exact,
        }
    }

    /// The fewest tokens that a whole prompt can have; one that is asked to be shorter has these.
    pub fn shortest(&self) -> u32 {
        match self {
            Self::Estimating(None) => 1,
            Self::Estimating(Some(correction)) => {
                let tokens = correction.overhead_tokens + correction.tokens_per_word;
                to_u32(libm::round(tokens)).max(1)
            }
            Self::Exact(exact) => exact.framed.overhead + 1,
        }
    }

    /// The fewest tokens that a conversation's first turn can have behind a system message of so
    /// many.
    pub fn shortest_after(&self, system: u32) -> u32 {
        let beside = match self {
            Self::Estimating(_) => 1,
            Self::Exact(exact) => exact.around_opening.unwrap_or(0) + 1,
        };
        system.saturating_add(beside)
    }

    /// Whether what surrounds a system message and a user's is known, where it is counted.
    pub fn knows_openings(&self) -> bool {
        match self {
            Self::Estimating(_) => true,
            Self::Exact(exact) => exact.around_opening.is_some(),
        }
    }

    /// The system message and the user's first words; what surrounds the two is taken from the
    /// user's, where it is counted.
    pub fn opening(&self, system: Segment, own: Segment) -> [String; 2] {
        match self {
            Self::Estimating(_) => [self.bare(&[system]), self.bare(&[own])],
            Self::Exact(exact) => exact.opening(system, own),
        }
    }

    /// A whole prompt: what the server adds around it is part of its length, where that is
    /// counted. Equal beginnings of the segments are equal beginnings of the text.
    pub fn framed(&self, segments: &[Segment]) -> String {
        match self {
            Self::Estimating(correction) => {
                let overhead = correction.map_or(0.0, |correction| correction.overhead_tokens);
                by_words(segments, overhead, *correction)
            }
            Self::Exact(exact) => exact.text(segments, &exact.framed),
        }
    }

    /// Text inside a prompt.
    pub fn bare(&self, segments: &[Segment]) -> String {
        match self {
            Self::Estimating(correction) => by_words(segments, 0.0, *correction),
            Self::Exact(exact) => exact.bare(segments),
        }
    }
}

/// Segments of as many words as their tokens, summed from the beginning, stand for: so the whole is
/// as near as it can be, and what others share does not depend on what follows.
fn by_words(segments: &[Segment], overhead: f64, correction: Option<Correction>) -> String {
    let words_for = |tokens: u64| match correction {
        None => tokens,
        Some(correction) => {
            to_u64(libm::round((tokens as f64 - overhead) / correction.tokens_per_word))
        }
    };
    let mut text = String::new();
    let (mut tokens, mut words) = (0_u64, 0_u64);
    for segment in segments {
        tokens += u64::from(segment.tokens);
        let reached = words_for(tokens).max(words);
        write_words(&mut text, segment.seed, reached - words);
        words = reached;
    }
    if let (true, Some(last)) = (text.is_empty() && 0 < tokens, segments.last()) {
        write_words(&mut text, last.seed, 1);
    }
    text
}

fn write_words(text: &mut String, seed: u64, words: u64) {
    let mut stream = Stream::new(seed, "prompt-text", 0);
    let mut left = usize::try_from(words).unwrap_or(usize::MAX);
    let spaced: &[String] = &SPACED_WORDS;
    text.reserve(left.min(RESERVED_WORDS_MAX).saturating_mul(WORD_BYTES_ROUGHLY));
    let begins = text.is_empty();
    while 0 < left {
        for byte in stream.bits().to_le_bytes().into_iter().take(left) {
            text.push_str(&spaced[usize::from(byte)]);
        }
        left = left.saturating_sub(8);
    }
    if begins && 0 < words {
        text.remove(0);
    }
}

/// A word that a byte can draw has 5.1 bytes on average, with its space.
const WORD_BYTES_ROUGHLY: usize = 6;
/// A longer text grows as it is written.
const RESERVED_WORDS_MAX: usize = 1 << 20;

/// An endless talk that follows from a seed; each step is one token.
#[derive(Debug)]
struct Speech<'a> {
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
    fn new(units: &'a Units, seed: u64) -> Self {
        let stream = Stream::new(seed, "prompt-words", 0);
        Self { units, stream, bits: 0, draws_left: 0, words_left: 0, begins: true }
    }

    /// The first words of a text have no space before them, and are chosen by what they cost there.
    fn say_first(&mut self, text: &mut String, firsts: &[String]) {
        self.begin_sentence();
        text.push_str(&firsts[self.below(firsts.len())]);
        self.begins = false;
    }

    fn say(&mut self, text: &mut String) {
        let units = self.units;
        if self.stops() {
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
        self.say_word(text, words);
        self.begins = false;
    }

    /// Whether the next token is a full stop.
    fn stops(&self) -> bool {
        self.words_left == 0 && !self.begins
    }

    /// One of these words, behind the others.
    fn say_word(&mut self, text: &mut String, words: &[String]) {
        text.push_str(self.units.gap);
        text.push_str(&words[self.below(words.len())]);
    }

    fn begin_sentence(&mut self) {
        self.words_left = if self.units.enders.is_empty() {
            u32::MAX
        } else {
            SENTENCE_WORDS[self.below(SENTENCE_WORDS.len())]
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

/// Words of one token each, as they stand in the middle of a text.
#[derive(Debug)]
struct Units {
    /// What separates two words: a space, which belongs to the word behind it, or nothing.
    gap: &'static str,
    words: Vec<String>,
    /// Words that can begin a sentence; the same as `words` where sentences do not end.
    openers: Vec<String>,
    /// Words that can end one: their full stop is a token, and changes nothing before it.
    enders: Vec<String>,
    /// Whether every word costs the same tokens, whatever its neighbours.
    additive: bool,
}

/// Fewer distinct words than these, and others are looked for.
const WORDS_ENOUGH: usize = 256;
/// With four bits a word, sixteen words have the sixty-four that make a beginning unique.
const WORDS_MIN: usize = 16;
/// Long enough that a tokenizer joins nothing to it.
const ANCHOR: &str = "one two";

impl Units {
    /// `None` when the tokenizer has no usable pieces at all.
    fn probe(tokenizer: &Tokenizer) -> Option<Self> {
        let known = |word: &str| costs_one(tokenizer, " ", word);
        let listed = WORDS.iter().map(|word| (*word).to_owned());
        let mut words: Vec<String> = listed.filter(|word| known(word)).collect();
        if words.len() < WORDS_ENOUGH {
            let pieces = pieces(tokenizer, |c| c.is_ascii_alphanumeric());
            let fresh: Vec<String> =
                pieces.into_iter().filter(|piece| !words.contains(piece) && known(piece)).collect();
            words.extend(fresh);
        }
        if words.len() < WORDS_MIN {
            return Self::glued(tokenizer);
        }
        let splits =
            Self { gap: " ", openers: words.clone(), enders: Vec::new(), words, additive: true };
        let plain = Self { additive: splits.are_additive(tokenizer), ..splits };
        Some(plain.with_sentences(tokenizer))
    }

    /// Pieces one behind the other, for tokenizers that spend a token on each space.
    fn glued(tokenizer: &Tokenizer) -> Option<Self> {
        let mut words = pieces(tokenizer, |c| c.is_ascii_graphic());
        words.retain(|piece| costs_one(tokenizer, "", piece));
        (1 < words.len()).then(|| Self {
            gap: "",
            openers: words.clone(),
            enders: Vec::new(),
            words,
            additive: false,
        })
    }

    /// Sentences, where the tokenizer is known to count their capitals and full stops apart.
    fn with_sentences(self, tokenizer: &Tokenizer) -> Self {
        if !self.additive {
            return self;
        }
        let openers = self.words.iter().filter_map(|word| capitalised(word));
        let openers: Vec<String> = openers.filter(|word| costs_one(tokenizer, " ", word)).collect();
        let anchor = tokenizer.count(ANCHOR);
        let ends = |word: &&String| tokenizer.count(&format!("{ANCHOR} {word}.")) == anchor + 2;
        let enders: Vec<String> = self.words.iter().filter(ends).cloned().collect();
        if openers.len() < WORDS_MIN || enders.len() < WORDS_MIN {
            return self;
        }
        let plain_openers = self.openers.clone();
        let sentences = Self { openers, enders, ..self };
        if sentences.are_additive(tokenizer) {
            sentences
        } else {
            Self { openers: plain_openers, enders: Vec::new(), ..sentences }
        }
    }

    /// Either each word is cut out and encoded by itself, or no piece of the vocabulary could reach
    /// from one word into the next.
    fn are_additive(&self, tokenizer: &Tokenizer) -> bool {
        self.are_cut_apart(tokenizer) || self.are_never_joined(tokenizer)
    }

    fn are_cut_apart(&self, tokenizer: &Tokenizer) -> bool {
        let mut text = String::from(ANCHOR);
        let mut costs = vec![tokenizer.count(ANCHOR)];
        let mut say = |word: &str, end: &str, cost| {
            text.extend([" ", word, end]);
            costs.push(cost);
        };
        for word in self.words.iter().chain(&self.openers) {
            say(word, "", 1);
        }
        for (ender, opener) in self.enders.iter().zip(self.openers.iter().cycle()) {
            say(ender, ".", 2);
            say(opener, "", 1);
        }
        let pieces = tokenizer.piece_of_tokens(&text);
        let mut last = None;
        let mut rest = pieces.as_slice();
        let apart = costs.into_iter().all(|cost| {
            let Some((word, others)) = rest.split_at_checked(cost) else { return false };
            rest = others;
            let is_new = word.iter().all(|piece| piece.is_some() && *piece != last);
            last = word.last().copied().flatten();
            is_new
        });
        apart && rest.is_empty()
    }

    fn are_never_joined(&self, tokenizer: &Tokenizer) -> bool {
        let is_space = |c: char| matches!(c, ' ' | '\u{2581}' | '\u{120}');
        let joins = |(one, next): (char, char)| {
            let joins_words = one.is_alphanumeric() && is_space(next);
            let joins_stop =
                (one.is_alphanumeric() && next == '.') || (one == '.' && is_space(next));
            joins_words || (!self.enders.is_empty() && joins_stop)
        };
        let pairs = |piece: &str| piece.chars().zip(piece.chars().skip(1)).any(joins);
        !tokenizer.vocabulary().iter().any(|piece| pairs(piece))
    }
}

/// Behind other words it is one token more, and that token is this word.
fn costs_one(tokenizer: &Tokenizer, gap: &str, word: &str) -> bool {
    let alone = tokenizer.count(ANCHOR);
    let with = tokenizer.encode(&format!("{ANCHOR}{gap}{word}"));
    with.len() == alone + 1
        && with.last().is_some_and(|id| {
            tokenizer.decode(&[*id]).trim().trim_start_matches("##").eq_ignore_ascii_case(word)
        })
}

/// The vocabulary's own pieces, without the mark of a space before them.
fn pieces(tokenizer: &Tokenizer, is_usable: impl Fn(char) -> bool) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    let mut pieces = tokenizer.vocabulary();
    for piece in &mut pieces {
        let word = piece.trim_start_matches(['\u{2581}', '\u{120}']).trim_start_matches("##");
        *piece = word.to_owned();
    }
    pieces.retain(|word| {
        let is_word = !word.is_empty() && word.len() <= 24 && word.chars().all(&is_usable);
        is_word && seen.insert(word.clone())
    });
    pieces.truncate(4096);
    pieces
}

fn capitalised(word: &str) -> Option<String> {
    let mut letters = word.chars();
    let first = letters.next().filter(char::is_ascii_lowercase)?;
    Some(first.to_ascii_uppercase().to_string() + letters.as_str())
}

/// Common words. The first 256 are drawn by a byte each; the rest, which are longer, are for those who
/// can check what they cost.
pub(crate) static WORDS: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("words.txt").split_whitespace().collect());

/// The words that a byte draws, each with the space before it.
static SPACED_WORDS: LazyLock<Vec<String>> =
    LazyLock::new(|| WORDS.iter().take(256).map(|word| format!(" {word}")).collect());

#[cfg(test)]
mod words_tests {
    use super::*;

    #[test]
    fn every_word_is_listed_once() {
        let distinct: std::collections::HashSet<&str> = WORDS.iter().copied().collect();
        assert_eq!((distinct.len(), WORDS.len()), (1_441, 1_441));
    }
}
