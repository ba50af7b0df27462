//! The plan that a spec and its seed determine.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use inferometer_model::plan::{Bounds, Fingerprints};
use inferometer_model::spec::{Extent, LoadShape, Think};
use inferometer_model::{Moment, Plan, PlannedRequest, Release, RequestId, Spec};

use crate::arrivals::Schedule;
use crate::curve::nanos;
use crate::fingerprint;
use crate::prompt;
use crate::stream::Stream;

/// Synthetic prompts, released by a schedule or as slots become free. A request's recipe follows
/// from its id alone, so a plan of any length takes no memory but its schedule's.
#[derive(Clone, Debug)]
pub struct SyntheticPlan {
    seed: u64,
    /// The stream that prompts are drawn from.
    prompts: &'static str,
    input_tokens: u32,
    output_tokens: u32,
    releases: Releases,
    bounds: Bounds,
}

#[derive(Clone, Debug)]
enum Releases {
    Scheduled(Schedule),
    /// As slots become free, and have rested.
    BySlot {
        think: Think,
        /// The plan's end, when a number of requests may end it.
        end: Option<u64>,
    },
}

/// Makes the plan, and names it. It is complete before the first byte is sent.
pub fn make_plan(spec: &Spec) -> (SyntheticPlan, Fingerprints) {
    let plan = SyntheticPlan::new(spec);
    let workload = fingerprint::of_workload(spec);
    let plan_fingerprint = fingerprint::of_plan(&workload, spec.seed, &plan);
    (plan, Fingerprints { workload, plan: plan_fingerprint })
}

/// The plan of the warm-up, when there is one: as many requests, of the same lengths, as fast as
/// the load's own concurrency allows. Its prompts are its own, so that no cache knows the run's.
pub fn make_warm_up(spec: &Spec) -> Option<SyntheticPlan> {
    let requests = NonZeroU64::new(spec.load.warm_up)?;
    let concurrency = match &spec.load.shape {
        LoadShape::Closed { concurrency, .. } => *concurrency,
        LoadShape::Open { cap, .. } => cap.unwrap_or(WARM_UP_CONCURRENCY),
    };
    let extent = Extent::Requests(requests);
    let bounds = Bounds { slots: Some(concurrency), ..bounds_of_closed(extent) };
    let releases = Releases::BySlot { think: Think::None, end: Some(requests.get()) };
    Some(SyntheticPlan { prompts: "warm-up", bounds, releases, ..SyntheticPlan::new(spec) })
}

/// In flight during the warm-up of a load that names no number itself.
const WARM_UP_CONCURRENCY: NonZeroU32 = NonZeroU32::new(8).unwrap();

impl SyntheticPlan {
    fn new(spec: &Spec) -> Self {
        let extent = spec.load.extent;
        let (releases, bounds) = match &spec.load.shape {
            LoadShape::Closed { concurrency, think } => {
                let end = match extent {
                    Extent::Requests(requests) | Extent::UntilFirst { requests, .. } => {
                        Some(requests.get())
                    }
                    Extent::Duration(_) | Extent::UntilBoth { .. } => None,
                };
                let bounds = Bounds { slots: Some(*concurrency), ..bounds_of_closed(extent) };
                (Releases::BySlot { think: *think, end }, bounds)
            }
            LoadShape::Open { rate, arrivals, cap } => {
                let schedule = Schedule::draw(rate, *arrivals, extent, spec.seed);
                let bounds = Bounds { slots: *cap, ..bounds_of_open(extent, &schedule) };
                (Releases::Scheduled(schedule), bounds)
            }
        };
        Self {
            seed: spec.seed,
            prompts: "prompts",
            input_tokens: spec.workload.input_tokens,
            output_tokens: spec.workload.output_tokens,
            bounds,
            releases,
        }
    }

    fn think(&self, think: Think, id: RequestId) -> Duration {
        match think {
            Think::None => Duration::ZERO,
            Think::Fixed(time) => time,
            Think::Exponential { mean } => {
                let draw = Stream::new(self.seed, "think", id.0).exponential();
                Duration::from_nanos(nanos(mean.as_secs_f64() * draw))
            }
        }
    }
}

const NO_BOUNDS: Bounds =
    Bounds { requests: None, release_before: None, requests_min: 0, slots: None };

fn bounds_of_closed(extent: Extent) -> Bounds {
    match extent {
        Extent::Requests(requests) => Bounds { requests: Some(requests.get()), ..NO_BOUNDS },
        // How many are released before the end is not known, even where the plan has an end.
        Extent::Duration(duration) | Extent::UntilFirst { duration, .. } => {
            Bounds { release_before: Some(Moment::ZERO + duration), ..NO_BOUNDS }
        }
        Extent::UntilBoth { requests, duration } => Bounds {
            release_before: Some(Moment::ZERO + duration),
            requests_min: requests.get(),
            ..NO_BOUNDS
        },
    }
}

fn bounds_of_open(extent: Extent, schedule: &Schedule) -> Bounds {
    let release_before = match extent {
        Extent::Requests(_) => None,
        Extent::Duration(duration) | Extent::UntilFirst { duration, .. } => {
            Some(Moment::ZERO + duration)
        }
        // The schedule may reach beyond the time.
        Extent::UntilBoth { duration, .. } => {
            let end = Moment::ZERO + duration;
            Some(schedule.last().map_or(end, |last| end.max(last + Duration::from_nanos(1))))
        }
    };
    // What a cap still holds back when the time is over is given up, but for a number to be reached.
    let requests_min = match extent {
        Extent::UntilBoth { requests, .. } => requests.get(),
        Extent::Requests(_) | Extent::Duration(_) | Extent::UntilFirst { .. } => 0,
    };
    Bounds { requests: Some(schedule.len()), release_before, requests_min, ..NO_BOUNDS }
}

impl Plan for SyntheticPlan {
    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn request(&self, id: RequestId) -> Option<PlannedRequest> {
        let (release, think) = match &self.releases {
            Releases::Scheduled(schedule) => (Release::At(schedule.moment(id)?), Duration::ZERO),
            Releases::BySlot { end, .. } if end.is_some_and(|end| end <= id.0) => return None,
            Releases::BySlot { think, .. } => (Release::WhenSlotFree, self.think(*think, id)),
        };
        Some(PlannedRequest {
            id,
            release,
            think,
            prompt_seed: Stream::new(self.seed, self.prompts, id.0).bits(),
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
        })
    }

    fn prompt(&self, request: &PlannedRequest) -> String {
        prompt::text(request.prompt_seed, request.input_tokens)
    }
}

#[cfg(test)]
mod tests;
