//! Little's law, N = X·R, as a check that can fail: requests in flight are the arrival rate times the time
//! that each stays.
//!
//! N is a sweep over all beginnings and ends in the run. X counts every request that was sent or lost, and
//! R is how long each stayed. Both come from the timestamps of the same records, so the law holds by
//! arithmetic for sound records. It detects records that are not:
//!
//! - requests that have no recorded end (a recovered run): they are in X, and not in N;
//! - a request that ends before it begins: the sweep cannot include it;
//! - records outside the beginning and end of the run: the sweep leaves that part out.
//!
//! It detects neither a wrong timestamp nor a request that was not recorded. The independent evidence
//! is the server: its gauges of running and waiting requests are compared with N.

use inferometer_model::outcome::Cause;
use inferometer_model::{Moment, Observations, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::record::{Columns, Concurrency, Flight};
use crate::server::ServerSide;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LittlesLaw {
    /// N: on average over the run, from its beginning to its end.
    pub in_flight: Option<f64>,
    /// X: requests that left, and those that were lost.
    pub arrivals_per_s: Option<f64>,
    /// R: on average, from the first byte sent to the ending.
    pub time_in_flight_s: Option<f64>,
    /// N less X·R, as a share of X·R.
    pub apart: Option<f64>,
    /// Requests that were started and have no recorded end.
    pub lost: u64,
    /// Running and waiting by the server's own gauges, on average over the scrapes inside the run.
    pub server_in_flight: Option<f64>,
    /// The server's number less N, as a share of N. Requests on the network are in no gauge.
    pub server_apart: Option<f64>,
    /// Number of scrapes of the gauges.
    #[serde(default)]
    pub server_scrapes: u64,
    /// Why there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Further apart than this, requests were lost or their records are inconsistent.
pub(crate) const LITTLE_APART: f64 = 0.02;
/// Share of N. Requests on the network are in no gauge, and engines differ in when they count a request.
const SERVER_APART: f64 = 0.25;
/// Requests: a gauge is a whole number.
const SERVER_APART_LEAST: f64 = 1.0;
/// Standard deviations of the mean of the scrapes, each about as uncertain as a count.
const SCRAPED_BY_CHANCE: f64 = 3.0;
/// Fewest scrapes for a mean over the run.
const TELLING_SCRAPES: u64 = 3;

impl LittlesLaw {
    /// Whether a request was started and has no recorded end.
    pub(crate) fn is_lost(record: &RequestRecord) -> bool {
        record.sent.is_none() && record.ending.cause == Some(Cause::RunCrashed)
    }

    pub(crate) fn new(
        observations: &Observations,
        columns: &Columns,
        lost: u64,
        server: Option<&ServerSide>,
    ) -> Self {
        let sent = columns.extremes().0.map(|(first, _)| first);
        let began = observations.ending.began.or(sent);
        let (from_ns, to_ns) =
            (began.map_or(u64::MAX, Moment::as_nanos), observations.ending.at.as_nanos());
        if to_ns <= from_ns {
            return Self::nothing("the run has no duration");
        }
        let stays = columns.flights().count() as u64;
        let arrivals = stays + columns.reversed() + lost;
        let stayed_ns: u128 =
            columns.flights().map(|flight| u128::from(flight.to_ns - flight.from_ns)).sum();
        let inside = columns.flights().filter_map(|it| it.within(Flight { from_ns, to_ns }));
        if stays == 0 {
            return Self { lost, ..Self::nothing("no request was in flight") };
        }
        let duration_s = (to_ns - from_ns) as f64 / 1e9;
        let mean_s = stayed_ns as f64 / 1e9 / stays as f64;
        let in_flight_s =
            Concurrency::sweep(inside).map_or(0.0, |swept| swept.request_ns as f64 / 1e9);
        let in_flight = in_flight_s / duration_s;
        let arrivals_per_s = arrivals as f64 / duration_s;
        // Waiting requests are in flight, too, so the server must report both. Each of several replicas
        // knows only its own.
        let gauges = server.filter(|server| server.restarts == 0 && server.replicas.is_none());
        let gauges = gauges.and_then(|server| server.running.zip(server.waiting));
        let gauges = gauges.filter(|(running, _)| TELLING_SCRAPES <= running.n);
        let server_in_flight = gauges.map(|(running, waiting)| running.mean + waiting.mean);
        let apart = |found: f64, of: f64| (0.0 < of).then(|| (found - of) / of);
        Self {
            in_flight: Some(in_flight),
            arrivals_per_s: Some(arrivals_per_s),
            time_in_flight_s: Some(mean_s),
            apart: apart(in_flight, arrivals_per_s * mean_s),
            lost,
            server_in_flight,
            server_apart: server_in_flight.and_then(|server| apart(server, in_flight)),
            server_scrapes: gauges.map_or(0, |(running, _)| running.n),
            reason: None,
        }
    }

    /// How far apart, where records do not explain it.
    pub(crate) fn broken(&self) -> Option<f64> {
        self.apart.filter(|share| LITTLE_APART < share.abs())
    }

    /// Requests in flight by the server and by us, where neither the network nor the few looks at its
    /// gauges explain how far they are apart.
    pub(crate) fn server_disagrees(&self) -> Option<(f64, f64)> {
        let (server, ours) = (self.server_in_flight?, self.in_flight?);
        let chance = SCRAPED_BY_CHANCE * (ours.max(server) / self.server_scrapes as f64).sqrt();
        let allowed = (SERVER_APART * ours).max(SERVER_APART_LEAST) + chance;
        (allowed < (server - ours).abs()).then_some((server, ours))
    }

    fn nothing(reason: &str) -> Self {
        Self { reason: Some(reason.to_owned()), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use inferometer_model::Outcome;

    use super::*;
    use crate::fixture::{Given, calm, ms, raised, run, sample};
    use crate::judge::Severity;
    use crate::record::Measured;

    fn law(observations: &Observations) -> LittlesLaw {
        Measured::from_observations(observations).littles_law
    }

    fn close(found: Option<f64>, expected: f64) {
        let found = found.unwrap();
        assert!((found - expected).abs() < 1e-9, "found {found}, expected {expected}");
    }

    #[test]
    fn both_sides_agree_where_every_record_makes_sense() {
        // 40 requests of 120 ms over 4.02 s.
        let found = law(&calm());
        close(found.in_flight, 40.0 * 0.120 / 4.02);
        close(found.arrivals_per_s, 40.0 / 4.02);
        close(found.time_in_flight_s, 0.120);
        close(found.apart, 0.0);
        assert_eq!((found.lost, found.broken()), (0, None));
    }

    #[test]
    fn requests_that_were_lost_show() {
        let mut observations = calm();
        for record in observations.records.held_mut().iter_mut().take(4) {
            record.sent = None;
            record.ending.outcome = Outcome::Cancelled;
            record.ending.cause = Some(Cause::RunCrashed);
        }
        let found = law(&observations);
        assert_eq!(found.lost, 4);
        close(found.broken(), -0.1);
    }

    #[test]
    fn a_request_that_ends_before_it_begins_shows() {
        let mut observations = calm();
        for record in observations.records.held_mut().iter_mut().skip(1).take(4) {
            record.ending.at = ms(record.ending.at.as_nanos() / 1_000_000 - 121);
        }
        assert!(law(&observations).broken().is_some_and(|apart| apart < -0.02));
    }

    #[test]
    fn records_outside_of_the_run_show() {
        let mut observations = calm();
        observations.ending.began = Some(ms(400));
        assert!(law(&observations).broken().is_some_and(|apart| apart < -0.02));
    }

    fn gauged(running: f64, waiting: f64) -> Observations {
        use inferometer_model::telemetry::{Gauges, Recording, Telemetry};
        let mut observations = calm();
        let at = |n: u64| {
            let mut sample = sample(ms(n * 200));
            sample.gauges =
                Gauges { running: Some(running), waiting: Some(waiting), ..Gauges::default() };
            sample
        };
        let samples = (0..20).map(at).collect();
        observations.telemetry =
            Telemetry::Recorded(Recording { samples, missed: Vec::new(), skipped: 0 });
        observations
    }

    #[test]
    fn the_servers_gauges_are_compared_where_they_are_there() {
        let found = crate::summarize(&gauged(1.0, 0.5)).littles_law;
        close(found.server_in_flight, 1.5);
        close(found.server_apart, 1.5 / (40.0 * 0.120 / 4.02) - 1.0);
        assert_eq!((found.server_scrapes, found.server_disagrees()), (20, None));
    }

    #[test]
    fn a_server_that_has_other_requests_in_flight_is_noted() {
        assert!(!raised(&gauged(1.0, 0.5)).iter().any(|(key, _)| *key == "server-in-flight"));
        let busy = gauged(3.0, 2.0);
        assert!(raised(&busy).contains(&("server-in-flight", Severity::Note)));
        let law = crate::summarize(&busy).littles_law;
        assert_eq!(law.broken(), None, "our own records are sound");
        close(law.server_disagrees().map(|(server, _)| server), 5.0);
        // One look at the gauges by chance falls into a rush.
        let seldom = LittlesLaw { server_scrapes: 1, ..law };
        assert_eq!(seldom.server_disagrees(), None);
    }

    #[test]
    fn nothing_in_flight_is_said_and_not_zero() {
        let found = law(&run(vec![]));
        assert_eq!((found.in_flight, found.apart), (None, None));
        assert!(found.reason.is_some());
        let mut unsent = run(vec![Given::failed(0, Outcome::TransportError).ends(90).record()]);
        unsent.records.held_mut()[0].sent = None;
        assert!(law(&unsent).reason.is_some());
    }
}
