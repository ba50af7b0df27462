//! The plan that a spec, its inputs and its seed determine.

#[cfg(test)]
mod tests;

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::time::Duration;

use inferometer_model::plan::{Bounds, Fingerprints};
use inferometer_model::record::SessionPlace;
use inferometer_model::spec::{Extent, LoadShape, Rate, Source, TURNS_MAX, Think};
use inferometer_model::{Content, Moment, Plan, PlannedRequest, Release, RequestId, Segment, Spec};
use rand_core::Rng;
use rand_pcg::Pcg64;
use sha2::{Digest, Sha256};

use crate::arrivals::{Schedule, nanos};
use crate::fingerprint;
use crate::inputs::Inputs;
use crate::lengths::Draw;
use crate::prompts::{PromptIndex, Prompts};
use crate::sessions::Sessions;

/// Prompts of a source, released by a schedule or as slots become free. A request's recipe follows
/// from its id alone, so a plan of any length takes no memory but its schedule's.
#[derive(Clone, Debug)]
pub(crate) struct WorkloadPlan {
    seed: u64,
    prompts: Arc<dyn Prompts>,
    releases: Releases,
    sessions: Option<SessionPlan>,
    bounds: Bounds,
    ramp_up: Duration,
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

/// Which requests are a session, and whom each of them waits for.
#[derive(Clone, Debug)]
pub(crate) struct SessionPlan {
    pub(crate) turns: Turns,
    links: Links,
}

#[derive(Clone, Debug)]
enum Links {
    /// Each for the one before it.
    Chain(Think),
    Graph(Arc<Sessions>),
}

impl SessionPlan {
    pub(crate) fn new(spec: &Spec, inputs: &Inputs) -> Option<Self> {
        if let Some(sessions) = inputs.sessions() {
            let turns = Turns { firsts: sessions.firsts.clone() };
            return Some(Self { turns, links: Links::Graph(Arc::clone(sessions)) });
        }
        let Source::Conversations(talk) = &spec.workload.source else { return None };
        let turns = Turns::draw(&Draw::new(&talk.turns), spec.seed);
        Some(Self { turns, links: Links::Chain(talk.think) })
    }

    /// The turn with whose prompt and answer a request begins, and whether another begins so with its
    /// own.
    fn context(&self, id: RequestId, place: TurnPlace) -> (Option<u16>, bool) {
        match &self.links {
            Links::Chain(_) => (place.turn.checked_sub(1), place.turn + 1 < place.requests),
            Links::Graph(sessions) => {
                let (node, _) = sessions.node(id);
                (node.context, node.continues)
            }
        }
    }
}

/// Makes the plan, and names it. It is complete before the first byte is sent.
pub fn make_plan(spec: &Spec, inputs: &Inputs) -> (Arc<dyn Plan>, Fingerprints) {
    if let Some(saved) = inputs.saved() {
        let fingerprints = fingerprint::of_saved(saved, &spec.load);
        return (Arc::clone(saved) as Arc<dyn Plan>, fingerprints);
    }
    let plan = WorkloadPlan::new(spec, inputs);
    let workload =
        fingerprint::of_workload(spec.api, &spec.workload, &spec.load, inputs.materials());
    let plan_fingerprint = fingerprint::of_plan(&workload, spec.seed, &plan);
    (Arc::new(plan), Fingerprints { workload, plan: plan_fingerprint })
}

/// The plan of the warm-up, when there is one: as many requests, or for as long, of the same lengths, as
/// fast as the load's own concurrency allows. Its prompts are its own, so that no cache knows the run's;
/// but `vllm bench serve` asks its first prompt before a run, and so do those who draw as it does.
pub fn make_warm_up(spec: &Spec, inputs: &Inputs) -> Option<Arc<dyn Plan>> {
    let extent = match NonZeroU64::new(spec.load.warm_up) {
        Some(requests) => Extent::Requests(requests),
        None if spec.load.warm_up_time.is_zero() => return None,
        None => Extent::Duration(spec.load.warm_up_time),
    };
    let concurrency = match &spec.load.shape {
        LoadShape::Closed { concurrency, .. } => *concurrency,
        LoadShape::Open { cap, .. } => cap.unwrap_or(WARM_UP_CONCURRENCY),
    };
    let bounds = Bounds { slots: Some(concurrency), ..bounds_of_closed(extent, None) };
    let releases = Releases::BySlot { think: Think::None, end: bounds.requests };
    let prompts = inputs.warm_up(spec);
    let plan = WorkloadPlan {
        seed: spec.seed,
        prompts,
        releases,
        sessions: None,
        bounds,
        ramp_up: Duration::ZERO,
    };
    Some(Arc::new(plan))
}

/// In flight during the warm-up of a load that names no number itself.
const WARM_UP_CONCURRENCY: NonZeroU32 = NonZeroU32::new(8).unwrap();

impl WorkloadPlan {
    fn new(spec: &Spec, inputs: &Inputs) -> Self {
        let sessions = SessionPlan::new(spec, inputs);
        let turns = sessions.as_ref().map(|sessions| &sessions.turns);
        let extent = spec.load.extent;
        let (releases, bounds) = match &spec.load.shape {
            LoadShape::Closed { concurrency, think } => {
                let end = match extent {
                    Extent::Requests(requests) | Extent::UntilFirst { requests, .. } => {
                        Some(whole(requests.get(), turns))
                    }
                    Extent::Whole => inputs.recorded().map(|moments| moments.len() as u64),
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
                let schedule = match (rate, inputs.recorded()) {
                    (Rate::Recorded(_), Some(moments)) => Schedule::recorded(moments, arriving),
                    _ => Schedule::draw(rate, *arrivals, arriving, spec.seed),
                };
                let bounds = Bounds { slots: *cap, ..bounds_of_open(extent, &schedule, turns) };
                (Releases::Scheduled(schedule), bounds)
            }
        };
        let prompts = inputs.prompts(spec);
        let ramp_up = spec.load.ramp_up;
        Self { seed: spec.seed, prompts, releases, sessions, bounds, ramp_up }
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

    fn release(&self, id: RequestId, turn: TurnPlace) -> Option<(Release, Duration)> {
        let first = match &self.releases {
            Releases::Scheduled(schedule) => {
                let moment = schedule.moment(RequestId(turn.conversation))?;
                (Release::At(moment), Duration::ZERO)
            }
            Releases::BySlot { end, .. } if end.is_some_and(|end| end <= id.0) => return None,
            Releases::BySlot { think, .. } => {
                (Release::WhenSlotFree, self.think("think", *think, id))
            }
        };
        let Some(sessions) = self.sessions.as_ref().filter(|_| 0 < turn.turn) else {
            return Some(first);
        };
        let release = match &sessions.links {
            Links::Chain(think) => {
                let think = self.think("turn-think", *think, id);
                Release::After { previous: RequestId(id.0 - 1), think }
            }
            Links::Graph(sessions) => {
                let (node, _) = sessions.node(id);
                let session = id.0 - u64::from(turn.turn);
                match node.waits_for.last() {
                    None => Release::Beside { delay: node.delay },
                    Some(last) => Release::After {
                        previous: RequestId(session + u64::from(*last)),
                        think: node.delay,
                    },
                }
            }
        };
        Some((release, first.1))
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

    fn ramp_up(&self) -> Duration {
        self.ramp_up
    }

    fn request(&self, id: RequestId) -> Option<PlannedRequest> {
        let turn = match &self.sessions {
            None => TurnPlace { conversation: id.0, turn: 0, requests: 0 },
            Some(sessions) => sessions.turns.turn_at(id),
        };
        let (release, think) = self.release(id, turn)?;
        let recipe = self.prompts.recipe(PromptIndex { id: id.0, turn: turn.turn });
        let sessions = self.sessions.as_ref();
        let (context, continues) =
            sessions.map_or((None, false), |sessions| sessions.context(id, turn));
        let session = SessionPlace { requests: turn.requests, context, ..recipe.session };
        Some(PlannedRequest {
            id,
            release,
            think,
            // The requests of a session have its number in common.
            item: match &self.sessions {
                Some(_) => u32::try_from(turn.conversation).unwrap_or(u32::MAX),
                None => recipe.item,
            },
            turn: turn.turn,
            continues,
            session,
            ..recipe
        })
    }

    fn joins(&self, request: &PlannedRequest) -> Vec<RequestId> {
        let Some(SessionPlan { links: Links::Graph(sessions), .. }) = &self.sessions else {
            return Vec::new();
        };
        let first = request.conversation().0;
        let (node, _) = sessions.node(request.id);
        let others = node.waits_for.iter().rev().skip(1);
        others.map(|turn| RequestId(first + u64::from(*turn))).collect()
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        self.prompts.content(request)
    }

    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        self.prompts.segments(request)
    }
}

/// The numbers of turns of conversations. They repeat after a cycle; their words do not.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    /// The first request of each conversation of a cycle, and the cycle's length at the end.
    pub(crate) firsts: Vec<u64>,
}

/// The place of a request in its conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TurnPlace {
    /// The conversation, from zero.
    pub(crate) conversation: u64,
    pub(crate) turn: u16,
    /// How many requests the conversation has.
    pub(crate) requests: u16,
}

const CYCLE: u64 = 1 << 16;

impl Turns {
    pub(crate) fn draw(turns: &Draw, seed: u64) -> Self {
        let mut firsts = vec![0];
        let mut next = 0_u64;
        for conversation in 0..CYCLE {
            let turns = turns.draw_at(seed, "turns", conversation);
            // The tails of distributions reach beyond any bound.
            next += u64::from(turns.clamp(1, TURNS_MAX));
            firsts.push(next);
        }
        Self { firsts }
    }

    fn cycle(&self) -> u64 {
        self.firsts.last().copied().unwrap_or(1)
    }

    /// The sessions of a cycle.
    fn sessions(&self) -> u64 {
        (self.firsts.len() as u64).saturating_sub(1).max(1)
    }

    pub(crate) fn turn_at(&self, id: RequestId) -> TurnPlace {
        let (cycles, within) = (id.0 / self.cycle(), id.0 % self.cycle());
        let place = self.firsts.partition_point(|first| *first <= within) - 1;
        let turn = u16::try_from(within - self.firsts[place]).unwrap_or(u16::MAX);
        let requests = self.firsts.get(place + 1).map_or(0, |end| end - self.firsts[place]);
        let requests = u16::try_from(requests).unwrap_or(u16::MAX);
        TurnPlace { conversation: cycles * self.sessions() + place as u64, turn, requests }
    }

    /// How many requests so many conversations have.
    pub(crate) fn requests_of(&self, conversations: u64) -> u64 {
        let place = usize::try_from(conversations % self.sessions()).unwrap_or(0);
        conversations / self.sessions() * self.cycle() + self.firsts[place]
    }

    /// How many whole conversations it takes to have at least so many requests.
    pub(crate) fn conversations_for(&self, requests: u64) -> u64 {
        match requests.checked_sub(1) {
            None => 0,
            Some(last) => self.turn_at(RequestId(last)).conversation + 1,
        }
    }
}

/// A generator fixed by name (PCG XSL 128/64), seeded from the run's seed, a name and an index.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64);

impl Stream {
    pub fn new(seed: u64, name: &str, index: u64) -> Self {
        let mut hash = Sha256::new();
        hash.update(seed.to_le_bytes());
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name.as_bytes());
        hash.update(index.to_le_bytes());
        let digest: [u8; 32] = hash.finalize().into();
        let (state, stream) = digest.split_at(16);
        let number =
            |bytes: &[u8]| bytes.iter().rev().fold(0_u128, |n, byte| n << 8 | u128::from(*byte));
        Self(Pcg64::new(number(state), number(stream)))
    }

    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in (0, 1]: never zero, so its logarithm is finite.
    pub fn unit(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
        ((self.bits() >> 11) + 1) as f64 * STEP
    }

    /// Exponential with mean one, by inverting its distribution with a logarithm that is the same
    /// on every machine.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.unit())
    }
}

#[cfg(test)]
mod turns_tests {
    use super::*;
    use inferometer_model::spec::Lengths;

    #[test]
    fn requests_fall_into_conversations_in_order() {
        let turns = Turns::draw(&Draw::new(&Lengths::Fixed(3)), 1);
        let position = |id| {
            let turn = turns.turn_at(RequestId(id));
            (turn.conversation, turn.turn)
        };
        assert_eq!(
            (0..7).map(position).collect::<Vec<_>>(),
            [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0)]
        );
        assert_eq!(position(3 * CYCLE + 4), (CYCLE + 1, 1));
        assert_eq!(turns.requests_of(4), 12);
        assert_eq!(turns.requests_of(CYCLE + 2), 3 * CYCLE + 6);
        assert_eq!([0, 1, 3, 4].map(|requests| turns.conversations_for(requests)), [0, 1, 1, 2]);
    }
}

#[cfg(test)]
mod stream_tests {
    use super::*;

    #[test]
    fn a_stream_is_fixed_by_its_seed_name_and_index() {
        let first = |seed, name, index| Stream::new(seed, name, index).bits();
        // Golden, and equal to what an independent program computes from the definition of the
        // generator: a change here changes every plan ever published.
        assert_eq!(first(1, "arrivals", 0), 4_288_365_394_821_115_512);
        assert_ne!(first(1, "arrivals", 0), first(2, "arrivals", 0));
        assert_ne!(first(1, "arrivals", 0), first(1, "prompts", 0));
        assert_ne!(first(1, "arrivals", 0), first(1, "arrivals", 1));
    }

    #[test]
    fn exponential_draws_have_mean_and_deviation_one() {
        let mut stream = Stream::new(7, "test", 0);
        let draws: Vec<f64> = (0..100_000).map(|_| stream.exponential()).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance =
            draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / draws.len() as f64;
        assert!((mean - 1.0).abs() < 0.01, "mean {mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "coefficient of variation");
    }
}
