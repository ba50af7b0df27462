//! The data that is built in, and finding things in it by name.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde::Deserialize;

use super::file::ProfileFile;
use super::{Gpu, Model, ProfileError};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hardware {
    gpu: Vec<Gpu>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Models {
    model: Vec<Model>,
}

/// All that is known by name.
#[derive(Debug)]
pub(super) struct Catalogue {
    pub gpus: Vec<Gpu>,
    pub models: Vec<Model>,
    pub profiles: Vec<ProfileFile>,
}

/// Files of named profiles; the default one first.
const NAMED: &[&str] = &[
    include_str!("../../profiles/named/h100-llama-3.1-8b.toml"),
    include_str!("../../profiles/named/mi100x4-devstral-24b.toml"),
    include_str!("../../profiles/named/mi300x-mistral-small-24b-v0.toml"),
    include_str!("../../profiles/named/mi300x-mistral-small-24b-v1.toml"),
    include_str!("../../profiles/named/mi300x4-llama-70b.toml"),
];

/// How many names an error offers.
const OFFERED: usize = 3;

pub(super) fn catalogue() -> &'static Catalogue {
    static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
    CATALOGUE.get_or_init(|| {
        let hardware: Hardware = toml::from_str(include_str!("../../profiles/hardware.toml"))
            .expect("the built-in hardware is read by tests");
        let models: Models = toml::from_str(include_str!("../../profiles/models.toml"))
            .expect("the built-in models are read by tests");
        let read = |text: &&str| {
            ProfileFile::read(text, "a built-in profile")
                .expect("the built-in profiles are read by tests")
        };
        Catalogue {
            gpus: hardware.gpu,
            models: models.model,
            profiles: NAMED.iter().map(read).collect(),
        }
    })
}

impl Catalogue {
    pub(super) fn gpu(&self, name: &str) -> Result<&Gpu, ProfileError> {
        let known = |gpu: &&Gpu| is(name, &gpu.name) || gpu.aliases.iter().any(|a| is(name, a));
        self.gpus
            .iter()
            .find(known)
            .ok_or_else(|| unknown("hardware", name, self.gpus.iter().map(|gpu| &*gpu.name)))
    }

    pub(super) fn model(&self, name: &str) -> Result<&Model, ProfileError> {
        let known = |model: &&Model| {
            let own = [&model.name, &model.id];
            own.into_iter().chain(&model.aliases).any(|known| is(name, known))
        };
        self.models
            .iter()
            .find(known)
            .ok_or_else(|| unknown("model", name, self.models.iter().map(|model| &*model.name)))
    }

    pub(super) fn profile(&self, name: &str) -> Option<&ProfileFile> {
        self.profiles.iter().find(|profile| is(name, &profile.name))
    }

    pub(super) fn unknown_profile(&self, name: &str) -> ProfileError {
        let combinations = self.gpus.iter().flat_map(|gpu| {
            self.models.iter().map(move |model| format!("{}-{}", gpu.name, model.name))
        });
        let files = self.profiles.iter().map(|profile| profile.name.clone());
        // A file may have the name of the combination that it describes.
        let names: BTreeSet<String> = files.chain(combinations).collect();
        unknown("profile", name, names.iter().map(String::as_str))
    }

    /// The GPU and the model whose names, joined, begin `name`, and what follows them.
    pub(super) fn combination<'n>(&self, name: &'n str) -> Option<(&Gpu, &Model, &'n str)> {
        let split = |gpu: &'_ Gpu| name.strip_prefix(&*gpu.name)?.strip_prefix('-');
        let begins = |rest: &'n str, model: &Model| {
            let suffix = rest.strip_prefix(&*model.name)?;
            (suffix.is_empty() || suffix.starts_with('-')).then_some(suffix)
        };
        let pairs = self.gpus.iter().filter_map(|gpu| Some((gpu, split(gpu)?)));
        pairs
            .flat_map(|(gpu, rest)| {
                self.models.iter().filter_map(move |model| Some((gpu, model, begins(rest, model)?)))
            })
            // `devstral-…-int4` before a model of which that is the name with an ending.
            .min_by_key(|(_, _, suffix)| suffix.len())
    }
}

fn is(typed: &str, name: &str) -> bool {
    typed.eq_ignore_ascii_case(name)
}

fn unknown<'n>(
    kind: &'static str,
    typed: &str,
    known: impl Iterator<Item = &'n str>,
) -> ProfileError {
    let typed_lower = typed.to_ascii_lowercase();
    let likeness = |name: &str| {
        let edits = strsim::normalized_damerau_levenshtein(&typed_lower, name);
        // A part of a name is nearer than its length suggests.
        edits.max(strsim::jaro_winkler(&typed_lower, name) - 0.1)
    };
    let mut names: Vec<(f64, &str)> = known.map(|name| (likeness(name), name)).collect();
    names.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let nearest: Vec<&str> = names.iter().take(OFFERED).map(|(_, name)| *name).collect();
    let known = format!("nearest are {}", nearest.join(", "));
    ProfileError::Invalid(format!(
        "unknown {kind} `{typed}`; {known}; `inferometer engine --list` shows all"
    ))
}
