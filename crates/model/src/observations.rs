//! A whole run, as read back: what was asked, and all that happened. The sums are checked here.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::journal::RunEnding;
use crate::outcome::{Cause, Outcome};
use crate::plan::{Bounds, Fingerprints};
use crate::{BaseUrl, Environment, Moment, RequestId, RequestRecord, Spec};

/// Written first, before a request leaves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    pub run: String,
    /// RFC 3339, UTC: the wall time at the run's zero. Durations never use it.
    pub started: String,
    pub clock: ClockAnchor,
    pub spec: Spec,
    pub bounds: Bounds,
    pub fingerprints: Fingerprints,
    pub endpoint: Endpoint,
    pub environment: Environment,
}

/// Where the run's zero lies on the machine's clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockAnchor {
    pub monotonic_ns: u64,
    pub realtime_ns: u64,
}

/// What was found before the run began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    pub base: BaseUrl,
    /// The address that every connection of the run is pinned to.
    pub address: SocketAddr,
    pub model: String,
    pub usage: UsageAsk,
    /// Whether the server is the embedded engine, started by us.
    pub embedded: bool,
}

/// What can be asked of the server about token counts, found by a probe: some servers refuse
/// fields that they do not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageAsk {
    /// Usage on every chunk: the tokens of each event are known.
    Continuous,
    /// Usage at the end.
    Final,
    /// The field itself is refused.
    None,
}

/// A run of requests that were scheduled and never attempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotSent {
    pub first: RequestId,
    pub count: u64,
    pub cause: Cause,
    pub at: Moment,
}

/// All that is known of a run. Exists only when its sums hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Observations {
    pub manifest: Manifest,
    /// In the order of their ids.
    pub records: Vec<RequestRecord>,
    pub not_sent: Vec<NotSent>,
    pub ending: RunEnding,
}

/// A request that is counted twice or not at all is a bug of ours, never a figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SumError {
    #[error("request {0} has two endings")]
    EndedTwice(RequestId),
    #[error("request {0} is both attempted and not sent")]
    BothWays(RequestId),
    #[error(
        "{scheduled} requests were scheduled, but {attempted} attempted and {not_sent} not sent"
    )]
    Scheduled { scheduled: u64, attempted: u64, not_sent: u64 },
    #[error("a record says `not_sent`, which only the dispatcher may say (request {0})")]
    NotSentRecord(RequestId),
}

impl Observations {
    /// Puts a run together and checks that every scheduled request ends exactly once.
    pub fn new(
        manifest: Manifest,
        mut records: Vec<RequestRecord>,
        not_sent: Vec<NotSent>,
        ending: RunEnding,
    ) -> Result<Self, SumError> {
        records.sort_by_key(|record| record.id);
        check_sums(&manifest.bounds, &records, &not_sent)?;
        Ok(Self { manifest, records, not_sent, ending })
    }

    pub fn not_sent_count(&self) -> u64 {
        self.not_sent.iter().map(|part| part.count).sum()
    }

    /// `attempted + not_sent`; the constructor has compared it with the plan.
    pub fn scheduled_count(&self) -> u64 {
        self.records.len() as u64 + self.not_sent_count()
    }

    /// How many requests ended in each outcome, zeroes included.
    pub fn outcome_counts(&self) -> BTreeMap<Outcome, u64> {
        let mut counts: BTreeMap<Outcome, u64> =
            Outcome::ALL.into_iter().map(|outcome| (outcome, 0)).collect();
        for record in &self.records {
            *counts.entry(record.ending.outcome).or_default() += 1;
        }
        counts.insert(Outcome::NotSent, self.not_sent_count());
        counts
    }
}

fn check_sums(
    bounds: &Bounds,
    records: &[RequestRecord],
    not_sent: &[NotSent],
) -> Result<(), SumError> {
    for pair in records.windows(2) {
        if pair[0].id == pair[1].id {
            return Err(SumError::EndedTwice(pair[0].id));
        }
    }
    for record in records {
        if record.ending.outcome == Outcome::NotSent {
            return Err(SumError::NotSentRecord(record.id));
        }
        let id = record.id.0;
        if not_sent.iter().any(|part| part.first.0 <= id && id - part.first.0 < part.count) {
            return Err(SumError::BothWays(record.id));
        }
    }
    let attempted = records.len() as u64;
    let not_sent: u64 = not_sent.iter().map(|part| part.count).sum();
    // A closed loop by time schedules what it releases: its plan has no number to compare with,
    // but then ids have no holes.
    let last = records.last().map_or(0, |record| record.id.0 + 1);
    let scheduled = bounds.requests.unwrap_or_else(|| last.max(attempted + not_sent));
    if scheduled == attempted + not_sent {
        Ok(())
    } else {
        Err(SumError::Scheduled { scheduled, attempted, not_sent })
    }
}
