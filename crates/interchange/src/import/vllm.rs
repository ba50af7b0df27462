//! Results of `vllm bench serve` in a text, whatever is between them.

mod above;
mod block;
mod field;
mod json;

pub(super) use block::quote_bare_words;
pub(super) use json::{BENCHMARK_NAME, RUN_NUMBER};

use inferometer_analysis::Verdict;
use inferometer_analysis::tool_result::{Form, ResultSource, Tool, ToolResult};

use super::mapping::shown;
use super::records::{FOLLOWED_TIMES, Records, not_json};
use super::{ImportError, Imported};
use crate::export::names_a_tool;
use block::{Blocks, Ended, Line, Lines};
use json::{Anomalies, Object};

/// With `--save-detailed` a line holds every gap between tokens of a run.
const LINE_BYTES_MAX: usize = 128 << 20;
/// Enough to see whether a file is a text.
const SEEN_CHARS: usize = 4096;

/// A result of this tool of which nothing is known yet.
fn vllm_sheet(form: Form, line: u32) -> ToolResult {
    let source =
        ResultSource { tool: Tool::Vllm, form, line: Some(line), ..ResultSource::default() };
    ToolResult { source, ..ToolResult::default() }
}

/// The results of `vllm bench serve` in a text: JSON objects, printed blocks, or both. Bare words
/// must be in quotes already.
///
/// Records that cannot be read stand between those that can, with their reasons.
pub(crate) fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let mut lines = Lines::new(text);
    let follow_bytes = text.len().saturating_mul(FOLLOWED_TIMES);
    let mut reader = Reader { follow_bytes, ..Reader::default() };
    while !reader.records.are_too_many()
        && let Some(line) = lines.next()
    {
        if let Some(end) = reader.read(text, line) {
            lines.jump(line, end);
        }
    }
    let ended = reader.blocks.end_early(lines.number());
    reader.take_block(ended);
    reader.finish(text)
}

#[derive(Debug, Default)]
struct Reader {
    records: Records,
    strangers: UnknownLines,
    blocks: Blocks,
    oddities: Anomalies,
    /// How many bytes may still be read in following broken objects over lines; without it a text
    /// could make every line be followed to the end.
    follow_bytes: usize,
}

/// JSON objects that are no results: the first one's line and keys, and how many.
#[derive(Debug, Default)]
struct UnknownLines {
    first: Option<(u32, String)>,
    count: usize,
}

impl Reader {
    /// Where to go on, if not behind this line.
    fn read(&mut self, text: &str, line: Line<'_>) -> Option<usize> {
        if line.text.len() > LINE_BYTES_MAX {
            let reason = format!(
                "is a line of {} bytes, and {LINE_BYTES_MAX} is the most; save the result without \
                 --save-detailed",
                line.text.len()
            );
            self.records.break_off(line.number, reason);
            return None;
        }
        let inner = line.text.trim_start_matches([' ', '\t', '[', ',']);
        let start = line.start + (line.text.len() - inner.len());
        if !json::opens(&text[start..]) {
            self.oddities.read(line);
            let ended = self.blocks.read(line);
            self.take_block(ended);
            return None;
        }
        let ended = self.blocks.end_early(line.number);
        self.take_block(ended);
        match self.object(&text[start..], inner) {
            Ok((object, length)) => {
                self.take_object(object, line.number);
                Some(start + length)
            }
            Err(error) => {
                self.records.break_off(line.number, not_json(&error));
                None
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

    fn take_object(&mut self, object: Object, line: u32) {
        if object.is_result() {
            let mut result = object.into_result(line);
            self.blocks.above().place(&mut result);
            self.records.push(result);
            return;
        }
        self.strangers.count += 1;
        self.strangers.first.get_or_insert_with(|| (line, object.keys_shown()));
    }

    fn take_block(&mut self, ended: Option<Ended>) {
        match ended {
            Some(Ok(result)) => self.records.push(result),
            Some(Err(line)) => {
                self.records.break_off(line, "is a block without a figure".to_owned());
            }
            None => {}
        }
    }

    fn finish(self, text: &str) -> Result<Vec<Imported>, ImportError> {
        let Self { mut records, strangers, oddities, .. } = self;
        for (line, reason) in oddities.broken() {
            records.break_off(line, reason);
        }
        if let Some((line, keys)) = &strangers.first
            && records.has_results()
        {
            let count = strangers.count;
            let reason = format!(
                "is the first of {count} JSON objects without the figures of a benchmark; its keys \
                 are {keys}"
            );
            records.remark(*line, reason);
        }
        records.finish_or(|| looks_like(text, &strangers))
    }
}

fn looks_like(text: &str, strangers: &UnknownLines) -> String {
    let Some(first) = text.lines().map(str::trim).find(|line| !line.is_empty()) else {
        return "the file is empty".to_owned();
    };
    if let Some((line, keys)) = &strangers.first {
        let count = strangers.count;
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
    format!("the file has {count} line(s) and begins with “{}”", shown(first))
}

/// Whether a tenth of the beginning is no letter of any text.
fn is_binary(text: &str) -> bool {
    let strange =
        |c: &char| *c == char::REPLACEMENT_CHARACTER || (c.is_control() && !c.is_whitespace());
    let beginning = || text.chars().take(SEEN_CHARS);
    beginning().count() < 10 * beginning().filter(strange).count()
}

pub(crate) const RUN: &str = "inferometer_run";
pub(crate) const VERSION: &str = "inferometer_version";
pub(crate) const VERDICT: &str = "inferometer_verdict";
/// Who measured what that tool did not.
pub(crate) const MEASURED_BY: &str = "measured_by";
pub(crate) const SIMULATED: &str = "simulated";

/// Whether the key is one of ours and its value was taken.
pub(crate) fn take(result: &mut ToolResult, key: &str, value: &str) -> bool {
    match key {
        RUN => value.clone_into(&mut result.source.name),
        VERSION => result.source.version = Some(format!("inferometer {value}")),
        VERDICT => match verdict(value) {
            None => return false,
            verdict => result.verdict = verdict,
        },
        // People may write it into their metadata with another meaning.
        MEASURED_BY if names_a_tool(value) => result.source.version = Some(value.to_owned()),
        SIMULATED if value == "true" => result.source.simulated = true,
        _ => return false,
    }
    true
}

pub(crate) fn verdict(key: &str) -> Option<Verdict> {
    let all = [Verdict::Valid, Verdict::Degraded, Verdict::Invalid];
    all.into_iter().find(|verdict| verdict.key() == key)
}
