//! The latencies of single requests, gathered over a run.
//!
//! Latencies of answers are of `ok` requests only: a failure that came fast is not a fast answer.
//! What the client did (queueing, sending, reading) is measured on every request that was sent.

use inferometer_model::RequestRecord;
use inferometer_model::record::Read;

use crate::arrivals::{Arrival, Output};
use crate::clustered::Clustered;
use crate::ruler::Ruler;
use crate::tokens::OutputTokens;

/// Values in milliseconds, one list per metric, in the order in which requests were added.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    pub(crate) ttft: Vec<f64>,
    pub(crate) ttft_schedule: Vec<f64>,
    pub(crate) ttfc: Vec<f64>,
    pub(crate) tpot: Vec<f64>,
    pub(crate) e2e: Vec<f64>,
    pub(crate) e2e_schedule: Vec<f64>,
    pub(crate) client_queue: Vec<f64>,
    pub(crate) send_lag: Vec<f64>,
    pub(crate) arrival_width: Clustered,
    /// The same, counted once for each event.
    pub(crate) event_width: Vec<(f64, u64)>,
    /// Events that came alone: an arrival of one event has no width.
    pub(crate) events_alone: u64,
    /// A TPOT took one token for the first arrival, whose count is not known.
    pub(crate) tpot_assumed: bool,
}

/// The latencies of one answer, in milliseconds; what cannot be measured on it is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct AnswerLatencies {
    pub(crate) ttft: Option<f64>,
    pub(crate) ttft_schedule: Option<f64>,
    pub(crate) ttfc: Option<f64>,
    pub(crate) tpot: Option<f64>,
    pub(crate) e2e: Option<f64>,
    pub(crate) e2e_schedule: Option<f64>,
    /// A single token has no gap after it, so no TPOT.
    pub(crate) one_token: bool,
}

impl AnswerLatencies {
    /// Of an answer that was not asked for as a stream: only its end is seen.
    pub(crate) fn of_end(self) -> Self {
        Self { e2e: self.e2e, e2e_schedule: self.e2e_schedule, ..Self::default() }
    }
}

impl Latencies {
    /// What the client did, on a request that ended in any way.
    pub(crate) fn add_attempt(&mut self, record: &RequestRecord, ruler: &mut Ruler) {
        if let Some(sent) = record.sent {
            self.client_queue.extend(ruler.ms(record.intended, record.admitted));
            self.send_lag.extend(ruler.ms(record.admitted, sent));
        }
    }

    /// The answer of a request that ended `ok`.
    pub(crate) fn add_ok(
        &mut self,
        record: &RequestRecord,
        output: &Output,
        tokens: OutputTokens,
        ruler: &mut Ruler,
    ) -> AnswerLatencies {
        let mut answer = AnswerLatencies::default();
        let Some(sent) = record.sent else {
            // An answer to a request that was never sent: the record contradicts itself.
            ruler.note_missing();
            return answer;
        };
        let [first, ..] = output.arrivals.as_slice() else { return answer };
        let last = output.arrivals.last().unwrap_or(first);
        // The first token of an answer that comes whole is not to be seen.
        let streamed = record.head.is_none_or(|head| head.streamed);
        if streamed {
            answer.ttft = ruler.ms(sent, first.at);
            answer.ttft_schedule = ruler.ms(record.intended, first.at);
            answer.one_token = tokens.count == 1;
        }
        answer.e2e = ruler.ms(sent, last.at);
        answer.e2e_schedule = ruler.ms(record.intended, last.at);
        if let Some(content) = output.first_content.filter(|_| streamed) {
            answer.ttfc = ruler.ms(sent, content);
        }
        self.add_widths(record, &output.arrivals, ruler);
        if 1 < output.arrivals.len() {
            answer.tpot = self.tpot(first, last, tokens, ruler);
        }
        self.add_answer(answer);
        answer
    }

    fn add_answer(&mut self, answer: AnswerLatencies) {
        self.ttft.extend(answer.ttft);
        self.ttft_schedule.extend(answer.ttft_schedule);
        self.ttfc.extend(answer.ttfc);
        self.tpot.extend(answer.tpot);
        self.e2e.extend(answer.e2e);
        self.e2e_schedule.extend(answer.e2e_schedule);
    }

    /// The time after the first arrival, over the tokens after it.
    fn tpot(
        &mut self,
        first: &Arrival,
        last: &Arrival,
        tokens: OutputTokens,
        ruler: &mut Ruler,
    ) -> Option<f64> {
        let after_first = tokens.count.saturating_sub(first.tokens.unwrap_or(1));
        if after_first == 0 {
            return None;
        }
        let span = ruler.ms(first.at, last.at)?;
        self.tpot_assumed |= first.tokens.is_none();
        Some(span / after_first as f64)
    }

    /// How far back the events of a coalesced arrival may really lie: to the read before, or to
    /// the moment since which the driver was busy elsewhere, whichever is later.
    fn add_widths(&mut self, record: &RequestRecord, arrivals: &[Arrival], ruler: &mut Ruler) {
        for arrival in arrivals {
            if arrival.events < 2 {
                self.events_alone += u64::from(arrival.events);
                continue;
            }
            let Some(read) = record.reads.get(arrival.read) else { continue };
            // A read that left bytes behind bounds nothing: the kernel merges what lies unread.
            let earlier = record.reads.get(..arrival.read).unwrap_or_default();
            let before = earlier.iter().rev().find(|read| read.drained && read.at() < arrival.at);
            let earliest = before.map(Read::at).or(record.sent).unwrap_or(read.turn);
            let width = if arrival.at <= earliest.max(read.turn) {
                Some(0.0)
            } else {
                ruler.ms(earliest.max(read.turn), arrival.at)
            };
            if let Some(width) = width {
                self.arrival_width.push(width);
                self.event_width.push((width, u64::from(arrival.events)));
            }
        }
        self.arrival_width.end_request();
    }
}

#[cfg(test)]
mod tests {
    use inferometer_model::record::Carried;

    use super::*;
    use crate::fixture::{Given, ms};

    fn latencies(record: &RequestRecord) -> (Latencies, u64) {
        let mut ruler = Ruler::new(0);
        let mut output = Output::default();
        output.read(record, &mut ruler);
        let mut latencies = Latencies::default();
        latencies.add_attempt(record, &mut ruler);
        latencies.add_ok(record, &output, OutputTokens::of(record, &output), &mut ruler);
        (latencies, ruler.out_of_order())
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
        assert_eq!(found.ttft, [100.0]);
        assert_eq!(found.ttft_schedule, [105.0]);
        assert_eq!(found.ttfc, [100.0]);
        assert_eq!(found.tpot, [80.0 / 4.0]);
        assert_eq!(found.e2e, [180.0]);
        assert_eq!(found.e2e_schedule, [185.0]);
        assert_eq!(found.client_queue, [2.0]);
        assert_eq!(found.send_lag, [3.0]);
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
        assert_eq!(found.ttft, [40.0]);
        assert_eq!(found.ttfc, [70.0]);
    }

    #[test]
    fn an_answer_without_output_has_no_latency() {
        let (found, out_of_order) = latencies(&Given::ok(0).usage(10, 0).record());
        assert!(found.ttft.is_empty() && found.e2e.is_empty() && found.tpot.is_empty());
        assert_eq!(found.send_lag.len(), 1);
        assert_eq!(out_of_order, 0);
    }

    #[test]
    fn one_token_has_no_time_per_token_after_it() {
        let (found, _) = latencies(&Given::ok(0).arrival(50, &[Some(1)]).usage(10, 1).record());
        assert_eq!(found.ttft.len(), 1);
        assert!(found.tpot.is_empty());
    }

    #[test]
    fn all_tokens_in_one_arrival_have_no_time_per_token() {
        let record = Given::ok(0).arrival(50, &[Some(4), Some(4)]).usage(10, 8).record();
        let (found, _) = latencies(&record);
        assert!(found.tpot.is_empty());
    }

    #[test]
    fn no_token_after_the_first_arrival_is_no_tpot() {
        let record =
            Given::ok(0).arrival(50, &[Some(2)]).arrival(60, &[Some(0)]).usage(10, 2).record();
        let (found, _) = latencies(&record);
        assert!(found.tpot.is_empty(), "two tokens, both in the first arrival");
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
        assert_eq!(found.tpot, [10.0], "60 ms over 7 − 1 tokens");
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
        let (found, _) = latencies(&record);
        assert_eq!(found.event_width, [(20.0, 2), (5.0, 2), (0.0, 2)]);
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
        assert_eq!(latencies(&record).0.event_width, [(50.0, 2)]);
    }

    #[test]
    fn moments_out_of_order_give_no_latency_and_are_counted() {
        let record = Given::ok(0).moments(100, 100, 100).arrival(50, &[Some(1)]).record();
        let (found, out_of_order) = latencies(&record);
        assert!(found.ttft.is_empty() && found.e2e.is_empty());
        assert_eq!(out_of_order, 5, "TTFT and E2E from both origins, and TTFC");
    }

    #[test]
    fn an_ok_answer_to_a_request_never_sent_is_counted() {
        let mut record = Given::ok(0).arrival(50, &[Some(1)]).record();
        record.sent = None;
        let (found, out_of_order) = latencies(&record);
        assert!(found.ttft.is_empty() && found.send_lag.is_empty());
        assert_eq!(out_of_order, 1);
    }
}
