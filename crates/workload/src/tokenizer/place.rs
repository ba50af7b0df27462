//! Where a tokenizer lies: a path, the hub's cache on this machine, or the hub.

use std::path::{Path, PathBuf};

use inferometer_model::Secret;

use super::TokenizerError;

pub(super) const FILE: &str = "tokenizer.json";

/// The hub and its cache, as the environment sets them up for every program that uses it.
#[derive(Clone, Debug)]
pub struct Hub {
    pub cache: PathBuf,
    pub endpoint: String,
    /// Sent to the endpoint and to nobody else.
    pub token: Option<Secret>,
    pub offline: bool,
}

impl Hub {
    pub fn of_environment() -> Self {
        Self::of(|name| std::env::var(name).ok())
    }

    /// By the variables that the hub's own client reads.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let folder = |name: &str| variable(name).map(PathBuf::from);
        let cache = folder("HF_HUB_CACHE")
            .or_else(|| Some(folder("HF_HOME")?.join("hub")))
            .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("huggingface/hub")))
            .or_else(|| Some(folder("HOME")?.join(".cache/huggingface/hub")))
            .unwrap_or_else(|| PathBuf::from(".cache/huggingface/hub"));
        let endpoint =
            variable("HF_ENDPOINT").unwrap_or_else(|| "https://huggingface.co".to_owned());
        let offline = variable("HF_HUB_OFFLINE").is_some_and(|value| {
            ["1", "true", "yes", "on"].contains(&value.to_ascii_lowercase().as_str())
        });
        Self {
            cache,
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            token: variable("HF_TOKEN").map(Secret::new),
            offline,
        }
    }

    /// The path of the tokenizer.json that a name stands for.
    pub(super) fn find(&self, name: &str) -> Result<PathBuf, TokenizerError> {
        let path = Path::new(name);
        if path.is_file() {
            return Ok(path.to_owned());
        }
        if path.is_dir() {
            let file = path.join(FILE);
            return if file.is_file() {
                Ok(file)
            } else {
                Err(TokenizerError::NoneInDirectory { directory: path.to_owned() })
            };
        }
        if !is_hub_name(name) {
            return Err(TokenizerError::NoSuchPath { name: name.to_owned() });
        }
        match self.cached(name) {
            Some(file) => Ok(file),
            None => self.fetch(name),
        }
    }

    fn cached(&self, name: &str) -> Option<PathBuf> {
        let folder = self.folder(name);
        let revision = std::fs::read_to_string(folder.join("refs/main")).ok()?;
        let file = folder.join("snapshots").join(revision.trim()).join(FILE);
        file.is_file().then_some(file)
    }

    pub(super) fn folder(&self, name: &str) -> PathBuf {
        self.cache.join(format!("models--{}", name.replace('/', "--")))
    }

    fn fetch(&self, name: &str) -> Result<PathBuf, TokenizerError> {
        let refuse = |why| {
            Err(TokenizerError::NotCached { name: name.to_owned(), cache: self.cache.clone(), why })
        };
        if self.offline {
            return refuse("HF_HUB_OFFLINE forbids to download it");
        }
        #[cfg(feature = "hub")]
        return self.download(name);
        #[cfg(not(feature = "hub"))]
        refuse("this program was built without downloads from the hub")
    }
}

/// What results call a tokenizer: a name on the hub whole, and of a path the model's directory, or
/// the file where it has a name of its own. Results travel, and folders tell too much.
pub(super) fn known_name(name: &str) -> String {
    let path = Path::new(name);
    let whole = path.canonicalize().ok();
    let Some(whole) = whole.filter(|_| path.is_file() || path.is_dir()) else {
        return name.to_owned();
    };
    // A link's own name is the one that was meant.
    let file = path.file_name().or(whole.file_name());
    let folder = || path.parent().and_then(Path::file_name).or(whole.parent()?.file_name());
    let file = if file.is_some_and(|file| file == FILE) { folder().or(file) } else { file };
    file.map_or_else(|| FILE.to_owned(), |file| file.to_string_lossy().into_owned())
}

/// `model` or `owner/model`, of the characters that the hub allows.
fn is_hub_name(name: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
            && !part.contains("..")
    };
    name.split('/').count() <= 2 && name.split('/').all(is_part)
}
