//! Asks for the server's metrics again and again while a run goes on, and never disturbs it: a
//! thread and a runtime of its own, one request at a time, and a longer wait where answers are slow.

use std::future::Future;
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use inferometer_model::Clock;
use inferometer_model::fetch::{Fetch, FetchError, FetchReply, FetchRequest};
use inferometer_model::outcome::Outcome;
use inferometer_model::telemetry::{
    Absence, MissReason, MissedScrape, SkippedScrapes, TelemetryEntry, TelemetrySample,
};

use super::reading::{query_result, read};
use crate::machines::Grid;

/// What is asked for, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Polling {
    pub path: String,
    pub every: Duration,
    /// For a whole answer.
    pub time_limit: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum PollerError {
    #[error("cannot start the thread that reads the server's metrics: {0}")]
    Thread(io::Error),
    #[error("the thread that reads the server's metrics ended abnormally")]
    Panicked,
}

/// A thread that scrapes until it is stopped. `J` is where it writes things down, and `E` what can
/// go wrong with that.
#[derive(Debug)]
pub struct Poller<J, E> {
    /// Dropped to end it.
    stop: Sender<()>,
    thread: JoinHandle<Result<J, E>>,
}

/// An answer may have so many.
pub const BODY_BYTES_MAX: usize = 16 << 20;
const PATH_USUAL: &str = "/metrics";
/// TensorRT-LLM has statistics of another form at the usual one.
const PATH_OTHER: &str = "/prometheus/metrics";
/// Ticks that are written down one by one after a pause; those of a machine that slept are counted.
const SKIPPED_MAX: u64 = 1_000;

impl Polling {
    pub const TIME_LIMIT: Duration = Duration::from_secs(2);
}

impl<J: Send + 'static, E: Send + 'static> Poller<J, E> {
    /// Returns after the first scrape, so that a run which begins now lies between two of them.
    /// `fetch` is made in the thread, for it may not leave it; entries are written down there too.
    /// Where the first scrape finds nothing to ask for, or writing fails, there are no further scrapes.
    pub fn start<F: Fetch>(
        polling: Polling,
        clock: impl Clock + Send + 'static,
        fetch: impl FnOnce() -> F + Send + 'static,
        journal: J,
        append: fn(&mut J, &TelemetryEntry) -> Result<(), E>,
    ) -> Result<Self, PollerError> {
        let (stop, stopped) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(PollerError::Thread)?;
        let body = move || {
            let tasks = tokio::task::LocalSet::new();
            let fetch = fetch();
            let Polling { path, every, time_limit } = polling;
            let ask = move |path: &str| {
                let request = FetchRequest { path, body_limit: BODY_BYTES_MAX };
                tasks.block_on(&runtime, within(time_limit, fetch.fetch(request)))
            };
            Rounds { path, every, clock, ask, journal, append }.play(ready, &stopped)
        };
        let thread =
            Builder::new().name("metrics".to_owned()).spawn(body).map_err(PollerError::Thread)?;
        // Nothing is ever sent: the wait ends when the thread lets go of its end, after the first
        // scrape, which has a time-out.
        let _ = is_ready.recv();
        Ok(Self { stop, thread })
    }

    /// Scrapes once more, and gives the journal back, or the first error of writing.
    pub fn stop(self) -> Result<Result<J, E>, PollerError> {
        drop(self.stop);
        self.thread.join().map_err(|_panic| PollerError::Panicked)
    }
}

/// What one exchange brought.
type Answer = Result<FetchReply, MissReason>;

async fn within(
    limit: Duration,
    exchange: impl Future<Output = Result<FetchReply, FetchError>>,
) -> Answer {
    #[expect(
        clippy::disallowed_methods,
        reason = "nothing is measured here, and the module for time-outs is the client's own"
    )]
    let answered = tokio::time::timeout(limit, exchange).await;
    let Ok(answered) = answered else { return Err(MissReason::Timeout) };
    answered.map_err(|error| {
        if matches!(error.outcome, Outcome::TimeoutConnect | Outcome::TimeoutTotal) {
            MissReason::Timeout
        } else if error.outcome == Outcome::ProtocolError {
            MissReason::Protocol
        } else {
            MissReason::Transport
        }
    })
}

/// The thread's work.
struct Rounds<C, A, J, E> {
    path: String,
    every: Duration,
    clock: C,
    ask: A,
    journal: J,
    append: fn(&mut J, &TelemetryEntry) -> Result<(), E>,
}

impl<C: Clock, A: FnMut(&str) -> Answer, J, E> Rounds<C, A, J, E> {
    fn play(mut self, ready: Sender<()>, stopped: &Receiver<()>) -> Result<J, E> {
        let (first, mut took) = self.first_scrape();
        let absence = absence(&first);
        self.write(&absence.map_or(first, TelemetryEntry::Absent))?;
        if absence.is_some() {
            return Ok(self.journal);
        }
        let grid = Grid { begin: self.clock.now(), every: self.every };
        drop(ready);
        let mut tick = 0;
        loop {
            let next = grid.next(tick, self.clock.now(), took);
            for entry in skipped(grid, tick, next) {
                self.write(&entry)?;
            }
            tick = next;
            let wait = grid.moment(tick).since(self.clock.now()).unwrap_or_default();
            let is_over = stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
            let (entry, exchange) = self.scrape();
            took = exchange;
            self.write(&entry)?;
            if is_over {
                return Ok(self.journal);
            }
        }
    }

    fn write(&mut self, entry: &TelemetryEntry) -> Result<(), E> {
        (self.append)(&mut self.journal, entry)
    }

    /// Where the usual place has nothing, the other one is tried; what is found there is asked on.
    fn first_scrape(&mut self) -> (TelemetryEntry, Duration) {
        let first = self.scrape();
        let TelemetryEntry::Missed(MissedScrape { reason, .. }) = first.0 else { return first };
        let Some(other) = other_path(&self.path, reason) else { return first };
        other.clone_into(&mut self.path);
        let second = self.scrape();
        if matches!(second.0, TelemetryEntry::Sample(_)) { second } else { first }
    }

    fn scrape(&mut self) -> (TelemetryEntry, Duration) {
        let asked = self.clock.now();
        let answer = (self.ask)(&self.path);
        let took = self.clock.now().since(asked).unwrap_or_default();
        let at = asked + took / 2;
        let entry = match answer.and_then(|reply| read_reply(&reply)) {
            Ok(sample) => TelemetryEntry::Sample(TelemetrySample { at, took, ..sample }),
            Err(reason) => TelemetryEntry::Missed(MissedScrape { at, reason }),
        };
        (entry, took)
    }
}

/// The readings of a whole answer.
pub fn read_reply(reply: &FetchReply) -> Result<TelemetrySample, MissReason> {
    match reply.status {
        // Metrics are text, and the query API of Prometheus answers with JSON.
        200..=299 if reply.body.trim_ascii_start().starts_with(b"{\"") => {
            read(query_result(&reply.body)?.as_bytes())
        }
        200..=299 => read(&reply.body),
        status => Err(MissReason::Status(status)),
    }
}

/// Where to ask next, if there is something else, or nothing, where metrics usually are.
pub fn other_path(asked: &str, missed: MissReason) -> Option<&'static str> {
    let is_elsewhere = matches!(missed, MissReason::Status(404 | 405) | MissReason::NotPrometheus);
    (asked == PATH_USUAL && is_elsewhere).then_some(PATH_OTHER)
}

/// Whether the first scrape shows that there is nothing to ask for. A server that is slow or out of
/// order for a moment is asked again.
fn absence(first: &TelemetryEntry) -> Option<Absence> {
    let TelemetryEntry::Missed(MissedScrape { reason, .. }) = first else { return None };
    let for_good = match reason {
        MissReason::Timeout | MissReason::Transport | MissReason::BackedOff => false,
        MissReason::Status(status) => *status < 500,
        MissReason::Protocol
        | MissReason::TooLarge
        | MissReason::NotPrometheus
        | MissReason::NoKnownName => true,
    };
    for_good.then_some(Absence::Refused(*reason))
}

/// The ticks between the two: one by one up to a bound, and the rest as a number.
fn skipped(grid: Grid, last: u64, next: u64) -> impl Iterator<Item = TelemetryEntry> {
    let rest = (last + 1).saturating_add(SKIPPED_MAX).min(next);
    let single = (last + 1..rest).map(move |tick| {
        let (at, reason) = (grid.moment(tick), MissReason::BackedOff);
        TelemetryEntry::Missed(MissedScrape { at, reason })
    });
    let (from, number) = (grid.moment(rest), next - rest);
    let many = (0 < number).then_some(TelemetryEntry::Skipped(SkippedScrapes { from, number }));
    single.chain(many)
}

#[cfg(test)]
mod tests;
