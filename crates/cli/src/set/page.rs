//! What a set came to, as the user wants to see it. The one place where sets are printed.

use std::path::PathBuf;

use inferometer_analysis::RequirementOutcome;
use inferometer_analysis::set::SetSummary;
use inferometer_report::json;
use inferometer_report::terminal::requirements;
use inferometer_report::terminal::set::{SetFiles, render};
use inferometer_store::SetDirectory;

use crate::arguments::PageFormat;
use crate::commands::style;
use crate::failure::Failure;
use crate::output;
use crate::report_files;

pub(crate) fn show(
    summary: &SetSummary,
    files: &SetFiles,
    required: &[RequirementOutcome],
    format: PageFormat,
) -> Result<(), Failure> {
    output::result(&match format {
        PageFormat::Json => json::render_set(summary, files, required),
        PageFormat::Page | PageFormat::Vllm => {
            let mut page = render(summary, files, style());
            let section = requirements(required, style());
            if !section.is_empty() {
                page = format!("{page}\n{section}");
            }
            page
        }
    })
}

/// Where a set is stored, with its report where there is one.
pub(crate) fn files(set: &SetDirectory) -> SetFiles {
    let report = set.path().join(report_files::HTML);
    files_with(set, Some(report).filter(|report| report.is_file()))
}

/// The same, with the report that was just written.
pub(crate) fn files_with(set: &SetDirectory, report: Option<PathBuf>) -> SetFiles {
    let shown = |path: PathBuf| path.display().to_string();
    let there = |name: &str| Some(set.path().join(name)).filter(|path| path.is_file());
    let table = there(report_files::MATRIX_CSV);
    let markdown = table.as_ref().and_then(|_| there(report_files::MARKDOWN));
    SetFiles {
        set: shown(set.path().to_owned()),
        summary: there("summary.json").map(shown),
        report: report.map(shown),
        markdown: markdown.map(shown),
        table: table.map(shown),
    }
}
