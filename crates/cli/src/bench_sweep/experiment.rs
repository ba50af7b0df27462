//! The folder of a sweep, laid out as `vllm bench sweep serve` lays it out: its plot tools read it.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use inferometer_store::{read_at_most, write_atomically};
use serde_json::Value;

use super::parameters::Combination;
use crate::failure::Failure;

const RESULT_BYTES_MAX: u64 = 1 << 30;

/// One result: the JSON of a run, with the parameters that it was made with.
/// In the order of its file, which is the order of the columns of a table.
pub(super) type RunData = IndexMap<String, Value>;

#[derive(Clone, Debug)]
pub(super) struct Experiment {
    folder: PathBuf,
}

impl Experiment {
    /// A new folder, or with `resume` one that is there.
    pub(super) fn open(folder: PathBuf, resume: bool) -> Result<Self, Failure> {
        let shown = folder.display();
        match (folder.exists(), resume) {
            (true, false) => Err(Failure::usage(format!("{shown} is there already"))
                .hint("go on with it by --resume, or name another by --experiment-name")),
            (false, true) => Err(Failure::usage(format!("{shown} is not there to be resumed"))
                .hint("name it with --output-dir and --experiment-name")),
            (true, true) | (false, false) => Ok(Self { folder }),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the runs of a combination go.
    pub(super) fn of_pair(&self, serve: &Combination, bench: &Combination) -> PathBuf {
        let mut parts = Vec::new();
        for (side, combination) in [("SERVE-", serve), ("BENCH-", bench)] {
            if !combination.is_empty() {
                parts.extend([side.to_owned(), combination.name()]);
            }
        }
        self.folder.join(file_name(&parts.join("-")))
    }

    pub(super) fn server_log(&self, serve: &Combination) -> PathBuf {
        let name = if serve.is_empty() { "default".to_owned() } else { serve.name() };
        self.folder.join(file_name(&format!("SERVE-{name}.log")))
    }
}

/// As vLLM makes names of files, so that its own results can be gone on with.
fn file_name(text: &str) -> String {
    text.replace('/', "_").replace("..", "__").trim_matches('\'').trim_matches('"').to_owned()
}

pub(super) fn of_run(pair: &Path, number: u32) -> PathBuf {
    pair.join(format!("run={number}.json"))
}

/// Whether any of so many runs is not there.
pub(super) fn lacks_runs(pair: &Path, runs: u32) -> bool {
    (0..runs).any(|number| !of_run(pair, number).exists())
}

pub(super) fn of_summary(pair: &Path) -> PathBuf {
    pair.join("summary.json")
}

/// `None` where there is no such file.
pub(super) fn read(path: &Path) -> Result<Option<RunData>, Failure> {
    let failed = |why: String| {
        Failure::usage(format!("{}: {why}", path.display()))
            .hint("remove it, and the run is made again")
    };
    let bytes =
        read_at_most(path, RESULT_BYTES_MAX).map_err(|error| Failure::usage(error.to_string()))?;
    let Some(bytes) = bytes else { return Ok(None) };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| failed(format!("is not the JSON of a result: {error}")))
}

pub(super) fn write(path: &Path, document: &impl serde::Serialize) -> Result<(), Failure> {
    let json = serde_json::to_vec_pretty(document)
        .map_err(|error| Failure::internal(format!("{}: {error}", path.display())))?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::usage(format!("{}: {error}", folder.display())))?;
    }
    Ok(write_atomically(path, &json)?)
}

#[cfg(test)]
mod tests {
    use super::super::parameters;
    use super::*;

    #[test]
    fn folders_are_named_as_the_plot_tools_expect() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("p.json");
        std::fs::write(&file, r#"[{"model": "../org/name", "n": 1}]"#).unwrap();
        let serve = &parameters::read("--serve-params", Some(&file)).unwrap()[0];
        let bench = Combination::default();
        let experiment = Experiment::open(folder.path().join("e"), false).unwrap();
        let pair = experiment.of_pair(serve, &bench);
        assert_eq!(pair.file_name().unwrap(), "SERVE--model=___org_name-n=1");
        assert_eq!(experiment.of_pair(&bench, &bench), folder.path().join("e").join(""));
        assert!(Experiment::open(folder.path().join("e"), true).is_err());
        assert!(Experiment::open(folder.path().to_owned(), false).is_err());
    }
}
