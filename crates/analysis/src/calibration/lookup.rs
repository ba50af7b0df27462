//! What a run keeps of a calibration.

use inferometer_model::calibration::{CalibrationFacts, ErrorFacts};

use super::Calibration;

impl Calibration {
    /// The facts that a run's verdict needs. Rows that prove nothing are left out.
    pub fn facts(&self) -> CalibrationFacts {
        let sound = self.fidelity.iter().filter(|row| row.is_sound());
        let errors = sound.filter_map(|row| {
            let error = row.error?;
            Some(ErrorFacts {
                streams: row.streams,
                kernel_stamps: row.kernel_stamps,
                ttft_ms_p50: error.ttft_ms.p50,
                ttft_ms_p99: error.ttft_ms.p99,
                itl_ms_p50: error.itl_ms.p50,
                itl_ms_p99: error.itl_ms.p99,
            })
        });
        CalibrationFacts {
            when: self.when.clone(),
            drivers: self.method.drivers,
            requests_per_s: self.capacity.requests_per_s,
            events_per_s: self.capacity.events_per_s,
            errors: errors.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::tests::bare;
    use super::super::{AbsoluteError, FidelityError, FidelityRow};
    use super::*;

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
        }
    }

    #[test]
    fn rows_that_prove_nothing_are_not_kept() {
        let calibration = Calibration { fidelity: vec![row(64, 0.1), row(256, 50.0)], ..bare() };
        let facts = calibration.facts();
        assert_eq!(facts.errors.iter().map(|row| row.streams).collect::<Vec<_>>(), [64]);
        assert_eq!((facts.requests_per_s, facts.events_per_s), (20_000.0, 400_000.0));
    }
}
