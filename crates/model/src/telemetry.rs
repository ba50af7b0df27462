//! What a server says of itself while a run goes on, in one vocabulary for all servers.
//!
//! A value that a server does not give is absent, never zero. Counters are totals since the
//! server's start, as it gave them: what they mean over a run, and whether the server was started
//! anew meanwhile, is for the analysis to say.

mod machine;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::machine::{
    ClientSample, DeviceReading, DeviceSource, DevicesAbsence, DevicesSample, LookMiss, Machines,
    MissedLook, Throttle,
};
use crate::Moment;

/// One line of the telemetry journal. The stored numbers of what it holds are positions, so
/// whatever is added goes to the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TelemetryEntry {
    Sample(TelemetrySample),
    Missed(MissedScrape),
    /// There is nothing to read, so it is not tried again.
    Absent(Absence),
    Skipped(SkippedScrapes),
    Devices(DevicesSample),
    Client(ClientSample),
    DevicesAbsent(DevicesAbsence),
    DevicesMissed(MissedLook),
}

/// One scrape of the server's metrics.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TelemetrySample {
    /// The middle of the exchange: the values are of some moment in it.
    pub at: Moment,
    /// The whole exchange.
    pub took: Duration,
    pub dialect: Dialect,
    /// When the server's process began, in seconds after 1970 by its own clock.
    pub process_start_s: Option<f64>,
    pub gauges: Gauges,
    pub counters: Counters,
    pub timings: Timings,
    /// Values of known names that were no numbers to work with: NaN, infinite or negative.
    pub dropped: u32,
}

/// What is the case now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gauges {
    /// Requests in the batch.
    pub running: Option<f64>,
    /// Requests that wait to be scheduled.
    pub waiting: Option<f64>,
    /// Requests whose cache was moved out of the accelerator's memory.
    pub swapped: Option<f64>,
    /// Share of the key-value cache in use, from 0 to 1; of the fullest engine, if there are more.
    pub kv_usage: Option<f64>,
    /// The same of the part that lies in the host's memory. Journals keep it beside the others, for
    /// older ones have no place for it.
    #[serde(skip)]
    pub cpu_kv_usage: Option<f64>,
}

/// Totals since the server's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// Prompt tokens that were looked up in the prefix cache.
    pub prefix_queries: Option<f64>,
    /// Prompt tokens that were found there.
    pub prefix_hits: Option<f64>,
    pub preemptions: Option<f64>,
    /// Of all prompts, whether computed or found in a cache.
    pub prompt_tokens: Option<f64>,
    pub generation_tokens: Option<f64>,
}

/// Latencies by the server's own clock: sums and counts since its start, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timings {
    pub ttft: Option<SumCount>,
    pub e2e: Option<SumCount>,
    pub queue: Option<SumCount>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SumCount {
    pub sum_s: f64,
    pub count: f64,
}

/// A scrape that brought nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissedScrape {
    pub at: Moment,
    pub reason: MissReason,
}

/// Scrapes that were not asked for, too many to write down each: the machine slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedScrapes {
    /// When the first of them was due.
    pub from: Moment,
    pub number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissReason {
    /// No whole answer within the time-out.
    Timeout,
    /// The connection failed or was cut.
    Transport,
    /// Another status than 200.
    Status(u16),
    /// An answer that broke off, was no HTTP, or was past the bound on bytes.
    Protocol,
    /// An answer past the bound on lines.
    TooLarge,
    NotPrometheus,
    /// Prometheus text without a name that we know.
    NoKnownName,
    /// Not asked: the answer before took so long that asking on time would have been a load.
    BackedOff,
}

/// Why a run has no telemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Absence {
    /// Nobody asked for it, or the run is older than telemetry.
    NotAsked,
    /// The first scrape found nothing to ask for.
    Refused(MissReason),
    /// Not one scrape of the run succeeded; the last one missed for this reason.
    NeverAnswered(MissReason),
    /// It was asked for, and nothing was written down.
    NothingRecorded,
    /// There is a file, and it is not a telemetry journal, or could not be read.
    Unreadable,
}

/// Whose names a server uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    VllmV1,
    /// The first releases of the v1 engine, which still spoke of a GPU cache.
    VllmV1Early,
    VllmV0,
    Sglang,
    LlamaCpp,
    Tgi,
    TensorrtLlm,
    /// TensorRT-LLM behind Triton.
    Triton,
    /// The frontend of Dynamo, whatever is behind it.
    Dynamo,
}

/// What is known of the server over a whole run.
#[derive(Clone, Debug, PartialEq)]
pub enum Telemetry {
    Recorded(Recording),
    Absent(Absence),
}

/// At least one sample, in the order of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    pub samples: Vec<TelemetrySample>,
    pub missed: Vec<MissedScrape>,
    /// Scrapes that were not asked for, beyond the missed ones that say so.
    pub skipped: u64,
}

impl Telemetry {
    /// What a journal's entries come to.
    pub fn of(entries: impl IntoIterator<Item = TelemetryEntry>) -> Self {
        let mut samples = Vec::new();
        let mut missed: Vec<MissedScrape> = Vec::new();
        let mut absence = None;
        let mut skipped: u64 = 0;
        for entry in entries {
            match entry {
                TelemetryEntry::Sample(sample) => samples.push(sample),
                TelemetryEntry::Missed(scrape) => missed.push(scrape),
                TelemetryEntry::Absent(reason) => absence = Some(reason),
                TelemetryEntry::Skipped(scrapes) => {
                    skipped = skipped.saturating_add(scrapes.number);
                }
                TelemetryEntry::Devices(_)
                | TelemetryEntry::Client(_)
                | TelemetryEntry::DevicesAbsent(_)
                | TelemetryEntry::DevicesMissed(_) => {}
            }
        }
        if samples.is_empty() {
            let is_answer = |scrape: &&MissedScrape| scrape.reason != MissReason::BackedOff;
            let last = missed.iter().rev().find(is_answer).map(|scrape| scrape.reason);
            let never = last.map_or(Absence::NothingRecorded, Absence::NeverAnswered);
            return Self::Absent(absence.unwrap_or(never));
        }
        samples.sort_by_key(|sample| sample.at);
        Self::Recorded(Recording { samples, missed, skipped })
    }

    pub fn recording(&self) -> Option<&Recording> {
        match self {
            Self::Recorded(recording) => Some(recording),
            Self::Absent(_) => None,
        }
    }
}

impl Dialect {
    pub const fn title(self) -> &'static str {
        match self {
            Self::VllmV1 => "vLLM v1",
            Self::VllmV1Early => "vLLM v1 (early names)",
            Self::VllmV0 => "vLLM v0",
            Self::Sglang => "SGLang",
            Self::LlamaCpp => "llama.cpp",
            Self::Tgi => "TGI",
            Self::TensorrtLlm => "TensorRT-LLM",
            Self::Triton => "Triton with TensorRT-LLM",
            Self::Dynamo => "Dynamo",
        }
    }
}

impl MissReason {
    /// The name under which scrapes are counted; what belongs to a single one is left out.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Transport => "transport",
            Self::Status(_) => "status",
            Self::Protocol => "protocol",
            Self::TooLarge => "too_large",
            Self::NotPrometheus => "not_prometheus",
            Self::NoKnownName => "no_known_name",
            Self::BackedOff => "backed_off",
        }
    }
}

impl fmt::Display for MissReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => f.write_str("no whole answer in time"),
            Self::Transport => f.write_str("the connection failed"),
            Self::Status(status) => write!(f, "HTTP {status}"),
            Self::Protocol => f.write_str("the answer was broken or too large"),
            Self::TooLarge => f.write_str("the answer has too many lines"),
            Self::NotPrometheus => f.write_str("the answer is not Prometheus text"),
            Self::NoKnownName => f.write_str("none of its names is known"),
            Self::BackedOff => f.write_str("not asked, because the answer before was slow"),
        }
    }
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAsked => f.write_str("the server's metrics were not asked for"),
            Self::Refused(reason) => write!(f, "the server's metrics cannot be read: {reason}"),
            Self::NeverAnswered(reason) => {
                write!(f, "the server's metrics were never read: {reason}")
            }
            Self::NothingRecorded => {
                f.write_str("the server's metrics were asked for, and nothing was recorded")
            }
            Self::Unreadable => f.write_str("the recorded metrics of the server cannot be read"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: u64) -> TelemetrySample {
        TelemetrySample {
            at: Moment::from_nanos(at),
            took: Duration::from_millis(3),
            dialect: Dialect::VllmV1,
            process_start_s: None,
            gauges: Gauges::default(),
            counters: Counters::default(),
            timings: Timings::default(),
            dropped: 0,
        }
    }

    fn missed(reason: MissReason) -> TelemetryEntry {
        TelemetryEntry::Missed(MissedScrape { at: Moment::ZERO, reason })
    }

    #[test]
    fn one_sample_is_a_recording_and_none_has_a_reason() {
        let asleep = SkippedScrapes { from: Moment::ZERO, number: 4_000 };
        let found = Telemetry::of([
            TelemetryEntry::Sample(sample(7)),
            missed(MissReason::Timeout),
            TelemetryEntry::Skipped(asleep),
        ]);
        let recording = found.recording().unwrap();
        assert_eq!((recording.samples.len(), recording.missed.len()), (1, 1));
        assert_eq!(recording.skipped, 4_000);
        assert_eq!(Telemetry::of([]), Telemetry::Absent(Absence::NothingRecorded));
        let slow = [missed(MissReason::Timeout), missed(MissReason::BackedOff)];
        assert_eq!(
            Telemetry::of(slow),
            Telemetry::Absent(Absence::NeverAnswered(MissReason::Timeout))
        );
        let refused = Absence::Refused(MissReason::Status(404));
        assert_eq!(Telemetry::of([TelemetryEntry::Absent(refused)]), Telemetry::Absent(refused));
        assert_eq!(refused.to_string(), "the server's metrics cannot be read: HTTP 404");
    }
}
