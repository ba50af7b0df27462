//! Text of a requested length, in tokens.
//!
//! Without a tokenizer the number of words is an *estimate* of the number of tokens, and every
//! result says so: the words are short and common, so that most tokenizers give one token for each.

mod words;

use inferometer_model::observations::{Correction, InputLength};

use crate::stream::Stream;
use words::WORDS;

/// A stretch of text that is determined by its seed and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub seed: u64,
    pub tokens: u32,
}

/// Makes texts of so many tokens.
#[derive(Clone, Debug)]
pub struct TextMaker {
    correction: Option<Correction>,
}

impl TextMaker {
    /// By words, as if each were a token, or as a probe has shown the server to count them.
    pub fn estimating(correction: Option<Correction>) -> Self {
        Self { correction }
    }

    pub fn input_length(&self) -> InputLength {
        self.correction.map_or(InputLength::Estimated, InputLength::Corrected)
    }

    /// A whole prompt: what the server adds around it is part of its length, where that is
    /// counted. Equal beginnings of the segments are equal beginnings of the text.
    pub fn framed(&self, segments: &[Segment]) -> String {
        self.bare(segments)
    }

    /// Text that stands inside of a prompt.
    pub fn bare(&self, segments: &[Segment]) -> String {
        let mut text = String::new();
        for segment in segments {
            write_words(&mut text, segment.seed, segment.tokens);
        }
        text
    }
}

fn write_words(text: &mut String, seed: u64, words: u32) {
    let mut stream = Stream::new(seed, "prompt-text", 0);
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
}
