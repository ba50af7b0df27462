//! The summary of a run: the document that pages show, other programs read, and runs are compared
//! by. Its field names are its JSON keys, in this order.

use std::collections::BTreeMap;

use inferometer_model::outcome::Cause;
use inferometer_model::{Observations, Outcome};
use serde::{Deserialize, Serialize};

use crate::anatomy::Anatomy;
use crate::answers::AnswerFigures;
use crate::client::ClientHealth;
use crate::definitions::vllm::VllmResult;
use crate::figures::RunFigures;
use crate::judge::{
    Check, RequestSlos, RunContext, SloOutcome, Verdict, Warning, run_checks, run_warnings,
    slo_outcomes,
};
use crate::littles_law::LittlesLaw;
use crate::machines::MachineFigures;
use crate::metric::{LatencyOrigin, METRICS, MetricValues};
use crate::offered_load::{Delivered, HeldByCap};
use crate::prediction::widen;
use crate::record::{
    FailureGroup, Measured, PartFigures, RequestRates, Tokens, TurnFigures, Window, Withheld,
};
use crate::reports::ReportFigures;
use crate::run::{PlanFacts, RunFacts, SystemFacts, WorkloadFacts};
use crate::server::ServerSide;
use crate::sessions::SessionFigures;
use crate::steady::{SteadyState, headline};

/// The form of the document. Adding keys leaves it; changing what a key means raises it.
pub const SCHEMA: &str = "inferometer.summary/1";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub schema: String,
    pub run: RunFacts,
    pub verdict: Verdict,
    /// What the verdict follows from.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// The warnings of the checks that did not pass, the most severe first.
    pub warnings: Vec<Warning>,
    pub scheduled: u64,
    pub attempted: u64,
    /// Scheduled turns that were not due before the end of the run: not sent, and not failed.
    pub time_over: u64,
    /// What the cap of a capped-open load held back; null where there is none.
    pub held_by_cap: Option<HeldByCap>,
    /// Every outcome, zeroes included; they add up to `scheduled`.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// The largest groups first.
    pub failures: Vec<FailureGroup>,
    /// Requests in groups past the bound of `failures`.
    pub failures_not_listed: u64,
    pub finish_reasons: BTreeMap<String, u64>,
    pub workload: WorkloadFacts,
    pub plan: PlanFacts,
    pub tokens: Tokens,
    pub window: Window,
    /// Over `window`, the whole run.
    pub metrics: MetricValues,
    /// Why throughputs and latencies have no confidence intervals, where they have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals_withheld: Option<Withheld>,
    /// The same over the steady part of the run, where there is one.
    #[serde(default)]
    pub steady: SteadyState,
    /// The speed of single requests.
    #[serde(default)]
    pub request_rates: RequestRates,
    #[serde(default)]
    pub delivered: Delivered,
    #[serde(default)]
    pub littles_law: LittlesLaw,
    /// The SLOs about each request; null without any.
    pub request_slos: Option<RequestSlos>,
    /// The outcomes of the SLOs about the whole run.
    pub slos: Vec<SloOutcome>,
    /// Figures of whole sessions; absent where requests stand alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionFigures>,
    /// Figures of each turn of sessions; empty without them.
    pub turns: Vec<TurnFigures>,
    /// Figures of each part of a mix; empty without one.
    pub parts: Vec<PartFigures>,
    /// By the base URL that requests were sent to, where they were balanced over several; `part` is the
    /// URL.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<PartFigures>,
    pub client: ClientHealth,
    /// What it ran on, as far as known.
    #[serde(default)]
    pub system: SystemFacts,
    /// What the server's metrics report; null without them.
    pub server: Option<ServerSide>,
    /// Why there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_missing: Option<String>,
    /// What the server reported of single requests; absent where it reported nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reports: Option<ReportFigures>,
    /// How answers were judged; absent where nothing was demanded of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<AnswerFigures>,
    /// The machines during the run.
    #[serde(default)]
    pub machines: MachineFigures,
    /// Where the time went, from the server's steps; absent where too few tokens arrived for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anatomy: Option<Anatomy>,
    /// What charts are drawn from.
    #[serde(default)]
    pub figures: RunFigures,
    pub vllm: VllmResult,
}

/// Why a stored document cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    #[error("the document is not the expected JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the document has the schema `{found}`, and this version reads `{expected}`")]
    Schema { found: String, expected: &'static str },
    #[error("the document was changed after it was written: its checksum does not match")]
    Changed,
    #[error("the capacity of the calibration is not a positive number")]
    Capacity,
}

/// A document as it is stored: indented, with a line feed at its end.
///
/// # Panics
///
/// Never: the maps of documents have text for keys, and nothing else can fail.
pub(crate) fn write_document(document: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(document).expect("its maps have text for keys");
    bytes.push(b'\n');
    bytes
}

/// The document with a checksum as its last key, so that a change by hand is noticed.
pub(crate) fn with_checksum(mut document: Vec<u8>) -> Vec<u8> {
    document.truncate(document.trim_ascii_end().len().saturating_sub("\n}".len()));
    let checksum = crc32c::crc32c(&document);
    document.extend_from_slice(format!("{CHECKSUM_KEY}{checksum:08x}\"\n}}\n").as_bytes());
    document
}

const CHECKSUM_KEY: &str = ",\n  \"checksum\": \"crc32c:";

/// Whether the bytes of a document with a checksum are those that were written.
fn is_unchanged(bytes: &[u8]) -> bool {
    let key = CHECKSUM_KEY.as_bytes();
    let start = bytes.windows(key.len()).rposition(|window| window == key);
    start.is_some_and(|start| with_checksum([&bytes[..start], b"\n}\n"].concat()) == bytes)
}

/// Reads a stored document. Keys that this version does not know are ignored. The schema is read first,
/// so that a document of another form is not reported as one with a missing field.
pub(crate) fn read_document<T: serde::de::DeserializeOwned>(
    bytes: &[u8],
    expected: &'static str,
) -> Result<T, DocumentError> {
    #[derive(Deserialize)]
    struct Head {
        schema: String,
        /// Earlier versions wrote none.
        checksum: Option<String>,
    }
    let Head { schema: found, checksum } = serde_json::from_slice(bytes)?;
    if found != expected {
        return Err(DocumentError::Schema { found, expected });
    }
    if checksum.is_some() && !is_unchanged(bytes) {
        return Err(DocumentError::Changed);
    }
    Ok(serde_json::from_slice(bytes)?)
}

/// Summarizes a run: a pure function of its observations. The same observations give the same bytes.
pub fn summarize(observations: &Observations) -> Summary {
    let mut measured = Measured::from_observations(observations);
    let run = RunContext::new(observations, &measured);
    let warnings = run_warnings(&run);
    let checks = run_checks(&run, &warnings);
    let (failures, failures_not_listed) = measured.failures.clone();
    let manifest = &observations.manifest;
    let mut metrics: MetricValues =
        METRICS.iter().map(|metric| (*metric, metric.value(&measured))).collect();
    let health = run.health;
    if let Some(prediction) = manifest.simulated.as_ref().and_then(|it| it.prediction.as_ref()) {
        widen(prediction, &mut metrics, &mut measured.steady);
    }
    let best = if manifest.simulated.is_some() { Verdict::Simulated } else { Verdict::Valid };
    Summary {
        schema: SCHEMA.to_owned(),
        run: RunFacts::from_observations(observations),
        verdict: Verdict::from_states(checks.iter().map(|check| check.state)).max(best),
        checks,
        warnings,
        scheduled: observations.scheduled_count(),
        attempted: measured.attempted,
        time_over: observations.not_sent_because(Cause::TimeOver),
        held_by_cap: HeldByCap::from_observations(observations),
        outcomes: measured.outcomes.clone(),
        failures,
        failures_not_listed,
        finish_reasons: measured.finish_reasons.clone(),
        workload: WorkloadFacts::from_observations(observations, measured.audit.clone()),
        plan: PlanFacts { fingerprint: manifest.fingerprints.plan.clone() },
        window: measured.extremes.window(),
        slos: slo_outcomes(observations, &headline(&metrics, &measured.steady)),
        metrics,
        client: health,
        system: SystemFacts {
            client: manifest.environment.machine.clone(),
            server: manifest.server.clone(),
        },
        anatomy: Anatomy::from_observations(observations),
        figures: RunFigures::new(observations, &measured),
        vllm: measured.vllm.clone(),
        request_slos: measured.request_slos.clone().map(|slos| slos.with_reasons(&measured)),
        server_missing: measured.server.as_ref().err().cloned(),
        server: measured.server.ok(),
        intervals_withheld: measured.intervals_withheld,
        request_rates: measured.request_rates,
        reports: measured.reports,
        answers: measured.answers,
        machines: measured.machines,
        steady: measured.steady,
        delivered: measured.delivered,
        littles_law: measured.littles_law,
        sessions: SessionFigures::from_observations(observations, measured.extremes.duration_s()),
        turns: measured.turns,
        parts: measured.parts,
        urls: measured.urls,
        tokens: measured.tokens,
    }
}

impl Summary {
    /// Where TTFT and E2E of this run begin.
    pub const fn latency_origin(&self) -> LatencyOrigin {
        LatencyOrigin::for_load(self.run.load.is_open())
    }

    /// The numbers that the run is shown, compared and judged by: those of its steady part where it has
    /// one, and of the whole run otherwise.
    pub fn headline(&self) -> MetricValues {
        headline(&self.metrics, &self.steady)
    }

    /// The document as it is stored: indented, each list of numbers on one line, with a line feed at
    /// its end.
    pub fn to_json_bytes(&self) -> Vec<u8> {
        with_checksum(numbers_on_one_line(&write_document(self)))
    }

    /// Reads a stored document. Keys that this version does not know are ignored.
    pub fn from_json_bytes(bytes: &[u8]) -> Result<Self, DocumentError> {
        read_document(bytes, SCHEMA)
    }

    pub fn count(&self, outcome: Outcome) -> u64 {
        self.outcomes.get(&outcome).copied().unwrap_or(0)
    }

    /// Requests that were attempted and did not end ok, but for those that `--cancel` ended.
    pub fn failed(&self) -> u64 {
        let fine = self.count(Outcome::Ok) + self.count(Outcome::Abandoned);
        self.attempted.saturating_sub(fine)
    }
}

/// Writes each list of numbers of indented, valid JSON on one line. Lists that hold text, lists or
/// objects keep their lines.
pub fn numbers_on_one_line(indented: &[u8]) -> Vec<u8> {
    let mut written = Vec::with_capacity(indented.len());
    let mut rest = indented;
    while let Some(byte) = rest.first() {
        // A list with something other than numbers and nulls in it is not closed by what ends them.
        let end = || rest[1..].iter().position(|byte| b"[]{\"".contains(byte)).map(|end| end + 1);
        let list = (*byte == b'[').then(end).flatten().filter(|end| rest[*end] == b']');
        let taken = match list {
            Some(end) => end + 1,
            // From one quote to the other.
            None if *byte == b'"' => {
                let mut escaped = false;
                let closes = |byte: &u8| {
                    let closing = *byte == b'"' && !escaped;
                    escaped = *byte == b'\\' && !escaped;
                    closing
                };
                rest[1..].iter().position(closes).map_or(rest.len(), |inside| inside + 2)
            }
            None => 1,
        };
        for byte in &rest[..taken] {
            match byte {
                b' ' | b'\n' if list.is_some() => {}
                b',' if list.is_some() => written.extend_from_slice(b", "),
                _ => written.push(*byte),
            }
        }
        rest = &rest[taken..];
    }
    written
}

#[cfg(test)]
mod tests;
