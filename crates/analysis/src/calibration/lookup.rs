//! Whether a load was within what this client was measured to bear.

use super::{Calibration, FidelityError};

/// What a run asked of the client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientLoad {
    pub requests_per_s: f64,
    pub events_per_s: f64,
    pub streams_in_flight: u64,
    pub kernel_stamps: bool,
}

/// What the calibration says about such a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientCapacity {
    /// Share of the capacity in use: above one, the client was the bottleneck.
    pub used: f64,
    /// How far off the client was with at least this many streams; `None` beyond the table, or
    /// where the row proves nothing.
    pub error: Option<FidelityError>,
}

impl Calibration {
    pub fn at(&self, load: ClientLoad) -> ClientCapacity {
        let requests = load.requests_per_s / self.capacity.requests_per_s;
        let events = load.events_per_s / self.capacity.events_per_s;
        let row = self
            .fidelity
            .iter()
            .filter(|row| row.kernel_stamps == load.kernel_stamps)
            .filter(|row| load.streams_in_flight <= u64::from(row.streams))
            .min_by_key(|row| row.streams);
        let sound = row.filter(|row| row.is_sound(self.method.gap_ms));
        ClientCapacity { used: requests.max(events), error: sound.and_then(|row| row.error) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::tests::bare;
    use super::super::{AbsoluteError, FidelityRow};
    use super::*;

    fn row(streams: u32, kernel_stamps: bool, ttft_ms_p99: f64) -> FidelityRow {
        let error = AbsoluteError { p50: 0.01, p99: ttft_ms_p99 };
        FidelityRow {
            streams,
            kernel_stamps,
            tokens: 200,
            in_flight: Some(u64::from(streams)),
            requests: 100,
            requests_unmatched: 0,
            gaps: 1_000,
            gaps_unseen: 0,
            engine_late_ms_p99: Some(0.1),
            error: Some(FidelityError { ttft_ms: error, itl_ms: error }),
            width_ms_max: Some(0.0),
        }
    }

    fn load(requests_per_s: f64, events_per_s: f64, streams_in_flight: u64) -> ClientLoad {
        ClientLoad { requests_per_s, events_per_s, streams_in_flight, kernel_stamps: true }
    }

    #[test]
    fn the_scarcer_capacity_counts() {
        let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9);
        close(bare().at(load(2_000.0, 4_000.0, 1)).used, 0.1);
        close(bare().at(load(2_000.0, 200_000.0, 1)).used, 0.5);
        close(bare().at(load(30_000.0, 0.0, 1)).used, 1.5);
    }

    #[test]
    fn the_error_is_of_the_row_at_or_above_the_streams() {
        let calibration = Calibration {
            fidelity: vec![row(256, true, 0.2), row(64, true, 0.1), row(64, false, 0.7)],
            ..bare()
        };
        let p99 = |load| calibration.at(load).error.map(|error| error.ttft_ms.p99);
        assert_eq!(p99(load(1.0, 1.0, 3)), Some(0.1));
        assert_eq!(p99(load(1.0, 1.0, 64)), Some(0.1));
        assert_eq!(p99(load(1.0, 1.0, 65)), Some(0.2));
        assert_eq!(p99(load(1.0, 1.0, 257)), None, "beyond the table");
        let mut unsound = calibration.clone();
        unsound.fidelity[1].engine_late_ms_p99 = Some(50.0);
        assert_eq!(unsound.at(load(1.0, 1.0, 3)).error, None, "its engine was late");
        let unstamped = ClientLoad { kernel_stamps: false, ..load(1.0, 1.0, 64) };
        assert_eq!(p99(unstamped), Some(0.7));
        let too_many = ClientLoad { kernel_stamps: false, ..load(1.0, 1.0, 65) };
        assert_eq!(p99(too_many), None);
    }
}
