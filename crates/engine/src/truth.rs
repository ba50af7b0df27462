//! What the engine knows and a client must find out: the body of `GET /truth`.
//!
//! All moments are nanoseconds of the machine's `CLOCK_MONOTONIC`.

use serde::{Deserialize, Serialize};

use crate::clock::Moment;
use crate::http::Request;
use crate::media::{self, MediaTruth};
use crate::options::{Limits, Mode};
use crate::server::Written;
use crate::socket::Received;

/// Everything that is known of the requests since the start or the last `DELETE /truth`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// The clock of every moment in here: `CLOCK_MONOTONIC`.
    pub clock: String,
    pub mode: Mode,
    pub requests: Vec<RequestTruth>,
    /// Requests that were answered but are not in `requests`, because it was full.
    pub requests_dropped: u64,
    /// Writes that were made but are in no request, because too many were kept already.
    pub writes_dropped: u64,
    /// Connections closed at once because too many were open.
    pub connections_refused: u64,
    pub lateness: LatenessTruth,
    /// Lateness of the steps, in a mode that works in steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<StepsTruth>,
}

/// How late steps were: from the time at which one was to end to that at which the engine knew.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepsTruth {
    pub count: u64,
    /// More than a millisecond late.
    pub late_count: u64,
    /// More than five milliseconds late.
    pub very_late_count: u64,
    pub mean_ns: Option<f64>,
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub max_ns: Option<u64>,
}

/// One generation request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestTruth {
    /// Its number among all generation requests of this process, from 0.
    pub ordinal: u64,
    /// The client's `x-request-id`.
    pub request_id: Option<String>,
    /// The client's `x-session-id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    pub api: Api,
    pub streamed: bool,
    /// When the last byte of the request reached this machine, where the kernel reported it.
    ///
    /// The schedule starts here, or at `received_user_ns` where this is absent.
    pub received_kernel_ns: Option<u64>,
    /// How far `received_kernel_ns` may be off, because the kernel stamps by another clock.
    pub received_mapping_error_ns: Option<u64>,
    /// When the engine had read the request.
    pub received_user_ns: u64,
    /// The case that was played, in the mode `corpus`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    pub prompt_tokens: u32,
    /// Pictures and recordings of the messages of a chat.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<MediaTruth>,
    /// Tokens of the whole answer, sent or not.
    pub tokens: u32,
    /// Whether the answer is right, where it can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<bool>,
    /// Every `write()` of the answer, in order.
    pub writes: Vec<WriteTruth>,
    pub ended: Ended,
}

impl RequestTruth {
    /// A request that has just been received, of which no more is known.
    pub(crate) fn new(ordinal: u64, api: Api, request: &Request<'_>, received: &Received) -> Self {
        Self {
            ordinal,
            request_id: request.id_text(),
            session_id: request.session_text(),
            api,
            streamed: false,
            received_kernel_ns: received.kernel.map(|stamp| stamp.at.ns()),
            received_mapping_error_ns: received.kernel.map(|stamp| stamp.error_ns),
            received_user_ns: received.user.ns(),
            case: None,
            prompt_tokens: 0,
            media: media::in_body(request.body),
            tokens: 0,
            right: None,
            writes: Vec::new(),
            ended: Ended::Running,
        }
    }
}

/// Which API a request came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    Chat,
    Completions,
    Responses,
    Messages,
    Embeddings,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// All bytes of the answer were taken by the socket.
    Complete,
    /// The client left first.
    Aborted,
    /// It has not ended.
    Running,
}

/// One `write()` that took at least one byte.
///
/// A write that the socket took in parts is several of these, with the same `due_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteTruth {
    /// When it was to be made; absent when it only had to follow the one before it.
    pub due_ns: Option<u64>,
    /// Immediately ahead of the system call.
    pub before_ns: u64,
    /// Immediately after it returned.
    pub after_ns: u64,
    pub bytes: u32,
    /// SSE data events that are readable once these bytes are there: those whose last significant
    /// byte, the first of the line end that ends the blank line, is among them.
    pub events: u32,
    /// Tokens of those events; of an answer that is not streamed, all tokens with its last byte.
    pub tokens: u32,
}

/// How late the engine itself was: from due moment to `before_ns`, over all writes that had one.
///
/// Writes that were held up by a client that did not read are not its own lateness; they are
/// counted apart. Percentiles come from a histogram and are at most 2% too high.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatenessTruth {
    pub count: u64,
    pub held_up_by_client: u64,
    pub mean_ns: Option<f64>,
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub max_ns: Option<u64>,
}

/// The truth so far.
#[derive(Debug)]
pub(crate) struct Ledger {
    truth: Truth,
    lateness: Lateness,
    limits: Limits,
    writes_free: usize,
    /// Counts the clearings, so that answers begun before one do not write into what came after.
    chapter: u64,
}

/// The place of a request in the ledger. It may be in none, or in a chapter that was cleared.
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
        Self { truth, lateness, limits: *limits, writes_free: limits.writes_kept, chapter: 0 }
    }

    /// Opens an entry, or counts the request as dropped.
    pub(crate) fn open(&mut self, request: RequestTruth) -> Entry {
        let place = self.truth.requests.len();
        if self.limits.requests_kept <= place {
            self.truth.requests_dropped += 1;
            return Entry { chapter: self.chapter, place: None };
        }
        self.truth.requests.push(request);
        Entry { chapter: self.chapter, place: Some(place) }
    }

    /// Notes a write that was due at `due` and what a reader has of it.
    pub(crate) fn written(
        &mut self,
        entry: Entry,
        due: Option<Moment>,
        written: &Written,
        passed: Passed,
    ) {
        if entry.chapter != self.chapter {
            return;
        }
        let due_ns = due.map(Moment::ns);
        let (before_ns, after_ns) = (written.before.ns(), written.after.ns());
        if let Some(due_ns) = due_ns.filter(|_| passed.is_start) {
            // The client had not read the writes before this one.
            if written.room_since.is_some_and(|room| due_ns < room.ns()) {
                self.lateness.held_up += 1;
            } else {
                self.lateness.add(before_ns.saturating_sub(due_ns));
            }
        }
        let request = entry.place.and_then(|place| self.truth.requests.get_mut(place));
        let Some(request) = request.filter(|_| 0 < self.writes_free) else {
            self.truth.writes_dropped += 1;
            return;
        };
        self.writes_free -= 1;
        request.writes.push(WriteTruth {
            due_ns,
            before_ns,
            after_ns,
            bytes: u32::try_from(written.bytes).unwrap_or(u32::MAX),
            events: passed.events,
            tokens: passed.tokens,
        });
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
        let LatenessTruth { count, mean_ns, p50_ns, p99_ns, max_ns, .. } = steps.summary();
        let (late_count, very_late_count) = (steps.over_1ms, steps.over_5ms);
        self.truth.steps = Some(StepsTruth {
            count,
            late_count,
            very_late_count,
            mean_ns,
            p50_ns,
            p99_ns,
            max_ns,
        });
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
        let chapter = self.chapter + 1;
        *self = Self { chapter, ..Self::new(self.truth.mode, &self.limits) };
    }

    /// The truth so far, by reference: a copy could be hundreds of megabytes.
    pub(crate) fn truth(&mut self) -> &Truth {
        self.truth.lateness = self.lateness.summary();
        &self.truth
    }
}

/// How late writes were.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lateness {
    buckets: Vec<u64>,
    count: u64,
    /// Writes that were late because the client had not read what came before them.
    held_up: u64,
    sum_ns: u128,
    max_ns: u64,
    pub(crate) over_1ms: u64,
    pub(crate) over_5ms: u64,
}

impl Lateness {
    pub(crate) fn new() -> Self {
        Self { buckets: vec![0; BUCKETS], ..Self::default() }
    }

    pub(crate) fn add(&mut self, late_ns: u64) {
        self.buckets[bucket_of(late_ns)] += 1;
        self.count += 1;
        self.over_1ms += u64::from(MS < late_ns);
        self.over_5ms += u64::from(5 * MS < late_ns);
        self.sum_ns += u128::from(late_ns);
        self.max_ns = self.max_ns.max(late_ns);
    }

    pub(crate) fn summary(&self) -> LatenessTruth {
        let some = 0 < self.count;
        LatenessTruth {
            count: self.count,
            held_up_by_client: self.held_up,
            mean_ns: some.then(|| self.sum_ns as f64 / self.count as f64),
            p50_ns: self.quantile(50),
            p99_ns: self.quantile(99),
            max_ns: some.then_some(self.max_ns),
        }
    }

    /// The upper edge of the bucket that holds the sample of rank `percent`, or `None` of none.
    fn quantile(&self, percent: u64) -> Option<u64> {
        let rank = (self.count * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|count| {
            seen += count;
            rank <= seen
        })?;
        Some(upper_edge(bucket).min(self.max_ns))
    }
}

fn bucket_of(ns: u64) -> usize {
    // Octave 0 holds the values below 64, each its own bucket.
    let octave = (ns | (PER_OCTAVE - 1)).ilog2() + 1 - PER_OCTAVE.ilog2();
    let within = (ns >> octave.saturating_sub(1)) & (PER_OCTAVE - 1);
    usize::try_from(u64::from(octave) * PER_OCTAVE + within).unwrap_or(BUCKETS - 1)
}

fn upper_edge(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let octave = bucket / PER_OCTAVE;
    let within = bucket % PER_OCTAVE;
    match octave.checked_sub(1) {
        None => within,
        Some(shift) => ((PER_OCTAVE + within) << shift) + ((1 << shift) - 1),
    }
}

const MS: u64 = 1_000_000;

const PER_OCTAVE: u64 = 64;

/// One set for the values below 64, one for each of the 58 powers of two above.
const BUCKETS: usize = 64 * 59;

#[cfg(test)]
mod truth_tests {
    use super::*;
    use crate::truth::Api;

    fn request(ordinal: u64) -> RequestTruth {
        RequestTruth {
            ordinal,
            request_id: None,
            session_id: None,
            api: Api::Chat,
            streamed: true,
            received_kernel_ns: None,
            received_mapping_error_ns: None,
            received_user_ns: 1,
            case: None,
            prompt_tokens: 1,
            media: Vec::new(),
            tokens: 1,
            right: None,
            writes: Vec::new(),
            ended: Ended::Running,
        }
    }

    /// A write that was due at once.
    fn write(ledger: &mut Ledger, entry: Entry) {
        let (before, after) = (Moment::from_ns(1), Moment::from_ns(2));
        let written = Written { bytes: 3, before, after, room_since: None };
        let passed = Passed { events: 1, tokens: 1, is_start: true };
        ledger.written(entry, Some(Moment::from_ns(1)), &written, passed);
    }

    fn small() -> Ledger {
        let limits = Limits { requests_kept: 1, writes_kept: 2, ..Limits::default() };
        Ledger::new(Mode::Paced, &limits)
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let mut ledger = small();
        let kept = ledger.open(request(0));
        let dropped = ledger.open(request(1));
        write(&mut ledger, dropped);
        (0..3).for_each(|_| write(&mut ledger, kept));
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
        write(&mut ledger, old);
        ledger.close(old, Ended::Aborted);
        assert_eq!((ledger.truth().lateness.count, ledger.truth().writes_dropped), (0, 0));
        write(&mut ledger, new);
        let truth = ledger.truth();
        assert_eq!(truth.requests[0].ordinal, 1);
        assert_eq!((truth.requests[0].writes.len(), truth.requests[0].ended), (1, Ended::Running));
        assert_eq!((truth.lateness.count, truth.writes_dropped), (1, 0));
    }
}

#[cfg(test)]
mod lateness_tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket() {
        for shift in 0..64 {
            for ns in [(1_u64 << shift) - 1, 1 << shift, (1 << shift) + (1 << shift) / 3] {
                let bucket = bucket_of(ns);
                let edge = upper_edge(bucket);
                assert!(ns <= edge && edge - ns <= ns / 64, "{ns} in {bucket} up to {edge}");
                assert!(bucket == 0 || upper_edge(bucket - 1) < ns, "{ns} in {bucket}");
            }
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn nothing_is_not_zero() {
        let summary = Lateness::new().summary();
        assert_eq!((summary.count, summary.mean_ns, summary.p99_ns), (0, None, None));
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let mut lateness = Lateness::new();
        (1..=100).for_each(|ns| lateness.add(ns));
        let summary = lateness.summary();
        assert_eq!((summary.p50_ns, summary.max_ns), (Some(50), Some(100)));
        assert_eq!((summary.p99_ns, summary.mean_ns), (Some(99), Some(50.5)));
    }
}
