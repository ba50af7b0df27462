//! The latencies of one request.

use inferometer_model::record::Read;
use inferometer_model::{Moment, Outcome, RequestRecord};

use crate::arrivals::{Arrival, Output};
use crate::clustered::Clustered;
use crate::metric::{self, Metric, PER_REQUEST, PER_REQUEST_COUNT, Visible};
use crate::ruler::Ruler;
use crate::sample::Sample;
use crate::tokens::OutputTokens;
use crate::value::Distribution;

/// What the latencies of a request that was sent are computed from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) record: &'a RequestRecord,
    pub(crate) sent: Moment,
    pub(crate) output: &'a Output,
    pub(crate) tokens: OutputTokens,
}

impl Request<'_> {
    pub(crate) fn intended(&self) -> Moment {
        self.record.intended
    }

    /// When the first output came; `None` for an answer that came whole, whose first token is not
    /// to be seen.
    pub(crate) fn first_streamed(&self) -> Option<Moment> {
        self.output.arrivals.first().map(|arrival| arrival.at).filter(|_| self.is_streamed())
    }

    pub(crate) fn first_content(&self) -> Option<Moment> {
        self.output.first_content.filter(|_| self.is_streamed())
    }

    /// When the last output came.
    pub(crate) fn last(&self) -> Option<Moment> {
        self.output.arrivals.last().map(|arrival| arrival.at)
    }

    fn is_streamed(&self) -> bool {
        self.record.head.is_none_or(|head| head.streamed)
    }
}

/// The latencies of one request in milliseconds; what cannot be measured on it is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestLatencies {
    /// In the order of [`PER_REQUEST`].
    values: [Option<f64>; PER_REQUEST_COUNT],
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
            let latency = metric.per_request()?;
            let is_measured = is_ok || latency.visible == Visible::OnRequests;
            is_measured.then(|| (latency.value)(&request, ruler)).flatten()
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

    /// The value that an SLO is checked against: what has no gap has none that could miss it.
    pub(crate) fn for_slo(&self, metric: &Metric) -> Option<f64> {
        let without_gap = self.one_token && *metric == metric::TPOT;
        self.get(metric).or(without_gap.then_some(0.0))
    }

    /// In the order of [`PER_REQUEST`].
    pub fn values(&self) -> [Option<f64>; PER_REQUEST_COUNT] {
        self.values
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
    arrivals: Clustered,
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

    pub(crate) fn arrivals(&self) -> &Clustered {
        &self.arrivals
    }

    pub(crate) fn largest_ms(&self) -> f64 {
        self.events.iter().map(|(width, _)| *width).fold(0.0, f64::max)
    }

    pub(crate) fn by_event(mut self) -> Option<Distribution> {
        self.events.push((0.0, self.events_alone));
        Sample::counted(self.events).as_ref().map(Distribution::of)
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

#[cfg(test)]
mod tests {
    use inferometer_model::record::Carried;

    use super::*;
    use crate::fixture::{Given, ms};

    fn latencies(record: &RequestRecord) -> (RequestLatencies, u64) {
        let mut ruler = Ruler::new(0);
        let mut output = Output::default();
        output.read(record, &mut ruler);
        let tokens = OutputTokens::of(record, &output);
        let latencies = RequestLatencies::measure(record, &output, tokens, &mut ruler);
        (latencies, ruler.out_of_order())
    }

    fn widths(record: &RequestRecord) -> Widths {
        let (mut ruler, mut output) = (Ruler::new(0), Output::default());
        output.read(record, &mut ruler);
        let mut widths = Widths::default();
        widths.add_ok(record, &output, &mut ruler);
        widths
    }

    #[test]
    fn every_latency_of_a_plain_stream() {
        // Intended at 10, let go at 12, sent at 15; two tokens at 115, one at 135, three at 195.
        let record = Given::ok(0)
            .moments(10, 12, 15)
            .arrival(115, &[Some(1), Some(1)])
            .arrival(135, &[Some(1)])
            .arrival(195, &[Some(3)])
            .usage(20, 6)
            .record();
        let (found, out_of_order) = latencies(&record);
        assert_eq!(found.get(&metric::TTFT), Some(100.0));
        assert_eq!(found.get(&metric::TTFT_SCHEDULE), Some(105.0));
        assert_eq!(found.get(&metric::TTFC), Some(100.0));
        assert_eq!(found.get(&metric::TPOT), Some(80.0 / 4.0));
        assert_eq!(found.get(&metric::E2E), Some(180.0));
        assert_eq!(found.get(&metric::E2E_SCHEDULE), Some(185.0));
        assert_eq!(found.get(&metric::CLIENT_QUEUE), Some(2.0));
        assert_eq!(found.get(&metric::SEND_LAG), Some(3.0));
        assert!(!found.tpot_assumed);
        assert_eq!(out_of_order, 0);
    }

    #[test]
    fn a_reasoning_model_answers_later_than_it_speaks() {
        let record = Given::ok(0)
            .moments(0, 0, 0)
            .event(5, Carried::CHOICE | Carried::ROLE)
            .event(40, Carried::CHOICE | Carried::REASONING)
            .event(70, Carried::CHOICE | Carried::CONTENT)
            .record();
        let (found, _) = latencies(&record);
        assert_eq!(found.get(&metric::TTFT), Some(40.0));
        assert_eq!(found.get(&metric::TTFC), Some(70.0));
    }

    #[test]
    fn an_answer_without_output_has_no_latency() {
        let (found, out_of_order) = latencies(&Given::ok(0).usage(10, 0).record());
        assert!(
            found.get(&metric::TTFT).is_none()
                && found.get(&metric::E2E).is_none()
                && found.get(&metric::TPOT).is_none()
        );
        assert!(found.get(&metric::SEND_LAG).is_some());
        assert_eq!(out_of_order, 0);
    }

    #[test]
    fn one_token_has_no_time_per_token_after_it() {
        let (found, _) = latencies(&Given::ok(0).arrival(50, &[Some(1)]).usage(10, 1).record());
        assert!(found.get(&metric::TTFT).is_some());
        assert!(found.get(&metric::TPOT).is_none());
    }

    #[test]
    fn all_tokens_in_one_arrival_have_no_time_per_token() {
        let record = Given::ok(0).arrival(50, &[Some(4), Some(4)]).usage(10, 8).record();
        let (found, _) = latencies(&record);
        assert!(found.get(&metric::TPOT).is_none());
    }

    #[test]
    fn no_token_after_the_first_arrival_is_no_tpot() {
        let record =
            Given::ok(0).arrival(50, &[Some(2)]).arrival(60, &[Some(0)]).usage(10, 2).record();
        let (found, _) = latencies(&record);
        assert!(found.get(&metric::TPOT).is_none(), "two tokens, both in the first arrival");
    }

    #[test]
    fn unknown_counts_mark_tpot() {
        let record = Given::ok(0)
            .arrival(100, &[None])
            .arrival(120, &[None])
            .arrival(160, &[None])
            .usage(10, 7)
            .record();
        let (found, _) = latencies(&record);
        assert_eq!(found.get(&metric::TPOT), Some(10.0), "60 ms over 7 − 1 tokens");
        assert!(found.tpot_assumed);
    }

    #[test]
    fn a_width_reaches_back_to_the_last_read_or_the_last_wake() {
        let mut record = Given::ok(0)
            .moments(0, 0, 0)
            .arrival(100, &[Some(1)])
            .arrival(120, &[Some(1), Some(1)])
            .arrival(150, &[Some(1), Some(1)])
            .arrival(170, &[Some(1), Some(1)])
            .record();
        record.reads[1].turn = ms(90);
        record.reads[2].turn = ms(145);
        record.reads[3].turn = ms(175);
        let found = widths(&record);
        assert_eq!(found.events, [(20.0, 2), (5.0, 2), (0.0, 2)]);
        assert_eq!(found.events_alone, 1);
    }

    #[test]
    fn a_width_reaches_past_a_read_that_left_bytes_behind() {
        let mut record = Given::ok(0)
            .moments(0, 0, 0)
            .arrival(100, &[Some(1)])
            .arrival(120, &[Some(1)])
            .arrival(150, &[Some(1), Some(1)])
            .record();
        record.reads[1].drained = false;
        record.reads[2].turn = ms(0);
        assert_eq!(widths(&record).events, [(50.0, 2)]);
    }

    #[test]
    fn moments_out_of_order_give_no_latency_and_are_counted() {
        let record = Given::ok(0).moments(100, 100, 100).arrival(50, &[Some(1)]).record();
        let (found, out_of_order) = latencies(&record);
        assert!(found.get(&metric::TTFT).is_none() && found.get(&metric::E2E).is_none());
        assert_eq!(out_of_order, 5, "TTFT and E2E from both origins, and TTFC");
    }

    #[test]
    fn an_ok_answer_to_a_request_never_sent_is_counted() {
        let mut record = Given::ok(0).arrival(50, &[Some(1)]).record();
        record.sent = None;
        let (found, out_of_order) = latencies(&record);
        assert!(found.get(&metric::TTFT).is_none() && found.get(&metric::SEND_LAG).is_none());
        assert_eq!(out_of_order, 1);
    }
}
