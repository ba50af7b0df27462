//! Virtual time: the dispatcher of `load` and the scheduler of `engine` under one simulated clock.
//!
//! A simulation goes from event to event and waits for nothing: what the plan releases, what the
//! API server hands on, what the scheduler does, and what time-outs end. Decisions are those of
//! the real run, made by the same code; what is here only brings moments into one order: the
//! dispatcher sends requests, time-outs end them, and when the time is over the last ones may still
//! finish until the drain ends.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use inferometer_engine::ApiProcess;
use inferometer_engine::physics::{Front as FrontCosts, StepModel};
use inferometer_engine::profile::Profile;
use inferometer_engine::scheduler::blocks::{PromptHasher, mix};
use inferometer_engine::scheduler::{
    Counters, Gauges, Generation, HashedPrompt, Listener, RequestEnd, RequestFacts, Scheduler,
    SchedulerConfig, SchedulerRequest, StopRules,
};
use inferometer_load::dispatcher::{Command, Departure, Dispatcher, Reply};
use inferometer_load::limits::{Limits, RequestState};
use inferometer_load::{Control, Stop};
use inferometer_model::journal::{ClientFacts, RunStop};
use inferometer_model::observations::Simulated;
use inferometer_model::outcome::{Cause, Stage};
use inferometer_model::spec::{self, EngineTable};
use inferometer_model::{
    Ending, Moment, NotSent, Outcome, Plan, RequestId, RunEnding, Segment, StartedRequest,
};
use slab::Slab;

use crate::embedded;
use crate::failure::Failure;
pub use crate::simulator::{SimulationSummary, Times};

/// An engine in virtual time. It keeps its prefix cache from run to run.
pub struct VirtualEngine {
    scheduler: Scheduler<StepModel>,
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

impl VirtualEngine {
    /// The engine that a spec asks for.
    pub fn new(spec: &EngineTable) -> Result<Self, Failure> {
        let profile = embedded::profile(spec)?;
        let Some(step) = spec.step else {
            // Each run draws the noise anew.
            return Ok(Self::from_profile(&profile, 0));
        };
        // The profile's queues, in which nothing but steps takes time: the live engine's `--step`.
        let config = profile.scheduler;
        let title = format!("constant step of {step:?}");
        let facts = Simulated { profile: title, engine: describe(&config) };
        let scheduler = Scheduler::new(config, StepModel::constant(step));
        Ok(Self::assemble(scheduler, FrontCosts::IMMEDIATE, facts, profile.model.title))
    }

    /// The engine of a profile, with noise from this seed.
    pub fn from_profile(profile: &Profile, seed: u64) -> Self {
        let timing = StepModel::Physics(Box::new(profile.step_time(seed)));
        let facts = Simulated { profile: profile.name.clone(), engine: profile_line(profile) };
        let scheduler = Scheduler::new(profile.scheduler.clone(), timing);
        Self::assemble(scheduler, profile.front, facts, profile.model.title.clone())
    }

    fn assemble(
        scheduler: Scheduler<StepModel>,
        costs: FrontCosts,
        facts: Simulated,
        model: String,
    ) -> Self {
        Self {
            scheduler,
            api_server: ApiServer { process: ApiProcess::new(costs), queue: VecDeque::new() },
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
        if let StepModel::Physics(step) = self.scheduler.step_time_mut() {
            step.reseed(seed);
        }
    }

    pub(crate) fn config(&self) -> &SchedulerConfig {
        self.scheduler.config()
    }

    /// A run begins: its zero is now.
    fn begin(&mut self) {
        self.counted = self.scheduler.counters();
        self.next_sample = Moment::ZERO;
    }

    /// The run is over: the next begins here.
    fn end(&mut self, at: Moment) {
        self.origin_ns = self.on_engine(at);
    }

    /// Lets time pass between runs.
    pub fn rest(&mut self, time: Duration) {
        self.end(Moment::ZERO + time);
    }

    /// What one of the scheduler's counters has counted in this run.
    pub(crate) fn counted(&self, counter: fn(&Counters) -> u64) -> u64 {
        counter(&self.scheduler.counters()) - counter(&self.counted)
    }

    /// Shows itself at even steps up to `now`, as it stands before what happens then. Nothing
    /// changes between events, so of a long rest only the beginning and the end are shown.
    fn sample_before(&mut self, now: Moment, observer: &mut impl Observer) {
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
    fn sample(&self, at: Moment) -> Sample {
        let (gauges, counters) = (self.scheduler.gauges(), self.scheduler.counters());
        Sample { at, stands_for: 1, gauges, counters }
    }

    fn next_moment(&self) -> Option<Moment> {
        let front_ns = self.api_server.queue.front().map(|waiting| waiting.at_ns);
        let events = [self.scheduler.next_event(), front_ns];
        let next_ns = events.into_iter().flatten().min()?;
        Some(Moment::from_nanos(next_ns.saturating_sub(self.origin_ns)))
    }

    fn on_engine(&self, moment: Moment) -> u64 {
        self.origin_ns.saturating_add(moment.as_nanos())
    }

    /// Lets the scheduler act at `now`; what it makes goes through the API server to the client.
    fn act<T, O: Observer>(
        &mut self,
        client: &mut Client<'_, O>,
        act: impl FnOnce(&mut Scheduler<StepModel>, u64, &mut Wire<'_, '_, O>) -> T,
    ) -> T {
        let now_ns = self.on_engine(client.now);
        let Self { scheduler, api_server, origin_ns, .. } = self;
        let mut wire = Wire { process: &mut api_server.process, origin_ns: *origin_ns, client };
        act(scheduler, now_ns, &mut wire)
    }
}

const SAMPLE_EVERY: Duration = Duration::from_secs(1);
const SAMPLES_OF_A_REST: u32 = 60;

/// From the scheduler through the API server to the client.
struct Wire<'a, 'c, O: Observer> {
    process: &'a mut ApiProcess,
    origin_ns: u64,
    client: &'a mut Client<'c, O>,
}

impl<O: Observer> Listener for Wire<'_, '_, O> {
    fn token(&mut self, id: u64, _index: u32, at_ns: u64) {
        let seen_ns = self.process.hand_out(at_ns);
        let at = Moment::from_nanos(seen_ns.saturating_sub(self.origin_ns));
        let Client { now, flights, observer, .. } = &mut *self.client;
        let Some(flight) = flights.get_mut(place_of(id)) else { return };
        observer.token(&mut flight.notes, flight.last, at);
        flight.add_token(*now, at);
    }

    fn ended(&mut self, facts: &RequestFacts) {
        // The player ends what it aborts.
        if facts.end != RequestEnd::Abort {
            self.client.landed.push(*facts);
        }
    }
}

/// What the profile says of itself first and last: what is served on what, and where the step times
/// come from.
fn profile_line(profile: &Profile) -> String {
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
struct Waiting {
    at_ns: u64,
    place: usize,
    id: RequestId,
}

impl ApiServer {
    /// Takes a request in; it will be with the scheduler when all before it are done.
    fn take_in(&mut self, now_ns: u64, place: usize, id: RequestId, tokens: u32) {
        let at_ns = self.process.take_in(now_ns, tokens);
        self.queue.push_back(Waiting { at_ns, place, id });
    }

    /// A request that reaches the scheduler by now.
    fn pass_on(&mut self, now_ns: u64) -> Option<Waiting> {
        let is_due = self.queue.front().is_some_and(|waiting| waiting.at_ns <= now_ns);
        if is_due { self.queue.pop_front() } else { None }
    }
}

/// What a plan is played with.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) limits: spec::Limits,
    pub(crate) streaming: bool,
    /// Of the answers.
    pub(crate) seed: u64,
}

pub(crate) struct Player<'a, O: Observer> {
    plan: Arc<dyn Plan>,
    rules: Rules,
    engine: &'a mut VirtualEngine,
    client: Client<'a, O>,
    dispatcher: Dispatcher,
    /// What was said in each conversation that goes on, by its first request.
    conversations: HashMap<RequestId, Vec<Segment>>,
    limits: Limits,
    /// The shortest of all limits: nothing is looked at later than after this.
    limit_min: Duration,
    /// The API server may hand the last tokens out a little after the engine has made them.
    last_end: Moment,
    drain_until: Option<Moment>,
    /// Whether the time to drain is over as well.
    is_cut: bool,
    /// What the user asks for, and what of that has been done.
    control: Control,
    obeyed: Stop,
    stop: RunStop,
    turns: u32,
    /// Refused requests in a row, until they are written down.
    refused: Option<NotSent>,
}

/// The client of the engine: its requests in flight, and the observer of what happens to them.
struct Client<'a, O: Observer> {
    now: Moment,
    /// The place of a flight is its name in the scheduler, so that a token finds it without a search.
    flights: Slab<Flight<O::Notes>>,
    observer: &'a mut O,
    /// Requests that the engine has ended, until the client has seen it.
    landed: Vec<RequestFacts>,
}

/// A simulation has one driver.
const LANE: usize = 0;
const BAD_REQUEST: u16 = 400;
const STATUS_OK: u16 = 200;
/// A look at what the user wants takes longer than most turns.
const TURNS_BETWEEN_LOOKS: u32 = 64;

impl<'a, O: Observer> Player<'a, O> {
    /// The plan's zero is the engine's present.
    pub(crate) fn new(
        plan: Arc<dyn Plan>,
        rules: Rules,
        engine: &'a mut VirtualEngine,
        observer: &'a mut O,
    ) -> Self {
        engine.begin();
        let spec::Limits { first_token, idle, total, .. } = rules.limits;
        Self {
            dispatcher: Dispatcher::new(Arc::clone(&plan), usize::MAX, Moment::ZERO, 1),
            plan,
            engine,
            client: Client {
                now: Moment::ZERO,
                flights: Slab::new(),
                observer,
                landed: Vec::new(),
            },
            conversations: HashMap::new(),
            limits: Limits::default(),
            limit_min: first_token.min(idle).min(total),
            rules,
            last_end: Moment::ZERO,
            drain_until: None,
            is_cut: false,
            control: Control::default(),
            obeyed: Stop::Run,
            stop: RunStop::PlanDone,
            turns: 0,
            refused: None,
        }
    }

    /// Ends early when `control` asks for it.
    pub(crate) fn obeying(self, control: Control) -> Self {
        Self { control, ..self }
    }

    /// Plays it to its end.
    pub(crate) fn play(mut self) -> Result<RunEnding, Failure> {
        loop {
            self.obey()?;
            let due = match self.dispatcher.next(LANE, self.client.now) {
                Command::Send(departure) => {
                    self.depart(departure)?;
                    continue;
                }
                Command::Refuse { id, cause } => {
                    self.refuse(id, cause)?;
                    continue;
                }
                Command::WaitUntil(moment) => Some(moment),
                Command::WaitForReply => None,
                Command::Done => break,
            };
            let Some(next) = self.next_moment(due) else {
                return Err(Failure::internal("a simulation with requests in flight stood still"));
            };
            self.happen(next.max(self.client.now))?;
        }
        self.note_refused()?;
        let at = self.client.now.max(self.last_end);
        self.client.observer.sampled(&self.engine.sample(at));
        self.engine.end(at);
        let client = ClientFacts { drivers: 1, ..ClientFacts::default() };
        Ok(RunEnding { began: Some(Moment::ZERO), at, stop: self.stop, client })
    }

    /// When something happens next, whoever does it.
    fn next_moment(&self, due: Option<Moment>) -> Option<Moment> {
        let is_over = self.dispatcher.is_time_over(self.client.now);
        let time_over = self.plan.bounds().release_before.filter(|_| !is_over);
        let drained = self.drain_until.filter(|_| !self.is_cut);
        let events = [due, self.engine.next_moment(), self.limits.next(), time_over, drained];
        events.into_iter().flatten().min()
    }

    /// Brings everything to `now`. What reaches the engine at a moment comes before what the
    /// engine does then, and what the client sees comes before its patience ends.
    fn happen(&mut self, now: Moment) -> Result<(), Failure> {
        self.engine.sample_before(now, self.client.observer);
        self.client.now = now;
        let now_ns = self.engine.on_engine(now);
        while let Some(waiting) = self.engine.api_server.pass_on(now_ns) {
            self.submit(waiting)?;
        }
        self.engine
            .act(&mut self.client, |scheduler, now_ns, wire| scheduler.advance(now_ns, wire));
        self.land_all()?;
        while let Some(place) = self.limits.due(now) {
            self.check_limit(place)?;
        }
        self.conduct()
    }

    fn depart(&mut self, departure: Departure) -> Result<(), Failure> {
        let place = self.client.flights.vacant_key();
        let request = departure.request;
        // All that the server is sent: what was said before, and the new turn.
        let before =
            (request.turn != 0).then(|| self.conversations.remove(&request.conversation()));
        let mut said = before.flatten().unwrap_or_default();
        said.extend(self.plan.segments(&request));
        let answer_seed = mix(self.rules.seed ^ mix(request.id.0.wrapping_add(1)));
        let prompt = self.hashed(&said);
        let prompt_tokens = prompt.tokens;
        let in_front = SchedulerRequest {
            id: place as u64,
            prompt,
            answer_seed,
            stop: StopRules::after(request.output_tokens.max(1)),
            priority: 0,
        };
        let flight = Flight {
            departure,
            sent: self.client.now,
            prompt_tokens,
            tokens: 0,
            first: None,
            last: None,
            on_the_way: OnTheWay::default(),
            notes: O::Notes::default(),
            said: if request.continues { said } else { Vec::new() },
            answer_seed,
            in_front: Some(in_front),
        };
        self.client.observer.started(&flight.started())?;
        self.client.flights.insert(flight);
        let now_ns = self.engine.on_engine(self.client.now);
        self.engine.api_server.take_in(now_ns, place, request.id, prompt_tokens);
        self.limits.arm(place, self.client.now + self.limit_min);
        Ok(())
    }

    /// Names of blocks are made only for a cache that looks for them.
    fn hashed(&self, said: &[Segment]) -> HashedPrompt {
        let config = self.engine.config();
        if config.prefix_caching {
            let segments = said.iter().map(|segment| (segment.seed, segment.tokens));
            return HashedPrompt::of_segments(segments, config.block_size);
        }
        HashedPrompt {
            tokens: said.iter().fold(0, |sum, segment| sum.saturating_add(segment.tokens)),
            hashes: Vec::new(),
            rest: PromptHasher::new(config.block_size),
        }
    }

    /// The API server has read a request, and hands it on or refuses it.
    fn submit(&mut self, waiting: Waiting) -> Result<(), Failure> {
        let Waiting { place, id, .. } = waiting;
        let flight = self.client.flights.get_mut(place);
        // Ended meanwhile, and perhaps its place has changed hands.
        let flight = flight.filter(|flight| flight.departure.request.id == id);
        let Some(request) = flight.and_then(|flight| flight.in_front.take()) else { return Ok(()) };
        let submitted = self.engine.act(&mut self.client, |scheduler, now_ns, wire| {
            scheduler.submit(now_ns, request, wire)
        });
        let Err(refusal) = submitted else { return Ok(()) };
        let ending = Ending {
            outcome: Outcome::HttpError,
            at: self.client.now,
            stage: Stage::Headers,
            cause: None,
            message: Some(refusal.to_string()),
        };
        self.end(place, End { ending, status: Some(BAD_REQUEST), cached_tokens: None })
    }

    fn land_all(&mut self) -> Result<(), Failure> {
        let mut landed = std::mem::take(&mut self.client.landed);
        for facts in landed.drain(..) {
            let place = place_of(facts.id);
            let Some(flight) = self.client.flights.get_mut(place) else { continue };
            let ending = Ending::ok(flight.last.unwrap_or(self.client.now));
            let request = flight.departure.request;
            if request.continues {
                let mut said = std::mem::take(&mut flight.said);
                said.push(Segment { seed: flight.answer_seed, tokens: flight.tokens });
                self.conversations.insert(request.conversation(), said);
            }
            let cached_tokens = Some(facts.cached_tokens);
            self.end(place, End { ending, status: Some(STATUS_OK), cached_tokens })?;
        }
        self.client.landed = landed;
        Ok(())
    }

    fn check_limit(&mut self, place: usize) -> Result<(), Failure> {
        let Some(flight) = self.client.flights.get_mut(place) else { return Ok(()) };
        let state = flight.state_at(self.client.now, self.rules.streaming);
        let (at, outcome) = state.next_limit(&self.rules.limits);
        if self.client.now < at {
            // The next stage may bring a limit that comes sooner.
            self.limits.arm(place, at.min(self.client.now + self.limit_min));
            return Ok(());
        }
        self.break_off(place, outcome, None)
    }

    /// What no driver does: gives up what a cap holds back when the time is over, and ends what is
    /// in flight when the time to drain is over as well.
    fn conduct(&mut self) -> Result<(), Failure> {
        let now = self.client.now;
        // What a stop gave up is not given up again.
        if self.obeyed == Stop::Run && self.dispatcher.is_time_over(now) {
            if let Some(part) = self.dispatcher.expire(now) {
                self.client.observer.not_sent(part)?;
            }
            if self.drain_until.is_none() && self.dispatcher.has_released_all(now) {
                self.drain_until = Some(now + self.rules.limits.drain);
            }
        }
        if self.drain_until.is_some_and(|until| until <= now) { self.cut() } else { Ok(()) }
    }

    /// Does what the user wants, as a real run would: once drains, twice cuts.
    fn obey(&mut self) -> Result<(), Failure> {
        let is_look = self.turns.is_multiple_of(TURNS_BETWEEN_LOOKS);
        self.turns = self.turns.wrapping_add(1);
        let asked = if is_look { self.control.asked() } else { self.obeyed };
        if asked <= self.obeyed {
            return Ok(());
        }
        if self.obeyed == Stop::Run {
            self.release_nothing_more()?;
        }
        self.obeyed = asked;
        if asked == Stop::Cut { self.cut() } else { Ok(()) }
    }

    fn release_nothing_more(&mut self) -> Result<(), Failure> {
        let now = self.client.now;
        // Whoever stops a run that has sent all of its requests only waits less for the rest.
        if !self.dispatcher.has_released_all(now) {
            self.stop = RunStop::Drained;
        }
        for part in self.dispatcher.stop(now) {
            self.client.observer.not_sent(part)?;
        }
        let until = now + self.rules.limits.drain;
        self.drain_until = Some(self.drain_until.map_or(until, |earlier| earlier.min(until)));
        Ok(())
    }

    /// Ends what is in flight.
    fn cut(&mut self) -> Result<(), Failure> {
        if self.is_cut {
            return Ok(());
        }
        self.is_cut = true;
        let places: Vec<usize> = self.client.flights.iter().map(|(place, _)| place).collect();
        let is_requested = self.stop == RunStop::Drained || self.obeyed == Stop::Cut;
        if is_requested && !places.is_empty() {
            self.stop = RunStop::Cut;
        }
        for place in places {
            self.break_off(place, Outcome::Cancelled, Some(Cause::RunStopped))?;
        }
        Ok(())
    }

    /// Ends a request from the client's side: it closes the connection, and the engine lets go.
    fn break_off(
        &mut self,
        place: usize,
        outcome: Outcome,
        cause: Option<Cause>,
    ) -> Result<(), Failure> {
        let Some(flight) = self.client.flights.get_mut(place) else { return Ok(()) };
        flight.leave(self.client.now);
        let has_output = 0 < flight.tokens;
        if flight.in_front.is_none() {
            self.engine.act(&mut self.client, |scheduler, now_ns, wire| {
                scheduler.abort(now_ns, place as u64, wire);
            });
        }
        let stage = if has_output { Stage::Stream } else { Stage::FirstToken };
        let ending = Ending { outcome, at: self.client.now, stage, cause, message: None };
        let status = has_output.then_some(STATUS_OK);
        self.end(place, End { ending, status, cached_tokens: None })
    }

    fn end(&mut self, place: usize, end: End) -> Result<(), Failure> {
        let Some(flight) = self.client.flights.try_remove(place) else { return Ok(()) };
        let reply = Reply { at: end.ending.at, ok: end.ending.outcome == Outcome::Ok };
        self.dispatcher.replied(LANE, &flight.departure, reply);
        self.last_end = self.last_end.max(reply.at);
        self.client.observer.ended(flight, end)
    }

    fn refuse(&mut self, id: RequestId, cause: Cause) -> Result<(), Failure> {
        // This request will not be sent, and nothing after it in its conversation.
        if !self.conversations.is_empty()
            && let Some(request) = self.plan.request(id)
        {
            self.conversations.remove(&request.conversation());
        }
        match &mut self.refused {
            Some(part) if part.first.0 + part.count == id.0 && part.cause == cause => {
                part.count += 1;
            }
            _ => {
                self.note_refused()?;
                self.refused = Some(NotSent { first: id, count: 1, cause, at: self.client.now });
            }
        }
        Ok(())
    }

    fn note_refused(&mut self) -> Result<(), Failure> {
        self.refused.take().map_or(Ok(()), |part| self.client.observer.not_sent(part))
    }
}

/// Receives everything that the client would see, in the order in which it happens.
pub(crate) trait Observer {
    /// What it keeps of a request in flight.
    type Notes: Default;

    fn started(&mut self, _: &StartedRequest) -> Result<(), Failure> {
        Ok(())
    }

    /// A token of an answer is there; `before` is the moment of the one before it. This is the
    /// path of every token: nothing that can fail belongs here.
    fn token(&mut self, _: &mut Self::Notes, _before: Option<Moment>, _at: Moment) {}

    fn ended(&mut self, flight: Flight<Self::Notes>, end: End) -> Result<(), Failure>;

    fn not_sent(&mut self, _: NotSent) -> Result<(), Failure> {
        Ok(())
    }

    /// The engine as it stands, at even steps of virtual time.
    fn sampled(&mut self, _: &Sample) {}
}

/// How a request ended, and what the engine says of it.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) ending: Ending,
    /// The status of the answer's head, where there is one.
    pub(crate) status: Option<u16>,
    /// Prompt tokens that the prefix cache held; `None` where the answer is not whole.
    pub(crate) cached_tokens: Option<u32>,
}

/// The engine at one moment: what telemetry would have asked it. Counters are since its start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) at: Moment,
    /// How many it stands for: more than itself at the end of a long rest.
    pub(crate) stands_for: u64,
    pub(crate) gauges: Gauges,
    pub(crate) counters: Counters,
}

/// A request between its departure and its end.
#[derive(Debug)]
pub(crate) struct Flight<N> {
    pub(crate) departure: Departure,
    pub(crate) sent: Moment,
    pub(crate) prompt_tokens: u32,
    /// Handed out by the API server, some of them perhaps only in a moment.
    pub(crate) tokens: u32,
    pub(crate) first: Option<Moment>,
    pub(crate) last: Option<Moment>,
    on_the_way: OnTheWay,
    pub(crate) notes: N,
    /// All that the conversation holds so far, where it goes on.
    said: Vec<Segment>,
    answer_seed: u64,
    /// Until the API server has handed it to the scheduler.
    in_front: Option<SchedulerRequest>,
}

impl<N> Flight<N> {
    pub(crate) fn started(&self) -> StartedRequest {
        let Departure { request, intended, admitted, slot: _ } = self.departure;
        StartedRequest { id: request.id, intended, admitted, asked: request.asked() }
    }

    /// The engine has made a token at `made`, and the client has it at `seen`.
    fn add_token(&mut self, made: Moment, seen: Moment) {
        self.tokens += 1;
        self.first.get_or_insert(seen);
        self.last = Some(seen);
        self.on_the_way.add(made, seen);
    }

    /// As the client sees it.
    fn state_at(&self, now: Moment, streaming: bool) -> RequestState {
        let last_read = self.last_seen(now);
        RequestState {
            admitted: self.departure.admitted,
            connected: true,
            sent: Some(self.sent),
            last_read,
            has_output: last_read.is_some(),
            streaming,
        }
    }

    /// The client leaves: what is still on the way reaches nobody.
    fn leave(&mut self, now: Moment) {
        self.last = self.last_seen(now);
        self.first = self.first.filter(|_| self.last.is_some());
        self.tokens = self.tokens.saturating_sub(self.on_the_way.after(now));
    }

    fn last_seen(&self, now: Moment) -> Option<Moment> {
        self.last.filter(|last| *last <= now).or_else(|| self.on_the_way.last_by(now))
    }
}

/// Moments of tokens that the engine has made and the client may not have, in their order.
#[derive(Debug, Default)]
struct OnTheWay {
    moments: VecDeque<Moment>,
    /// The last that is certain to have arrived.
    arrived: Option<Moment>,
}

impl OnTheWay {
    fn add(&mut self, made: Moment, seen: Moment) {
        while let Some(moment) = self.moments.front().copied().filter(|moment| *moment <= made) {
            self.arrived = Some(moment);
            self.moments.pop_front();
        }
        if seen <= made {
            self.arrived = Some(seen);
        } else {
            self.moments.push_back(seen);
        }
    }

    fn last_by(&self, now: Moment) -> Option<Moment> {
        let seen = self.moments.iter().rev().find(|moment| **moment <= now);
        seen.copied().or(self.arrived)
    }

    fn after(&self, now: Moment) -> u32 {
        let unseen = self.moments.iter().rev().take_while(|moment| now < **moment).count();
        u32::try_from(unseen).unwrap_or(u32::MAX)
    }
}

fn place_of(id: u64) -> usize {
    usize::try_from(id).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_leaves_has_seen_what_has_arrived_and_no_more() {
        let at = Moment::from_nanos;
        let mut way = OnTheWay::default();
        assert_eq!((way.last_by(at(5)), way.after(at(5))), (None, 0));
        way.add(at(10), at(14));
        way.add(at(11), at(18));
        assert_eq!((way.last_by(at(13)), way.after(at(13))), (None, 2));
        assert_eq!((way.last_by(at(14)), way.after(at(14))), (Some(at(14)), 1));
        way.add(at(20), at(20));
        assert_eq!((way.last_by(at(20)), way.after(at(20))), (Some(at(20)), 0));
        way.add(at(30), at(33));
        assert_eq!((way.last_by(at(31)), way.after(at(31))), (Some(at(20)), 1));
    }

    #[test]
    fn requests_are_handled_one_after_the_other() {
        let costs =
            FrontCosts { per_request_ns: 10, per_prompt_token_ns: 1, per_output_token_ns: 2 };
        let mut front = ApiServer { process: ApiProcess::new(costs), queue: VecDeque::new() };
        front.take_in(100, 0, RequestId(0), 5);
        front.take_in(101, 1, RequestId(1), 0);
        assert_eq!(front.queue.front().map(|waiting| waiting.at_ns), Some(115));
        assert_eq!(front.process.hand_out(101), 127);
        assert_eq!(front.pass_on(114), None);
        assert_eq!(front.pass_on(115).map(|waiting| waiting.place), Some(0));
        assert_eq!(front.pass_on(200).map(|waiting| waiting.id), Some(RequestId(1)));
        assert_eq!(front.process.hand_out(300), 302);
    }
}
