//! The client's side over time: requests in flight, tokens as they came, and how requests ended.

use inferometer_model::{Moment, Observations, Outcome, RequestRecord};
use serde::{Deserialize, Serialize};

use super::steps::{Cursor, Steps};
use crate::arrivals::{Arrival, Output};
use crate::throughput::share;
use crate::tokens::OutputTokens;

/// Columns of equal length, a value for each step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CourseFigure {
    /// Of the first step's beginning, since the run's zero.
    pub from_ms: f64,
    pub step_ms: f64,
    /// Requests in flight, as a mean over the step.
    pub in_flight: Vec<f64>,
    /// Output tokens of ok answers that arrived in the step.
    pub output_tokens: Vec<u64>,
    /// Requests that ended in the step.
    pub ended_ok: Vec<u64>,
    pub ended_otherwise: Vec<u64>,
}

const STEPS_MAX: u32 = 200;

/// What grows while the records are read; `None` for a run without requests.
#[derive(Debug)]
pub(crate) struct CourseTally(Option<Tally>);

#[derive(Debug)]
struct Tally {
    steps: Steps,
    tokens_at: Cursor,
    /// Time in flight, in steps that a request does not fill.
    parts_ns: Vec<u128>,
    /// By how many more, or fewer, requests fill a step than filled the step before.
    filled: Vec<i64>,
    output_tokens: Vec<u64>,
    ended_ok: Vec<u64>,
    ended_otherwise: Vec<u64>,
}

impl CourseTally {
    pub(crate) fn new(observations: &Observations) -> Self {
        Self(Steps::over(observations.records.iter(), STEPS_MAX).map(Tally::new))
    }

    /// A request that ended in any way.
    pub(crate) fn add(&mut self, record: &RequestRecord) {
        if let Some(tally) = &mut self.0 {
            tally.add(record);
        }
    }

    /// The tokens of an answer that is ok.
    pub(crate) fn add_tokens(
        &mut self,
        record: &RequestRecord,
        output: &Output,
        tokens: OutputTokens,
    ) {
        if let Some(tally) = &mut self.0 {
            tally.add_tokens(record, output, tokens.count);
        }
    }

    pub(crate) fn finish(self) -> CourseFigure {
        self.0.map(Tally::finish).unwrap_or_default()
    }
}

impl Tally {
    fn new(steps: Steps) -> Self {
        Self {
            steps,
            tokens_at: Cursor::new(steps),
            parts_ns: vec![0; steps.count],
            filled: vec![0; steps.count],
            output_tokens: vec![0; steps.count],
            ended_ok: vec![0; steps.count],
            ended_otherwise: vec![0; steps.count],
        }
    }

    fn add(&mut self, record: &RequestRecord) {
        let ended_ns = record.ending.at.as_nanos();
        let last = self.steps.place(ended_ns);
        let ok = record.ending.outcome == Outcome::Ok;
        let ended = if ok { &mut self.ended_ok } else { &mut self.ended_otherwise };
        ended[last] += 1;
        let Some(sent_ns) = record.sent.map(Moment::as_nanos) else { return };
        // The record contradicts itself: there is no time in flight.
        let Some(in_flight_ns) = ended_ns.checked_sub(sent_ns) else { return };
        let first = self.steps.place(sent_ns);
        if first == last {
            self.parts_ns[first] += u128::from(in_flight_ns);
            return;
        }
        self.parts_ns[first] += u128::from(self.steps.begin_ns(first + 1) - sent_ns);
        self.parts_ns[last] += u128::from(ended_ns - self.steps.begin_ns(last));
        self.filled[first + 1] += 1;
        self.filled[last] -= 1;
    }

    /// In proportion to what the stream marks, or to its events where it marks nothing: all of the
    /// answer's tokens are somewhere, and so the steps add up to the run's.
    fn add_tokens(&mut self, record: &RequestRecord, output: &Output, count: u64) {
        let marked = output.marked_tokens().filter(|marked| 0 < *marked);
        let weight = |arrival: &Arrival| match (marked, arrival.tokens) {
            (Some(_), Some(tokens)) => tokens,
            _ => u64::from(arrival.events),
        };
        let whole = marked.unwrap_or_else(|| output.arrivals.iter().map(weight).sum());
        if whole == 0 {
            self.put(record.ending.at, count);
            return;
        }
        let mut through = 0;
        let mut given = 0;
        for arrival in &output.arrivals {
            through += weight(arrival);
            let due = if whole == count { through } else { share(count, through, whole) };
            self.put(arrival.at, due - given);
            given = due;
        }
    }

    fn put(&mut self, at: Moment, tokens: u64) {
        let step = &mut self.output_tokens[self.tokens_at.place(at)];
        *step = step.saturating_add(tokens);
    }

    fn finish(self) -> CourseFigure {
        let step_ns = self.steps.step_ns as f64;
        let mut whole = 0;
        let in_flight = self.parts_ns.iter().zip(&self.filled).map(|(part_ns, more)| {
            whole += more;
            whole as f64 + *part_ns as f64 / step_ns
        });
        CourseFigure {
            from_ms: self.steps.begin_ms(),
            step_ms: self.steps.step_ms(),
            in_flight: in_flight.collect(),
            output_tokens: self.output_tokens,
            ended_ok: self.ended_ok,
            ended_otherwise: self.ended_otherwise,
        }
    }
}
