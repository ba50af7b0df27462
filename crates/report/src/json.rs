//! The JSON documents: a summary, and where it is stored. Documented in `docs/summary.md` and
//! `docs/set-summary.md`.

use inferometer_analysis::Summary;
use inferometer_analysis::set::SetSummary;
use serde::Serialize;

use crate::Files;
use crate::terminal::set::SetFiles;

#[derive(Serialize)]
struct Document<'a, S: Serialize, F: Serialize> {
    #[serde(flatten)]
    summary: &'a S,
    files: &'a F,
}

/// Exactly one document, with a line feed at its end.
pub fn render(summary: &Summary, files: &Files) -> String {
    written(&Document { summary, files })
}

/// The same of a set of runs.
pub fn render_set(summary: &SetSummary, files: &SetFiles) -> String {
    written(&Document { summary, files })
}

/// A summary has text for keys and finite numbers, so it always has a JSON form.
fn written(document: &impl Serialize) -> String {
    serde_json::to_string_pretty(document).unwrap_or_default() + "\n"
}
