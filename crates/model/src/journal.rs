//! What leaves the measuring path while a run goes on.

use serde::{Deserialize, Serialize};

use crate::outcome::Cause;
use crate::record::Asked;
use crate::{Moment, RequestId, RequestRecord};

/// One fact, in the order in which it became true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JournalEntry {
    Started(StartedRequest),
    Ended(Box<RequestRecord>),
    NotSent(NotSent),
    RunEnded(RunEnding),
}

/// A request that was handed to a connection; a crash after this leaves it `cancelled`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedRequest {
    pub id: RequestId,
    pub intended: Moment,
    pub admitted: Moment,
    pub asked: Asked,
}

/// Requests that were scheduled and never attempted: `count` of them, from `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotSent {
    pub first: RequestId,
    pub count: u64,
    pub cause: Cause,
    pub at: Moment,
}

/// How the run as a whole ended, and what the client knows of its own health.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnding {
    /// When the driver began to play the plan: its moments count from here. `None` when the run
    /// died before it could say so.
    pub began: Option<Moment>,
    pub at: Moment,
    pub stop: RunStop,
    pub client: ClientFacts,
}

/// The stored numbers are positions, so a new way to stop goes to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStop {
    /// The plan was played to its end.
    PlanDone,
    /// The user asked for the end; what was in flight finished or met the drain limit.
    Drained,
    /// The user asked twice, or the drain limit passed: what was in flight was cut.
    Cut,
    /// The server refused our key again and again; going on would only repeat it.
    Unauthorized,
    /// The run died and `recover` finished it.
    Recovered,
    /// No connection could be made again and again; going on would only fill the journal.
    Unreachable,
    /// This machine had no port, descriptor or memory left, again and again.
    ClientExhausted,
}

impl RunStop {
    /// Whether the plan was not played to its end.
    pub const fn is_partial(self) -> bool {
        !matches!(self, Self::PlanDone)
    }

    pub const fn text(self) -> &'static str {
        match self {
            Self::PlanDone => "the plan was played to its end",
            Self::Drained => "stopped on request, requests in flight were allowed to finish",
            Self::Cut => "stopped on request, requests in flight were cut",
            Self::Unauthorized => "stopped because the server refused the key",
            Self::Unreachable => "stopped because the server could not be reached any more",
            Self::ClientExhausted => "stopped because this machine ran out of ports or descriptors",
            Self::Recovered => "the run ended without sealing and was recovered from its journal",
        }
    }
}

/// The instrument's view of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientFacts {
    /// How the kernel's realtime stamps were mapped to the run's clock; `None` without stamps.
    pub mapping: Option<ClockMapping>,
    /// How late the driver's loop woke, from a regular tick.
    pub loop_lag: LagHistogram,
    /// Times the driver found the journal's queue full and had to wait.
    pub journal_waits: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockMapping {
    pub estimates: u64,
    /// The worst half-width of an estimate: stamps are off by at most this, between jumps.
    pub error_ns_max: u64,
    /// Jumps of the wall clock against the monotonic one.
    pub jumps: u64,
}

/// Counts in powers of two of a microsecond: bounded, mergeable, and exact enough for a lag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LagHistogram {
    /// `counts[i]` lags were below `2^i` µs and not below the previous limit.
    pub counts: Vec<u64>,
    pub max_ns: u64,
}

impl LagHistogram {
    const BUCKETS: usize = 32;

    pub fn add(&mut self, lag_ns: u64) {
        if self.counts.is_empty() {
            self.counts = vec![0; Self::BUCKETS];
        }
        let micros = lag_ns / 1_000;
        let bucket = (u64::BITS - micros.leading_zeros()) as usize;
        self.counts[bucket.min(Self::BUCKETS - 1)] += 1;
        self.max_ns = self.max_ns.max(lag_ns);
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// An upper limit of the share's quantile: no lag of that share was above it.
    pub fn quantile_ns_at_most(&self, share: f64) -> Option<u64> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count is a count"
        )]
        let wanted = (share * total as f64).ceil() as u64;
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen = u64::saturating_add(seen, *count);
            wanted <= seen
        })?;
        // A stored histogram may be longer than ours.
        let limit_us = u32::try_from(bucket).ok().and_then(|bucket| 1_u64.checked_shl(bucket));
        Some(limit_us.unwrap_or(u64::MAX).saturating_mul(1_000).min(self.max_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lag_quantile_never_understates() {
        let mut lags = LagHistogram::default();
        for lag in [500, 1_500, 3_000, 900_000] {
            lags.add(lag);
        }
        assert_eq!(lags.quantile_ns_at_most(0.25), Some(1_000));
        assert_eq!(lags.quantile_ns_at_most(0.5), Some(2_000));
        assert_eq!(lags.quantile_ns_at_most(1.0), Some(900_000));
        assert_eq!(LagHistogram::default().quantile_ns_at_most(0.5), None);
    }
}
