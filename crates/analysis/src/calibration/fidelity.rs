//! What the client reported against what the engine did, answer by answer.

use std::collections::HashMap;

use inferometer_model::{Moment, Outcome, RequestId, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::arrivals::Output;
use crate::client::share;
use crate::concurrency::{Concurrency, Flight};
use crate::request_metrics::Widths;
use crate::ruler::Ruler;
use crate::sample::{Percentile, Sample};

/// What the engine knows of one answer, on the clock of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrueAnswer {
    pub id: RequestId,
    /// When the request reached the engine's machine.
    pub received: Moment,
    /// The moment of the write that completed each event, in their order.
    pub events: Vec<Moment>,
}

/// What was to be measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FidelityAsk {
    pub streams: u32,
    /// Between two tokens of a stream.
    pub gap_ms: f64,
    /// Tokens of every stream.
    pub tokens: u32,
    pub kernel_stamps: bool,
}

/// What the engine says of itself.
#[derive(Clone, Copy, Debug)]
pub struct EngineTruth<'a> {
    pub answers: &'a [TrueAnswer],
    /// How late it made its writes.
    pub late_ms_p99: Option<f64>,
}

/// Streams in flight, and how far what was reported of them is off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FidelityRow {
    pub streams: u32,
    /// Between two tokens of a stream, as the engine was told.
    pub gap_ms: f64,
    pub kernel_stamps: bool,
    /// Tokens of every stream.
    pub tokens: u32,
    /// The most that the engine had in flight at once.
    pub in_flight: Option<u64>,
    /// Answers that were compared: each slot's first is left out, since connections open then.
    pub requests: u64,
    /// Answers that were not, because they failed or their events did not match.
    pub requests_unmatched: u64,
    /// Gaps between tokens that were compared.
    pub gaps: u64,
    /// Gaps that the client could not see, because the stream's first tokens came together.
    pub gaps_unseen: u64,
    /// `None` when there was nothing to compare.
    pub error: Option<FidelityError>,
    /// The widest that an arrival of several events admits to be; zero when none was coalesced.
    pub width_ms_max: Option<f64>,
    /// How late the engine itself was. The comparison is with what it did, but an engine that is
    /// late by more than a gap writes its tokens in heaps, and heaps are easy to report.
    pub engine_late_ms_p99: Option<f64>,
}

/// Reported less true.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FidelityError {
    pub ttft_ms: AbsoluteError,
    pub itl_ms: AbsoluteError,
}

/// Percentiles of the error's size, whichever its sign.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AbsoluteError {
    pub p50: f64,
    pub p99: f64,
}

impl FidelityRow {
    /// `records` and the truth are all of a closed loop with as many slots as streams were asked.
    pub fn of(asked: FidelityAsk, records: &[RequestRecord], truth: EngineTruth<'_>) -> Self {
        let by_id: HashMap<RequestId, &TrueAnswer> =
            truth.answers.iter().map(|truth| (truth.id, truth)).collect();
        let mut comparison = Comparison::default();
        // Where several threads drive, one may be past its first before another has begun.
        let is_first = |record: &RequestRecord| {
            let opened = record.connection.is_some_and(|connection| !connection.reused);
            opened || record.id.0 < u64::from(asked.streams)
        };
        for record in records.iter().filter(|record| !is_first(record)) {
            let truth = by_id.get(&record.id);
            match truth.and_then(|truth| Answer::of(record, truth)) {
                Some(answer) => comparison.add(record, &answer),
                None => comparison.requests_unmatched += 1,
            }
        }
        let flights: Vec<Flight> = truth.answers.iter().filter_map(flight).collect();
        Self {
            streams: asked.streams,
            gap_ms: asked.gap_ms,
            kernel_stamps: asked.kernel_stamps,
            tokens: asked.tokens,
            in_flight: Concurrency::sweep(&flights).map(|swept| swept.peak),
            requests: comparison.requests,
            requests_unmatched: comparison.requests_unmatched,
            gaps: comparison.itl_errors_ms.len() as u64,
            gaps_unseen: comparison.gaps_unseen,
            engine_late_ms_p99: truth.late_ms_p99,
            width_ms_max: (0 < comparison.requests).then_some(comparison.width_ms_max),
            error: comparison.error(),
        }
    }
}

impl FidelityRow {
    /// Whether the row shows what the client can do with so many streams: the engine kept its pace,
    /// and hardly a gap went unseen. Otherwise its errors are of what little could be compared.
    pub fn is_sound(&self) -> bool {
        const UNSEEN_SHARE_MAX: f64 = 0.01;
        let unseen = share(self.gaps_unseen, self.gaps + self.gaps_unseen);
        self.engine_late_ms_p99.is_none_or(|late| late <= self.gap_ms)
            && unseen.is_some_and(|unseen| unseen <= UNSEEN_SHARE_MAX)
    }
}

pub(super) fn flight(truth: &TrueAnswer) -> Option<Flight> {
    let (from_ns, to_ns) = (truth.received.as_nanos(), truth.events.last()?.as_nanos());
    (from_ns <= to_ns).then_some(Flight { from_ns, to_ns })
}

/// One output event twice.
#[derive(Clone, Copy, Debug)]
struct Token {
    reported: Moment,
    truth: Moment,
}

/// An answer whose events could be laid beside the engine's.
#[derive(Debug)]
struct Answer {
    sent: Moment,
    received: Moment,
    first: Token,
    tokens: Vec<Token>,
}

impl Answer {
    fn of(record: &RequestRecord, truth: &TrueAnswer) -> Option<Self> {
        let matched =
            record.ending.outcome == Outcome::Ok && record.events.len() == truth.events.len();
        let sent = record.sent.filter(|_| matched)?;
        let tokens: Option<Vec<Token>> = record
            .events
            .iter()
            .zip(&truth.events)
            .filter(|(event, _)| event.is_output())
            .map(|(event, truth)| {
                let read = record.reads.get(event.read as usize)?;
                Some(Token { reported: read.at(), truth: *truth })
            })
            .collect();
        let tokens = tokens?;
        let first = *tokens.first()?;
        Some(Self { sent, received: truth.received, first, tokens })
    }

    fn ttft_error_ms(&self) -> f64 {
        let reported = self.first.reported.nanos_after(self.sent);
        let truth = self.first.truth.nanos_after(self.received);
        (reported - truth) as f64 / 1e6
    }

    /// As the metric does: the events of one arrival share the time since the arrival before.
    /// Several events in the first arrival have no gap that would be reported.
    fn itl_errors_ms(&self) -> Vec<f64> {
        let arrivals: Vec<&[Token]> =
            self.tokens.chunk_by(|left, right| left.reported == right.reported).collect();
        let mut errors = Vec::with_capacity(self.tokens.len());
        let mut last_write = self.first.truth;
        for (index, arrival) in arrivals.iter().enumerate() {
            let before = index.checked_sub(1).map(|before| arrivals[before][0].reported);
            for token in *arrival {
                if let Some(before) = before {
                    let shared = token.reported.nanos_after(before) as f64 / arrival.len() as f64;
                    errors.push((shared - token.truth.nanos_after(last_write) as f64) / 1e6);
                }
                last_write = token.truth;
            }
        }
        errors
    }
}

#[derive(Debug, Default)]
struct Comparison {
    requests: u64,
    requests_unmatched: u64,
    ttft_errors_ms: Vec<f64>,
    itl_errors_ms: Vec<f64>,
    gaps_unseen: u64,
    width_ms_max: f64,
}

impl Comparison {
    fn add(&mut self, record: &RequestRecord, answer: &Answer) {
        self.requests += 1;
        self.ttft_errors_ms.push(answer.ttft_error_ms());
        let itl_errors_ms = answer.itl_errors_ms();
        self.gaps_unseen += (answer.tokens.len() - 1).saturating_sub(itl_errors_ms.len()) as u64;
        self.itl_errors_ms.extend(itl_errors_ms);
        self.width_ms_max = self.width_ms_max.max(width_ms_max(record));
    }

    fn error(self) -> Option<FidelityError> {
        let ttft_ms = AbsoluteError::of(self.ttft_errors_ms)?;
        let itl_ms = AbsoluteError::of(self.itl_errors_ms)?;
        Some(FidelityError { ttft_ms, itl_ms })
    }
}

impl AbsoluteError {
    fn of(errors: Vec<f64>) -> Option<Self> {
        let sizes = Sample::new(errors.into_iter().map(f64::abs).collect())?;
        Some(Self {
            p50: sizes.percentile(Percentile::P50),
            p99: sizes.percentile(Percentile::P99),
        })
    }
}

/// How far back the record itself admits that its bytes may lie.
fn width_ms_max(record: &RequestRecord) -> f64 {
    let mut ruler = Ruler::new(0);
    let mut output = Output::default();
    output.read(record, &mut ruler);
    let mut widths = Widths::default();
    widths.add_ok(record, &output, &mut ruler);
    widths.largest_ms()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Given, ms};

    fn truth(id: u64, received: u64, events: &[u64]) -> TrueAnswer {
        let events = events.iter().map(|at| ms(*at)).collect();
        TrueAnswer { id: RequestId(id), received: ms(received), events }
    }

    const ASKED: FidelityAsk =
        FidelityAsk { streams: 1, gap_ms: 10.0, tokens: 3, kernel_stamps: true };

    fn row(records: &[RequestRecord], answers: &[TrueAnswer]) -> FidelityRow {
        FidelityRow::of(ASKED, records, EngineTruth { answers, late_ms_p99: Some(0.1) })
    }

    /// Sent at 100 ms; tokens at 205, 216 and 225 ms.
    fn record(id: u64) -> RequestRecord {
        Given::ok(id)
            .moments(100, 100, 100)
            .arrival(205, &[Some(1)])
            .arrival(216, &[Some(1)])
            .arrival(225, &[Some(1)])
            .record()
    }

    #[test]
    fn errors_are_reported_less_true() {
        let records = [record(0), record(1)];
        let truths = [truth(0, 0, &[1, 2, 3]), truth(1, 101, &[203, 213, 223])];
        let row = row(&records, &truths);
        assert_eq!((row.requests, row.requests_unmatched, row.gaps), (1, 0, 2));
        let error = row.error.unwrap();
        assert!((error.ttft_ms.p50 - 3.0).abs() < 1e-9, "105 reported, 102 true");
        // Gaps of 11 and 9 were reported where both were 10.
        assert!((error.itl_ms.p50 - 1.0).abs() < 1e-9);
        assert_eq!(row.width_ms_max, Some(0.0));
        assert_eq!(row.in_flight, Some(1));
    }

    #[test]
    fn events_of_one_arrival_share_its_gap() {
        let mut coalesced = Given::ok(1)
            .moments(0, 0, 0)
            .arrival(100, &[Some(1)])
            .arrival(130, &[Some(1); 2])
            .record();
        coalesced.reads[1].turn = ms(110);
        let row = row(&[coalesced], &[truth(1, 0, &[100, 110, 130])]);
        let error = row.error.unwrap();
        // 15 and 15 reported, 10 and 20 true.
        assert!((error.itl_ms.p99 - 5.0).abs() < 1e-9);
        assert_eq!(row.width_ms_max, Some(20.0));
    }

    #[test]
    fn an_answer_that_does_not_match_is_counted_and_not_compared() {
        let mut failed = record(2);
        failed.ending.outcome = Outcome::Truncated;
        let records = [record(1), failed, record(3)];
        let truths = [truth(1, 0, &[1]), truth(2, 0, &[1, 2, 3])];
        let row = row(&records, &truths);
        assert_eq!((row.requests, row.requests_unmatched), (0, 3));
        assert_eq!((row.error, row.width_ms_max), (None, None));
    }

    #[test]
    fn streams_in_flight_are_the_engines_count() {
        let truths = [truth(1, 0, &[10]), truth(2, 5, &[20]), truth(3, 12, &[30])];
        assert_eq!(row(&[], &truths).in_flight, Some(2));
        assert_eq!(row(&[], &[]).in_flight, None);
    }

    #[test]
    fn tokens_that_come_together_first_hide_their_gaps() {
        let heap = Given::ok(1).arrival(100, &[Some(1); 3]).arrival(120, &[Some(1)]).record();
        let row = row(&[heap], &[truth(1, 0, &[80, 90, 100, 120])]);
        assert_eq!((row.gaps, row.gaps_unseen), (1, 2));
        assert!(!row.is_sound());
    }

    #[test]
    fn a_late_engine_proves_nothing() {
        let sound = row(&[record(1)], &[truth(1, 101, &[203, 213, 223])]);
        assert!(sound.is_sound());
        assert!(!FidelityRow { engine_late_ms_p99: Some(11.0), ..sound }.is_sound());
    }
}
