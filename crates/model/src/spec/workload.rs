//! `[workload]`: what is sent, as flags, as a table of a file, and resolved: where prompts come from,
//! how long they and their answers are, and what else a body carries.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::{Display, EnumDiscriminants, VariantArray};

use super::error::{Result, SpecError, at_most, refuse_first};
use super::lengths::Lengths;
use super::load::{Think, ThinkKind};
use super::text::{ImageSize, ImageSizes, Time, Written, set_keys};
use crate::endpoint::Api;
use crate::variant_name;

/// What is sent.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[command(next_help_heading = "Workload")]
pub struct WorkloadTable {
    #[command(flatten)]
    #[serde(flatten)]
    pub source: SourceTable,
    /// Tokenizer that makes lengths exact: a file, a model's directory, or a name on the hub
    /// [default: none; a word counts as a token]
    pub tokenizer: Option<String>,
    /// Whether the length of a chat prompt counts its words or all that the model sees [default:
    /// prompt]
    pub count: Option<Counting>,
    /// Ask for streams; false, or --no-stream, asks for whole answers [default: true]
    pub stream: Option<bool>,
    /// Seed of every random draw [default: drawn for each command; 1 in a simulation]
    pub seed: Option<u64>,
    #[command(flatten)]
    #[serde(default)]
    pub body: BodyTable,
    /// Kinds of requests by weight, instead of one source
    #[arg(skip)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mix: Vec<MixTable>,
}

/// One kind of request in a mix.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct MixTable {
    /// Name of the part [default: part 1, part 2 …]
    pub name: Option<String>,
    /// Share of the requests that are of this kind, relative to the other parts [default: 1]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub weight: Option<f64>,
    #[serde(flatten)]
    pub source: SourceTable,
}

/// Where prompts come from, and how long they and their answers are. Which source it is follows from
/// what is set.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SourceTable {
    /// Prompt length, an estimate without a tokenizer: a number or a distribution, such as
    /// 512±20%, uniform:256..1024, normal:512,128, lognormal:512,0.8, zipf:1.2,16..4096 or
    /// histogram:128=3,512=1 [default: 512]
    #[arg(long, visible_alias = "isl", value_name = "LENGTHS")]
    pub input_tokens: Option<Lengths>,
    /// Answer length to ask for, as --input-tokens [default: 128, or what the data says]
    #[arg(long, visible_alias = "osl", value_name = "LENGTHS")]
    pub output_tokens: Option<Lengths>,
    /// Length of the prefix that prompts share, so that a prefix cache can help [default: 0]
    #[schemars(range(max = 16_000_000))]
    pub prefix_tokens: Option<u32>,
    /// How many different prefixes prompts share [default: 1]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub prefixes: Option<u32>,
    /// Zipf exponent of the popularity of prefixes; 0 makes them equally popular [default: 0]
    #[schemars(range(min = 0, max = 10))]
    pub prefix_zipf: Option<f64>,
    /// Synthetic words, or prompts as `vllm bench serve` draws them [default: synthetic]
    pub source: Option<SourceName>,
    /// Prompts from a file or directory, or from a dataset on the hub: ORG/NAME or hf:ORG/NAME, and
    /// behind it perhaps a file of it
    #[arg(long, value_name = "PATH")]
    pub dataset: Option<PathBuf>,
    /// Format of the dataset [default: recognized by its name and beginning]
    pub dataset_kind: Option<DatasetKind>,
    /// Configuration of a dataset that has several, as its files or folders are called
    #[arg(long, value_name = "NAME")]
    pub dataset_config: Option<String>,
    /// Split of a dataset that has several [default: train]
    #[arg(long, value_name = "NAME")]
    pub dataset_split: Option<String>,
    /// Which column is what, as PART=COLUMN: prompt, messages, conversations, system, answer,
    /// `output_tokens` or body; a dot leads into lists and objects, as in prompt=turns.0; the flag may
    /// be repeated [default: columns of these names]
    #[arg(long, value_name = "PART=COLUMN")]
    pub dataset_column: Option<Vec<String>>,
    /// Use only the rows of a dataset with this value in a column; the flag may be repeated
    #[arg(long, value_name = "COLUMN=VALUE")]
    pub dataset_where: Option<Vec<String>>,
    /// Ask in the order of the dataset instead of shuffling it by the seed
    pub keep_order: Option<bool>,
    /// The same prompt every time
    pub prompt: Option<String>,
    /// The same prompt every time, from a text file
    pub prompt_file: Option<PathBuf>,
    /// Recorded traffic: its lengths, its shared prefixes and, unless the load is set, its timestamps
    pub trace: Option<PathBuf>,
    /// Format of the trace [default: recognized by its columns or keys]
    pub trace_kind: Option<TraceKind>,
    /// Share of the trace's requests that are sent, chosen by the seed [default: 1]
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub keep: Option<f64>,
    /// Conversations: how many turns each has, as a number or a distribution
    #[arg(long, value_name = "LENGTHS")]
    pub turns: Option<Lengths>,
    /// Conversations: how long a user thinks before the next turn [default: not at all]
    pub turn_think_time: Option<Time>,
    /// Conversations: whether the think time is always the same or the mean of random ones
    /// [default: fixed]
    pub turn_think: Option<ThinkKind>,
    /// Recorded sessions of several requests each: conversations, chats or agents' traces
    pub sessions: Option<PathBuf>,
    /// Format of the recorded sessions [default: recognized by its beginning]
    pub sessions_kind: Option<SessionKind>,
    /// Whose answers the later prompts of a recorded session contain: the server's own, or those that
    /// were recorded [default: real]
    pub history: Option<History>,
    #[command(flatten)]
    #[serde(default, skip_serializing_if = "AgentTable::is_empty")]
    pub agent: AgentTable,
    /// A plan that was saved before, played as it is
    pub plan: Option<PathBuf>,
}

/// Synthetic agents: sessions of steps with tool calls between them, and sub-agents that work beside
/// each other. --input-tokens is the length of a task, and --prefix-tokens of the system prompt.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct AgentTable {
    /// Agents: how many requests each sends one after the other, as a number or a distribution
    #[arg(id = "agent_steps", long = "agent-steps", value_name = "LENGTHS")]
    pub steps: Option<Lengths>,
    /// Agents: tools that are called one after the other between two steps [default: 1]
    #[arg(id = "agent_tools", long = "agent-tools", value_name = "LENGTHS")]
    pub tools: Option<Lengths>,
    /// Agents: how long each tool takes [default: no time]
    #[arg(id = "agent_tool_time", long = "agent-tool-time", value_name = "TIME")]
    pub tool_time: Option<Time>,
    /// Agents: whether a tool's time is always the same or the mean of random ones [default: fixed]
    #[arg(id = "agent_tool_think", long = "agent-tool-think", value_name = "KIND")]
    pub tool_think: Option<ThinkKind>,
    /// Agents: new tokens of each later step, the tools' results [default: 256]
    #[arg(id = "agent_growth", long = "agent-growth", value_name = "LENGTHS")]
    pub growth: Option<Lengths>,
    /// Agents: share of the steps that start sub-agents, which the next step waits for [default: 0, or
    /// 1 with --agent-subagents]
    #[arg(id = "agent_fan_out", long = "agent-fan-out", value_name = "SHARE")]
    #[schemars(range(min = 0, max = 1))]
    pub fan_out: Option<f64>,
    /// Agents: sub-agents of a step that starts any [default: 2]
    #[arg(id = "agent_subagents", long = "agent-subagents", value_name = "LENGTHS")]
    pub subagents: Option<Lengths>,
    /// Agents: how many requests each sub-agent sends one after the other [default: 2]
    #[arg(id = "agent_subagent_steps", long = "agent-subagent-steps", value_name = "LENGTHS")]
    pub subagent_steps: Option<Lengths>,
}

/// Prompts of our own, or those of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, VariantArray)]
#[serde(rename_all = "kebab-case")]
pub enum SourceName {
    Synthetic,
    VllmRandom,
}

/// What a request carries in addition to its prompt; what is not set is not sent.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[command(next_help_heading = "Request body")]
pub struct BodyTable {
    #[command(flatten)]
    #[serde(flatten)]
    pub sampling: SamplingTable,
    /// How long a reasoning model thinks, where the server accepts it: low, medium or high
    pub reasoning_effort: Option<String>,
    /// Text that ends an answer; the flag may be repeated
    #[arg(long, value_name = "TEXT")]
    pub stop: Option<Vec<String>>,
    /// Whether answers must have the requested length, with `ignore_eos` and `min_tokens`; auto does
    /// so where the workload chose the length and the server accepts the fields
    /// [default: auto]
    pub pin_output: Option<PinOutput>,
    /// JSON file with a list of tool definitions
    pub tools: Option<PathBuf>,
    /// Pictures of noise that every prompt carries [default: 0]
    #[schemars(range(max = 64))]
    pub images: Option<u32>,
    /// Width and height of each picture, or several with their weights, such as
    /// 512x512=3,1024x768=1 [default: 512x512]
    #[arg(long, value_name = "WxH")]
    pub image_size: Option<ImageSizes>,
    /// Pictures from a file or a folder instead of noise
    #[arg(long, value_name = "PATH")]
    pub image_files: Option<PathBuf>,
    /// Recordings that every chat prompt carries [default: 0]
    #[schemars(range(max = 16))]
    pub audio: Option<u32>,
    /// How long each recording of noise is, in whole seconds: a number or a distribution
    /// [default: 10]
    #[arg(long, value_name = "LENGTHS")]
    pub audio_seconds: Option<Lengths>,
    /// Recordings from a file or a folder (WAV or MP3) instead of noise
    #[arg(long, value_name = "PATH")]
    pub audio_files: Option<PathBuf>,
    /// Embeddings and reranking: inputs of each request; a reranker gets a query besides [default: 1]
    #[schemars(range(min = 1, max = 2048))]
    pub batch: Option<u32>,
    /// `LoRA` adapter to ask for instead of the model; the flag may be repeated
    #[arg(long, value_name = "NAME")]
    pub lora: Option<Vec<String>>,
    /// Which adapter a request asks for: round-robin, random, or zipf:EXPONENT, which makes the
    /// first the most popular [default: round-robin]
    pub lora_choice: Option<Written<AdapterChoice>>,
    /// Any other fields of the body, as they are sent; on the command line a JSON object
    #[arg(long = "extra-body", value_name = "JSON", value_parser = object)]
    pub extra: Option<Map<String, Value>>,
}

/// How tokens are sampled; each key is the field of the body.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SamplingTable {
    /// Sampling temperature
    #[schemars(range(min = 0))]
    pub temperature: Option<f64>,
    /// Nucleus sampling: the share of probability that is drawn from
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<f64>,
    /// How many of the likeliest tokens are drawn from; many servers take -1 for all
    #[schemars(range(min = -1))]
    pub top_k: Option<i64>,
    /// Tokens less likely than this share of the likeliest are not drawn
    #[schemars(range(min = 0, max = 1))]
    pub min_p: Option<f64>,
    /// Penalty on tokens by how often they occurred; may be negative
    pub frequency_penalty: Option<f64>,
    /// Penalty on tokens that occurred at all; may be negative
    pub presence_penalty: Option<f64>,
    /// Factor against repetition; 1 is none
    pub repetition_penalty: Option<f64>,
}

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "kebab-case")]
pub enum Counting {
    /// The words of the prompt; what a chat template adds comes on top.
    #[default]
    Prompt,
    /// All that the model sees, the template rendered.
    WithTemplate,
}

/// Where prompts come from. [`SourceKind`] has the kinds alone, by the names that users know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, EnumDiscriminants)]
#[strum_discriminants(name(SourceKind), derive(Serialize, Deserialize))]
#[strum_discriminants(serde(rename_all = "kebab-case"))]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    Synthetic(Synthetic),
    VllmRandom(VllmRandom),
    Dataset(DatasetSpec),
    /// The same prompt every time.
    #[strum_discriminants(serde(rename = "prompt"))]
    Fixed(FixedPrompt),
    /// Lengths, shared prefixes and, unless the load is set, timestamps of recorded traffic.
    Trace(TraceSpec),
    Conversations(Conversations),
    Sessions(SessionsSpec),
    Agents(Agents),
    /// Each request is of one of these kinds, by weight.
    Mix(Vec<MixPart>),
    /// A plan that was saved before, as it is.
    #[strum_discriminants(serde(rename = "saved plan"))]
    Saved {
        path: PathBuf,
        /// Whether the source of the saved plan chose the lengths of its answers.
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

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    #[serde(default, skip_serializing_if = "DatasetPart::is_whole")]
    pub part: DatasetPart,
}

/// Which files and columns of a dataset are used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatasetPart {
    pub config: Option<String>,
    pub split: Option<String>,
    /// The columns by what they are.
    pub columns: BTreeMap<DatasetRole, String>,
    /// What columns must hold for a row to be used.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub only: BTreeMap<String, String>,
}

impl DatasetPart {
    fn is_whole(&self) -> bool {
        *self == Self::default()
    }
}

/// What a column of a dataset can be.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    Display,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DatasetRole {
    Prompt,
    Messages,
    /// Turns with a `value`, of which the first is the prompt and the second the answer.
    Conversations,
    /// Text of a system message before the prompt.
    System,
    /// An answer: those of the server get its length.
    Answer,
    /// The right answer, which `--expect` compares with those of the server.
    Expected,
    OutputTokens,
    Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Display, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum DatasetKind {
    ShareGpt,
    Jsonl,
    /// A list of objects, each as a line of `jsonl`.
    Json,
    Parquet,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Display, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum TraceKind {
    Mooncake,
    Azure,
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

/// Sessions that were recorded, each a graph of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionsSpec {
    pub path: PathBuf,
    /// `None` is recognized by the file's beginning.
    pub kind: Option<SessionKind>,
    pub history: History,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Display, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum SessionKind {
    /// A request to a line, in the format of this program.
    Requests,
    ShareGpt,
    /// A list of OpenAI `messages` to a line.
    Messages,
    /// A list of `turns` to a line, as `AIPerf` reads them.
    Turns,
    /// Chats with `chat_id` and `parent_chat_id`.
    Bailian,
    /// Lists of turns with new messages, as SGLang reads them.
    AgenticTrace,
    /// OpenTelemetry spans of calls to models.
    Otel,
}

/// Whose answers later prompts contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "kebab-case")]
pub enum History {
    #[default]
    Real,
    Recorded,
}

/// Agents that work in steps, with tools between them. A step may start sub-agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agents {
    pub steps: Lengths,
    pub tools: Lengths,
    pub tool_time: Think,
    /// Tokens of a task.
    pub task: Lengths,
    pub growth: Lengths,
    pub output: Lengths,
    /// What agents and sub-agents begin with, as a system message.
    pub prefix: Option<SharedPrefix>,
    pub fan_out: f64,
    pub subagents: Lengths,
    pub subagent_steps: Lengths,
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
    #[serde(default, skip_serializing_if = "Media::is_plain")]
    pub media: Media,
    pub adapters: Option<Adapters>,
    /// Inputs of each request that generates nothing; a reranker's query is not one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<u32>,
}

/// Whether the server is asked to go on until an answer has its length (`ignore_eos` and
/// `min_tokens`, which some servers refuse).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, VariantArray)]
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

/// What prompts carry beside text and pictures of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Media {
    /// Width, height and weight of each size that pictures can have; empty where there is one.
    pub sizes: Vec<(u32, u32, f64)>,
    pub image_files: Option<PathBuf>,
    pub audio: Option<Audio>,
}

/// Recordings that every prompt carries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Audio {
    pub count: u32,
    /// Of each recording of noise.
    pub seconds: Lengths,
    pub files: Option<PathBuf>,
}

impl Media {
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

impl BodySpec {
    /// Whether prompts carry more than text, whose tokens only the server can count.
    pub fn has_media(&self) -> bool {
        self.images.is_some() || self.media.audio.is_some()
    }
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

/// How timestamps that were recorded on a coarse grid are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "kebab-case")]
pub enum Ticks {
    /// Spread evenly within the tick, when more than half of the requests share a timestamp.
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
            Self::Synthetic(_)
            | Self::VllmRandom(_)
            | Self::Trace(_)
            | Self::Conversations(_)
            | Self::Sessions(_)
            | Self::Agents(_) => true,
            Self::Dataset(dataset) => dataset.output.is_some(),
            Self::Fixed(_) => false,
            Self::Saved { chooses_output, .. } => *chooses_output,
            Self::Mix(parts) => parts.iter().all(|part| part.source.chooses_output()),
        }
    }

    /// Whether what it names may say when its requests or sessions came.
    pub fn may_be_timed(&self) -> bool {
        matches!(self, Self::Trace(_) | Self::Sessions(_))
    }

    /// Whether it consists of sessions, so that these arrive, and hold slots, instead of requests.
    pub fn has_sessions(&self) -> bool {
        matches!(self, Self::Conversations(_) | Self::Sessions(_) | Self::Agents(_))
    }

    /// Whether its words follow from the seed alone: with the same seed, prompts of other lengths
    /// or at another rate begin alike.
    pub fn writes_words(&self) -> bool {
        match self {
            Self::Synthetic(_) | Self::VllmRandom(_) | Self::Conversations(_) | Self::Agents(_) => {
                true
            }
            Self::Mix(parts) => parts.iter().any(|part| part.source.writes_words()),
            Self::Dataset(_)
            | Self::Fixed(_)
            | Self::Trace(_)
            | Self::Sessions(_)
            | Self::Saved { .. } => false,
        }
    }

    pub fn kind(&self) -> SourceKind {
        self.into()
    }
}

impl SourceKind {
    pub fn name(self) -> &'static str {
        variant_name(&self)
    }
}

impl SamplingTable {
    /// The fields that are set, as a body carries them.
    pub fn fields(&self) -> Map<String, Value> {
        set_keys(self)
    }
}

/// What a column is, and its name.
fn column(text: &str) -> Result<(DatasetRole, String)> {
    let known = |name: &str| DatasetRole::VARIANTS.iter().find(|role| role.to_string() == name);
    let found = text.split_once('=').and_then(|(role, name)| Some((*known(role.trim())?, name)));
    let found = found.filter(|(_, name)| !name.trim().is_empty());
    let (role, name) = found.ok_or_else(|| SpecError::BadColumn(text.to_owned()))?;
    Ok((role, name.trim().to_owned()))
}

/// Reads a JSON object from a flag.
pub fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("not a JSON object ({error}); write it as '{{\"field\": 1}}'"))
}

pub const INPUT_TOKENS: u32 = 512;
pub const OUTPUT_TOKENS: u32 = 128;
/// The most tokens of a prompt, or of an answer.
pub const TOKENS_MAX: u32 = 16_000_000;
/// The most turns of a conversation, or requests of a session.
pub const TURNS_MAX: u32 = 10_000;

impl WorkloadTable {
    /// Whether nothing is set, or only what holds by default.
    pub(super) fn is_default(&self) -> bool {
        let source = SourceTable::default();
        self.source.is_default() && Self { source, ..self.clone() } == Self::default()
    }

    pub(super) fn resolve(self) -> Result<Workload> {
        let source = if self.mix.is_empty() {
            self.source.resolve()?
        } else {
            resolve_mix(&self.source, self.mix)?
        };
        let counting = self.count.unwrap_or_default();
        let is_vllm_random = matches!(source, Source::VllmRandom(_));
        if counting == Counting::WithTemplate && self.tokenizer.is_none() {
            return Err(SpecError::TemplateWithoutTokenizer);
        }
        if is_vllm_random && self.tokenizer.is_none() {
            return Err(SpecError::VllmRandomWithoutTokenizer);
        }
        if counting == Counting::WithTemplate && is_vllm_random {
            let (flag, needs) = ("--count with-template", "prompts that are not vllm-random");
            return Err(SpecError::Stray { flag, needs });
        }
        Ok(Workload {
            streaming: self.stream.unwrap_or(true),
            source,
            tokenizer: self.tokenizer,
            counting,
            body: self.body.resolve()?,
        })
    }
}

fn resolve_mix(alone: &SourceTable, mix: Vec<MixTable>) -> Result<Source> {
    at_most("the number of mix parts", mix.len() as u64, 64)?;
    if !alone.is_default() {
        return Err(SpecError::MixAndSource);
    }
    let mut parts = Vec::new();
    for (number, part) in (1..).zip(mix) {
        let name = part.name.unwrap_or_else(|| format!("part {number}"));
        let weight = part.weight.unwrap_or(1.0);
        if !(weight.is_finite() && 0.0 < weight) {
            return Err(SpecError::MixWeight(name));
        }
        let source = part.source.resolve()?;
        if source.has_sessions() || matches!(source, Source::Trace(_) | Source::Saved { .. }) {
            return Err(SpecError::MixOf(name, source.kind().name()));
        }
        parts.push(MixPart { name, weight, source });
    }
    if !parts.iter().map(|part| part.weight).sum::<f64>().is_finite() {
        return Err(SpecError::MixWeights);
    }
    Ok(Source::Mix(parts))
}

impl SourceTable {
    /// Whether nothing is set, or only what holds by default.
    fn is_default(&self) -> bool {
        let keep_order = self.keep_order.filter(|keep_order| *keep_order);
        let source = self.source.filter(|source| *source != SourceName::Synthetic);
        Self { source, keep_order, ..self.clone() } == Self::default()
    }

    fn resolve(self) -> Result<Source> {
        let is_vllm_random = self.source == Some(SourceName::VllmRandom);
        let sources = [
            (is_vllm_random, "--source vllm-random"),
            (self.dataset.is_some(), "--dataset"),
            (self.prompt.is_some(), "--prompt"),
            (self.trace.is_some(), "--trace"),
            (self.turns.is_some(), "--turns"),
            (self.sessions.is_some(), "--sessions"),
            (self.agent.steps.is_some(), "--agent-steps"),
            (self.plan.is_some(), "--plan"),
        ];
        let mut named = sources.into_iter().filter(|(is_set, _)| *is_set);
        let (first, second) = (named.next(), named.next());
        if let (Some((_, first)), Some((_, second))) = (first, second) {
            return Err(SpecError::TwoSources(first, second));
        }
        self.refuse_strays(first.is_some(), is_vllm_random)?;
        let (prefix, part) = (self.prefix()?, self.dataset_part()?);
        let output = self.output_tokens.clone().unwrap_or(Lengths::Fixed(OUTPUT_TOKENS));
        let input = self.input_tokens.clone().unwrap_or(Lengths::Fixed(INPUT_TOKENS));
        if is_vllm_random {
            let prefix_tokens = self.prefix_tokens.unwrap_or(0);
            return Ok(Source::VllmRandom(VllmRandom { input, output, prefix_tokens }));
        }
        if let Some(turns) = self.turns {
            at_most("--turns", turns.most().into(), TURNS_MAX.into())?;
            let think = Think::new(self.turn_think_time, self.turn_think)?;
            let conversations = Conversations { turns, input, output, think, prefix };
            return Ok(Source::Conversations(conversations));
        }
        if self.agent.steps.is_some() {
            return self.agent.resolve(input, output, prefix).map(Source::Agents);
        }
        if let Some(path) = self.sessions {
            let (kind, history) = (self.sessions_kind, self.history.unwrap_or_default());
            return Ok(Source::Sessions(SessionsSpec { path, kind, history }));
        }
        if let Some(path) = self.plan {
            return Ok(Source::Saved { path, chooses_output: false });
        }
        if let Some(prompt) = self.prompt {
            if prompt.trim().is_empty() {
                return Err(SpecError::EmptyPrompt);
            }
            return Ok(Source::Fixed(FixedPrompt { prompt, output }));
        }
        if let Some(path) = self.trace {
            let keep = self.keep.unwrap_or(1.0);
            if !(0.0 < keep && keep <= 1.0) {
                return Err(SpecError::BadKeep);
            }
            return Ok(Source::Trace(TraceSpec { path, kind: self.trace_kind, keep }));
        }
        if let Some(path) = self.dataset {
            return Ok(Source::Dataset(DatasetSpec {
                path,
                kind: self.dataset_kind,
                input: self.input_tokens,
                output: self.output_tokens,
                keep_order: self.keep_order.unwrap_or(false),
                part,
            }));
        }
        if let Some(prefix) = prefix.filter(|prefix| input.most() <= prefix.tokens) {
            return Err(SpecError::PrefixTooLong { prefix: prefix.tokens, input: input.most() });
        }
        Ok(Source::Synthetic(Synthetic { input, output, prefix }))
    }

    fn dataset_part(&self) -> Result<DatasetPart> {
        let only = |text: &String| match text.split_once('=') {
            Some((column, value)) => Ok((column.trim().to_owned(), value.to_owned())),
            None => Err(SpecError::BadWhere(text.clone())),
        };
        Ok(DatasetPart {
            config: self.dataset_config.clone(),
            split: self.dataset_split.clone(),
            columns: self
                .dataset_column
                .iter()
                .flatten()
                .map(|it| column(it))
                .collect::<Result<_>>()?,
            only: self.dataset_where.iter().flatten().map(only).collect::<Result<_>>()?,
        })
    }

    /// Refuses what is set but would change nothing.
    fn refuse_strays(&self, is_named: bool, is_vllm_random: bool) -> Result<()> {
        let Self { dataset, dataset_kind, trace, turns, turn_think_time, .. } = self;
        let (has_input, has_output) = (self.input_tokens.is_some(), self.output_tokens.is_some());
        let has_own_lengths = trace.is_some() || self.plan.is_some() || self.sessions.is_some();
        let is_agent = self.agent.steps.is_some();
        let has_prefix = !is_named || turns.is_some() || is_agent || is_vllm_random;
        // Prompts as the other client draws them have one prefix for all.
        let has_prefixes = self.prefix_tokens.is_some_and(|tokens| 0 < tokens) && !is_vllm_random;
        let is_whole = dataset_kind.is_some_and(|kind| kind != DatasetKind::Directory);
        let own = "synthetic prompts (no --prompt, --dataset, --trace, --sessions or --plan)";
        let own_prefix = "--prefix-tokens of synthetic prompts";
        let stray = [
            (has_input && (self.prompt.is_some() || has_own_lengths), "--input-tokens", own),
            (has_input && is_whole, "--input-tokens", "a --dataset of the kind directory"),
            (has_output && has_own_lengths, "--output-tokens", "a source without lengths"),
            (self.prefix_tokens.is_some() && !has_prefix, "--prefix-tokens", own),
            (dataset_kind.is_some() && dataset.is_none(), "--dataset-kind", "--dataset"),
            (self.keep_order == Some(true) && dataset.is_none(), "--keep-order", "--dataset"),
            (self.dataset_config.is_some() && dataset.is_none(), "--dataset-config", "--dataset"),
            (self.dataset_split.is_some() && dataset.is_none(), "--dataset-split", "--dataset"),
            (self.dataset_column.is_some() && dataset.is_none(), "--dataset-column", "--dataset"),
            (self.dataset_where.is_some() && dataset.is_none(), "--dataset-where", "--dataset"),
            (self.trace_kind.is_some() && trace.is_none(), "--trace-kind", "--trace"),
            (self.keep.is_some() && trace.is_none(), "--keep", "--trace"),
            (
                self.sessions_kind.is_some() && self.sessions.is_none(),
                "--sessions-kind",
                "--sessions",
            ),
            (self.history.is_some() && self.sessions.is_none(), "--history", "--sessions"),
            (!is_agent && !self.agent.is_empty(), "another --agent flag", "--agent-steps"),
            (turn_think_time.is_some() && turns.is_none(), "--turn-think-time", "--turns"),
            (
                self.turn_think.is_some() && turn_think_time.is_none(),
                "--turn-think",
                "--turn-think-time",
            ),
            (self.prefixes.is_some() && !has_prefixes, "--prefixes", own_prefix),
            (self.prefix_zipf.is_some() && !has_prefixes, "--prefix-zipf", own_prefix),
        ];
        let refused = |(is_stray, flag, needs)| (is_stray, SpecError::Stray { flag, needs });
        refuse_first(stray.map(refused))
    }

    fn prefix(&self) -> Result<Option<SharedPrefix>> {
        let Some(tokens) = self.prefix_tokens.filter(|tokens| 0 < *tokens) else { return Ok(None) };
        let count = self.prefixes.unwrap_or(1);
        at_most("--prefix-tokens", tokens.into(), TOKENS_MAX.into())?;
        at_most("--prefixes", count.into(), 1_000_000)?;
        if count == 0 {
            return Err(SpecError::Zero("--prefixes"));
        }
        let zipf = self.prefix_zipf.unwrap_or(0.0);
        if !(0.0..=10.0).contains(&zipf) {
            return Err(SpecError::BadZipf("--prefix-zipf"));
        }
        Ok(Some(SharedPrefix { tokens, count, zipf }))
    }
}

impl AgentTable {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn resolve(
        self,
        task: Lengths,
        output: Lengths,
        prefix: Option<SharedPrefix>,
    ) -> Result<Agents> {
        let or = |lengths: Option<Lengths>, usual| lengths.unwrap_or(Lengths::Fixed(usual));
        let has_subagents = self.subagents.is_some() || self.subagent_steps.is_some();
        let fan_out = self.fan_out.unwrap_or(if has_subagents { 1.0 } else { 0.0 });
        if !(0.0..=1.0).contains(&fan_out) {
            return Err(SpecError::BadFanOut);
        }
        let agents = Agents {
            steps: or(self.steps, 1),
            tools: or(self.tools, 1),
            tool_time: Think::new(self.tool_time, self.tool_think)?,
            task,
            growth: or(self.growth, 256),
            output,
            prefix,
            fan_out,
            subagents: or(self.subagents, 2),
            subagent_steps: or(self.subagent_steps, 2),
        };
        at_most("--agent-tools", agents.tools.most().into(), 1_000)?;
        let most = |lengths: &Lengths| u64::from(lengths.most());
        let of_subagents = most(&agents.subagents).saturating_mul(most(&agents.subagent_steps));
        let of_step = 1 + if 0.0 < fan_out { of_subagents } else { 0 };
        let requests = most(&agents.steps).saturating_mul(of_step);
        at_most("the requests of an agent and its sub-agents", requests, TURNS_MAX.into())?;
        Ok(agents)
    }
}

impl BodyTable {
    fn resolve(self) -> Result<BodySpec> {
        let mut fields = self.extra.unwrap_or_default();
        let effort = self.reasoning_effort.map(|it| ("reasoning_effort".to_owned(), it.into()));
        let stop = self.stop.map(|stop| ("stop".to_owned(), stop.into()));
        for (field, value) in self.sampling.fields().into_iter().chain(effort).chain(stop) {
            if fields.contains_key(&field) {
                return Err(SpecError::FieldTwice(field));
            }
            fields.insert(field, value);
        }
        if let Some(field) = OWN_FIELDS.iter().find(|field| fields.contains_key(**field)) {
            return Err(SpecError::OwnField(field));
        }
        let stray = |flag, needs| Err(SpecError::Stray { flag, needs });
        let audio = Self::audio(self.audio, self.audio_seconds, self.audio_files)?;
        let mut media = Media { audio, image_files: self.image_files, ..Media::default() };
        let images = Self::images(self.images, self.image_size, &mut media)?;
        let names = self.lora.unwrap_or_default();
        let choice = self.lora_choice.map(|choice| choice.0);
        let adapters = match (names.is_empty(), choice) {
            (true, Some(_)) => return stray("--lora-choice", "--lora"),
            (true, None) => None,
            (false, Some(AdapterChoice::Zipf(exponent))) if !(0.0..=10.0).contains(&exponent) => {
                return Err(SpecError::BadZipf("--lora-choice zipf"));
            }
            (false, choice) => {
                Some(Adapters { names, choice: choice.unwrap_or(AdapterChoice::RoundRobin) })
            }
        };
        let batch = self.batch;
        if batch == Some(0) {
            return Err(SpecError::Zero("--batch"));
        }
        at_most("--batch", batch.unwrap_or(1).into(), 2_048)?;
        let pin_output = self.pin_output.unwrap_or_default();
        Ok(BodySpec { fields, pin_output, images, media, adapters, batch })
    }

    /// The pictures; where they have several sizes, these are put into `media`.
    fn images(
        count: Option<u32>,
        sizes: Option<ImageSizes>,
        media: &mut Media,
    ) -> Result<Option<Images>> {
        let stray = |flag, needs| Err(SpecError::Stray { flag, needs });
        match (count.unwrap_or(0), sizes) {
            (0, Some(_)) => stray("--image-size", "--images"),
            (0, None) if media.image_files.is_some() => stray("--image-files", "--images"),
            (_, Some(_)) if media.image_files.is_some() => {
                stray("--image-size", "pictures of noise (no --image-files)")
            }
            (0, None) => Ok(None),
            (count, sizes) => {
                let ImageSizes(sizes) = sizes.unwrap_or_else(|| ImageSize(512, 512).into());
                at_most("--images", count.into(), 64)?;
                for (ImageSize(width, height), _) in &sizes {
                    at_most("--image-size", (*width.max(height)).into(), 4_096)?;
                    if *width.min(height) == 0 {
                        return Err(SpecError::Zero("--image-size"));
                    }
                }
                at_most("the number of sizes of --image-size", sizes.len() as u64, 256)?;
                let (ImageSize(width, height), _) = sizes[0];
                if 1 < sizes.len() {
                    let shares = sizes.iter().map(|(ImageSize(w, h), weight)| (*w, *h, *weight));
                    media.sizes = shares.collect();
                }
                Ok(Some(Images { count, width, height }))
            }
        }
    }

    fn audio(
        count: Option<u32>,
        seconds: Option<Lengths>,
        files: Option<PathBuf>,
    ) -> Result<Option<Audio>> {
        let count = count.unwrap_or(0);
        let stray = [
            (count == 0 && seconds.is_some(), "--audio-seconds", "--audio"),
            (count == 0 && files.is_some(), "--audio-files", "--audio"),
            (
                files.is_some() && seconds.is_some(),
                "--audio-seconds",
                "recordings of noise (no --audio-files)",
            ),
        ];
        refuse_first(
            stray.map(|(is_stray, flag, needs)| (is_stray, SpecError::Stray { flag, needs })),
        )?;
        let seconds = seconds.unwrap_or(Lengths::Fixed(10));
        at_most("--audio", count.into(), 16)?;
        at_most("--audio-seconds", seconds.most().into(), 600)?;
        Ok((0 < count).then_some(Audio { count, seconds, files }))
    }
}

/// Fields that the measurement itself sets.
pub const OWN_FIELDS: [&str; 9] = [
    "model",
    "messages",
    "prompt",
    "input",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "n",
];

impl Workload {
    /// Refuses what the API cannot carry: it would be left out in silence, and the run would measure
    /// something else.
    #[expect(clippy::wildcard_enum_match_arm, reason = "only sessions have other names")]
    pub(super) fn check_carried(&self, api: Api) -> Result<()> {
        let body = &self.body;
        let sessions = match self.source.kind() {
            SourceKind::Sessions => "--sessions",
            SourceKind::Agents => "--agent-steps",
            _ => "--turns",
        };
        let wanted = [
            (body.adapters.is_some(), "--lora", (|api| api.facts().takes_adapters) as fn(Api) -> _),
            (body.images.is_some(), "--images", |api| api.facts().takes_images),
            (body.media.audio.is_some(), "--audio", |api| api == Api::Chat),
            (body.batch.is_some(), "--batch", |api| !api.generates()),
            (self.source.has_sessions(), sessions, Api::generates),
        ];
        for (is_wanted, flag, can) in wanted {
            if is_wanted && !can(api) {
                let able = Api::VARIANTS.iter().filter(|api| can(**api)).map(|api| api.name());
                let able = able.collect::<Vec<_>>().join(", ");
                return Err(SpecError::NotCarried { flag, api, able });
            }
        }
        let facts = api.facts();
        let inner = match facts.container.and_then(|name| Some((name, body.fields.get(name)?))) {
            Some((_, Value::Object(inner))) => Some(inner),
            Some((name, _)) => return Err(SpecError::NotAnObject(name)),
            None => None,
        };
        let is_set = |field: &str| {
            body.fields.contains_key(field) || inner.is_some_and(|inner| inner.contains_key(field))
        };
        match facts.own_fields.iter().find(|field| is_set(field)) {
            Some(field) => Err(SpecError::OwnField(field)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
