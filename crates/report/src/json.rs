//! The JSON document: the summary, and where it is stored. Documented in `docs/summary.md`.

use inferometer_analysis::Summary;
use serde::Serialize;

use crate::Files;

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    files: &'a Files,
}

/// Exactly one document, with a line feed at its end.
pub fn render(summary: &Summary, files: &Files) -> String {
    // A summary has text for keys and finite numbers, so it always has a JSON form.
    let text = serde_json::to_string_pretty(&Document { summary, files }).unwrap_or_default();
    text + "\n"
}
