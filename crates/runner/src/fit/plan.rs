//! A row's load as a plan that can be played.

use std::num::NonZeroU32;

use inferometer_engine::scheduler::tokens::mix;
use inferometer_model::plan::Bounds;
use inferometer_model::{Content, Moment, Plan, PlannedRequest, Release, RequestId, Segment};

use super::row::RowRequest;

#[derive(Clone, Debug)]
pub struct RowPlan {
    pub requests: Vec<RowRequest>,
    pub releases: Releases,
}

#[derive(Clone, Debug)]
pub enum Releases {
    Slots(u32),
    At(Vec<Moment>),
}

impl Plan for RowPlan {
    fn bounds(&self) -> Bounds {
        let slots = match self.releases {
            Releases::Slots(slots) => NonZeroU32::new(slots),
            Releases::At(_) => None,
        };
        let requests = Some(self.requests.len() as u64);
        Bounds { requests, release_before: None, requests_min: 0, slots }
    }

    fn request(&self, id: RequestId) -> Option<PlannedRequest> {
        let index = usize::try_from(id.0).ok()?;
        let request = self.requests.get(index)?;
        let release = match &self.releases {
            Releases::Slots(_) => Release::WhenSlotFree,
            Releases::At(moments) => Release::At(*moments.get(index)?),
        };
        Some(PlannedRequest {
            prompt_seed: request.prompt.seed,
            input_tokens: request.prompt.tokens,
            output_tokens: request.output_tokens,
            ..PlannedRequest::alone(id, release)
        })
    }

    /// Nobody reads it: a simulation asks for segments.
    fn content(&self, _: &PlannedRequest) -> Content {
        Content::text(String::new())
    }

    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        vec![Segment { seed: request.prompt_seed, tokens: request.input_tokens }]
    }
}

/// Draws for arrivals and lengths, equal on every machine.
#[derive(Clone, Debug)]
pub struct Draws {
    state: u64,
}

impl Draws {
    pub fn new(seed: u64, purpose: u64) -> Self {
        Self { state: mix(mix(seed.wrapping_add(1)) ^ purpose.wrapping_mul(GOLDEN)) }
    }

    /// Above zero and below one.
    pub fn unit(&mut self) -> f64 {
        self.state = self.state.wrapping_add(GOLDEN);
        ((mix(self.state) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.unit())
    }

    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(2.0 * self.exponential());
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
