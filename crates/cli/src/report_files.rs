//! The pages of stored runs and sets, as files that replace the ones before them whole.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use inferometer_analysis::Summary;
use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_model::study::SetManifest;
use inferometer_report::document::markdown::link;
use inferometer_report::document::{Document, html, markdown};
use inferometer_report::narrative::{Facts, findings};
use inferometer_report::pages::{self, SuiteInput};
use inferometer_store::{RunDirectory, SetDirectory, read_at_most, write_atomically};

use crate::failure::Failure;
use crate::narrator::{self, Subject};

pub(crate) const HTML: &str = "report.html";
pub(crate) const MARKDOWN: &str = "report.md";
/// A row for each cell and load of a matrix.
pub(crate) const MATRIX_CSV: &str = "matrix.csv";
/// The folder of a fragment of a static site.
pub(crate) const SITE: &str = "site";
/// Of an earlier page, which is read for the charts that it shows.
const PAGE_BYTES_MAX: u64 = 64 << 20;

/// A set whose page is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetPage<'a> {
    pub(crate) set: &'a SetDirectory,
    pub(crate) manifest: &'a SetManifest,
    pub(crate) summary: &'a SetSummary,
    pub(crate) points: &'a [PointResult],
}

impl<'a> SetPage<'a> {
    pub(crate) fn facts(&self) -> Facts {
        Facts::from_set(self.summary, self.points)
    }

    /// Who was measured first.
    pub(crate) fn subject(&self) -> Option<Subject<'a>> {
        let first = self.points.first()?;
        let condition = usize::try_from(first.point.condition).ok()?;
        Some(Subject {
            spec: &self.manifest.study.conditions.get(condition)?.spec,
            condition,
            model: &first.summary.run.model,
            simulated: self.manifest.simulated,
        })
    }

    /// In the words that are kept, as far as they hold.
    pub(crate) fn document(&self) -> Document {
        let Self { set, summary, points, .. } = *self;
        let facts = self.facts();
        let rules = findings::from_set(summary, points, &facts);
        let narrative = &narrator::words(set.path(), &facts, rules);
        pages::of_set(&SuiteInput { set: summary, points, narrative })
    }
}

/// The page of a run, likewise.
pub(crate) fn run_document(directory: &RunDirectory, summary: &Summary) -> Document {
    let facts = Facts::from_run(summary);
    let rules = findings::from_run(summary, &facts);
    pages::run(summary, &narrator::words(directory.path(), &facts, rules))
}

/// The HTML page is written last: where it is, all is there.
pub(crate) fn write_both(folder: &Path, document: &Document) -> Result<PathBuf, Failure> {
    write_markdown(&folder.join(MARKDOWN), document)?;
    let path = folder.join(HTML);
    write_file(&path, &html::render(document))?;
    Ok(path)
}

/// The page, and its charts in a folder beside it.
pub(crate) fn write_markdown(path: &Path, document: &Document) -> Result<(), Failure> {
    // Pages beside each other have folders of charts of their own.
    let charts = match path.file_stem() {
        Some(stem) if path.file_name() != Some(MARKDOWN.as_ref()) => {
            format!("{}.charts", stem.to_string_lossy())
        }
        Some(_) | None => markdown::CHARTS.to_owned(),
    };
    let report = markdown::render_with(document, &charts);
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let before = read_at_most(path, PAGE_BYTES_MAX).ok().flatten().unwrap_or_default();
    for (name, content) in &report.files {
        write_file(&folder.join(name), content)?;
    }
    write_file(path, &report.text)?;
    let shown = report.files.into_iter().map(|(name, _)| name).collect();
    remove_stale(folder, &charts, &String::from_utf8_lossy(&before), &shown);
    Ok(())
}

/// Removes the charts that the page showed before and shows no more. Others in that folder are not
/// ours. One that cannot be removed does no harm: no page shows it.
fn remove_stale(folder: &Path, charts: &str, before: &str, shown: &BTreeSet<String>) {
    let Ok(entries) = folder.join(charts).read_dir() else { return };
    for entry in entries.flatten() {
        let Ok(file) = entry.file_name().into_string() else { continue };
        let name = format!("{charts}/{file}");
        let is_chart = file.ends_with("-light.svg") || file.ends_with("-dark.svg");
        if is_chart && !shown.contains(&name) && before.contains(&format!("\"{}\"", link(&name))) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

pub(crate) fn write_file(path: &Path, content: &str) -> Result<(), Failure> {
    let unwritable = |why: String| Failure::usage(why).hint("name another place with --to");
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| {
            unwritable(format!("the folder {} cannot be created: {error}", folder.display()))
        })?;
    }
    write_atomically(path, content.as_bytes()).map_err(|error| unwritable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::time::Duration;

    use inferometer_model::SpecDraft;
    use inferometer_model::spec::TargetSpec;
    use inferometer_model::study::{
        Condition, Level, Order, Point, Question, Repetition, Stage, StudySpec,
    };
    use inferometer_store::{NewSet, RunStore};

    use super::*;

    fn study(urls: [&str; 2]) -> StudySpec {
        let condition = |url: &str| {
            let draft = SpecDraft { url: Some(url.parse().unwrap()), ..SpecDraft::default() };
            Condition { name: url.to_owned(), spec: draft.resolve().unwrap() }
        };
        let runs = NonZeroU32::MIN;
        let repetition =
            Repetition { runs, cool_down: Duration::ZERO, restart: None, stop_at: None };
        StudySpec {
            question: Question::Repeat,
            conditions: urls.map(condition).to_vec(),
            repetition,
            order: Order::Listed,
            seed: 0,
        }
    }

    #[test]
    fn a_model_is_asked_at_the_server_where_it_was_measured() {
        let folder = tempfile::tempdir().unwrap();
        let (tool_version, key_files) = ("0.1.0".to_owned(), Vec::new());
        let study = study(["http://one:8000", "http://two:8000"]);
        let new = NewSet { study, simulated: false, key_files, tool_version, realtime_ns: 0 };
        let set = &RunStore::open(folder.path().into()).unwrap().create_set(new).unwrap();
        let manifest = &set.manifest().unwrap();
        let stored = include_bytes!("../../report/tests/summary.json");
        let summary = Summary::from_json_bytes(stored).unwrap();
        // As sides are interleaved, the second may be measured first.
        let points: Vec<PointResult> = (0..2)
            .map(|number| {
                let (level, stage) = (Level::AsAsked, Stage::Planned);
                let condition = 1 - number;
                let point = Point { number, condition, level, repetition: 0, seed: 0, stage };
                let mut summary = summary.clone();
                summary.run.model = format!("model of {condition}");
                PointResult { point, summary }
            })
            .collect();
        let summary = &SetSummary::summarize(manifest, &points);
        let subject = SetPage { set, manifest, summary, points: &points }.subject().unwrap();
        assert_eq!(subject.model, "model of 1");
        assert_eq!(subject.spec.target, TargetSpec::Url("http://two:8000".parse().unwrap()));
        assert_eq!(subject.condition, 1);
    }
}
