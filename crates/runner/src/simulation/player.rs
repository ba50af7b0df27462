//! Plays a plan against the engine in virtual time: from event to event, without waiting.
//!
//! It does what a run would do, at the exact time: the dispatcher sends requests, time-outs end them, and
//! when the time is over the last ones may still finish until the drain ends.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use inferometer_engine::scheduler::blocks::{PromptHasher, mix};
use inferometer_engine::scheduler::{
    Counters, Gauges, HashedPrompt, RequestEnd, RequestFacts, SchedulerRequest, StopRules,
};
use inferometer_load::dispatcher::{Command, Departure, Dispatcher, Reply};
use inferometer_load::limits::{Limits, RequestState};
use inferometer_load::{Control, Stop};
use inferometer_model::journal::{ClientFacts, RunStop};
use inferometer_model::outcome::{Cause, Stage};
use inferometer_model::{
    Ending, Moment, NotSent, Outcome, Plan, PlannedRequest, RequestId, RunEnding, Segment,
    StartedRequest, spec,
};

use super::engine::{VirtualEngine, Waiting};
use crate::failure::Failure;

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
    observer: &'a mut O,
    dispatcher: Dispatcher,
    flights: Flights<O::Notes>,
    conversations: Conversations,
    limits: Limits,
    /// The shortest of all limits: nothing is looked at later than after this.
    limit_min: Duration,
    now: Moment,
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
            observer,
            flights: Flights::default(),
            conversations: Conversations::default(),
            limits: Limits::default(),
            limit_min: first_token.min(idle).min(total),
            rules,
            now: Moment::ZERO,
            last_end: Moment::ZERO,
            drain_until: None,
            is_cut: false,
            control: Control::default(),
            obeyed: Stop::Run,
            stop: RunStop::PlanDone,
            turns: 0,
            refused: None,
            landed: Vec::new(),
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
            let due = match self.dispatcher.next(LANE, self.now) {
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
            self.happen(next.max(self.now))?;
        }
        self.note_refused()?;
        let at = self.now.max(self.last_end);
        self.observer.sampled(&self.engine.sample(at));
        self.engine.end(at);
        let client = ClientFacts { drivers: 1, ..ClientFacts::default() };
        Ok(RunEnding { began: Some(Moment::ZERO), at, stop: self.stop, client })
    }

    /// When something happens next, whoever does it.
    fn next_moment(&self, due: Option<Moment>) -> Option<Moment> {
        let is_over = self.dispatcher.is_time_over(self.now);
        let time_over = self.plan.bounds().release_before.filter(|_| !is_over);
        let drained = self.drain_until.filter(|_| !self.is_cut);
        let events = [due, self.engine.next_moment(), self.limits.next(), time_over, drained];
        events.into_iter().flatten().min()
    }

    /// Brings everything to `now`. What reaches the engine at a moment comes before what the
    /// engine does then, and what the client sees comes before its patience ends.
    fn happen(&mut self, now: Moment) -> Result<(), Failure> {
        self.engine.sample_before(now, self.observer);
        self.now = now;
        while let Some(waiting) = self.engine.pass_on(now) {
            self.submit(waiting)?;
        }
        let Self { engine, flights, observer, landed, .. } = self;
        engine.advance(now, &mut Delivery { now, flights, observer: *observer, landed });
        self.land_all()?;
        while let Some(place) = self.limits.due(now) {
            self.check_limit(place)?;
        }
        self.conduct()
    }

    fn depart(&mut self, departure: Departure) -> Result<(), Failure> {
        let place = self.flights.next_place();
        let request = departure.request;
        let said = self.conversations.prompt(self.plan.as_ref(), &request);
        let answer_seed = mix(self.rules.seed ^ mix(request.id.0.wrapping_add(1)));
        let prompt = self.hashed(&said);
        let prompt_tokens = prompt.tokens;
        let in_front = SchedulerRequest {
            id: id_of(place),
            prompt,
            answer_seed,
            stop: StopRules::after(request.output_tokens.max(1)),
            priority: 0,
        };
        let flight = Flight {
            departure,
            sent: self.now,
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
        self.observer.started(&flight.started())?;
        self.flights.add(flight);
        self.engine.take_in(self.now, place, request.id, prompt_tokens);
        self.limits.arm(place, self.now + self.limit_min);
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
        let flight = self.flights.get_mut(place);
        // Ended meanwhile, and perhaps its place has changed hands.
        let flight = flight.filter(|flight| flight.departure.request.id == id);
        let Some(request) = flight.and_then(|flight| flight.in_front.take()) else { return Ok(()) };
        let Self { engine, flights, observer, landed, .. } = self;
        let delivery = &mut Delivery { now: self.now, flights, observer: *observer, landed };
        let Err(refusal) = engine.submit(self.now, request, delivery) else { return Ok(()) };
        let ending = Ending {
            outcome: Outcome::HttpError,
            at: self.now,
            stage: Stage::Headers,
            cause: None,
            message: Some(refusal.to_string()),
        };
        self.end(place, End { ending, status: Some(BAD_REQUEST), cached_tokens: None })
    }

    fn land_all(&mut self) -> Result<(), Failure> {
        let mut landed = std::mem::take(&mut self.landed);
        for facts in landed.drain(..) {
            let place = place_of(facts.id);
            let Some(flight) = self.flights.get_mut(place) else { continue };
            let ending = Ending::ok(flight.last.unwrap_or(self.now));
            self.conversations.answered(flight);
            let cached_tokens = Some(facts.cached_tokens);
            self.end(place, End { ending, status: Some(STATUS_OK), cached_tokens })?;
        }
        self.landed = landed;
        Ok(())
    }

    fn check_limit(&mut self, place: usize) -> Result<(), Failure> {
        let Some(flight) = self.flights.get_mut(place) else { return Ok(()) };
        let standing = flight.standing(self.now, self.rules.streaming);
        let (at, outcome) = standing.next_limit(&self.rules.limits);
        if self.now < at {
            // The next stage may bring a limit that comes sooner.
            self.limits.arm(place, at.min(self.now + self.limit_min));
            return Ok(());
        }
        self.break_off(place, outcome, None)
    }

    /// What no driver does: gives up what a cap holds back when the time is over, and ends what is
    /// in flight when the time to drain is over as well.
    fn conduct(&mut self) -> Result<(), Failure> {
        let now = self.now;
        // What a stop gave up is not given up again.
        if self.obeyed == Stop::Run && self.dispatcher.is_time_over(now) {
            if let Some(part) = self.dispatcher.expire(now) {
                self.observer.not_sent(part)?;
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
        let now = self.now;
        // Whoever stops a run that has sent all of its requests only waits less for the rest.
        if !self.dispatcher.has_released_all(now) {
            self.stop = RunStop::Drained;
        }
        for part in self.dispatcher.stop(now) {
            self.observer.not_sent(part)?;
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
        let places = self.flights.taken();
        let is_told = self.stop == RunStop::Drained || self.obeyed == Stop::Cut;
        if is_told && !places.is_empty() {
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
        let Some(flight) = self.flights.get_mut(place) else { return Ok(()) };
        flight.leave(self.now);
        let has_output = 0 < flight.tokens;
        if flight.in_front.is_none() {
            let Self { engine, flights, observer, landed, .. } = self;
            let delivery = &mut Delivery { now: self.now, flights, observer: *observer, landed };
            engine.abort(self.now, id_of(place), delivery);
        }
        let stage = if has_output { Stage::Stream } else { Stage::FirstToken };
        let ending = Ending { outcome, at: self.now, stage, cause, message: None };
        let status = has_output.then_some(STATUS_OK);
        self.end(place, End { ending, status, cached_tokens: None })
    }

    fn end(&mut self, place: usize, end: End) -> Result<(), Failure> {
        let Some(flight) = self.flights.take(place) else { return Ok(()) };
        let reply = Reply { at: end.ending.at, ok: end.ending.outcome == Outcome::Ok };
        self.dispatcher.replied(LANE, &flight.departure, reply);
        self.last_end = self.last_end.max(reply.at);
        self.observer.ended(flight, end)
    }

    fn refuse(&mut self, id: RequestId, cause: Cause) -> Result<(), Failure> {
        self.conversations.forget(self.plan.as_ref(), id);
        match &mut self.refused {
            Some(part) if part.first.0 + part.count == id.0 && part.cause == cause => {
                part.count += 1;
                Ok(())
            }
            _ => {
                self.note_refused()?;
                self.refused = Some(NotSent { first: id, count: 1, cause, at: self.now });
                Ok(())
            }
        }
    }

    fn note_refused(&mut self) -> Result<(), Failure> {
        match self.refused.take() {
            Some(part) => self.observer.not_sent(part),
            None => Ok(()),
        }
    }
}

/// Receives everything that the client would see, in the order in which it happens.
pub(crate) trait Observer {
    /// What it keeps of a request in flight.
    type Notes: Default;

    fn started(&mut self, started: &StartedRequest) -> Result<(), Failure>;

    /// A token of an answer is there; `before` is the moment of the one before it. This is the
    /// path of every token: nothing that can fail belongs here.
    fn token(&mut self, notes: &mut Self::Notes, before: Option<Moment>, at: Moment);

    fn ended(&mut self, flight: Flight<Self::Notes>, end: End) -> Result<(), Failure>;

    fn not_sent(&mut self, part: NotSent) -> Result<(), Failure>;

    /// The engine as it stands, at even steps of virtual time.
    fn sampled(&mut self, sample: &Sample);
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

/// Where the engine's answers arrive: each token goes to its request.
pub(super) struct Delivery<'a, O: Observer> {
    now: Moment,
    flights: &'a mut Flights<O::Notes>,
    observer: &'a mut O,
    landed: &'a mut Vec<RequestFacts>,
}

impl<O: Observer> Delivery<'_, O> {
    pub(super) fn token(&mut self, id: u64, at: Moment) {
        let Some(flight) = self.flights.get_mut(place_of(id)) else { return };
        self.observer.token(&mut flight.notes, flight.last, at);
        flight.add_token(self.now, at);
    }

    pub(super) fn ended(&mut self, facts: &RequestFacts) {
        // The player ends what it aborts.
        if facts.end != RequestEnd::Abort {
            self.landed.push(*facts);
        }
    }
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
    fn standing(&self, now: Moment, streaming: bool) -> RequestState {
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

/// The place of a flight is its name in the scheduler, so that a token finds it without a search.
#[derive(Debug)]
struct Flights<N> {
    places: Vec<Option<Flight<N>>>,
    free: Vec<usize>,
}

impl<N> Default for Flights<N> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<N> Flights<N> {
    /// The place that the next flight will have.
    fn next_place(&self) -> usize {
        self.free.last().copied().unwrap_or(self.places.len())
    }

    fn add(&mut self, flight: Flight<N>) {
        match self.free.pop() {
            Some(place) => self.places[place] = Some(flight),
            None => self.places.push(Some(flight)),
        }
    }

    fn get_mut(&mut self, place: usize) -> Option<&mut Flight<N>> {
        self.places.get_mut(place)?.as_mut()
    }

    fn take(&mut self, place: usize) -> Option<Flight<N>> {
        let flight = self.places.get_mut(place)?.take()?;
        self.free.push(place);
        Some(flight)
    }

    /// The places in use, in their order.
    fn taken(&self) -> Vec<usize> {
        let is_taken = |place: &usize| self.places[*place].is_some();
        (0..self.places.len()).filter(is_taken).collect()
    }
}

/// The scheduler's name of a place.
fn id_of(place: usize) -> u64 {
    place as u64
}

fn place_of(id: u64) -> usize {
    usize::try_from(id).unwrap_or(usize::MAX)
}

/// By the first request of each conversation that goes on.
#[derive(Debug, Default)]
struct Conversations(HashMap<RequestId, Vec<Segment>>);

impl Conversations {
    /// All that the server is sent: what was said before, and the new turn.
    fn prompt(&mut self, plan: &dyn Plan, request: &PlannedRequest) -> Vec<Segment> {
        let new = plan.segments(request);
        if request.turn == 0 {
            return new;
        }
        let mut said = self.0.remove(&request.conversation()).unwrap_or_default();
        said.extend(new);
        said
    }

    /// A turn was answered: what was said and the answer are what the next goes on from.
    fn answered<N>(&mut self, flight: &mut Flight<N>) {
        let request = flight.departure.request;
        if request.continues {
            let mut said = std::mem::take(&mut flight.said);
            said.push(Segment { seed: flight.answer_seed, tokens: flight.tokens });
            self.0.insert(request.conversation(), said);
        }
    }

    /// This request will not be sent, and nothing after it in its conversation.
    fn forget(&mut self, plan: &dyn Plan, refused: RequestId) {
        if self.0.is_empty() {
            return;
        }
        if let Some(request) = plan.request(refused) {
            self.0.remove(&request.conversation());
        }
    }
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
}
