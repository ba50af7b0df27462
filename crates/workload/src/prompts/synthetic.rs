//! Words of our own: unique from the first on, or behind a prefix that others share.

use std::sync::Arc;

use inferometer_model::spec::SharedPrefix;
use inferometer_model::{Content, Message, PlannedRequest, Prompt};

use super::{Place, Prompts, Recipe};
use crate::lengths::{Draw, Zipf};
use crate::stream::Stream;
use crate::text::{Segment, TextMaker};

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

    /// What the first turn of a conversation has before the user's words.
    fn system_tokens(&self, turn: u16) -> u32 {
        match &self.prefixes {
            Some(prefixes) if self.prefix_is_system && turn == 0 => prefixes.tokens,
            _ => 0,
        }
    }
}

impl Prompts for Synthetic {
    fn recipe(&self, place: Place) -> Recipe {
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
        let own = Segment { seed: request.prompt_seed, tokens: request.input_tokens };
        if 0 < request.turn {
            return Content::text(self.text.bare(&[own]));
        }
        let Some(prefixes) = &self.prefixes else {
            return Content::text(self.text.framed(&[own]));
        };
        let prefix = prefixes.segment(request.conversation().0);
        if self.prefix_is_system {
            let own = Segment { tokens: own.tokens - prefix.tokens, ..own };
            let [system, user] = self.text.opening(prefix, own);
            let messages = vec![Message::new("system", system), Message::new("user", user)];
            return Content::of(Prompt::Messages(messages));
        }
        // A prompt that is no longer than its prefix is a part of it, and a word of its own.
        let tokens = prefix.tokens.min(own.tokens.saturating_sub(1));
        let prefix = Segment { tokens, ..prefix };
        let own = Segment { tokens: own.tokens - tokens, ..own };
        Content::text(self.text.framed(&[prefix, own]))
    }
}
