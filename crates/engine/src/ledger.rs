//! Where the truth is kept while the engine runs, within bounds.

use crate::clock::Moment;
use crate::lateness::Lateness;
use crate::options::{Limits, Mode};
use crate::service::Written;
use crate::truth::{Ended, RequestTruth, StepsTruth, Truth, WriteTruth};

/// The truth so far.
#[derive(Debug)]
pub(crate) struct Ledger {
    truth: Truth,
    lateness: Lateness,
    requests_max: usize,
    writes_free: usize,
    writes_max: usize,
    /// Counts the clearings, so that answers begun before one do not write into what came after.
    chapter: u64,
}

/// Where a request stands in the ledger. It may stand in none, or in a chapter that was cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    chapter: u64,
    place: Option<usize>,
}

/// What became readable with a number of written bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) events: u32,
    pub(crate) tokens: u32,
    /// These were the first bytes of their write.
    pub(crate) is_start: bool,
}

impl Ledger {
    pub(crate) fn new(mode: Mode, limits: &Limits) -> Self {
        let lateness = Lateness::new();
        let truth = Truth {
            clock: "CLOCK_MONOTONIC".to_owned(),
            mode,
            requests: Vec::new(),
            requests_dropped: 0,
            writes_dropped: 0,
            connections_refused: 0,
            lateness: lateness.summary(),
            steps: None,
        };
        Self {
            truth,
            lateness,
            requests_max: limits.requests_kept,
            writes_free: limits.writes_kept,
            writes_max: limits.writes_kept,
            chapter: 0,
        }
    }

    /// Opens an entry, or counts the request as dropped.
    pub(crate) fn open(&mut self, request: RequestTruth) -> Entry {
        let place = self.truth.requests.len();
        if self.requests_max <= place {
            self.truth.requests_dropped += 1;
            return self.unkept();
        }
        self.truth.requests.push(request);
        Entry { chapter: self.chapter, place: Some(place) }
    }

    /// The entry of a request that is not kept.
    pub(crate) fn unkept(&self) -> Entry {
        Entry { chapter: self.chapter, place: None }
    }

    /// Notes a write that was due at `due` and what a reader has of it.
    pub(crate) fn written(
        &mut self,
        entry: Entry,
        due: Option<Moment>,
        written: &Written,
        passed: Passed,
    ) {
        let due_ns = due.map(Moment::ns);
        let (before_ns, after_ns) = (written.before.ns(), written.after.ns());
        if let Some(due_ns) = due_ns.filter(|_| passed.is_start) {
            let held_up = written.room_since.is_some_and(|room| due_ns < room.ns());
            self.late(entry, before_ns.saturating_sub(due_ns), held_up);
        }
        let write = WriteTruth {
            due_ns,
            before_ns,
            after_ns,
            bytes: u32::try_from(written.bytes).unwrap_or(u32::MAX),
            events: passed.events,
            tokens: passed.tokens,
        };
        self.wrote(entry, write);
    }

    /// Notes a write, or counts it as dropped.
    fn wrote(&mut self, entry: Entry, write: WriteTruth) {
        if entry.chapter != self.chapter {
            return;
        }
        let request = entry.place.and_then(|place| self.truth.requests.get_mut(place));
        match request.filter(|_| 0 < self.writes_free) {
            Some(request) => {
                request.writes.push(write);
                self.writes_free -= 1;
            }
            None => self.truth.writes_dropped += 1,
        }
    }

    /// Notes how late a write was made; `held_up` if the client was the reason.
    fn late(&mut self, entry: Entry, late_ns: u64, held_up: bool) {
        if entry.chapter != self.chapter {
            return;
        }
        if held_up {
            self.lateness.add_held_up();
        } else {
            self.lateness.add(late_ns);
        }
    }

    pub(crate) fn close(&mut self, entry: Entry, ended: Ended) {
        if let Some(request) = self.kept(entry) {
            request.ended = ended;
        }
    }

    /// Notes how long an answer became, where that was not known before.
    pub(crate) fn set_tokens(&mut self, entry: Entry, tokens: u32) {
        if let Some(request) = self.kept(entry) {
            request.tokens = tokens;
        }
    }

    /// Notes how late steps were, in a mode that has them.
    pub(crate) fn set_steps(&mut self, steps: &Lateness) {
        self.truth.steps = Some(StepsTruth::of(steps));
    }

    fn kept(&mut self, entry: Entry) -> Option<&mut RequestTruth> {
        let place = entry.place.filter(|_| entry.chapter == self.chapter)?;
        self.truth.requests.get_mut(place)
    }

    pub(crate) fn refused_connection(&mut self) {
        self.truth.connections_refused += 1;
    }

    /// Forgets everything, also what answers still running will do from now on.
    pub(crate) fn clear(&mut self) {
        self.chapter += 1;
        self.truth.requests = Vec::new();
        self.truth.requests_dropped = 0;
        self.truth.writes_dropped = 0;
        self.truth.connections_refused = 0;
        self.writes_free = self.writes_max;
        self.lateness = Lateness::new();
    }

    /// The truth so far, by reference: a copy could be hundreds of megabytes.
    pub(crate) fn truth(&mut self) -> &Truth {
        self.truth.lateness = self.lateness.summary();
        &self.truth
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::Api;

    fn request(ordinal: u64) -> RequestTruth {
        RequestTruth {
            ordinal,
            request_id: None,
            api: Api::Chat,
            streamed: true,
            received_kernel_ns: None,
            received_mapping_error_ns: None,
            received_user_ns: 1,
            prompt_tokens: 1,
            tokens: 1,
            writes: Vec::new(),
            ended: Ended::Running,
        }
    }

    const WRITE: WriteTruth =
        WriteTruth { due_ns: None, before_ns: 1, after_ns: 2, bytes: 3, events: 1, tokens: 1 };

    fn small() -> Ledger {
        let limits = Limits { requests_kept: 1, writes_kept: 2, ..Limits::default() };
        Ledger::new(Mode::Paced, &limits)
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let mut ledger = small();
        let kept = ledger.open(request(0));
        let dropped = ledger.open(request(1));
        ledger.wrote(dropped, WRITE);
        (0..3).for_each(|_| ledger.wrote(kept, WRITE));
        ledger.close(kept, Ended::Complete);
        ledger.close(dropped, Ended::Complete);
        let truth = ledger.truth();
        assert_eq!((truth.requests.len(), truth.requests_dropped), (1, 1));
        assert_eq!((truth.requests[0].writes.len(), truth.writes_dropped), (2, 2));
        assert_eq!(truth.requests[0].ended, Ended::Complete);
    }

    #[test]
    fn an_answer_from_before_a_clearing_leaves_no_trace_after_it() {
        let mut ledger = small();
        let old = ledger.open(request(0));
        ledger.clear();
        let new = ledger.open(request(1));
        ledger.wrote(old, WRITE);
        ledger.late(old, 5, false);
        ledger.close(old, Ended::Aborted);
        ledger.wrote(new, WRITE);
        let truth = ledger.truth();
        assert_eq!(truth.requests[0].ordinal, 1);
        assert_eq!((truth.requests[0].writes.len(), truth.requests[0].ended), (1, Ended::Running));
        assert_eq!((truth.lateness.count, truth.writes_dropped), (0, 0));
    }
}
