//! Results of `vllm bench serve` in a text, whatever stands between them.

mod above;
mod block;
mod detail;
mod field;
mod json;
mod lines;
mod loose;
mod oddity;
pub(crate) mod own;

use inferometer_analysis::sheet::{Form, Mark, Sheet, SheetSource, Tool};

use self::block::{Blocks, Ended};
use self::json::Object;
pub(super) use self::json::{BENCHMARK_NAME, RUN_NUMBER};
pub(super) use self::lines::quote_bare_words;
use self::lines::{Line, Lines};
use self::oddity::Oddities;
use super::{BrokenRecord, ImportError, Imported, RESULTS_MAX};

/// With `--save-detailed` a line holds every gap between tokens of a run.
const LINE_BYTES_MAX: usize = 128 << 20;
const BROKEN_MAX: usize = 1000;
/// Enough to see whether a file is a text.
const SEEN_CHARS: usize = 4096;
/// How many times its own length of a text may be read in vain.
const FOLLOWED_TIMES: usize = 8;

/// A result of this tool of which nothing is known yet.
fn vllm_sheet(form: Form, line: u32) -> Sheet {
    let source = SheetSource { tool: Tool::Vllm, form, line: Some(line), ..SheetSource::default() };
    Sheet { source, ..Sheet::default() }
}

/// The results of `vllm bench serve` in a text: JSON objects, printed blocks, or both.
///
/// Records that cannot be read stand between those that can, with their reasons.
pub(crate) fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let text = quote_bare_words(text);
    let mut lines = Lines::of(&text);
    let follow_bytes = text.len().saturating_mul(FOLLOWED_TIMES);
    let mut reader = Reader { follow_bytes, ..Reader::default() };
    while let Some(line) = lines.next() {
        if let Some(end) = reader.read(&text, line)? {
            lines.jump(line, end);
        }
    }
    let ended = reader.blocks.end_early(lines.number());
    reader.take_block(ended)?;
    reader.finish(&text)
}

#[derive(Debug, Default)]
struct Reader {
    imported: Vec<Imported>,
    results: usize,
    broken: usize,
    /// The first record behind those that are listed as broken.
    unlisted: Option<u32>,
    /// JSON objects that are no results: the first one's line and keys, and how many.
    strangers: Option<(u32, String)>,
    strangers_count: usize,
    blocks: Blocks,
    oddities: Oddities,
    /// How many bytes may still be read in following broken objects over lines; without it a text
    /// could make every line be followed to the end.
    follow_bytes: usize,
}

impl Reader {
    /// Where to go on, if not behind this line.
    fn read(&mut self, text: &str, line: Line<'_>) -> Result<Option<usize>, ImportError> {
        if line.text.len() > LINE_BYTES_MAX {
            let reason = format!(
                "is a line of {} bytes, and {LINE_BYTES_MAX} is the most; save the result without \
                 --save-detailed",
                line.text.len()
            );
            self.break_off(line.number, reason);
            return Ok(None);
        }
        let inner = line.text.trim_start_matches([' ', '\t', '[', ',']);
        let start = line.start + (line.text.len() - inner.len());
        if !json::opens(&text[start..]) {
            self.oddities.read(line);
            let ended = self.blocks.read(line);
            self.take_block(ended)?;
            return Ok(None);
        }
        let ended = self.blocks.end_early(line.number);
        self.take_block(ended)?;
        match self.object(&text[start..], inner) {
            Ok((object, length)) => {
                self.take_object(object, line.number)?;
                Ok(Some(start + length))
            }
            Err(error) => {
                self.break_off(line.number, not_json(&error));
                Ok(None)
            }
        }
    }

    /// First as a line, then over lines.
    fn object(&mut self, rest: &str, line: &str) -> Result<(Object, usize), serde_json::Error> {
        match json::object(line) {
            Err(error) if error.is_eof() && self.follow_bytes > 0 => json::object(rest)
                .inspect_err(|error| {
                    let followed =
                        rest.split_inclusive('\n').take(error.line()).map(str::len).sum();
                    self.follow_bytes = self.follow_bytes.saturating_sub(followed);
                }),
            alone => alone,
        }
    }

    fn take_object(&mut self, object: Object, line: u32) -> Result<(), ImportError> {
        if object.is_result() {
            let mut result = object.into_result(line);
            self.blocks.above().place(&mut result);
            return self.take(result);
        }
        self.strangers_count += 1;
        self.strangers.get_or_insert_with(|| (line, object.keys_shown()));
        Ok(())
    }

    fn take_block(&mut self, ended: Option<Ended>) -> Result<(), ImportError> {
        match ended {
            Some(Ok(result)) => self.take(result),
            Some(Err(line)) => {
                self.break_off(line, "is a block without a figure".to_owned());
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn take(&mut self, mut result: Sheet) -> Result<(), ImportError> {
        result.marks = Mark::found(&result);
        if self.results == RESULTS_MAX {
            return Err(ImportError::TooMany);
        }
        self.results += 1;
        self.imported.push(Imported::Result(Box::new(result)));
        Ok(())
    }

    fn break_off(&mut self, line: u32, reason: String) {
        self.broken += 1;
        if self.broken > BROKEN_MAX {
            self.unlisted.get_or_insert(line);
        } else {
            self.imported.push(Imported::Broken(BrokenRecord { line, reason }));
        }
    }

    fn finish(mut self, text: &str) -> Result<Vec<Imported>, ImportError> {
        for (line, reason) in std::mem::take(&mut self.oddities).broken() {
            self.break_off(line, reason);
        }
        if self.results == 0 {
            return Err(match self.imported.iter().find_map(Imported::broken) {
                Some(first) => ImportError::AllBroken {
                    count: self.broken,
                    line: first.line,
                    reason: first.reason.clone(),
                },
                None => ImportError::NothingRecognised { looks_like: self.looks_like(text) },
            });
        }
        if let Some((line, keys)) = self.strangers {
            let count = self.strangers_count;
            let reason = format!(
                "is the first of {count} JSON objects without the figures of a benchmark; its keys \
                 are {keys}"
            );
            self.imported.push(Imported::Broken(BrokenRecord { line, reason }));
        }
        if let Some(line) = self.unlisted {
            let count = self.broken - BROKEN_MAX;
            let reason = format!("is the first of {count} more records that cannot be read");
            self.imported.push(Imported::Broken(BrokenRecord { line, reason }));
        }
        self.imported.sort_by_key(Imported::line);
        Ok(self.imported)
    }

    fn looks_like(&self, text: &str) -> String {
        let Some(first) = text.lines().map(str::trim).find(|line| !line.is_empty()) else {
            return "the file is empty".to_owned();
        };
        if let Some((line, keys)) = &self.strangers {
            let count = self.strangers_count;
            return format!(
                "the file has {count} JSON object(s), the first, in line {line}, with the keys {keys}"
            );
        }
        if is_binary(text) {
            return "the file is binary, not text".to_owned();
        }
        if text.lines().any(|line| line.trim() == "[[row]]") {
            return "the file looks like a table of published figures (TOML with `[[row]]`), which \
                    has a reader of its own"
                .to_owned();
        }
        let count = text.lines().count();
        format!("the file has {count} line(s) and begins with “{}”", field::shown(first))
    }
}

/// Whether a tenth of the beginning is no letter of any text.
fn is_binary(text: &str) -> bool {
    let strange =
        |c: &char| *c == char::REPLACEMENT_CHARACTER || (c.is_control() && !c.is_whitespace());
    let beginning = || text.chars().take(SEEN_CHARS);
    beginning().count() < 10 * beginning().filter(strange).count()
}

/// One place: the record's, which is told with the reason, and from there where reading stopped.
fn not_json(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let what = message.split(" at line ").next().unwrap_or(&message);
    match error.line() {
        _ if error.is_eof() => format!("is not JSON: {what}"),
        0 | 1 => format!("is not JSON: {what} (column {})", error.column()),
        line => format!("is not JSON: {what} ({} below it)", lines_counted(line - 1)),
    }
}

fn lines_counted(lines: usize) -> String {
    format!("{lines} line{}", if lines == 1 { "" } else { "s" })
}
