//! The JSON objects of a text one after another: as lines, or each over several lines.

use super::tree::Node;
use super::{BrokenRecord, ImportError, Imported, RESULTS_MAX};
use inferometer_analysis::sheet::Sheet;

const BROKEN_MAX: usize = 1000;
/// How many times its own length of a text may be read in vain.
const FOLLOWED_TIMES: usize = 8;

/// Gives every object to `take` with the line on which it begins, and every one that cannot be read
/// with the reason.
pub(super) fn each_object(text: &str, mut take: impl FnMut(u32, Result<Node, String>)) {
    let mut at = 0;
    let mut line = 1_u32;
    let mut follow_bytes = text.len().saturating_mul(FOLLOWED_TIMES);
    while at < text.len() {
        let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
        let inner = text[at..end].trim_start_matches([' ', '\t', '[', ',', '\r']);
        let start = end - inner.len();
        let mut next = end + 1;
        if inner.starts_with('{') {
            let read = match object(inner) {
                Err(error) if error.is_eof() && follow_bytes > 0 => object(&text[start..])
                    .inspect_err(|error| {
                        let lines = text[start..].split_inclusive('\n').take(error.line());
                        follow_bytes = follow_bytes.saturating_sub(lines.map(str::len).sum());
                    }),
                alone => alone,
            };
            if let Ok((_, length)) = &read {
                next = start + length;
            }
            take(line, read.map(|(node, _)| node).map_err(|error| not_json(&error, line)));
        }
        let passed = text.as_bytes()[at..next.min(text.len())].iter().filter(|b| **b == b'\n');
        line = line.saturating_add(u32::try_from(passed.count()).unwrap_or(u32::MAX));
        at = next;
    }
}

fn object(text: &str) -> Result<(Node, usize), serde_json::Error> {
    let mut objects = serde_json::Deserializer::from_str(text).into_iter::<Node>();
    let first = objects.next().unwrap_or_else(|| Err(serde::de::Error::custom("is empty")))?;
    Ok((first, objects.byte_offset()))
}

/// The parser counts lines from the record's beginning, the reader of the message from the file's.
pub(super) fn not_json(error: &serde_json::Error, record_line: u32) -> String {
    let message = error.to_string();
    let what = message.split(" at line ").next().unwrap_or(&message);
    let line = u64::from(record_line) + error.line().saturating_sub(1) as u64;
    format!("is not JSON: {what} (at line {line}, column {})", error.column())
}

/// The records of a file while they are read, within bounds.
#[derive(Debug, Default)]
pub(super) struct Records {
    listed: Vec<Imported>,
    results: usize,
    broken: usize,
    /// The first record behind those that are listed as broken.
    unlisted: Option<u32>,
}

impl Records {
    pub(super) fn push(&mut self, sheet: Sheet) {
        self.results += 1;
        if self.results <= RESULTS_MAX {
            self.listed.push(Imported::Result(Box::new(sheet)));
        }
    }

    pub(super) fn break_off(&mut self, line: u32, reason: String) {
        self.broken += 1;
        if self.broken > BROKEN_MAX {
            self.unlisted.get_or_insert(line);
        } else {
            self.listed.push(Imported::Broken(BrokenRecord { line, reason }));
        }
    }

    pub(super) fn finish(mut self) -> Result<Vec<Imported>, ImportError> {
        if self.results > RESULTS_MAX {
            return Err(ImportError::TooMany);
        }
        if self.results == 0
            && let Some(first) = self.listed.iter().find_map(Imported::broken)
        {
            let (line, reason) = (first.line, first.reason.clone());
            return Err(ImportError::AllBroken { count: self.broken, line, reason });
        }
        if let Some(line) = self.unlisted {
            let count = self.broken - BROKEN_MAX;
            let reason = format!("is the first of {count} more records that cannot be read");
            self.listed.push(Imported::Broken(BrokenRecord { line, reason }));
        }
        self.listed.sort_by_key(Imported::line);
        Ok(self.listed)
    }
}
