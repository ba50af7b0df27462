//! The engine of a simulation: its scheduler, the API server before it, and its clock. It keeps its
//! prefix cache from run to run.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use inferometer_engine::ApiProcess;
use inferometer_engine::physics::{Front as FrontCosts, PhysicsStep};
use inferometer_engine::profile::Profile;
use inferometer_engine::scheduler::{
    ConstantStep, Counters, Generation, Listener, Refusal, RequestFacts, Scheduler,
    SchedulerConfig, SchedulerRequest, StepShape, StepTime,
};
use inferometer_model::observations::Simulated;
use inferometer_model::spec::EngineTable;
use inferometer_model::{Moment, RequestId};

use super::player::{Delivery, Observer, Sample};
use crate::embedded;
use crate::failure::Failure;

/// An engine in virtual time.
pub struct VirtualEngine {
    scheduler: Scheduler<Timing>,
    api_server: ApiServer,
    /// The run's zero on the engine's clock.
    origin_ns: u64,
    /// What had been counted by then.
    counted: Counters,
    next_sample: Moment,
    /// How far apart samples are.
    pub sample_every: Duration,
    /// What is stored of the engine.
    pub facts: Simulated,
    /// The name of its model.
    pub model: String,
}

impl fmt::Debug for VirtualEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualEngine").field("facts", &self.facts).finish_non_exhaustive()
    }
}

/// How long steps take.
enum Timing {
    Constant(ConstantStep),
    Physics(Box<PhysicsStep>),
}

impl StepTime for Timing {
    fn step_ns(&mut self, shape: &StepShape) -> u64 {
        match self {
            Self::Constant(step) => step.step_ns(shape),
            Self::Physics(step) => step.step_ns(shape),
        }
    }
}

impl VirtualEngine {
    /// The engine that a spec asks for.
    pub fn new(spec: &EngineTable) -> Result<Self, Failure> {
        let profile = embedded::profile(spec)?;
        Ok(match spec.step {
            Some(step) => Self::stepping(profile.scheduler, step, profile.model.title),
            // Each run draws the noise anew.
            None => Self::from_profile(&profile, 0),
        })
    }

    /// The engine of a profile, with noise from this seed.
    pub fn from_profile(profile: &Profile, seed: u64) -> Self {
        let timing = Timing::Physics(Box::new(profile.step_time(seed)));
        let facts = Simulated { profile: profile.name.clone(), engine: one_line_of(profile) };
        let names = (facts, profile.model.title.clone());
        Self::assemble(profile.scheduler.clone(), timing, profile.front, names)
    }

    /// The profile's queues, in which nothing but steps takes time: the live engine's `--step`.
    fn stepping(config: SchedulerConfig, step: Duration, model: String) -> Self {
        let step_ns = u64::try_from(step.as_nanos()).unwrap_or(u64::MAX);
        let profile = format!("constant step of {step:?}");
        let facts = Simulated { profile, engine: describe(&config) };
        let timing = Timing::Constant(ConstantStep(step_ns));
        Self::assemble(config, timing, FrontCosts::IMMEDIATE, (facts, model))
    }

    fn assemble(
        config: SchedulerConfig,
        timing: Timing,
        costs: FrontCosts,
        (facts, model): (Simulated, String),
    ) -> Self {
        Self {
            scheduler: Scheduler::new(config, timing),
            api_server: ApiServer::new(costs),
            origin_ns: 0,
            counted: Counters::default(),
            next_sample: Moment::ZERO,
            sample_every: SAMPLE_EVERY,
            facts,
            model,
        }
    }

    /// The steps of a run differ from those of the next: their noise is of the run's own seed.
    pub fn draw_noise_from(&mut self, seed: u64) {
        match self.scheduler.step_time_mut() {
            Timing::Physics(step) => step.reseed(seed),
            Timing::Constant(_) => {}
        }
    }

    pub(crate) fn config(&self) -> &SchedulerConfig {
        self.scheduler.config()
    }

    /// A run begins: its zero is now.
    pub(super) fn begin(&mut self) {
        self.counted = self.scheduler.counters();
        self.next_sample = Moment::ZERO;
    }

    /// The run is over: the next begins here.
    pub(super) fn end(&mut self, at: Moment) {
        self.origin_ns = self.on_engine(at);
    }

    /// Lets time pass between runs.
    pub fn rest(&mut self, time: Duration) {
        self.end(Moment::ZERO + time);
    }

    /// What has been counted in this run.
    pub fn counters(&self) -> Counters {
        let (now, before) = (self.scheduler.counters(), self.counted);
        Counters {
            steps: now.steps - before.steps,
            preemptions: now.preemptions - before.preemptions,
            prefix_queries: now.prefix_queries - before.prefix_queries,
            prefix_hits: now.prefix_hits - before.prefix_hits,
            prefix_queries_preempted: now.prefix_queries_preempted
                - before.prefix_queries_preempted,
            prefix_hits_preempted: now.prefix_hits_preempted - before.prefix_hits_preempted,
            prompt_tokens: now.prompt_tokens - before.prompt_tokens,
            generation_tokens: now.generation_tokens - before.generation_tokens,
        }
    }

    /// Shows itself at even steps up to `now`, as it stands before what happens then. Nothing
    /// changes between events, so of a long rest only the beginning and the end are shown.
    pub(super) fn sample_before(&mut self, now: Moment, observer: &mut impl Observer) {
        for _ in 0..SAMPLES_OF_A_REST {
            if now < self.next_sample {
                return;
            }
            observer.sampled(&self.sample(self.next_sample));
            self.next_sample = self.next_sample + self.sample_every;
        }
        let Some(rest) = now.since(self.next_sample) else { return };
        let steps = rest.as_nanos() / self.sample_every.as_nanos().max(1);
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        let every_ns = u64::try_from(self.sample_every.as_nanos()).unwrap_or(u64::MAX);
        let at = self.next_sample + Duration::from_nanos(every_ns.saturating_mul(steps));
        observer.sampled(&Sample { stands_for: steps.saturating_add(1), ..self.sample(at) });
        self.next_sample = at + self.sample_every;
    }

    /// Itself, as it stands.
    pub(super) fn sample(&self, at: Moment) -> Sample {
        let (gauges, counters) = (self.scheduler.gauges(), self.scheduler.counters());
        Sample { at, stands_for: 1, gauges, counters }
    }

    pub(super) fn next_moment(&self) -> Option<Moment> {
        let events = [self.scheduler.next_event(), self.api_server.next_ns()];
        let next_ns = events.into_iter().flatten().min()?;
        Some(Moment::from_nanos(next_ns.saturating_sub(self.origin_ns)))
    }

    pub(super) fn take_in(&mut self, now: Moment, place: usize, id: RequestId, tokens: u32) {
        self.api_server.take_in(self.on_engine(now), place, id, tokens);
    }

    /// A request that the API server has read by now.
    pub(super) fn pass_on(&mut self, now: Moment) -> Option<Waiting> {
        self.api_server.pass_on(self.on_engine(now))
    }

    pub(super) fn submit(
        &mut self,
        now: Moment,
        request: SchedulerRequest,
        delivery: &mut Delivery<'_, impl Observer>,
    ) -> Result<(), Refusal> {
        let now_ns = self.on_engine(now);
        let (scheduler, mut wire) = self.wire(delivery);
        scheduler.submit(now_ns, request, &mut wire)
    }

    pub(super) fn advance(&mut self, now: Moment, delivery: &mut Delivery<'_, impl Observer>) {
        let now_ns = self.on_engine(now);
        let (scheduler, mut wire) = self.wire(delivery);
        scheduler.advance(now_ns, &mut wire);
    }

    pub(super) fn abort(
        &mut self,
        now: Moment,
        id: u64,
        delivery: &mut Delivery<'_, impl Observer>,
    ) {
        let now_ns = self.on_engine(now);
        let (scheduler, mut wire) = self.wire(delivery);
        scheduler.abort(now_ns, id, &mut wire);
    }

    fn on_engine(&self, moment: Moment) -> u64 {
        self.origin_ns.saturating_add(moment.as_nanos())
    }

    fn wire<'a, 'd, O: Observer>(
        &'a mut self,
        delivery: &'a mut Delivery<'d, O>,
    ) -> (&'a mut Scheduler<Timing>, Wire<'a, 'd, O>) {
        let Self { scheduler, api_server, origin_ns, .. } = self;
        (scheduler, Wire { api_server, origin_ns: *origin_ns, delivery })
    }
}

const SAMPLE_EVERY: Duration = Duration::from_secs(1);
const SAMPLES_OF_A_REST: u32 = 60;

/// From the scheduler through the API server to the client.
struct Wire<'a, 'd, O: Observer> {
    api_server: &'a mut ApiServer,
    origin_ns: u64,
    delivery: &'a mut Delivery<'d, O>,
}

impl<O: Observer> Listener for Wire<'_, '_, O> {
    fn token(&mut self, id: u64, _index: u32, at_ns: u64) {
        let seen_ns = self.api_server.hand_out(at_ns);
        self.delivery.token(id, Moment::from_nanos(seen_ns.saturating_sub(self.origin_ns)));
    }

    fn ended(&mut self, facts: &RequestFacts) {
        self.delivery.ended(facts);
    }
}

/// What the profile says of itself first and last: what is served on what, and where the step times
/// come from.
fn one_line_of(profile: &Profile) -> String {
    let text = profile.describe();
    let name = format!("{}: ", profile.name);
    let mut lines = text.strip_prefix(&name).unwrap_or(&text).lines();
    let (first, last) = (lines.next(), lines.next_back());
    first.into_iter().chain(last).collect::<Vec<_>>().join("; ")
}

/// What the reader of a result needs to know of the settings.
fn describe(config: &SchedulerConfig) -> String {
    let generation = match config.generation {
        Generation::V1 => "v1".to_owned(),
        Generation::V0 { scheduler_steps } => format!("v0 ({scheduler_steps} scheduler steps)"),
    };
    let caching = if config.prefix_caching { "on" } else { "off" };
    format!(
        "{generation} scheduler, {} KV blocks of {} tokens, max_num_seqs {}, \
         max_num_batched_tokens {}, max_model_len {}, prefix caching {caching}",
        config.blocks,
        config.block_size,
        config.max_num_seqs,
        config.max_num_batched_tokens,
        config.max_model_len,
    )
}

#[derive(Debug)]
struct ApiServer {
    process: ApiProcess,
    /// Requests on their way to the scheduler, in the order of their arrival there.
    queue: VecDeque<Waiting>,
}

/// A request that is not with the scheduler yet. Its slot may have been used again meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    at_ns: u64,
    pub(super) place: usize,
    pub(super) id: RequestId,
}

impl ApiServer {
    fn new(costs: FrontCosts) -> Self {
        Self { process: ApiProcess::new(costs), queue: VecDeque::new() }
    }

    /// Takes a request in; it will be with the scheduler when all before it are done.
    fn take_in(&mut self, now_ns: u64, place: usize, id: RequestId, tokens: u32) {
        let at_ns = self.process.take_in(now_ns, tokens);
        self.queue.push_back(Waiting { at_ns, place, id });
    }

    /// Sends a token; returns when the client has it.
    fn hand_out(&mut self, now_ns: u64) -> u64 {
        self.process.hand_out(now_ns)
    }

    /// When the next request reaches the scheduler.
    fn next_ns(&self) -> Option<u64> {
        self.queue.front().map(|waiting| waiting.at_ns)
    }

    /// A request that reaches the scheduler by now.
    fn pass_on(&mut self, now_ns: u64) -> Option<Waiting> {
        let is_due = self.next_ns().is_some_and(|at_ns| at_ns <= now_ns);
        if is_due { self.queue.pop_front() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_handled_one_after_the_other() {
        let costs =
            FrontCosts { per_request_ns: 10, per_prompt_token_ns: 1, per_output_token_ns: 2 };
        let mut front = ApiServer::new(costs);
        front.take_in(100, 0, RequestId(0), 5);
        front.take_in(101, 1, RequestId(1), 0);
        assert_eq!(front.next_ns(), Some(115));
        assert_eq!(front.hand_out(101), 127);
        assert_eq!(front.pass_on(114), None);
        assert_eq!(front.pass_on(115).map(|waiting| waiting.place), Some(0));
        assert_eq!(front.pass_on(200).map(|waiting| waiting.id), Some(RequestId(1)));
        assert_eq!(front.hand_out(300), 302);
    }
}
