//! What is stored, as commands read it: runs and sets with their summaries, the files of other tools
//! mapped again, and all of them as results of one form.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_analysis::tool_result::ToolResult;
use inferometer_analysis::{DocumentError, Severity, Summary, Verdict, Warning};
use inferometer_interchange::vllm::block::{self, BlockOptions};
use inferometer_interchange::{Import, Imported, meaning, read_file};
use inferometer_model::import::ImportManifest;
use inferometer_model::study::SetManifest;
use inferometer_report::pages::results::import::{BrokenLine, ImportPage, render};
use inferometer_store::{
    ImportDirectory, RunDirectory, RunState, RunStore, SetDirectory, StoreError, Stored,
};
use inferometer_study::play;
use sha2::{Digest, Sha256};

use crate::commands::style;
use crate::failure::{Failure, Result};
use crate::measurement::summarize_stored;
use crate::output;

/// A finished run of ours, or one result of an import.
pub(crate) struct StoredResult {
    /// Its id, `SET/N` or `IMPORT/N`.
    pub(crate) name: String,
    /// By our own definitions for runs of ours, by those of its tool for an import.
    pub(crate) result: ToolResult,
    pub(crate) run: Option<(RunDirectory, Box<Summary>)>,
}

/// The results of all that is named, in that order; of a set its finished runs. `NAME=RUN` names a
/// configuration; `names_single` is whether the only condition of a set is named too.
pub(crate) fn from_names(
    store: &RunStore,
    names: &[String],
    names_single: bool,
    talk: impl Fn(&str),
) -> Result<Vec<StoredResult>> {
    let mut all = Vec::new();
    for typed in names {
        let (configuration, name) = split_name(typed);
        let found = store.find(name).map_err(Failure::from_usage)?;
        let mut results = from_stored(&found, names_single, &talk)?;
        if let Some(configuration) = configuration {
            let configurations = results.iter_mut().map(|it| &mut it.result.configuration);
            name_all(configurations, configuration);
        }
        all.append(&mut results);
    }
    Ok(all)
}

/// The results of what was found; of a set its finished runs.
pub(crate) fn from_stored(
    found: &Stored,
    names_single: bool,
    talk: impl Fn(&str),
) -> Result<Vec<StoredResult>> {
    let Stored::Import(import, number) = found else {
        return Ok(Source::read(found, talk)?.results(names_single));
    };
    let results = from_import(import, *number)?.into_iter();
    let stored = |(number, result)| StoredResult {
        name: format!("{}/{number}", import.id()),
        result,
        run: None,
    };
    Ok((number.unwrap_or(0)..).zip(results).map(stored).collect())
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

/// A run or a set of ours, read back.
pub(crate) enum Source {
    /// One run.
    Run { directory: RunDirectory, summary: Box<Summary> },
    /// A set with the summaries of its points.
    Set {
        set: SetDirectory,
        manifest: Box<SetManifest>,
        summary: Box<SetSummary>,
        points: Vec<PointResult>,
    },
}

impl Source {
    pub(crate) fn read(found: &Stored, talk: impl Fn(&str)) -> Result<Self> {
        let directory = match found {
            Stored::Run(directory) => directory.clone(),
            Stored::Set(set) => return read_set(set, talk),
            Stored::Import(import, _) => {
                let message = format!("{} was imported, not measured", import.id());
                return Err(Failure::usage(message));
            }
        };
        let id = directory.id();
        let summary = match directory.state() {
            RunState::Sealed | RunState::Finished => Box::new(stored_summary(&directory)?),
            RunState::Running => {
                let run = directory.path().to_owned();
                return Err(Failure::from_usage(StoreError::Busy { run }));
            }
            RunState::Unfinished => {
                return Err(Failure::usage(format!("run {id} is not finished"))
                    .hint(format!("finish it with: {}", directory.remedy())));
            }
            RunState::Unreadable(why) => {
                return Err(Failure::usage(format!("run {id} cannot be read: {why}")));
            }
        };
        Ok(Self::Run { directory, summary })
    }

    pub(crate) fn folder(&self) -> &Path {
        match self {
            Self::Run { directory, .. } => directory.path(),
            Self::Set { set, .. } => set.path(),
        }
    }

    /// The runs; those of a set are named after their conditions.
    pub(crate) fn results(&self, names_single: bool) -> Vec<StoredResult> {
        let stored = |directory: RunDirectory, summary: Box<Summary>, configuration: String| {
            let result = ToolResult { configuration, ..ToolResult::from_summary(&summary) };
            let name = directory.id().to_owned();
            StoredResult { name, result, run: Some((directory, summary)) }
        };
        match self {
            Self::Run { directory, summary } => {
                vec![stored(directory.clone(), summary.clone(), String::new())]
            }
            Self::Set { set, summary, points, .. } => {
                let named = names_single || 1 < summary.conditions.len();
                let point = |PointResult { point, summary: run }: &PointResult| {
                    let condition = summary.conditions.get(point.condition as usize);
                    let condition = condition.filter(|_| named).map(|it| it.name.clone());
                    let run = Box::new(run.clone());
                    stored(set.point(point.number), run, condition.unwrap_or_default())
                };
                points.iter().map(point).collect()
            }
        }
    }
}

/// The stored summary; `None` where it is of another version, damaged, or was changed by hand, which
/// is reported.
pub(crate) fn kept_summary(directory: &RunDirectory) -> Result<Option<Summary>> {
    let Some(bytes) = directory.read_summary().map_err(Failure::from_usage)? else {
        return Ok(None);
    };
    let summary = Summary::from_json_bytes(&bytes);
    if let Err(error @ DocumentError::Changed) = &summary {
        let id = directory.id();
        output::talk(&format!("warning: summary.json of {id} is not used, because {error}"));
    }
    Ok(summary.ok())
}

/// The stored summary, where it has all data of the charts; otherwise computed from the records, which
/// take precedence over a summary that is damaged or of another version.
fn stored_summary(directory: &RunDirectory) -> Result<Summary> {
    let kept = kept_summary(directory)?;
    let has_figures =
        |summary: &Summary| summary.attempted == 0 || !summary.figures.course.in_flight.is_empty();
    match kept {
        Some(kept) if has_figures(&kept) => Ok(kept),
        kept => match (directory.read(), kept) {
            (Ok(stored), _) => Ok(summarize_stored(&stored)?),
            // Without its records a run still has its numbers, but no charts.
            (Err(_), Some(kept)) => Ok(kept),
            (Err(error), None) => Err(Failure::from_usage(error)),
        },
    }
}

/// A set that is not finished has a page of its finished runs, with a warning.
fn read_set(set: &SetDirectory, talk: impl Fn(&str)) -> Result<Source> {
    let manifest = Box::new(set.manifest().map_err(Failure::from_usage)?);
    let replay = play::replay_finished(set, &manifest, stored_summary)?;
    let (set, points) = (set.clone(), replay.results);
    if let Some(summary) = replay.summary {
        return Ok(Source::Set { set, manifest, summary: Box::new(summary), points });
    }
    let resume = play::resume_command(&set);
    if points.is_empty() {
        return Err(Failure::usage(format!("set {} has no finished run yet", set.id()))
            .hint(format!("resume with: {resume}")));
    }
    talk(&format!("warning: set {} is not finished; only stored runs are shown", set.id()));
    let mut summary = Box::new(play::summarize_stored(&set, &manifest, &points)?);
    summary.verdict = summary.verdict.max(Verdict::Degraded);
    let stored = play::stored_runs(points.len());
    let unfinished = Warning {
        key: "unfinished".to_owned(),
        check: None,
        severity: Severity::Degraded,
        text: format!("the set is not finished: {stored}, and this page shows only those"),
        remedy: format!("resume it with: {resume}"),
    };
    summary.warnings.insert(0, unfinished);
    Ok(Source::Set { set, manifest, summary, points })
}

/// An import with its file mapped.
pub(crate) struct Mapped {
    pub(crate) directory: ImportDirectory,
    pub(crate) manifest: ImportManifest,
    pub(crate) import: Import,
}

impl Mapped {
    /// From the file itself: the summary beside it may be an older program's.
    pub(crate) fn read(directory: &ImportDirectory) -> Result<Self> {
        let manifest = directory.manifest().map_err(Failure::from_usage)?;
        let foreign = directory.foreign().map_err(Failure::from_usage)?;
        let import = read_file(&manifest.file.name, &foreign, &manifest.reading)
            .map_err(|error| Failure::usage(format!("{}: {error}", directory.id())))?;
        Ok(Self { directory: directory.clone(), manifest, import })
    }

    /// One document for programs.
    pub(crate) fn json(&self) -> Result<serde_json::Value> {
        let import = serde_json::to_value(&self.import).map_err(unwritable)?;
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
            results: self.import.results().collect(),
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
) -> Result<Vec<ToolResult>> {
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

/// Results that share a name, or only have the file's, are named `ID/N`.
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

pub(crate) fn summary_of(import: &Import) -> Result<Vec<u8>> {
    let mut json = serde_json::to_vec_pretty(import).map_err(unwritable)?;
    json.push(b'\n');
    Ok(json)
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unwritable(error: impl std::fmt::Display) -> Failure {
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
