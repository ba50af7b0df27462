//! How far a run has come, for whoever watches. Written once per request, never per token.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct Progress {
    started: AtomicU64,
    ok: AtomicU64,
    failed: AtomicU64,
    output_events: AtomicU64,
}

/// One look at the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgressView {
    pub started: u64,
    pub ok: u64,
    pub failed: u64,
    pub output_events: u64,
}

impl ProgressView {
    pub fn ended(&self) -> u64 {
        self.ok + self.failed
    }

    pub fn in_flight(&self) -> u64 {
        self.started.saturating_sub(self.ended())
    }
}

impl Progress {
    pub(crate) fn start(&self) {
        self.started.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end(&self, ok: bool, output_events: u64) {
        let counter = if ok { &self.ok } else { &self.failed };
        counter.fetch_add(1, Ordering::Relaxed);
        self.output_events.fetch_add(output_events, Ordering::Relaxed);
    }

    pub fn view(&self) -> ProgressView {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ProgressView {
            started: read(&self.started),
            ok: read(&self.ok),
            failed: read(&self.failed),
            output_events: read(&self.output_events),
        }
    }
}
