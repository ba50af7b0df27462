//! The window of a run, and the busiest second in it.
//!
//! The window is the whole run, from the first byte sent to the last ending of a request that was
//! sent, ramp and drain included; its kind says so.

use inferometer_model::{Moment, Outcome, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::arrivals::Output;
use crate::ruler::{Ruler, moment_to_ms, ns_to_ms};
use crate::tokens::OutputTokens;

/// The stretch of time that throughputs are divided by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    pub kind: WindowKind,
    /// Since the run's zero; null when nothing was sent.
    pub from_ms: Option<f64>,
    pub to_ms: Option<f64>,
    pub duration_s: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowKind {
    /// First request sent to last request ended.
    Whole,
    /// After the warm-up and before the drain.
    Steady,
}

/// From the first to the last moment that was given to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extremes(Option<(Moment, Moment)>);

impl Extremes {
    pub(crate) fn add(&mut self, from: Moment, to: Moment) {
        self.0 = Some(self.0.map_or((from, to), |(first, last)| (first.min(from), last.max(to))));
    }

    /// `None` when there is no time between them.
    pub(crate) fn bounds(self) -> Option<(Moment, Moment)> {
        self.0.filter(|(first, last)| first < last)
    }

    pub(crate) fn bounds_ns(self) -> Option<(u64, u64)> {
        self.0.map(|(first, last)| (first.as_nanos(), last.as_nanos()))
    }

    pub(crate) fn duration_ns(self) -> Option<u64> {
        self.0.and_then(|(first, last)| last.as_nanos().checked_sub(first.as_nanos()))
    }

    /// Whether all of it lies between two moments; nothing lies nowhere.
    pub(crate) fn lies_between(self, from: Moment, to: Moment) -> bool {
        self.0.is_some_and(|(first, last)| from <= first && last <= to)
    }

    /// `None` when there is no time to divide by.
    pub(crate) fn duration_s(self) -> Option<f64> {
        self.duration_ns().filter(|ns| 0 < *ns).map(|ns| ns_to_ms(ns) / 1e3)
    }

    pub(crate) fn window(self) -> Window {
        Window {
            kind: WindowKind::Whole,
            from_ms: self.0.map(|(first, _)| moment_to_ms(first)),
            to_ms: self.0.map(|(_, last)| moment_to_ms(last)),
            duration_s: self.duration_ns().map(|ns| ns_to_ms(ns) / 1e3),
        }
    }
}

/// Output tokens and when they came.
#[derive(Debug, Default)]
pub(crate) struct Deliveries(Vec<(u64, u64)>);

impl Deliveries {
    /// Of the answers that are whole. A pass of its own, so that a long run's memory holds one list
    /// of moments at a time.
    pub(crate) fn of(records: &[&RequestRecord], generates: bool) -> Self {
        let ok = || records.iter().filter(|record| record.ending.outcome == Outcome::Ok);
        let mut deliveries = Self(Vec::with_capacity(ok().map(|record| record.events.len()).sum()));
        let mut output = Output::default();
        for record in ok() {
            output.read(record, &mut Ruler::new(0));
            let counted =
                if generates { OutputTokens::of(record, &output) } else { OutputTokens::NONE };
            deliveries.add(&output, counted);
        }
        deliveries
    }

    fn add(&mut self, output: &Output, tokens: OutputTokens) {
        self.0.extend(delivered(output, tokens).map(|(at, count)| (at.as_nanos(), count)));
    }

    /// In nanoseconds on the run's clock, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().copied()
    }

    /// The most tokens in any one second; `None` when nothing was delivered.
    pub(crate) fn busiest_second(mut self) -> Option<u128> {
        // Equal moments may stay in any order: all of them are within before the last is judged.
        self.0.sort_unstable_by_key(|(at, _)| *at);
        let mut oldest = 0;
        let mut within: u128 = 0;
        let mut busiest = None;
        for &(at, count) in &self.0 {
            within += u128::from(count);
            while SECOND_NS <= at - self.0[oldest].0 {
                within -= u128::from(self.0[oldest].1);
                oldest += 1;
            }
            busiest = busiest.max(Some(within));
        }
        busiest
    }
}

/// When the tokens of an answer came. Takes each arrival's own count; where one is unknown, the
/// request's total is spread evenly over its output events, in whole tokens.
pub(crate) fn delivered(
    output: &Output,
    tokens: OutputTokens,
) -> impl Iterator<Item = (Moment, u64)> {
    let known = output.marked_tokens().is_some();
    let mut events_before = 0;
    output.arrivals.iter().map(move |arrival| {
        let events_after = events_before + u64::from(arrival.events);
        let count = match arrival.tokens {
            Some(count) if known => count,
            _ => {
                share(tokens.count, events_after, output.events)
                    - share(tokens.count, events_before, output.events)
            }
        };
        events_before = events_after;
        (arrival.at, count)
    })
}

/// `total · part / whole`, rounded down.
pub(crate) fn share(total: u64, part: u64, whole: u64) -> u64 {
    let scaled = u128::from(total) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

const SECOND_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Given, ms};

    fn deliver(deliveries: &mut Deliveries, given: Given) {
        let record = given.record();
        let mut output = Output::default();
        output.read(&record, &mut Ruler::new(0));
        deliveries.add(&output, OutputTokens::of(&record, &output));
    }

    #[test]
    fn the_busiest_second_slides_and_is_half_open() {
        let mut deliveries = Deliveries::default();
        let first = Given::ok(0).arrival(600, &[Some(3)]).arrival(1_599, &[Some(4)]);
        deliver(&mut deliveries, first.arrival(1_600, &[Some(5)]));
        deliver(&mut deliveries, Given::ok(1).arrival(2_598, &[Some(1)]));
        // 3 + 4 lie within a second, 3 and 5 do not; 4 + 5 + 1 do.
        assert_eq!(deliveries.busiest_second(), Some(10));
        assert_eq!(Deliveries::default().busiest_second(), None);
    }

    #[test]
    fn an_unknown_count_is_spread_over_the_events_and_loses_no_token() {
        let mut deliveries = Deliveries::default();
        let given = Given::ok(0).arrival(0, &[None]).arrival(500, &[None, None]);
        deliver(&mut deliveries, given.arrival(5_000, &[None]).usage(1, 10));
        let counts: Vec<u64> = deliveries.0.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [2, 5, 3]);
        assert_eq!(deliveries.busiest_second(), Some(7));
    }

    #[test]
    fn the_window_is_null_before_anything_is_sent() {
        let mut extremes = Extremes::default();
        assert_eq!(extremes.duration_s(), None);
        assert_eq!(extremes.window().from_ms, None);
        extremes.add(ms(200), ms(900));
        extremes.add(ms(100), ms(400));
        assert_eq!(
            extremes.window(),
            Window {
                kind: WindowKind::Whole,
                from_ms: Some(100.0),
                to_ms: Some(900.0),
                duration_s: Some(0.8),
            }
        );
    }

    #[test]
    fn a_window_without_length_divides_nothing() {
        let mut extremes = Extremes::default();
        extremes.add(ms(5), ms(5));
        assert_eq!(extremes.duration_s(), None);
        assert_eq!(extremes.window().duration_s, Some(0.0));
    }
}
