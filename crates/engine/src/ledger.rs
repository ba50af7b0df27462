//! Where the truth is kept while the engine runs, within bounds.

use crate::lateness::Lateness;
use crate::options::{Limits, Mode};
use crate::truth::{Ended, RequestTruth, Truth, WriteTruth};

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

    /// Notes a write, or counts it as dropped.
    pub(crate) fn wrote(&mut self, entry: Entry, write: WriteTruth) {
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
    pub(crate) fn late(&mut self, entry: Entry, late_ns: u64, held_up: bool) {
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
        if entry.chapter != self.chapter {
            return;
        }
        if let Some(request) = entry.place.and_then(|place| self.truth.requests.get_mut(place)) {
            request.ended = ended;
        }
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
