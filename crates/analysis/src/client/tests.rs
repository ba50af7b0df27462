//! The health of the client.

mod capacity;

use inferometer_model::journal::{ClockMapping, LagHistogram};

use super::*;
use crate::fixture::{Given, run};

fn health(observations: &Observations) -> ClientHealth {
    ClientHealth::from_observations(observations, &Measured::from_observations(observations))
}

#[test]
fn health_is_counted_over_all_requests() {
    let mut records = vec![
        Given::ok(0).connection(0, false).arrival(50, &[Some(1)]).record(),
        Given::ok(1).connection(0, true).arrival(50, &[Some(1)]).record(),
        Given::ok(2).connection(1, false).arrival(50, &[Some(1)]).record(),
        Given::ok(3).connection(1, true).arrival(50, &[Some(1)]).record(),
    ];
    records[3].reads[0].kernel = None;
    let mut observations = run(records);
    let facts = &mut observations.ending.client;
    facts.mapping = Some(ClockMapping { estimates: 9, error_ns_max: 1_500, jumps: 2 });
    facts.loop_lag = LagHistogram::default();
    facts.loop_lag.add(900_000);
    facts.loop_lag.add(3_000_000);
    let found = health(&observations);
    assert_eq!(found.kernel_stamps, Some(0.75));
    assert_eq!(found.clock_error_us_max, Some(1.5));
    assert_eq!(found.clock_jumps, Some(2));
    assert_eq!(found.loop_lag_ms.p50_at_most, Some(0.96));
    assert_eq!(found.loop_lag_ms.max, Some(3.0));
    assert_eq!((found.connections_opened, found.connections_reused), (2, Some(0.5)));
}

#[test]
fn what_was_not_observed_is_null() {
    let mut observations = run(vec![]);
    observations.ending.client.mapping = None;
    observations.ending.client.loop_lag = LagHistogram::default();
    let found = health(&observations);
    assert_eq!(found.kernel_stamps, None);
    assert_eq!(found.clock_error_us_max, None);
    assert_eq!(found.loop_lag_ms.max, None);
    assert_eq!(found.connections_reused, None);
}
