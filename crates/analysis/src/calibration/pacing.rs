//! When the requests of an open loop left, against when they should have.

use inferometer_model::{Moment, Outcome, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::client::share;
use crate::sample::{Percentile, Sample};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PacingRow {
    /// The rate that was asked for.
    pub rate_per_s: f64,
    /// All requests of the plan.
    pub requests: u64,
    /// Those that this machine could not hold in flight.
    pub not_sent: u64,
    /// Share of all that ended `ok`.
    pub success: Option<f64>,
    /// The rate that the plan drew: of a few seconds of Poisson arrivals, not quite the asked one.
    pub planned_per_s: Option<f64>,
    pub sent_per_s: Option<f64>,
    pub delay_ms: Option<SendDelay>,
    /// Standard deviation over mean of the gaps between planned moments; 1 for Poisson arrivals.
    pub planned_gap_cv: Option<f64>,
    /// The same of the moments at which requests really left.
    pub sent_gap_cv: Option<f64>,
}

/// Sent less intended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendDelay {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

impl PacingRow {
    /// `records` are all of an open loop at `rate_per_s`, besides those that were not sent.
    pub fn of(rate_per_s: f64, records: &[RequestRecord], not_sent: u64) -> Self {
        let requests = records.len() as u64 + not_sent;
        let ok = records.iter().filter(|record| record.ending.outcome == Outcome::Ok).count();
        let departures =
            || records.iter().filter_map(|record| record.sent.map(|sent| (record.intended, sent)));
        let delays = departures().map(|(intended, sent)| sent.nanos_after(intended) as f64 / 1e6);
        let planned = Gaps::between(records.iter().map(|record| record.intended));
        let sent = Gaps::between(departures().map(|(_, sent)| sent));
        Self {
            rate_per_s,
            requests,
            not_sent,
            success: share(ok as u64, requests),
            planned_per_s: planned.as_ref().and_then(Gaps::per_second),
            sent_per_s: sent.as_ref().and_then(Gaps::per_second),
            delay_ms: Sample::new(delays.collect()).map(|sample| SendDelay {
                p50: sample.percentile(Percentile::P50),
                p99: sample.percentile(Percentile::P99),
                max: sample.max(),
            }),
            planned_gap_cv: planned.as_ref().and_then(Gaps::coefficient_of_variation),
            sent_gap_cv: sent.as_ref().and_then(Gaps::coefficient_of_variation),
        }
    }
}

/// Gaps between moments, in nanoseconds.
struct Gaps(Sample);

impl Gaps {
    fn between(moments: impl Iterator<Item = Moment>) -> Option<Self> {
        let mut moments: Vec<Moment> = moments.collect();
        moments.sort_unstable();
        let gaps = moments.windows(2).map(|pair| pair[1].nanos_after(pair[0]) as f64);
        Sample::new(gaps.collect()).map(Self)
    }

    fn per_second(&self) -> Option<f64> {
        let mean = self.0.mean();
        (0.0 < mean).then(|| 1e9 / mean)
    }

    fn coefficient_of_variation(&self) -> Option<f64> {
        let mean = self.0.mean();
        (0.0 < mean).then(|| self.0.std_population() / mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Given;

    #[test]
    fn delays_and_gaps_are_of_what_was_sent() {
        let left = |id, intended, sent| Given::ok(id).moments(intended, intended, sent).record();
        let mut never_sent = left(3, 40, 40);
        never_sent.sent = None;
        never_sent.ending.outcome = Outcome::TransportError;
        let records = [left(0, 10, 11), left(1, 20, 21), left(2, 30, 35), never_sent];
        let row = PacingRow::of(100.0, &records, 2);
        assert_eq!((row.requests, row.not_sent, row.success), (6, 2, Some(0.5)));
        let delay = row.delay_ms.unwrap();
        assert!((delay.p50 - 1.0).abs() < 1e-9 && (delay.max - 5.0).abs() < 1e-9);
        assert_eq!(row.planned_per_s, Some(100.0));
        assert_eq!(row.planned_gap_cv, Some(0.0), "evenly planned");
        // Gaps of 10 and 14: mean 12, deviation 2.
        assert!((row.sent_per_s.unwrap() - 1e3 / 12.0).abs() < 1e-9);
        assert!((row.sent_gap_cv.unwrap() - 2.0 / 12.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_sent_has_no_delay() {
        let row = PacingRow::of(100.0, &[], 0);
        assert_eq!((row.delay_ms, row.sent_per_s, row.sent_gap_cv), (None, None, None));
        let one = PacingRow::of(100.0, &[Given::ok(0).moments(5, 5, 5).record()], 0);
        assert!(one.delay_ms.is_some() && one.sent_gap_cv.is_none());
    }
}
