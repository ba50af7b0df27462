//! A level that a limit of time ended before all of its requests had left, or had ended.

use super::*;
use crate::set::fixture::summary;

#[test]
fn a_run_to_its_end_is_not_cut() {
    assert_eq!(Cut::from_runs([&summary()].into_iter()), None);
    assert!(!is_cut(&summary()));
}

/// As in a published sweep: 2000 requests at once, 1015 of them ended within the time.
#[test]
fn requests_in_flight_at_the_drain_limit_are_counted() {
    let mut cut = summary();
    (cut.scheduled, cut.attempted) = (2_000, 2_000);
    cut.outcomes.insert(Outcome::Ok, 1_015);
    cut.outcomes.insert(Outcome::Cancelled, 985);
    let found = Cut::from_runs([&summary(), &cut].into_iter()).unwrap();
    assert_eq!((found.runs, found.ended, found.scheduled), (1, 1_015, 2_000));
    assert_eq!(found.limits.len(), 1);
    assert!(found.answers_missing && is_cut(&cut));
    cut.run.partial = true;
    assert_eq!(Cut::from_runs([&cut].into_iter()), None, "somebody stopped it");
}

#[test]
fn time_that_ends_before_the_requests_cuts() {
    let mut cut = summary();
    cut.run.extent = ExtentFacts::UntilFirst { requests: 100, duration_s: 4.0 };
    let found = Cut::from_runs([&cut, &cut].into_iter()).unwrap();
    assert_eq!((found.runs, found.ended, found.scheduled), (2, 80, 200));
    assert!(found.limits[0].contains("before all requests"), "{found:?}");
    assert!(!found.answers_missing && !is_cut(&cut), "all that left has ended");
    cut.run.extent = ExtentFacts::UntilFirst { requests: 40, duration_s: 400.0 };
    assert_eq!(Cut::from_runs([&cut].into_iter()), None);
    cut.run.extent = ExtentFacts::DurationS(4.0);
    assert_eq!(Cut::from_runs([&cut].into_iter()), None, "time was all that was asked for");
}
