//! One request: its arrivals, its tokens, and the latencies between its timestamps; and tables of
//! requests for other programs.
//!
//! The events of one read share one timestamp, so a gap between two of them would be invented. An
//! arrival is all output events of one timestamp; every latency of a stream is measured between
//! arrivals. Two reads can share a timestamp: the kernel merges packets that lie unread and keeps the
//! stamp of the last, so reads that take such a packet in parts bring the same stamp again.
//!
//! The figures of the summary follow from the rows of a table, so a table can be used to check them. A
//! latency is given only where the summary counts it: on answers that ended `ok`.

use std::borrow::Cow;

use inferometer_model::record::{Carried, Finish, FinishReason, Read};
use inferometer_model::{Moment, Observations, Outcome, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::judge::Threshold;
use crate::metric::{self, Distribution, Metric, Missing, PER_REQUEST, PER_REQUEST_COUNT, Visible};
use crate::record::Clustered;
use crate::statistics::Sample;

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
#[derive(Clone, Debug, Default)]
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

    /// How many tokens the stream can stand for, where nothing marks them: one for each event, as many as
    /// steps fit into the gap before an arrival, because a server holds tokens back until their text is
    /// complete, and the one that ends an answer. A step is the gap that one of four is shorter than.
    pub(crate) fn tokens_at_most(&self, record: &RequestRecord) -> u64 {
        let distance_ns =
            |pair: &[Arrival]| pair[1].at.as_nanos().saturating_sub(pair[0].at.as_nanos());
        let mut gaps_ns: Vec<u64> = self.arrivals.windows(2).map(distance_ns).collect();
        let shorter = gaps_ns.len() / 4;
        let step_ns = if gaps_ns.is_empty() { 0 } else { *gaps_ns.select_nth_unstable(shorter).1 };
        let steps = |ns: u64| (ns + step_ns / 2).checked_div(step_ns).unwrap_or(0);
        let held_back =
            |pair: &[Arrival]| steps(distance_ns(pair)).saturating_sub(pair[1].events.into());
        let held_back: u64 = self.arrivals.windows(2).map(held_back).sum();
        let is_stop = |finish: &Finish| finish.reason == FinishReason::Stop;
        let ends = record.finishes.iter().filter(|finish| is_stop(finish)).count() as u64;
        self.events + self.silent_events + held_back + ends
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

pub(crate) const NO_TOKENS: Missing = "this API generates no tokens";

/// Who counted the output of a request, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TokenSource {
    /// The server's `usage`.
    Usage,
    /// Token ids, logprobs or growing usage on every event of the stream.
    StreamMarks,
    /// Neither: one token is taken for each event.
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
        let most = most_output_tokens(record);
        let believed = |count: &u64| *count <= most;
        let marked = output.marked_tokens().filter(believed);
        let (count, source) = match (said.filter(believed), marked) {
            (Some(count), _) if !zero_usage => (count, TokenSource::Usage),
            (_, Some(count)) => (count, TokenSource::StreamMarks),
            (_, None) => (output.events, TokenSource::Events),
        };
        Self { count, source, zero_usage }
    }
}

/// The output tokens that `max_tokens` allows, over all choices.
pub(crate) fn max_tokens(record: &RequestRecord) -> u64 {
    u64::from(record.asked.output_tokens) * record.finishes.len().max(1) as u64
}

/// The most output tokens that an answer can have: as many as were allowed, or, from a server that
/// ignores the limit, as many as there are bytes and events. A count above that is not believed.
fn most_output_tokens(record: &RequestRecord) -> u64 {
    let arrived: u64 = record.events.iter().map(|event| u64::from(event.text_bytes) + 1).sum();
    max_tokens(record).max(arrived)
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

/// What the latencies of a request that was sent are computed from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) record: &'a RequestRecord,
    pub(crate) sent: Moment,
    pub(crate) output: &'a Output,
    pub(crate) tokens: OutputTokens,
}

impl Request<'_> {
    /// When the first output came; `None` for an answer that came whole, whose first token is not
    /// to be seen.
    pub(crate) fn first_streamed(&self) -> Option<Moment> {
        self.output.arrivals.first().map(|arrival| arrival.at).filter(|_| self.is_streamed())
    }

    /// When the last output came.
    pub(crate) fn last(&self) -> Option<Moment> {
        self.output.arrivals.last().map(|arrival| arrival.at)
    }

    pub(crate) fn is_streamed(&self) -> bool {
        self.record.head.is_none_or(|head| head.streamed)
    }
}

/// The latencies of one request in milliseconds; what cannot be measured on it is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestLatencies {
    /// In the order of [`PER_REQUEST`].
    pub values: [Option<f64>; PER_REQUEST_COUNT],
    /// A single token has no gap after it, so no TPOT.
    one_token: bool,
    /// TPOT took one token for the first arrival, whose count is not known.
    pub(crate) tpot_assumed: bool,
}

impl RequestLatencies {
    pub(crate) fn measure(
        record: &RequestRecord,
        output: &Output,
        tokens: OutputTokens,
        ruler: &mut Ruler,
    ) -> Self {
        let is_ok = record.ending.outcome == Outcome::Ok;
        let Some(sent) = record.sent else {
            if is_ok {
                // An answer to a request that was never sent: the record contradicts itself.
                ruler.note_missing();
            }
            return Self::default();
        };
        let request = Request { record, sent, output, tokens };
        let values = PER_REQUEST.map(|metric| {
            let latency = metric.latency()?;
            let is_measured = is_ok || latency.visible == Visible::OnRequests;
            latency.value.filter(|_| is_measured)?(&request, ruler)
        });
        let one_token = is_ok && tokens.count == 1 && request.first_streamed().is_some();
        let first_unknown = output.arrivals.first().is_some_and(|first| first.tokens.is_none());
        let found = Self { values, one_token, tpot_assumed: false };
        Self { tpot_assumed: first_unknown && found.get(&metric::TPOT).is_some(), ..found }
    }

    pub fn get(&self, metric: &Metric) -> Option<f64> {
        let index = PER_REQUEST.iter().position(|known| *known == metric)?;
        self.values[index]
    }

    /// Whether an answer meets an SLO: what has no gap has none that could miss it.
    pub(crate) fn meet(&self, slo: &Threshold) -> bool {
        let metric = slo.quantity.metric();
        let without_gap = self.one_token && *metric == metric::TPOT;
        let value = self.get(metric).or(without_gap.then_some(0.0));
        value.is_some_and(|value| slo.is_met_by(value))
    }

    /// Keeps what is known of an answer that was not streamed: only its end is seen.
    pub(crate) fn without_stream(self) -> Self {
        let mut values = self.values;
        for (value, metric) in values.iter_mut().zip(PER_REQUEST) {
            *value = value.filter(|_| !metric.is_within_stream());
        }
        Self { values, ..Self::default() }
    }
}

/// How far back the events of coalesced arrivals may really lie.
#[derive(Debug, Default)]
pub(crate) struct Widths {
    pub(crate) arrivals: Clustered,
    /// The same width, counted once for each event.
    events: Vec<(f64, u64)>,
    /// Events that came alone: an arrival of one event has no width.
    events_alone: u64,
}

impl Widths {
    /// Adds an answer that is whole. Its events may lie back to the read before, or to the moment
    /// since which the driver was busy elsewhere, whichever is later.
    pub(crate) fn add_ok(&mut self, record: &RequestRecord, output: &Output, ruler: &mut Ruler) {
        let Some(sent) = record.sent else { return };
        for arrival in &output.arrivals {
            if arrival.events < 2 {
                self.events_alone += u64::from(arrival.events);
            } else if let Some(width) = width(record, sent, arrival, ruler) {
                self.arrivals.push(width);
                self.events.push((width, u64::from(arrival.events)));
            }
        }
        self.arrivals.end_request();
    }

    pub(crate) fn largest_ms(&self) -> f64 {
        self.events.iter().map(|(width, _)| *width).fold(0.0, f64::max)
    }

    pub(crate) fn by_event(mut self) -> Option<Distribution> {
        self.events.push((0.0, self.events_alone));
        Sample::counted(self.events).as_ref().map(Distribution::from_sample)
    }
}

fn width(
    record: &RequestRecord,
    sent: Moment,
    arrival: &Arrival,
    ruler: &mut Ruler,
) -> Option<f64> {
    let read = record.reads.get(arrival.read)?;
    // A read that left bytes behind bounds nothing: the kernel merges what lies unread.
    let earlier = record.reads.get(..arrival.read).unwrap_or_default();
    let before = earlier.iter().rev().find(|read| read.drained && read.at() < arrival.at);
    let earliest = before.map_or(sent, Read::at).max(read.turn);
    if arrival.at <= earliest { Some(0.0) } else { ruler.ms(earliest, arrival.at) }
}

/// One request with its latencies in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestDetail<'run> {
    pub record: Cow<'run, RequestRecord>,
    pub input_tokens: u64,
    /// Whether the server counted the input; otherwise it is the length that was asked for.
    pub input_reported: bool,
    /// `None` where there is no output to count.
    pub output_tokens: Option<(u64, TokenSource)>,
    pub latencies: RequestLatencies,
    pub arrivals: Vec<ArrivalDetail>,
}

/// All output that came at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArrivalDetail {
    pub at: Moment,
    pub events: u32,
    /// Where the server says it for each of the events.
    pub tokens: Option<u64>,
    /// Since the arrival before it; none of the first.
    pub icl_ms: Option<f64>,
    /// For each of its tokens: the gap, and those of arrivals without a token before it, shared out.
    pub itl_ms: Option<f64>,
}

/// Reads the records of a run one by one, in the order of their ids.
pub fn requests(observations: &Observations) -> impl Iterator<Item = RequestDetail<'_>> {
    let spec = &observations.manifest.spec;
    let (streaming, generates) = (spec.workload.streaming, spec.api.generates());
    let mut ruler = Ruler::from_observations(observations);
    let mut output = Output::default();
    observations.records.iter().map(move |record| {
        output.read(&record, &mut ruler);
        let counted = OutputTokens::count(&record, &output, generates);
        let latencies = RequestLatencies::measure(&record, &output, counted, &mut ruler);
        let is_answer = record.ending.outcome == Outcome::Ok;
        let input = InputTokens::from_record(&record);
        RequestDetail {
            record,
            input_tokens: input.count,
            input_reported: input.reported,
            output_tokens: (0 < counted.count).then_some((counted.count, counted.source)),
            latencies: if streaming { latencies } else { latencies.without_stream() },
            arrivals: arrivals(&output, &mut ruler, streaming && is_answer),
        }
    })
}

fn arrivals(output: &Output, ruler: &mut Ruler, has_gaps: bool) -> Vec<ArrivalDetail> {
    let detail = |(arrival, icl_ms, itl_ms): (&Arrival, _, _)| {
        let (at, events, tokens) = (arrival.at, arrival.events, arrival.tokens);
        ArrivalDetail { at, events, tokens, icl_ms, itl_ms }
    };
    let (bare, gaps) = if has_gaps { (1, usize::MAX) } else { (usize::MAX, 0) };
    let without_gap = output.arrivals.iter().take(bare);
    let with_gap = output.gaps(ruler).take(gaps);
    without_gap.map(|arrival| (arrival, None, None)).chain(with_gap).map(detail).collect()
}

#[cfg(test)]
mod tests;
