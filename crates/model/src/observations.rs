//! A whole run, as read back: what was asked, and all that happened. The sums are checked here.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strum::VariantArray;

use crate::journal::{NotSent, RunEnding};
use crate::outcome::{Cause, Outcome};
use crate::plan::{Bounds, Fingerprints};
use crate::records::{RecordFile, Records};
use crate::stripe::{MergeFacts, StripeFacts};
use crate::system::ServerFacts;
use crate::telemetry::{Absence, Machines, Telemetry};
use crate::{BaseUrl, Environment, RequestId, RequestRecord, Spec};

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
    pub materials: Materials,
    pub endpoint: Endpoint,
    /// What was sent before the run to warm the server up; `None` when nothing was.
    pub warm_up: Option<WarmUpFacts>,
    /// An earlier run that may have sent the same prompts to this server, as far as the store knows.
    pub seen_before: Option<String>,
    /// How fast and exact this client is on this machine; `None` when it was not measured.
    pub calibration: Option<CalibrationFacts>,
    pub environment: Environment,
    /// The server and its machine, as far as known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerFacts>,
    /// What answered, where no server did: the run happened in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Simulated>,
    /// Which share of the plan this is; absent where one client plays all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripe: Option<StripeFacts>,
    /// The workers whose runs were merged into this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<MergeFacts>,
}

/// The engine of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Simulated {
    pub profile: String,
    /// How it was set, in words for the reader.
    pub engine: String,
    /// How far its figures may be from those of a server; `None` where its coefficients were not fitted
    /// to a measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_error: Option<ModelError>,
    /// What a learned profile says of its own predictions; `None` of any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<Prediction>,
}

/// How far the predictions of a learned profile reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Half-widths of intervals that contain the figure of a server with 95 % confidence, as shares:
    /// 0.1 is from the value over 1.1 to the value times 1.1.
    pub half_width: ModelError,
    /// Most requests that were seen in one step; `None` where the server allows no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<u32>,
    /// Longest prompt that was seen.
    pub prompt: u32,
    /// Longest prompt with its answer that was seen.
    pub context: u32,
}

/// The largest errors of a profile in measured rows that its fit had not seen, as shares of what was
/// measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelError {
    pub output_throughput: Option<f64>,
    pub ttft: Option<f64>,
    pub tpot: Option<f64>,
}

impl ModelError {
    /// The largest of them.
    pub fn worst(&self) -> Option<f64> {
        let all = [self.output_throughput, self.ttft, self.tpot];
        all.into_iter().flatten().reduce(f64::max)
    }
}

/// What a workload was made from: facts about files and counting that the spec only names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Materials {
    pub tokenizer: Option<TokenizerFacts>,
    pub files: Vec<FileFacts>,
    pub input_length: InputLength,
    /// What was done to the data, in words for the reader.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenizerFacts {
    /// As it was asked for, without folders.
    pub name: String,
    /// SHA-256 of `tokenizer.json`; where the chat template is counted or special tokens are
    /// distinguished, of that file and of these.
    pub sha256: String,
}

/// A file that prompts or moments came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFacts {
    /// Its name without its folder.
    pub name: String,
    pub kind: String,
    pub sha256: String,
    pub items: u64,
    /// Items that were left out, by the reason.
    pub dropped: BTreeMap<String, u64>,
}

/// Whether a prompt's length is exact or an estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputLength {
    /// Counted with the model's tokenizer.
    Exact,
    /// By words, as if each were a token.
    #[default]
    Estimated,
    /// By words, corrected by the server's usage.
    Corrected(Correction),
}

/// How a server counts a prompt of ours: `tokens = overhead + tokens_per_word * words`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Correction {
    pub tokens_per_word: f64,
    pub overhead_tokens: f64,
}

impl Correction {
    /// A token for a word, and nothing besides: what an estimate takes for granted.
    pub const NONE: Self = Self { tokens_per_word: 1.0, overhead_tokens: 0.0 };
}

/// What a calibration of this client had found when a run began: facts for the run's verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalibrationFacts {
    /// RFC 3339, UTC.
    pub when: String,
    /// Threads that drove the load then.
    pub drivers: u32,
    /// The most that the client was seen to carry.
    pub requests_per_s: f64,
    pub events_per_s: f64,
    /// How far off the client was, by the number of streams in flight.
    pub errors: Vec<ErrorFacts>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorFacts {
    pub streams: u32,
    pub kernel_stamps: bool,
    pub ttft_ms_p50: f64,
    pub ttft_ms_p99: f64,
    pub itl_ms_p50: f64,
    pub itl_ms_p99: f64,
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
    pub connections: Connections,
    pub pinned: PinnedOutput,
    /// Whether the server is the embedded engine, started by us.
    pub embedded: bool,
}

/// What makes a server go on until an answer has its length, as far as it was asked to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedOutput {
    pub ignore_eos: bool,
    pub min_tokens: bool,
}

/// What happened in the warm-up. Its requests are in no other number of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUpFacts {
    pub requests: u64,
    pub ok: u64,
    pub failed: u64,
    /// From the first request to the end of the last.
    pub took: Duration,
}

/// Whether a connection carries one request after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// Whichever is idle is taken, the most recently used first.
    Reuse,
    /// A fresh one for each request.
    #[serde(alias = "fresh")]
    New,
    /// Each slot, as each user behind it, has its own and keeps it.
    PerUser,
}

/// The protocol on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpVersion {
    #[default]
    Http1,
    /// Requests share connections.
    Http2,
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

/// All that is known of a run. Exists only when its sums hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Observations {
    pub manifest: Manifest,
    /// CRC-32C of the file that it was read from; `None` of a run that is not stored.
    pub manifest_checksum: Option<u32>,
    pub records: Records,
    pub not_sent: Vec<NotSent>,
    pub ending: RunEnding,
    /// What the server reported about itself during the run.
    pub telemetry: Telemetry,
    /// The same of its other sources, by their number in the spec.
    pub more_telemetry: BTreeMap<u16, Telemetry>,
    /// What machines reported during the run.
    pub machines: Machines,
}

/// A request that is counted twice or not at all is a bug of ours, never a figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SumError {
    #[error("request {0} has two endings")]
    EndedTwice(RequestId),
    #[error("request {0} is both attempted and not sent")]
    BothWays(RequestId),
    #[error("{scheduled} requests scheduled, but {attempted} attempted and {not_sent} not sent")]
    Scheduled { scheduled: u64, attempted: u64, not_sent: u64 },
    #[error("request {0} is not in the plan")]
    OutsidePlan(RequestId),
    #[error("a record says `not_sent`, which only the dispatcher may say (request {0})")]
    NotSentRecord(RequestId),
}

impl Observations {
    /// Puts a run together and checks that every scheduled request ends exactly once. Its telemetry
    /// comes from elsewhere, and no sum depends on it.
    pub fn new(
        manifest: Manifest,
        mut records: Vec<RequestRecord>,
        not_sent: Vec<NotSent>,
        ending: RunEnding,
    ) -> Result<Self, SumError> {
        let is_not_sent = |record: &&RequestRecord| record.ending.outcome == Outcome::NotSent;
        if let Some(record) = records.iter().find(is_not_sent) {
            return Err(SumError::NotSentRecord(record.id));
        }
        records.sort_by_key(|record| record.id);
        check_sums(&manifest.bounds, records.iter().map(|record| record.id), &not_sent)?;
        Ok(Self::unchecked(manifest, Records::Held(records), not_sent, ending))
    }

    /// The same with records that stay in their file; `ids` are theirs, in their order, and none of them
    /// says `not_sent`.
    pub fn with_file(
        manifest: Manifest,
        (file, ids): (Arc<dyn RecordFile>, impl Iterator<Item = RequestId>),
        not_sent: Vec<NotSent>,
        ending: RunEnding,
    ) -> Result<Self, SumError> {
        check_sums(&manifest.bounds, ids, &not_sent)?;
        Ok(Self::unchecked(manifest, Records::Stored(file), not_sent, ending))
    }

    fn unchecked(
        manifest: Manifest,
        records: Records,
        not_sent: Vec<NotSent>,
        ending: RunEnding,
    ) -> Self {
        let telemetry = Telemetry::Absent(Absence::NotAsked);
        let machines = Machines::default();
        Self {
            manifest,
            manifest_checksum: None,
            records,
            not_sent,
            ending,
            telemetry,
            more_telemetry: BTreeMap::new(),
            machines,
        }
    }

    pub fn not_sent_count(&self) -> u64 {
        self.not_sent.iter().map(|part| part.count).sum()
    }

    /// Requests that were not sent for one reason.
    pub fn not_sent_because(&self, cause: Cause) -> u64 {
        let parts = self.not_sent.iter().filter(|part| part.cause == cause);
        parts.map(|part| part.count).sum()
    }

    /// `attempted + not_sent`; the constructor has compared it with the plan.
    pub fn scheduled_count(&self) -> u64 {
        self.records.len() as u64 + self.not_sent_count()
    }

    /// How many requests ended in each outcome, zeroes included.
    pub fn outcome_counts(&self) -> BTreeMap<Outcome, u64> {
        let mut counts: BTreeMap<Outcome, u64> =
            Outcome::all().map(|outcome| (outcome, 0)).collect();
        for record in &self.records {
            *counts.entry(record.ending.outcome).or_default() += 1;
        }
        counts.insert(Outcome::NotSent, self.not_sent_count());
        counts
    }
}

/// `scheduled = attempted + not_sent`, and no request is counted twice or lies outside the plan. The ids
/// of the records rise.
pub fn check_sums(
    bounds: &Bounds,
    ids: impl Iterator<Item = RequestId>,
    not_sent: &[NotSent],
) -> Result<(), SumError> {
    let mut parts: Vec<(u64, u64, bool)> =
        not_sent.iter().map(|part| (part.first.0, part.count, false)).collect();
    parts.sort_unstable();
    let mut parts = parts.into_iter().peekable();
    let mut ids = ids.map(|id| (id.0, 1, true)).peekable();
    let spans = std::iter::from_fn(|| match (parts.peek(), ids.peek()) {
        (Some(part), Some(id)) if id < part => ids.next(),
        (None, _) => ids.next(),
        (Some(_), _) => parts.next(),
    });
    let (mut free_from, mut covered, mut attempted) = (0_u64, 0_u64, 0_u64);
    for (first, count, is_attempt) in spans {
        if first < free_from {
            let id = RequestId(first);
            return Err(if is_attempt { SumError::EndedTwice(id) } else { SumError::BothWays(id) });
        }
        free_from = first.checked_add(count).ok_or(SumError::OutsidePlan(RequestId(first)))?;
        covered += count;
        attempted += u64::from(is_attempt);
    }
    // A closed loop by time schedules what it releases beyond its least number: there is no other
    // number to compare with, but its ids have no holes.
    let scheduled = bounds.requests.unwrap_or(free_from.max(bounds.scheduled_min()));
    if scheduled < free_from {
        return Err(SumError::OutsidePlan(RequestId(free_from - 1)));
    }
    if scheduled == covered {
        Ok(())
    } else {
        Err(SumError::Scheduled { scheduled, attempted, not_sent: covered - attempted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Moment;
    use crate::outcome::Cause;

    fn part(first: u64, count: u64) -> NotSent {
        NotSent { first: RequestId(first), count, cause: Cause::RunStopped, at: Moment::ZERO }
    }

    fn check(requests: Option<u64>, ids: &[u64], not_sent: &[NotSent]) -> Result<(), SumError> {
        let bounds = Bounds { requests, release_before: None, requests_min: 0, slots: None };
        check_bounds(&bounds, ids, not_sent)
    }

    fn check_bounds(bounds: &Bounds, ids: &[u64], not_sent: &[NotSent]) -> Result<(), SumError> {
        check_sums(bounds, ids.iter().copied().map(RequestId), not_sent)
    }

    #[test]
    fn sums_hold_when_every_request_ends_exactly_once() {
        assert_eq!(check(Some(5), &[0, 1, 4], &[part(2, 2)]), Ok(()));
        assert_eq!(check(None, &[0, 1, 2], &[]), Ok(()));
        assert_eq!(check(Some(0), &[], &[]), Ok(()));
    }

    #[test]
    fn a_least_number_must_be_accounted_for_and_may_be_passed() {
        let end = Some(Moment::from_nanos(5));
        let bounds = Bounds { requests: None, release_before: end, requests_min: 3, slots: None };
        assert_eq!(check_bounds(&bounds, &[0, 1, 2], &[]), Ok(()));
        assert_eq!(check_bounds(&bounds, &[0, 1, 2, 3, 4], &[]), Ok(()), "the time was longer");
        assert_eq!(check_bounds(&bounds, &[0], &[part(1, 2)]), Ok(()), "stopped");
        assert_eq!(
            check_bounds(&bounds, &[0, 1], &[]),
            Err(SumError::Scheduled { scheduled: 3, attempted: 2, not_sent: 0 })
        );
        assert_eq!(
            check_bounds(&bounds, &[0, 1, 2, 4], &[]),
            Err(SumError::Scheduled { scheduled: 5, attempted: 4, not_sent: 0 })
        );
    }

    #[test]
    fn every_way_to_count_wrong_is_named() {
        let id = RequestId;
        let lost = |scheduled, attempted, not_sent| {
            Err(SumError::Scheduled { scheduled, attempted, not_sent })
        };
        assert_eq!(check(Some(3), &[0, 1], &[]), lost(3, 2, 0));
        assert_eq!(check(None, &[0, 2], &[]), lost(3, 2, 0));
        assert_eq!(check(Some(3), &[0, 1, 1], &[]), Err(SumError::EndedTwice(id(1))));
        assert_eq!(
            check(Some(3), &[0, 1], &[part(0, 1), part(2, 1)]),
            Err(SumError::EndedTwice(id(0)))
        );
        assert_eq!(check(Some(3), &[], &[part(0, 2), part(1, 2)]), Err(SumError::BothWays(id(1))));
        assert_eq!(check(Some(2), &[0, 1, 2], &[]), Err(SumError::OutsidePlan(id(2))));
        assert_eq!(
            check(None, &[], &[part(u64::MAX, 2)]),
            Err(SumError::OutsidePlan(id(u64::MAX)))
        );
    }
}
