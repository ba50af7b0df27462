//! Driving a plan: the driver threads, and how their results are joined.
//!
//! A driver is one thread that plays its part of the plan and feeds the journal. It acts and decides
//! nothing: the dispatcher decides what to do next, the exchanges do it, each as a task of this
//! thread. Once per tick it does what needs no haste: it looks for time-outs, hands its facts over,
//! and measures how late it is.

use std::cell::{Cell, RefCell};
use std::io;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

use inferometer_model::journal::{ClientFacts, Dialling, JournalBatch, LagHistogram, RunStop};
use inferometer_model::outcome::{Cause, Outcome};
use inferometer_model::record::{Event, Read};
use inferometer_model::{
    Clock, JournalEntry, Message, Moment, NotSent, Plan, RequestId, RequestRecord, RunEnding, Spec,
    spec,
};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, LocalSet};

use crate::answer::Failure;
use crate::bodies::{Bodies, Outgoing, remembered};
use crate::clock::{Pacer, SleepWatch, SystemClock};
use crate::contexts::Contexts;
use crate::control::{Control, FailureStreak, Progress, Stop};
use crate::dial_ahead::{self, connections_needed};
use crate::dispatcher::{Command, Departure, Dispatcher, Reply};
use crate::exchange::{Exchanges, Flight};
use crate::limits::{Limits, before};
use crate::platform::switch_stamps_on;
use crate::resources::{SmallPages, ThreadCpu, cpu_reading, cpu_since, pin_to};
use crate::socket::{DriverClock, Turn};
use crate::target::Target;

/// All that a run needs. Driving blocks the calling thread until the run is over.
#[derive(Clone)]
pub struct Drive {
    pub plan: Arc<dyn Plan>,
    pub target: Arc<Target>,
    pub clock: SystemClock,
    pub control: Control,
    pub progress: Arc<Progress>,
    /// When the plan begins, where several clients begin together; `None` begins at once.
    pub start_at: Option<Moment>,
    /// Requests that this machine can hold in flight.
    pub ceiling: usize,
    pub drivers: Drivers,
    /// How much longer than a request's own limits a run without output may go on.
    pub stall_grace: Duration,
    pub journal: SyncSender<JournalBatch>,
}

impl Drive {
    /// The usual grace: long enough for any server that is only slow.
    pub const STALL_GRACE: Duration = Duration::from_mins(1);
}

/// How many threads drive, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drivers {
    pub count: NonZeroUsize,
    /// The cores that they are pinned to, in turn; empty leaves them to the scheduler.
    pub cores: Vec<usize>,
}

impl Drivers {
    pub const ONE: Self = Self { count: NonZeroUsize::MIN, cores: Vec::new() };
}

inferometer_model::debug_fields!(Drive, target);

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("a driver could not start: {0}")]
    Start(#[from] io::Error),
    #[error("the journal stopped taking records; the run was cut short")]
    JournalClosed,
    #[error("the task of request {0} ended abnormally")]
    Task(RequestId),
    #[error("a driver ended abnormally")]
    Driver,
}

/// Plays the plan to its end, or to the user's.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the journal's sender ends with the drive, and with it the writer"
)]
pub fn drive(drive: Drive) -> Result<RunEnding, LoadError> {
    switch_stamps_on();
    let _small_pages = SmallPages::keep();
    let bodies = Arc::new(Bodies::start(Arc::clone(&drive.plan), Arc::clone(&drive.target))?);
    let conducting = runtime(drive.clock, Turn::default())?;
    let drivers = Dispatcher::lanes_of(&drive.plan.bounds(), drive.drivers.count.get());
    let prepare = |_| {
        let turn = Turn::default();
        Ok((runtime(drive.clock, turn.clone())?, turn))
    };
    let prepared = (0..drivers).map(prepare).collect::<io::Result<Vec<Prepared>>>()?;
    let turns: Vec<Turn> = prepared.iter().map(|(_, turn)| turn.clone()).collect();
    let (sender, reports) = mpsc::unbounded_channel();
    let (dialled, all_dialled) = mpsc::unbounded_channel();
    let (set_conductor, conductor_set) = watch::channel(None);
    let connections = connections_needed(drive.plan.as_ref(), &drive.target, drive.ceiling);
    let mut threads = Vec::new();
    for (lane, prepared) in prepared.into_iter().enumerate() {
        let ahead = dial_ahead::share(connections, lane, drivers);
        let (bodies, dialled) = (Arc::clone(&bodies), dialled.clone());
        let conductor = conductor_set.clone();
        let part = Part { lane, drivers, bodies, ahead, dialled, conductor };
        threads.push(start(drive.clone(), part, prepared, sender.clone())?);
    }
    drop((sender, dialled, conductor_set));
    let dialling = conducting.block_on(merged(all_dialled));
    let cpu_before = cpu_reading();
    // The plan's moments count from here: a little ahead, so that every driver is there by then.
    let parts = u32::try_from(drivers).unwrap_or(u32::MAX);
    let ready = drive.clock.now() + START_AHEAD + START_AHEAD_PER_DRIVER * parts;
    let began = drive.start_at.unwrap_or(ready);
    let dispatcher = Dispatcher::new(bodies, drive.ceiling, began, drivers);
    let is_late = began + LATE_START < ready;
    let dispatcher = if is_late { dispatcher.joining(ready) } else { dispatcher };
    let conductor = Arc::new(Conductor::new(dispatcher));
    set_conductor.send_replace(Some(Arc::clone(&conductor)));
    // How long the limits let a request wait for output.
    let spec::Limits { connect, first_token, idle, total, drain } = drive.target.limits;
    let longest = if drive.target.streams() { connect + first_token.max(idle) } else { total };
    let limits = (drain, longest.min(total) + drive.stall_grace);
    let mut feed = Feed::new(drive.journal.clone());
    if is_late {
        // Also where nothing was due before: the journal says when the client joined.
        let (first, cause) = (RequestId(0), Cause::WorkerLate);
        feed.note(JournalEntry::NotSent(NotSent { first, count: 0, cause, at: ready }))?;
    }
    let mut watch = Watch::new(&conductor, &drive, turns, limits, feed);
    let reports = conducting.block_on(watch.until_all_reported(reports))?;
    for thread in threads {
        thread.join().map_err(|_| LoadError::Driver)?;
    }
    let cpu = cpu_before.and_then(cpu_since);
    let mut client = ClientFacts { cpu, dialling, ..ClientFacts::default() };
    for report in reports {
        client.merge(&report?);
    }
    watch.write_ending(began, client)
}

/// What all drivers opened, once each of them is done with it; `None` where nothing was to be opened.
async fn merged(mut dialled: mpsc::UnboundedReceiver<Dialling>) -> Option<Dialling> {
    let mut all: Option<Dialling> = None;
    while let Some(part) = dialled.recv().await {
        all.get_or_insert_default().merge(part);
    }
    all
}

/// A client that is ready later than this has missed a part of the plan.
const LATE_START: Duration = Duration::from_millis(100);

type Prepared = (Runtime, Turn);

/// What starting a thread and making its driver takes, generously.
const START_AHEAD: Duration = Duration::from_millis(2);
const START_AHEAD_PER_DRIVER: Duration = Duration::from_micros(500);

fn start(
    drive: Drive,
    part: Part,
    (runtime, turn): Prepared,
    reports: UnboundedSender<Report>,
) -> io::Result<JoinHandle<()>> {
    let cores = &drive.drivers.cores;
    let core = cores.get(part.lane % cores.len().max(1)).copied();
    std::thread::Builder::new().name(format!("driver-{}", part.lane)).spawn(move || {
        if let Some(core) = core {
            pin_to(core);
        }
        let playing = AssertUnwindSafe(|| {
            let tasks = LocalSet::new();
            tasks.block_on(&runtime, async move { part.play(drive, turn).await })
        });
        // A driver that panics must say so: the others would play on for a run that is lost.
        let report = catch_unwind(playing).unwrap_or(Err(LoadError::Driver));
        // A closed channel means that no report is awaited.
        let _ = reports.send(report);
    })
}

/// What a driver brings back.
pub(crate) type Report = Result<ClientFacts, LoadError>;

#[derive(Debug)]
pub(crate) struct Conductor {
    score: Mutex<Score>,
    /// Whether drivers must end everything in flight. They look each turn.
    is_cut: AtomicBool,
    /// Drivers ended their part of the run by themselves, as far as they know.
    gave_up: Notify,
}

/// The state of the run.
#[derive(Debug)]
struct Score {
    dispatcher: Dispatcher,
    failures: FailureStreak,
    stop: RunStop,
    /// What a stop or the end of the time left unsent, until it is written down.
    not_sent: Vec<NotSent>,
}

impl Conductor {
    pub(crate) fn new(dispatcher: Dispatcher) -> Self {
        let score = Score {
            dispatcher,
            failures: FailureStreak::default(),
            stop: RunStop::PlanDone,
            not_sent: Vec::new(),
        };
        Self { score: Mutex::new(score), is_cut: AtomicBool::new(false), gave_up: Notify::new() }
    }

    pub(crate) fn next(&self, lane: usize, now: Moment) -> Command {
        self.score().dispatcher.next(lane, now)
    }

    /// A request of this lane ended, with a reason of hopelessness or without.
    pub(crate) fn ended(
        &self,
        lane: usize,
        departure: &Departure,
        reply: Reply,
        reason: Option<RunStop>,
    ) {
        let mut score = self.score();
        score.dispatcher.replied(lane, departure, reply);
        if let Some(why) = score.failures.after(reason) {
            score.release_nothing_more(why, reply.at);
            self.gave_up.notify_one();
        }
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    fn score(&self) -> MutexGuard<'_, Score> {
        // A driver that panicked ends the run with an error; the others need not panic with it.
        self.score.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Score {
    fn release_nothing_more(&mut self, why: RunStop, now: Moment) {
        if self.stop.is_partial() {
            return;
        }
        // Stopping a run that has sent all of its requests only shortens the wait for the rest.
        if !self.dispatcher.has_released_all(now) {
            self.stop = why;
        }
        self.not_sent.extend(self.dispatcher.stop(now));
    }

    /// What is in flight will not end by itself.
    fn cut_short(&mut self) {
        let is_ours = matches!(self.stop, RunStop::PlanDone | RunStop::Drained);
        if is_ours && 0 < self.dispatcher.in_flight() {
            self.stop = RunStop::Cut;
        }
    }
}

/// The conductor's own side: it waits for whatever ends a run before its drivers do.
pub(crate) struct Watch<'a> {
    pub(crate) conductor: &'a Conductor,
    pub(crate) clock: SystemClock,
    pub(crate) progress: &'a Progress,
    pub(crate) stop: watch::Receiver<Stop>,
    /// One per driver: its signs of life.
    pub(crate) turns: Vec<Turn>,
    pub(crate) drain: Duration,
    /// How long nothing may come while something is in flight.
    pub(crate) stall: Duration,
    feed: Feed,
    drain_until: Option<Moment>,
    alive_at: Moment,
}

/// How often the conductor looks by itself.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl<'a> Watch<'a> {
    pub(crate) fn new(
        conductor: &'a Conductor,
        Drive { clock, control, progress, .. }: &'a Drive,
        turns: Vec<Turn>,
        (drain, stall): (Duration, Duration),
        feed: Feed,
    ) -> Self {
        let (stop, alive_at) = (control.listen(), clock.now());
        let (clock, drain_until) = (*clock, None);
        Self { conductor, clock, progress, stop, turns, drain, stall, feed, drain_until, alive_at }
    }

    /// Conducts until all drivers have reported, and returns their reports in no order.
    pub(crate) async fn until_all_reported(
        &mut self,
        mut reports: mpsc::UnboundedReceiver<Report>,
    ) -> Result<Vec<Report>, LoadError> {
        let mut reported = Vec::new();
        loop {
            self.write_not_sent()?;
            tokio::select! {
                biased;
                report = reports.recv() => {
                    let Some(report) = report else { return Ok(reported) };
                    if report.is_err() {
                        // The run is lost; what the others still have in flight is not waited for.
                        self.apply_stop(Stop::Cut);
                    }
                    reported.push(report);
                }
                Ok(()) = self.stop.changed() => {
                    let stop = *self.stop.borrow_and_update();
                    self.apply_stop(stop);
                }
                () = self.conductor.gave_up.notified() => self.drain_from(self.clock.now()),
                () = pause(self.clock) => self.look(),
            }
        }
    }

    /// Writes the last fact of a run.
    pub(crate) fn write_ending(
        &mut self,
        began: Moment,
        client: ClientFacts,
    ) -> Result<RunEnding, LoadError> {
        self.write_not_sent()?;
        let stop = self.conductor.score().stop;
        let ending = RunEnding { began: Some(began), at: self.clock.now(), stop, client };
        self.feed.note(JournalEntry::RunEnded(ending.clone()))?;
        self.feed.hand_over()?;
        Ok(ending)
    }

    /// What a stop left unsent is written at once: a crash while draining must not lose it.
    fn write_not_sent(&mut self) -> Result<(), LoadError> {
        let parts = std::mem::take(&mut self.conductor.score().not_sent);
        for part in parts {
            self.feed.note(JournalEntry::NotSent(part))?;
        }
        self.feed.hand_over()
    }

    fn apply_stop(&mut self, stop: Stop) {
        match stop {
            Stop::Run => {}
            Stop::RunOut => self.release_nothing_more(RunStop::ClientExhausted),
            Stop::Drain => self.release_nothing_more(RunStop::Drained),
            Stop::Cut => {
                self.release_nothing_more(RunStop::Cut);
                self.conductor.score().cut_short();
                self.conductor.cut();
            }
        }
    }

    fn release_nothing_more(&mut self, why: RunStop) {
        let now = self.clock.now();
        self.conductor.score().release_nothing_more(why, now);
        self.drain_from(now);
    }

    fn drain_from(&mut self, now: Moment) {
        let until = now + self.drain;
        self.drain_until = Some(self.drain_until.map_or(until, |earlier| earlier.min(until)));
    }

    fn look(&mut self) {
        let now = self.clock.now();
        if let Some(why) = self.progress.aborted() {
            self.release_nothing_more(why);
        }
        let mut score = self.conductor.score();
        let held_back = score.dispatcher.expire(now);
        score.not_sent.extend(held_back);
        let in_flight = score.dispatcher.in_flight();
        // A run by time waits for its last requests as long as one that the user stops.
        let is_over = score.dispatcher.is_time_over(now) && score.dispatcher.has_released_all(now);
        let drained = self.drain_until.is_some_and(|until| until <= now);
        if drained && score.stop == RunStop::Drained {
            score.cut_short();
        }
        drop(score);
        if self.drain_until.is_none() && is_over {
            self.drain_from(now);
        }
        if drained {
            self.conductor.cut();
        }
        self.end_if_stalled(now, in_flight);
    }

    /// Nothing in flight is nothing to wait for; output is a reason of life, and nothing else is:
    /// requests that fail one after the other would keep a dead run going.
    fn end_if_stalled(&mut self, now: Moment, in_flight: usize) {
        let output = self.turns.iter().map(Turn::last_output).max().unwrap_or_default();
        self.alive_at = self.alive_at.max(output);
        if in_flight == 0 {
            self.alive_at = now;
        }
        if self.alive_at + self.stall < now && !self.conductor.is_cut() {
            self.release_nothing_more(RunStop::Stalled);
            // Also when all was sent: what is cut now did not end by itself.
            self.conductor.score().stop = RunStop::Stalled;
            self.conductor.cut();
        }
    }
}

async fn pause(clock: SystemClock) {
    before(clock, clock.now() + LOOK_EVERY, std::future::pending::<()>()).await;
}

pub(crate) struct Driver {
    drive: Drive,
    lane: usize,
    conductor: Arc<Conductor>,
    bodies: Arc<Bodies>,
    /// One for each server that requests are balanced over.
    exchanges: Vec<Rc<Exchanges>>,
    places: Vec<Option<InFlight>>,
    free_places: Vec<usize>,
    completions: Rc<CompletionQueue>,
    /// Room for what has come down, used again each turn.
    finished: Vec<(usize, Finished)>,
    limits: Limits,
    /// No limit of a request can come sooner after anything than this.
    limit_min: Duration,
    pacer: Pacer,
    ticker: Pacer,
    tick_due: Moment,
    ticks: u64,
    sleep: SleepWatch,
    turn: Turn,
    feed: Feed,
    loop_lag: LagHistogram,
    cpu: ThreadCpu,
    histories: Contexts<Message>,
    /// Requests in a row that were given up for one reason: one fact, not one each.
    refused: Option<NotSent>,
    is_cut: bool,
}

struct InFlight {
    flight: Rc<Flight>,
    /// Its messages, for the turns after it.
    sent_messages: Vec<Message>,
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
    pub(crate) bodies: Arc<Bodies>,
    /// Connections to open before the plan begins.
    ahead: usize,
    dialled: UnboundedSender<Dialling>,
    /// Holds the conductor once all drivers are ready.
    conductor: watch::Receiver<Option<Arc<Conductor>>>,
}

impl Part {
    async fn play(mut self, drive: Drive, turn: Turn) -> Report {
        let clock = Rc::new(DriverClock::new(drive.clock, turn.clone()));
        let servers = 1 + drive.target.replicas.len();
        let exchanges: Vec<Rc<Exchanges>> = (0..)
            .zip(drive.target.each())
            .map(|(number, target)| {
                let (lane, lanes) = (self.lane * servers + number, self.drivers * servers);
                Rc::new(Exchanges::new(Arc::new(target), Rc::clone(&clock), lane, lanes))
            })
            .collect();
        // Before connections take the last descriptors.
        let pacers = [Pacer::new(drive.clock)?, Pacer::new(drive.clock)?];
        for (number, exchanges) in exchanges.iter().enumerate() {
            let ahead = dial_ahead::share(self.ahead, number, servers);
            if ahead == 0 {
                continue;
            }
            let dialling = exchanges.dial_ahead(ahead, &drive.control).await;
            // A closed channel means that no driver is awaited.
            let _ = self.dialled.send(dialling);
        }
        drop(self.dialled);
        let conductor = self.conductor.wait_for(Option::is_some).await;
        // The run was given up before it began.
        let conductor =
            conductor.map_err(|_| LoadError::Driver)?.clone().ok_or(LoadError::Driver)?;
        let (lane, bodies) = (self.lane, self.bodies);
        Driver::new(drive, exchanges, (turn, pacers), (lane, conductor, bodies)).run().await
    }
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
    fn new(
        drive: Drive,
        exchanges: Vec<Rc<Exchanges>>,
        (turn, [pacer, ticker]): (Turn, [Pacer; 2]),
        (lane, conductor, bodies): (usize, Arc<Conductor>, Arc<Bodies>),
    ) -> Self {
        let limits = &drive.target.limits;
        Self {
            lane,
            conductor,
            bodies,
            exchanges,
            places: Vec::new(),
            free_places: Vec::new(),
            completions: Rc::default(),
            finished: Vec::new(),
            limits: Limits::default(),
            limit_min: [limits.connect, limits.first_token, limits.idle, limits.total]
                .into_iter()
                .min()
                .unwrap_or_default(),
            pacer,
            ticker,
            tick_due: Moment::ZERO,
            ticks: 0,
            sleep: SleepWatch::new(),
            turn,
            feed: Feed::new(drive.journal.clone()),
            loop_lag: LagHistogram::default(),
            cpu: ThreadCpu::default(),
            histories: Contexts::default(),
            refused: None,
            is_cut: false,
            drive,
        }
    }

    async fn run(&mut self) -> Result<ClientFacts, LoadError> {
        self.tick_due = self.drive.clock.now() + TICK;
        self.turn.tick_due(self.tick_due);
        let mut burst = 0;
        loop {
            // However much is due, finished requests are taken in and the conductor is asked.
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
            // All of them have one clock.
            mapping: self.exchanges.first().map(|exchanges| exchanges.clock.mapper.facts()),
            loop_lag: std::mem::take(&mut self.loop_lag),
            journal_waits: self.feed.waits(),
            // Of the process, not of a driver.
            cpu: None,
            driver_cpu_us: self.cpu.busiest_second_us(self.drive.clock.now()),
            dialling: None,
        })
    }

    fn start(&mut self, departure: Departure) -> Result<(), LoadError> {
        self.note_refused()?;
        let before = self.histories.before(&departure.request);
        let Outgoing { body, model, sent_messages, demand } =
            self.bodies.take(&departure.request, &before);
        let request = departure.request;
        let mut flight = Flight::new(departure, model);
        flight.demand = demand;
        let flight = Rc::new(flight);
        self.feed.note(JournalEntry::Started(flight.started()))?;
        self.drive.progress.start();
        let place = self.free_places.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        let completion = Completion { completions: Rc::clone(&self.completions), place };
        let server = Spec::replica_of(self.exchanges.len(), request.id, &request.asked());
        let (exchanges, flying) = (Rc::clone(&self.exchanges[server]), Rc::clone(&flight));
        let task = tokio::task::spawn_local(async move {
            let failure = exchanges.attempt(&flying, body).await;
            // Before anything else runs: the connection may carry another request from here on.
            completion.completions.push(place, exchanges.finished(&flying, failure));
        });
        self.limits.arm(place, departure.admitted + self.limit_min);
        self.places[place] = Some(InFlight { flight, sent_messages, task: task.abort_handle() });
        Ok(())
    }

    fn take_in(&mut self) -> Result<(), LoadError> {
        if !self.completions.is_empty() {
            let mut finished = std::mem::take(&mut self.finished);
            self.completions.take(&mut finished);
            for (place, finished) in finished.drain(..) {
                self.finish(place, finished)?;
            }
            self.finished = finished;
        }
        if self.conductor.is_cut() && !self.is_cut {
            self.is_cut = true;
            for place in 0..self.places.len() {
                self.end(place, Failure::new(Outcome::Cancelled, Cause::RunStopped))?;
            }
        }
        let now = self.drive.clock.now();
        if self.tick_due <= now { self.tick(now) } else { Ok(()) }
    }

    /// Waits for a moment, a landing or the tick, whichever comes first.
    async fn wait(&mut self, until: Option<Moment>) -> Result<(), LoadError> {
        self.note_refused()?;
        std::future::poll_fn(|cx| {
            if !self.completions.is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.completions.wake(cx.waker());
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
        // The clock of the run stands still while the machine sleeps; the server's does not.
        let lag = now.since(self.tick_due).unwrap_or_default() + self.sleep.slept();
        self.loop_lag.add(u64::try_from(lag.as_nanos()).unwrap_or(u64::MAX));
        // After a long pause one late tick is enough; the missed ones would only repeat it.
        self.tick_due = (self.tick_due + TICK).max(now);
        self.turn.tick_due(self.tick_due);
        while let Some(place) = self.limits.due(now) {
            self.check_limit(place, now)?;
        }
        self.cpu.look(now, Duration::from_secs(1));
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
        let (at, outcome) = flight.state(target.streams()).next_limit(&target.limits);
        if now < at {
            // The next stage may bring a limit that comes sooner.
            self.limits.arm(place, at.min(now + self.limit_min));
            return Ok(());
        }
        self.end(place, Failure { outcome, cause: None, message: None })
    }

    /// Ends a flight from outside, with what is known of it.
    fn end(&mut self, place: usize, failure: Failure) -> Result<(), LoadError> {
        let Some(InFlight { flight, task, .. }) = &self.places[place] else { return Ok(()) };
        task.abort();
        let now = self.drive.clock.now();
        let record = flight.record(&self.drive.target, Some(failure), now);
        self.finish(place, Finished::Ended(Box::new(record)))
    }

    fn finish(&mut self, place: usize, finished: Finished) -> Result<(), LoadError> {
        let Some(InFlight { flight, sent_messages, .. }) = self.places[place].take() else {
            return Ok(());
        };
        self.free_places.push(place);
        let request = *flight.request();
        match finished {
            Finished::Ended(record) => {
                let ok = record.ending.outcome == Outcome::Ok;
                let outputs = record.events.iter().filter(|event| Event::is_output(event)).count();
                self.drive.progress.end(record.ending.outcome, outputs as u64);
                let reason = abort_reason(&record).filter(|_| !self.is_cut);
                let said = remembered(&flight, ok.then_some(sent_messages));
                self.histories.finished(&request, said);
                let ending = Reply { at: record.ending.at, ok };
                self.conductor.ended(self.lane, &flight.departure, ending, reason);
                self.feed.note(JournalEntry::Ended(record))?;
            }
            Finished::NotSent(cause) => {
                self.drive.progress.end(Outcome::NotSent, 0);
                let now = self.drive.clock.now();
                let reason = Some(RunStop::ClientExhausted);
                self.histories.finished(&request, None);
                let ending = Reply { at: now, ok: false };
                self.conductor.ended(self.lane, &flight.departure, ending, reason);
                let part = NotSent { first: request.id, count: 1, cause, at: now };
                self.feed.note(JournalEntry::NotSent(part))?;
            }
            Finished::Panicked => return Err(LoadError::Task(request.id)),
        }
        Ok(())
    }

    fn refuse(&mut self, id: RequestId, cause: Cause) -> Result<(), LoadError> {
        self.bodies.forget(id);
        // A load without sessions may be refused at a high rate.
        if !self.histories.is_empty()
            && let Some(request) = self.drive.plan.request(id)
        {
            self.histories.finished(&request, None);
        }
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
fn abort_reason(record: &RequestRecord) -> Option<RunStop> {
    if record.head.is_some_and(|head| matches!(head.status, 401 | 403)) {
        Some(RunStop::Unauthorized)
    } else if record.ending.outcome != Outcome::Ok && record.connection.is_none() {
        Some(RunStop::Unreachable)
    } else {
        None
    }
}

/// How a flight came down.
#[derive(Debug)]
pub(crate) enum Finished {
    Ended(Box<RequestRecord>),
    /// This machine could not even dial: no fault of the server's, so no failure of a request.
    NotSent(Cause),
    /// A bug of ours.
    Panicked,
}

#[derive(Default)]
pub(crate) struct CompletionQueue {
    finished: RefCell<Vec<(usize, Finished)>>,
    /// The driver's loop, while it waits.
    waiting: Cell<Option<Waker>>,
}

impl CompletionQueue {
    fn push(&self, place: usize, finished: Finished) {
        self.finished.borrow_mut().push((place, finished));
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.finished.borrow().is_empty()
    }

    /// Takes all, in the order in which they finished, in exchange for an empty list: two lists
    /// take turns, and neither grows anew.
    pub(crate) fn take(&self, taken: &mut Vec<(usize, Finished)>) {
        debug_assert!(taken.is_empty(), "what was taken before is dealt with");
        std::mem::swap(taken, &mut self.finished.borrow_mut());
    }

    /// Wakes `waker` with the next completion.
    pub(crate) fn wake(&self, waker: &Waker) {
        self.waiting.set(Some(waker.clone()));
    }
}

/// Reports the end of one request. Dropped without use it reports nothing, as when its request was
/// cut, unless a panic dropped it.
pub(crate) struct Completion {
    completions: Rc<CompletionQueue>,
    place: usize,
}

impl Drop for Completion {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.completions.push(self.place, Finished::Panicked);
        }
    }
}

/// One driver's end of the queue.
#[derive(Debug)]
pub(crate) struct Feed {
    queue: SyncSender<JournalBatch>,
    batch: JournalBatch,
    batch_bytes: usize,
    waits: u64,
}

/// A batch goes out at this size at the latest, so that a bounded number of batches is a bounded
/// number of bytes.
const BATCH_BYTES: usize = 64 << 10;
/// Bytes of an entry apart from its lists.
const ENTRY_BYTES: usize = 512;

impl Feed {
    pub(crate) fn new(queue: SyncSender<JournalBatch>) -> Self {
        Self { queue, batch: Vec::new(), batch_bytes: 0, waits: 0 }
    }

    pub(crate) fn note(&mut self, entry: JournalEntry) -> Result<(), LoadError> {
        self.batch_bytes += bytes_of(&entry);
        self.batch.push(entry);
        if BATCH_BYTES <= self.batch_bytes { self.hand_over() } else { Ok(()) }
    }

    /// Passes on what was noted. A full queue is waited for and counted, never dropped.
    pub(crate) fn hand_over(&mut self) -> Result<(), LoadError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let room = self.batch.len();
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(room));
        self.batch_bytes = 0;
        match self.queue.try_send(batch) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(batch)) => {
                self.waits += room as u64;
                self.queue.send(batch).map_err(|_| LoadError::JournalClosed)
            }
            Err(TrySendError::Disconnected(_)) => Err(LoadError::JournalClosed),
        }
    }

    /// Entries that found the queue full.
    pub(crate) fn waits(&self) -> u64 {
        self.waits
    }
}

/// About what an entry takes in memory.
fn bytes_of(entry: &JournalEntry) -> usize {
    let lists = match entry {
        JournalEntry::Ended(record) => {
            size_of::<Read>() * record.reads.len()
                + size_of::<Event>() * record.events.len()
                + record.answer.as_ref().map_or(0, |answer| answer.bytes())
        }
        JournalEntry::Started(_) | JournalEntry::NotSent(_) | JournalEntry::RunEnded(_) => 0,
    };
    ENTRY_BYTES + lists
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use inferometer_model::outcome::Cause;
    use inferometer_model::{Moment, NotSent, RequestId};

    use super::*;

    fn entry(id: u64) -> JournalEntry {
        let cause = Cause::RunStopped;
        JournalEntry::NotSent(NotSent { first: RequestId(id), count: 1, cause, at: Moment::ZERO })
    }

    #[test]
    fn entries_leave_in_order_and_in_bounded_batches() {
        let (queue, batches) = sync_channel(1_000);
        let mut feed = Feed::new(queue);
        for id in 0..1_000 {
            feed.note(entry(id)).unwrap();
        }
        feed.hand_over().unwrap();
        feed.hand_over().unwrap();
        drop(feed);
        let batches: Vec<JournalBatch> = batches.into_iter().collect();
        assert!(batches.iter().all(|batch| batch.len() <= BATCH_BYTES / ENTRY_BYTES));
        assert!(batches.len() < 10, "{} batches", batches.len());
        let entries: Vec<JournalEntry> = batches.into_iter().flatten().collect();
        assert_eq!(entries, (0..1_000).map(entry).collect::<Vec<_>>());
    }

    #[test]
    fn a_writer_that_is_gone_is_noticed() {
        let (queue, batches) = sync_channel(1);
        drop(batches);
        let mut feed = Feed::new(queue);
        feed.note(entry(0)).unwrap();
        assert!(matches!(feed.hand_over(), Err(LoadError::JournalClosed)));
    }
}
