//! Tests of `concurrency`.

use proptest::prelude::*;

use crate::record::window::*;

fn flight(from_ns: u64, to_ns: u64) -> Flight {
    Flight { from_ns, to_ns }
}

#[test]
fn nothing_in_flight_is_not_a_concurrency_of_zero() {
    assert_eq!(Concurrency::sweep([]), None);
}

#[test]
fn overlap_is_counted_exactly() {
    let swept = Concurrency::sweep([flight(0, 10), flight(5, 20), flight(6, 8)]);
    assert_eq!(swept, Some(Concurrency { request_ns: 10 + 15 + 2, peak: 3 }));
}

#[test]
fn a_slot_that_is_handed_on_is_one_slot() {
    let swept = Concurrency::sweep([flight(0, 10), flight(10, 20), flight(20, 30)]);
    assert_eq!(swept, Some(Concurrency { request_ns: 30, peak: 1 }));
}

#[test]
fn the_drain_begins_after_the_last_peak_and_the_last_first_turn() {
    let flights = [flight(0, 50), flight(2, 10), flight(20, 30), flight(30, 40)];
    assert_eq!(Concurrency::drain_begins_ns(flights, 0), Some(40));
    assert_eq!(Concurrency::drain_begins_ns([], 0), None);
    assert_eq!(Concurrency::drain_begins_ns(flights, 30), Some(40));
    assert_eq!(Concurrency::drain_begins_ns(flights, 45), Some(45));
    assert_eq!(flight(0, 9).within(flight(5, 20)), Some(flight(5, 9)));
    assert_eq!(flight(0, 4).within(flight(5, 20)), None);
}

#[test]
fn a_flight_of_no_length_is_still_one_request() {
    let swept = Concurrency::sweep([flight(7, 7)]);
    assert_eq!(swept, Some(Concurrency { request_ns: 0, peak: 1 }));
}

proptest! {
    #[test]
    fn the_integral_is_the_sum_of_the_durations(
        spans in prop::collection::vec((0_u64..1_000, 0_u64..200), 1..60),
    ) {
        let flights: Vec<Flight> =
            spans.iter().map(|&(from, length)| flight(from, from + length)).collect();
        let swept = Concurrency::sweep(flights.iter().copied()).unwrap();
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
        prop_assert_eq!(Concurrency::sweep(flights.iter().copied()).unwrap().peak, slow as u64);
    }
}
