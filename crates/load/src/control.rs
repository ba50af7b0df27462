//! How the user stops a run, and how its progress is read.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use inferometer_model::Outcome;
use inferometer_model::journal::RunStop;
use tokio::sync::watch;

/// How the run is to go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    #[default]
    Run,
    /// Release nothing more, because this machine has no memory left for more.
    RunOut,
    /// Release nothing more; let what is in flight finish, within the drain limit.
    Drain,
    /// End everything now.
    Cut,
}

#[derive(Clone, Debug)]
pub struct Control(watch::Sender<Stop>);

impl Default for Control {
    fn default() -> Self {
        Self(watch::Sender::new(Stop::Run))
    }
}

impl Control {
    /// The first call drains, the second cuts. Returns the state before.
    pub fn stop_harder(&self) -> Stop {
        let mut before = Stop::Run;
        self.0.send_modify(|stop| {
            before = *stop;
            *stop = if *stop == Stop::Run { Stop::Drain } else { Stop::Cut };
        });
        before
    }

    /// Ends a run for which this machine has no memory left. Returns whether it was not ending yet.
    pub fn run_out(&self) -> bool {
        self.0.send_if_modified(|stop| {
            let is_running = *stop == Stop::Run;
            if is_running {
                *stop = Stop::RunOut;
            }
            is_running
        })
    }

    /// What has been asked for so far, for those who look at times instead of waiting.
    pub fn asked(&self) -> Stop {
        *self.0.borrow()
    }

    /// A receiver that has not seen earlier values.
    pub(crate) fn listen(&self) -> watch::Receiver<Stop> {
        let mut receiver = self.0.subscribe();
        receiver.mark_changed();
        receiver
    }
}

#[derive(Debug, Default)]
pub struct Progress {
    started: AtomicU64,
    ok: AtomicU64,
    failed: AtomicU64,
    abandoned: AtomicU64,
    output_events: AtomicU64,
    /// Why whoever watches the run wants it to end.
    aborted: OnceLock<RunStop>,
}

/// One look at the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgressView {
    pub started: u64,
    pub ok: u64,
    pub failed: u64,
    /// Those that the client ended itself, as `--cancel` asks.
    pub abandoned: u64,
    pub output_events: u64,
}

impl ProgressView {
    pub fn ended(&self) -> u64 {
        self.ok + self.failed + self.abandoned
    }

    pub fn in_flight(&self) -> u64 {
        self.started.saturating_sub(self.ended())
    }
}

impl Progress {
    pub(crate) fn start(&self) {
        self.started.fetch_add(1, Ordering::Relaxed);
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "all others are failures")]
    pub(crate) fn end(&self, outcome: Outcome, output_events: u64) {
        let counter = match outcome {
            Outcome::Ok => &self.ok,
            Outcome::Abandoned => &self.abandoned,
            _ => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.output_events.fetch_add(output_events, Ordering::Relaxed);
    }

    /// Ends this run, and no other: nothing more is released, and what is in flight may finish within the
    /// drain limit. Returns whether it was not ending so yet.
    pub fn abort(&self, why: RunStop) -> bool {
        self.aborted.set(why).is_ok()
    }

    pub(crate) fn aborted(&self) -> Option<RunStop> {
        self.aborted.get().copied()
    }

    pub fn view(&self) -> ProgressView {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ProgressView {
            started: read(&self.started),
            ok: read(&self.ok),
            failed: read(&self.failed),
            abandoned: read(&self.abandoned),
            output_events: read(&self.output_events),
        }
    }
}

/// Endings in a row that have the same reason to abort the run, over all drivers. A closed loop
/// against a dead server would fail as fast as it can, for as long as it may.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FailureStreak {
    last: Option<RunStop>,
    in_a_row: u32,
}

impl FailureStreak {
    pub(crate) fn after(&mut self, reason: Option<RunStop>) -> Option<RunStop> {
        self.in_a_row = if reason.is_some() && reason == self.last { self.in_a_row + 1 } else { 1 };
        self.last = reason;
        let limit = if reason == Some(RunStop::Unauthorized) { 3 } else { 100 };
        reason.filter(|_| self.in_a_row == limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Faults: 25, 112.
    #[test]
    fn only_a_row_without_a_gap_ends_hope() {
        let mut failures = FailureStreak::default();
        let refused = Some(RunStop::Unauthorized);
        assert_eq!(failures.after(refused), None);
        assert_eq!(failures.after(refused), None);
        assert_eq!(failures.after(None), None, "one answer, and we hope again");
        assert_eq!(failures.after(refused), None);
        assert_eq!(failures.after(refused), None);
        assert_eq!(failures.after(refused), Some(RunStop::Unauthorized));
        assert_eq!(failures.after(refused), None, "reported once");
    }
}
