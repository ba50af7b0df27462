//! The JSON document: the summary, and where it is stored. Documented in `docs/summary.md`.

use inferometer_analysis::{RequirementOutcome, Summary};
use serde::Serialize;

use crate::Files;

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    files: &'a Files,
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
    // A summary has text for keys and finite numbers, so it always has a JSON form.
    let document = Document { summary, files, requirements };
    let text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text + "\n"
}
