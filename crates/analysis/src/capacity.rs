//! Whether a load was within what this client was measured to bear.

use inferometer_model::calibration::{CalibrationFacts, ErrorFacts};
use inferometer_model::observations::HttpVersion;
use inferometer_model::record::Read;
use inferometer_model::{Moment, Observations};
use serde::{Deserialize, Serialize};

/// What the calibration says about the load of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientCapacity {
    /// When the client was calibrated.
    pub calibrated: String,
    /// Share of the client's capacity in the busiest second: above one, the client was the limit.
    pub used: f64,
    /// How far off the client is with this many streams in flight; null beyond what was calibrated.
    pub error_ms: Option<ClientError>,
}

/// Percentiles of the size of the client's error, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientError {
    pub ttft_p50: f64,
    pub ttft_p99: f64,
    pub itl_p50: f64,
    pub itl_p99: f64,
}

/// What a run asked of the client.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ClientLoad {
    requests_per_s: f64,
    events_per_s: f64,
    streams: u64,
    kernel_stamps: bool,
    drivers: u32,
}

impl ClientCapacity {
    /// `None` when nobody had calibrated this client, or not for such a wire: TLS and HTTP/2 cost
    /// more than what was measured.
    pub(crate) fn of(observations: &Observations, streams: u64, stamped: bool) -> Option<Self> {
        let manifest = &observations.manifest;
        let is_plain =
            !manifest.endpoint.base.tls && manifest.spec.client.http == HttpVersion::Http1;
        let facts = manifest.calibration.as_ref().filter(|_| is_plain)?;
        let load = ClientLoad {
            requests_per_s: busiest_second(observations, sent_moments(observations)),
            events_per_s: busiest_second(observations, event_moments(observations)),
            streams,
            kernel_stamps: stamped,
            drivers: observations.ending.client.drivers,
        };
        Some(look_up(facts, load))
    }
}

fn look_up(facts: &CalibrationFacts, load: ClientLoad) -> ClientCapacity {
    // Fewer threads carry less; whether more would carry more was not measured.
    let scale = (f64::from(load.drivers.max(1)) / f64::from(facts.drivers.max(1))).min(1.0);
    let of_requests = load.requests_per_s / (facts.requests_per_s * scale);
    let of_events = load.events_per_s / (facts.events_per_s * scale);
    let row = facts
        .errors
        .iter()
        .filter(|row| row.kernel_stamps == load.kernel_stamps)
        .filter(|row| load.streams <= u64::from(row.streams))
        .min_by_key(|row| row.streams);
    ClientCapacity {
        calibrated: facts.when.clone(),
        used: of_requests.max(of_events),
        error_ms: row.map(ClientError::of),
    }
}

impl ClientError {
    fn of(row: &ErrorFacts) -> Self {
        Self {
            ttft_p50: row.ttft_ms_p50,
            ttft_p99: row.ttft_ms_p99,
            itl_p50: row.itl_ms_p50,
            itl_p99: row.itl_ms_p99,
        }
    }
}

fn sent_moments(observations: &Observations) -> impl Iterator<Item = Moment> {
    observations.records.iter().filter_map(|record| record.sent)
}

fn event_moments(observations: &Observations) -> impl Iterator<Item = Moment> {
    observations.records.iter().flat_map(|record| {
        record.events.iter().filter_map(|event| record.reads.get(event.read as usize).map(Read::at))
    })
}

/// How many there were in the busiest second, per second. A run shorter than that is one part.
fn busiest_second(observations: &Observations, moments: impl Iterator<Item = Moment>) -> f64 {
    const SECOND_NS: u64 = 1_000_000_000;
    // A year of seconds; what claims to lie beyond is damage, not load.
    const SECONDS_MAX: usize = 366 * 24 * 3_600;
    let began = observations.ending.began.unwrap_or_default();
    let mut seconds: Vec<u64> = Vec::new();
    for moment in moments {
        let since_ns = moment.as_nanos().saturating_sub(began.as_nanos());
        let second = usize::try_from(since_ns / SECOND_NS).unwrap_or(usize::MAX);
        if SECONDS_MAX <= second {
            continue;
        }
        if seconds.len() <= second {
            seconds.resize(second + 1, 0);
        }
        seconds[second] += 1;
    }
    let length_s = observations.ending.at.since(began).map_or(1.0, |length| length.as_secs_f64());
    let most = seconds.into_iter().max().unwrap_or(0);
    if 0.0 < length_s { most as f64 / length_s.min(1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
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
            look_up(&facts(), load).used
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
            look_up(&facts(), load).error_ms.map(|error| error.ttft_p99)
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
        let busiest = |run: &Observations| Some(busiest_second(run, sent_moments(run)));
        assert_eq!(busiest(&observations), Some(3.0));
        observations.ending.at = ms(500);
        assert_eq!(busiest(&observations), Some(6.0));
    }
}
