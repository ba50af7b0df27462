//! The output of one request: arrivals, tokens and the distances between its moments.
//!
//! The events of one read share one moment, so a gap between two of them would be invented. An
//! arrival is all output events of one moment; every latency of a stream is measured between
//! arrivals. Two reads can share a moment: the kernel merges packets that lie unread and keeps the
//! stamp of the last, so reads that take such a packet in parts bring the same stamp again.

use inferometer_model::record::{Carried, Read};
use inferometer_model::{Moment, Observations, Outcome, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::metric::Missing;

/// All output events that came at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) at: Moment,
    /// Index of the first read that brought some of it.
    pub(crate) read: usize,
    pub(crate) events: u32,
    /// Tokens, where the server says it for every event of the arrival.
    pub(crate) tokens: Option<u64>,
}

/// The output of one request. Made anew for each request over the same memory.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) arrivals: Vec<Arrival>,
    pub(crate) events: u64,
    /// Empty deltas without a mark, which may or may not stand for a token.
    pub(crate) silent_events: u64,
    /// When the first event with answer text came, as against reasoning or a tool call.
    pub(crate) first_content: Option<Moment>,
}

impl Output {
    /// Reads a record's events, in one pass.
    pub(crate) fn read(&mut self, record: &RequestRecord, ruler: &mut Ruler) {
        self.arrivals.clear();
        (self.events, self.silent_events, self.first_content) = (0, 0, None);
        for event in &record.events {
            if !event.is_output() {
                self.silent_events += u64::from(event.is_silent());
                continue;
            }
            self.events += 1;
            let read = event.read as usize;
            let Some(at) = record.reads.get(read).map(Read::at) else {
                ruler.note_missing();
                continue;
            };
            if self.first_content.is_none() && event.carried.contains(Carried::CONTENT) {
                self.first_content = Some(at);
            }
            let tokens = event.tokens.map(u64::from);
            match self.arrivals.last_mut().filter(|arrival| arrival.at == at) {
                Some(arrival) => {
                    arrival.events += 1;
                    arrival.tokens = arrival.tokens.zip(tokens).map(|(sum, more)| sum + more);
                }
                None => self.arrivals.push(Arrival { at, read, events: 1, tokens }),
            }
        }
    }

    /// The gaps before the arrivals after the first, whole and for each token. An arrival may carry text
    /// and no token, when the server lets go of text that it held back: its gap belongs to the tokens of
    /// the next arrival, or they would lose that time.
    pub(crate) fn gaps<'a>(
        &'a self,
        ruler: &'a mut Ruler,
    ) -> impl Iterator<Item = (&'a Arrival, Option<f64>, Option<f64>)> {
        let mut carried_over = 0.0;
        self.arrivals.windows(2).map(move |pair| {
            let gap = ruler.ms(pair[0].at, pair[1].at);
            let per_token = match (gap, pair[1].tokens) {
                (Some(gap), Some(tokens)) if 0 < tokens => {
                    Some((std::mem::take(&mut carried_over) + gap) / tokens as f64)
                }
                (gap, _) => {
                    carried_over += gap.unwrap_or(0.0);
                    None
                }
            };
            (&pair[1], gap, per_token)
        })
    }

    /// The tokens of all events, where the server says it for each of them.
    pub(crate) fn marked_tokens(&self) -> Option<u64> {
        if self.arrivals.is_empty() {
            return None;
        }
        self.arrivals.iter().map(|arrival| arrival.tokens).sum()
    }
}

/// Measures distances on the run's clock and counts those that are out of order.
///
/// Kernel stamps reach the run's clock through a mapping with a known error. Two moments that lie
/// the wrong way round by no more than that error are not out of order: which came first is not
/// known, and the small negative distance is the honest measurement. Beyond the error the record
/// contradicts itself, and there is no distance.
#[derive(Clone, Debug)]
pub(crate) struct Ruler {
    error_ns: u64,
    /// Distances that are out of order, and moments that a record should have and does not.
    pub(crate) out_of_order: u64,
}

impl Ruler {
    /// With the error of the run's stamps.
    pub(crate) fn from_observations(observations: &Observations) -> Self {
        Self::new(observations.ending.client.mapping.map_or(0, |mapping| mapping.error_ns_max))
    }

    /// `error_ns` is the worst half-width of a mapped stamp; both ends of a distance may have it.
    pub(crate) fn new(error_ns: u64) -> Self {
        Self { error_ns: error_ns.saturating_mul(2).min(ERROR_NS_MAX), out_of_order: 0 }
    }

    /// From `earlier` to `later` in milliseconds; `None`, and counted, when they are out of order.
    pub(crate) fn ms(&mut self, earlier: Moment, later: Moment) -> Option<f64> {
        let (earlier, later) = (earlier.as_nanos(), later.as_nanos());
        if let Some(distance) = later.checked_sub(earlier) {
            return Some(ns_to_ms(distance));
        }
        let back = earlier - later;
        if back <= self.error_ns {
            return Some(-ns_to_ms(back));
        }
        self.out_of_order += 1;
        None
    }

    /// A moment that a record should have and does not.
    pub(crate) fn note_missing(&mut self) {
        self.out_of_order += 1;
    }
}

/// The unit of every latency in a summary.
pub(crate) fn ns_to_ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

pub(crate) fn moment_to_ms(moment: Moment) -> f64 {
    ns_to_ms(moment.as_nanos())
}

/// However badly a mapping went, more than this is a contradiction and not an error bar.
const ERROR_NS_MAX: u64 = 100_000;

pub(crate) const NO_TOKENS: Missing = Missing("this API generates no tokens");

/// Who counted the output of a request, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TokenSource {
    /// The server's `usage`.
    Usage,
    /// Token ids, logprobs or growing usage on every event of the stream.
    StreamMarks,
    /// Nobody: one token is taken for each event.
    Events,
}

/// Tokens of a run. Totals are of `ok` requests, as the throughputs are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Requests by the source of their input count.
    pub input_source: InputSources,
    /// Requests with output by the source of its count.
    pub output_source: OutputSources,
    pub input_total: u64,
    pub output_total: u64,
    /// Input tokens that the server took from its cache; null when it never says.
    pub cached_total: Option<u64>,
    /// `ok` requests whose answer was empty.
    pub without_output: u64,
    /// Output tokens of requests that did not end `ok`, by the same sources.
    pub wasted: u64,
    /// Output events of requests that did not end `ok`.
    pub wasted_events: u64,
    /// Empty deltas without a mark, over all requests: perhaps tokens, perhaps nothing.
    pub silent_events: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputSources {
    pub usage: u64,
    /// The length that the workload asked for, since the server said nothing.
    pub asked: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputSources {
    pub usage: u64,
    pub stream_marks: u64,
    pub events: u64,
}

/// The output of one request, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutputTokens {
    pub(crate) count: u64,
    pub(crate) source: TokenSource,
    /// Usage said zero although there was output, so it was not believed.
    pub(crate) zero_usage: bool,
}

/// The input of one request, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InputTokens {
    pub(crate) count: u64,
    /// By the server; otherwise it is the length that was asked for.
    pub(crate) reported: bool,
}

impl OutputTokens {
    /// None where an API generates nothing: its events are vectors or scores, and so is its usage.
    pub(crate) fn count(record: &RequestRecord, output: &Output, generates: bool) -> Self {
        if generates {
            return Self::from_record(record, output);
        }
        Self { count: 0, source: TokenSource::Events, zero_usage: false }
    }

    pub(crate) fn from_record(record: &RequestRecord, output: &Output) -> Self {
        let said = record.usage.and_then(|usage| usage.completion_tokens);
        let zero_usage = said == Some(0) && 0 < output.events;
        let (count, source) = match (said, output.marked_tokens()) {
            (Some(count), _) if !zero_usage => (count, TokenSource::Usage),
            (_, Some(count)) => (count, TokenSource::StreamMarks),
            (_, None) => (output.events, TokenSource::Events),
        };
        Self { count, source, zero_usage }
    }
}

impl Tokens {
    pub(crate) fn add(&mut self, record: &RequestRecord, output: &Output, counted: OutputTokens) {
        self.silent_events += output.silent_events;
        if record.ending.outcome != Outcome::Ok {
            add(&mut self.wasted, counted.count);
            self.wasted_events += output.events;
            return;
        }
        let input = InputTokens::from_record(record);
        add(&mut self.input_total, input.count);
        self.input_source.usage += u64::from(input.reported);
        self.input_source.asked += u64::from(!input.reported);
        if let Some(cached) = record.usage.and_then(|usage| usage.cached_tokens) {
            add(self.cached_total.get_or_insert(0), cached);
        }
        self.without_output += u64::from(output.events == 0);
        if counted.count == 0 {
            return;
        }
        add(&mut self.output_total, counted.count);
        *match counted.source {
            TokenSource::Usage => &mut self.output_source.usage,
            TokenSource::StreamMarks => &mut self.output_source.stream_marks,
            TokenSource::Events => &mut self.output_source.events,
        } += 1;
    }
}

impl InputTokens {
    /// A prompt is never empty, so a reported zero says nothing.
    pub(crate) fn from_record(record: &RequestRecord) -> Self {
        match record.usage.and_then(|usage| usage.prompt_tokens) {
            Some(count) if 0 < count => Self { count, reported: true },
            _ => Self { count: record.asked.input_tokens.into(), reported: false },
        }
    }
}

/// Counts come from the server, which may say anything: a sum stops at the end of the numbers.
fn add(total: &mut u64, count: u64) {
    *total = total.saturating_add(count);
}

#[cfg(test)]
mod tests;
