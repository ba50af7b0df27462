//! Tests of `series`.

use crate::steady::*;

#[test]
fn steps_are_filled_in_part_and_in_whole() {
    let stretch = Flight { from_ns: 100, to_ns: 140 };
    let grid = Steps::within(stretch, 4).unwrap();
    let flight = |from_ns, to_ns| Flight { from_ns, to_ns };
    let flights = [flight(0, 105), flight(115, 900), flight(121, 124), flight(140, 150)];
    let inside = flights.iter().filter_map(|flight| flight.within(stretch));
    let found = grid.in_flight(inside, |to_ns| grid.step(to_ns).unwrap_or(grid.count));
    let close = |(found, expected): (&f64, &f64)| (found - expected).abs() < 1e-9;
    assert!(found.iter().zip(&[0.5, 0.5, 1.3, 1.0]).all(close), "{found:?}");
    assert_eq!((grid.end_ns(), grid.step(139), grid.step(140)), (140, Some(3), None));
    assert_eq!(grid.step(99), None);
    assert!(Steps::within(flight(100, 103), 4).is_none());
}
