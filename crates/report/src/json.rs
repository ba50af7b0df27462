//! The JSON documents: a summary, and where it is stored. Documented in `docs/summary.md` and
//! `docs/set-summary.md`.

use inferometer_analysis::tool_result::ToolResult;
use inferometer_analysis::{RequirementOutcome, numbers_on_one_line};
use serde::Serialize;

/// The summary of a run or a set with its files and the outcomes of its requirements: exactly one
/// document, with a line feed at its end.
pub fn render(
    summary: &impl Serialize,
    files: &impl Serialize,
    requirements: &[RequirementOutcome],
) -> String {
    #[derive(Serialize)]
    struct Document<'a, S: Serialize, F: Serialize> {
        #[serde(flatten)]
        summary: &'a S,
        files: &'a F,
        /// Not of the stored summary: what is required of a run is no fact of it.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        requirements: &'a [RequirementOutcome],
    }
    to_json(&Document { summary, files, requirements })
}

/// Results side by side, in the order in which they are given.
pub fn render_results(results: &[ToolResult]) -> String {
    #[derive(Serialize)]
    struct Results<'a> {
        schema: &'static str,
        results: &'a [ToolResult],
    }
    to_json(&Results { schema: "inferometer.results/1", results })
}

/// A document with text for keys and finite numbers, so that it always has a JSON form.
pub fn to_json(document: &impl Serialize) -> String {
    let indented = serde_json::to_vec_pretty(document).unwrap_or_default();
    String::from_utf8_lossy(&numbers_on_one_line(&indented)).into_owned() + "\n"
}
