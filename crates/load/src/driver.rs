//! A driver: one thread that plays its part of the plan and feeds the journal.
//!
//! It acts and decides nothing: the dispatcher says what to do next, the exchanges do it, each as
//! a task of its own on this thread. Once per tick it does what needs no haste: it looks for
//! time-outs, hands its facts over, and measures how late it is.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use inferometer_model::journal::{ClientFacts, LagHistogram};
use inferometer_model::outcome::{Cause, Outcome};
use inferometer_model::record::Event;
use inferometer_model::{Clock, JournalEntry, Message, Moment, NotSent, RequestId, RequestRecord};
use tokio::task::{AbortHandle, LocalSet};

use crate::answer::Failure;
use crate::bodies::{Bodies, Outgoing};
use crate::clock::SystemClock;
use crate::conductor::Conductor;
use crate::dispatcher::{Command, Departure, Reply};
use crate::drive::{Drive, LoadError};
use crate::exchange::Exchanges;
use crate::feed::Feed;
use crate::flight::Flight;
use crate::histories::Histories;
use crate::hopes::Hopeless;
use crate::landings::{Landed, Landings, Strip};
use crate::limits::Limits;
use crate::pacer::Pacer;
use crate::wire::{DriverClock, Turn};

pub(crate) struct Driver {
    drive: Drive,
    lane: usize,
    conductor: Arc<Conductor>,
    bodies: Arc<Bodies>,
    exchanges: Rc<Exchanges>,
    places: Vec<Option<InFlight>>,
    free_places: Vec<usize>,
    landings: Rc<Landings>,
    /// Room for what has come down, used again each turn.
    landed: Vec<(usize, Landed)>,
    limits: Limits,
    /// No limit of a request can come sooner after anything than this.
    limit_min: Duration,
    pacer: Pacer,
    ticker: Pacer,
    tick_due: Moment,
    ticks: u64,
    turn: Turn,
    feed: Feed,
    loop_lag: LagHistogram,
    histories: Histories,
    /// Requests in a row that were given up for one reason: one fact, not one each.
    refused: Option<NotSent>,
    is_cut: bool,
}

struct InFlight {
    flight: Rc<Flight>,
    /// What it says, for the turns after it.
    said: Vec<Message>,
    task: AbortHandle,
}

/// The tick whose lateness is the loop's lag. An absence shorter than this may go unnoticed.
const TICK: Duration = Duration::from_millis(2);
/// Ticks between two hand-overs of what has been noted.
const HAND_OVER_TICKS: u64 = 5;
/// Commands in a row before others get their turn.
const BURST_MAX: u32 = 32;

/// A driver's place in the run.
pub(crate) struct Part {
    pub(crate) lane: usize,
    pub(crate) drivers: usize,
    pub(crate) conductor: Arc<Conductor>,
    pub(crate) bodies: Arc<Bodies>,
}

/// Plays one part to its end.
pub(crate) fn play(
    runtime: &tokio::runtime::Runtime,
    drive: Drive,
    part: Part,
    turn: Turn,
) -> Result<ClientFacts, LoadError> {
    LocalSet::new().block_on(runtime, async move { Driver::new(drive, part, turn)?.run().await })
}

pub(crate) fn runtime(clock: SystemClock, turn: Turn) -> io::Result<tokio::runtime::Runtime> {
    let waiting = turn.clone();
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .on_thread_park(move || waiting.waits(clock.now()))
        .on_thread_unpark(move || turn.wakes(clock.now()))
        .build()
}

impl Driver {
    fn new(drive: Drive, part: Part, turn: Turn) -> Result<Self, LoadError> {
        let clock = Rc::new(DriverClock::new(drive.clock, turn.clone()));
        let Part { lane, drivers, conductor, bodies } = part;
        let exchanges = Exchanges::new(Arc::clone(&drive.target), clock, lane, drivers);
        let limits = &drive.target.limits;
        Ok(Self {
            lane,
            conductor,
            bodies,
            exchanges: Rc::new(exchanges),
            places: Vec::new(),
            free_places: Vec::new(),
            landings: Rc::default(),
            landed: Vec::new(),
            limits: Limits::default(),
            limit_min: [limits.connect, limits.first_token, limits.idle, limits.total]
                .into_iter()
                .min()
                .unwrap_or_default(),
            pacer: Pacer::new(drive.clock)?,
            ticker: Pacer::new(drive.clock)?,
            tick_due: Moment::ZERO,
            ticks: 0,
            turn,
            feed: Feed::new(drive.journal.clone()),
            loop_lag: LagHistogram::default(),
            histories: Histories::default(),
            refused: None,
            is_cut: false,
            drive,
        })
    }

    async fn run(&mut self) -> Result<ClientFacts, LoadError> {
        self.tick_due = self.drive.clock.now() + TICK;
        self.turn.tick_due(self.tick_due);
        let mut burst = 0;
        loop {
            // However much is due, what has come down is taken in and the conductor is heard.
            self.take_in()?;
            match self.conductor.next(self.lane, self.drive.clock.now()) {
                Command::Send(departure) => self.start(departure)?,
                Command::Refuse { id, cause } => self.refuse(id, cause)?,
                Command::WaitUntil(moment) => self.wait(Some(moment)).await?,
                Command::WaitForReply => self.wait(None).await?,
                Command::Done => break,
            }
            burst += 1;
            if burst % BURST_MAX == 0 {
                tokio::task::yield_now().await;
            }
        }
        self.note_refused()?;
        self.feed.hand_over()?;
        Ok(ClientFacts {
            drivers: 1,
            mapping: Some(self.exchanges.clock.mapper.facts()),
            loop_lag: std::mem::take(&mut self.loop_lag),
            journal_waits: self.feed.waits(),
            // Of the process, not of a driver.
            cpu: None,
        })
    }

    fn start(&mut self, departure: Departure) -> Result<(), LoadError> {
        self.note_refused()?;
        let before = self.histories.before(&departure.request);
        let Outgoing { body, model, said } = self.bodies.take(&departure.request, before);
        let flight = Rc::new(Flight::new(departure, model));
        self.feed.note(JournalEntry::Started(flight.started()))?;
        self.drive.progress.start();
        let place = self.free_places.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        let strip = Strip::new(Rc::clone(&self.landings), place);
        let (exchanges, flying) = (Rc::clone(&self.exchanges), Rc::clone(&flight));
        let task = tokio::task::spawn_local(async move {
            let failure = exchanges.attempt(&flying, body).await;
            // Before anything else runs: the connection may carry another request from here on.
            strip.land(exchanges.landed(&flying, failure));
        });
        self.limits.arm(place, departure.admitted + self.limit_min);
        self.places[place] = Some(InFlight { flight, said, task: task.abort_handle() });
        Ok(())
    }

    fn take_in(&mut self) -> Result<(), LoadError> {
        if !self.landings.is_empty() {
            let mut landed = std::mem::take(&mut self.landed);
            self.landings.take(&mut landed);
            for (place, landed) in landed.drain(..) {
                self.land(place, landed)?;
            }
            self.landed = landed;
        }
        if self.conductor.is_cut() && !self.is_cut {
            self.is_cut = true;
            self.cut_everything()?;
        }
        let now = self.drive.clock.now();
        if self.tick_due <= now { self.tick(now) } else { Ok(()) }
    }

    /// Waits for a moment, a landing or the tick, whichever comes first.
    async fn wait(&mut self, until: Option<Moment>) -> Result<(), LoadError> {
        self.note_refused()?;
        std::future::poll_fn(|cx| {
            if !self.landings.is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.landings.wake(cx.waker());
            if let Some(moment) = until
                && let Poll::Ready(rang) = self.pacer.poll_until(cx, moment)
            {
                return Poll::Ready(rang);
            }
            self.ticker.poll_until(cx, self.tick_due)
        })
        .await
        .map_err(LoadError::Start)
    }

    fn tick(&mut self, now: Moment) -> Result<(), LoadError> {
        let lag = now.since(self.tick_due).unwrap_or_default();
        self.loop_lag.add(u64::try_from(lag.as_nanos()).unwrap_or(u64::MAX));
        // After a long pause one late tick is enough; the missed ones would only repeat it.
        self.tick_due = (self.tick_due + TICK).max(now);
        self.turn.tick_due(self.tick_due);
        while let Some(place) = self.limits.due(now) {
            self.check_limit(place, now)?;
        }
        // Batches are for the writer's sake: a small one goes out now and then.
        self.ticks += 1;
        if self.ticks.is_multiple_of(HAND_OVER_TICKS) {
            self.feed.hand_over()?;
        }
        Ok(())
    }

    fn check_limit(&mut self, place: usize, now: Moment) -> Result<(), LoadError> {
        let Some(InFlight { flight, .. }) = &self.places[place] else { return Ok(()) };
        let target = &self.drive.target;
        let (at, outcome) = flight.standing(target.streams()).next_limit(&target.limits);
        if now < at {
            // The next stage may bring a limit that comes sooner.
            self.limits.arm(place, at.min(now + self.limit_min));
            return Ok(());
        }
        self.end(place, Failure { outcome, cause: None, message: None })
    }

    fn cut_everything(&mut self) -> Result<(), LoadError> {
        for place in 0..self.places.len() {
            self.end(place, Failure::new(Outcome::Cancelled, Cause::RunStopped))?;
        }
        Ok(())
    }

    /// Ends a flight from outside, with what is known of it.
    fn end(&mut self, place: usize, failure: Failure) -> Result<(), LoadError> {
        let Some(InFlight { flight, task, .. }) = &self.places[place] else { return Ok(()) };
        task.abort();
        let now = self.drive.clock.now();
        let record = flight.record(&self.drive.target, Some(failure), now);
        self.land(place, Landed::Ended(Box::new(record)))
    }

    fn land(&mut self, place: usize, landed: Landed) -> Result<(), LoadError> {
        let Some(InFlight { flight, said, .. }) = self.places[place].take() else { return Ok(()) };
        self.free_places.push(place);
        let request = flight.request();
        match landed {
            Landed::Ended(record) => {
                let ok = record.ending.outcome == Outcome::Ok;
                let outputs = record.events.iter().filter(|event| Event::is_output(event)).count();
                self.drive.progress.end(ok, outputs as u64);
                let sign = sign_of(&record).filter(|_| !self.is_cut);
                self.histories.landed(&flight, ok.then_some(said));
                let ending = Reply { at: record.ending.at, ok };
                self.conductor.ended(self.lane, &flight.departure, ending, sign);
                self.feed.note(JournalEntry::Ended(record))?;
            }
            Landed::NotSent(cause) => {
                self.drive.progress.end(false, 0);
                let now = self.drive.clock.now();
                let sign = Some(Hopeless::ClientExhausted);
                self.histories.landed(&flight, None);
                let ending = Reply { at: now, ok: false };
                self.conductor.ended(self.lane, &flight.departure, ending, sign);
                let part = NotSent { first: request.id, count: 1, cause, at: now };
                self.feed.note(JournalEntry::NotSent(part))?;
            }
            Landed::Panicked => return Err(LoadError::Task(request.id)),
        }
        Ok(())
    }

    fn refuse(&mut self, id: RequestId, cause: Cause) -> Result<(), LoadError> {
        self.bodies.forget(id);
        self.histories.forget(self.drive.plan.as_ref(), id);
        match &mut self.refused {
            Some(part) if part.first.0 + part.count == id.0 && part.cause == cause => {
                part.count += 1;
                Ok(())
            }
            _ => {
                self.note_refused()?;
                let at = self.drive.clock.now();
                self.refused = Some(NotSent { first: id, count: 1, cause, at });
                Ok(())
            }
        }
    }

    fn note_refused(&mut self) -> Result<(), LoadError> {
        if let Some(part) = self.refused.take() {
            self.feed.note(JournalEntry::NotSent(part))?;
        }
        Ok(())
    }
}

/// Whether a record is of a kind that the next request cannot escape.
fn sign_of(record: &RequestRecord) -> Option<Hopeless> {
    if record.head.is_some_and(|head| matches!(head.status, 401 | 403)) {
        Some(Hopeless::Unauthorized)
    } else if record.ending.outcome != Outcome::Ok && record.connection.is_none() {
        Some(Hopeless::Unreachable)
    } else {
        None
    }
}
