//! The share of its capacity that a load uses.

use inferometer_model::observations::ErrorFacts;

use super::*;
use crate::fixture::{Given, ms, run};

fn row(streams: u32, kernel_stamps: bool, ttft_ms_p99: f64) -> ErrorFacts {
    ErrorFacts {
        streams,
        kernel_stamps,
        ttft_ms_p50: 0.01,
        ttft_ms_p99,
        itl_ms_p50: 0.01,
        itl_ms_p99: 0.05,
    }
}

fn facts() -> CalibrationFacts {
    CalibrationFacts {
        when: "2026-01-02T03:04:05Z".to_owned(),
        drivers: 2,
        requests_per_s: 20_000.0,
        events_per_s: 400_000.0,
        errors: vec![row(256, true, 0.2), row(64, true, 0.1), row(64, false, 0.7)],
    }
}

const NOTHING: ClientLoad = ClientLoad {
    requests_per_s: 0.0,
    events_per_s: 0.0,
    streams: 1,
    kernel_stamps: true,
    drivers: 2,
};

#[test]
fn the_scarcer_capacity_counts_and_fewer_threads_have_less() {
    let used = |requests_per_s, events_per_s, drivers| {
        let load = ClientLoad { requests_per_s, events_per_s, drivers, ..NOTHING };
        ClientCapacity::look_up(&facts(), load).used
    };
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}");
    close(used(2_000.0, 4_000.0, 2), 0.1);
    close(used(2_000.0, 200_000.0, 2), 0.5);
    close(used(30_000.0, 0.0, 2), 1.5);
    close(used(2_000.0, 4_000.0, 1), 0.2);
    close(used(2_000.0, 4_000.0, 8), 0.1);
    // A run that died did not say how many it had; what is shown stays a number.
    close(used(2_000.0, 4_000.0, 0), 0.2);
}

#[test]
fn the_error_is_of_the_row_at_or_above_the_streams() {
    let p99 = |streams, kernel_stamps| {
        let load = ClientLoad { streams, kernel_stamps, ..NOTHING };
        ClientCapacity::look_up(&facts(), load).error_ms.map(|error| error.ttft_p99)
    };
    assert_eq!([3, 64, 65].map(|n| p99(n, true)), [Some(0.1), Some(0.1), Some(0.2)]);
    assert_eq!(p99(257, true), None, "beyond the table");
    assert_eq!([p99(64, false), p99(65, false)], [Some(0.7), None]);
}

#[test]
fn the_busiest_second_counts() {
    let sent = |id, at| Given::ok(id).moments(at, at, at).arrival(at + 9, &[Some(1)]).record();
    let records = vec![sent(0, 100), sent(1, 1_100), sent(2, 1_200), sent(3, 1_900)];
    let mut observations = run(records);
    observations.ending.began = Some(ms(0));
    observations.ending.at = ms(3_000);
    let busiest =
        |run: &Observations| Some(busiest_second(run, run.records.iter().filter_map(|it| it.sent)));
    assert_eq!(busiest(&observations), Some(3.0));
    observations.ending.at = ms(500);
    assert_eq!(busiest(&observations), Some(6.0));
}
