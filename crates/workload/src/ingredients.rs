//! What a workload is made from: tokenizers and files, read and checked before anything is planned.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use inferometer_model::endpoint::Api;
use inferometer_model::observations::{Correction, FileFacts, InputLength, Materials};
use inferometer_model::spec::{self, Counting, Extent, LoadShape, Rate, Replay, Source};
use inferometer_model::{Plan, Spec, TokenCounter};

use crate::dataset::{self, Dataset};
use crate::error::WorkloadError;
use crate::lengths::Draw;
use crate::prompts::{
    DatasetPrompts, Decorated, Fixed, Mix, Prefixes, Prompts, Synthetic, TracePrompts, VllmRandom,
};
use crate::saved::SavedPlan;
use crate::stream::Stream;
use crate::text::{Frame, TextMaker};
use crate::tokenizer::Tokenizer;
use crate::trace::{self, Trace};

/// Everything that is read from outside, once.
#[derive(Clone, Debug)]
pub struct Ingredients {
    text: Arc<TextMaker>,
    loaded: Loaded,
    /// The moments of recorded traffic, in nanoseconds from its beginning, never decreasing.
    recorded: Option<Arc<[u64]>>,
    materials: Materials,
}

/// A source with all that it needs.
#[derive(Clone, Debug)]
enum Loaded {
    /// Prompts of our own, which need nothing.
    Synthetic(spec::Synthetic),
    Conversations(spec::Conversations),
    /// With its length.
    Fixed(spec::FixedPrompt, u32),
    Dataset(spec::DatasetSpec, Arc<Dataset>),
    Trace(Arc<Trace>),
    VllmRandom(Arc<VllmRandom>),
    /// With their weights.
    Mix(Vec<(f64, Loaded)>),
    Saved(Arc<SavedPlan>),
}

/// Words, as if each were a token.
#[derive(Debug)]
struct Words;

impl TokenCounter for Words {
    fn count(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }
}

impl Ingredients {
    /// Reads what the spec names.
    pub fn gather(spec: &Spec) -> Result<Self, WorkloadError> {
        if let Source::Saved { path, .. } = &spec.workload.source {
            return Self::of_saved(path);
        }
        let tokenizer = spec.workload.tokenizer.as_deref().map(Tokenizer::open).transpose()?;
        let tokenizer = tokenizer.map(Arc::new);
        let text = Arc::new(match &tokenizer {
            Some(tokenizer) => TextMaker::exact(Arc::clone(tokenizer), frame(spec))?,
            None => TextMaker::estimating(None),
        });
        let materials = Materials {
            tokenizer: tokenizer.as_deref().map(Tokenizer::facts),
            input_length: text.input_length(),
            ..Materials::default()
        };
        let mut reader = Reader { tokenizer, spec, materials };
        let loaded = reader.load(&spec.workload.source)?;
        let materials = reader.materials;
        let recorded = if let Loaded::Trace(trace) = &loaded {
            Some(trace.entries.iter().map(|entry| entry.at_ns).collect())
        } else {
            None
        };
        Ok(Self { text, loaded, recorded, materials })
    }

    /// A saved plan has its words already; what they were made from is written in it.
    fn of_saved(path: &Path) -> Result<Self, WorkloadError> {
        let saved = SavedPlan::open(path)?;
        let mut materials = saved.header.materials.clone();
        materials.files.push(FileFacts {
            name: file_name(path),
            kind: "saved plan".to_owned(),
            sha256: saved.sha256.clone(),
            items: saved.bounds().requests.unwrap_or(0),
            dropped: BTreeMap::new(),
        });
        if saved.is_changed {
            materials.notes.push(
                "the saved plan was changed by hand after it was saved: it has fingerprints of its own"
                    .to_owned(),
            );
        }
        let text = Arc::new(TextMaker::estimating(None));
        Ok(Self { text, loaded: Loaded::Saved(Arc::new(saved)), recorded: None, materials })
    }

    pub fn text(&self) -> Arc<TextMaker> {
        Arc::clone(&self.text)
    }

    pub(crate) fn saved(&self) -> Option<&Arc<SavedPlan>> {
        if let Loaded::Saved(saved) = &self.loaded { Some(saved) } else { None }
    }

    pub(crate) fn recorded(&self) -> Option<&[u64]> {
        self.recorded.as_deref()
    }

    pub fn materials(&self) -> &Materials {
        &self.materials
    }

    /// Whether the server should be asked how it counts: we write the words, and their number is
    /// an estimate so far.
    pub fn wants_correction(&self) -> bool {
        self.materials.input_length == InputLength::Estimated && self.loaded.writes_words()
    }

    /// Takes in how the server counts.
    pub fn correct(&mut self, correction: Correction) {
        self.text = Arc::new(TextMaker::estimating(Some(correction)));
        self.materials.input_length = self.text.input_length();
    }

    /// The source of prompts for a seed, with all that its bodies carry.
    pub(crate) fn prompts(&self, spec: &Spec) -> Arc<dyn Prompts> {
        let prompts = self.source(&self.loaded, spec.seed);
        let body = &spec.workload.body;
        if body.images.is_none() && body.adapters.is_none() || self.saved().is_some() {
            return prompts;
        }
        Arc::new(Decorated::new(prompts, body.images, body.adapters.as_ref(), spec.seed))
    }

    fn source(&self, loaded: &Loaded, seed: u64) -> Arc<dyn Prompts> {
        match loaded {
            Loaded::Synthetic(spec) => Arc::new(Synthetic {
                seed,
                text: self.text(),
                input: Draw::new(&spec.input),
                output: Draw::new(&spec.output),
                prefixes: spec.prefix.map(|prefix| Prefixes::new(prefix, seed)),
                prefix_is_system: false,
            }),
            Loaded::Conversations(spec) => Arc::new(Synthetic {
                seed,
                text: self.text(),
                input: Draw::new(&spec.input),
                output: Draw::new(&spec.output),
                prefixes: spec.prefix.map(|prefix| Prefixes::new(prefix, seed)),
                prefix_is_system: true,
            }),
            Loaded::Fixed(spec, input_tokens) => Arc::new(Fixed {
                seed,
                prompt: spec.prompt.clone(),
                input_tokens: *input_tokens,
                output: Draw::new(&spec.output),
            }),
            Loaded::Dataset(spec, dataset) => {
                Arc::new(DatasetPrompts::new(spec, Arc::clone(dataset), seed))
            }
            Loaded::Trace(trace) => {
                Arc::new(TracePrompts { seed, text: self.text(), trace: Arc::clone(trace) })
            }
            Loaded::VllmRandom(prompts) => Arc::clone(prompts) as Arc<dyn Prompts>,
            Loaded::Mix(parts) => {
                let parts = (0..).zip(parts).map(|(number, (weight, loaded))| {
                    // Parts of the same kind must not say the same.
                    let seed = Stream::new(seed, "part", number).bits();
                    (*weight, self.source(loaded, seed))
                });
                Arc::new(Mix { seed, parts: parts.collect() })
            }
            Loaded::Saved(saved) => Arc::clone(saved) as Arc<dyn Prompts>,
        }
    }
}

impl Loaded {
    /// Whether the words of its prompts are ours.
    fn writes_words(&self) -> bool {
        match self {
            Self::Synthetic(_) | Self::Conversations(_) | Self::Trace(_) => true,
            Self::Mix(parts) => parts.iter().any(|(_, part)| part.writes_words()),
            Self::Fixed(..) | Self::Dataset(..) | Self::VllmRandom(_) | Self::Saved(_) => false,
        }
    }
}

/// What stands around a prompt and is part of its length.
fn frame(spec: &Spec) -> Frame {
    match (spec.workload.counting, spec.api) {
        (Counting::WithTemplate, _) => Frame::Template,
        (Counting::Prompt, Api::Completions) => Frame::SpecialTokens,
        (Counting::Prompt, _) => Frame::None,
    }
}

/// Reads files and writes down what they were.
struct Reader<'a> {
    tokenizer: Option<Arc<Tokenizer>>,
    spec: &'a Spec,
    materials: Materials,
}

impl Reader<'_> {
    fn load(&mut self, source: &Source) -> Result<Loaded, WorkloadError> {
        Ok(match source {
            Source::Synthetic(spec) => Loaded::Synthetic(spec.clone()),
            Source::Conversations(spec) => Loaded::Conversations(spec.clone()),
            Source::Fixed(spec) => {
                let tokens = self.counter().count(&spec.prompt);
                Loaded::Fixed(spec.clone(), u32::try_from(tokens).unwrap_or(u32::MAX))
            }
            Source::Dataset(spec) => {
                let dataset = dataset::read(spec, self.counter())?;
                self.materials.files.push(dataset.facts.clone());
                Loaded::Dataset(spec.clone(), Arc::new(dataset))
            }
            Source::Trace(spec) => {
                let trace = trace::read(spec, self.replay(), self.spec.seed)?;
                self.materials.files.push(trace.facts.clone());
                self.materials.notes.extend(trace.notes.iter().cloned());
                Loaded::Trace(Arc::new(trace))
            }
            Source::Mix(parts) => {
                let loaded = parts.iter().map(|part| Ok((part.weight, self.load(&part.source)?)));
                Loaded::Mix(loaded.collect::<Result<_, WorkloadError>>()?)
            }
            Source::Saved { path, .. } => Loaded::Saved(Arc::new(SavedPlan::open(path)?)),
            Source::VllmRandom(spec) => Loaded::VllmRandom(Arc::new(self.vllm_random(spec)?)),
        })
    }

    fn counter(&self) -> &dyn TokenCounter {
        self.tokenizer.as_deref().map_or(&Words, |tokenizer| tokenizer)
    }

    fn vllm_random(&self, spec: &spec::VllmRandom) -> Result<VllmRandom, WorkloadError> {
        let Some(tokenizer) = &self.tokenizer else { return Err(WorkloadError::NoTokenizer) };
        // All lengths are drawn first, so their number is part of what is drawn.
        let requests = match self.spec.load.extent {
            Extent::Requests(requests) | Extent::UntilFirst { requests, .. } => {
                Some(requests.get())
            }
            Extent::Whole | Extent::Duration(_) | Extent::UntilBoth { .. } => None,
        };
        VllmRandom::new(spec, Arc::clone(tokenizer), self.spec.seed, requests)
    }

    fn replay(&self) -> Option<&Replay> {
        match &self.spec.load.shape {
            LoadShape::Open { rate: Rate::Recorded(replay), .. } => Some(replay),
            LoadShape::Open { .. } | LoadShape::Closed { .. } => None,
        }
    }
}

/// A file's name without its folder: results travel, and folders tell too much.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
