//! One worker's share of a plan: whole conversations and whole users, so that the shares of all workers
//! are the plan.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use inferometer_model::plan::Bounds;
use inferometer_model::spec::Source;
use inferometer_model::{Content, Plan, PlannedRequest, Release, RequestId, Segment, Spec, Stripe};

use crate::WorkloadError;
use crate::counter::PromptCounter;
use crate::inputs::Inputs;
use crate::lengths::Draw;
use crate::plan::{SessionPlan, Turns};
use crate::saved::SavedPlan;
use crate::sessions;

/// The first request of each conversation of a plan, by its number; past the last conversation, the
/// number of requests.
pub type ConversationStarts = Arc<dyn Fn(u64) -> u64 + Send + Sync>;

/// Which requests of a plan belong to a stripe, and under which numbers.
pub struct StripeIds {
    stripe: Stripe,
    starts: Option<ConversationStarts>,
    known: Mutex<Known>,
}

/// The conversations of a stripe that were asked for so far.
#[derive(Default)]
struct Known {
    /// The first request of each, in the stripe and in the plan.
    begins: Vec<(u64, u64)>,
    /// The first request of the next one in the stripe.
    next: u64,
}

inferometer_model::debug_fields!(StripeIds, stripe);

impl StripeIds {
    /// `starts` is `None` for a plan without conversations.
    pub fn new(stripe: Stripe, starts: Option<ConversationStarts>) -> Self {
        Self { stripe, starts, known: Mutex::default() }
    }

    /// The request of the plan that has this number in the stripe; `None` past the end of the plan.
    pub fn in_plan(&self, id: RequestId) -> Option<RequestId> {
        let Some(starts) = &self.starts else { return Some(RequestId(self.stripe.nth(id.0))) };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        while known.next <= id.0 {
            let number = self.stripe.nth(known.begins.len() as u64);
            let (begin, end) = (starts(number), starts(number + 1));
            let here = known.next;
            known.next += end.checked_sub(begin).filter(|length| 0 < *length)?;
            known.begins.push((here, begin));
        }
        let place = known.begins.partition_point(|(here, _)| *here <= id.0).checked_sub(1)?;
        let (here, begin) = known.begins[place];
        Some(RequestId(begin + (id.0 - here)))
    }

    /// How many of the plan's first requests belong to the stripe.
    pub fn count_below(&self, end: u64) -> u64 {
        let Some(starts) = &self.starts else { return self.stripe.share(end) };
        let spans = (0..).map(|number| {
            let number = self.stripe.nth(number);
            (starts(number), starts(number + 1).min(end))
        });
        let inside = spans.take_while(|(begin, until)| *begin < end && begin < until);
        inside.map(|(begin, until)| until - begin).sum()
    }
}

/// Where the conversations of a plan begin; `None` for a plan without any.
pub fn conversation_starts(spec: &Spec, inputs: &Inputs) -> Option<ConversationStarts> {
    match inputs.saved() {
        Some(saved) => starts_of_saved(saved),
        None => SessionPlan::new(spec, inputs).map(|plan| starts_of(plan.turns)),
    }
}

/// The same from what is stored with a run. The files of saved plans and of recorded sessions are read
/// again.
#[expect(clippy::wildcard_enum_match_arm, reason = "all other requests stand alone")]
pub fn stored_conversation_starts(
    spec: &Spec,
) -> Result<Option<ConversationStarts>, WorkloadError> {
    Ok(match &spec.workload.source {
        Source::Saved { path, .. } => starts_of_saved(&SavedPlan::open(Path::new(path))?),
        Source::Conversations(talk) => {
            Some(starts_of(Turns::draw(&Draw::new(&talk.turns), spec.seed)))
        }
        Source::Agents(agents) => {
            let firsts = sessions::draw_agents(agents, spec.seed).firsts;
            Some(starts_of(Turns { firsts }))
        }
        Source::Sessions(recorded) => {
            // Where sessions begin does not depend on how their tokens are counted.
            let firsts = sessions::read(recorded, &PromptCounter::default())?.0.firsts;
            Some(starts_of(Turns { firsts }))
        }
        _ => None,
    })
}

fn starts_of(turns: Turns) -> ConversationStarts {
    Arc::new(move |number| turns.requests_of(number))
}

fn starts_of_saved(saved: &SavedPlan) -> Option<ConversationStarts> {
    let requests = || (0..).map_while(|id| saved.request(RequestId(id)));
    requests().any(|request| 0 < request.turn).then(|| {
        let firsts: Vec<u64> =
            requests().filter(|request| request.turn == 0).map(|request| request.id.0).collect();
        let end = requests().count() as u64;
        let first = move |number: u64| {
            usize::try_from(number).ok().and_then(|number| firsts.get(number)).map_or(end, |it| *it)
        };
        Arc::new(first) as ConversationStarts
    })
}

/// A plan whose requests are those of a stripe, numbered from zero.
pub struct StripedPlan {
    whole: Arc<dyn Plan>,
    ids: StripeIds,
    bounds: Bounds,
}

inferometer_model::debug_fields!(StripedPlan, ids, bounds);

impl StripedPlan {
    /// A stripe without a user of a closed loop has one all the same: see [`Stripe::share`].
    pub fn new(whole: Arc<dyn Plan>, ids: StripeIds) -> Self {
        let Bounds { requests, release_before, requests_min, slots } = whole.bounds();
        let slots = slots.map(|slots| {
            let share = u32::try_from(ids.stripe.share(slots.get().into())).ok();
            share.and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
        });
        let requests = requests.map(|requests| ids.count_below(requests));
        let requests_min = ids.count_below(requests_min);
        let bounds = Bounds { requests, release_before, requests_min, slots };
        Self { whole, ids, bounds }
    }

    /// The number here of another request of a session, by one whose numbers in the plan and here are
    /// known: a session belongs to one stripe, so its requests stand together here as well.
    fn in_stripe(other: RequestId, (whole, own): (RequestId, RequestId)) -> RequestId {
        RequestId((other.0 + own.0).saturating_sub(whole.0))
    }

    fn in_plan(&self, request: &PlannedRequest) -> PlannedRequest {
        let id = self.ids.in_plan(request.id).unwrap_or(request.id);
        PlannedRequest { id, ..*request }
    }
}

impl Plan for StripedPlan {
    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn ramp_up(&self) -> Duration {
        self.whole.ramp_up()
    }

    fn slot_start(&self, slot: u32) -> Duration {
        let slot = self.ids.stripe.nth(slot.into());
        self.whole.slot_start(u32::try_from(slot).unwrap_or(u32::MAX))
    }

    fn request(&self, id: RequestId) -> Option<PlannedRequest> {
        let request = self.whole.request(self.ids.in_plan(id)?)?;
        let release = match request.release {
            Release::After { previous, think } => {
                Release::After { previous: Self::in_stripe(previous, (request.id, id)), think }
            }
            Release::At(_) | Release::WhenSlotFree | Release::Beside { .. } => request.release,
        };
        Some(PlannedRequest { id, release, ..request })
    }

    fn joins(&self, request: &PlannedRequest) -> Vec<RequestId> {
        let whole = self.in_plan(request);
        let joins = self.whole.joins(&whole).into_iter();
        joins.map(|other| Self::in_stripe(other, (whole.id, request.id))).collect()
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        self.whole.content(&self.in_plan(request))
    }

    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        self.whole.segments(&self.in_plan(request))
    }
}

#[cfg(test)]
mod tests;
