//! Where prompts come from. Every source answers the same two questions: how long is the request
//! at a place, and what does it say. Everything follows from the seed and the place.

mod fixed;
mod numpy_rng;
mod synthetic;
#[cfg_attr(not(test), expect(dead_code, reason = "no plan asks for it yet"))]
mod vllm_random;
mod warm_up;

use std::fmt;

use inferometer_model::{Content, PlannedRequest};

pub(crate) use fixed::Fixed;
pub(crate) use synthetic::{Prefixes, Synthetic};
#[expect(unused_imports, reason = "no plan asks for it yet")]
pub(crate) use vllm_random::VllmRandom;
pub(crate) use warm_up::WarmUp;

/// A source of prompts, made for one seed.
pub(crate) trait Prompts: Send + Sync + fmt::Debug {
    fn recipe(&self, place: Place) -> Recipe;

    /// What the request says; of a conversation the new turn alone.
    fn content(&self, request: &PlannedRequest) -> Content;
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
