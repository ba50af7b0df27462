//! Reading what a source needs, and writing down what it was.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use inferometer_model::observations::{FileFacts, Materials};
use inferometer_model::spec::{
    self, Counting, Extent, FixedPrompt, LoadShape, MixPart, Rate, Replay, Source,
};
use inferometer_model::{Plan, Prompt, Spec};

use super::Loaded;
use crate::arrivals::Schedule;
use crate::counter::{Counter, Rendered, Words};
use crate::data_file::name_of;
use crate::dataset;
use crate::error::WorkloadError;
use crate::prompts::{Alphabet, REQUESTS_OPEN_ENDED, Shares, VllmRandom};
use crate::saved::SavedPlan;
use crate::tokenizer::Tokenizer;
use crate::trace::{self, Trace};

pub(super) struct Reader<'a> {
    pub(super) tokenizer: Option<Arc<Tokenizer>>,
    /// Instead of a tokenizer, for those who send nothing.
    pub(super) ids: Option<Alphabet>,
    pub(super) spec: &'a Spec,
    pub(super) materials: Materials,
}

impl Reader<'_> {
    pub(super) fn load(&mut self, source: &Source) -> Result<Loaded, WorkloadError> {
        Ok(match source {
            Source::Synthetic(spec) => Loaded::Synthetic(spec.clone()),
            Source::Conversations(spec) => Loaded::Conversations(spec.clone()),
            Source::Fixed(spec) => Loaded::Fixed(spec.clone(), self.count(spec)?),
            Source::Dataset(spec) => {
                let dataset = self.with_counter(|counter| dataset::read(spec, counter))?;
                self.materials.files.push(dataset.facts.clone());
                self.materials.notes.extend(dataset.notes.iter().cloned());
                Loaded::Dataset(spec.clone(), Arc::new(dataset))
            }
            Source::Trace(spec) => {
                let trace = trace::read(spec, self.replay(), self.spec.seed)?;
                self.materials.files.push(trace.facts.clone());
                self.materials.notes.extend(trace.notes.iter().cloned());
                self.note_short(&trace);
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
                "the saved plan was changed by hand after it was saved: it has fingerprints of its own"
                    .to_owned(),
            );
        }
        Ok(saved)
    }

    fn count(&self, spec: &FixedPrompt) -> Result<u32, WorkloadError> {
        let prompt = Prompt::Text(spec.prompt.clone());
        let tokens = self.with_counter(|counter| counter.prompt(&prompt));
        let tokens = tokens.ok_or(WorkloadError::TemplateRefuses)?;
        Ok(u32::try_from(tokens).unwrap_or(u32::MAX))
    }

    fn with_counter<T>(&self, count: impl FnOnce(&dyn Counter) -> T) -> T {
        match (&self.tokenizer, self.spec.workload.counting) {
            (None, _) => count(&Words),
            (Some(tokenizer), Counting::Prompt) => count(tokenizer.as_ref()),
            (Some(tokenizer), Counting::WithTemplate) => count(&Rendered(tokenizer)),
        }
    }

    fn vllm_random(
        &self,
        spec: &spec::VllmRandom,
        seed: u64,
        requests: Option<u64>,
    ) -> Result<VllmRandom, WorkloadError> {
        let words = self.tokenizer.clone().map(Alphabet::Words);
        let alphabet = words.or_else(|| self.ids.clone()).ok_or(WorkloadError::NoTokenizer)?;
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
            // At least so many, and nobody knows how many more.
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

    /// A recording ends, however many requests were asked for.
    fn note_short(&mut self, trace: &Trace) {
        let asked = match self.spec.load.extent {
            Extent::Requests(requests)
            | Extent::UntilBoth { requests, .. }
            | Extent::UntilFirst { requests, .. } => requests.get(),
            Extent::Whole | Extent::Duration(_) => return,
        };
        let found = trace.entries.len();
        if self.replay().is_some() && (found as u64) < asked {
            self.materials
                .notes
                .push(format!("the trace has {found} requests, fewer than the {asked} asked for"));
        }
    }
}
