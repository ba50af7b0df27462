//! The driver: plays a plan against a target and sends what happened to the journal.
//!
//! It acts and decides nothing: the dispatcher says what to do next, the exchanges do it.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

use inferometer_model::journal::{ClientFacts, LagHistogram, RunStop};
use inferometer_model::outcome::{Cause, Outcome};
use inferometer_model::record::Event;
use inferometer_model::{
    Clock, JournalEntry, Moment, NotSent, Plan, PlannedRequest, RequestId, RunEnding,
    StartedRequest,
};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet, LocalSet};

use crate::bodies::Bodies;
use crate::clock::SystemClock;
use crate::control::{Control, Stop};
use crate::dispatcher::{Command, Dispatcher};
use crate::exchange::{Attempt, Departure, Exchanges};
use crate::pacer::Pacer;
use crate::progress::Progress;
use crate::target::Target;
use crate::wire::{DriverClock, Turn};

/// All that a run needs. Driving blocks the calling thread until the run is over.
#[derive(Clone)]
pub struct Drive {
    pub plan: Arc<dyn Plan>,
    pub target: Arc<Target>,
    pub clock: SystemClock,
    pub control: Control,
    pub progress: Arc<Progress>,
    /// Requests that this machine can hold in flight.
    pub ceiling: usize,
    pub journal: SyncSender<JournalEntry>,
}

impl std::fmt::Debug for Drive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drive").field("target", &self.target).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("the driver could not start: {0}")]
    Start(#[from] io::Error),
    #[error("the journal stopped taking records; the run was cut short")]
    JournalClosed,
    #[error("a request's task ended abnormally: {0}")]
    Task(JoinError),
}

/// Plays the plan to its end, or to the user's.
pub fn drive(drive: Drive) -> Result<RunEnding, LoadError> {
    let turn = Turn::default();
    let runtime = runtime(drive.clock, turn.clone())?;
    LocalSet::new().block_on(&runtime, async move { Driver::new(drive, turn)?.run().await })
}

pub(crate) fn runtime(clock: SystemClock, turn: Turn) -> io::Result<tokio::runtime::Runtime> {
    let waiting = turn.clone();
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .on_thread_park(move || waiting.waits(clock.now()))
        .on_thread_unpark(move || turn.wakes(clock.now()))
        .build()
}

struct Driver {
    drive: Drive,
    bodies: Bodies,
    exchanges: Rc<Exchanges>,
    dispatcher: Dispatcher,
    began: Moment,
    pacer: Pacer,
    drain_pacer: Pacer,
    attempts: JoinSet<(RequestId, Attempt)>,
    stop: watch::Receiver<Stop>,
    cut: watch::Sender<bool>,
    /// When draining turns into cutting.
    drain_until: Option<Moment>,
    run_stop: RunStop,
    hopes: Hopes,
    /// Requests in a row that this machine could not hold: one fact, not one each.
    refused: Option<NotSent>,
    turn: Turn,
    loop_lag: Rc<RefCell<LagHistogram>>,
    journal_waits: u64,
}

/// The tick whose lateness is the loop's lag. An absence shorter than this may go unnoticed.
const LAG_TICK: Duration = Duration::from_millis(2);
/// Commands in a row before others get their turn.
const BURST_MAX: u32 = 32;

impl Driver {
    fn new(drive: Drive, turn: Turn) -> Result<Self, LoadError> {
        let clock = Rc::new(DriverClock::new(drive.clock, turn.clone()));
        let (cut, cut_receiver) = watch::channel(false);
        let bodies = Bodies::start(Arc::clone(&drive.plan), Arc::clone(&drive.target))?;
        let pacer = Pacer::new(drive.clock)?;
        let drain_pacer = Pacer::new(drive.clock)?;
        let exchanges = Exchanges::new(Arc::clone(&drive.target), clock, cut_receiver);
        // The plan's moments count from here: what came before is preparation.
        let began = drive.clock.now();
        let bounds = drive.plan.bounds();
        // A run by time waits for its last requests as long as one that the user stops. One with a
        // least number may still be releasing when its time is over.
        let drain_until = bounds
            .release_before
            .filter(|_| bounds.requests_min == 0)
            .map(|end| began + since_zero(end) + drive.target.limits.drain);
        Ok(Self {
            dispatcher: Dispatcher::new(Arc::clone(&drive.plan), drive.ceiling, began),
            bodies,
            exchanges: Rc::new(exchanges),
            began,
            pacer,
            drain_pacer,
            attempts: JoinSet::new(),
            stop: drive.control.listen(),
            cut,
            drain_until,
            run_stop: RunStop::PlanDone,
            hopes: Hopes::default(),
            refused: None,
            turn,
            loop_lag: Rc::default(),
            journal_waits: 0,
            drive,
        })
    }

    async fn run(&mut self) -> Result<RunEnding, LoadError> {
        let lag_watch = tokio::task::spawn_local(watch_loop_lag(
            Pacer::new(self.drive.clock)?,
            self.drive.clock,
            self.turn.clone(),
            Rc::clone(&self.loop_lag),
        ));
        let mut burst = 0;
        loop {
            // However much is due, what has ended is taken in and the user is heard.
            self.take_in()?;
            match self.dispatcher.next(self.drive.clock.now()) {
                Command::Send { request, intended } => self.start(request, intended)?,
                Command::Refuse { id } => self.refuse(id)?,
                Command::WaitUntil(moment) => self.wait(Some(moment)).await?,
                Command::WaitForReply => self.wait(None).await?,
                Command::Done => break,
            }
            burst += 1;
            if burst % BURST_MAX == 0 {
                tokio::task::yield_now().await;
            }
        }
        lag_watch.abort();
        self.note_refused()?;
        let ending = RunEnding {
            began: Some(self.began),
            at: self.drive.clock.now(),
            stop: self.run_stop,
            client: ClientFacts {
                mapping: Some(self.exchanges.clock.mapper.facts()),
                loop_lag: self.loop_lag.borrow().clone(),
                journal_waits: self.journal_waits,
            },
        };
        self.note(JournalEntry::RunEnded(ending.clone()))?;
        Ok(ending)
    }

    fn start(&mut self, request: PlannedRequest, intended: Moment) -> Result<(), LoadError> {
        self.note_refused()?;
        let admitted = self.drive.clock.now();
        let asked = request.asked();
        let started = StartedRequest { id: request.id, intended, admitted, asked };
        self.note(JournalEntry::Started(started))?;
        self.drive.progress.start();
        let body = self.bodies.take(&request, self.drive.plan.as_ref(), self.drive.target.as_ref());
        let departure = Departure { request, body, intended, admitted };
        let exchanges = Rc::clone(&self.exchanges);
        self.attempts.spawn_local(async move { (request.id, exchanges.attempt(departure).await) });
        Ok(())
    }

    /// Takes in whatever is there, without waiting.
    fn take_in(&mut self) -> Result<(), LoadError> {
        while let Some(ended) = self.attempts.try_join_next() {
            let (id, attempt) = ended.map_err(LoadError::Task)?;
            self.ended(id, attempt)?;
        }
        if self.stop.has_changed().unwrap_or(false) {
            let stop = *self.stop.borrow_and_update();
            self.stop_as_told(stop)?;
        }
        Ok(())
    }

    /// Waits for a moment, a reply, or the user, whichever comes first.
    async fn wait(&mut self, until: Option<Moment>) -> Result<(), LoadError> {
        self.note_refused()?;
        tokio::select! {
            biased;
            Some(ended) = self.attempts.join_next() => {
                let (id, attempt) = ended.map_err(LoadError::Task)?;
                self.ended(id, attempt)
            }
            paced = self.pacer.until(until.unwrap_or_default()), if until.is_some() => {
                paced.map_err(LoadError::Start)
            }
            Ok(()) = self.stop.changed() => {
                let stop = *self.stop.borrow_and_update();
                self.stop_as_told(stop)
            }
            paced = self.drain_pacer.until(self.drain_until.unwrap_or_default()),
                if self.drain_until.is_some() =>
            {
                paced.map_err(LoadError::Start)?;
                self.cut_everything();
                Ok(())
            }
        }
    }

    fn ended(&mut self, id: RequestId, attempt: Attempt) -> Result<(), LoadError> {
        let record = match attempt {
            Attempt::Ended(record) => record,
            Attempt::NotSent(cause) => {
                self.drive.progress.end(false, 0);
                let now = self.drive.clock.now();
                self.dispatcher.replied(id, now);
                self.note(JournalEntry::NotSent(NotSent { first: id, count: 1, cause, at: now }))?;
                return self.give_up_if_hopeless(Some(Hopeless::ClientExhausted));
            }
        };
        let ok = record.ending.outcome == Outcome::Ok;
        let outputs = record.events.iter().filter(|event| Event::is_output(event)).count();
        self.drive.progress.end(ok, outputs as u64);
        self.dispatcher.replied(id, record.ending.at);
        let refused = record.head.is_some_and(|head| matches!(head.status, 401 | 403));
        let sign = if refused {
            Some(Hopeless::Unauthorized)
        } else if !ok && record.connection.is_none() && !*self.cut.borrow() {
            Some(Hopeless::Unreachable)
        } else {
            None
        };
        self.note(JournalEntry::Ended(record))?;
        self.give_up_if_hopeless(sign)
    }

    fn give_up_if_hopeless(&mut self, sign: Option<Hopeless>) -> Result<(), LoadError> {
        match self.hopes.after(sign) {
            Some(why) => self.release_nothing_more(why),
            None => Ok(()),
        }
    }

    fn refuse(&mut self, id: RequestId) -> Result<(), LoadError> {
        match &mut self.refused {
            Some(part) if part.first.0 + part.count == id.0 => {
                part.count += 1;
                Ok(())
            }
            _ => {
                self.note_refused()?;
                let at = self.drive.clock.now();
                let cause = Cause::ClientResource;
                self.refused = Some(NotSent { first: id, count: 1, cause, at });
                Ok(())
            }
        }
    }

    fn note_refused(&mut self) -> Result<(), LoadError> {
        match self.refused.take() {
            Some(part) => self.note(JournalEntry::NotSent(part)),
            None => Ok(()),
        }
    }

    fn stop_as_told(&mut self, stop: Stop) -> Result<(), LoadError> {
        match stop {
            Stop::Run => Ok(()),
            Stop::Drain => self.release_nothing_more(RunStop::Drained),
            Stop::Cut => {
                self.release_nothing_more(RunStop::Cut)?;
                if self.run_stop == RunStop::Drained {
                    self.run_stop = RunStop::Cut;
                }
                self.cut_everything();
                Ok(())
            }
        }
    }

    fn cut_everything(&mut self) {
        self.drain_until = None;
        self.cut.send_replace(true);
    }

    fn release_nothing_more(&mut self, why: RunStop) -> Result<(), LoadError> {
        if self.run_stop.is_partial() {
            return Ok(());
        }
        let now = self.drive.clock.now();
        let parts = self.dispatcher.stop(now);
        // Whoever stops a run that has sent all of its requests only waits less for the rest.
        let nothing_lost = parts.is_empty() && self.drive.plan.bounds().requests.is_some();
        if !nothing_lost {
            self.run_stop = why;
        }
        let drained = now + self.drive.target.limits.drain;
        self.drain_until = Some(self.drain_until.map_or(drained, |until| until.min(drained)));
        for part in parts {
            self.note(JournalEntry::NotSent(part))?;
        }
        Ok(())
    }

    /// Hands a fact to the writer. A full queue is waited for and counted, never dropped.
    fn note(&mut self, entry: JournalEntry) -> Result<(), LoadError> {
        match self.drive.journal.try_send(entry) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(entry)) => {
                self.journal_waits += 1;
                self.drive.journal.send(entry).map_err(|_| LoadError::JournalClosed)
            }
            Err(TrySendError::Disconnected(_)) => Err(LoadError::JournalClosed),
        }
    }
}

fn since_zero(moment: Moment) -> Duration {
    Duration::from_nanos(moment.as_nanos())
}

/// Ways to fail that the next request cannot escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hopeless {
    Unauthorized,
    Unreachable,
    ClientExhausted,
}

impl Hopeless {
    /// How often in a row before we believe it, and what the run is then called. A closed loop
    /// against a dead server would fail as fast as it can, for as long as it may.
    const fn limit(self) -> (u32, RunStop) {
        match self {
            Self::Unauthorized => (3, RunStop::Unauthorized),
            Self::Unreachable => (100, RunStop::Unreachable),
            Self::ClientExhausted => (100, RunStop::ClientExhausted),
        }
    }
}

/// Hopeless endings in a row.
#[derive(Clone, Copy, Debug, Default)]
struct Hopes {
    last: Option<Hopeless>,
    in_a_row: u32,
}

impl Hopes {
    fn after(&mut self, sign: Option<Hopeless>) -> Option<RunStop> {
        self.in_a_row = if sign.is_some() && sign == self.last { self.in_a_row + 1 } else { 1 };
        self.last = sign;
        let (limit, why) = sign?.limit();
        (self.in_a_row == limit).then_some(why)
    }
}

/// A regular tick; whatever keeps the loop busy makes it late.
async fn watch_loop_lag(
    mut pacer: Pacer,
    clock: SystemClock,
    turn: Turn,
    lags: Rc<RefCell<LagHistogram>>,
) {
    let mut due = clock.now() + LAG_TICK;
    turn.tick_due(due);
    while pacer.until(due).await.is_ok() {
        let now = clock.now();
        let lag = now.since(due).unwrap_or_default();
        lags.borrow_mut().add(u64::try_from(lag.as_nanos()).unwrap_or(u64::MAX));
        // After a long pause one late tick is enough; the missed ones would only repeat it.
        due = (due + LAG_TICK).max(now);
        turn.tick_due(due);
    }
}
