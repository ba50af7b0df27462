//! Where everything is: cores, folders, programs, environments.

use std::path::{Path, PathBuf};

use super::options::Options;
use super::tokenizer;
use super::tool::{Load, Tool};

/// What every run of every tool shares.
#[derive(Clone, Debug)]
pub(crate) struct Bench {
    /// Holds the reports, and a folder for each run.
    pub(crate) folder: PathBuf,
    pub(crate) binary: PathBuf,
    /// An earlier build, where there is one to compare with.
    pub(crate) before: Option<PathBuf>,
    /// Those of the client, as `taskset` takes them.
    pub(crate) client_cores: String,
    pub(crate) server_core: usize,
    pub(crate) time_limit_s: u32,
    environments: PathBuf,
}

impl Bench {
    /// `target` is the folder of this build.
    pub(crate) fn new(options: &Options, target: &Path) -> Result<Self, String> {
        let folder = target.join("rivals");
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        tokenizer::write(&folder)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let environments = options.environments.clone().unwrap_or_else(|| folder.clone());
        Ok(Self {
            binary: absolute(
                &options.binary.clone().unwrap_or_else(|| target.join("release/inferometer")),
            )?,
            before: options.before.as_deref().map(absolute).transpose()?,
            client_cores: options.client_core.unwrap_or(cores - 1).to_string(),
            server_core: options.server_core,
            time_limit_s: options.time_limit_s,
            environments: absolute(&environments)?,
            folder: absolute(&folder)?,
        })
    }

    /// The cores of a server that has many, and of a client that has many, with their numbers.
    pub(crate) fn halves() -> [(String, usize); 2] {
        let cores = std::thread::available_parallelism().map_or(2, usize::from).max(2);
        let middle = cores / 2;
        let range = |from: usize, to: usize| (format!("{from}-{}", to - 1), to - from);
        [range(0, middle), range(middle, cores)]
    }

    /// Cores that are neither the engine's nor the client's, as far as there are such.
    pub(crate) fn between() -> String {
        let [(all, cores), _] = Self::halves();
        if cores < 3 { all } else { format!("1-{}", cores - 1) }
    }

    pub(crate) fn environment(&self, package: &str) -> PathBuf {
        environment(&self.environments, package)
    }

    /// A file that a package brought along beside its code.
    pub(crate) fn in_package(&self, package: &str, file: &str) -> Option<PathBuf> {
        let mut pythons = entries(&self.environment(package).join("lib"));
        pythons.find_map(|python| {
            let path = python.join("site-packages").join(file);
            path.is_file().then_some(path)
        })
    }

    /// The release of a Python package, read off the folder that every installer leaves.
    pub(crate) fn package_version(&self, tool: Tool) -> Result<String, String> {
        let missing = || {
            let folder = self.environments.display();
            format!("not installed; `cargo rivals --install {folder} --only {}`", tool.name())
        };
        let package = tool.package().ok_or_else(missing)?;
        if !tool.program(self).is_file() {
            return Err(missing());
        }
        entries(&self.environment(package).join("lib"))
            .flat_map(|python| entries(&python.join("site-packages")))
            .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
            .find_map(|name| {
                let version = name.strip_prefix(package)?.strip_prefix('-')?;
                Some(version.strip_suffix(".dist-info")?.to_owned())
            })
            .ok_or_else(missing)
    }

    /// A fresh folder for one run.
    pub(crate) fn folder_for(&self, tool: Tool, load: &Load) -> Result<PathBuf, String> {
        let folder = self.folder.join(format!("{}-{}", load.label, tool.name()));
        // What an earlier run left must not be taken for the report of this one.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        Ok(folder)
    }

    /// Nobody downloads a tokenizer, nobody reports usage.
    pub(crate) fn environment_variables(&self) -> Vec<(&'static str, PathBuf)> {
        let mut variables: Vec<_> =
            ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "VLLM_NO_USAGE_STATS", "DO_NOT_TRACK"]
                .into_iter()
                .map(|name| (name, PathBuf::from("1")))
                .collect();
        variables.push(("HF_HOME", self.folder.join("cache")));
        variables.push(("HF_HUB_CACHE", tokenizer::hub(&self.folder)));
        variables.push(("XDG_CACHE_HOME", self.folder.join("cache")));
        variables
    }
}

pub(crate) fn environment(folder: &Path, package: &str) -> PathBuf {
    let bare = folder.join(package);
    if bare.join("bin").is_dir() { bare } else { folder.join(format!("venv-{package}")) }
}

/// What lies in a folder; nothing lies in one that is not there.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Tools run in folders of their own, so no path may be relative.
fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
}
