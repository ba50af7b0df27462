//! Lines that begin like a record and are none: broken ones where all lines are records, and nothing
//! between the lines of a page.

use serde::de::IgnoredAny;

use super::lines::Line;
use crate::import::records::not_json;

const KEPT_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Oddities {
    found: Vec<(u32, String)>,
    /// Whether a line is neither a record nor a comment.
    has_prose: bool,
}

impl Oddities {
    /// A line that does not begin a record.
    pub(super) fn read(&mut self, line: Line<'_>) {
        let text = line.text.trim_matches([' ', '\t', '\u{feff}', '[', ']', ',']);
        if text.is_empty() || text.starts_with('#') || text.starts_with("//") {
            return;
        }
        self.has_prose |= !text.starts_with('{') || is_template(text);
        if self.has_prose {
            self.found.clear();
        } else if self.found.len() < KEPT_MAX
            && let Err(error) = serde_json::from_str::<IgnoredAny>(text)
        {
            self.found.push((line.number, not_json(&error)));
        }
    }

    pub(super) fn broken(self) -> Vec<(u32, String)> {
        self.found
    }
}

/// Pages that are filled in have such lines.
fn is_template(text: &str) -> bool {
    ["{%", "{{", "{:", "{#"].iter().any(|opening| text.starts_with(opening))
}
