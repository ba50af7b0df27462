//! What synthetic text is put together from: words that a tokenizer gives one token each.

use inferometer_model::tokens::TokenCounter as _;

use super::words::{MORE_WORDS, WORDS};
use crate::tokenizer::Tokenizer;

/// Words of one token each, as they stand in the middle of a text.
#[derive(Debug)]
pub(super) struct Units {
    /// What stands between two words: a space, which belongs to the word behind it, or nothing.
    pub(super) gap: &'static str,
    pub(super) words: Vec<String>,
    /// Words that can begin a sentence; the same as `words` where sentences do not end.
    pub(super) openers: Vec<String>,
    /// Words that can end one: their full stop is a token, and changes nothing before it.
    pub(super) enders: Vec<String>,
    /// Whether every word costs what it costs, whatever stands beside it.
    pub(super) additive: bool,
}

/// Fewer distinct words than these, and others are looked for.
const WORDS_ENOUGH: usize = 256;
/// With four bits a word, sixteen words have the sixty-four that make a beginning unique.
const WORDS_MIN: usize = 16;
const PIECES_MAX: usize = 4096;
/// Long enough that a tokenizer joins nothing to it.
const ANCHOR: &str = "one two";

impl Units {
    /// `None` when the tokenizer has no usable pieces at all.
    pub(super) fn probe(tokenizer: &Tokenizer) -> Option<Self> {
        let known = |word: &str| costs_one(tokenizer, " ", word);
        let listed = WORDS.into_iter().chain(MORE_WORDS).map(str::to_owned);
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
    let mut pieces: Vec<String> = Vec::new();
    for piece in tokenizer.vocabulary() {
        let word = piece.trim_start_matches(['\u{2581}', '\u{120}']).trim_start_matches("##");
        if !word.is_empty() && word.len() <= 24 && word.chars().all(&is_usable) {
            pieces.push(word.to_owned());
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    pieces.retain(|piece| seen.insert(piece.clone()));
    pieces.truncate(PIECES_MAX);
    pieces
}

fn capitalised(word: &str) -> Option<String> {
    let mut letters = word.chars();
    let first = letters.next().filter(char::is_ascii_lowercase)?;
    Some(first.to_ascii_uppercase().to_string() + letters.as_str())
}
