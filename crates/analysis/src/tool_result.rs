//! One result of a run, whether the run is ours or another tool's.
//!
//! Pages that compare results, exports and imports all use [`ToolResult`], so that a figure is mapped once. It
//! holds figures only: what its source does not report is missing, and every latency says what one of
//! its values is and where its clock starts.

pub mod extra;
mod ours;

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;

use inferometer_model::campaign::Level;
use serde::{Deserialize, Serialize};

use self::ours::LATENCIES;
use crate::judge::Verdict;
use crate::metric::{Metric, Quantity, Statistic};
use crate::set::Served;
use crate::statistics::{Estimate, Interval, proportion::wilson};
use crate::summary::Summary;

/// One run, as its source sums it up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolResult {
    pub source: ResultSource,
    /// Results of one configuration are one line of a chart. Empty where nothing tells it apart.
    pub configuration: String,
    pub model: Option<String>,
    pub tokenizer: Option<String>,
    /// The API or client that was used, in the source's own word.
    pub backend: Option<String>,
    /// As the source writes it.
    pub started: Option<String>,
    pub request_rate: Option<ResultRate>,
    /// The gamma shape of the gaps between arrivals; infinite where they were all equal.
    #[serde(with = "infinite")]
    pub burstiness: Option<f64>,
    pub max_concurrency: Option<u32>,
    /// GPUs that one copy of the model was spread over.
    pub tensor_parallel: Option<u32>,
    pub requests_planned: Option<u64>,
    pub completed: Option<u64>,
    pub failed: Option<u64>,
    pub duration_s: Option<f64>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub request_throughput: Option<f64>,
    pub request_goodput: Option<f64>,
    pub output_throughput: Option<f64>,
    pub total_token_throughput: Option<f64>,
    pub peak_output_throughput: Option<f64>,
    pub peak_concurrent_requests: Option<u64>,
    /// At most one of a kind, clock and grain; see [`ToolResult::latency`].
    pub latencies: Vec<ResultLatency>,
    /// Figures of one tool only, by its own keys; see [`extra`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub further: BTreeMap<String, f64>,
    /// 95 % intervals of the throughputs, by the name of their field; from within the run.
    pub intervals: BTreeMap<String, Interval>,
    /// Ours only: other tools do not judge themselves.
    pub verdict: Option<Verdict>,
    /// Why its figures must not be read as those of a clean run.
    pub marks: Vec<Mark>,
    /// Further notes that it carries, such as `--metadata`; in the source's order.
    pub metadata: Vec<(String, String)>,
    /// What the source says beyond this: keys without a field, and values that are no figures,
    /// each with its place.
    pub unmapped: Vec<String>,
    /// One for each request in the source's order, where it says so much.
    pub requests: Option<Vec<ResultRequest>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResultSource {
    pub tool: Tool,
    pub form: Form,
    /// Of the tool, where it says it.
    pub version: Option<String>,
    /// The run, or what the record is called in its file.
    pub name: String,
    /// Where the record begins in its file, counted from one.
    pub line: Option<u32>,
    /// Whether no server was measured.
    pub simulated: bool,
}

/// Whose numbers they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    #[default]
    Inferometer,
    /// `vllm bench serve`, and `benchmark_serving` before it.
    Vllm,
    Sglang,
    #[serde(rename = "guidellm")]
    GuideLlm,
    #[serde(rename = "aiperf")]
    AiPerf,
    #[serde(rename = "llm-d")]
    LlmD,
    GenaiBench,
}

/// What the record was written as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// A run of our own.
    #[default]
    Run,
    /// A JSON or YAML document, or one line of JSON.
    Document,
    /// One line for each request; the figures are computed from them.
    Requests,
    /// A printed block up to v0.12 of vLLM: “Total Token throughput” with a capital.
    OldBlock,
    /// A printed block since.
    Block,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultRate {
    PerSecond(f64),
    /// All requests at once, or as the concurrency allows.
    Unlimited,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyKind {
    Ttft,
    Tpot,
    Itl,
    E2e,
}

/// From where a latency counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountsFrom {
    /// The moment at which the load was to send it: waiting in the client counts.
    Schedule,
    /// The moment at which it was sent: waiting in the client is hidden.
    Send,
    /// An earlier token or chunk: the same for every client.
    Output,
    /// The source does not say.
    Unknown,
}

/// What one value of a latency's distribution is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grain {
    /// One for each request.
    Request,
    /// One for each gap, divided by the tokens that it brought.
    Token,
    /// One for each gap between events of a stream, however many tokens they carry.
    Chunk,
    /// The source does not say.
    Unknown,
}

/// What is known of a latency's distribution, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultLatency {
    pub kind: LatencyKind,
    pub from: CountsFrom,
    pub grain: Grain,
    pub n: Option<u64>,
    pub mean_ms: Option<f64>,
    pub std_ms: Option<f64>,
    pub min_ms: Option<f64>,
    pub max_ms: Option<f64>,
    /// By their rank as written: `50` (the median), `99`, `99.9`.
    pub percentiles_ms: BTreeMap<String, f64>,
    /// Whether the source has the median among its percentiles too, as a P50.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_p50: bool,
    /// 95 % intervals from within the run, by `mean` or by rank.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub intervals_ms: BTreeMap<String, Interval>,
}

/// What a source says of one request, in seconds of its own clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResultRequest {
    pub start_s: Option<f64>,
    /// How long the client held it back before it began.
    pub queued_s: Option<f64>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub ttft_s: Option<f64>,
    pub e2e_s: Option<f64>,
    /// Gaps between the events of its stream.
    pub gaps_s: Vec<f64>,
    pub text: Option<String>,
    /// Empty of a request that succeeded; `None` where the source does not say.
    pub error: Option<String>,
}

impl ResultLatency {
    pub fn new(kind: LatencyKind, from: CountsFrom, grain: Grain) -> Self {
        Self {
            kind,
            from,
            grain,
            n: None,
            mean_ms: None,
            std_ms: None,
            min_ms: None,
            max_ms: None,
            percentiles_ms: BTreeMap::new(),
            has_p50: false,
            intervals_ms: BTreeMap::new(),
        }
    }

    /// By the rank as written, such as `99.9`.
    pub fn percentile_ms(&self, rank: &str) -> Option<f64> {
        self.percentiles_ms.get(rank).copied()
    }

    pub fn median_ms(&self) -> Option<f64> {
        self.percentile_ms("50")
    }
}

impl ToolResult {
    /// The first latency of this kind, whatever it counts from: a source mostly has one.
    pub fn latency(&self, kind: LatencyKind) -> Option<&ResultLatency> {
        self.latencies.iter().find(|latency| latency.kind == kind)
    }

    pub fn latency_from(&self, kind: LatencyKind, from: CountsFrom) -> Option<&ResultLatency> {
        self.latencies.iter().find(|latency| latency.kind == kind && latency.from == from)
    }

    /// For building: the latency with this meaning, made where it is missing.
    pub fn latency_mut(
        &mut self,
        kind: LatencyKind,
        from: CountsFrom,
        grain: Grain,
    ) -> &mut ResultLatency {
        let is_meant = |latency: &ResultLatency| {
            (latency.kind, latency.from, latency.grain) == (kind, from, grain)
        };
        let place = self.latencies.iter().position(is_meant).unwrap_or_else(|| {
            self.latencies.push(ResultLatency::new(kind, from, grain));
            self.latencies.len() - 1
        });
        &mut self.latencies[place]
    }

    /// Whether fewer requests completed than were planned: by a limit of time, or by failures. Its
    /// figures then describe a part of the load, and the part that was quick.
    pub fn is_cut(&self) -> bool {
        matches!((self.completed, self.requests_planned), (Some(done), Some(planned)) if done < planned)
    }
}

/// JSON has no infinity: it is the word `inf`, as vLLM writes it.
mod infinite {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    const WORD: &str = "inf";

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(f64),
        Word(String),
    }

    #[expect(clippy::ref_option, reason = "serde asks for it")]
    pub(super) fn serialize<S: Serializer>(
        value: &Option<f64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let written = value.map(|value| {
            if value == f64::INFINITY {
                Written::Word(WORD.to_owned())
            } else {
                Written::Number(value)
            }
        });
        written.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<f64>, D::Error> {
        let written = Option::<Written>::deserialize(deserializer)?;
        written
            .map(|written| match written {
                Written::Number(value) => Ok(value),
                Written::Word(word) if word == WORD => Ok(f64::INFINITY),
                Written::Word(word) => {
                    let message =
                        format!("the word “{word}” is no number; `{WORD}` is the only one");
                    Err(serde::de::Error::custom(message))
                }
            })
            .transpose()
    }
}

impl ToolResult {
    /// How much was asked of the server at once. A limit of concurrency is the load where nothing
    /// else holds requests back.
    pub fn level(&self) -> Level {
        let concurrency = self.max_concurrency.and_then(NonZeroU32::new).map(Level::Concurrency);
        match self.request_rate {
            Some(ResultRate::PerSecond(rate)) if rate.is_finite() && 0.0 < rate => {
                Level::Rate(rate)
            }
            Some(ResultRate::Unlimited) => concurrency.unwrap_or(Level::Unlimited),
            Some(ResultRate::PerSecond(_)) | None => concurrency.unwrap_or(Level::AsAsked),
        }
    }

    /// A run of our own in the terms of other tools: counted as they count, over the whole run, with
    /// the latencies and the intervals that only we have.
    pub fn beside_others(summary: &Summary) -> Self {
        let mut sheet = Self::of_vllm(summary);
        let own = Self::of(summary);
        for (field, value) in [
            ("request_throughput", |sheet: &Self| sheet.request_throughput),
            ("request_goodput", |sheet| sheet.request_goodput),
            ("output_throughput", |sheet| sheet.output_throughput),
            ("total_token_throughput", |sheet| sheet.total_token_throughput),
        ] as [(&str, fn(&Self) -> Option<f64>); 4]
        {
            let interval = own.intervals.get(field).copied();
            let moved = interval.and_then(|found| moved(found, value(&own)?, value(&sheet)?));
            sheet.intervals.extend(moved.map(|interval| (field.to_owned(), interval)));
        }
        for own in own.latencies {
            let is_same = |known: &&mut ResultLatency| known.meaning() == own.meaning();
            match sheet.latencies.iter_mut().find(is_same) {
                Some(known) => known.take_intervals(&own),
                None => sheet.latencies.push(own),
            }
        }
        sheet
    }

    /// Its value, or why there is none. What the source leaves open is taken for the plain metric of
    /// its kind: [`ToolResult::latency_of`] has what it says.
    pub fn figure(&self, quantity: &Quantity) -> Result<Estimate, String> {
        let metric = quantity.metric();
        let absent = || format!("the result has no {}", metric.title);
        let found = match quantity.statistic() {
            None => self.single(metric),
            Some(statistic) => {
                self.latency_of(metric).and_then(|latency| self.statistic_of(latency, statistic))
            }
        };
        found.filter(|found| found.value.is_finite()).ok_or_else(absent)
    }

    /// The latency that one of our metrics names: of exactly its meaning; else, of a metric without
    /// the schedule in its name, one whose source does not say what it means.
    pub fn latency_of(&self, metric: &Metric) -> Option<&ResultLatency> {
        let (_, kind, from, grain) =
            LATENCIES.iter().copied().find(|(known, ..)| *known == metric)?;
        let of_kind = || self.latencies.iter().filter(|latency| latency.kind == kind);
        let exact = of_kind().find(|latency| (latency.from, latency.grain) == (from, grain));
        exact.or_else(|| {
            of_kind().find(|latency| {
                !latency.is_defined()
                    && from != CountsFrom::Schedule
                    && (latency.from == from || latency.from == CountsFrom::Unknown)
                    && (latency.grain == grain || latency.grain == Grain::Unknown)
            })
        })
    }

    fn single(&self, metric: &Metric) -> Option<Estimate> {
        let (field, value) = match metric.name {
            "request_throughput" => ("request_throughput", self.request_throughput?),
            "output_throughput" => ("output_throughput", self.output_throughput?),
            "total_throughput" => ("total_token_throughput", self.total_token_throughput?),
            "peak_output_throughput" => ("peak_output_throughput", self.peak_output_throughput?),
            "goodput" => ("request_goodput", self.request_goodput?),
            "error_rate" => return self.error_rate(),
            _ => return None,
        };
        Some(Estimate {
            value,
            interval: self.intervals.get(field).copied(),
            n: self.completed.unwrap_or(1),
            effective_n: None,
            certified: true,
        })
    }

    /// Only where the source counts failures: what it does not mention may have happened.
    fn error_rate(&self) -> Option<Estimate> {
        let (completed, failed) = (self.completed?, self.failed?);
        let n = completed.checked_add(failed).filter(|n| 0 < *n)?;
        Some(Estimate {
            value: failed as f64 / n as f64,
            interval: wilson(failed as f64, n as f64),
            n,
            effective_n: None,
            certified: true,
        })
    }

    /// A statistic of one of its latencies. `n` is 0 where nothing tells how many values there were,
    /// and then nothing is certified.
    pub fn statistic_of(&self, latency: &ResultLatency, statistic: Statistic) -> Option<Estimate> {
        let value = match statistic {
            Statistic::Mean => latency.mean_ms,
            Statistic::Max => latency.max_ms,
            Statistic::Percentile(percentile) => {
                latency.percentile_ms(percentile.name().trim_start_matches('p'))
            }
        }?;
        let rank = statistic.name().trim_start_matches('p');
        let n = latency.n.or_else(|| self.answers_with(latency.kind)).unwrap_or(0);
        Some(Estimate {
            value,
            interval: latency.intervals_ms.get(rank).copied(),
            n,
            effective_n: None,
            certified: statistic.certified_from() <= n,
        })
    }

    /// How many answers have such a latency. Gaps are not fewer than the answers that have one, but
    /// an answer of one token has none: only tokens behind the first ones make gaps.
    fn answers_with(&self, kind: LatencyKind) -> Option<u64> {
        let completed = self.completed?;
        Some(match (kind, self.output_tokens) {
            (LatencyKind::Tpot | LatencyKind::Itl, Some(tokens)) => {
                completed.min(tokens.saturating_sub(completed))
            }
            _ => completed,
        })
    }
}

/// The interval of one figure around another that differs by its definition only: the interval is as
/// wide in proportion.
fn moved(interval: Interval, from: f64, to: f64) -> Option<Interval> {
    let scale = Some(to / from).filter(|scale| scale.is_finite() && 0.0 < *scale)?;
    Some(Interval { low: interval.low * scale, high: interval.high * scale })
}

impl ResultLatency {
    /// Those of the same latency by our own definitions.
    fn take_intervals(&mut self, own: &Self) {
        let value = |latency: &Self, rank: &str| match rank {
            "mean" => latency.mean_ms,
            rank => latency.percentile_ms(rank),
        };
        for (rank, interval) in &own.intervals_ms {
            let (from, to) = (value(own, rank), value(self, rank));
            let moved = from.zip(to).and_then(|(from, to)| moved(*interval, from, to));
            self.intervals_ms.extend(moved.map(|interval| (rank.clone(), interval)));
        }
    }

    pub const fn meaning(&self) -> (LatencyKind, CountsFrom, Grain) {
        (self.kind, self.from, self.grain)
    }

    /// Whether its source says what one of its values is and from where it counts.
    pub fn is_defined(&self) -> bool {
        self.from != CountsFrom::Unknown && self.grain != Grain::Unknown
    }
}

impl Tool {
    pub const ALL: [Self; 7] = [
        Self::Inferometer,
        Self::Vllm,
        Self::Sglang,
        Self::GuideLlm,
        Self::AiPerf,
        Self::LlmD,
        Self::GenaiBench,
    ];

    /// In files.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Inferometer => "inferometer",
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::GuideLlm => "guidellm",
            Self::AiPerf => "aiperf",
            Self::LlmD => "llm-d",
            Self::GenaiBench => "genai-bench",
        }
    }

    /// The program that writes its results, as people call it.
    pub const fn program(self) -> &'static str {
        match self {
            Self::Vllm => "vllm bench serve",
            Self::Sglang => "SGLang bench_serving",
            Self::LlmD => "llm-d benchmark",
            Self::Inferometer | Self::GuideLlm | Self::AiPerf | Self::GenaiBench => self.told(),
        }
    }

    /// As people write it.
    pub const fn told(self) -> &'static str {
        match self {
            Self::Inferometer => "Inferometer",
            Self::Vllm => "vLLM",
            Self::Sglang => "SGLang",
            Self::GuideLlm => "GuideLLM",
            Self::AiPerf => "AIPerf",
            Self::LlmD => "llm-d",
            Self::GenaiBench => "genai-bench",
        }
    }
}

impl LatencyKind {
    pub const ALL: [Self; 4] = [Self::Ttft, Self::Tpot, Self::Itl, Self::E2e];

    pub const fn told(self) -> &'static str {
        match self {
            Self::Ttft => "TTFT",
            Self::Tpot => "TPOT",
            Self::Itl => "ITL",
            Self::E2e => "E2E",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Mark {
    /// Fewer requests ended than were planned.
    Cut { completed: u64, planned: u64 },
    /// Some requests failed; those that did not are all that the figures describe.
    Failures { failed: u64 },
    /// The server gave less than the rate that was asked of it.
    Saturated { asked_per_s: f64, served_per_s: f64 },
    /// By our own checks.
    Invalid,
    /// No server was measured.
    Simulated,
}

/// A server that gave this share of the rate kept up with it: the last answers take their time.
const KEPT_UP: f64 = 0.95;

impl Mark {
    /// Those that follow from a sheet's figures alone.
    pub fn found(sheet: &ToolResult) -> Vec<Self> {
        Self::with(sheet, behind(sheet))
    }

    /// Those of a run of our own, of which more is known than its sheet says.
    pub(super) fn found_in(sheet: &ToolResult, summary: &Summary) -> Vec<Self> {
        let Some(ResultRate::PerSecond(rate)) = sheet.request_rate else {
            return Self::with(sheet, None);
        };
        let served = Served::from_runs(Level::Rate(rate), std::iter::once(summary));
        let behind = served.filter(|served| served.saturated).map(|served| Self::Saturated {
            asked_per_s: served.asked_per_s,
            served_per_s: served.served_per_s,
        });
        Self::with(sheet, behind)
    }

    fn with(sheet: &ToolResult, behind: Option<Self>) -> Vec<Self> {
        let mut marks = Vec::new();
        if let (Some(completed), Some(planned)) = (sheet.completed, sheet.requests_planned)
            && completed.saturating_add(sheet.failed.unwrap_or(0)) < planned
        {
            marks.push(Self::Cut { completed, planned });
        }
        if let Some(failed) = sheet.failed.filter(|failed| 0 < *failed) {
            marks.push(Self::Failures { failed });
        }
        marks.extend(behind);
        if sheet.verdict == Some(Verdict::Invalid) {
            marks.push(Self::Invalid);
        }
        if sheet.source.simulated {
            marks.push(Self::Simulated);
        }
        marks
    }

    /// In files and in cells.
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Cut { .. } => "cut",
            Self::Failures { .. } => "failures",
            Self::Saturated { .. } => "saturated",
            Self::Invalid => "invalid",
            Self::Simulated => "simulated",
        }
    }

    /// Whether its figures must not be set beside those of clean runs.
    pub const fn is_doubt(&self) -> bool {
        !matches!(self, Self::Simulated)
    }
}

/// Whether less came than was asked for, chance set aside: the span of n random arrivals scatters
/// by about one part in √n, and of a few requests the last answer takes as much.
fn behind(sheet: &ToolResult) -> Option<Mark> {
    let ResultRate::PerSecond(asked_per_s) = sheet.request_rate? else { return None };
    let served_per_s = sheet.request_throughput?;
    let n = sheet.completed.filter(|n| 0 < *n)? as f64;
    let kept_up = (KEPT_UP - 1.0 / n.sqrt()) * asked_per_s;
    (served_per_s < kept_up).then_some(Mark::Saturated { asked_per_s, served_per_s })
}

const DAY_S: i64 = 86_400;
/// The end of the year 9999: later numbers are no seconds.
const EPOCH_S_MAX: i64 = 253_402_300_799;

/// A moment to the second. Who writes no zone is taken at his word as if it were UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    epoch_s: i64,
}

impl ToolResult {
    /// `None` where its source does not say, or not in a form that is known.
    pub fn started_at(&self) -> Option<Moment> {
        Moment::read(self.started.as_deref()?.trim())
    }
}

impl Moment {
    /// RFC 3339, vLLM's `20250424-225517`, or seconds since 1970.
    fn read(text: &str) -> Option<Self> {
        let epoch_s = compact(text).or_else(|| dashed(text)).or_else(|| seconds(text))?;
        (0..=EPOCH_S_MAX).contains(&epoch_s).then_some(Self { epoch_s })
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date_of(self.epoch_s.div_euclid(DAY_S));
        let minutes = self.epoch_s.rem_euclid(DAY_S) / 60;
        write!(f, "{year:04}-{month:02}-{day:02} {:02}:{:02}", minutes / 60, minutes % 60)
    }
}

fn compact(text: &str) -> Option<i64> {
    let (date, time) = text.split_once('-')?;
    if date.len() != 8 || time.len() != 6 {
        return None;
    }
    let of_date = [digits(date, 0, 4)?, digits(date, 4, 6)?, digits(date, 6, 8)?];
    at(of_date, [digits(time, 0, 2)?, digits(time, 2, 4)?, digits(time, 4, 6)?])
}

fn dashed(text: &str) -> Option<i64> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let mark = |place: usize, mark: u8| rest.as_bytes().get(place) == Some(&mark);
    let is_dashed = date.len() == 10 && date.as_bytes()[4] == b'-' && date.as_bytes()[7] == b'-';
    if !is_dashed || !mark(2, b':') || !mark(5, b':') {
        return None;
    }
    let of_date = [digits(date, 0, 4)?, digits(date, 5, 7)?, digits(date, 8, 10)?];
    let local = at(of_date, [digits(rest, 0, 2)?, digits(rest, 3, 5)?, digits(rest, 6, 8)?])?;
    let zone = rest.get(8..)?;
    let zone = match zone.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => zone,
    };
    Some(local - offset_s(zone)?)
}

fn seconds(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    digits(fraction, 0, fraction.len())?;
    digits(whole, 0, whole.len())
}

fn offset_s(zone: &str) -> Option<i64> {
    let sign = match zone.as_bytes().first() {
        None | Some(b'Z' | b'z') if zone.len() <= 1 => return Some(0),
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return None,
    };
    let minutes = if zone.len() == 6 { digits(zone, 4, 6)? } else { digits(zone, 3, 5)? };
    Some(sign * (digits(zone, 1, 3)? * 3600 + minutes * 60))
}

/// A number of nothing but digits.
fn digits(text: &str, from: usize, to: usize) -> Option<i64> {
    let part = text.get(from..to)?;
    let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| part.parse().ok()).flatten()
}

fn at([year, month, day]: [i64; 3], [hour, minute, second]: [i64; 3]) -> Option<i64> {
    // A leap second is the last of its minute.
    let is_time = hour < 24 && minute < 60 && second <= 60;
    let days = days_to(year, month, day);
    let is_date = (1..=12).contains(&month) && date_of(days) == (year, month, day);
    (is_time && is_date).then(|| days * DAY_S + hour * 3600 + minute * 60 + second.min(59))
}

/// Days from 1970-01-01, in years that begin with March so that the leap day is their last.
fn days_to(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + day_of_year - 719_468
}

fn date_of(days: i64) -> (i64, i64, i64) {
    let mut year = 1970 + days.div_euclid(366);
    while days_to(year + 1, 1, 1) <= days {
        year += 1;
    }
    let month = (2..=12).take_while(|month| days_to(year, *month, 1) <= days).last().unwrap_or(1);
    (year, month, days - days_to(year, month, 1) + 1)
}

#[cfg(test)]
mod tests;
