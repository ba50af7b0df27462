//! The same prompt every time, as some published results were made.

use inferometer_model::{Content, PlannedRequest};

use super::{Place, Prompts, Recipe};
use crate::lengths::Draw;
use crate::stream::Stream;

#[derive(Debug)]
pub(crate) struct Fixed {
    pub(crate) seed: u64,
    pub(crate) prompt: String,
    /// By the tokenizer, or by words.
    pub(crate) input_tokens: u32,
    pub(crate) output: Draw,
}

impl Prompts for Fixed {
    fn recipe(&self, place: Place) -> Recipe {
        let output_tokens = self.output.draw(&mut Stream::new(self.seed, "output", place.id));
        Recipe { input_tokens: self.input_tokens, output_tokens, ..Recipe::default() }
    }

    fn content(&self, _: &PlannedRequest) -> Content {
        Content::text(self.prompt.clone())
    }
}
