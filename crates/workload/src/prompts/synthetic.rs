//! Words of our own: unique from the first on, or behind a prefix that others share.

use std::sync::Arc;

use inferometer_model::spec::SharedPrefix;
use inferometer_model::{Content, Message, PlannedRequest, Prompt, Segment};

use super::{PromptIndex, Prompts, Recipe};
use crate::error::WorkloadError;
use crate::lengths::{Draw, Zipf};
use crate::plan::Stream;
use crate::text::TextMaker;
use crate::tokenizer::Tokenizer;

/// Single prompts, or the turns of conversations.
#[derive(Debug)]
pub(crate) struct Synthetic {
    pub(crate) seed: u64,
    pub(crate) text: Arc<TextMaker>,
    pub(crate) input: Draw,
    pub(crate) output: Draw,
    pub(crate) prefixes: Option<Prefixes>,
    /// Whether a shared prefix is a message of its own, as conversations begin.
    pub(crate) prefix_is_system: bool,
}

/// Beginnings that prompts share.
#[derive(Debug)]
pub(crate) struct Prefixes {
    seed: u64,
    tokens: u32,
    popularity: Zipf,
}

impl Prefixes {
    pub(crate) fn new(spec: SharedPrefix, seed: u64) -> Self {
        Self { seed, tokens: spec.tokens, popularity: Zipf::new(spec.count, spec.zipf) }
    }

    fn segment(&self, id: u64) -> Segment {
        let number = self.popularity.draw(&mut Stream::new(self.seed, "prefix", id));
        let seed = Stream::new(self.seed, "prefix-text", number.into()).bits();
        Segment { seed, tokens: self.tokens }
    }
}

impl Synthetic {
    /// The fewest tokens that can be sent.
    fn shortest(&self, turn: u16) -> u32 {
        match self.system_tokens(turn) {
            _ if 0 < turn => 1,
            0 => self.text.shortest(),
            system => self.text.shortest_after(system),
        }
    }

    /// The shared beginning, where there is one, and the request's own words.
    fn parts(&self, request: &PlannedRequest) -> (Option<Segment>, Segment) {
        let own = Segment { seed: request.prompt_seed, tokens: request.input_tokens };
        let Some(prefixes) = self.prefixes.as_ref().filter(|_| request.turn == 0) else {
            return (None, own);
        };
        let prefix = prefixes.segment(request.conversation().0);
        // A prompt that is no longer than its prefix is a part of it, and a word of its own.
        let tokens = prefix.tokens.min(own.tokens.saturating_sub(1));
        let prefix = Segment { tokens, ..prefix };
        (Some(prefix), Segment { tokens: own.tokens - tokens, ..own })
    }

    /// What the first turn of a conversation has before the user's words.
    fn system_tokens(&self, turn: u16) -> u32 {
        match &self.prefixes {
            Some(prefixes) if self.prefix_is_system && turn == 0 => prefixes.tokens,
            _ => 0,
        }
    }
}

impl Prompts for Synthetic {
    fn recipe(&self, place: PromptIndex) -> Recipe {
        let own = self.input.draw(&mut Stream::new(self.seed, "input", place.id));
        let input_tokens = own.saturating_add(self.system_tokens(place.turn));
        Recipe {
            prompt_seed: Stream::new(self.seed, "prompts", place.id).bits(),
            input_tokens: input_tokens.max(self.shortest(place.turn)),
            output_tokens: self.output.draw(&mut Stream::new(self.seed, "output", place.id)),
            ..Recipe::default()
        }
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        match self.parts(request) {
            (_, own) if 0 < request.turn => Content::text(self.text.bare(&[own])),
            (None, own) => Content::text(self.text.framed(&[own])),
            (Some(prefix), own) if self.prefix_is_system => {
                let [system, user] = self.text.opening(prefix, own);
                let messages = vec![Message::new("system", system), Message::new("user", user)];
                Content::new(Prompt::Messages(messages))
            }
            (Some(prefix), own) => Content::text(self.text.framed(&[prefix, own])),
        }
    }

    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        let (prefix, own) = self.parts(request);
        prefix.into_iter().chain([own]).collect()
    }
}

/// A vocabulary, with its words or without.
#[derive(Clone, Debug)]
pub(crate) enum Alphabet {
    Words(Arc<Tokenizer>),
    /// So many ids, of which the first few are special.
    Ids {
        size: u32,
        special: u32,
    },
}

const PREFIX: &str = "vocabulary:";
/// Beyond every tokenizer there is; each ordinary id is held in memory.
const SIZE_MAX: u32 = 1 << 22;

impl Alphabet {
    /// What `vocabulary:131072`, or `vocabulary:131072,1000` with special ids, means; `None` for
    /// the name of a tokenizer.
    pub(crate) fn without_words(name: &str) -> Result<Option<Self>, WorkloadError> {
        let Some(numbers) = name.strip_prefix(PREFIX) else { return Ok(None) };
        let (size, special) = numbers.split_once(',').unwrap_or((numbers, "0"));
        let read = |text: &str| text.trim().parse::<u32>().ok();
        match (read(size), read(special)) {
            (Some(size), _) if SIZE_MAX < size => {
                Err(WorkloadError::LargeVocabulary { name: name.to_owned(), bound: SIZE_MAX })
            }
            (Some(size), Some(special)) if special < size => Ok(Some(Self::Ids { size, special })),
            _ => Err(WorkloadError::BadVocabulary(name.to_owned())),
        }
    }

    pub(crate) fn size(&self) -> u32 {
        match self {
            Self::Words(tokenizer) => tokenizer.vocabulary_size(),
            Self::Ids { size, .. } => *size,
        }
    }

    /// The ids of ordinary tokens, in their order.
    pub(crate) fn ordinary(&self) -> Result<Vec<u32>, WorkloadError> {
        match self {
            Self::Ids { size, special } => Ok((*special..*size).collect()),
            Self::Words(tokenizer) => {
                let special = tokenizer.special_ids();
                let ids = (0..self.size()).filter(|id| !special.contains(id));
                let ids: Vec<u32> = ids.collect();
                if ids.is_empty() {
                    return Err(WorkloadError::NoVocabulary(tokenizer.facts().name));
                }
                Ok(ids)
            }
        }
    }

    /// Tokens that a server puts around a prompt by itself.
    pub(crate) fn around(&self) -> u32 {
        match self {
            Self::Words(tokenizer) => u32::try_from(tokenizer.special_tokens()).unwrap_or(u32::MAX),
            Self::Ids { .. } => 0,
        }
    }

    /// The text of ids, and the ids of that text; without words the ids stay as they are.
    pub(crate) fn spell(&self, ids: Vec<u32>) -> (String, Vec<u32>) {
        match self {
            Self::Words(tokenizer) => {
                let text = tokenizer.decode(&ids);
                let ids = tokenizer.encode(&text);
                (text, ids)
            }
            Self::Ids { .. } => (String::new(), ids),
        }
    }
}

#[cfg(test)]
mod synthetic_tests {
    use super::*;
    use crate::prompts::planned;
    use inferometer_model::spec::Lengths;

    fn synthetic(prefix_is_system: bool) -> Synthetic {
        let prefix = SharedPrefix { tokens: 24, count: 2, zipf: 0.0 };
        Synthetic {
            seed: 5,
            text: Arc::new(TextMaker::estimating(None)),
            input: Draw::new(&Lengths::Fixed(40)),
            output: Draw::new(&Lengths::Fixed(1)),
            prefixes: Some(Prefixes::new(prefix, 5)),
            prefix_is_system,
        }
    }

    #[test]
    fn segments_are_the_shared_prefix_and_the_words_of_its_own() {
        let prompts = synthetic(false);
        let segments: Vec<_> = (0..20).map(|id| prompts.segments(&planned(&prompts, id))).collect();
        for parts in &segments {
            assert_eq!(parts.iter().map(|part| part.tokens).collect::<Vec<_>>(), [24, 16]);
        }
        let mut prefixes: Vec<u64> = segments.iter().map(|parts| parts[0].seed).collect();
        let mut own: Vec<u64> = segments.iter().map(|parts| parts[1].seed).collect();
        for seeds in [&mut prefixes, &mut own] {
            seeds.sort_unstable();
            seeds.dedup();
        }
        assert_eq!((prefixes.len(), own.len()), (2, 20));
    }

    #[test]
    fn a_later_turn_is_of_new_words_alone() {
        let prompts = synthetic(true);
        let first = planned(&prompts, 3);
        assert_eq!(prompts.segments(&first).len(), 2);
        let later = PlannedRequest { turn: 1, ..first };
        let own = Segment { seed: first.prompt_seed, tokens: first.input_tokens };
        assert_eq!(prompts.segments(&later), [own]);
    }
}

#[cfg(test)]
mod alphabet_tests {
    use super::*;

    #[test]
    fn a_vocabulary_is_a_number_and_perhaps_another() {
        let read = |name: &str| Alphabet::without_words(name);
        assert!(read("mistralai/Mistral-7B").unwrap().is_none());
        let plain = read("vocabulary:32000").unwrap().unwrap();
        assert_eq!((plain.size(), plain.ordinary().unwrap().len()), (32_000, 32_000));
        let special = read("vocabulary:131072,1000").unwrap().unwrap();
        assert_eq!(special.ordinary().unwrap().first(), Some(&1_000));
        for wrong in ["vocabulary:", "vocabulary:many", "vocabulary:0", "vocabulary:5,5"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(read("vocabulary:4194304").is_ok());
        for large in ["vocabulary:4194305", "vocabulary:4294967295,7"] {
            let refused = read(large).unwrap_err().to_string();
            assert!(refused.contains(large) && refused.contains("4194304"), "{refused}");
        }
    }
}
