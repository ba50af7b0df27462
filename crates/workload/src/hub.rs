//! The hub of models and datasets, and its cache on this machine, in which every program that uses the
//! hub keeps its files.

#[cfg(feature = "hub")]
pub(crate) mod download;

use std::fmt;
use std::io;
use std::path::PathBuf;

use inferometer_model::Secret;

#[cfg(feature = "hub")]
pub use download::https_agent;

/// The hub and its cache, as the environment sets them up for every program that uses it.
#[derive(Clone, Debug)]
pub struct Hub {
    pub cache: PathBuf,
    pub endpoint: String,
    /// Sent to the endpoint only.
    pub token: Option<Secret>,
    pub offline: bool,
}

/// What is kept on the hub under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repository {
    /// A model, of which only the tokenizer is used.
    Model(String),
    Dataset(String),
}

/// The files of a repository on this machine, of one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) folder: PathBuf,
    pub(crate) commit: String,
}

#[derive(Debug, thiserror::Error)]
pub enum HubError {
    #[error("{of} is no path, it is not in the hub's cache {}, and {why}; {}", .cache.display(), .of.remedy())]
    NotCached { of: Repository, cache: PathBuf, why: String },
    #[error(
        "{of} is not in the hub's cache {}, and could not be downloaded: {url} {reason}; {}",
        .cache.display(), .of.remedy()
    )]
    NotDownloaded { of: Repository, cache: PathBuf, url: String, reason: String },
    #[error("cannot keep the downloaded file at {}: {source}", .path.display())]
    NotKept { path: PathBuf, source: io::Error },
}

impl Repository {
    fn name(&self) -> &str {
        match self {
            Self::Model(name) | Self::Dataset(name) => name,
        }
    }

    /// What its addresses begin with.
    #[cfg(feature = "hub")]
    fn prefix(&self) -> &'static str {
        if matches!(self, Self::Model(_)) { "" } else { "datasets/" }
    }

    fn remedy(&self) -> &'static str {
        match self {
            Self::Model(_) => "give the path of a tokenizer.json with --tokenizer",
            Self::Dataset(_) => {
                "check the name, download it where there is a network with \
                 `hf download --repo-type dataset NAME` (HF_HOME names the cache), or give the path \
                 of a file with --dataset"
            }
        }
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(name) => write!(f, "the tokenizer of `{name}`"),
            Self::Dataset(name) => write!(f, "the dataset `{name}`"),
        }
    }
}

impl Hub {
    pub fn from_environment() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// By the variables that the hub's own client reads.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
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

    /// What the cache has of it.
    pub(crate) fn cached(&self, of: &Repository) -> Option<Snapshot> {
        let folder = self.folder(of);
        let commit = std::fs::read_to_string(folder.join("refs/main")).ok()?;
        let commit = commit.trim().to_owned();
        Some(Snapshot { folder: folder.join("snapshots").join(&commit), commit })
    }

    /// Where it is kept, whatever its commit.
    fn folder(&self, of: &Repository) -> PathBuf {
        let kind = if matches!(of, Repository::Model(_)) { "models" } else { "datasets" };
        self.cache.join(format!("{kind}--{}", of.name().replace('/', "--")))
    }

    /// Fails where nothing can be downloaded; `why` is added to what is known.
    pub(crate) fn check_online(&self, of: &Repository) -> Result<(), HubError> {
        let refuse = |why: &str| {
            let (of, cache) = (of.clone(), self.cache.clone());
            Err(HubError::NotCached { of, cache, why: why.to_owned() })
        };
        match () {
            () if self.offline => refuse("HF_HUB_OFFLINE forbids to download it"),
            () if cfg!(not(feature = "hub")) => {
                refuse("this program was built without downloads from the hub")
            }
            () => Ok(()),
        }
    }
}

/// `model` or `owner/model`, of the characters that the hub allows.
pub(crate) fn is_hub_name(name: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
            && !part.contains("..")
    };
    name.split('/').count() <= 2 && name.split('/').all(is_part)
}
