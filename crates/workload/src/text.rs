//! Text of a requested length, in tokens.
//!
//! With the model's tokenizer a text has exactly as many tokens as were asked for. Without it the
//! number of words is an *estimate* of the number of tokens, and every result says so: the words
//! are short and common, so that most tokenizers give one token for each.

mod exact;
mod speech;
mod units;
mod words;

use std::sync::Arc;

pub use inferometer_model::Segment;
use inferometer_model::observations::{Correction, InputLength};

use crate::stream::Stream;
use crate::tokenizer::Tokenizer;
use exact::Exact;
pub use exact::{Frame, TextError};
pub(crate) use words::WORDS;

/// Makes texts of so many tokens.
#[derive(Clone, Debug)]
pub struct TextMaker {
    manner: Manner,
}

#[derive(Clone, Debug)]
enum Manner {
    Estimating(Option<Correction>),
    Exact(Arc<Exact>),
}

impl TextMaker {
    /// By words, as if each were a token, or as a probe has shown the server to count them.
    pub fn estimating(correction: Option<Correction>) -> Self {
        Self { manner: Manner::Estimating(correction) }
    }

    /// By the model's tokenizer, with what stands around a prompt as a part of its length.
    pub fn exact(tokenizer: Arc<Tokenizer>, frame: Frame) -> Result<Self, TextError> {
        Ok(Self { manner: Manner::Exact(Arc::new(Exact::new(tokenizer, frame)?)) })
    }

    pub fn input_length(&self) -> InputLength {
        match &self.manner {
            Manner::Estimating(None) => InputLength::Estimated,
            Manner::Estimating(Some(correction)) => InputLength::Corrected(*correction),
            Manner::Exact(_) => InputLength::Exact,
        }
    }

    /// The fewest tokens that a whole prompt can have; one that is asked to be shorter has these.
    pub fn shortest(&self) -> u32 {
        match &self.manner {
            Manner::Estimating(None) => 1,
            Manner::Estimating(Some(correction)) => {
                let tokens = correction.overhead_tokens + correction.tokens_per_word;
                u32::try_from(whole(tokens)).unwrap_or(u32::MAX).max(1)
            }
            Manner::Exact(exact) => exact.shortest(),
        }
    }

    /// The fewest tokens that a conversation's first turn can have behind a system message of so
    /// many.
    pub fn shortest_after(&self, system: u32) -> u32 {
        let beside = match &self.manner {
            Manner::Estimating(_) => 1,
            Manner::Exact(exact) => exact.shortest_after_system(),
        };
        system.saturating_add(beside)
    }

    /// Whether what stands around a system message and a user's is known, where it is counted.
    pub fn knows_openings(&self) -> bool {
        match &self.manner {
            Manner::Estimating(_) => true,
            Manner::Exact(exact) => exact.knows_openings(),
        }
    }

    /// The system message and the user's first words; what stands around the two is taken from the
    /// user's, where it is counted.
    pub fn opening(&self, system: Segment, own: Segment) -> [String; 2] {
        match &self.manner {
            Manner::Estimating(_) => [self.bare(&[system]), self.bare(&[own])],
            Manner::Exact(exact) => exact.opening(system, own),
        }
    }

    /// A whole prompt: what the server adds around it is part of its length, where that is
    /// counted. Equal beginnings of the segments are equal beginnings of the text.
    pub fn framed(&self, segments: &[Segment]) -> String {
        match &self.manner {
            Manner::Estimating(None) => by_words(segments, |tokens| tokens),
            Manner::Estimating(Some(correction)) => by_words(segments, |tokens| {
                words_for(tokens, correction.overhead_tokens, correction)
            }),
            Manner::Exact(exact) => exact.framed(segments),
        }
    }

    /// Text that stands inside of a prompt.
    pub fn bare(&self, segments: &[Segment]) -> String {
        match &self.manner {
            Manner::Estimating(None) => by_words(segments, |tokens| tokens),
            Manner::Estimating(Some(correction)) => {
                by_words(segments, |tokens| words_for(tokens, 0.0, correction))
            }
            Manner::Exact(exact) => exact.bare(segments),
        }
    }
}

fn words_for(tokens: u64, overhead: f64, correction: &Correction) -> u64 {
    whole((tokens as f64 - overhead) / correction.tokens_per_word)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded, and a cast keeps what is out of bounds at the nearest bound"
)]
fn whole(number: f64) -> u64 {
    libm::round(number) as u64
}

/// Segments of as many words as their tokens, summed from the beginning, stand for: so the whole is
/// as near as it can be, and what others share does not depend on what follows.
fn by_words(segments: &[Segment], words_for: impl Fn(u64) -> u64) -> String {
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
    while 0 < left {
        for byte in stream.bits().to_le_bytes().into_iter().take(left) {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(WORDS[usize::from(byte)]);
        }
        left = left.saturating_sub(8);
    }
}

#[cfg(test)]
mod tests;
