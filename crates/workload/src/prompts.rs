//! Where prompts come from. Every source answers the same two questions: how long is the request
//! at a place, and what does it say. Everything follows from the seed and the place.

mod alphabet;
mod dataset;
mod decorated;
mod fixed;
mod mix;
mod numpy_rng;
mod repeated;
mod synthetic;
mod trace;
mod vllm_random;
mod warm_up;

use std::fmt;

use inferometer_model::{Content, PlannedRequest, Segment};
use serde_json::{Map, Value};

pub(crate) use alphabet::Alphabet;
pub(crate) use dataset::DatasetPrompts;
pub(crate) use decorated::{Decorated, Users};
pub(crate) use fixed::Fixed;
pub(crate) use mix::{Mix, Shares};
pub(crate) use repeated::Repeated;
pub(crate) use synthetic::{Prefixes, Synthetic};
pub(crate) use trace::TracePrompts;
pub(crate) use vllm_random::{REQUESTS_OPEN_ENDED, VllmRandom};
pub(crate) use warm_up::WarmUp;

/// A source of prompts, made for one seed.
pub(crate) trait Prompts: Send + Sync + fmt::Debug {
    fn recipe(&self, place: Place) -> Recipe;

    /// What the request says; of a conversation the new turn alone.
    fn content(&self, request: &PlannedRequest) -> Content;

    /// What it says, without its text: which runs of tokens are equal to which. Sources that know
    /// it make no text for this; elsewhere equal texts are equal and others share nothing.
    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        let seed = self.content(request).prompt.likeness();
        vec![Segment { seed, tokens: request.input_tokens }]
    }

    /// What its body alone carries, whatever it says.
    fn fields(&self, _: &PlannedRequest) -> Map<String, Value> {
        Map::new()
    }
}

/// Which request of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) id: u64,
    /// Turn of its conversation, from zero.
    pub(crate) turn: u16,
}

/// What a plan keeps of a request: enough to make its content again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recipe {
    pub(crate) prompt_seed: u64,
    pub(crate) input_tokens: u32,
    pub(crate) output_tokens: u32,
    pub(crate) item: u32,
    pub(crate) part: u16,
}

/// A request of a plan that releases it as a slot becomes free.
#[cfg(test)]
pub(crate) fn planned(prompts: &dyn Prompts, id: u64) -> PlannedRequest {
    let id = inferometer_model::RequestId(id);
    let recipe = prompts.recipe(Place { id: id.0, turn: 0 });
    PlannedRequest {
        prompt_seed: recipe.prompt_seed,
        input_tokens: recipe.input_tokens,
        output_tokens: recipe.output_tokens,
        item: recipe.item,
        part: recipe.part,
        ..PlannedRequest::alone(id, inferometer_model::Release::WhenSlotFree)
    }
}
