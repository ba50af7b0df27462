//! The health of the client, as it observed it itself, and the share of its calibrated capacity that the
//! load used. Lags per request are metrics.

use inferometer_model::journal::Dialling;
use inferometer_model::observations::{CalibrationFacts, HttpVersion, Manifest};
use inferometer_model::record::Read;
use inferometer_model::stripe::WorkerFacts;
use inferometer_model::{Moment, Observations};
use serde::{Deserialize, Serialize};

use crate::record::{Measured, ns_to_ms};
use crate::statistics::{Percentile, Sample};

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
    /// Entries for which a driver waited, because the journal's queue was full.
    pub journal_waits: u64,
    /// CPU seconds of this process per second of the run; null where the system does not report them.
    pub cores_used: Option<f64>,
    /// Share of its busiest second that the busiest driver spent computing; null where it was not measured.
    pub driver_busy: Option<f64>,
    /// Share of the machine's CPU time that its host gave to others; null likewise.
    pub cpu_stolen: Option<f64>,
    pub connections_opened: u64,
    /// This load against the client's calibration; null without one.
    pub capacity: Option<ClientCapacity>,
    /// Share of the requests with a connection that found it open; null when none had one.
    pub connections_reused: Option<f64>,
    /// Connections that were opened before the first request; null where each request opened its own.
    pub dialling: Option<DiallingFigures>,
    /// How far the times of different workers may be apart; null on one client, and where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks_apart_ms: Option<f64>,
    /// The workers whose runs were merged; empty on one client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerFigures>,
}

/// What one worker of a merged run did, and how well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerFigures {
    /// Such as `0/4`, for the first of four.
    pub stripe: String,
    /// Its machine; null where it has no run.
    pub host: Option<String>,
    /// Why it did not play its whole share; null if it did.
    pub loss: Option<String>,
    /// How long after the agreed start it began; null in time.
    pub late_s: Option<f64>,
    pub attempted: u64,
    pub not_sent: u64,
    pub loop_lag_ms_p99_at_most: Option<f64>,
    pub driver_busy: Option<f64>,
    /// How far its clock may be from the true time; null where that is not known.
    pub clock_error_ms: Option<f64>,
}

impl WorkerFigures {
    fn new(worker: &WorkerFacts) -> Self {
        let run = worker.run.as_ref();
        Self {
            stripe: worker.stripe.to_string(),
            host: run.map(|run| run.host.name.clone()),
            loss: worker.loss().map(str::to_owned),
            late_s: run.and_then(|run| run.late_ns).map(|late| ns_to_ms(late) / 1e3),
            attempted: run.map_or(0, |run| run.attempted),
            not_sent: run.map_or(0, |run| run.not_sent),
            loop_lag_ms_p99_at_most: run
                .and_then(|run| run.loop_lag.quantile_ns_at_most(0.99))
                .map(ns_to_ms),
            driver_busy: run.and_then(|run| run.driver_cpu_us).map(|used| f64::from(used) / 1e6),
            clock_error_ms: run.and_then(|run| run.host.error_ns).map(ns_to_ms),
        }
    }
}

/// Connections that were opened before the first request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiallingFigures {
    /// Connections that the load needs from its first moment on.
    pub wanted: u32,
    pub opened: u64,
    pub failed: u32,
    /// The most frequent reason of a failure; null when none failed.
    pub failure: Option<String>,
    /// From the first attempt to the last connection.
    pub took_ms: f64,
    /// Time to open a connection, TLS included; null when none was opened.
    pub connect_ms_p50: Option<f64>,
    pub connect_ms_p99: Option<f64>,
}

impl DiallingFigures {
    pub fn new(dialling: &Dialling) -> Self {
        let connect_ms = dialling.connect_ns.iter().copied().map(ns_to_ms).collect();
        let connect_ms = Sample::new(connect_ms);
        let at = |percentile| connect_ms.as_ref().map(|sample| sample.percentile(percentile));
        let most = dialling.failures.iter().max_by_key(|failure| failure.count);
        Self {
            wanted: dialling.wanted,
            opened: dialling.connect_ns.len() as u64,
            failed: dialling.failed(),
            failure: most.map(|failure| match failure.cause {
                Some(cause) => cause.text().to_owned(),
                None => failure.outcome.to_string(),
            }),
            took_ms: ns_to_ms(dialling.took_ns),
            connect_ms_p50: at(Percentile::P50),
            connect_ms_p99: at(Percentile::P99),
        }
    }
}

/// Below this share the errors of a client without kernel timestamps apply.
const STAMPED_SHARE: f64 = 0.99;

/// How late the driver's loop woke. The quantiles are upper limits; null when none was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopLag {
    pub p50_at_most: Option<f64>,
    pub p99_at_most: Option<f64>,
    pub max: Option<f64>,
}

impl ClientHealth {
    pub(crate) fn from_observations(observations: &Observations, measured: &Measured) -> Self {
        let anomalies = &measured.anomalies;
        let kernel_stamps = share(anomalies.reads_stamped, anomalies.reads);
        let streams = measured.concurrency.map_or(0, |concurrency| concurrency.peak);
        let facts = &observations.ending.client;
        let merged = observations.manifest.merged.as_ref();
        let lag_at = |share| facts.loop_lag.quantile_ns_at_most(share).map(ns_to_ms);
        let played = observations.ending.began.and_then(|it| observations.ending.at.since(it));
        let played_ns = played.map(|length| length.as_nanos() as f64).filter(|ns| 0.0 < *ns);
        Self {
            drivers: facts.drivers,
            cores_used: facts.cpu.zip(played_ns).map(|(cpu, ns)| cpu.process_ns as f64 / ns),
            driver_busy: facts.driver_cpu_us.map(|used_us| f64::from(used_us) / 1e6),
            cpu_stolen: facts.cpu.and_then(|cpu| share(cpu.stolen_ticks, cpu.ticks)),
            kernel_stamps,
            capacity: ClientCapacity::from_observations(
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
            connections_opened: anomalies.connections.len() as u64,
            connections_reused: share(anomalies.reused, anomalies.connected),
            dialling: facts.dialling.as_ref().map(DiallingFigures::new),
            clocks_apart_ms: merged.and_then(|merged| merged.clock_error_ns).map(ns_to_ms),
            workers: merged
                .map_or_else(Vec::new, |it| it.workers.iter().map(WorkerFigures::new).collect()),
        }
    }
}

/// `part / whole`, or `None` if `whole` is zero.
pub(crate) fn share(part: u64, whole: u64) -> Option<f64> {
    (0 < whole).then(|| part as f64 / whole as f64)
}

/// The load of a run against the calibration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientCapacity {
    /// When the client was calibrated.
    pub calibrated: String,
    /// Share of the client's capacity in the busiest second: above one, the client was the limit.
    pub used: f64,
    /// The client's error with this many streams in flight; null beyond what was calibrated.
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

/// Whether the client's calibration is valid for the connections of a run: TLS and HTTP/2 cost more than
/// what was calibrated.
pub(crate) fn is_calibrated_wire(manifest: &Manifest) -> bool {
    !manifest.endpoint.base.tls && manifest.spec.client.http == HttpVersion::Http1
}

/// The load of a run on the client.
#[derive(Clone, Copy)]
struct ClientLoad {
    requests_per_s: f64,
    events_per_s: f64,
    streams: u64,
    kernel_stamps: bool,
    drivers: u32,
}

impl ClientCapacity {
    /// `None` when this client was not calibrated, or not for such a wire.
    fn from_observations(
        observations: &Observations,
        streams: u64,
        kernel_stamps: bool,
    ) -> Option<Self> {
        let manifest = &observations.manifest;
        let facts = manifest.calibration.as_ref().filter(|_| is_calibrated_wire(manifest))?;
        let records = || observations.records.iter();
        let events = records().flat_map(|record| {
            let reads = record.events.iter().map(|event| record.reads.get(event.read as usize));
            reads.filter_map(|read| read.map(Read::at)).collect::<Vec<Moment>>()
        });
        let load = ClientLoad {
            requests_per_s: busiest_second(observations, records().filter_map(|it| it.sent)),
            events_per_s: busiest_second(observations, events),
            streams,
            kernel_stamps,
            drivers: observations.ending.client.drivers,
        };
        Some(Self::look_up(facts, load))
    }

    fn look_up(facts: &CalibrationFacts, load: ClientLoad) -> Self {
        // Fewer threads carry less; whether more would carry more was not measured.
        let scale = (f64::from(load.drivers.max(1)) / f64::from(facts.drivers.max(1))).min(1.0);
        let of_requests = load.requests_per_s / (facts.requests_per_s * scale);
        let of_events = load.events_per_s / (facts.events_per_s * scale);
        let rows = facts.errors.iter().filter(|row| row.kernel_stamps == load.kernel_stamps);
        let enough = rows.filter(|row| load.streams <= u64::from(row.streams));
        Self {
            calibrated: facts.when.clone(),
            used: of_requests.max(of_events),
            error_ms: enough.min_by_key(|row| row.streams).map(|row| ClientError {
                ttft_p50: row.ttft_ms_p50,
                ttft_p99: row.ttft_ms_p99,
                itl_p50: row.itl_ms_p50,
                itl_p99: row.itl_ms_p99,
            }),
        }
    }
}

/// The highest number in a second. A run shorter than a second is one part.
fn busiest_second(observations: &Observations, moments: impl Iterator<Item = Moment>) -> f64 {
    const SECOND_NS: u64 = 1_000_000_000;
    // A year of seconds; times beyond it are corrupt.
    const SECONDS_MAX: usize = 366 * 24 * 3_600;
    let began = observations.ending.began.unwrap_or_default();
    let mut seconds: Vec<u64> = Vec::new();
    let since_ns = |at: Moment| at.as_nanos().saturating_sub(began.as_nanos());
    let second = |at| usize::try_from(since_ns(at) / SECOND_NS).unwrap_or(usize::MAX);
    for second in moments.map(second).filter(|second| *second < SECONDS_MAX) {
        seconds.resize(seconds.len().max(second + 1), 0);
        seconds[second] += 1;
    }
    let length_s = observations.ending.at.since(began).map_or(1.0, |length| length.as_secs_f64());
    let most = seconds.into_iter().max().unwrap_or(0);
    if 0.0 < length_s { most as f64 / length_s.min(1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests;
