//! `[workload]`: what is sent, as flags, as a table of a file, and resolved.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::SpecError;
use super::bounds::{INPUT_TOKENS, OUTPUT_TOKENS, TOKENS_MAX, TURNS_MAX, at_most};
use super::lengths::Lengths;
use super::load::Think;
use super::load_table::ThinkKind;
use super::text::{ImageSize, Time, Written};
use super::workload::{
    AdapterChoice, Adapters, BodySpec, Conversations, Counting, DatasetKind, DatasetSpec,
    FixedPrompt, Images, MixPart, PinOutput, SharedPrefix, Source, Synthetic, TURN_THINK_MAX,
    TraceKind, TraceSpec, VllmRandom, Workload,
};

/// What is sent.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[command(next_help_heading = "Workload")]
pub struct WorkloadTable {
    #[command(flatten)]
    #[serde(flatten)]
    pub source: SourceTable,
    /// Tokenizer that makes lengths exact: a file, a model's directory, or a name on the hub
    /// [default: none; a word counts as a token]
    #[arg(long, value_name = "NAME")]
    pub tokenizer: Option<String>,
    /// Whether the length of a chat prompt counts its words or all that the model sees [default:
    /// prompt]
    #[arg(long, value_name = "WHAT")]
    pub count: Option<Counting>,
    /// Ask for streams; false, or --no-stream, asks for whole answers [default: true]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_name = "BOOL", hide_possible_values = true)]
    pub stream: Option<bool>,
    /// Seed of every random draw [default: 1]
    #[arg(long, value_name = "N")]
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
    #[arg(long, value_name = "LENGTHS")]
    pub input_tokens: Option<Lengths>,
    /// Answer length to ask for, as --input-tokens [default: 128, or what the data says]
    #[arg(long, value_name = "LENGTHS")]
    pub output_tokens: Option<Lengths>,
    /// Length of the prefix that prompts share, so that a prefix cache can help [default: 0]
    #[arg(long, value_name = "N")]
    #[schemars(range(max = 16_000_000))]
    pub prefix_tokens: Option<u32>,
    /// How many different prefixes there are [default: 1]
    #[arg(long, value_name = "N")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub prefixes: Option<u32>,
    /// Zipf exponent of their popularity; 0 makes them equally popular [default: 0]
    #[arg(long, value_name = "EXPONENT")]
    #[schemars(range(min = 0, max = 10))]
    pub prefix_zipf: Option<f64>,
    /// Synthetic words, or prompts as `vllm bench serve` draws them [default: synthetic]
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<SourceName>,
    /// Prompts from a file or directory
    #[arg(long, value_name = "PATH")]
    pub dataset: Option<PathBuf>,
    /// Format of the dataset [default: recognized by its name and beginning]
    #[arg(long, value_name = "KIND")]
    pub dataset_kind: Option<DatasetKind>,
    /// Ask in the order of the dataset instead of shuffling it by the seed
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_name = "BOOL", hide_possible_values = true)]
    pub keep_order: Option<bool>,
    /// The same prompt every time
    #[arg(long, value_name = "TEXT")]
    pub prompt: Option<String>,
    /// The same prompt every time, from a text file
    #[arg(long, value_name = "FILE")]
    pub prompt_file: Option<PathBuf>,
    /// Recorded traffic: its lengths, its shared prefixes and, unless the load says otherwise, its
    /// moments
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Format of the trace [default: recognized by its columns or keys]
    #[arg(long, value_name = "KIND")]
    pub trace_kind: Option<TraceKind>,
    /// Share of the trace's requests that are sent, chosen by the seed [default: 1]
    #[arg(long, value_name = "SHARE")]
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub keep: Option<f64>,
    /// Conversations: how many turns each has, as a number or a distribution
    #[arg(long, value_name = "LENGTHS")]
    pub turns: Option<Lengths>,
    /// Conversations: how long a user thinks before the next turn [default: not at all]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub turn_think_time: Option<Time>,
    /// Whether that time is always the same or the mean of random ones [default: fixed]
    #[arg(long, value_name = "KIND")]
    pub turn_think: Option<ThinkKind>,
    /// A plan that was saved before, played as it is
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
}

/// Prompts of our own, or those of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
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
    /// Text that ends an answer; the flag may be repeated
    #[arg(long, value_name = "TEXT")]
    pub stop: Option<Vec<String>>,
    /// Whether answers must have the requested length, with `ignore_eos` and `min_tokens`; auto does
    /// so where the workload chose the length and the server accepts the fields
    /// [default: auto]
    #[arg(long, value_name = "WHEN")]
    pub pin_output: Option<PinOutput>,
    /// JSON file with a list of tool definitions
    #[arg(long, value_name = "FILE")]
    pub tools: Option<PathBuf>,
    /// Pictures of noise that every prompt carries [default: 0]
    #[arg(long, value_name = "N")]
    #[schemars(range(max = 64))]
    pub images: Option<u32>,
    /// Width and height of each picture [default: 512x512]
    #[arg(long, value_name = "WxH")]
    pub image_size: Option<ImageSize>,
    /// `LoRA` adapter to ask for instead of the model; the flag may be repeated
    #[arg(long, value_name = "NAME")]
    pub lora: Option<Vec<String>>,
    /// Which adapter a request asks for: round-robin, random, or zipf:EXPONENT, which makes the
    /// first the most popular [default: round-robin]
    #[arg(long, value_name = "HOW")]
    pub lora_choice: Option<Written<AdapterChoice>>,
    /// Any other fields of the body, as they are sent; on the command line a JSON object
    #[arg(long = "extra-body", value_name = "JSON", value_parser = object)]
    pub extra: Option<Map<String, Value>>,
}

/// How tokens are sampled; each key is the field of the body.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SamplingTable {
    /// Sampling temperature
    #[arg(long, value_name = "T")]
    #[schemars(range(min = 0))]
    pub temperature: Option<f64>,
    /// Nucleus sampling: the share of probability that is drawn from
    #[arg(long, value_name = "P")]
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<f64>,
    /// How many of the likeliest tokens are drawn from; many servers take -1 for all
    #[arg(long, value_name = "K")]
    #[schemars(range(min = -1))]
    pub top_k: Option<i64>,
    /// Tokens less likely than this share of the likeliest are not drawn
    #[arg(long, value_name = "P")]
    #[schemars(range(min = 0, max = 1))]
    pub min_p: Option<f64>,
    /// Penalty on tokens by how often they occurred; may be negative
    #[arg(long, value_name = "X")]
    pub frequency_penalty: Option<f64>,
    /// Penalty on tokens that occurred at all; may be negative
    #[arg(long, value_name = "X")]
    pub presence_penalty: Option<f64>,
    /// Factor against repetition; 1 is none
    #[arg(long, value_name = "X")]
    pub repetition_penalty: Option<f64>,
}

impl SamplingTable {
    /// The fields that are set, as a body carries them.
    pub fn fields(&self) -> Map<String, Value> {
        let Ok(Value::Object(fields)) = serde_json::to_value(self) else { return Map::new() };
        fields.into_iter().filter(|(_, value)| !value.is_null()).collect()
    }
}

/// Reads a JSON object from a flag.
pub fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("not a JSON object ({error}); write it as '{{\"field\": 1}}'"))
}

const IMAGES_MAX: u32 = 64;
const IMAGE_SIDE_MAX: u32 = 4_096;
const IMAGE_SIZE: ImageSize = ImageSize(512, 512);
const PREFIXES_MAX: u32 = 1_000_000;
const MIX_MAX: usize = 64;

impl WorkloadTable {
    /// Whether nothing is set, or only what holds by default.
    pub(super) fn is_default(&self) -> bool {
        let source = SourceTable::default();
        self.source.is_default() && Self { source, ..self.clone() } == Self::default()
    }

    pub(super) fn resolve(self) -> Result<Workload, SpecError> {
        let source = if self.mix.is_empty() {
            self.source.resolve()?
        } else {
            resolve_mix(&self.source, self.mix)?
        };
        let counting = self.count.unwrap_or_default();
        if counting == Counting::WithTemplate && self.tokenizer.is_none() {
            return Err(SpecError::TemplateWithoutTokenizer);
        }
        if matches!(source, Source::VllmRandom(_)) && self.tokenizer.is_none() {
            return Err(SpecError::VllmRandomWithoutTokenizer);
        }
        if counting == Counting::WithTemplate && matches!(source, Source::VllmRandom(_)) {
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

fn resolve_mix(alone: &SourceTable, mix: Vec<MixTable>) -> Result<Source, SpecError> {
    if MIX_MAX < mix.len() {
        return Err(SpecError::TooLarge {
            name: "the number of mix parts",
            value: mix.len() as u64,
            bound: MIX_MAX as u64,
        });
    }
    if !alone.is_default() {
        return Err(SpecError::MixAndSource);
    }
    let parts: Result<Vec<_>, _> = mix
        .into_iter()
        .enumerate()
        .map(|(place, part)| {
            let name = part.name.unwrap_or_else(|| format!("part {}", place + 1));
            let weight = part.weight.unwrap_or(1.0);
            if !(weight.is_finite() && 0.0 < weight) {
                return Err(SpecError::MixWeight(name));
            }
            let source = part.source.resolve()?;
            if matches!(source, Source::Conversations(_) | Source::Trace(_) | Source::Saved { .. })
            {
                return Err(SpecError::MixOf(name, source.kind().name()));
            }
            Ok(MixPart { name, weight, source })
        })
        .collect();
    let parts = parts?;
    if !parts.iter().map(|part| part.weight).sum::<f64>().is_finite() {
        return Err(SpecError::MixWeights);
    }
    Ok(Source::Mix(parts))
}

impl SourceTable {
    /// Whether nothing is set, or only what holds by default.
    pub(super) fn is_default(&self) -> bool {
        let keep_order = self.keep_order.filter(|keep_order| *keep_order);
        let source = self.source.filter(|source| *source != SourceName::Synthetic);
        Self { source, keep_order, ..self.clone() } == Self::default()
    }

    fn is_vllm_random(&self) -> bool {
        self.source == Some(SourceName::VllmRandom)
    }

    /// The sources that were named, by their flags.
    fn named(&self) -> Vec<&'static str> {
        [
            (self.is_vllm_random(), "--source vllm-random"),
            (self.dataset.is_some(), "--dataset"),
            (self.prompt.is_some(), "--prompt"),
            (self.trace.is_some(), "--trace"),
            (self.turns.is_some(), "--turns"),
            (self.plan.is_some(), "--plan"),
        ]
        .into_iter()
        .filter_map(|(set, flag)| set.then_some(flag))
        .collect()
    }

    fn resolve(self) -> Result<Source, SpecError> {
        if let [first, second, ..] = self.named()[..] {
            return Err(SpecError::TwoSources(first, second));
        }
        self.refuse_strays()?;
        let prefix = self.prefix()?;
        let output = self.output_tokens.clone().unwrap_or(Lengths::Fixed(OUTPUT_TOKENS));
        let input = self.input_tokens.clone().unwrap_or(Lengths::Fixed(INPUT_TOKENS));
        if self.is_vllm_random() {
            let prefix_tokens = self.prefix_tokens.unwrap_or(0);
            return Ok(Source::VllmRandom(VllmRandom { input, output, prefix_tokens }));
        }
        if let Some(turns) = self.turns.clone() {
            at_most("--turns", turns.most().into(), TURNS_MAX.into())?;
            let think = self.turn_think()?;
            return Ok(Source::Conversations(Conversations {
                turns,
                input,
                output,
                think,
                prefix,
            }));
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
            }));
        }
        if let Some(prefix) = prefix.filter(|prefix| input.most() <= prefix.tokens) {
            return Err(SpecError::PrefixTooLong { prefix: prefix.tokens, input: input.most() });
        }
        Ok(Source::Synthetic(Synthetic { input, output, prefix }))
    }

    /// What is set but would change nothing.
    fn refuse_strays(&self) -> Result<(), SpecError> {
        let has_lengths = self.prompt.is_none() && self.trace.is_none() && self.plan.is_none();
        let has_prefix = self.named().is_empty() || self.turns.is_some() || self.is_vllm_random();
        // Prompts as the other client draws them have one prefix for all.
        let has_prefixes =
            self.prefix_tokens.is_some_and(|tokens| 0 < tokens) && !self.is_vllm_random();
        let is_whole = self.dataset_kind.is_some_and(|kind| kind != DatasetKind::Directory);
        let stray = [
            (self.input_tokens.is_some() && !has_lengths, "--input-tokens", "prompts of our own"),
            (
                self.input_tokens.is_some() && is_whole,
                "--input-tokens",
                "a --dataset of the kind directory",
            ),
            (
                self.output_tokens.is_some() && (self.trace.is_some() || self.plan.is_some()),
                "--output-tokens",
                "a source that does not say it itself",
            ),
            (self.prefix_tokens.is_some() && !has_prefix, "--prefix-tokens", "prompts of our own"),
            (self.dataset_kind.is_some() && self.dataset.is_none(), "--dataset-kind", "--dataset"),
            (self.keep_order == Some(true) && self.dataset.is_none(), "--keep-order", "--dataset"),
            (self.trace_kind.is_some() && self.trace.is_none(), "--trace-kind", "--trace"),
            (self.keep.is_some() && self.trace.is_none(), "--keep", "--trace"),
            (
                self.turn_think_time.is_some() && self.turns.is_none(),
                "--turn-think-time",
                "--turns",
            ),
            (
                self.turn_think.is_some() && self.turn_think_time.is_none(),
                "--turn-think",
                "--turn-think-time",
            ),
            (
                self.prefixes.is_some() && !has_prefixes,
                "--prefixes",
                "--prefix-tokens of prompts of our own",
            ),
            (
                self.prefix_zipf.is_some() && !has_prefixes,
                "--prefix-zipf",
                "--prefix-tokens of prompts of our own",
            ),
        ];
        match stray.into_iter().find(|(is_stray, ..)| *is_stray) {
            Some((_, flag, needs)) => Err(SpecError::Stray { flag, needs }),
            None => Ok(()),
        }
    }

    fn prefix(&self) -> Result<Option<SharedPrefix>, SpecError> {
        let Some(tokens) = self.prefix_tokens.filter(|tokens| 0 < *tokens) else { return Ok(None) };
        let count = self.prefixes.unwrap_or(1);
        at_most("--prefix-tokens", tokens.into(), TOKENS_MAX.into())?;
        at_most("--prefixes", count.into(), PREFIXES_MAX.into())?;
        if count == 0 {
            return Err(SpecError::Zero("--prefixes"));
        }
        let zipf = self.prefix_zipf.unwrap_or(0.0);
        if !(0.0..=10.0).contains(&zipf) {
            return Err(SpecError::BadZipf("--prefix-zipf"));
        }
        Ok(Some(SharedPrefix { tokens, count, zipf }))
    }

    fn turn_think(&self) -> Result<Think, SpecError> {
        match (self.turn_think_time.map_or(Duration::ZERO, |time| time.0), self.turn_think) {
            (time, _) if TURN_THINK_MAX < time => Err(SpecError::ThinkTooLong(TURN_THINK_MAX)),
            (Duration::ZERO, _) => Ok(Think::None),
            (time, None | Some(ThinkKind::Fixed)) => Ok(Think::Fixed(time)),
            (mean, Some(ThinkKind::Exponential)) => Ok(Think::Exponential { mean }),
        }
    }
}

impl BodyTable {
    fn resolve(self) -> Result<BodySpec, SpecError> {
        let fields = self.fields()?;
        if let Some(field) = OWN_FIELDS.iter().find(|field| fields.contains_key(**field)) {
            return Err(SpecError::OwnField(field));
        }
        let images = match (self.images.unwrap_or(0), self.image_size) {
            (0, Some(_)) => {
                return Err(SpecError::Stray { flag: "--image-size", needs: "--images" });
            }
            (0, None) => None,
            (count, size) => {
                let ImageSize(width, height) = size.unwrap_or(IMAGE_SIZE);
                at_most("--images", count.into(), IMAGES_MAX.into())?;
                for side in [width, height] {
                    at_most("--image-size", side.into(), IMAGE_SIDE_MAX.into())?;
                    if side == 0 {
                        return Err(SpecError::Zero("--image-size"));
                    }
                }
                Some(Images { count, width, height })
            }
        };
        let names = self.lora.unwrap_or_default();
        let adapters = match (names.is_empty(), self.lora_choice.map(|choice| choice.0)) {
            (true, Some(_)) => {
                return Err(SpecError::Stray { flag: "--lora-choice", needs: "--lora" });
            }
            (true, None) => None,
            (false, Some(AdapterChoice::Zipf(exponent))) if !(0.0..=10.0).contains(&exponent) => {
                return Err(SpecError::BadZipf("--lora-choice zipf"));
            }
            (false, choice) => {
                Some(Adapters { names, choice: choice.unwrap_or(AdapterChoice::RoundRobin) })
            }
        };
        let pin_output = self.pin_output.unwrap_or_default();
        Ok(BodySpec { fields, pin_output, images, adapters })
    }

    /// Fields of the body: the extra ones, and those with a flag of their own.
    fn fields(&self) -> Result<Map<String, Value>, SpecError> {
        let mut fields = self.extra.clone().unwrap_or_default();
        let stop = self.stop.as_ref().map(|stop| ("stop".to_owned(), stop.clone().into()));
        for (field, value) in self.sampling.fields().into_iter().chain(stop) {
            if fields.contains_key(&field) {
                return Err(SpecError::FieldTwice(field));
            }
            fields.insert(field, value);
        }
        Ok(fields)
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

#[cfg(test)]
mod tests;
