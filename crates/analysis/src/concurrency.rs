//! How many requests were in flight, exactly: a sweep over their beginnings and ends.

/// From the first byte sent to the end of the request, in nanoseconds on the run's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flight {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

impl Flight {
    /// The part of it inside another stretch; `None` when it lies outside.
    pub(crate) fn within(self, stretch: Self) -> Option<Self> {
        let from_ns = self.from_ns.max(stretch.from_ns);
        let to_ns = self.to_ns.min(stretch.to_ns);
        (from_ns <= to_ns).then_some(Self { from_ns, to_ns })
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
    pub(crate) fn sweep(flights: &[Flight]) -> Option<Self> {
        if flights.is_empty() {
            return None;
        }
        let mut begins: Vec<u64> = flights.iter().map(|flight| flight.from_ns).collect();
        let mut ends: Vec<u64> = flights.iter().map(|flight| flight.to_ns).collect();
        begins.sort_unstable();
        ends.sort_unstable();
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

    /// When the most were in flight for the last time.
    pub(crate) fn last_at_peak_ns(flights: &[Flight]) -> Option<u64> {
        let peak = i64::try_from(Self::sweep(flights)?.peak).ok()?;
        let mut changes: Vec<(u64, bool)> = flights
            .iter()
            .flat_map(|flight| [(flight.from_ns, true), (flight.to_ns, false)])
            .collect();
        // Ends before beginnings, as the sweep has it.
        changes.sort_unstable();
        let (mut in_flight, mut last) = (0_i64, None);
        for (at_ns, begins) in changes {
            if !begins && in_flight == peak {
                last = Some(at_ns);
            }
            // A flight of no length ends here before it begins, so for a moment it is below zero.
            in_flight += if begins { 1 } else { -1 };
        }
        last
    }

    /// When slots have nothing new to take: after the last first turn, and later where all of them
    /// are still at the turns of their conversations. The peak alone does not tell: of many slots
    /// that rest a moment between two requests, all are in use at the start and then never again.
    pub(crate) fn drain_begins_ns(flights: &[Flight], last_first_turn_ns: u64) -> Option<u64> {
        Self::last_at_peak_ns(flights).map(|peak_ns| peak_ns.max(last_first_turn_ns))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn flight(from_ns: u64, to_ns: u64) -> Flight {
        Flight { from_ns, to_ns }
    }

    #[test]
    fn nothing_in_flight_is_not_a_concurrency_of_zero() {
        assert_eq!(Concurrency::sweep(&[]), None);
    }

    #[test]
    fn overlap_is_counted_exactly() {
        let swept = Concurrency::sweep(&[flight(0, 10), flight(5, 20), flight(6, 8)]);
        assert_eq!(swept, Some(Concurrency { request_ns: 10 + 15 + 2, peak: 3 }));
    }

    #[test]
    fn a_slot_that_is_handed_on_is_one_slot() {
        let swept = Concurrency::sweep(&[flight(0, 10), flight(10, 20), flight(20, 30)]);
        assert_eq!(swept, Some(Concurrency { request_ns: 30, peak: 1 }));
    }

    #[test]
    fn the_drain_begins_after_the_last_peak_and_the_last_first_turn() {
        let flights = [flight(0, 50), flight(2, 10), flight(20, 30), flight(30, 40)];
        assert_eq!(Concurrency::last_at_peak_ns(&flights), Some(40));
        assert_eq!(Concurrency::last_at_peak_ns(&[]), None);
        assert_eq!(Concurrency::drain_begins_ns(&flights, 30), Some(40));
        assert_eq!(Concurrency::drain_begins_ns(&flights, 45), Some(45));
        assert_eq!(flight(0, 9).within(flight(5, 20)), Some(flight(5, 9)));
        assert_eq!(flight(0, 4).within(flight(5, 20)), None);
    }

    #[test]
    fn a_flight_of_no_length_is_still_one_request() {
        let swept = Concurrency::sweep(&[flight(7, 7)]);
        assert_eq!(swept, Some(Concurrency { request_ns: 0, peak: 1 }));
    }

    proptest! {
        #[test]
        fn the_integral_is_the_sum_of_the_durations(
            spans in prop::collection::vec((0_u64..1_000, 0_u64..200), 1..60),
        ) {
            let flights: Vec<Flight> =
                spans.iter().map(|&(from, length)| flight(from, from + length)).collect();
            let swept = Concurrency::sweep(&flights).unwrap();
            let sum: u64 = spans.iter().map(|&(_, length)| length).sum();
            prop_assert_eq!(swept.request_ns, u128::from(sum));
            prop_assert!(1 <= swept.peak && swept.peak <= flights.len() as u64);
        }

        #[test]
        fn the_peak_is_the_largest_number_at_any_beginning(
            spans in prop::collection::vec((0_u64..100, 1_u64..50), 1..30),
        ) {
            let flights: Vec<Flight> =
                spans.iter().map(|&(from, length)| flight(from, from + length)).collect();
            let in_flight_at = |at: u64| {
                flights.iter().filter(|flight| flight.from_ns <= at && at < flight.to_ns).count()
            };
            let slow = flights.iter().map(|flight| in_flight_at(flight.from_ns)).max().unwrap();
            prop_assert_eq!(Concurrency::sweep(&flights).unwrap().peak, slow as u64);
        }
    }
}
