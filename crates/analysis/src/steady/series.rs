//! What happened when, as series in time order.

use inferometer_model::{Moment, RequestRecord};

use super::SeriesName;
use crate::concurrency::{Concurrency, Flight};
use crate::doubt::Evidence;
use crate::metric;
use crate::request_metrics::RequestLatencies;
use crate::statistics::steady::{Settling, Unsettled, settle};
use crate::throughput::Deliveries;
use crate::tokens::InputTokens;

/// Steps of time, and groups of requests, that a series has: forty batches of five.
pub(super) const STEPS: usize = 200;
/// A trend counts from here on: several series are looked at, and queues wander.
const CERTAIN: f64 = 0.01;

/// An `ok` answer and when it was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentAnswer {
    pub(super) sent_ns: u64,
    /// When its first output came, if any did: then its input has been worked on.
    pub(super) first_ns: Option<u64>,
    pub(super) ended_ns: u64,
    pub(super) input_tokens: u64,
    pub(super) latencies: RequestLatencies,
}

/// All that a run's course is seen by.
pub(crate) struct Course<'a> {
    pub(crate) flights: &'a [Flight],
    /// When the last request left that waited for no answer of its own conversation.
    pub(crate) last_first_turn_ns: Option<u64>,
    pub(crate) answers: &'a [SentAnswer],
    pub(crate) deliveries: &'a Deliveries,
    pub(crate) evidence: &'a Evidence,
    /// Whether answers are made of tokens.
    pub(crate) generates: bool,
}

/// One series and what became of it.
pub(super) struct Reading {
    pub(super) series: SeriesName,
    pub(super) values: Vec<f64>,
    pub(super) settling: Settling,
    /// When each value begins.
    moments_ns: Vec<u64>,
}

/// Even steps of time.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    from_ns: u64,
    step_ns: u64,
    steps: usize,
}

impl SentAnswer {
    /// `None` for an answer to a request that was never sent.
    pub(crate) fn of(
        record: &RequestRecord,
        first: Option<Moment>,
        latencies: RequestLatencies,
    ) -> Option<Self> {
        Some(Self {
            sent_ns: record.sent?.as_nanos(),
            first_ns: first.map(Moment::as_nanos),
            ended_ns: record.ending.at.as_nanos(),
            input_tokens: InputTokens::of(record).count,
            latencies,
        })
    }
}

impl Grid {
    /// A last piece that is shorter than a step is left out; `None` without a nanosecond a step.
    pub(super) fn over(stretch: Flight, steps: usize) -> Option<Self> {
        let length_ns = stretch.to_ns.checked_sub(stretch.from_ns)?;
        let step_ns = length_ns / u64::try_from(steps).ok()?;
        (0 < step_ns).then_some(Self { from_ns: stretch.from_ns, step_ns, steps })
    }

    pub(super) fn begin_ns(self) -> u64 {
        self.from_ns
    }

    pub(super) fn end_ns(self) -> u64 {
        self.moment_ns(self.steps)
    }

    pub(super) fn moment_ns(self, step: usize) -> u64 {
        self.from_ns + self.step_ns * step as u64
    }

    /// The step that a moment lies in; `None` outside.
    fn step(self, at_ns: u64) -> Option<usize> {
        let step = usize::try_from(at_ns.checked_sub(self.from_ns)? / self.step_ns).ok()?;
        (step < self.steps).then_some(step)
    }

    fn moments_ns(self) -> Vec<u64> {
        (0..self.steps).map(|step| self.moment_ns(step)).collect()
    }
}

impl Course<'_> {
    pub(super) fn drain_begins_ns(&self) -> Option<u64> {
        Concurrency::drain_begins_ns(self.flights, self.last_first_turn_ns?)
    }

    pub(super) fn sent_within(&self, stretch: Flight) -> usize {
        let inside = |flight: &&Flight| (stretch.from_ns..=stretch.to_ns).contains(&flight.from_ns);
        self.flights.iter().filter(inside).count()
    }

    /// In flight, output tokens and TTFT.
    pub(super) fn readings(&self, grid: Grid) -> [Reading; 3] {
        let over_time = |series, values| Reading::of(series, values, grid.moments_ns());
        let (ttft, sent_ns) = self.ttft(grid);
        [
            over_time(SeriesName::InFlight, in_flight(self.flights, grid)),
            over_time(SeriesName::OutputTokens, self.output(grid)),
            Reading::of(SeriesName::Ttft, ttft, sent_ns),
        ]
    }

    /// Output per second in each step: tokens, or whole answers where they have none.
    fn output(&self, grid: Grid) -> Vec<f64> {
        let mut counts = vec![0.0; grid.steps];
        let mut add = |at_ns: u64, count: f64| {
            if let Some(step) = grid.step(at_ns) {
                counts[step] += count;
            }
        };
        if self.generates {
            self.deliveries.iter().for_each(|(at_ns, tokens)| add(at_ns, tokens as f64));
        } else {
            self.answers.iter().for_each(|answer| add(answer.ended_ns, 1.0));
        }
        let step_s = grid.step_ns as f64 / 1e9;
        counts.iter().map(|count| count / step_s).collect()
    }

    /// Means of neighbours in the order of sending, and when the first of each left.
    fn ttft(&self, grid: Grid) -> (Vec<f64>, Vec<u64>) {
        let shown = |answer: &SentAnswer| {
            answer.latencies.get(&metric::TTFT).or_else(|| answer.latencies.get(&metric::E2E))
        };
        let mut values: Vec<(u64, f64)> = self
            .answers
            .iter()
            .filter(|answer| grid.step(answer.sent_ns).is_some())
            .filter_map(|answer| Some((answer.sent_ns, shown(answer)?)))
            .collect();
        values.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let groups = values.len().min(grid.steps);
        let group = |place: usize| {
            &values[place * values.len() / groups..(place + 1) * values.len() / groups]
        };
        (0..groups)
            .map(group)
            .map(|group| {
                let sum: f64 = group.iter().map(|(_, value)| value).sum();
                (sum / group.len() as f64, group[0].0)
            })
            .unzip()
    }
}

impl Reading {
    fn of(series: SeriesName, values: Vec<f64>, moments_ns: Vec<u64>) -> Self {
        Self { series, settling: settle(&values), values, moments_ns }
    }

    pub(super) fn settled_from_ns(&self) -> Option<u64> {
        match self.settling {
            Settling::Settled { from } => self.moments_ns.get(from).copied(),
            Settling::TooShort { .. } | Settling::NeverSettled(_) => None,
        }
    }

    /// Why it did not settle, unless a trend of so many series is to be expected by chance.
    pub(super) fn unsettled(&self) -> Option<Unsettled> {
        match self.settling {
            Settling::NeverSettled(Unsettled::Trend { p, .. }) if CERTAIN <= p => None,
            Settling::NeverSettled(unsettled) => Some(unsettled),
            Settling::Settled { .. } | Settling::TooShort { .. } => None,
        }
    }
}

/// How many were in flight on average in each step.
fn in_flight(flights: &[Flight], grid: Grid) -> Vec<f64> {
    let stretch = Flight { from_ns: grid.begin_ns(), to_ns: grid.end_ns() };
    // Steps that a flight fills are counted by where they begin and end, so that a long flight
    // costs no more than a short one.
    let mut filling = vec![0_i64; grid.steps + 1];
    let mut part_ns = vec![0_u64; grid.steps];
    for flight in flights.iter().filter_map(|flight| flight.within(stretch)) {
        // The very end lies in no step.
        let Some(first) = grid.step(flight.from_ns) else { continue };
        let last = grid.step(flight.to_ns).unwrap_or(grid.steps);
        if first == last {
            part_ns[first] += flight.to_ns - flight.from_ns;
            continue;
        }
        part_ns[first] += grid.moment_ns(first + 1) - flight.from_ns;
        if let Some(part_ns) = part_ns.get_mut(last) {
            *part_ns += flight.to_ns - grid.moment_ns(last);
        }
        filling[first + 1] += 1;
        filling[last] -= 1;
    }
    let mut filled = 0;
    let step = |(change, part_ns): (&i64, &u64)| {
        filled += change;
        filled as f64 + *part_ns as f64 / grid.step_ns as f64
    };
    filling.iter().zip(&part_ns).map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_filled_in_part_and_in_whole() {
        let grid = Grid::over(Flight { from_ns: 100, to_ns: 140 }, 4).unwrap();
        let flight = |from_ns, to_ns| Flight { from_ns, to_ns };
        let found = in_flight(&[flight(0, 105), flight(115, 900), flight(121, 124)], grid);
        let close = |(found, expected): (&f64, &f64)| (found - expected).abs() < 1e-9;
        assert!(found.iter().zip(&[0.5, 0.5, 1.3, 1.0]).all(close), "{found:?}");
        assert_eq!((grid.end_ns(), grid.step(139), grid.step(140)), (140, Some(3), None));
        assert_eq!(grid.step(99), None);
        assert!(Grid::over(flight(100, 103), 4).is_none());
    }
}
