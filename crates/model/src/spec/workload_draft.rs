//! What was typed about the workload, and what it comes to.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use super::SpecError;
use super::bounds::{INPUT_TOKENS, OUTPUT_TOKENS, TOKENS_MAX, TURNS_MAX, at_most};
use super::lengths::Lengths;
use super::load::Think;
use super::load_draft::ThinkKind;
use super::workload::{
    AdapterChoice, Adapters, BodySpec, Conversations, Counting, DatasetKind, DatasetSpec,
    FixedPrompt, Images, MixPart, PinOutput, SharedPrefix, Source, Synthetic, TURN_THINK_MAX,
    TraceKind, TraceSpec, VllmRandom, Workload,
};

/// Everything about the workload that the user may leave out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkloadDraft {
    pub streaming: Option<bool>,
    pub source: SourceDraft,
    /// Kinds of requests by weight, instead of one source.
    pub mix: Vec<MixDraft>,
    pub tokenizer: Option<String>,
    pub counting: Option<Counting>,
    pub body: BodyDraft,
}

/// One source of prompts. Which one follows from what is set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceDraft {
    pub input: Option<Lengths>,
    pub output: Option<Lengths>,
    pub prefix_tokens: Option<u32>,
    pub prefixes: Option<u32>,
    pub prefix_zipf: Option<f64>,
    pub vllm_random: bool,
    pub dataset: Option<PathBuf>,
    pub dataset_kind: Option<DatasetKind>,
    pub keep_order: bool,
    pub prompt: Option<String>,
    pub trace: Option<PathBuf>,
    pub trace_kind: Option<TraceKind>,
    pub keep: Option<f64>,
    pub turns: Option<Lengths>,
    pub turn_think_time: Option<Duration>,
    pub turn_think: Option<ThinkKind>,
    pub saved_plan: Option<PathBuf>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct MixDraft {
    pub name: Option<String>,
    pub weight: Option<f64>,
    pub source: SourceDraft,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct BodyDraft {
    pub fields: Map<String, Value>,
    pub pin_output: Option<PinOutput>,
    pub images: Option<u32>,
    /// Width and height.
    pub image_size: Option<(u32, u32)>,
    pub adapters: Vec<String>,
    pub adapter_choice: Option<AdapterChoice>,
}

const IMAGES_MAX: u32 = 64;
const IMAGE_SIDE_MAX: u32 = 4_096;
const IMAGE_SIZE: (u32, u32) = (512, 512);
const PREFIXES_MAX: u32 = 1_000_000;
const MIX_MAX: usize = 64;

impl WorkloadDraft {
    pub(super) fn resolve(self) -> Result<Workload, SpecError> {
        let source = if self.mix.is_empty() {
            self.source.resolve()?
        } else {
            resolve_mix(&self.source, self.mix)?
        };
        let counting = self.counting.unwrap_or_default();
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
            streaming: self.streaming.unwrap_or(true),
            source,
            tokenizer: self.tokenizer,
            counting,
            body: self.body.resolve()?,
        })
    }
}

fn resolve_mix(alone: &SourceDraft, mix: Vec<MixDraft>) -> Result<Source, SpecError> {
    if MIX_MAX < mix.len() {
        return Err(SpecError::TooLarge {
            name: "the number of mix parts",
            value: mix.len() as u64,
            bound: MIX_MAX as u64,
        });
    }
    if *alone != SourceDraft::default() {
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

impl SourceDraft {
    /// The sources that were named, by their flags.
    fn named(&self) -> Vec<&'static str> {
        [
            (self.vllm_random, "--source vllm-random"),
            (self.dataset.is_some(), "--dataset"),
            (self.prompt.is_some(), "--prompt"),
            (self.trace.is_some(), "--trace"),
            (self.turns.is_some(), "--turns"),
            (self.saved_plan.is_some(), "--plan"),
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
        let output = self.output.clone().unwrap_or(Lengths::Fixed(OUTPUT_TOKENS));
        let input = self.input.clone().unwrap_or(Lengths::Fixed(INPUT_TOKENS));
        if self.vllm_random {
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
        if let Some(path) = self.saved_plan {
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
                input: self.input,
                output: self.output,
                keep_order: self.keep_order,
            }));
        }
        if let Some(prefix) = prefix.filter(|prefix| input.most() <= prefix.tokens) {
            return Err(SpecError::PrefixTooLong { prefix: prefix.tokens, input: input.most() });
        }
        Ok(Source::Synthetic(Synthetic { input, output, prefix }))
    }

    /// What is set but would change nothing.
    fn refuse_strays(&self) -> Result<(), SpecError> {
        let has_lengths =
            self.prompt.is_none() && self.trace.is_none() && self.saved_plan.is_none();
        let has_prefix = self.named().is_empty() || self.turns.is_some() || self.vllm_random;
        // Prompts as the other client draws them have one prefix for all.
        let has_prefixes = self.prefix_tokens.is_some_and(|tokens| 0 < tokens) && !self.vllm_random;
        let is_whole = self.dataset_kind.is_some_and(|kind| kind != DatasetKind::Directory);
        let stray = [
            (self.input.is_some() && !has_lengths, "--input-tokens", "prompts of our own"),
            (
                self.input.is_some() && is_whole,
                "--input-tokens",
                "a --dataset of the kind directory",
            ),
            (
                self.output.is_some() && (self.trace.is_some() || self.saved_plan.is_some()),
                "--output-tokens",
                "a source that does not say it itself",
            ),
            (self.prefix_tokens.is_some() && !has_prefix, "--prefix-tokens", "prompts of our own"),
            (self.dataset_kind.is_some() && self.dataset.is_none(), "--dataset-kind", "--dataset"),
            (self.keep_order && self.dataset.is_none(), "--keep-order", "--dataset"),
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
        match (self.turn_think_time.unwrap_or_default(), self.turn_think) {
            (time, _) if TURN_THINK_MAX < time => Err(SpecError::ThinkTooLong(TURN_THINK_MAX)),
            (Duration::ZERO, _) => Ok(Think::None),
            (time, None | Some(ThinkKind::Fixed)) => Ok(Think::Fixed(time)),
            (mean, Some(ThinkKind::Exponential)) => Ok(Think::Exponential { mean }),
        }
    }
}

impl BodyDraft {
    fn resolve(self) -> Result<BodySpec, SpecError> {
        if let Some(field) = OWN_FIELDS.iter().find(|field| self.fields.contains_key(**field)) {
            return Err(SpecError::OwnField(field));
        }
        let images = match (self.images.unwrap_or(0), self.image_size) {
            (0, Some(_)) => {
                return Err(SpecError::Stray { flag: "--image-size", needs: "--images" });
            }
            (0, None) => None,
            (count, size) => {
                let (width, height) = size.unwrap_or(IMAGE_SIZE);
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
        let adapters = match (self.adapters.is_empty(), self.adapter_choice) {
            (true, Some(_)) => {
                return Err(SpecError::Stray { flag: "--lora-choice", needs: "--lora" });
            }
            (true, None) => None,
            (false, Some(AdapterChoice::Zipf(exponent))) if !(0.0..=10.0).contains(&exponent) => {
                return Err(SpecError::BadZipf("--lora-choice zipf"));
            }
            (false, choice) => Some(Adapters {
                names: self.adapters,
                choice: choice.unwrap_or(AdapterChoice::RoundRobin),
            }),
        };
        let pin_output = self.pin_output.unwrap_or_default();
        Ok(BodySpec { fields: self.fields, pin_output, images, adapters })
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
