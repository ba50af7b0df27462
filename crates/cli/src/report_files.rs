//! The pages of stored runs and sets, as files that replace the ones before them whole.

use std::path::{Path, PathBuf};

use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_report::document::{Document, html, markdown};
use inferometer_report::narrative::{Narrative, facts, findings};
use inferometer_report::pages::{self, SuiteInput};
use inferometer_store::{SetDirectory, write_atomically};

use crate::failure::Failure;

pub(crate) const HTML: &str = "report.html";
pub(crate) const MARKDOWN: &str = "report.md";

/// Both pages of a set into its folder, in words made by rules; says where the HTML page is.
pub(crate) fn write(
    set: &SetDirectory,
    summary: &SetSummary,
    points: &[PointResult],
) -> Result<PathBuf, Failure> {
    let document = of_set(summary, points, &by_rules(summary, points));
    write_both(set.path(), &document)
}

pub(crate) fn by_rules(summary: &SetSummary, points: &[PointResult]) -> Narrative {
    findings::of_set(summary, points, &facts::of_set(summary, points))
}

pub(crate) fn of_set(
    summary: &SetSummary,
    points: &[PointResult],
    narrative: &Narrative,
) -> Document {
    pages::of_set(&SuiteInput { set: summary, points, narrative })
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
