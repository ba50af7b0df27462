//! What is sent: where prompts come from, how long they and their answers are, and what else a body
//! carries.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::lengths::Lengths;
use super::load::Think;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    pub streaming: bool,
    pub source: Source,
    /// A file, a model's directory, or a name on the hub; `None` estimates lengths by words.
    pub tokenizer: Option<String>,
    pub counting: Counting,
    pub body: BodySpec,
}

/// What the length of a chat prompt counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counting {
    /// The words of the prompt; what a chat template adds comes on top.
    #[default]
    Prompt,
    /// All that the model sees, the template rendered.
    WithTemplate,
}

/// Where prompts come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    Synthetic(Synthetic),
    VllmRandom(VllmRandom),
    Dataset(DatasetSpec),
    /// The same prompt every time.
    Fixed(FixedPrompt),
    /// Lengths, shared prefixes and, unless the load says otherwise, moments of recorded traffic.
    Trace(TraceSpec),
    Conversations(Conversations),
    /// Each request is of one of these kinds, by weight.
    Mix(Vec<MixPart>),
    /// A plan that was saved before, as it is.
    Saved {
        path: PathBuf,
        /// Of the source that it was made from.
        chooses_output: bool,
    },
}

/// Words of our own, different for every request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Synthetic {
    /// All of the prompt, its shared prefix included.
    pub input: Lengths,
    pub output: Lengths,
    pub prefix: Option<SharedPrefix>,
}

/// Prompts that begin alike, so that a prefix cache can help.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharedPrefix {
    pub tokens: u32,
    /// How many different ones there are.
    pub count: u32,
    /// Zipf exponent of their popularity; zero makes them equally popular.
    pub zipf: f64,
}

/// Prompts as `vllm bench serve` draws them: consecutive token ids from seeded offsets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VllmRandom {
    pub input: Lengths,
    pub output: Lengths,
    /// Tokens that all prompts begin with, on top of `input`.
    pub prefix_tokens: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatasetSpec {
    pub path: PathBuf,
    /// `None` is recognized by the file's name and beginning.
    pub kind: Option<DatasetKind>,
    /// How texts of a directory are cut; other kinds keep their prompts whole.
    pub input: Option<Lengths>,
    /// Instead of what the data says.
    pub output: Option<Lengths>,
    /// In the order of the file; otherwise shuffled by the seed.
    pub keep_order: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DatasetKind {
    #[serde(rename = "sharegpt")]
    ShareGpt,
    Jsonl,
    Csv,
    /// A prompt to a line.
    Text,
    /// Text files, cut to length.
    Directory,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FixedPrompt {
    pub prompt: String,
    pub output: Lengths,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceSpec {
    pub path: PathBuf,
    /// `None` is recognized by the file's columns or keys.
    pub kind: Option<TraceKind>,
    /// Share of the requests that are kept, chosen by the seed; 1 keeps all.
    pub keep: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceKind {
    Mooncake,
    Azure,
    #[serde(rename = "burstgpt")]
    BurstGpt,
    Bailian,
}

/// Users who talk for several turns. The assistant's real answers enter the history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conversations {
    pub turns: Lengths,
    /// New words of the user in each turn.
    pub input: Lengths,
    pub output: Lengths,
    /// How long a user thinks between an answer and the next turn.
    pub think: Think,
    /// What conversations begin with, as a system message.
    pub prefix: Option<SharedPrefix>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MixPart {
    pub name: String,
    pub weight: f64,
    pub source: Source,
}

/// What a body carries in addition to its prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BodySpec {
    /// Sampling fields, tools and anything else, as they are sent.
    pub fields: Map<String, Value>,
    pub pin_output: PinOutput,
    pub images: Option<Images>,
    pub adapters: Option<Adapters>,
}

/// Whether the server is asked to go on until an answer has its length (`ignore_eos` and
/// `min_tokens`, which some servers refuse).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PinOutput {
    /// Where the workload chose the length and a probe showed that the server accepts the fields.
    #[default]
    Auto,
    Always,
    Never,
}

/// Pictures of noise that every prompt carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Images {
    pub count: u32,
    pub width: u32,
    pub height: u32,
}

/// `LoRA` adapters: names to ask for instead of the model's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adapters {
    pub names: Vec<String>,
    pub choice: AdapterChoice,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdapterChoice {
    RoundRobin,
    Random,
    /// The first is the most popular.
    Zipf(f64),
}

/// How a recorded load is played.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// Above one the gaps shrink, and bursts with them; thinning keeps bursts as they are.
    pub speed: f64,
    pub ticks: Ticks,
}

/// What becomes of moments that were recorded on a coarse grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ticks {
    /// Spread evenly within the tick, when more than half of the requests share a moment.
    #[default]
    Auto,
    /// As recorded.
    Keep,
    Uniform,
    /// Gaps of a Poisson process within the tick.
    Poisson,
}

impl Source {
    /// Whether the workload chose how long answers are, and not the data.
    pub fn chooses_output(&self) -> bool {
        match self {
            Self::Synthetic(_) | Self::VllmRandom(_) | Self::Trace(_) | Self::Conversations(_) => {
                true
            }
            Self::Dataset(dataset) => dataset.output.is_some(),
            Self::Fixed(_) => false,
            Self::Saved { chooses_output, .. } => *chooses_output,
            Self::Mix(parts) => parts.iter().all(|part| part.source.chooses_output()),
        }
    }

    /// Whether its words follow from the seed alone: with the same seed, prompts of other lengths
    /// or at another rate begin alike.
    pub fn writes_words(&self) -> bool {
        match self {
            Self::Synthetic(_) | Self::VllmRandom(_) | Self::Conversations(_) => true,
            Self::Mix(parts) => parts.iter().any(|part| part.source.writes_words()),
            Self::Dataset(_) | Self::Fixed(_) | Self::Trace(_) | Self::Saved { .. } => false,
        }
    }

    pub fn kind(&self) -> SourceKind {
        match self {
            Self::Synthetic(_) => SourceKind::Synthetic,
            Self::VllmRandom(_) => SourceKind::VllmRandom,
            Self::Dataset(_) => SourceKind::Dataset,
            Self::Fixed(_) => SourceKind::Prompt,
            Self::Trace(_) => SourceKind::Trace,
            Self::Conversations(_) => SourceKind::Conversations,
            Self::Mix(_) => SourceKind::Mix,
            Self::Saved { .. } => SourceKind::Saved,
        }
    }
}

/// The kinds of sources, by the names that users know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    Synthetic,
    VllmRandom,
    Dataset,
    Prompt,
    Trace,
    Conversations,
    Mix,
    #[serde(rename = "saved plan")]
    Saved,
}

impl SourceKind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Synthetic => "synthetic",
            Self::VllmRandom => "vllm-random",
            Self::Dataset => "dataset",
            Self::Prompt => "prompt",
            Self::Trace => "trace",
            Self::Conversations => "conversations",
            Self::Mix => "mix",
            Self::Saved => "saved plan",
        }
    }
}

/// Longest time between two turns of a conversation.
pub(super) const TURN_THINK_MAX: Duration = super::bounds::THINK_MAX;
