//! Prompt text of a requested length, without a tokenizer.
//!
//! The words are short and common, so that most tokenizers give one token for each: the number of
//! words is an *estimate* of the number of tokens, and every result says so.

use crate::stream::Stream;

/// Names the source in fingerprints; another list or another way to draw needs another name.
pub const SOURCE: &str = "words/1";

/// Text of `words` words, different for every seed from its first words on, so that a prefix cache
/// finds nothing to share.
pub fn text(seed: u64, words: u32) -> String {
    let mut stream = Stream::new(seed, "prompt-text", 0);
    let mut text = String::with_capacity(words as usize * 6);
    let mut left = words;
    while 0 < left {
        for byte in stream.bits().to_le_bytes().into_iter().take(left as usize) {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(WORDS[usize::from(byte)]);
        }
        left = left.saturating_sub(8);
    }
    text
}

#[rustfmt::skip]
const WORDS: [&str; 256] = [
    "the", "of", "and", "to", "in", "is", "you", "that", "it", "he", "was", "for", "on", "are", "as", "with",
    "his", "they", "at", "be", "this", "have", "from", "or", "one", "had", "by", "word", "but", "not", "what", "all",
    "were", "we", "when", "your", "can", "said", "there", "use", "an", "each", "which", "she", "do", "how", "their", "if",
    "will", "up", "other", "about", "out", "many", "then", "them", "these", "so", "some", "her", "would", "make", "like", "him",
    "into", "time", "has", "look", "two", "more", "write", "go", "see", "number", "no", "way", "could", "people", "my", "than",
    "first", "water", "been", "call", "who", "oil", "its", "now", "find", "long", "down", "day", "did", "get", "come", "made",
    "may", "part", "over", "new", "sound", "take", "only", "little", "work", "know", "place", "year", "live", "me", "back", "give",
    "most", "very", "after", "thing", "our", "just", "name", "good", "sentence", "man", "think", "say", "great", "where", "help", "through",
    "much", "before", "line", "right", "too", "mean", "old", "any", "same", "tell", "boy", "follow", "came", "want", "show", "also",
    "around", "form", "three", "small", "set", "put", "end", "does", "another", "well", "large", "must", "big", "even", "such", "because",
    "turn", "here", "why", "ask", "went", "men", "read", "need", "land", "different", "home", "us", "move", "try", "kind", "hand",
    "picture", "again", "change", "off", "play", "air", "away", "house", "point", "page", "letter", "mother", "answer", "found", "study", "still",
    "learn", "should", "world", "high", "every", "near", "add", "food", "between", "own", "below", "country", "plant", "last", "school", "father",
    "keep", "tree", "never", "start", "city", "earth", "eye", "light", "thought", "head", "under", "story", "saw", "left", "few", "while",
    "along", "might", "close", "seem", "next", "hard", "open", "example", "begin", "life", "always", "those", "both", "paper", "together", "got",
    "group", "often", "run", "important", "until", "side", "feet", "car", "mile", "night", "walk", "white", "sea", "began", "grow", "river",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_has_the_requested_number_of_words() {
        for words in [1, 7, 8, 9, 512] {
            assert_eq!(text(1, words).split(' ').count(), words as usize);
        }
    }

    #[test]
    fn prompts_differ_from_their_first_words_on() {
        let first_words = |seed| text(seed, 512).split(' ').take(8).collect::<Vec<_>>().join(" ");
        let distinct: std::collections::HashSet<String> = (0..1_000).map(first_words).collect();
        assert_eq!(distinct.len(), 1_000);
    }

    #[test]
    fn every_word_is_listed_once() {
        let distinct: std::collections::HashSet<&str> = WORDS.into_iter().collect();
        assert_eq!(distinct.len(), WORDS.len());
    }
}
