//! The driver: plays a plan against a target and sends what happened to the journal.
//!
//! It acts and decides nothing: the dispatcher says what to do next, the exchanges do it.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

use bytes::Bytes;
use inferometer_model::journal::{ClientFacts, LagHistogram, RunStop};
use inferometer_model::observations::Connections;
use inferometer_model::outcome::{Cause, Outcome};
use inferometer_model::record::Event;
use inferometer_model::{
    Clock, JournalEntry, Moment, NotSent, Plan, PlannedRequest, Release, RequestId, RequestRecord,
    RunEnding, StartedRequest,
};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet, LocalSet};

use crate::clock::SystemClock;
use crate::dialect::{self, BodyRecipe};
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

/// How the user wants the run to go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    #[default]
    Run,
    /// Release nothing more; let what is in flight finish, within the drain limit.
    Drain,
    /// End everything now.
    Cut,
}

/// The user's hand on a running drive.
#[derive(Clone, Debug)]
pub struct Control(watch::Sender<Stop>);

impl Default for Control {
    fn default() -> Self {
        Self(watch::Sender::new(Stop::Run))
    }
}

impl Control {
    /// The first call drains, the second cuts.
    pub fn stop_harder(&self) -> Stop {
        self.0.send_modify(|stop| {
            *stop = if *stop == Stop::Run { Stop::Drain } else { Stop::Cut };
        });
        *self.0.borrow()
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
    LocalSet::new().block_on(&runtime, async move {
        let mut driver = Driver::new(drive, turn)?;
        driver.run().await
    })
}

/// What one request outside any run brought.
#[derive(Clone, Debug)]
pub struct Probe {
    pub record: RequestRecord,
    /// How the server treats a connection after its answer.
    pub connections: Connections,
}

/// How long an idle connection is watched before it counts as kept open.
const KEEP_OPEN_WATCH: Duration = Duration::from_millis(200);

/// One request outside any run. Uses the same path as every measured request.
pub fn probe(
    target: &Arc<Target>,
    clock: SystemClock,
    prompt: &str,
    output_tokens: u32,
) -> Result<Probe, LoadError> {
    let turn = Turn::default();
    let runtime = runtime(clock, turn.clone())?;
    LocalSet::new().block_on(&runtime, async move {
        let (_keep, cut) = watch::channel(false);
        let clock = Rc::new(DriverClock::new(clock, turn));
        let now = clock.system.now();
        let request = PlannedRequest {
            id: RequestId(0),
            release: Release::At(now),
            prompt_seed: 0,
            input_tokens: 0,
            output_tokens,
        };
        let body = body(target, prompt, output_tokens);
        let exchanges = Exchanges::new(Arc::clone(target), clock, cut);
        let departure = Departure { request, body, intended: now, admitted: now };
        let record = match exchanges.attempt(departure).await {
            Attempt::Ended(record) => *record,
            Attempt::NotSent(cause) => {
                return Err(LoadError::Start(io::Error::other(cause.text())));
            }
        };
        let keeps = exchanges.keeps_open(KEEP_OPEN_WATCH).await;
        let connections = if keeps { Connections::Reuse } else { Connections::New };
        Ok(Probe { record, connections })
    })
}

fn runtime(clock: SystemClock, turn: Turn) -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .on_thread_unpark(move || turn.began(clock.now()))
        .build()
}

fn body(target: &Target, prompt: &str, output_tokens: u32) -> Bytes {
    Bytes::from(dialect::body(&BodyRecipe {
        api: target.api,
        model: &target.model,
        prompt,
        output_tokens,
        streaming: target.streaming,
        usage: target.usage,
    }))
}

struct Driver {
    drive: Drive,
    exchanges: Rc<Exchanges>,
    dispatcher: Dispatcher,
    pacer: Pacer,
    drain_pacer: Pacer,
    attempts: JoinSet<(RequestId, Attempt)>,
    stop: watch::Receiver<Stop>,
    cut: watch::Sender<bool>,
    /// When draining turns into cutting.
    drain_until: Option<Moment>,
    run_stop: RunStop,
    refusals_in_a_row: u32,
    failed_dials_in_a_row: u32,
    loop_lag: Rc<RefCell<LagHistogram>>,
    journal_waits: u64,
}

/// A key that was refused this often in a row will be refused for ever.
const REFUSALS_MAX: u32 = 3;
/// A closed loop against a dead server would fail as fast as it can, for as long as it may.
const FAILED_DIALS_MAX: u32 = 100;
/// The tick whose lateness is the loop's lag.
const LAG_TICK: Duration = Duration::from_millis(10);
/// Requests started in a row before others get their turn.
const BURST_MAX: u32 = 64;

impl Driver {
    fn new(drive: Drive, turn: Turn) -> Result<Self, LoadError> {
        let clock = Rc::new(DriverClock::new(drive.clock, turn));
        let (cut, cut_receiver) = watch::channel(false);
        let exchanges =
            Rc::new(Exchanges::new(Arc::clone(&drive.target), Rc::clone(&clock), cut_receiver));
        let dispatcher = Dispatcher::new(Arc::clone(&drive.plan), drive.ceiling, drive.clock.now());
        Ok(Self {
            exchanges,
            dispatcher,
            pacer: Pacer::new(drive.clock)?,
            drain_pacer: Pacer::new(drive.clock)?,
            attempts: JoinSet::new(),
            stop: drive.control.0.subscribe(),
            cut,
            drain_until: None,
            run_stop: RunStop::PlanDone,
            refusals_in_a_row: 0,
            failed_dials_in_a_row: 0,
            loop_lag: Rc::default(),
            journal_waits: 0,
            drive,
        })
    }

    async fn run(&mut self) -> Result<RunEnding, LoadError> {
        let lag_watch = tokio::task::spawn_local(watch_loop_lag(
            Pacer::new(self.drive.clock)?,
            self.drive.clock,
            Rc::clone(&self.loop_lag),
        ));
        let mut burst = 0;
        loop {
            match self.dispatcher.next(self.drive.clock.now()) {
                Command::Send { request, intended } => {
                    self.start(request, intended)?;
                    burst += 1;
                    if burst % BURST_MAX == 0 {
                        tokio::task::yield_now().await;
                    }
                }
                Command::Refuse { id } => self.not_sent(id, Cause::ClientResource)?,
                Command::WaitUntil(moment) => self.wait(Some(moment)).await?,
                Command::WaitForReply => self.wait(None).await?,
                Command::Done => break,
            }
        }
        lag_watch.abort();
        let ending = RunEnding {
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
        let admitted = self.drive.clock.now();
        let asked = request.asked();
        let started = StartedRequest { id: request.id, intended, admitted, asked };
        self.note(JournalEntry::Started(started))?;
        self.drive.progress.start();
        let prompt = self.drive.plan.prompt(&request);
        let body = body(&self.drive.target, &prompt, request.output_tokens);
        let departure = Departure { request, body, intended, admitted };
        let exchanges = Rc::clone(&self.exchanges);
        self.attempts.spawn_local(async move { (request.id, exchanges.attempt(departure).await) });
        Ok(())
    }

    /// Waits for a moment, a reply, or the user, whichever comes first.
    async fn wait(&mut self, until: Option<Moment>) -> Result<(), LoadError> {
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
                self.stop_as_told(Stop::Cut)
            }
        }
    }

    fn ended(&mut self, id: RequestId, attempt: Attempt) -> Result<(), LoadError> {
        let record = match attempt {
            Attempt::Ended(record) => record,
            Attempt::NotSent(cause) => {
                self.drive.progress.end(false, 0);
                self.dispatcher.replied(id, self.drive.clock.now());
                self.not_sent(id, cause)?;
                return self.give_up_if_hopeless(false, true);
            }
        };
        let ok = record.ending.outcome == Outcome::Ok;
        let outputs = record.events.iter().filter(|event| Event::is_output(event)).count();
        self.drive.progress.end(ok, outputs as u64);
        self.dispatcher.replied(id, record.ending.at);
        let refused = record.head.is_some_and(|head| matches!(head.status, 401 | 403));
        let not_connected = !ok && record.connection.is_none();
        self.note(JournalEntry::Ended(record))?;
        self.give_up_if_hopeless(refused, not_connected)
    }

    /// Stops a run whose requests all fail in a way that the next one cannot escape.
    fn give_up_if_hopeless(&mut self, refused: bool, not_connected: bool) -> Result<(), LoadError> {
        let count = |so_far: u32, again: bool| if again { so_far + 1 } else { 0 };
        self.refusals_in_a_row = count(self.refusals_in_a_row, refused);
        self.failed_dials_in_a_row = count(self.failed_dials_in_a_row, not_connected);
        if self.refusals_in_a_row == REFUSALS_MAX {
            self.release_nothing_more(RunStop::Unauthorized)?;
        }
        if self.failed_dials_in_a_row == FAILED_DIALS_MAX {
            self.release_nothing_more(RunStop::Unreachable)?;
        }
        Ok(())
    }

    fn not_sent(&mut self, id: RequestId, cause: Cause) -> Result<(), LoadError> {
        let at = self.drive.clock.now();
        self.note(JournalEntry::NotSent(NotSent { first: id, count: 1, cause, at }))
    }

    fn stop_as_told(&mut self, stop: Stop) -> Result<(), LoadError> {
        match stop {
            Stop::Run => Ok(()),
            Stop::Drain => self.release_nothing_more(RunStop::Drained),
            Stop::Cut => {
                self.drain_until = None;
                self.release_nothing_more(RunStop::Cut)?;
                self.drain_until = None;
                self.run_stop = RunStop::Cut;
                self.cut.send_replace(true);
                Ok(())
            }
        }
    }

    fn release_nothing_more(&mut self, why: RunStop) -> Result<(), LoadError> {
        if self.run_stop.is_partial() {
            return Ok(());
        }
        self.run_stop = why;
        let now = self.drive.clock.now();
        self.drain_until = Some(now + self.drive.target.limits.drain);
        for part in self.dispatcher.stop(now) {
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

/// A regular tick; whatever keeps the loop busy makes it late.
async fn watch_loop_lag(mut pacer: Pacer, clock: SystemClock, lags: Rc<RefCell<LagHistogram>>) {
    let mut due = clock.now() + LAG_TICK;
    while pacer.until(due).await.is_ok() {
        let now = clock.now();
        let lag = now.since(due).unwrap_or_default();
        lags.borrow_mut().add(u64::try_from(lag.as_nanos()).unwrap_or(u64::MAX));
        // After a long pause one late tick is enough; the missed ones would only repeat it.
        due = (due + LAG_TICK).max(now);
    }
}
