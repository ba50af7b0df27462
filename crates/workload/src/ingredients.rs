//! What a workload is made from: tokenizers and files, read and checked before anything is planned.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use inferometer_model::observations::{Correction, FileFacts, InputLength, Materials};
use inferometer_model::spec::Source;
use inferometer_model::{Plan, Spec};

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
    pub fn gather(spec: &Spec) -> Result<Self, WorkloadError> {
        if let Source::Saved { path } = &spec.workload.source {
            return Self::of_saved(path);
        }
        let text = Arc::new(TextMaker::estimating(None));
        let materials = Materials { input_length: text.input_length(), ..Materials::default() };
        Ok(Self { text, saved: None, materials })
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
        Ok(Self { text, saved: Some(Arc::new(saved)), materials })
    }

    pub fn text(&self) -> Arc<TextMaker> {
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
        self.saved.is_none() && self.materials.input_length == InputLength::Estimated
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
        if let Some(saved) = &self.saved {
            return Ok(Arc::clone(saved) as Arc<dyn Prompts>);
        }
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

/// A file's name without its folder: results travel, and folders tell too much.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
