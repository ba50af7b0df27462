//! What a workload is made from: tokenizers and files, read and checked before anything is planned.

use std::sync::Arc;

use inferometer_model::Spec;
use inferometer_model::observations::{Correction, InputLength, Materials};
use inferometer_model::spec::Source;

use crate::error::WorkloadError;
use crate::lengths::Draw;
use crate::prompts::{Fixed, Prefixes, Prompts, Synthetic};
use crate::saved::SavedPlan;
use crate::text::TextMaker;

/// Everything that is read from outside, once.
#[derive(Clone, Debug)]
pub struct Ingredients {
    text: Arc<TextMaker>,
    saved: Option<Arc<SavedPlan>>,
    materials: Materials,
}

impl Ingredients {
    /// Reads what the spec names.
    pub fn gather(_spec: &Spec) -> Result<Self, WorkloadError> {
        let text = Arc::new(TextMaker::estimating(None));
        let materials = Materials { input_length: text.input_length(), ..Materials::default() };
        Ok(Self { text, saved: None, materials })
    }

    pub(crate) fn text(&self) -> Arc<TextMaker> {
        Arc::clone(&self.text)
    }

    pub(crate) fn saved(&self) -> Option<&Arc<SavedPlan>> {
        self.saved.as_ref()
    }

    /// The moments of recorded traffic, in nanoseconds from its beginning, never decreasing.
    pub(crate) fn recorded(&self) -> Option<&[u64]> {
        None
    }

    pub fn materials(&self) -> &Materials {
        &self.materials
    }

    /// Whether the server should be asked how it counts: lengths are estimates so far.
    pub fn wants_correction(&self) -> bool {
        self.materials.input_length == InputLength::Estimated
    }

    /// Takes in how the server counts.
    pub fn correct(&mut self, correction: Correction) {
        self.text = Arc::new(TextMaker::estimating(Some(correction)));
        self.materials.input_length = self.text.input_length();
    }

    /// The source of prompts for a seed.
    pub(crate) fn prompts(
        &self,
        source: &Source,
        seed: u64,
    ) -> Result<Arc<dyn Prompts>, WorkloadError> {
        Ok(match source {
            Source::Synthetic(spec) => Arc::new(Synthetic {
                seed,
                text: Arc::clone(&self.text),
                input: Draw::new(&spec.input),
                output: Draw::new(&spec.output),
                prefixes: spec.prefix.map(|prefix| Prefixes::new(prefix, seed)),
                prefix_is_system: false,
            }),
            Source::Conversations(spec) => Arc::new(Synthetic {
                seed,
                text: Arc::clone(&self.text),
                input: Draw::new(&spec.input),
                output: Draw::new(&spec.output),
                prefixes: spec.prefix.map(|prefix| Prefixes::new(prefix, seed)),
                prefix_is_system: true,
            }),
            Source::Fixed(spec) => Arc::new(Fixed {
                seed,
                prompt: spec.prompt.clone(),
                input_tokens: u32::try_from(spec.prompt.split_whitespace().count())
                    .unwrap_or(u32::MAX),
                output: Draw::new(&spec.output),
            }),
            Source::VllmRandom(_)
            | Source::Dataset(_)
            | Source::Trace(_)
            | Source::Mix(_)
            | Source::Saved { .. } => return Err(WorkloadError::NotYet(source.name())),
        })
    }
}
