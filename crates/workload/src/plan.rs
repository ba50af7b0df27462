//! The plan that a spec, its ingredients and its seed determine.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::time::Duration;

use inferometer_model::plan::{Bounds, Fingerprints};
use inferometer_model::spec::{Extent, LoadShape, Rate, Source, Think};
use inferometer_model::{Content, Moment, Plan, PlannedRequest, Release, RequestId, Segment, Spec};

use crate::arrivals::Schedule;
use crate::curve::nanos;
use crate::fingerprint;
use crate::ingredients::Ingredients;
use crate::lengths::Draw;
use crate::prompts::{Place, Prompts};
use crate::stream::Stream;
use crate::turns::{Standing, Turns};

/// Prompts of a source, released by a schedule or as slots become free. A request's recipe follows
/// from its id alone, so a plan of any length takes no memory but its schedule's.
#[derive(Clone, Debug)]
pub(crate) struct WorkloadPlan {
    seed: u64,
    prompts: Arc<dyn Prompts>,
    releases: Releases,
    conversations: Option<Talk>,
    bounds: Bounds,
}

#[derive(Clone, Debug)]
enum Releases {
    /// The moments of requests, or of the first turns of conversations.
    Scheduled(Schedule),
    /// As slots become free, and have rested.
    BySlot {
        think: Think,
        /// The plan's end, when a number of requests may end it.
        end: Option<u64>,
    },
}

/// How conversations go on.
#[derive(Clone, Debug)]
struct Talk {
    turns: Turns,
    think: Think,
}

/// Makes the plan, and names it. It is complete before the first byte is sent.
pub fn make_plan(spec: &Spec, ingredients: &Ingredients) -> (Arc<dyn Plan>, Fingerprints) {
    if let Some(saved) = ingredients.saved() {
        let fingerprints = fingerprint::of_saved(saved, spec.load.warm_up);
        return (Arc::clone(saved) as Arc<dyn Plan>, fingerprints);
    }
    let plan = WorkloadPlan::new(spec, ingredients);
    let workload =
        fingerprint::of_workload(spec.api, &spec.workload, &spec.load, ingredients.materials());
    let plan_fingerprint = fingerprint::of_plan(&workload, spec.seed, &plan);
    (Arc::new(plan), Fingerprints { workload, plan: plan_fingerprint })
}

/// The plan of the warm-up, when there is one: as many requests, of the same lengths, as fast as
/// the load's own concurrency allows. Its prompts are its own, so that no cache knows the run's;
/// but `vllm bench serve` asks its first prompt before a run, and so do those who draw as it does.
pub fn make_warm_up(spec: &Spec, ingredients: &Ingredients) -> Option<Arc<dyn Plan>> {
    let requests = NonZeroU64::new(spec.load.warm_up)?;
    let concurrency = match &spec.load.shape {
        LoadShape::Closed { concurrency, .. } => *concurrency,
        LoadShape::Open { cap, .. } => cap.unwrap_or(WARM_UP_CONCURRENCY),
    };
    let extent = Extent::Requests(requests);
    let bounds = Bounds { slots: Some(concurrency), ..bounds_of_closed(extent, None) };
    let releases = Releases::BySlot { think: Think::None, end: Some(requests.get()) };
    let prompts = ingredients.warm_up(spec);
    let plan = WorkloadPlan { seed: spec.seed, prompts, releases, conversations: None, bounds };
    Some(Arc::new(plan))
}

/// In flight during the warm-up of a load that names no number itself.
const WARM_UP_CONCURRENCY: NonZeroU32 = NonZeroU32::new(8).unwrap();

impl WorkloadPlan {
    fn new(spec: &Spec, ingredients: &Ingredients) -> Self {
        let talk = match &spec.workload.source {
            Source::Conversations(talk) => Some(Talk {
                turns: Turns::draw(&Draw::new(&talk.turns), spec.seed),
                think: talk.think,
            }),
            Source::Synthetic(_)
            | Source::VllmRandom(_)
            | Source::Dataset(_)
            | Source::Fixed(_)
            | Source::Trace(_)
            | Source::Mix(_)
            | Source::Saved { .. } => None,
        };
        let turns = talk.as_ref().map(|talk| &talk.turns);
        let extent = spec.load.extent;
        let (releases, bounds) = match &spec.load.shape {
            LoadShape::Closed { concurrency, think } => {
                let end = match extent {
                    Extent::Requests(requests) | Extent::UntilFirst { requests, .. } => {
                        Some(whole(requests.get(), turns))
                    }
                    Extent::Whole => ingredients.recorded().map(|moments| moments.len() as u64),
                    Extent::Duration(_) | Extent::UntilBoth { .. } => None,
                };
                let bounds = match (extent, end) {
                    (Extent::Whole, end) => Bounds { requests: end, ..NO_BOUNDS },
                    _ => bounds_of_closed(extent, turns),
                };
                let bounds = Bounds { slots: Some(*concurrency), ..bounds };
                (Releases::BySlot { think: *think, end }, bounds)
            }
            LoadShape::Open { rate, arrivals, cap } => {
                // Conversations arrive, each with its turns.
                let arriving = match turns {
                    Some(turns) => conversations_in(extent, turns),
                    None => extent,
                };
                let schedule = match (rate, ingredients.recorded()) {
                    (Rate::Recorded(_), Some(moments)) => Schedule::recorded(moments, arriving),
                    _ => Schedule::draw(rate, *arrivals, arriving, spec.seed),
                };
                let bounds = Bounds { slots: *cap, ..bounds_of_open(extent, &schedule, turns) };
                (Releases::Scheduled(schedule), bounds)
            }
        };
        let prompts = ingredients.prompts(spec);
        Self { seed: spec.seed, prompts, releases, conversations: talk, bounds }
    }

    fn think(&self, stream: &str, think: Think, id: RequestId) -> Duration {
        match think {
            Think::None => Duration::ZERO,
            Think::Fixed(time) => time,
            Think::Exponential { mean } => {
                let draw = Stream::new(self.seed, stream, id.0).exponential();
                Duration::from_nanos(nanos(mean.as_secs_f64() * draw))
            }
        }
    }

    fn standing(&self, id: RequestId) -> Standing {
        match &self.conversations {
            None => Standing { conversation: id.0, turn: 0, is_last: true },
            Some(talk) => talk.turns.of(id),
        }
    }

    fn release(&self, id: RequestId, standing: Standing) -> Option<(Release, Duration)> {
        let first = match &self.releases {
            Releases::Scheduled(schedule) => {
                let moment = schedule.moment(RequestId(standing.conversation))?;
                (Release::At(moment), Duration::ZERO)
            }
            Releases::BySlot { end, .. } if end.is_some_and(|end| end <= id.0) => return None,
            Releases::BySlot { think, .. } => {
                (Release::WhenSlotFree, self.think("think", *think, id))
            }
        };
        match &self.conversations {
            Some(talk) if 0 < standing.turn => {
                let think = self.think("turn-think", talk.think, id);
                let previous = RequestId(id.0 - 1);
                Some((Release::After { previous, think }, first.1))
            }
            _ => Some(first),
        }
    }
}

/// A number of requests, rounded up to whole conversations.
fn whole(requests: u64, turns: Option<&Turns>) -> u64 {
    turns.map_or(requests, |turns| turns.requests_of(turns.conversations_for(requests)))
}

/// The extent in conversations instead of requests.
fn conversations_in(extent: Extent, turns: &Turns) -> Extent {
    let count = |requests: NonZeroU64| {
        NonZeroU64::new(turns.conversations_for(requests.get())).unwrap_or(NonZeroU64::MIN)
    };
    match extent {
        Extent::Whole | Extent::Duration(_) => extent,
        Extent::Requests(requests) => Extent::Requests(count(requests)),
        Extent::UntilBoth { requests, duration } => {
            Extent::UntilBoth { requests: count(requests), duration }
        }
        Extent::UntilFirst { requests, duration } => {
            Extent::UntilFirst { requests: count(requests), duration }
        }
    }
}

const NO_BOUNDS: Bounds =
    Bounds { requests: None, release_before: None, requests_min: 0, slots: None };

fn bounds_of_closed(extent: Extent, turns: Option<&Turns>) -> Bounds {
    match extent {
        Extent::Whole => NO_BOUNDS,
        Extent::Requests(requests) => {
            Bounds { requests: Some(whole(requests.get(), turns)), ..NO_BOUNDS }
        }
        // How many are released before the end is not known, even where the plan has an end.
        Extent::Duration(duration) | Extent::UntilFirst { duration, .. } => {
            Bounds { release_before: Some(Moment::ZERO + duration), ..NO_BOUNDS }
        }
        Extent::UntilBoth { requests, duration } => Bounds {
            release_before: Some(Moment::ZERO + duration),
            requests_min: whole(requests.get(), turns),
            ..NO_BOUNDS
        },
    }
}

fn bounds_of_open(extent: Extent, schedule: &Schedule, turns: Option<&Turns>) -> Bounds {
    let release_before = match extent {
        Extent::Requests(_) | Extent::Whole => None,
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
        Extent::UntilBoth { requests, .. } => whole(requests.get(), turns),
        Extent::Whole | Extent::Requests(_) | Extent::Duration(_) | Extent::UntilFirst { .. } => 0,
    };
    let requests = turns.map_or(schedule.len(), |turns| turns.requests_of(schedule.len()));
    Bounds { requests: Some(requests), release_before, requests_min, ..NO_BOUNDS }
}

impl Plan for WorkloadPlan {
    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn request(&self, id: RequestId) -> Option<PlannedRequest> {
        let standing = self.standing(id);
        let (release, think) = self.release(id, standing)?;
        let recipe = self.prompts.recipe(Place { id: id.0, turn: standing.turn });
        Some(PlannedRequest {
            id,
            release,
            think,
            prompt_seed: recipe.prompt_seed,
            input_tokens: recipe.input_tokens,
            output_tokens: recipe.output_tokens,
            // The turns of a conversation have its number in common.
            item: match &self.conversations {
                Some(_) => u32::try_from(standing.conversation).unwrap_or(u32::MAX),
                None => recipe.item,
            },
            part: recipe.part,
            turn: standing.turn,
            continues: !standing.is_last,
        })
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        self.prompts.content(request)
    }

    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        self.prompts.segments(request)
    }
}

#[cfg(test)]
mod tests;
