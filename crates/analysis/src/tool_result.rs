//! One result of a run, whether the run is ours or another tool's.
//!
//! Pages that compare results, exports and imports all use [`ToolResult`], so that a figure is mapped once. It
//! holds figures only: what its source does not report is missing, and every latency says what one of
//! its values is and where its clock starts.

pub mod extra;

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use inferometer_model::Outcome;
use inferometer_model::spec::Arrivals;
use inferometer_model::study::Level;
use jiff::civil::DateTime;
use jiff::{Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};

use crate::definitions::vllm::{self, VllmLatency};
use crate::judge::Verdict;
use crate::metric::{self, Distribution, Metric, Quantity, Statistic};
use crate::run::{LoadFacts, RateFacts};
use crate::set::Served;
use crate::statistics::{Estimate, Interval, Percentile, Sample, proportion::wilson};
use crate::summary::Summary;

/// One run, as its source sums it up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolResult {
    pub source: ResultSource,
    /// Results of one configuration are one line of a chart. Empty where nothing distinguishes it.
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
    /// Version of the tool, where the file has it.
    pub version: Option<String>,
    /// The run, or what the record is called in its file.
    pub name: String,
    /// Where the record begins in its file, counted from one.
    pub line: Option<u32>,
    /// Whether no server was measured.
    pub simulated: bool,
}

/// Whose numbers they are.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::VariantArray,
)]
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
    LlmD,
    GenaiBench,
    InferencePerf,
    #[serde(rename = "llmperf")]
    LlmPerf,
    #[serde(rename = "mlperf")]
    MlPerf,
    #[serde(rename = "inferencex")]
    InferenceX,
    Oha,
    K6,
    /// A table on a page, or typed in.
    Table,
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

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "UPPERCASE")]
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

impl ResultRequest {
    pub fn is_ok(&self) -> bool {
        self.error.as_deref() == Some("")
    }
}

/// The definition of a latency: what it is, from where it counts, and what one value of it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LatencyDefinition {
    pub kind: LatencyKind,
    pub from: CountsFrom,
    pub grain: Grain,
}

/// Our latencies with their definitions, best first.
static LATENCIES: [(&Metric, LatencyKind, CountsFrom, Grain); 7] = [
    (&metric::TTFT_SCHEDULE, LatencyKind::Ttft, CountsFrom::Schedule, Grain::Request),
    (&metric::TTFT, LatencyKind::Ttft, CountsFrom::Send, Grain::Request),
    (&metric::TPOT, LatencyKind::Tpot, CountsFrom::Output, Grain::Request),
    (&metric::ITL, LatencyKind::Itl, CountsFrom::Output, Grain::Token),
    (&metric::ICL, LatencyKind::Itl, CountsFrom::Output, Grain::Chunk),
    (&metric::E2E_SCHEDULE, LatencyKind::E2e, CountsFrom::Schedule, Grain::Request),
    (&metric::E2E, LatencyKind::E2e, CountsFrom::Send, Grain::Request),
];

type Throughput = fn(&ToolResult) -> Option<f64>;

/// Throughputs by the names of their fields, and our metrics for them. The last has no interval.
static THROUGHPUTS: [(&str, &Metric, Throughput); 5] = [
    (metric::REQUEST_THROUGHPUT.name, &metric::REQUEST_THROUGHPUT, |it| it.request_throughput),
    ("request_goodput", &metric::GOODPUT, |it| it.request_goodput),
    (metric::OUTPUT_THROUGHPUT.name, &metric::OUTPUT_THROUGHPUT, |it| it.output_throughput),
    ("total_token_throughput", &metric::TOTAL_THROUGHPUT, |it| it.total_token_throughput),
    (metric::PEAK_OUTPUT_THROUGHPUT.name, &metric::PEAK_OUTPUT_THROUGHPUT, |it| {
        it.peak_output_throughput
    }),
];

impl ResultLatency {
    /// Sets a statistic by its name: `mean`, `std`, `min`, `max`, `median` or the rank of a percentile.
    pub fn set(&mut self, statistic: &str, ms: f64) {
        let place = match statistic {
            "mean" => &mut self.mean_ms,
            "std" => &mut self.std_ms,
            "min" => &mut self.min_ms,
            "max" => &mut self.max_ms,
            rank => {
                let rank = if rank == "median" { "50" } else { rank };
                self.percentiles_ms.insert(rank.to_owned(), ms);
                return;
            }
        };
        *place = Some(ms);
    }

    /// With the statistics that are known among these, each by its name in [`Self::set`] and the name that
    /// its source has for it; `None` where none is.
    #[must_use]
    pub fn with(
        mut self,
        names: &[(&str, &str)],
        mut ms: impl FnMut(&str) -> Option<f64>,
    ) -> Option<Self> {
        let known = names.iter().filter_map(|(statistic, name)| Some((statistic, ms(name)?)));
        let set = known.map(|(statistic, ms)| self.set(statistic, ms)).count();
        (0 < set).then_some(self)
    }

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

    /// With the figures of a sample; percentiles by their rank as written.
    #[must_use]
    pub fn with_sample(
        self,
        sample: &Sample,
        percentiles: impl Iterator<Item = (String, f64)>,
    ) -> Self {
        Self {
            n: Some(sample.count()),
            mean_ms: Some(sample.mean()),
            std_ms: Some(sample.std_population()),
            min_ms: Some(sample.min()),
            max_ms: Some(sample.max()),
            percentiles_ms: percentiles.collect(),
            ..self
        }
    }

    /// By the rank as written, such as `99.9`.
    pub fn percentile_ms(&self, rank: &str) -> Option<f64> {
        self.percentiles_ms.get(rank).copied()
    }

    pub fn median_ms(&self) -> Option<f64> {
        self.percentile_ms("50")
    }

    pub const fn definition(&self) -> LatencyDefinition {
        LatencyDefinition { kind: self.kind, from: self.from, grain: self.grain }
    }

    /// Whether its source says what one of its values is and from where it counts.
    pub fn is_defined(&self) -> bool {
        self.from != CountsFrom::Unknown && self.grain != Grain::Unknown
    }

    /// Takes the intervals of the same latency by our own definitions.
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
}

/// The interval of one figure around another that differs by its definition only: the interval is as
/// wide in proportion.
fn moved(interval: Interval, from: f64, to: f64) -> Option<Interval> {
    let scale = Some(to / from).filter(|scale| scale.is_finite() && 0.0 < *scale)?;
    Some(Interval { low: interval.low * scale, high: interval.high * scale })
}

/// JSON has no infinity: it is the text `inf`, as vLLM writes it.
mod infinite {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
    use serde_json::Value;

    #[expect(clippy::ref_option, reason = "serde asks for it")]
    pub(super) fn serialize<S: Serializer>(
        value: &Option<f64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(f64::INFINITY) => "inf".serialize(serializer),
            value => value.serialize(serializer),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<f64>, D::Error> {
        let value = Value::deserialize(deserializer)?;
        match value.as_str() {
            Some("inf") => Ok(Some(f64::INFINITY)),
            Some(text) => Err(D::Error::custom(format!("“{text}” is neither a number nor `inf`"))),
            None => Option::deserialize(value).map_err(D::Error::custom),
        }
    }
}

impl ToolResult {
    /// A run of our own by our definitions, with the intervals that come from within the run.
    pub fn from_summary(summary: &Summary) -> Self {
        let scalar = |metric: &Metric| summary.metrics.scalar(metric);
        let value = |metric: &Metric| scalar(metric).and_then(|scalar| scalar.value);
        let mut result = Self {
            duration_s: summary.window.duration_s,
            request_throughput: value(&metric::REQUEST_THROUGHPUT),
            request_goodput: value(&metric::GOODPUT),
            output_throughput: value(&metric::OUTPUT_THROUGHPUT),
            total_token_throughput: value(&metric::TOTAL_THROUGHPUT),
            peak_output_throughput: value(&metric::PEAK_OUTPUT_THROUGHPUT),
            ..Self::from_facts(summary)
        };
        for (metric, kind, from, grain) in LATENCIES {
            let Some(values) = summary.metrics.distribution(metric) else { continue };
            result.latencies.extend(latency(values, ResultLatency::new(kind, from, grain)));
        }
        for (field, metric, _) in &THROUGHPUTS[..4] {
            let interval = scalar(metric).and_then(|scalar| scalar.interval);
            result.intervals.extend(interval.map(|interval| ((*field).to_owned(), interval)));
        }
        for metric in [&metric::VALID_ANSWERS, &metric::ACCURACY] {
            let Some(found) = scalar(metric) else { continue };
            let named = |value| (metric.name.to_owned(), value);
            result.further.extend(found.value.map(named));
            let interval = found.interval.map(|it| (metric.name.to_owned(), it));
            result.intervals.extend(interval);
        }
        result.marks = Mark::found_in(&result, summary);
        result
    }

    /// A run of our own by the definitions of `vllm bench serve`.
    pub fn of_vllm(summary: &Summary) -> Self {
        let figures = &summary.vllm;
        let mut result = Self {
            backend: Some(vllm::backend(summary.run.api).to_owned()),
            completed: Some(figures.completed),
            failed: Some(figures.failed),
            duration_s: figures.duration_s,
            request_throughput: figures.request_throughput,
            request_goodput: figures.request_goodput,
            total_token_throughput: figures.total_token_throughput,
            ..Self::from_facts(summary)
        };
        if summary.run.api.generates() {
            result.output_throughput = figures.output_throughput;
            result.peak_output_throughput =
                figures.max_output_tokens_per_s.map(|tokens| tokens as f64);
            result.peak_concurrent_requests = figures.max_concurrent_requests;
        } else {
            // That tool counts inputs where nothing is generated. A request of ours is one.
            result.output_tokens = None;
            let inputs = Some(figures.completed as f64);
            for (figure, value) in
                [(extra::INPUTS, inputs), (extra::INPUT_THROUGHPUT, figures.request_throughput)]
            {
                result.further.extend(value.map(|value| (figure.key.to_owned(), value)));
            }
        }
        let latencies = [figures.ttft_ms, figures.tpot_ms, figures.itl_ms, figures.e2el_ms];
        for ((kind, from, grain), values) in vllm::LATENCIES.into_iter().zip(latencies) {
            result.latencies.extend(vllm_latency(&values, ResultLatency::new(kind, from, grain)));
        }
        result.marks = Mark::found_in(&result, summary);
        result
    }

    /// A run of our own in the terms of other tools: counted as they count, over the whole run, with
    /// the latencies and the intervals that only we have.
    pub fn beside_others(summary: &Summary) -> Self {
        let mut result = Self::of_vllm(summary);
        let own = Self::from_summary(summary);
        for (field, _, get) in &THROUGHPUTS[..4] {
            let interval = own.intervals.get(*field).zip(get(&own).zip(get(&result)));
            let moved = interval.and_then(|(interval, (from, to))| moved(*interval, from, to));
            result.intervals.extend(moved.map(|interval| ((*field).to_owned(), interval)));
        }
        for own in own.latencies {
            let is_same = |known: &&mut ResultLatency| known.definition() == own.definition();
            match result.latencies.iter_mut().find(is_same) {
                Some(known) => known.take_intervals(&own),
                None => result.latencies.push(own),
            }
        }
        result
    }

    fn from_facts(summary: &Summary) -> Self {
        let run = &summary.run;
        // A closed loop and a trace have no gaps to draw, and a ramp and a trace have no single rate.
        let (request_rate, burstiness, max_concurrency) = match &run.load {
            LoadFacts::Closed { concurrency, .. } => {
                (Some(ResultRate::Unlimited), None, Some(*concurrency))
            }
            LoadFacts::Open { rate, arrivals, max_concurrency } => {
                let burstiness = match arrivals {
                    Arrivals::Constant => f64::INFINITY,
                    Arrivals::Poisson => 1.0,
                    Arrivals::Gamma { burstiness } | Arrivals::Stretched { burstiness } => {
                        *burstiness
                    }
                };
                let is_drawn = !matches!(rate, RateFacts::Recorded { .. });
                let rate = match rate {
                    RateFacts::Steady { per_s } => Some(ResultRate::PerSecond(*per_s)),
                    RateFacts::Unlimited => Some(ResultRate::Unlimited),
                    RateFacts::Ramp { .. } | RateFacts::Recorded { .. } => None,
                };
                (rate, is_drawn.then_some(burstiness), *max_concurrency)
            }
        };
        let ok = summary.count(Outcome::Ok);
        Self {
            source: ResultSource {
                version: Some(run.tool_version.clone()),
                name: run.id.clone(),
                simulated: run.simulated.is_some(),
                ..ResultSource::default()
            },
            model: Some(run.model.clone()),
            tokenizer: summary.workload.tokenizer.as_ref().map(|facts| facts.name.clone()),
            backend: Some(run.api.name().to_owned()),
            started: Some(run.started.clone()),
            request_rate,
            burstiness,
            max_concurrency,
            requests_planned: Some(summary.scheduled),
            completed: Some(ok),
            failed: Some(summary.attempted.saturating_sub(ok)),
            input_tokens: Some(summary.tokens.input_total),
            output_tokens: Some(summary.tokens.output_total),
            verdict: Some(summary.verdict),
            metadata: run.metadata.clone().into_iter().collect(),
            ..Self::default()
        }
    }

    /// The first latency of this kind, whatever it counts from: a source mostly has one.
    pub fn latency(&self, kind: LatencyKind) -> Option<&ResultLatency> {
        self.latencies.iter().find(|latency| latency.kind == kind)
    }

    pub fn latency_from(&self, kind: LatencyKind, from: CountsFrom) -> Option<&ResultLatency> {
        self.latencies.iter().find(|latency| latency.kind == kind && latency.from == from)
    }

    /// For building: the latency with this definition, made where it is missing.
    pub fn latency_mut(
        &mut self,
        kind: LatencyKind,
        from: CountsFrom,
        grain: Grain,
    ) -> &mut ResultLatency {
        let wanted = LatencyDefinition { kind, from, grain };
        let place = self.latencies.iter().position(|latency| latency.definition() == wanted);
        let place = place.unwrap_or_else(|| {
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

    /// When it started, in UTC, from RFC 3339, vLLM's `20250424-225517` or seconds since 1970; a time
    /// without a zone is taken as UTC. `None` where its source does not say, or not in a form that is
    /// known.
    pub fn started_at(&self) -> Option<DateTime> {
        let text = self.started.as_deref()?.trim();
        let utc = |moment: Timestamp| moment.to_zoned(TimeZone::UTC).datetime();
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let found = if is_number(whole) && is_number(fraction) {
            Timestamp::from_second(whole.parse().ok()?).ok().map(utc)
        } else if text.len() == 15 && !text.contains(':') {
            DateTime::strptime("%Y%m%d-%H%M%S", text).ok()
        } else if text.contains(':') {
            text.parse().ok().map(utc).or_else(|| text.parse().ok())
        } else {
            None
        };
        found.filter(|moment| 1970 <= moment.year())
    }

    /// The value of a quantity, or why there is none. What the source leaves open is taken for the
    /// plain metric of its kind: [`ToolResult::latency_of`] has what it says.
    pub fn figure(&self, quantity: &Quantity) -> Result<Estimate, String> {
        let metric = quantity.metric();
        let found = match quantity.statistic() {
            None if *metric == metric::ERROR_RATE => self.error_rate(),
            None => {
                let field = THROUGHPUTS.iter().find(|(_, known, _)| *known == metric);
                field.and_then(|(field, ..)| self.throughput_estimate(field))
            }
            Some(statistic) => {
                self.latency_of(metric).and_then(|latency| self.statistic_of(latency, statistic))
            }
        };
        let absent = || format!("the result has no {}", metric.title);
        found.filter(|found| found.value.is_finite()).ok_or_else(absent)
    }

    /// A throughput by the name of its field, with its interval.
    pub fn throughput_estimate(&self, field: &str) -> Option<Estimate> {
        let (.., get) = THROUGHPUTS.iter().find(|(known, ..)| *known == field)?;
        let interval = self.intervals.get(field).copied();
        Some(Estimate::new(get(self)?, interval, self.completed.unwrap_or(1)))
    }

    /// The latency that one of our metrics names: of exactly its definition; else, of a metric without
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

    /// Only where the source counts failures: what it does not mention may have happened.
    fn error_rate(&self) -> Option<Estimate> {
        let (completed, failed) = (self.completed?, self.failed?);
        let n = completed.checked_add(failed).filter(|n| 0 < *n)?;
        let interval = wilson(failed as f64, n as f64);
        Some(Estimate::new(failed as f64 / n as f64, interval, n))
    }

    /// A statistic of one of its latencies. `n` is 0 where the number of values is not known,
    /// and then nothing is certified.
    pub fn statistic_of(&self, latency: &ResultLatency, statistic: Statistic) -> Option<Estimate> {
        let rank = statistic.name().trim_start_matches('p');
        let value = match statistic {
            Statistic::Mean => latency.mean_ms,
            Statistic::Max => latency.max_ms,
            Statistic::Percentile(_) => latency.percentile_ms(rank),
        }?;
        let n = latency.n.or_else(|| self.answers_with(latency.kind)).unwrap_or(0);
        let interval = latency.intervals_ms.get(rank).copied();
        let certified = statistic.certified_from() <= n;
        Some(Estimate { certified, ..Estimate::new(value, interval, n) })
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

/// `None` where the metric has no value.
fn latency(values: &Distribution, empty: ResultLatency) -> Option<ResultLatency> {
    let mut latency = ResultLatency {
        n: Some(values.n),
        mean_ms: Some(values.mean?),
        std_ms: values.std,
        min_ms: values.min,
        max_ms: values.max,
        ..empty
    };
    for statistic in Percentile::ALL.map(Statistic::Percentile).into_iter().chain([Statistic::Mean])
    {
        let rank = statistic.name().trim_start_matches('p').to_owned();
        let interval = values.intervals.get(statistic);
        latency.intervals_ms.extend(interval.map(|interval| (rank.clone(), interval)));
        let percentile = statistic.stored(values).filter(|_| statistic != Statistic::Mean);
        latency.percentiles_ms.extend(percentile.map(|value| (rank, value)));
    }
    Some(latency)
}

fn vllm_latency(values: &VllmLatency, empty: ResultLatency) -> Option<ResultLatency> {
    let mean_ms = Some(values.mean?);
    let ranks = [("50", values.median), ("90", values.p90), ("95", values.p95), ("99", values.p99)];
    let known = ranks.into_iter().filter_map(|(rank, value)| Some((rank.to_owned(), value?)));
    Some(ResultLatency { mean_ms, std_ms: values.std, percentiles_ms: known.collect(), ..empty })
}

impl Tool {
    pub const ALL: &[Self] = <Self as strum::VariantArray>::VARIANTS;

    /// The key in files, the name, and the program that writes its results.
    const fn names(self) -> [&'static str; 3] {
        match self {
            Self::Inferometer => ["inferometer", "Inferometer", "Inferometer"],
            Self::Vllm => ["vllm", "vLLM", "vllm bench serve"],
            Self::Sglang => ["sglang", "SGLang", "SGLang bench_serving"],
            Self::GuideLlm => ["guidellm", "GuideLLM", "GuideLLM"],
            Self::AiPerf => ["aiperf", "AIPerf", "AIPerf"],
            Self::LlmD => ["llm-d", "llm-d", "llm-d benchmark"],
            Self::GenaiBench => ["genai-bench", "genai-bench", "genai-bench"],
            Self::InferencePerf => ["inference-perf", "inference-perf", "inference-perf"],
            Self::LlmPerf => ["llmperf", "LLMPerf", "LLMPerf"],
            Self::MlPerf => ["mlperf", "MLPerf", "MLPerf LoadGen"],
            Self::InferenceX => ["inferencex", "InferenceX", "InferenceX"],
            Self::Oha => ["oha", "oha", "oha"],
            Self::K6 => ["k6", "k6", "k6"],
            Self::Table => ["table", "published table", "a published table"],
        }
    }

    pub const fn key(self) -> &'static str {
        self.names()[0]
    }

    pub const fn name(self) -> &'static str {
        self.names()[1]
    }

    pub const fn program(self) -> &'static str {
        self.names()[2]
    }
}

impl LatencyKind {
    pub const ALL: [Self; 4] = [Self::Ttft, Self::Tpot, Self::Itl, Self::E2e];

    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Mark {
    /// Fewer requests ended than were planned.
    Cut { completed: u64, planned: u64 },
    /// Some requests failed; the figures describe the others.
    Failures { failed: u64 },
    /// The server served less than the requested rate.
    Saturated { asked_per_s: f64, served_per_s: f64 },
    /// By our own checks.
    Invalid,
    /// No server was measured.
    Simulated,
}

/// A server that gave this share of the rate kept up with it: the last answers take their time.
const KEPT_UP: f64 = 0.95;

impl Mark {
    /// The marks that follow from a result's figures alone.
    pub fn found(result: &ToolResult) -> Vec<Self> {
        Self::with(result, behind(result))
    }

    /// The marks of a run of our own, about which more is known than its result holds.
    fn found_in(result: &ToolResult, summary: &Summary) -> Vec<Self> {
        let served = Served::from_runs(result.level(), std::iter::once(summary));
        let behind = served.filter(|served| served.saturated).map(|served| Self::Saturated {
            asked_per_s: served.asked_per_s,
            served_per_s: served.served_per_s,
        });
        Self::with(result, behind)
    }

    fn with(result: &ToolResult, behind: Option<Self>) -> Vec<Self> {
        let mut marks = Vec::new();
        if let (Some(completed), Some(planned)) = (result.completed, result.requests_planned)
            && completed.saturating_add(result.failed.unwrap_or(0)) < planned
        {
            marks.push(Self::Cut { completed, planned });
        }
        let failed = result.failed.filter(|failed| 0 < *failed);
        marks.extend(failed.map(|failed| Self::Failures { failed }));
        marks.extend(behind);
        marks.extend((result.verdict == Some(Verdict::Invalid)).then_some(Self::Invalid));
        marks.extend(result.source.simulated.then_some(Self::Simulated));
        marks
    }

    /// In files and in cells.
    pub fn key(&self) -> &'static str {
        self.into()
    }

    /// Whether its figures must not be set beside those of clean runs.
    pub const fn is_reservation(&self) -> bool {
        !matches!(self, Self::Simulated)
    }
}

/// Whether less was served than was requested, chance set aside: the span of n random arrivals scatters
/// by about one part in √n, and of a few requests the last answer takes as much.
fn behind(sheet: &ToolResult) -> Option<Mark> {
    let ResultRate::PerSecond(asked_per_s) = sheet.request_rate? else { return None };
    let served_per_s = sheet.request_throughput?;
    let n = sheet.completed.filter(|n| 0 < *n)? as f64;
    let kept_up = (KEPT_UP - 1.0 / n.sqrt()) * asked_per_s;
    (served_per_s < kept_up).then_some(Mark::Saturated { asked_per_s, served_per_s })
}

#[cfg(test)]
mod tests;
