//! The window of a run, and the busiest second in it.
//!
//! The window is the whole run, from the first byte sent to the last ending of a request that was
//! sent, ramp and drain included; its kind says so.

use inferometer_model::record::Read;
use inferometer_model::records::TimeOrder;
use inferometer_model::{Moment, Outcome, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::record::{Output, OutputTokens, Ruler, moment_to_ms, ns_to_ms};

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
pub(crate) struct Extremes(pub(crate) Option<(Moment, Moment)>);

impl Extremes {
    pub(crate) fn add(&mut self, from: Moment, to: Moment) {
        self.0 = Some(self.0.map_or((from, to), |(first, last)| (first.min(from), last.max(to))));
    }

    pub(crate) fn duration_ns(self) -> Option<u64> {
        self.0.and_then(|(first, last)| last.as_nanos().checked_sub(first.as_nanos()))
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

/// The output tokens of complete answers and when they came, in nanoseconds on the run's clock, in no
/// order. A pass over the records for them alone, so that a long run's memory holds one list of
/// timestamps at a time.
pub(crate) fn deliveries(records: &TimeOrder<'_>, generates: bool) -> Vec<(u64, u64)> {
    let mut deliveries = Vec::with_capacity(records.len());
    let mut output = Output::default();
    for record in records.iter().filter(|record| record.ending.outcome == Outcome::Ok) {
        output.read(&record, &mut Ruler::new(0));
        let tokens = OutputTokens::count(&record, &output, generates);
        deliveries.extend(delivered(&output, tokens).map(|(at, count)| (at.as_nanos(), count)));
    }
    deliveries
}

/// The most tokens in any one second; `None` when nothing was delivered.
pub(crate) fn busiest_second(mut deliveries: Vec<(u64, u64)>) -> Option<u128> {
    // Equal times may stay in any order: all of them are within before the last is judged.
    deliveries.sort_unstable_by_key(|(at, _)| *at);
    let (mut oldest, mut within, mut busiest) = (0, 0_u128, None);
    for &(at, count) in &deliveries {
        within += u128::from(count);
        while SECOND_NS <= at - deliveries[oldest].0 {
            within -= u128::from(deliveries[oldest].1);
            oldest += 1;
        }
        busiest = busiest.max(Some(within));
    }
    busiest
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

/// From the first byte sent to the end of the request, in nanoseconds on the run's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flight {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

impl Flight {
    /// `None` when it ends before it begins.
    pub(crate) fn new(from: Moment, to: Moment) -> Option<Self> {
        let (from_ns, to_ns) = (from.as_nanos(), to.as_nanos());
        (from_ns <= to_ns).then_some(Self { from_ns, to_ns })
    }

    /// From the first byte sent to the last byte received, without what an answer waited for the client
    /// to read it. `None` for a request that was never sent.
    pub(crate) fn on_the_wire(record: &RequestRecord) -> Option<Self> {
        let last_read = record.reads.last().filter(|_| record.ending.outcome == Outcome::Ok);
        let received = last_read.map_or(record.ending.at, Read::at);
        Self::new(record.sent?, received)
    }

    /// The part of it inside another stretch; `None` when it lies outside.
    pub(crate) fn within(self, stretch: Self) -> Option<Self> {
        let from_ns = self.from_ns.max(stretch.from_ns);
        let to_ns = self.to_ns.min(stretch.to_ns);
        (from_ns <= to_ns).then_some(Self { from_ns, to_ns })
    }

    /// How much of it lies inside another stretch, from 0 to 1; a single moment lies inside or not.
    pub(crate) fn share_within(self, stretch: Self) -> f64 {
        let length_ns = |flight: Self| (flight.to_ns - flight.from_ns) as f64;
        match self.within(stretch) {
            Some(inside) if self.from_ns < self.to_ns => length_ns(inside) / length_ns(self),
            Some(inside) if inside.from_ns < stretch.to_ns => 1.0,
            _ => 0.0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Concurrency {
    /// Requests in flight, integrated over time: the mean times the duration.
    pub(crate) request_ns: u128,
    pub(crate) peak: u64,
}

impl Concurrency {
    /// Returns `None` when nothing was in flight.
    ///
    /// A request that ends at the moment at which another begins does not overlap it: a slot that
    /// is handed on is still one slot.
    pub(crate) fn sweep(flights: impl IntoIterator<Item = Flight>) -> Option<Self> {
        let (begins, ends) = edges(flights);
        Self::sweep_edges(&begins, &ends)
    }

    /// Both are sorted.
    fn sweep_edges(begins: &[u64], ends: &[u64]) -> Option<Self> {
        if begins.is_empty() {
            return None;
        }
        let (mut begun, mut ended, mut now) = (0, 0, begins[0]);
        let mut swept = Self { request_ns: 0, peak: 0 };
        while ended < ends.len() {
            let next_begin = begins.get(begun).copied().unwrap_or(u64::MAX);
            let next = next_begin.min(ends[ended]);
            swept.request_ns += (begun - ended) as u128 * u128::from(next - now);
            now = next;
            // All ends of a moment before its beginnings, save for flights of no length.
            while ended < begun && ends[ended] == now {
                ended += 1;
            }
            while begun < begins.len() && begins[begun] == now {
                begun += 1;
            }
            swept.peak = swept.peak.max((begun - ended) as u64);
        }
        Some(swept)
    }

    /// When slots have nothing new to take: after the last first turn, and later where all of them
    /// are still at the turns of their conversations. The peak alone does not tell: of many slots
    /// that rest a moment between two requests, all are in use at the start and then never again.
    pub(crate) fn drain_begins_ns(
        flights: impl IntoIterator<Item = Flight>,
        last_first_turn_ns: u64,
    ) -> Option<u64> {
        let (begins, ends) = edges(flights);
        let peak = i64::try_from(Self::sweep_edges(&begins, &ends)?.peak).ok()?;
        let mut begins = begins.into_iter().peekable();
        let (mut in_flight, mut last_at_peak_ns) = (0_i64, None);
        for end_ns in ends {
            // Ends before beginnings, as the sweep has it. A flight of no length ends here before it
            // begins, so for a moment it is below zero.
            while begins.next_if(|begin_ns| *begin_ns < end_ns).is_some() {
                in_flight += 1;
            }
            if in_flight == peak {
                last_at_peak_ns = Some(end_ns);
            }
            in_flight -= 1;
        }
        last_at_peak_ns.map(|peak_ns| peak_ns.max(last_first_turn_ns))
    }
}

/// When flights begin and when they end, both sorted.
fn edges(flights: impl IntoIterator<Item = Flight>) -> (Vec<u64>, Vec<u64>) {
    let flights = flights.into_iter();
    // Lists that grow are copied, and for that moment there are two of them.
    let count = flights.size_hint().1.unwrap_or(0);
    let (mut begins, mut ends) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for flight in flights {
        begins.push(flight.from_ns);
        ends.push(flight.to_ns);
    }
    begins.sort_unstable();
    ends.sort_unstable();
    (begins, ends)
}

#[cfg(test)]
mod tests;
