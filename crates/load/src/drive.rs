//! Driving a plan: the threads, and what they bring back together.

use std::io;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use inferometer_model::journal::{ClientFacts, JournalBatch, RunStop};
use inferometer_model::spec::Limits;
use inferometer_model::{Clock, JournalEntry, Moment, NotSent, Plan, RequestId, RunEnding};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::{Notify, watch};

use crate::bodies::Bodies;
use crate::clock::SystemClock;
use crate::control::{AbortReason, Control, FailureStreak, Progress, Stop};
use crate::dispatcher::{Command, Departure, Dispatcher, Reply};
use crate::driver::{Feed, JournalClosed, Part, play, runtime};
use crate::limits::before;
use crate::resources::{CpuReading, SmallPages, pin_to};
use crate::socket::switch_stamps_on;
use crate::target::Target;
use crate::wire::Turn;

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

impl std::fmt::Debug for Drive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drive").field("target", &self.target).finish_non_exhaustive()
    }
}

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

impl From<JournalClosed> for LoadError {
    fn from(_: JournalClosed) -> Self {
        Self::JournalClosed
    }
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
    let prepared = prepare(&drive, drivers)?;
    let cpu_before = CpuReading::take();
    // The plan's moments count from here: a little ahead, so that every driver is there by then.
    let parts = u32::try_from(drivers).unwrap_or(u32::MAX);
    let began = drive.clock.now() + START_AHEAD + START_AHEAD_PER_DRIVER * parts;
    let dispatcher = Dispatcher::new(Arc::clone(&drive.plan), drive.ceiling, began, drivers);
    let conductor = Arc::new(Conductor::new(dispatcher));
    let turns: Vec<Turn> = prepared.iter().map(|(_, turn)| turn.clone()).collect();
    let (sender, reports) = tokio::sync::mpsc::unbounded_channel();
    let mut threads = Vec::new();
    for (lane, prepared) in prepared.into_iter().enumerate() {
        let (conductor, bodies) = (Arc::clone(&conductor), Arc::clone(&bodies));
        let part = Part { lane, drivers, conductor, bodies };
        threads.push(start(drive.clone(), part, prepared, sender.clone())?);
    }
    drop(sender);
    let limits = (drive.target.limits.drain, output_limit(&drive.target) + drive.stall_grace);
    let feed = Feed::new(drive.journal.clone());
    let mut watch = Watch::new(&conductor, drive.clock, &drive.control, turns, limits, feed);
    let reports = conducting.block_on(watch.until_all_reported(reports))?;
    for thread in threads {
        thread.join().map_err(|_| LoadError::Driver)?;
    }
    let cpu = cpu_before.and_then(CpuReading::until_now);
    let mut client = ClientFacts { cpu, ..ClientFacts::default() };
    for report in reports {
        client.merge(&report?);
    }
    Ok(watch.write_ending(began, client)?)
}

type Prepared = (Runtime, Turn);

/// What starting a thread and making its driver takes, generously.
const START_AHEAD: Duration = Duration::from_millis(2);
const START_AHEAD_PER_DRIVER: Duration = Duration::from_micros(500);

fn prepare(drive: &Drive, drivers: usize) -> io::Result<Vec<Prepared>> {
    let prepare_one = |_| {
        let turn = Turn::default();
        Ok((runtime(drive.clock, turn.clone())?, turn))
    };
    (0..drivers).map(prepare_one).collect()
}

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
        let playing = AssertUnwindSafe(|| play(&runtime, drive, part, turn));
        // A driver that panics must say so: the others would play on for a run that is lost.
        let report = catch_unwind(playing).unwrap_or(Err(LoadError::Driver));
        // A closed channel means that no report is awaited.
        let _ = reports.send(report);
    })
}

/// How long the limits let a request wait for output.
fn output_limit(target: &Target) -> Duration {
    let Limits { connect, first_token, idle, total, .. } = target.limits;
    let longest = if target.streams() { connect + first_token.max(idle) } else { total };
    longest.min(total)
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
        reason: Option<AbortReason>,
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
        clock: SystemClock,
        control: &Control,
        turns: Vec<Turn>,
        (drain, stall): (Duration, Duration),
        feed: Feed,
    ) -> Self {
        let stop = control.listen();
        let alive_at = clock.now();
        Self { conductor, clock, stop, turns, drain, stall, feed, drain_until: None, alive_at }
    }

    /// Conducts until all drivers have reported, and returns their reports in no order.
    pub(crate) async fn until_all_reported(
        &mut self,
        mut reports: mpsc::UnboundedReceiver<Report>,
    ) -> Result<Vec<Report>, JournalClosed> {
        let mut reported = Vec::new();
        loop {
            self.write_not_sent()?;
            tokio::select! {
                biased;
                report = reports.recv() => {
                    let Some(report) = report else { return Ok(reported) };
                    if report.is_err() {
                        // The run is lost; what the others still have in flight is not waited for.
                        self.stop_as_told(Stop::Cut);
                    }
                    reported.push(report);
                }
                Ok(()) = self.stop.changed() => {
                    let stop = *self.stop.borrow_and_update();
                    self.stop_as_told(stop);
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
    ) -> Result<RunEnding, JournalClosed> {
        self.write_not_sent()?;
        let stop = self.conductor.score().stop;
        let ending = RunEnding { began: Some(began), at: self.clock.now(), stop, client };
        self.feed.note(JournalEntry::RunEnded(ending.clone()))?;
        self.feed.hand_over()?;
        Ok(ending)
    }

    /// What a stop left unsent is written at once: a crash while draining must not lose it.
    fn write_not_sent(&mut self) -> Result<(), JournalClosed> {
        let parts = std::mem::take(&mut self.conductor.score().not_sent);
        for part in parts {
            self.feed.note(JournalEntry::NotSent(part))?;
        }
        self.feed.hand_over()
    }

    fn stop_as_told(&mut self, stop: Stop) {
        match stop {
            Stop::Run => {}
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
