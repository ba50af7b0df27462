//! The plan that a spec and its seed determine.

use std::num::NonZeroU32;

use inferometer_model::plan::{Bounds, Fingerprints};
use inferometer_model::spec::{Extent, LoadShape};
use inferometer_model::{Moment, Plan, PlannedRequest, Release, RequestId, Spec};

use crate::arrivals::Schedule;
use crate::fingerprint;
use crate::prompt;
use crate::stream::Stream;

/// Synthetic prompts, released by a schedule or as slots become free. A request's recipe follows
/// from its id alone, so a plan of any length takes no memory but its schedule's.
#[derive(Clone, Debug)]
pub struct SyntheticPlan {
    seed: u64,
    input_tokens: u32,
    output_tokens: u32,
    releases: Releases,
    bounds: Bounds,
}

#[derive(Clone, Debug)]
enum Releases {
    Scheduled(Schedule),
    BySlot,
}

/// Makes the plan, and names it. It is complete before the first byte is sent.
pub fn make_plan(spec: &Spec) -> (SyntheticPlan, Fingerprints) {
    let plan = SyntheticPlan::new(spec);
    let workload = fingerprint::of_workload(spec);
    let plan_fingerprint = fingerprint::of_plan(&workload, spec.seed, &plan);
    (plan, Fingerprints { workload, plan: plan_fingerprint })
}

impl SyntheticPlan {
    fn new(spec: &Spec) -> Self {
        let (releases, slots) = match spec.load.shape {
            LoadShape::Closed { concurrency } => (Releases::BySlot, Some(concurrency)),
            LoadShape::Open { rate_per_s, arrivals } => {
                let schedule = Schedule::draw(rate_per_s, arrivals, spec.load.extent, spec.seed);
                (Releases::Scheduled(schedule), None)
            }
        };
        Self {
            seed: spec.seed,
            input_tokens: spec.workload.input_tokens,
            output_tokens: spec.workload.output_tokens,
            bounds: bounds(&releases, spec.load.extent, slots),
            releases,
        }
    }
}

fn bounds(releases: &Releases, extent: Extent, slots: Option<NonZeroU32>) -> Bounds {
    let release_before = match extent {
        Extent::Requests(_) => None,
        Extent::Duration(duration) => Some(Moment::ZERO + duration),
    };
    let requests = match (releases, extent) {
        (Releases::Scheduled(schedule), _) => Some(schedule.len()),
        (Releases::BySlot, Extent::Requests(requests)) => Some(requests.get()),
        (Releases::BySlot, Extent::Duration(_)) => None,
    };
    Bounds { requests, release_before, requests_min: 0, slots }
}

impl Plan for SyntheticPlan {
    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn request(&self, id: RequestId) -> Option<PlannedRequest> {
        if self.bounds.requests.is_some_and(|requests| requests <= id.0) {
            return None;
        }
        let release = match &self.releases {
            Releases::Scheduled(schedule) => Release::At(schedule.moment(id)?),
            Releases::BySlot => Release::WhenSlotFree,
        };
        Some(PlannedRequest {
            id,
            release,
            prompt_seed: Stream::new(self.seed, "prompts", id.0).bits(),
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            think: std::time::Duration::ZERO,
        })
    }

    fn prompt(&self, request: &PlannedRequest) -> String {
        prompt::text(request.prompt_seed, request.input_tokens)
    }
}
