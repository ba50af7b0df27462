//! Plays a plan against the engine in virtual time: from event to event, nothing waits.
//!
//! What a run would do, this does at the exact moment: what the dispatcher says leaves, time-outs
//! end requests, and when the time is over the last ones have so long to end.

use std::sync::Arc;
use std::time::Duration;

use inferometer_engine::scheduler::tokens::{PromptHasher, mix};
use inferometer_engine::scheduler::{HashedPrompt, RequestFacts, SchedulerRequest, StopRules};
use inferometer_load::dispatcher::{Command, Departure, Dispatcher, Reply};
use inferometer_load::limits::Limits;
use inferometer_load::{Control, Stop};
use inferometer_model::journal::{ClientFacts, RunStop};
use inferometer_model::outcome::{Cause, Stage};
use inferometer_model::{
    Ending, Moment, NotSent, Outcome, Plan, RequestId, RunEnding, Segment, spec,
};

use super::conversations::Conversations;
use super::desk::Desk;
use super::engine::VirtualEngine;
use super::flights::{Flight, Flights, OnTheWay, id_of, place_of};
use super::front::Waiting;
use super::observer::{End, Observer};
use crate::failure::Failure;

/// What a plan is played with.
#[derive(Clone, Debug)]
pub struct Rules {
    pub limits: spec::Limits,
    pub streaming: bool,
    /// Of the answers.
    pub seed: u64,
}

pub struct Player<'a, O: Observer> {
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
    /// The API process may hand the last tokens out a little after the engine has made them.
    last_end: Moment,
    drain_until: Option<Moment>,
    /// Whether the time to drain is over as well.
    is_cut: bool,
    /// The user's hand on it, and what of that has been done.
    control: Control,
    heeded: Stop,
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
    pub fn new(
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
            heeded: Stop::Run,
            stop: RunStop::PlanDone,
            turns: 0,
            refused: None,
            landed: Vec::new(),
        }
    }

    /// The same, but it ends early when it is told to.
    pub fn heeding(self, control: Control) -> Self {
        Self { control, ..self }
    }

    /// Plays it to its end.
    pub fn play(mut self) -> Result<RunEnding, Failure> {
        loop {
            self.heed()?;
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
        engine.advance(now, &mut Desk { now, flights, observer: *observer, landed });
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

    /// The API process has read a request, and hands it on or refuses it.
    fn submit(&mut self, waiting: Waiting) -> Result<(), Failure> {
        let Waiting { place, id, .. } = waiting;
        let flight = self.flights.get_mut(place);
        // Ended meanwhile, and perhaps its place has changed hands.
        let flight = flight.filter(|flight| flight.departure.request.id == id);
        let Some(request) = flight.and_then(|flight| flight.in_front.take()) else { return Ok(()) };
        let Self { engine, flights, observer, landed, .. } = self;
        let desk = &mut Desk { now: self.now, flights, observer: *observer, landed };
        let Err(refusal) = engine.submit(self.now, request, desk) else { return Ok(()) };
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
        if self.heeded == Stop::Run && self.dispatcher.is_time_over(now) {
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
    fn heed(&mut self) -> Result<(), Failure> {
        let is_look = self.turns.is_multiple_of(TURNS_BETWEEN_LOOKS);
        self.turns = self.turns.wrapping_add(1);
        let asked = if is_look { self.control.asked() } else { self.heeded };
        if asked <= self.heeded {
            return Ok(());
        }
        if self.heeded == Stop::Run {
            self.release_nothing_more()?;
        }
        self.heeded = asked;
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
        let is_told = self.stop == RunStop::Drained || self.heeded == Stop::Cut;
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
            let desk = &mut Desk { now: self.now, flights, observer: *observer, landed };
            engine.abort(self.now, id_of(place), desk);
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
