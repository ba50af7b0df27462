//! Prompts as long as the run's, and unlike any of them: a warm-up must not fill a prefix cache
//! with what is measured next.

use std::sync::Arc;

use inferometer_model::{Content, PlannedRequest};

use super::{Place, Prompts, Recipe};
use crate::stream::Stream;
use crate::text::{Segment, TextMaker};

#[derive(Debug)]
pub(crate) struct WarmUp {
    lengths: Arc<dyn Prompts>,
    text: Arc<TextMaker>,
    seed: u64,
}

impl WarmUp {
    pub(crate) fn new(lengths: Arc<dyn Prompts>, text: Arc<TextMaker>, seed: u64) -> Self {
        Self { lengths, text, seed }
    }
}

impl Prompts for WarmUp {
    fn recipe(&self, place: Place) -> Recipe {
        let recipe = self.lengths.recipe(place);
        Recipe {
            prompt_seed: Stream::new(self.seed, "warm-up", place.id).bits(),
            input_tokens: recipe.input_tokens.max(self.text.shortest()),
            ..recipe
        }
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        let own = Segment { seed: request.prompt_seed, tokens: request.input_tokens };
        let fields = self.lengths.fields(request);
        Content { fields, ..Content::text(self.text.framed(&[own])) }
    }

    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        vec![Segment { seed: request.prompt_seed, tokens: request.input_tokens }]
    }
}
