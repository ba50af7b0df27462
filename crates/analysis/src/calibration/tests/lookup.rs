//! Tests of `lookup`.

use super::document::bare;
use crate::calibration::*;

fn row(streams: u32, engine_late_ms_p99: f64) -> FidelityRow {
    let error = AbsoluteError { p50: 0.01, p99: 0.2 };
    FidelityRow {
        streams,
        gap_ms: 10.0,
        kernel_stamps: true,
        tokens: 200,
        in_flight: Some(u64::from(streams)),
        requests: 100,
        requests_unmatched: 0,
        gaps: 1_000,
        gaps_unseen: 0,
        engine_late_ms_p99: Some(engine_late_ms_p99),
        error: Some(FidelityError { ttft_ms: error, itl_ms: error }),
        width_ms_max: Some(0.0),
        cpu_us_per_token: Some(6.0),
        dialling: None,
    }
}

#[test]
fn rows_that_prove_nothing_are_not_kept() {
    let calibration = Calibration { fidelity: vec![row(64, 0.1), row(256, 50.0)], ..bare() };
    let facts = calibration.facts();
    assert_eq!(facts.errors.iter().map(|row| row.streams).collect::<Vec<_>>(), [64]);
    assert_eq!((facts.requests_per_s, facts.events_per_s), (20_000.0, 400_000.0));
}
