//! What the client knows of its own health. Its lags per request are metrics and stand there.

use std::collections::BTreeSet;

use inferometer_model::Observations;
use serde::{Deserialize, Serialize};

use crate::capacity::ClientCapacity;
use crate::measured::Measured;
use crate::ruler::ns_to_ms;

/// The instrument's view of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientHealth {
    /// Threads that drove the load.
    pub drivers: u32,
    /// Share of the reads that carry the kernel's stamp; null when nothing was read.
    pub kernel_stamps: Option<f64>,
    /// Stamps are off by at most this, between jumps of the clock; null without stamps.
    pub clock_error_us_max: Option<f64>,
    pub clock_jumps: Option<u64>,
    pub loop_lag_ms: LoopLag,
    /// Entries that found the journal's queue full, so that a driver had to wait.
    pub journal_waits: u64,
    /// Processor seconds of this process per second of the run; null where the system does not
    /// say.
    pub cores_used: Option<f64>,
    /// Share of the machine's processor time that its host gave to others; null likewise.
    pub cpu_stolen: Option<f64>,
    pub connections_opened: u64,
    /// What the client's calibration says about this load; null when it was never calibrated.
    pub capacity: Option<ClientCapacity>,
    /// Share of the requests with a connection that found it open; null when none had one.
    pub connections_reused: Option<f64>,
}

/// Below this the errors of a client without kernel stamps are the ones that apply.
const STAMPED_SHARE: f64 = 0.99;

/// How late the driver's loop woke. The quantiles are upper limits; null when nothing was noted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopLag {
    pub p50_at_most: Option<f64>,
    pub p99_at_most: Option<f64>,
    pub max: Option<f64>,
}

impl ClientHealth {
    pub(crate) fn of(observations: &Observations, measured: &Measured) -> Self {
        let oddities = &measured.oddities;
        let kernel_stamps = share(oddities.reads_stamped, oddities.reads);
        let streams = measured.concurrency.map_or(0, |concurrency| concurrency.peak);
        let facts = &observations.ending.client;
        let lag_at = |share| facts.loop_lag.quantile_ns_at_most(share).map(ns_to_ms);
        let connections =
            || observations.records.iter().filter_map(|record| record.connection.as_ref());
        let opened: BTreeSet<u32> = connections().map(|connection| connection.ordinal).collect();
        let reused = connections().filter(|connection| connection.reused).count() as u64;
        let played_ns = observations
            .ending
            .began
            .and_then(|began| observations.ending.at.since(began))
            .map(|length| length.as_nanos() as f64)
            .filter(|length| 0.0 < *length);
        Self {
            drivers: facts.drivers,
            cores_used: facts.cpu.zip(played_ns).map(|(cpu, ns)| cpu.process_ns as f64 / ns),
            cpu_stolen: facts.cpu.and_then(|cpu| share(cpu.stolen_ticks, cpu.ticks)),
            kernel_stamps,
            capacity: ClientCapacity::of(
                observations,
                streams,
                kernel_stamps.is_some_and(|share| STAMPED_SHARE <= share),
            ),
            clock_error_us_max: facts.mapping.map(|mapping| mapping.error_ns_max as f64 / 1e3),
            clock_jumps: facts.mapping.map(|mapping| mapping.jumps),
            loop_lag_ms: LoopLag {
                p50_at_most: lag_at(0.50),
                p99_at_most: lag_at(0.99),
                max: (0 < facts.loop_lag.count()).then(|| ns_to_ms(facts.loop_lag.max_ns)),
            },
            journal_waits: facts.journal_waits,
            connections_opened: opened.len() as u64,
            connections_reused: share(reused, connections().count() as u64),
        }
    }
}

/// `part / whole`, or `None` of nothing.
pub(crate) fn share(part: u64, whole: u64) -> Option<f64> {
    (0 < whole).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use inferometer_model::journal::{ClockMapping, LagHistogram};

    use super::*;
    use crate::fixture::{Given, run};

    fn health(observations: &Observations) -> ClientHealth {
        ClientHealth::of(observations, &Measured::from_observations(observations))
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
}
