//! The pages of stored runs and sets, as files that replace the ones before them whole.

use std::path::{Path, PathBuf};

use inferometer_analysis::Summary;
use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_model::campaign::SetManifest;
use inferometer_report::document::{Document, html, markdown};
use inferometer_report::narrative::{facts, findings};
use inferometer_report::pages::{self, SuiteInput};
use inferometer_store::{RunDirectory, SetDirectory, write_atomically};

use crate::arguments::NarratorArguments;
use crate::failure::Failure;
use crate::narrator;

pub(crate) const HTML: &str = "report.html";
pub(crate) const MARKDOWN: &str = "report.md";

/// Both pages of a set into its folder; says where the HTML page is.
pub(crate) fn write(
    set: &SetDirectory,
    manifest: &SetManifest,
    summary: &SetSummary,
    points: &[PointResult],
    narrator: &NarratorArguments,
) -> Result<PathBuf, Failure> {
    write_both(set.path(), &of_set(set, manifest, summary, points, narrator)?)
}

/// The page of a set, in the words of whoever was asked for them.
pub(crate) fn of_set(
    set: &SetDirectory,
    manifest: &SetManifest,
    summary: &SetSummary,
    points: &[PointResult],
    narrator: &NarratorArguments,
) -> Result<Document, Failure> {
    let facts = facts::of_set(summary, points);
    if let (Some(condition), Some(point)) = (manifest.campaign.conditions.first(), points.first()) {
        let measured = narrator::Measured {
            spec: &condition.spec,
            key_file: manifest.key_files.first().and_then(Option::as_deref),
            model: &point.summary.run.model,
            simulated: manifest.simulated,
        };
        narrator::consult(narrator, measured, &facts, set.path())?;
    }
    let rules = findings::of_set(summary, points, &facts);
    let narrative = &narrator::words(set.path(), &facts, rules)?;
    Ok(pages::of_set(&SuiteInput { set: summary, points, narrative }))
}

/// The page of a run, likewise.
pub(crate) fn of_run(
    directory: &RunDirectory,
    summary: &Summary,
    narrator: &NarratorArguments,
) -> Result<Document, Failure> {
    let facts = facts::of_run(summary);
    if narrator.narrator.is_some() {
        let manifest = directory.manifest().map_err(|error| Failure::usage(error.to_string()))?;
        let measured = narrator::Measured {
            spec: &manifest.spec,
            key_file: None,
            model: &summary.run.model,
            simulated: summary.run.simulated.is_some(),
        };
        narrator::consult(narrator, measured, &facts, directory.path())?;
    }
    let rules = findings::of_run(summary, &facts);
    Ok(pages::run(summary, &narrator::words(directory.path(), &facts, rules)?))
}

/// The HTML page is written last: where it is, all is there.
pub(crate) fn write_both(folder: &Path, document: &Document) -> Result<PathBuf, Failure> {
    write_markdown(&folder.join(MARKDOWN), document)?;
    let path = folder.join(HTML);
    write_html(&path, document)?;
    Ok(path)
}

pub(crate) fn write_html(path: &Path, document: &Document) -> Result<(), Failure> {
    write_file(path, &html::render(document))
}

/// The page, and its charts in a folder beside it.
pub(crate) fn write_markdown(path: &Path, document: &Document) -> Result<(), Failure> {
    let report = markdown::render(document);
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    for (name, content) in &report.files {
        write_file(&folder.join(name), content)?;
    }
    write_file(path, &report.text)
}

pub(crate) fn write_file(path: &Path, content: &str) -> Result<(), Failure> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| {
            Failure::usage(format!("the folder {} cannot be made: {error}", folder.display()))
                .hint("name another place with --to")
        })?;
    }
    write_atomically(path, content.as_bytes())
        .map_err(|error| Failure::usage(error.to_string()).hint("name another place with --to"))
}
