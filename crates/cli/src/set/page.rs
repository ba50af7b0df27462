//! What a set came to, as the user wants to see it. The one place where sets are printed.

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

pub(crate) fn show(
    summary: &SetSummary,
    set: &SetDirectory,
    required: &[RequirementOutcome],
    format: PageFormat,
) -> Result<(), Failure> {
    let files = files(set);
    output::result(&match format {
        PageFormat::Json => json::render_set(summary, &files, required),
        PageFormat::Page | PageFormat::Vllm => {
            let mut page = render(summary, &files, style());
            let section = requirements(required, style());
            if !section.is_empty() {
                page = format!("{page}\n{section}");
            }
            page
        }
    })
}

/// Where a set is stored.
pub(crate) fn files(set: &SetDirectory) -> SetFiles {
    SetFiles {
        set: set.path().display().to_string(),
        summary: set.path().join("summary.json").display().to_string(),
    }
}
