//! `[workload]`: what is asked. The tables of an experiment file are the flags of the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use inferometer_model::spec::{Counting, DatasetKind, Lengths, ThinkKind, TraceKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::BodyTable;
use super::grammars::SourceName;
use super::written::{Written, named};

/// What is asked.
#[derive(Args, Clone, Debug, Default, JsonSchema, Serialize)]
#[command(next_help_heading = "What is asked")]
pub(crate) struct WorkloadTable {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) source: SourceTable,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) tokens: TokenTable,
    #[command(flatten)]
    pub(crate) body: BodyTable,
    /// Kinds of requests by weight, instead of one source
    #[arg(skip)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) mix: Vec<MixTable>,
}

/// One kind of request in a mix.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub(crate) struct MixTable {
    #[serde(flatten)]
    pub(crate) label: LabelTable,
    #[serde(flatten)]
    pub(crate) source: SourceTable,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub(crate) struct LabelTable {
    /// Name of the part [default: part 1, part 2 …]
    pub(crate) name: Option<String>,
    /// Share of the requests that are of this kind, relative to the other parts [default: 1]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(crate) weight: Option<f64>,
}

/// Where prompts come from, and how long they and their answers are.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub(crate) struct SourceTable {
    /// Prompt length, an estimate without a tokenizer: a number or a distribution, such as
    /// 512±20%, uniform:256..1024, normal:512,128, lognormal:512,0.8, zipf:1.2,16..4096 or
    /// histogram:128=3,512=1 [default: 512]
    #[arg(long, value_name = "LENGTHS")]
    pub(crate) input_tokens: Option<Written<Lengths>>,
    /// Answer length to ask for, as --input-tokens [default: 128, or what the data says]
    #[arg(long, value_name = "LENGTHS")]
    pub(crate) output_tokens: Option<Written<Lengths>>,
    /// Tokens that prompts begin with alike, so that a prefix cache can help [default: 0]
    #[arg(long, value_name = "N")]
    #[schemars(range(max = 16_000_000))]
    pub(crate) prefix_tokens: Option<u32>,
    /// How many different prefixes there are [default: 1]
    #[arg(long, value_name = "N")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) prefixes: Option<u32>,
    /// Zipf exponent of their popularity; 0 makes them equally popular [default: 0]
    #[arg(long, value_name = "EXPONENT")]
    #[schemars(range(min = 0, max = 10))]
    pub(crate) prefix_zipf: Option<f64>,
    /// Words of our own, or prompts as `vllm bench serve` draws them [default: synthetic]
    #[arg(long, value_name = "SOURCE", value_parser = named::<SourceName>())]
    pub(crate) source: Option<Written<SourceName>>,
    /// Prompts from a file or directory
    #[arg(long, value_name = "PATH")]
    pub(crate) dataset: Option<PathBuf>,
    /// What the dataset is [default: told by its name and beginning]
    #[arg(long, value_name = "KIND", value_parser = named::<DatasetKind>())]
    pub(crate) dataset_kind: Option<Written<DatasetKind>>,
    /// Ask in the order of the dataset instead of shuffling it by the seed
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_name = "BOOL", hide_possible_values = true)]
    pub(crate) keep_order: Option<bool>,
    /// The same prompt every time
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// The same prompt every time, from a text file
    #[arg(long, value_name = "FILE")]
    pub(crate) prompt_file: Option<PathBuf>,
    /// Recorded traffic: its lengths, its shared prefixes and, unless the load says otherwise, its
    /// moments
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Whose format the trace has [default: told by its columns or keys]
    #[arg(long, value_name = "KIND", value_parser = named::<TraceKind>())]
    pub(crate) trace_kind: Option<Written<TraceKind>>,
    /// Share of the trace's requests that are sent, chosen by the seed [default: 1]
    #[arg(long, value_name = "SHARE")]
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub(crate) keep: Option<f64>,
    /// Conversations: how many turns each has, as a number or a distribution
    #[arg(long, value_name = "LENGTHS")]
    pub(crate) turns: Option<Written<Lengths>>,
    /// Conversations: how long a user thinks before the next turn [default: not at all]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) turn_think_time: Option<Written<Duration>>,
    /// Whether that time is always the same or the mean of random ones [default: fixed]
    #[arg(long, value_name = "KIND", value_parser = named::<ThinkKind>())]
    pub(crate) turn_think: Option<Written<ThinkKind>>,
    /// A plan that was saved before, played as it is
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
}

/// How tokens are counted, and what holds for every request.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub(crate) struct TokenTable {
    /// Tokenizer that makes lengths exact: a file, a model's directory, or a name on the hub
    /// [default: none; a word counts as a token]
    #[arg(long, value_name = "NAME")]
    pub(crate) tokenizer: Option<String>,
    /// Whether the length of a chat prompt counts its words or all that the model sees [default:
    /// prompt]
    #[arg(long, value_name = "WHAT", value_parser = named::<Counting>())]
    pub(crate) count: Option<Written<Counting>>,
    /// Ask for streams; false, or --no-stream, asks for whole answers [default: true]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_name = "BOOL", hide_possible_values = true)]
    pub(crate) stream: Option<bool>,
    /// Seed of every random draw [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}
