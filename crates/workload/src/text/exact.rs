//! Text of exactly so many tokens, by the model's own tokenizer.
//!
//! Where the tokenizer cuts words apart before it looks at them, a text costs the sum of its words
//! and need not be encoded. Where it does not, every text is encoded and mended until it fits.

use std::sync::Arc;

use inferometer_model::Message;
use inferometer_model::TokenCounter as _;

use super::{CRUMBS, Segment, Speech, Units};
use crate::plan::Stream;
use crate::tokenizer::{TemplateError, Tokenizer};

/// What surrounds a prompt, and is a part of its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    None,
    /// What the tokenizer adds to a whole prompt, such as a token that begins it.
    SpecialTokens,
    /// The model's chat template, with the prompt as the only message.
    Template,
}

#[derive(Debug, thiserror::Error)]
pub enum TextError {
    #[error(
        "the tokenizer `{0}` has no chat template beside it; count the prompt alone, or give a \
         model's directory that has one"
    )]
    NoTemplate(String),
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error(
        "the chat template of `{0}` refuses a system message, which --prefix-tokens with --turns \
         begins with; count the prompt alone, or leave --prefix-tokens out"
    )]
    NoSystem(String),
    #[error("the chat template of `{0}` changes the words of a prompt; count the prompt alone")]
    TemplateRewrites(String),
    #[error("the tokenizer `{0}` has no tokens to write text with; run without a tokenizer")]
    NoWords(String),
    #[error(
        "a text of {asked} tokens has {made} with the tokenizer `{name}`; run without a tokenizer"
    )]
    NotExact { name: String, asked: u32, made: u32 },
}

#[derive(Debug)]
pub struct Exact {
    tokenizer: Arc<Tokenizer>,
    units: Units,
    pub(super) framed: Surroundings,
    bare: Surroundings,
    /// What the frame adds to a system message and a user's; `None` when the template refuses
    /// them.
    pub(super) around_opening: Option<u32>,
}

/// What surrounds a text, and how the text begins and ends in it.
#[derive(Debug)]
pub(super) struct Surroundings {
    frame: Frame,
    /// Tokens beside one for each word.
    pub(super) overhead: u32,
    /// Words to begin with, without a space before them.
    firsts: Vec<String>,
    /// Whether a full stop costs the same where nothing of ours follows.
    stop_may_end: bool,
}

/// Texts that are counted before any claim is made.
const TRIALS: u64 = 64;
const TRIAL_TOKENS_MAX: u64 = 96;
/// So many words that begin a text are as good as any.
const FIRSTS_ENOUGH: usize = 16;
/// Words that are tried with a full stop at the very end.
const ENDERS_TRIED: usize = 64;
/// Encodings of one text that is mended.
const ATTEMPTS: usize = 96;
/// Tokens of each of the messages that a frame is measured with.
const OPENING_PROBE: u32 = 16;
const OPENING_ATTEMPTS: usize = 8;

impl Exact {
    pub(super) fn new(tokenizer: Arc<Tokenizer>, frame: Frame) -> Result<Self, TextError> {
        let name = || tokenizer.facts().name;
        if frame == Frame::Template {
            let words = "one two";
            let message = [Message::new("user", words)];
            let rendered = tokenizer.render_chat(&message, true)?;
            let rendered = rendered.ok_or_else(|| TextError::NoTemplate(name()))?;
            if !rendered.contains(words) {
                return Err(TextError::TemplateRewrites(name()));
            }
        }
        let units = Units::probe(&tokenizer).ok_or_else(|| TextError::NoWords(name()))?;
        let framed = Surroundings::probe(&tokenizer, frame, &units);
        let bare = Surroundings::probe(&tokenizer, Frame::None, &units);
        let mut exact = Self { tokenizer, units, framed, bare, around_opening: None };
        if exact.first_miss().is_some() && exact.units.additive {
            exact.units.additive = false;
            exact.units.enders.clear();
        }
        match exact.first_miss() {
            None => {
                exact.around_opening = if frame == Frame::Template {
                    let text = |seed| exact.bare(&[Segment { seed, tokens: OPENING_PROBE }]);
                    let made = exact.count_opening(&[text(1), text(2)]);
                    made.map(|made| made.saturating_sub(2 * OPENING_PROBE))
                } else {
                    Some(0)
                };
                Ok(exact)
            }
            Some((asked, made)) => {
                Err(TextError::NotExact { name: exact.tokenizer.facts().name, asked, made })
            }
        }
    }

    pub(super) fn opening(&self, system: Segment, own: Segment) -> [String; 2] {
        let around = self.around_opening.unwrap_or(0);
        let asked = system.tokens.saturating_add(own.tokens);
        let mut user = Segment { tokens: own.tokens.saturating_sub(around).max(1), ..own };
        let mut texts = [self.bare(&[system]), self.bare(&[user])];
        // Words at the borders may cost a token more or less than in the middle of a text.
        for _ in 0..OPENING_ATTEMPTS {
            match self.count_opening(&texts) {
                Some(made) if made != asked => {
                    let tokens = (user.tokens + asked).saturating_sub(made).max(1);
                    user = Segment { tokens, seed: user.seed.wrapping_add(1) };
                    texts[1] = self.bare(&[user]);
                }
                _ => break,
            }
        }
        texts
    }

    /// The tokens of a system message and a user's as the model sees them; `None` where that is not
    /// counted, or refused.
    fn count_opening(&self, [system, user]: &[String; 2]) -> Option<u32> {
        if self.framed.frame != Frame::Template {
            return None;
        }
        let messages =
            [Message::new("system", system.as_str()), Message::new("user", user.as_str())];
        let rendered = self.tokenizer.render_chat(&messages, true).ok().flatten()?;
        u32::try_from(self.tokenizer.count(&rendered)).ok()
    }

    pub(super) fn bare(&self, segments: &[Segment]) -> String {
        self.text(segments, &self.bare)
    }

    pub(super) fn text(&self, segments: &[Segment], around: &Surroundings) -> String {
        if self.units.additive { self.sum(segments, around) } else { self.mend(segments, around) }
    }

    /// What surrounds the text is taken from its beginning: others that begin alike then share
    /// all of the segments that they have in common.
    fn sum(&self, segments: &[Segment], around: &Surroundings) -> String {
        let mut text = String::with_capacity(8 * total(segments) as usize);
        let mut taken = around.overhead;
        let last = segments.iter().rposition(|segment| 0 < segment.tokens);
        for (place, segment) in segments.iter().enumerate() {
            let is_last = last == Some(place);
            let mut words = segment.tokens.saturating_sub(taken);
            taken = taken.saturating_sub(segment.tokens);
            if is_last && text.is_empty() {
                words = words.max(1);
            }
            let mut speech = Speech::new(&self.units, segment.seed);
            for left in (1..=words).rev() {
                if text.is_empty() {
                    speech.say_first(&mut text, &around.firsts);
                } else if left == 1 && is_last && !around.stop_may_end && speech.stops() {
                    speech.say_word(&mut text, &self.units.words);
                } else {
                    speech.say(&mut text);
                }
            }
        }
        text
    }

    /// Segment by segment, so that what follows cannot change what is shared.
    fn mend(&self, segments: &[Segment], around: &Surroundings) -> String {
        let mut text = String::new();
        let mut tokens = 0;
        let last = segments.iter().rposition(|segment| 0 < segment.tokens);
        for (place, segment) in segments.iter().enumerate() {
            tokens += segment.tokens;
            if around.overhead < tokens || (last == Some(place) && text.is_empty()) {
                self.extend(&mut text, segment, tokens.max(around.overhead + 1), around);
            }
        }
        text
    }

    /// Adds and drops words until the text has so many tokens; each try says others.
    fn extend(&self, text: &mut String, segment: &Segment, tokens: u32, around: &Surroundings) {
        if segment.tokens == 0 {
            return;
        }
        let mut speech = Speech::new(&self.units, segment.seed);
        let mut ends = vec![text.len()];
        let mut made =
            if text.is_empty() { around.overhead } else { around.measure(&self.tokenizer, text) };
        let mut nearest = (u32::MAX, String::new());
        for attempt in 0..ATTEMPTS {
            let surplus = made.saturating_sub(tokens) as usize;
            // One word of its own stays, or is replaced: otherwise the text may be another's.
            let kept = ends.len().saturating_sub(surplus).max(2).min(ends.len());
            let is_stuck = 0 < surplus && kept == ends.len();
            ends.truncate(if is_stuck { 1 } else { kept });
            text.truncate(ends.last().copied().unwrap_or_default());
            let missing = tokens.saturating_sub(made).max(u32::from(ends.len() == 1));
            for _ in 0..missing {
                if text.is_empty() {
                    speech.say_first(text, &around.firsts);
                } else if attempt < ATTEMPTS / 2 {
                    speech.say(text);
                } else {
                    text.push_str(CRUMBS[speech.below(CRUMBS.len())]);
                }
                ends.push(text.len());
            }
            made = around.measure(&self.tokenizer, text);
            let off = made.abs_diff(tokens);
            if off == 0 {
                return;
            }
            if off < nearest.0 {
                nearest = (off, text.clone());
            }
        }
        *text = nearest.1;
    }

    /// Tries texts of many lengths, whole and in parts.
    fn first_miss(&self) -> Option<(u32, u32)> {
        (0..TRIALS).find_map(|trial| {
            let around = if trial % 2 == 0 { &self.framed } else { &self.bare };
            let mut stream = Stream::new(trial, "text-trial", 0);
            let mut part = || Segment {
                seed: stream.bits(),
                tokens: (stream.bits() % TRIAL_TOKENS_MAX) as u32 + 1,
            };
            let segments = [part(), part()];
            let asked = total(&segments).max(around.overhead + 1);
            let made = around.measure(&self.tokenizer, &self.text(&segments, around));
            (made != asked).then_some((asked, made))
        })
    }
}

impl Surroundings {
    fn probe(tokenizer: &Tokenizer, frame: Frame, units: &Units) -> Self {
        let mut around = Self { frame, overhead: 0, firsts: Vec::new(), stop_may_end: false };
        let (gap, one) = (units.gap, &units.words[0]);
        let cost =
            |first: &String| around.measure(tokenizer, &format!("{first}{gap}{one}{gap}{one}"));
        let costs: Vec<u32> = units.openers.iter().chain(&units.words).map(cost).collect();
        let often = |chosen: &&u32| costs.iter().filter(|cost| cost == chosen).count();
        let common = costs.iter().filter(|cost| FIRSTS_ENOUGH <= often(cost)).min();
        let chosen = common.or(costs.iter().min()).copied().unwrap_or(3);
        let firsts = units.openers.iter().chain(&units.words).zip(&costs);
        // What will be counted anyway may begin with any word.
        let firsts = firsts.filter(|(_, cost)| !units.additive || **cost == chosen);
        let mut firsts: Vec<String> = firsts.map(|(first, _)| first.clone()).collect();
        if FIRSTS_ENOUGH <= firsts.iter().filter(|first| units.openers.contains(first)).count() {
            firsts.retain(|first| units.openers.contains(first));
        }
        let first = firsts.first().map_or("", String::as_str);
        let overhead = chosen.saturating_sub(3);
        let stop_may_end = units.enders.iter().take(ENDERS_TRIED).all(|ender| {
            around.measure(tokenizer, &format!("{first}{gap}{ender}.")) == overhead + 3
        });
        around.overhead = overhead;
        around.stop_may_end = stop_may_end;
        around.firsts = firsts;
        around
    }

    /// The tokens of a text in its place.
    fn measure(&self, tokenizer: &Tokenizer, text: &str) -> u32 {
        let tokens = match self.frame {
            Frame::None => tokenizer.count(text),
            Frame::SpecialTokens => tokenizer.count_with_special(text),
            Frame::Template => {
                let message = [Message::new("user", text)];
                // It was rendered before, with other words.
                let rendered = tokenizer.render_chat(&message, true).ok().flatten();
                rendered.map_or(0, |rendered| tokenizer.count(&rendered))
            }
        };
        u32::try_from(tokens).unwrap_or(u32::MAX)
    }
}

fn total(segments: &[Segment]) -> u32 {
    segments.iter().fold(0, |sum: u32, segment| sum.saturating_add(segment.tokens))
}
