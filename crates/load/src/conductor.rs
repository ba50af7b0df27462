//! The conductor: what the drivers of one run share, and who tells them to stop.
//!
//! Drivers come here once or twice per request, never per token. The thread that conducts stands
//! beside them: it hears the user, keeps the drain's deadline, and ends a run that stands still.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use inferometer_model::journal::{ClientFacts, RunStop};
use inferometer_model::{Clock, JournalEntry, Moment, NotSent, RunEnding};
use tokio::sync::{Notify, mpsc, watch};

use crate::clock::SystemClock;
use crate::control::{Control, Stop};
use crate::deadline::before;
use crate::dispatcher::{Command, Departure, Dispatcher, Reply};
use crate::drive::LoadError;
use crate::feed::{Feed, JournalClosed};
use crate::hopes::{Hopeless, Hopes};
use crate::wire::Turn;

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

/// Where the run stands.
#[derive(Debug)]
struct Score {
    dispatcher: Dispatcher,
    hopes: Hopes,
    stop: RunStop,
    /// What a stop or the end of the time left unsent, until it is written down.
    not_sent: Vec<NotSent>,
}

impl Conductor {
    pub(crate) fn new(dispatcher: Dispatcher) -> Self {
        let score = Score {
            dispatcher,
            hopes: Hopes::default(),
            stop: RunStop::PlanDone,
            not_sent: Vec::new(),
        };
        Self { score: Mutex::new(score), is_cut: AtomicBool::new(false), gave_up: Notify::new() }
    }

    pub(crate) fn next(&self, lane: usize, now: Moment) -> Command {
        self.score().dispatcher.next(lane, now)
    }

    /// A request of this lane ended, with a sign of hopelessness or without.
    pub(crate) fn ended(
        &self,
        lane: usize,
        departure: &Departure,
        reply: Reply,
        sign: Option<Hopeless>,
    ) {
        let mut score = self.score();
        score.dispatcher.replied(lane, departure, reply);
        if let Some(why) = score.hopes.after(sign) {
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
        // Whoever stops a run that has sent all of its requests only waits less for the rest.
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

    /// Nothing in flight is nothing to wait for; output is a sign of life, and nothing else is:
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
