//! All that one result says of a run, whether the run is ours or another tool's.
//!
//! Pages that set results beside each other, exports and imports all speak of sheets, so that a
//! figure is mapped once. A sheet holds figures only: what its source does not say is missing, and
//! every latency says what one of its values is and from where its clock counts.

mod figure;
pub mod further;
mod mark;
mod own;
mod started;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::estimate::Interval;
use crate::judge::Verdict;
pub use mark::Mark;
pub use started::Moment;

/// One run, as its source sums it up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sheet {
    pub source: SheetSource,
    /// Results of one configuration are one line of a chart. Empty where nothing tells it apart.
    pub configuration: String,
    pub model: Option<String>,
    pub tokenizer: Option<String>,
    /// The API or client that was used, in the source's own word.
    pub backend: Option<String>,
    /// As the source writes it.
    pub started: Option<String>,
    pub request_rate: Option<SheetRate>,
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
    /// At most one of a kind, clock and grain; see [`Sheet::latency`].
    pub latencies: Vec<SheetLatency>,
    /// Figures of one tool only, by its own keys; see [`further`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub further: BTreeMap<String, f64>,
    /// 95 % intervals of the throughputs, by the name of their field; from within the run.
    pub intervals: BTreeMap<String, Interval>,
    /// Ours only: other tools do not judge themselves.
    pub verdict: Option<Verdict>,
    /// Why its figures must not be read as those of a clean run.
    pub marks: Vec<Mark>,
    /// What else it was told to say of itself, such as `--metadata`; in the source's order.
    pub metadata: Vec<(String, String)>,
    /// What the source says beyond this: keys without a field, and values that are no figures,
    /// each with its place.
    pub unmapped: Vec<String>,
    /// One for each request in the source's order, where it says so much.
    pub requests: Option<Vec<SheetRequest>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SheetSource {
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
pub enum SheetRate {
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
pub struct SheetLatency {
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
pub struct SheetRequest {
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

impl SheetLatency {
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

impl Sheet {
    /// The first latency of this kind, whatever it counts from: a source mostly has one.
    pub fn latency(&self, kind: LatencyKind) -> Option<&SheetLatency> {
        self.latencies.iter().find(|latency| latency.kind == kind)
    }

    pub fn latency_from(&self, kind: LatencyKind, from: CountsFrom) -> Option<&SheetLatency> {
        self.latencies.iter().find(|latency| latency.kind == kind && latency.from == from)
    }

    /// For building: the latency with this meaning, made where it is missing.
    pub fn latency_mut(
        &mut self,
        kind: LatencyKind,
        from: CountsFrom,
        grain: Grain,
    ) -> &mut SheetLatency {
        let is_meant = |latency: &SheetLatency| {
            (latency.kind, latency.from, latency.grain) == (kind, from, grain)
        };
        let place = self.latencies.iter().position(is_meant).unwrap_or_else(|| {
            self.latencies.push(SheetLatency::new(kind, from, grain));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_word_is_infinity() {
        let of = |json: &str| serde_json::from_str::<Sheet>(json).map(|sheet| sheet.burstiness);
        assert_eq!(of("{\"burstiness\": \"inf\"}").ok(), Some(Some(f64::INFINITY)));
        assert_eq!(of("{\"burstiness\": 0.5}").ok(), Some(Some(0.5)));
        assert_eq!(of("{\"burstiness\": null}").ok(), Some(None));
        let error = of("{\"burstiness\": \"NaN\"}").map_err(|error| error.to_string());
        assert!(error.is_err_and(|error| error.contains("“NaN”")));
        let written = |shape| {
            let sheet = Sheet { burstiness: Some(shape), ..Sheet::default() };
            serde_json::to_value(&sheet).ok().map(|value| value["burstiness"].clone())
        };
        assert_eq!(written(f64::INFINITY), Some("inf".into()));
        assert_eq!(written(f64::NAN), Some(serde_json::Value::Null), "no number is not infinity");
    }
}
