//! From stream events to arrivals: what one read of the socket brought.
//!
//! The events of one read share one moment, so a gap between two of them would be invented. An
//! arrival is all output events of one moment; every latency of a stream is measured between
//! arrivals. Two reads can share a moment: the kernel merges packets that lie unread and keeps the
//! stamp of the last, so reads that take such a packet in parts bring the same stamp again.

use inferometer_model::record::Carried;
use inferometer_model::{Moment, RequestRecord};

use crate::ruler::Ruler;

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
        self.clear();
        for event in &record.events {
            if !event.is_output() {
                self.silent_events += u64::from(event.is_silent());
                continue;
            }
            self.events += 1;
            let read = event.read as usize;
            let Some(at) = record.reads.get(read).map(inferometer_model::record::Read::at) else {
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

    /// The tokens of all events, where the server says it for each of them.
    pub(crate) fn marked_tokens(&self) -> Option<u64> {
        if self.arrivals.is_empty() {
            return None;
        }
        self.arrivals.iter().map(|arrival| arrival.tokens).sum()
    }

    fn clear(&mut self) {
        self.arrivals.clear();
        self.events = 0;
        self.silent_events = 0;
        self.first_content = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Given, ms};

    fn output(record: &RequestRecord) -> (Output, u64) {
        let mut ruler = Ruler::new(0);
        let mut output = Output::default();
        output.read(record, &mut ruler);
        (output, ruler.out_of_order())
    }

    #[test]
    fn events_of_one_read_are_one_arrival_with_their_tokens_added() {
        let record = Given::ok(0).arrival(50, &[Some(1), Some(2)]).arrival(60, &[Some(4)]).record();
        let (output, _) = output(&record);
        assert_eq!(
            output.arrivals,
            [
                Arrival { at: ms(50), read: 0, events: 2, tokens: Some(3) },
                Arrival { at: ms(60), read: 1, events: 1, tokens: Some(4) },
            ]
        );
        assert_eq!(output.events, 3);
        assert_eq!(output.marked_tokens(), Some(7));
    }

    #[test]
    fn reads_with_one_stamp_are_one_arrival() {
        let record = Given::ok(0).arrival(50, &[Some(1)]).arrival(50, &[Some(2)]).record();
        let (output, _) = output(&record);
        assert_eq!(output.arrivals, [Arrival { at: ms(50), read: 0, events: 2, tokens: Some(3) }]);
    }

    #[test]
    fn one_unmarked_event_makes_the_arrival_unknown() {
        let record = Given::ok(0).arrival(50, &[Some(1), None]).arrival(60, &[Some(4)]).record();
        let (output, _) = output(&record);
        assert_eq!(output.arrivals[0].tokens, None);
        assert_eq!(output.arrivals[1].tokens, Some(4));
        assert_eq!(output.marked_tokens(), None);
    }

    #[test]
    fn roles_usage_and_silence_are_no_output() {
        let record = Given::ok(0)
            .event(10, Carried::CHOICE | Carried::ROLE)
            .event(20, Carried::CHOICE)
            .event(30, Carried::CHOICE | Carried::REASONING)
            .event(40, Carried::CHOICE | Carried::CONTENT)
            .event(50, Carried::USAGE)
            .record();
        let (output, _) = output(&record);
        assert_eq!(
            output.arrivals.iter().map(|arrival| arrival.at).collect::<Vec<_>>(),
            [ms(30), ms(40)]
        );
        assert_eq!(output.silent_events, 1);
        assert_eq!(output.first_content, Some(ms(40)));
    }

    #[test]
    fn an_event_without_its_read_is_counted_as_disorder() {
        let mut record = Given::ok(0).arrival(50, &[None]).record();
        record.events[0].read = 7;
        let (output, out_of_order) = output(&record);
        assert!(output.arrivals.is_empty());
        assert_eq!((output.events, out_of_order), (1, 1));
    }
}
