//! What a server reports about itself during a run, in one vocabulary for all servers.
//!
//! A value that a server does not give is absent, never zero. Counters are totals since the
//! server's start, as it gave them: what they mean over a run, and whether the server was started
//! anew meanwhile, is for the analysis to say.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strum::Display;

use crate::{Moment, variant_name};

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
    /// An entry of another source than the first, with the number of that source.
    FromSource(u16, Box<TelemetryEntry>),
}

impl TelemetryEntry {
    /// The same on a clock whose zero was this much earlier.
    #[must_use]
    pub fn later_by(mut self, by: Duration) -> Self {
        let at = match &mut self {
            Self::Sample(sample) => &mut sample.at,
            Self::Missed(missed) => &mut missed.at,
            Self::Skipped(skipped) => &mut skipped.from,
            Self::Devices(sample) => &mut sample.at,
            Self::Client(sample) => &mut sample.at,
            Self::DevicesMissed(look) => &mut look.at,
            Self::FromSource(_, entry) => {
                **entry = entry.clone().later_by(by);
                return self;
            }
            Self::Absent(_) | Self::DevicesAbsent(_) => return self,
        };
        *at = *at + by;
        self
    }
}

/// One scrape of the server's metrics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Totals of speculative decoding. Journals keep them beside the others, for older ones have no
    /// place for them.
    #[serde(skip)]
    pub speculation: Option<Box<SpeculationCounters>>,
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
    /// Tokens of all prompts, whether computed or found in a cache.
    pub prompt_tokens: Option<f64>,
    pub generation_tokens: Option<f64>,
}

/// Speculative decoding since the server's start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SpeculationCounters {
    /// Verifications of a draft.
    pub steps: Option<f64>,
    /// Tokens that were drafted.
    pub drafted: Option<f64>,
    pub accepted: Option<f64>,
    /// Tokens accepted at each position of the draft; empty where it is not reported.
    pub by_position: Vec<f64>,
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

/// Scrapes that were skipped, too many to record each: the machine slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedScrapes {
    /// When the first of them was due.
    pub from: Moment,
    pub number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "snake_case")]
pub enum MissReason {
    #[strum(to_string = "no whole answer in time")]
    Timeout,
    #[strum(to_string = "the connection failed")]
    Transport,
    /// Another status than 200.
    #[strum(to_string = "HTTP {0}")]
    Status(u16),
    /// An answer that broke off, was no HTTP, or was past the bound on bytes.
    #[strum(to_string = "the answer was broken or too large")]
    Protocol,
    #[strum(to_string = "the answer has too many lines")]
    TooLarge,
    #[strum(to_string = "the answer is not Prometheus text")]
    NotPrometheus,
    #[strum(to_string = "none of its names is known")]
    NoKnownName,
    /// The answer before took so long that asking on time would have been a load.
    #[strum(to_string = "not asked, because the answer before was slow")]
    BackedOff,
}

/// Why a run has no telemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Display)]
#[serde(rename_all = "snake_case")]
pub enum Absence {
    /// They were not requested, or the run is older than telemetry.
    #[strum(to_string = "the server's metrics were not requested")]
    NotAsked,
    /// The first scrape found nothing to ask for.
    #[strum(to_string = "the server's metrics cannot be read: {0}")]
    Refused(MissReason),
    /// Not one scrape of the run succeeded; the last one missed for this reason.
    #[strum(to_string = "the server's metrics were never read: {0}")]
    NeverAnswered(MissReason),
    #[strum(to_string = "the server's metrics were requested, but nothing was recorded")]
    NothingRecorded,
    /// There is a file, and it is not a telemetry journal, or could not be read.
    #[strum(to_string = "the recorded metrics of the server cannot be read")]
    Unreadable,
}

texts! {
    /// Whose names a server uses.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Dialect, title {
        VllmV1: "vLLM v1";
        /// The first releases of the v1 engine, which still spoke of a GPU cache.
        VllmV1Early: "vLLM v1 (early names)";
        VllmV0: "vLLM v0";
        Sglang: "SGLang";
        LlamaCpp: "llama.cpp";
        Tgi: "TGI";
        TensorrtLlm: "TensorRT-LLM";
        /// TensorRT-LLM behind Triton.
        Triton: "Triton with TensorRT-LLM";
        /// The frontend of Dynamo, whatever is behind it.
        Dynamo: "Dynamo";
    }
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
    /// Skipped scrapes, beyond the missed ones.
    pub skipped: u64,
}

impl Telemetry {
    pub fn recording(&self) -> Option<&Recording> {
        match self {
            Self::Recorded(recording) => Some(recording),
            Self::Absent(_) => None,
        }
    }
}

impl MissReason {
    /// The name under which scrapes are counted; what belongs to a single one is left out.
    pub fn key(self) -> &'static str {
        variant_name(&self)
    }
}

/// One look at all GPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DevicesSample {
    /// The middle of the look.
    pub at: Moment,
    pub took: Duration,
    pub source: DeviceSource,
    /// In the order of their numbers.
    pub devices: Vec<DeviceReading>,
}

/// One GPU now. What its tool does not tell is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceReading {
    pub index: u32,
    /// Share of the time in which something ran on it, from 0 to 1.
    pub use_share: Option<f64>,
    pub memory_used_bytes: Option<u64>,
    pub memory_total_bytes: Option<u64>,
    pub power_w: Option<f64>,
    /// A total since the driver was loaded, where it counts.
    pub energy_j: Option<f64>,
    pub core_clock_mhz: Option<f64>,
    pub memory_clock_mhz: Option<f64>,
    pub temperature_c: Option<f64>,
    /// Why it runs slower than it could; `None` where it is not reported.
    pub throttle: Option<Throttle>,
    /// Processes that use it, by number; `None` where they are not reported.
    pub processes: Option<Vec<u32>>,
}

/// What holds a GPU back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttle {
    /// Its power limit.
    pub power: bool,
    /// Its temperature.
    pub thermal: bool,
    /// The board: a brake from outside, or a fault.
    pub hardware: bool,
}

texts! {
    /// Source of the values.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum DeviceSource, title {
        Nvml: "NVML";
        NvidiaSmi: "nvidia-smi";
        AmdSmi: "amd-smi";
        RocmSmi: "rocm-smi";
        Dcgm: "DCGM exporter";
    }
}

/// A look at the GPUs that brought nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissedLook {
    pub at: Moment,
    pub reason: LookMiss,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LookMiss {
    /// The tool or the driver did not answer in time.
    Timeout,
    /// It failed, or printed nothing that can be read.
    Failed,
    /// Not asked: the look before took so long that looking on time would have been a load.
    BackedOff,
}

/// One look at the client's machine. Shares are of the time since the look before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientSample {
    pub at: Moment,
    /// Share of all hardware threads that was busy, from 0 to 1.
    pub cpu_share: Option<f64>,
    /// Time that a hypervisor gave to others.
    pub steal_share: Option<f64>,
    /// CPU time of our own process, in hardware threads.
    pub own_cpus: Option<f64>,
    /// Totals of all interfaces, loopback included.
    pub received_bytes: Option<u64>,
    pub sent_bytes: Option<u64>,
    pub memory_available_bytes: Option<u64>,
}

/// Why nothing is known of the GPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Display)]
#[serde(rename_all = "snake_case")]
pub enum DevicesAbsence {
    /// They were not requested, or the run is older than this.
    #[strum(to_string = "the metrics of the GPUs were not requested")]
    NotAsked,
    /// No source of its GPU metrics is set either.
    #[strum(to_string = "no server of models was seen on this machine; if it runs here, add \
                         --server-info local")]
    Elsewhere,
    #[strum(to_string = "no GPU was found on this machine")]
    NoneFound,
    /// The tool failed, with this message.
    #[strum(to_string = "the GPUs could not be read: {0}")]
    Failed(String),
    #[strum(to_string = "the GPUs of the embedded engine are simulated")]
    Pretended,
}

/// What machines reported over a whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct Machines {
    /// In the order of time.
    pub devices: Vec<DevicesSample>,
    pub devices_absence: Option<DevicesAbsence>,
    /// Looks at the GPUs that brought nothing.
    pub devices_missed: Vec<MissedLook>,
    pub client: Vec<ClientSample>,
}

impl Default for Machines {
    fn default() -> Self {
        Self {
            devices: Vec::new(),
            devices_absence: Some(DevicesAbsence::NotAsked),
            devices_missed: Vec::new(),
            client: Vec::new(),
        }
    }
}

/// What the entries of a journal say of the server and of the machines, in the order of time.
pub fn gather(entries: impl IntoIterator<Item = TelemetryEntry>) -> (Telemetry, Machines) {
    let (mut samples, mut missed, mut skipped) = (Vec::new(), Vec::<MissedScrape>::new(), 0_u64);
    let (mut absence, mut devices_absence) = (None, None);
    let mut machines = Machines::default();
    for entry in entries {
        match entry {
            TelemetryEntry::Sample(sample) => samples.push(sample),
            TelemetryEntry::Missed(scrape) => missed.push(scrape),
            TelemetryEntry::Absent(reason) => absence = Some(reason),
            TelemetryEntry::Skipped(scrapes) => skipped = skipped.saturating_add(scrapes.number),
            TelemetryEntry::Devices(sample) => machines.devices.push(sample),
            TelemetryEntry::Client(sample) => machines.client.push(sample),
            TelemetryEntry::DevicesAbsent(reason) => devices_absence = Some(reason),
            TelemetryEntry::DevicesMissed(look) => machines.devices_missed.push(look),
            // They belong to `gather_sources`.
            TelemetryEntry::FromSource(..) => {}
        }
    }
    let is_answer = |scrape: &&MissedScrape| scrape.reason != MissReason::BackedOff;
    let last = missed.iter().rev().find(is_answer).map(|scrape| scrape.reason);
    let never = last.map_or(Absence::NothingRecorded, Absence::NeverAnswered);
    samples.sort_by_key(|sample: &TelemetrySample| sample.at);
    let telemetry = if samples.is_empty() {
        Telemetry::Absent(absence.unwrap_or(never))
    } else {
        Telemetry::Recorded(Recording { samples, missed, skipped })
    };
    // Metrics that were requested and never answered are not `NotAsked`.
    let unanswered = (!machines.devices_missed.is_empty())
        .then(|| DevicesAbsence::Failed("no look was answered in time".to_owned()));
    let devices_absence = devices_absence.or(unanswered).or(machines.devices_absence.take());
    machines.devices_absence = devices_absence.filter(|_| machines.devices.is_empty());
    machines.devices.sort_by_key(|sample| sample.at);
    machines.client.sort_by_key(|sample| sample.at);
    (telemetry, machines)
}

/// What each source reported, by its number; the first has the number zero, and with it come the
/// machines.
#[expect(clippy::wildcard_enum_match_arm, reason = "all other entries are of the first source")]
pub fn gather_sources(
    entries: impl IntoIterator<Item = TelemetryEntry>,
) -> (Telemetry, Machines, BTreeMap<u16, Telemetry>) {
    let mut first = Vec::new();
    let mut others: BTreeMap<u16, Vec<TelemetryEntry>> = BTreeMap::new();
    for entry in entries {
        match entry {
            TelemetryEntry::FromSource(source, entry) => {
                others.entry(source).or_default().push(*entry);
            }
            entry => first.push(entry),
        }
    }
    let (telemetry, machines) = gather(first);
    let others = others.into_iter().map(|(source, entries)| (source, gather(entries).0));
    (telemetry, machines, others.collect())
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
            speculation: None,
            dropped: 0,
        }
    }

    fn missed(reason: MissReason) -> TelemetryEntry {
        TelemetryEntry::Missed(MissedScrape { at: Moment::ZERO, reason })
    }

    #[test]
    fn one_sample_is_a_recording_and_none_has_a_reason() {
        let asleep = SkippedScrapes { from: Moment::ZERO, number: 4_000 };
        let found = gather([
            TelemetryEntry::Sample(sample(7)),
            missed(MissReason::Timeout),
            TelemetryEntry::Skipped(asleep),
        ])
        .0;
        let recording = found.recording().unwrap();
        assert_eq!((recording.samples.len(), recording.missed.len()), (1, 1));
        assert_eq!(recording.skipped, 4_000);
        assert_eq!(gather([]).0, Telemetry::Absent(Absence::NothingRecorded));
        let slow = [missed(MissReason::Timeout), missed(MissReason::BackedOff)];
        assert_eq!(gather(slow).0, Telemetry::Absent(Absence::NeverAnswered(MissReason::Timeout)));
        let refused = Absence::Refused(MissReason::Status(404));
        assert_eq!(gather([TelemetryEntry::Absent(refused)]).0, Telemetry::Absent(refused));
        assert_eq!(refused.to_string(), "the server's metrics cannot be read: HTTP 404");
    }

    #[test]
    fn gpus_that_were_asked_and_never_answered_are_not_called_unasked() {
        let missed = |reason| {
            TelemetryEntry::DevicesMissed(MissedLook { at: Moment::from_nanos(1), reason })
        };
        let hung = [missed(LookMiss::Timeout), missed(LookMiss::BackedOff)];
        let found = gather(hung).1;
        assert_eq!(
            found.devices_absence,
            Some(DevicesAbsence::Failed("no look was answered in time".to_owned()))
        );
        let told = TelemetryEntry::DevicesAbsent(DevicesAbsence::NoneFound);
        let found = gather([told, missed(LookMiss::Failed)]).1;
        assert_eq!(found.devices_absence, Some(DevicesAbsence::NoneFound));
        assert_eq!(gather([]).1.devices_absence, Some(DevicesAbsence::NotAsked));
    }
}
