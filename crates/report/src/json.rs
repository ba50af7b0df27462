//! The JSON documents: a summary, and where it is stored. Documented in `docs/summary.md` and
//! `docs/set-summary.md`.

use inferometer_analysis::set::SetSummary;
use inferometer_analysis::tool_result::ToolResult;
use inferometer_analysis::{RequirementOutcome, Summary, numbers_on_one_line};
use serde::Serialize;

use crate::Files;
use crate::terminal::set::SetFiles;

#[derive(Serialize)]
struct Document<'a, S: Serialize, F: Serialize> {
    #[serde(flatten)]
    summary: &'a S,
    files: &'a F,
    /// Not of the stored summary: what is required of a run is no fact of it.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    requirements: &'a [RequirementOutcome],
}

/// Exactly one document, with a line feed at its end.
pub fn render(summary: &Summary, files: &Files) -> String {
    render_judged(summary, files, &[])
}

/// The same, with what was required of the run.
pub fn render_judged(
    summary: &Summary,
    files: &Files,
    requirements: &[RequirementOutcome],
) -> String {
    written(&Document { summary, files, requirements })
}

/// A set of runs, with what was required of them.
pub fn render_set(
    summary: &SetSummary,
    files: &SetFiles,
    requirements: &[RequirementOutcome],
) -> String {
    written(&Document { summary, files, requirements })
}

#[derive(Serialize)]
struct Results<'a> {
    schema: &'static str,
    results: &'a [ToolResult],
}

/// Results side by side, in the order in which they are given.
pub fn render_sheets(sheets: &[ToolResult]) -> String {
    written(&Results { schema: "inferometer.results/1", results: sheets })
}

/// A summary has text for keys and finite numbers, so it always has a JSON form.
fn written(document: &impl Serialize) -> String {
    let indented = serde_json::to_vec_pretty(document).unwrap_or_default();
    String::from_utf8_lossy(&numbers_on_one_line(&indented)).into_owned() + "\n"
}
