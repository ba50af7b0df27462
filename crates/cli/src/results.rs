//! Results of runs, sets and imports as every tool has them, and the files of other tools as they are
//! stored: read again, mapped again, shown.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use inferometer_analysis::tool_result::ToolResult;
use inferometer_interchange::vllm::block::{self, BlockOptions};
use inferometer_interchange::{Import, Imported, meaning, read_file};
use inferometer_model::import::ImportManifest;
use inferometer_report::pages::results::import::{BrokenLine, ImportPage, render};
use inferometer_store::{ImportDirectory, RunStore, Stored};
use sha2::{Digest, Sha256};

use crate::commands::{report::Source, style};
use crate::failure::Failure;

/// The results of all that is named, in that order. `NAME=RUN` names a configuration.
pub(crate) fn from_names(store: &RunStore, names: &[String]) -> Result<Vec<ToolResult>, Failure> {
    let mut all = Vec::new();
    for typed in names {
        let (configuration, name) = split_name(typed);
        let mut results = from_stored(&store.find(name).map_err(Failure::from_usage)?)?;
        if let Some(configuration) = configuration {
            name_all(results.iter_mut().map(|result| &mut result.configuration), configuration);
        }
        all.extend(results);
    }
    Ok(all)
}

/// `NAME=RUN`, or a run alone. The sign may stand in a path too: a name has no slash, and does not
/// begin a folder that is there.
pub(crate) fn split_name(typed: &str) -> (Option<&str>, &str) {
    split_unless(typed, |folder| Path::new(folder).exists())
}

fn split_unless(typed: &str, is_there: impl Fn(&str) -> bool) -> (Option<&str>, &str) {
    let folder = typed.split('/').next().unwrap_or_default();
    match typed.split_once('=') {
        Some((name, place)) if !name.is_empty() && !name.contains('/') && !is_there(folder) => {
            (Some(name), place)
        }
        _ => (None, typed),
    }
}

/// Several configurations stay apart under the new name: as one, their results would be taken for
/// repeats of each other.
pub(crate) fn name_all<'a>(configurations: impl Iterator<Item = &'a mut String>, name: &str) {
    let configurations: Vec<&mut String> = configurations.collect();
    let is_one = configurations.windows(2).all(|pair| pair[0] == pair[1]);
    for configuration in configurations {
        *configuration = match configuration.as_str() {
            known if !is_one && !known.is_empty() => format!("{name} {known}"),
            _ => name.to_owned(),
        };
    }
}

/// By our own definitions where the runs are ours, and by those of its tool what was imported.
pub(crate) fn from_stored(found: &Stored) -> Result<Vec<ToolResult>, Failure> {
    if let Stored::Import(import, number) = found {
        return from_import(import, *number);
    }
    Ok(from_source(&Source::read(found, |_| {})?))
}

pub(crate) fn from_source(source: &Source) -> Vec<ToolResult> {
    match source {
        Source::Run { summary, .. } => vec![ToolResult::from_summary(summary)],
        Source::Set { summary, points, .. } => points
            .iter()
            .map(|result| {
                let condition = summary.conditions.get(result.point.condition as usize);
                let configuration = condition.map_or_else(String::new, |it| it.name.clone());
                ToolResult { configuration, ..ToolResult::from_summary(&result.summary) }
            })
            .collect(),
    }
}

/// An import with its file mapped.
pub(crate) struct Mapped {
    pub(crate) directory: ImportDirectory,
    pub(crate) manifest: ImportManifest,
    pub(crate) import: Import,
}

impl Mapped {
    /// From the file itself: the summary beside it may be an older program's.
    pub(crate) fn read(directory: &ImportDirectory) -> Result<Self, Failure> {
        let manifest = directory.manifest().map_err(Failure::from_usage)?;
        let foreign = directory.foreign().map_err(Failure::from_usage)?;
        let import = read_file(&manifest.file.name, &foreign, &manifest.reading)
            .map_err(|error| Failure::usage(format!("{}: {error}", directory.id())))?;
        Ok(Self { directory: directory.clone(), manifest, import })
    }

    /// What is kept beside the file.
    pub(crate) fn summary(&self) -> Result<Vec<u8>, Failure> {
        summary_of(&self.import)
    }

    /// One document for programs.
    pub(crate) fn json(&self) -> Result<serde_json::Value, Failure> {
        let import = serde_json::to_value(&self.import).map_err(|error| unwritable(&error))?;
        Ok(serde_json::json!({
            "id": self.directory.id(),
            "path": self.directory.path().display().to_string(),
            "imported": self.manifest.imported,
            "tool_version": self.manifest.tool_version,
            "file": self.manifest.file,
            "reading": self.manifest.reading,
            "results": self.import.results().count(),
            "broken": self.import.broken().count(),
            "import": import,
        }))
    }

    /// Every result as `vllm bench serve` prints one.
    pub(crate) fn blocks(&self) -> String {
        let block = |sheet| block::from_result(sheet, &BlockOptions::all_of(sheet));
        self.import.results().map(block).collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn page(&self) -> String {
        let folder = self.directory.path().display().to_string();
        let broken = self.import.broken();
        let page = ImportPage {
            manifest: &self.manifest,
            folder: &folder,
            tool: self.import.tool,
            sheets: self.import.results().collect(),
            broken: broken
                .map(|broken| BrokenLine { line: broken.line, reason: &broken.reason })
                .collect(),
            notes: meaning(self.import.tool),
        };
        render(&page, style())
    }
}

/// All results of an import, or the one with this number.
pub(crate) fn from_import(
    directory: &ImportDirectory,
    number: Option<u32>,
) -> Result<Vec<ToolResult>, Failure> {
    let Mapped { import, manifest, .. } = Mapped::read(directory)?;
    let results = import.records.into_iter().filter_map(|record| match record {
        Imported::Result(sheet) => Some(*sheet),
        Imported::Broken(_) => None,
    });
    let mut results: Vec<ToolResult> = results.collect();
    number_names(&mut results, directory.id(), &manifest.file.name);
    let Some(number) = number else { return Ok(results) };
    let found = results.len();
    results.into_iter().nth(number as usize).map(|sheet| vec![sheet]).ok_or_else(|| {
        let last = found.saturating_sub(1);
        Failure::usage(format!("{} has no result {number}", directory.id()))
            .hint(format!("it has {found}, named {0}/0 to {0}/{last}", directory.id()))
    })
}

/// Those that share a name, or have none but the file's, are called as they are asked for.
fn number_names(results: &mut [ToolResult], id: &str, file: &str) {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for sheet in results.iter() {
        *times.entry(sheet.source.name.clone()).or_default() += 1;
    }
    for (number, sheet) in results.iter_mut().enumerate() {
        let name = &mut sheet.source.name;
        if *name == file || 1 < times[name.as_str()] {
            *name = format!("{id}/{number}");
        }
    }
}

pub(crate) fn summary_of(import: &Import) -> Result<Vec<u8>, Failure> {
    let mut json = serde_json::to_vec_pretty(import).map_err(|error| unwritable(&error))?;
    json.push(b'\n');
    Ok(json)
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unwritable(error: &serde_json::Error) -> Failure {
    Failure::internal(format!("the results cannot be written as JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_for_two_configurations_does_not_make_them_one() {
        let mut two = ["v0", "v1", ""].map(str::to_owned);
        name_all(two.iter_mut(), "R2");
        assert_eq!(two, ["R2 v0", "R2 v1", "R2"]);
        let mut one = ["v0", "v0"].map(str::to_owned);
        name_all(one.iter_mut(), "R2");
        assert_eq!(one, ["R2", "R2"]);
    }

    #[test]
    fn a_name_may_stand_before_a_run_and_a_path_is_left_alone() {
        assert_eq!(split_name("base=latest"), (Some("base"), "latest"));
        assert_eq!(split_name("base=./a=b/runs"), (Some("base"), "./a=b/runs"));
        assert_eq!(split_name("latest"), (None, "latest"));
        assert_eq!(split_name("./a=b/runs/1"), (None, "./a=b/runs/1"));
        assert_eq!(split_name("=x"), (None, "=x"));
        let is_there = |folder: &str| folder == "SERVE--x=1";
        assert_eq!(split_unless("SERVE--x=1/runs/2/3", is_there), (None, "SERVE--x=1/runs/2/3"));
        assert_eq!(split_unless("x=1/runs/2", is_there), (Some("x"), "1/runs/2"));
    }

    #[test]
    fn results_are_told_apart_by_name() {
        let sheet = |name: &str| {
            let mut sheet = ToolResult::default();
            name.clone_into(&mut sheet.source.name);
            sheet
        };
        let mut results = ["page.md", "tag", "tag", "calm-1", "page.md"].map(sheet);
        number_names(&mut results, "imp", "page.md");
        let names = results.map(|sheet| sheet.source.name);
        assert_eq!(names, ["imp/0", "imp/1", "imp/2", "calm-1", "imp/4"]);
    }
}
