//! The JSON objects and lines of a text one after another, and the results that were found in a file.

use inferometer_analysis::tool_result::{Mark, ResultLatency, ToolResult};

use super::{BrokenRecord, ImportError, Imported, RESULTS_MAX, mapping};
use crate::json::Json;

const BROKEN_MAX: usize = 1000;
/// How many times its own length of a text may be read in vain; without a bound a text could make
/// every line be followed to the end.
const FOLLOWED_TIMES: usize = 8;

/// One result for each object of a text; an object that is no result is broken, for the reason `lacks`.
pub(crate) fn read_objects(
    text: &str,
    is_result: impl Fn(&Json) -> bool,
    lacks: &str,
    result: impl Fn(&Json, u32) -> ToolResult,
) -> Result<Vec<Imported>, ImportError> {
    let mut records = Records::default();
    each_object(text, |line, read| {
        match read {
            Ok(json) if is_result(&json) => records.push(result(&json, line)),
            Ok(_) => records.break_off(line, lacks.to_owned()),
            Err(reason) => records.break_off(line, reason),
        }
        !records.are_too_many()
    });
    records.finish()
}

/// Gives every object to `take` with the line on which it begins, and every one that cannot be read
/// with the reason, until `take` returns that it has enough.
pub(crate) fn each_object(text: &str, mut take: impl FnMut(u32, Result<Json, String>) -> bool) {
    scan(
        text,
        |_, rest| rest.starts_with('{'),
        |line, piece| match piece {
            Piece::Object(read) => take(line, read),
            Piece::Line(_) => true,
        },
    );
}

/// A part of a text.
pub(crate) enum Piece<'a> {
    /// A line, or the rest of one behind an object.
    Line(&'a str),
    /// A JSON object, which may span lines, or why it cannot be read.
    Object(Result<Json, String>),
}

/// Gives every part of a text to `take` with the number of its line, until `take` returns that it has
/// enough; returns the number of the line that would come next. `opens` tells from a line, and from
/// the text that begins behind its indentation, whether that is an object.
pub(crate) fn scan<'a>(
    text: &'a str,
    opens: impl Fn(&str, &str) -> bool,
    mut take: impl FnMut(u32, Piece<'a>) -> bool,
) -> u32 {
    let line_end = |at: usize| text[at..].find('\n').map_or(text.len(), |length| at + length);
    let (mut at, mut number) = (0, 1_u32);
    // End of the line that `at` is in: many objects may share one, and it is not sought for each.
    let mut end = line_end(0);
    let mut follow_bytes = text.len().saturating_mul(FOLLOWED_TIMES);
    while at < text.len() {
        if end < at {
            end = line_end(at);
        }
        let line = text[at..end].trim_end_matches('\r');
        let inner = line.trim_start_matches([' ', '\t', '[', ',']);
        let start = at + (line.len() - inner.len());
        let mut next = None;
        let piece = if opens(line, &text[start..]) {
            let read = match parse(inner) {
                Err(error) if error.is_eof() && follow_bytes > 0 => parse(&text[start..])
                    .inspect_err(|error| {
                        let lines = text[start..].split_inclusive('\n').take(error.line());
                        follow_bytes = follow_bytes.saturating_sub(lines.map(str::len).sum());
                    }),
                alone => alone,
            };
            next = read.as_ref().ok().map(|(_, length)| start + length);
            Piece::Object(read.map(|(json, _)| json).map_err(|error| not_json(&error)))
        } else {
            Piece::Line(line)
        };
        if !take(number, piece) {
            break;
        }
        number = number.saturating_add(next.map_or(1, |next| newlines(&text[at..next])));
        at = next.unwrap_or(end + 1);
    }
    number
}

pub(crate) fn newlines(text: &str) -> u32 {
    u32::try_from(text.bytes().filter(|byte| *byte == b'\n').count()).unwrap_or(u32::MAX)
}

/// The object at the beginning of the text, and where it ends.
fn parse(text: &str) -> Result<(Json, usize), serde_json::Error> {
    let mut objects = serde_json::Deserializer::from_str(text).into_iter::<Json>();
    let first = objects.next().unwrap_or_else(|| Err(serde::de::Error::custom("is empty")))?;
    Ok((first, objects.byte_offset()))
}

/// An error in a line at which reading stopped.
pub(crate) fn not_json_there(error: &serde_json::Error) -> String {
    format!("is not JSON: {} (column {})", what_is_wrong(error), error.column())
}

fn what_is_wrong(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.split(" at line ").next().unwrap_or(&message).to_owned()
}

/// An error in a line at which a record begins; reading may have stopped below it.
pub(crate) fn not_json(error: &serde_json::Error) -> String {
    let what = what_is_wrong(error);
    match error.line() {
        _ if error.is_eof() => format!("is not JSON: {what}"),
        0 | 1 => not_json_there(error),
        2 => format!("is not JSON: {what} (1 line below it)"),
        line => format!("is not JSON: {what} ({} lines below it)", line - 1),
    }
}

/// The records of a file while they are read, within bounds.
#[derive(Debug, Default)]
pub(crate) struct Records {
    listed: Vec<Imported>,
    results: usize,
    broken: usize,
    /// The first record behind those that are listed as broken.
    unlisted: Option<u32>,
}

impl Records {
    /// Whatever reader found it, a result has its marks, and no latency of which nothing was
    /// measured.
    pub(crate) fn push(&mut self, mut result: ToolResult) {
        self.results += 1;
        if self.are_too_many() {
            return;
        }
        forget_zeros(&mut result);
        result.marks = Mark::found(&result);
        self.listed.push(Imported::Result(Box::new(result)));
    }

    pub(crate) fn break_off(&mut self, line: u32, reason: String) {
        self.broken += 1;
        if self.broken > BROKEN_MAX {
            self.unlisted.get_or_insert(line);
        } else {
            self.remark(line, reason);
        }
    }

    /// Notes something about a place in the file without counting it as a broken record.
    pub(crate) fn remark(&mut self, line: u32, reason: String) {
        self.listed.push(Imported::Broken(BrokenRecord { line, reason }));
    }

    /// Whether the file will be refused, so that nothing more of it need be read.
    pub(crate) fn are_too_many(&self) -> bool {
        self.results > RESULTS_MAX
    }

    pub(crate) fn has_results(&self) -> bool {
        self.results > 0
    }

    pub(crate) fn finish(self) -> Result<Vec<Imported>, ImportError> {
        self.finish_or(|| {
            "the file has keys of another tool's results, but no such result".to_owned()
        })
    }

    /// With what the file looks like where there is nothing in it at all.
    pub(crate) fn finish_or(
        mut self,
        looks_like: impl FnOnce() -> String,
    ) -> Result<Vec<Imported>, ImportError> {
        if self.are_too_many() {
            return Err(ImportError::TooMany);
        }
        if !self.has_results() {
            return Err(match self.listed.iter().find_map(Imported::broken) {
                Some(first) => ImportError::AllBroken {
                    count: self.broken,
                    line: first.line,
                    reason: first.reason.clone(),
                },
                None => ImportError::NothingRecognised { looks_like: looks_like() },
            });
        }
        if let Some(line) = self.unlisted {
            let count = self.broken - BROKEN_MAX;
            let reason = format!("is the first of {count} more records that cannot be read");
            self.remark(line, reason);
        }
        self.listed.sort_by_key(Imported::line);
        Ok(self.listed)
    }
}

/// Tools write zeros where there was nothing to measure, such as the gaps of answers of one token.
/// Read as a latency, they would meet every SLO.
fn forget_zeros(result: &mut ToolResult) {
    let is_zero = |latency: &mut ResultLatency| {
        let known = [latency.mean_ms, latency.std_ms, latency.min_ms, latency.max_ms];
        known.iter().flatten().chain(latency.percentiles_ms.values()).all(|value| *value == 0.0)
    };
    let empty: Vec<ResultLatency> = result.latencies.extract_if(.., is_zero).collect();
    for latency in empty {
        let name = latency.kind.name();
        let place = result.source.line.map_or_else(String::new, |line| format!("line {line}: "));
        let reason = "has nothing but zeros: there was nothing to measure";
        mapping::note(result, format!("{place}{name} {reason}"));
    }
}
