//! The latencies of one request, and tables of requests for other programs.
//!
//! The figures of the summary follow from these rows, so a table can be used to check them. A latency
//! is given only where the summary counts it: on answers that ended `ok`.

use inferometer_model::record::Read;
use inferometer_model::{Moment, Observations, Outcome, RequestRecord};

use crate::judge::Threshold;
use crate::metric::{self, Distribution, Metric, PER_REQUEST, PER_REQUEST_COUNT, Visible};
use crate::record::{Arrival, Clustered, InputTokens, Output, OutputTokens, Ruler, TokenSource};
use crate::statistics::Sample;

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

    /// Of an answer that was not asked for as a stream only the end is seen.
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
    pub record: &'run RequestRecord,
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
        output.read(record, &mut ruler);
        let counted = OutputTokens::count(record, &output, generates);
        let latencies = RequestLatencies::measure(record, &output, counted, &mut ruler);
        let is_answer = record.ending.outcome == Outcome::Ok;
        let input = InputTokens::from_record(record);
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
