//! What a workload is made from: tokenizers and files, read and checked before anything is planned.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use inferometer_model::endpoint::{Api, PromptForm};
use inferometer_model::observations::{Correction, FileFacts, InputLength, Materials};
use inferometer_model::spec::{self, Counting, Extent, LoadShape, MixPart, Rate, Replay, Source};
use inferometer_model::{Plan, Prompt, Spec};

use crate::WorkloadError;
use crate::arrivals::Schedule;
use crate::counter::{Counter as _, PromptCounter};
use crate::data_file::name_of;
use crate::dataset::{self, Dataset};
use crate::lengths::Draw;
use crate::media::MediaMaker;
use crate::plan::Stream;
use crate::prompts::{
    Alphabet, Batched, DatasetPrompts, Decorated, Fixed, Mix, Prefixes, Prompts,
    REQUESTS_OPEN_ENDED, Repeated, Shares, Synthetic, TracePrompts, Users, VllmRandom, WarmUp,
};
use crate::saved::SavedPlan;
use crate::sessions::{self, SessionPrompts, Sessions, SessionsError};
use crate::text::{Frame, TextError, TextMaker};
use crate::tokenizer::{ServerTokenizer, Tokenizer, TokenizerError, TokenizerParts};
use crate::trace::{self, Trace};

/// Everything that is read from outside, once.
#[derive(Clone, Debug)]
pub struct Inputs {
    text: Arc<TextMaker>,
    loaded: Loaded,
    /// The moments of recorded traffic, in nanoseconds from its beginning, never decreasing.
    recorded: Option<Arc<[u64]>>,
    materials: Materials,
    media: MediaMaker,
}

/// A source with all that it needs.
#[derive(Clone, Debug)]
enum Loaded {
    /// Prompts of our own, which need nothing.
    Synthetic(spec::Synthetic),
    Conversations(spec::Conversations),
    Sessions(Arc<Sessions>),
    /// With its length.
    Fixed(spec::FixedPrompt, u32),
    Dataset(spec::DatasetSpec, Arc<Dataset>),
    Trace(Arc<Trace>),
    VllmRandom(Arc<VllmRandom>),
    /// With their weights.
    Mix(Vec<(f64, Loaded)>),
    Saved(Arc<SavedPlan>),
}

impl Inputs {
    /// Reads what the spec names.
    pub fn gather(spec: &Spec) -> Result<Self, WorkloadError> {
        let name = spec.workload.tokenizer.as_deref().unwrap_or_default();
        if Alphabet::without_words(name)?.is_some() {
            return Err(WorkloadError::NoWords(name.to_owned()));
        }
        Self::gather_from(spec, None)
    }

    /// Reads what a simulation needs, which sends no words: a vocabulary of ids will do.
    pub fn gather_without_words(spec: &Spec) -> Result<Self, WorkloadError> {
        let name = spec.workload.tokenizer.as_deref().unwrap_or_default();
        Self::gather_from(spec, Alphabet::without_words(name)?)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "only these sources have sessions")]
    fn gather_from(spec: &Spec, ids: Option<Alphabet>) -> Result<Self, WorkloadError> {
        // A saved plan has its words already, and needs no tokenizer.
        let has_words = ids.is_some() || matches!(spec.workload.source, Source::Saved { .. });
        let name = spec.workload.tokenizer.as_deref().filter(|_| !has_words);
        let with_template = spec.workload.counting == Counting::WithTemplate;
        let (tokenizer, server) = match name {
            Some(url) if ServerTokenizer::is_named(url) => {
                if with_template {
                    return Err(TokenizerError::ServerTemplate.into());
                }
                let with_special = frame_for(spec)? == Frame::SpecialTokens;
                (None, Some(Arc::new(ServerTokenizer::open(url, with_special)?)))
            }
            name => (name.map(Tokenizer::open).transpose()?.map(Arc::new), None),
        };
        let text = Arc::new(match (&tokenizer, &server) {
            (Some(tokenizer), _) => TextMaker::exact(Arc::clone(tokenizer), frame_for(spec)?)?,
            (None, Some(server)) => TextMaker::Estimating(Some(server.correction()?)),
            (None, None) => TextMaker::Estimating(None),
        });
        let besides = TokenizerParts {
            template: with_template,
            special_names: draws_ids(&spec.workload.source),
        };
        let facts = match (&tokenizer, &server) {
            (Some(tokenizer), _) => Some(tokenizer.facts_with(besides)),
            (None, server) => server.as_ref().map(|server| server.facts()),
        };
        let (media, media_files) = MediaMaker::read(&spec.workload.body)?;
        let materials = Materials {
            files: media_files,
            tokenizer: facts.clone(),
            input_length: text.input_length(),
            ..Materials::default()
        };
        let counter =
            PromptCounter { tokenizer: tokenizer.clone(), server: server.clone(), with_template };
        let mut reader = Reader { tokenizer, counter, ids, spec, materials };
        let loaded = reader.load(&spec.workload.source)?;
        server.map_or(Ok(()), |server| server.check())?;
        // First turns with a prefix begin with a system message.
        let has_system = match &loaded {
            Loaded::Conversations(spec) => spec.prefix.is_some(),
            Loaded::Sessions(sessions) => sessions.has_system_prompts(),
            _ => false,
        };
        if has_system && !text.knows_openings() {
            return Err(TextError::NoSystem(facts.map_or_else(String::new, |it| it.name)).into());
        }
        let recorded = if let Loaded::Trace(trace) = &loaded {
            let times = trace.entries.iter().map(|entry| u64::try_from(entry.at_ns));
            Some(times.map(Result::unwrap_or_default).collect())
        } else if let (Loaded::Sessions(sessions), Some(replay)) = (&loaded, reader.replay()) {
            let path = if let Source::Sessions(it) = &spec.workload.source {
                it.path.clone()
            } else {
                PathBuf::new()
            };
            let starts = sessions.starts.as_ref().ok_or(SessionsError::NoTimes(path))?;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "saturates"
            )]
            let at_speed = |start: &u64| libm::round(*start as f64 / replay.speed) as u64;
            Some(starts.iter().map(at_speed).collect())
        } else {
            None
        };
        let mut inputs = Self { text, loaded, recorded, materials: reader.materials, media };
        inputs.note_shortest();
        Ok(inputs)
    }

    pub fn text(&self) -> Arc<TextMaker> {
        Arc::clone(&self.text)
    }

    pub(crate) fn saved(&self) -> Option<&Arc<SavedPlan>> {
        if let Loaded::Saved(saved) = &self.loaded { Some(saved) } else { None }
    }

    pub(crate) fn sessions(&self) -> Option<&Arc<Sessions>> {
        if let Loaded::Sessions(sessions) = &self.loaded { Some(sessions) } else { None }
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
        self.text = Arc::new(TextMaker::Estimating(Some(correction)));
        self.materials.input_length = self.text.input_length();
        self.note_shortest();
    }

    /// Notes prompts that cannot be as short as requested.
    fn note_shortest(&mut self) {
        if let Some(shortest) = self.loaded.shortest_above_asked(&self.text) {
            self.materials.notes.push(format!(
                "prompts shorter than {shortest} tokens are not possible with what surrounds them \
                 here; those that were requested shorter have {shortest}"
            ));
        }
    }

    /// The source of prompts for a seed, with all that its bodies carry.
    pub(crate) fn prompts(&self, spec: &Spec) -> Arc<dyn Prompts> {
        let prompts = self.source(&self.loaded, spec.seed);
        if self.saved().is_some() {
            return prompts;
        }
        let has_sessions = matches!(self.loaded, Loaded::Conversations(_) | Loaded::Sessions(_));
        let users = if has_sessions { Users::Conversations } else { Users::Requests };
        let prompts = batched(prompts, spec);
        Arc::new(Decorated::new(prompts, &spec.workload.body, self.media.clone(), users, spec.seed))
    }

    /// As long as the run's, with bodies like theirs, and unlike them in every word and picture;
    /// `vllm bench serve` instead asks its first prompt again and again.
    pub(crate) fn warm_up(&self, spec: &Spec) -> Arc<dyn Prompts> {
        let lengths = self.source(&self.loaded, spec.seed);
        let words: Arc<dyn Prompts> = if matches!(self.loaded, Loaded::VllmRandom(_)) {
            Arc::new(Repeated(lengths))
        } else {
            Arc::new(WarmUp { lengths, text: self.text(), seed: spec.seed })
        };
        let seed = Stream::new(spec.seed, "warm-up-bodies", 0).bits();
        let words = batched(words, spec);
        let media = self.media.clone();
        Arc::new(Decorated::new(words, &spec.workload.body, media, Users::Requests, seed))
    }

    fn source(&self, loaded: &Loaded, seed: u64) -> Arc<dyn Prompts> {
        let synthetic = |input, output, prefix: Option<_>, prefix_is_system| {
            Arc::new(Synthetic {
                seed,
                text: self.text(),
                input: Draw::new(input),
                output: Draw::new(output),
                prefixes: prefix.map(|prefix| Prefixes::new(prefix, seed)),
                prefix_is_system,
            })
        };
        match loaded {
            Loaded::Synthetic(spec) => synthetic(&spec.input, &spec.output, spec.prefix, false),
            Loaded::Conversations(spec) => synthetic(&spec.input, &spec.output, spec.prefix, true),
            Loaded::Sessions(sessions) => {
                Arc::new(SessionPrompts { seed, text: self.text(), sessions: Arc::clone(sessions) })
            }
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
                let shares = Arc::new(Shares::new(seed, parts.iter().map(|(weight, _)| *weight)));
                let parts = (0..).zip(parts).map(|(number, (_, loaded))| {
                    // Parts of the same kind must not say the same.
                    self.source(loaded, Stream::new(seed, "part", number).bits())
                });
                Arc::new(Mix { shares, parts: parts.collect() })
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
            Self::Sessions(sessions) => sessions.writes_words(),
            Self::Mix(parts) => parts.iter().any(|(_, part)| part.writes_words()),
            Self::Fixed(..) | Self::Dataset(..) | Self::VllmRandom(_) | Self::Saved(_) => false,
        }
    }

    /// The fewest tokens that its prompts can have, where some are requested to have fewer.
    fn shortest_above_asked(&self, text: &TextMaker) -> Option<u32> {
        let (asked, shortest) = match self {
            Self::Synthetic(spec) => (spec.input.least(), text.shortest()),
            Self::Conversations(spec) => match spec.prefix {
                None => (spec.input.least(), text.shortest()),
                Some(prefix) => {
                    let asked = spec.input.least().saturating_add(prefix.tokens);
                    (asked, text.shortest_after(prefix.tokens))
                }
            },
            Self::Trace(trace) => {
                let lengths = trace.entries.iter().map(|entry| entry.input_tokens);
                (lengths.min()?, text.shortest())
            }
            Self::Mix(parts) => {
                return parts.iter().filter_map(|part| part.1.shortest_above_asked(text)).max();
            }
            Self::Fixed(..)
            | Self::Sessions(_)
            | Self::Dataset(..)
            | Self::VllmRandom(_)
            | Self::Saved(_) => {
                return None;
            }
        };
        (asked < shortest).then_some(shortest)
    }
}

/// How many texts a request has.
fn texts_per_request(spec: &Spec) -> u32 {
    let batch = spec.workload.body.batch;
    batch.map_or(1, |batch| batch + u32::from(spec.api == Api::Rerank))
}

/// The prompts in batches, where they are asked for.
fn batched(prompts: Arc<dyn Prompts>, spec: &Spec) -> Arc<dyn Prompts> {
    match spec.workload.body.batch {
        None => prompts,
        Some(_) => Arc::new(Batched { inner: prompts, size: texts_per_request(spec) }),
    }
}

/// Whether prompts are drawn as token ids, special ones left out.
fn draws_ids(source: &Source) -> bool {
    if let Source::Mix(parts) = source {
        return parts.iter().any(|part| draws_ids(&part.source));
    }
    matches!(source, Source::VllmRandom(_))
}

fn frame_for(spec: &Spec) -> Result<Frame, WorkloadError> {
    let form = |api: Api| api.facts().prompt_form;
    match (spec.workload.counting, form(spec.api)) {
        (Counting::WithTemplate, PromptForm::Messages) => Ok(Frame::Template),
        (Counting::WithTemplate, PromptForm::Raw | PromptForm::Templated) => {
            let rendering = Api::all().filter(|api| form(*api) == PromptForm::Messages);
            let with_template = rendering.map(Api::name).collect::<Vec<_>>().join(", ");
            Err(WorkloadError::NoTemplateApi { api: spec.api.name(), with_template })
        }
        (Counting::Prompt, PromptForm::Raw) => Ok(Frame::SpecialTokens),
        (Counting::Prompt, PromptForm::Messages | PromptForm::Templated) => Ok(Frame::None),
    }
}

struct Reader<'a> {
    tokenizer: Option<Arc<Tokenizer>>,
    counter: PromptCounter,
    /// Instead of a tokenizer, for those who send nothing.
    ids: Option<Alphabet>,
    spec: &'a Spec,
    materials: Materials,
}

impl Reader<'_> {
    fn load(&mut self, source: &Source) -> Result<Loaded, WorkloadError> {
        Ok(match source {
            Source::Synthetic(spec) => Loaded::Synthetic(spec.clone()),
            Source::Conversations(spec) => Loaded::Conversations(spec.clone()),
            Source::Agents(spec) => {
                Loaded::Sessions(Arc::new(sessions::draw_agents(spec, self.spec.seed)))
            }
            Source::Sessions(spec) => {
                let (sessions, facts) = sessions::read(spec, &self.counter)?;
                self.materials.files.push(facts);
                self.materials.notes.extend(sessions.notes.iter().cloned());
                Loaded::Sessions(Arc::new(sessions))
            }
            Source::Fixed(spec) => {
                let tokens = self.counter.prompt(&Prompt::Text(spec.prompt.clone()));
                let tokens = tokens.ok_or(WorkloadError::TemplateRefuses)?;
                Loaded::Fixed(spec.clone(), u32::try_from(tokens).unwrap_or(u32::MAX))
            }
            Source::Dataset(spec) => {
                let dataset = dataset::read(spec, &self.counter)?;
                self.materials.files.push(dataset.facts.clone());
                self.materials.notes.extend(dataset.notes.iter().cloned());
                Loaded::Dataset(spec.clone(), Arc::new(dataset))
            }
            Source::Trace(spec) => {
                let trace = trace::read(spec, self.replay(), self.spec.seed)?;
                self.materials.files.push(trace.facts.clone());
                self.materials.notes.extend(trace.notes.iter().cloned());
                // A recording ends, however many requests were requested.
                let found = trace.entries.len();
                if let Extent::Requests(wanted)
                | Extent::UntilBoth { requests: wanted, .. }
                | Extent::UntilFirst { requests: wanted, .. } = self.spec.load.extent
                    && self.replay().is_some()
                    && (found as u64) < wanted.get()
                {
                    let note = format!("the trace has {found} requests, and not {wanted}");
                    self.materials.notes.push(note);
                }
                Loaded::Trace(Arc::new(trace))
            }
            Source::Mix(parts) => Loaded::Mix(self.load_parts(parts)?),
            Source::Saved { path, .. } => Loaded::Saved(Arc::new(self.load_saved(path)?)),
            Source::VllmRandom(spec) => {
                let requests = self.requests();
                Loaded::VllmRandom(Arc::new(self.vllm_random(spec, self.spec.seed, requests)?))
            }
        })
    }

    fn load_parts(&mut self, parts: &[MixPart]) -> Result<Vec<(f64, Loaded)>, WorkloadError> {
        let shares = Shares::new(self.spec.seed, parts.iter().map(|part| part.weight));
        // The first has the run's own seed, so that it is what the other program draws with it.
        let mut seed = self.spec.seed;
        let mut loaded = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            let source = if let Source::VllmRandom(spec) = &part.source {
                let requests = self.requests().map(|requests| shares.count(number, requests));
                let random = self.vllm_random(spec, seed, requests)?;
                seed = seed.wrapping_add(1);
                Loaded::VllmRandom(Arc::new(random))
            } else {
                self.load(&part.source)?
            };
            loaded.push((part.weight, source));
        }
        Ok(loaded)
    }

    /// What its words were made from is written in it.
    fn load_saved(&mut self, path: &Path) -> Result<SavedPlan, WorkloadError> {
        let saved = SavedPlan::open(path)?;
        self.materials = saved.header.materials.clone();
        self.materials.files.push(FileFacts {
            name: name_of(path),
            kind: "saved plan".to_owned(),
            sha256: saved.sha256.clone(),
            items: saved.bounds().requests.unwrap_or(0),
            dropped: BTreeMap::new(),
        });
        if saved.is_changed {
            self.materials.notes.push(
                "the saved plan was changed by hand after it was saved: its fingerprints differ from the original ones"
                    .to_owned(),
            );
        }
        Ok(saved)
    }

    fn vllm_random(
        &self,
        spec: &spec::VllmRandom,
        seed: u64,
        requests: Option<u64>,
    ) -> Result<VllmRandom, WorkloadError> {
        let words = self.tokenizer.clone().map(Alphabet::Words);
        let alphabet = words.or_else(|| self.ids.clone()).ok_or(WorkloadError::NoTokenizer)?;
        let requests = requests.map(|it| it.saturating_mul(texts_per_request(self.spec).into()));
        VllmRandom::new(spec, alphabet, seed, requests)
    }

    /// How many requests the plan has, as far as it is known: where all lengths are drawn first,
    /// their number is part of what is drawn.
    fn requests(&self) -> Option<u64> {
        let spec = self.spec;
        match (spec.load.extent, &spec.load.shape) {
            (Extent::Whole, _) | (Extent::Duration(_), LoadShape::Closed { .. }) => None,
            (Extent::Requests(requests), _)
            | (Extent::UntilFirst { requests, .. }, LoadShape::Closed { .. }) => {
                Some(requests.get())
            }
            // At least this many; the total is not known.
            (Extent::UntilBoth { requests, .. }, LoadShape::Closed { .. }) => {
                Some(requests.get().max(REQUESTS_OPEN_ENDED))
            }
            (extent, LoadShape::Open { rate, arrivals, .. }) => {
                Some(Schedule::draw(rate, *arrivals, extent, spec.seed).len())
            }
        }
    }

    fn replay(&self) -> Option<&Replay> {
        match &self.spec.load.shape {
            LoadShape::Open { rate: Rate::Recorded(replay), .. } => Some(replay),
            LoadShape::Open { .. } | LoadShape::Closed { .. } => None,
        }
    }
}
