//! The pages of a comparison: terminal, Markdown, and the JSON document.

mod grid;
mod markdown;
mod names;
mod tables;
mod terminal;
mod words;

use inferometer_analysis::comparison::Comparison;

pub use markdown::render as markdown;
pub use terminal::render as terminal;
pub use words::{nothing_decided, objection};

/// Exactly one document, with a line feed at its end.
pub fn json(comparison: &Comparison) -> String {
    String::from_utf8_lossy(&comparison.to_json_bytes()).into_owned()
}
