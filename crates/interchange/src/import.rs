//! From a file of another tool to the results in it.
//!
//! The tool is recognised by what is in the file. Its JSON objects and lines are read one after another,
//! within bounds; of each, known keys are read into a result, and the rest is listed.

mod configuration;
mod http_tools;
mod tables;
mod tools;

pub use tables::{PageFacts, page_facts};

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use inferometer_analysis::tool_result::{
    Form, Mark, ResultLatency, ResultSource, Tool, ToolResult,
};
use inferometer_analysis::{Probability, Sample};
use inferometer_model::import::ImportReading;
use inferometer_model::whole::to_u64;
use serde::{Deserialize, Serialize};

use crate::json::Json;
use crate::{aiperf, llm_d, vllm};

const RESULTS_MAX: usize = 100_000;
/// The key in a result's metadata of the requests that were in flight when the run ended.
pub(crate) const INCOMPLETE: &str = "incomplete_requests";
const SCHEMA: &str = "inferometer.import/1";

/// All that was found in one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Import {
    pub schema: String,
    /// Who wrote the file, by its shape.
    pub tool: Tool,
    /// In the file's order: results, and what could not be read between them.
    pub records: Vec<Imported>,
}

impl Import {
    /// The results in the file's order: the N-th of them is what `ID/N` names.
    pub fn results(&self) -> impl Iterator<Item = &ToolResult> {
        self.records.iter().filter_map(Imported::result)
    }

    pub fn broken(&self) -> impl Iterator<Item = &BrokenRecord> {
        self.records.iter().filter_map(Imported::broken)
    }
}

/// The results in a file, whichever tool wrote it; `name` is the file's, for the results that have
/// no name of their own.
pub fn read_file(name: &str, bytes: &[u8], reading: &ImportReading) -> Result<Import, ImportError> {
    let text = text_of(bytes)?;
    let (tool, mut records) = read_text(&text)?;
    for result in records.iter_mut().filter_map(Imported::result_mut) {
        if result.source.name.is_empty() {
            name.clone_into(&mut result.source.name);
        }
    }
    // The headings of tables tell their results apart.
    if tool != Tool::Table || !reading.names.is_empty() {
        configuration::assign(&text, &mut records, reading);
    }
    Ok(Import { schema: SCHEMA.to_owned(), tool, records })
}

/// Which tool wrote the file, by what is in it and never by its name, and the records in it.
fn read_text(text: &str) -> Result<(Tool, Vec<Imported>), ImportError> {
    let begins = |key: &str| key.strip_prefix('\n').is_some_and(|key| text.starts_with(key));
    let fits = |keys: &[&str]| keys.iter().all(|key| begins(key) || text.contains(key));
    let known = FORMATS.iter().find(|(keys, ..)| fits(keys));
    // Anything else may hold results of `vllm bench serve`.
    let (tool, read) =
        known.map_or((Tool::Vllm, vllm::read::read as Reader), |(_, tool, read)| (*tool, *read));
    let found = read(&vllm::read::quote_bare_words(text));
    match found {
        Err(ImportError::NothingRecognised { .. }) if known.is_none() => {
            let rows = tables::read(text);
            if rows.is_empty() { found.map(|it| (tool, it)) } else { Ok((Tool::Table, rows)) }
        }
        found => Ok((tool, found?)),
    }
}

type Reader = fn(&str) -> Result<Vec<Imported>, ImportError>;

/// All of these keys stand in a file of the tool; the first line that fits is meant. A quoted key
/// cannot be part of a text inside of JSON, where quotes have backslashes. A key behind a line break
/// may begin any line, the first too.
const FORMATS: [(&[&str], Tool, Reader); 18] = [
    (&["\"benchmarks\"", "\"request_totals\""], Tool::GuideLlm, tools::read_guidellm),
    (&["\"benchmarks\"", "\"generative_benchmark\""], Tool::GuideLlm, tools::read_guidellm),
    (&["\"aiperf_version\""], Tool::AiPerf, aiperf::read),
    (&["\"input_config\"", "\"request_throughput\"", "\"unit\""], Tool::AiPerf, aiperf::read),
    (&["\"request_start_ns\"", "\"metrics\""], Tool::AiPerf, aiperf::read_requests),
    (&["\"aggregated_metrics\""], Tool::GenaiBench, tools::read_genai_bench),
    (&["\"traffic_scenario\"", "\"server_engine\""], Tool::GenaiBench, tools::refuse_genai_bench),
    (&["\"scenario\"", "\"results\"", "\"request_performance\""], Tool::LlmD, llm_d::read),
    (&["\nscenario:", "\nresults:", "request_performance:"], Tool::LlmD, llm_d::read),
    (&["\nscenario:", "\nmetrics:", "version: "], Tool::LlmD, llm_d::read),
    (&["\"mean_e2e_latency_ms\"", "\"output_throughput\""], Tool::Sglang, tools::read_sglang),
    (&["\"total_output_tokens_retokenized\""], Tool::Sglang, tools::read_sglang),
    (&["\"requestsPerSec\"", "\"latencyPercentiles\""], Tool::Oha, http_tools::read_oha),
    (&["\"metrics\"", "\"http_req_duration\""], Tool::K6, http_tools::read_k6),
    (&["\"successes\"", "\"load_summary\""], Tool::InferencePerf, http_tools::read_inference_perf),
    (&["\"tput_per_gpu\"", "\"conc\"", "\"hw\""], Tool::InferenceX, http_tools::read_inference_x),
    (&["\"results_ttft_s_mean\""], Tool::LlmPerf, http_tools::read_llmperf),
    (&["\nMLPerf Results Summary"], Tool::MlPerf, http_tools::read_mlperf),
];

/// What files that are no text begin with, and what to do about it.
const NOT_TEXT: [(&[u8], &str, &str); 6] = [
    (b"\x1f\x8b", "compressed with gzip", "unpack it with `gunzip` first"),
    (b"\x28\xb5\x2f\xfd", "compressed with Zstandard", "unpack it with `unzstd` first"),
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet", "give the JSON file that belongs to it"),
    (b"PAR1", "Parquet", "give the JSON file that belongs to it"),
    (b"\xff\xfe", "UTF-16", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16", "save it as UTF-8"),
];

/// Damaged letters are replaced: a published page may have some, and its figures are still good.
fn text_of(bytes: &[u8]) -> Result<Cow<'_, str>, ImportError> {
    if let Some((_, what, remedy)) = NOT_TEXT.iter().find(|(first, ..)| bytes.starts_with(first)) {
        return Err(ImportError::NotText { what, remedy });
    }
    Ok(match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_start_matches('\u{feff}')),
        Cow::Owned(text) => Cow::Owned(text),
    })
}

/// The source of a record that begins in this line of a document.
pub(crate) fn document_source(tool: Tool, line: u32) -> ResultSource {
    ResultSource { tool, form: Form::Document, line: Some(line), ..ResultSource::default() }
}

/// All results of `vllm bench serve` in a text.
///
/// Records that cannot be read stand between those that can, with their reasons.
pub fn read_results(text: &str) -> Result<Vec<Imported>, ImportError> {
    let mut records = vllm::read::read(&vllm::read::quote_bare_words(text))?;
    configuration::assign(text, &mut records, &ImportReading::default());
    Ok(records)
}

/// One record of a file, in the file's order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Imported {
    Result(Box<ToolResult>),
    Broken(BrokenRecord),
}

impl Imported {
    /// Where the record begins.
    pub fn line(&self) -> u32 {
        match self {
            Self::Result(result) => result.source.line.unwrap_or(0),
            Self::Broken(broken) => broken.line,
        }
    }

    pub fn result(&self) -> Option<&ToolResult> {
        if let Self::Result(result) = self { Some(result) } else { None }
    }

    fn result_mut(&mut self) -> Option<&mut ToolResult> {
        if let Self::Result(result) = self { Some(result) } else { None }
    }

    pub fn broken(&self) -> Option<&BrokenRecord> {
        if let Self::Broken(broken) = self { Some(broken) } else { None }
    }
}

/// Something that began like a result and could not be read as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenRecord {
    pub line: u32,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    #[error(
        "no result found: looked for files of vLLM (JSON with keys such as `request_throughput` and \
         `mean_ttft_ms`, blocks under “Serving Benchmark Result”), SGLang, GuideLLM, AIPerf, llm-d, \
         genai-bench, inference-perf, InferenceX, LLMPerf, MLPerf, oha and k6, and tables of results; {looks_like}"
    )]
    NothingRecognised { looks_like: String },
    #[error("none of the {count} results can be read; the first, in line {line}, {reason}")]
    AllBroken { count: usize, line: u32, reason: String },
    #[error("the file is not text but {what}; {remedy}")]
    NotText { what: &'static str, remedy: &'static str },
    #[error("there are more than {RESULTS_MAX} results; split the file")]
    TooMany,
}

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
        note(result, format!("{place}{name} {reason}"));
    }
}

/// The paths of the fields of a result, by tool.
static PATHS: LazyLock<BTreeMap<String, BTreeMap<String, Vec<String>>>> = LazyLock::new(|| {
    toml::from_str(include_str!("import/paths.toml")).expect("tests read the embedded table")
});

/// Longer texts are answers and prompts, not names.
pub(crate) const NAME_BYTES_MAX: usize = 1024;

/// One record of a document while its values are read into a result.
#[derive(Debug)]
pub(crate) struct Mapping<'a> {
    node: &'a Json,
    /// Where the record is in its document; empty when it is the document.
    place: String,
    /// Paths that were looked up, whether or not they are there.
    asked: BTreeSet<String>,
    notes: Vec<String>,
}

impl<'a> Mapping<'a> {
    pub(crate) fn new(node: &'a Json, place: String) -> Self {
        Self { node, place, asked: BTreeSet::new(), notes: Vec::new() }
    }

    pub(crate) fn find(&mut self, path: &str) -> Option<&'a Json> {
        self.asked.insert(path.to_owned());
        self.node.at(path)
    }

    /// A result of the tool with what stands at its plain paths.
    pub(crate) fn result(&mut self, tool: Tool, line: u32) -> ToolResult {
        let source = document_source(tool, line);
        let mut result = ToolResult { source, ..ToolResult::default() };
        for (key, paths) in PATHS.get(tool.key()).into_iter().flatten() {
            let mut paths = paths.iter().map(String::as_str);
            match (key.as_str(), vllm::field(key)) {
                ("known", _) => self.asked.extend(paths.map(str::to_owned)),
                ("name", _) => {
                    result.source.name = paths.find_map(|it| self.name(it)).unwrap_or_default();
                }
                (_, None) => result.source.version = paths.find_map(|it| self.name(it)),
                (_, Some(field)) => drop(paths.find_map(|path| {
                    let set = (field.set)(&mut result, self.find(path)?);
                    set.map_err(|reason| self.note(path, &reason)).ok()
                })),
            }
        }
        result
    }

    /// Known to say nothing that a result could hold and a reader could miss.
    pub(crate) fn pass_over(&mut self, paths: &[&str]) {
        self.asked.extend(paths.iter().map(|path| (*path).to_owned()));
    }

    /// A number that is finite and not negative.
    pub(crate) fn figure(&mut self, path: &str) -> Option<f64> {
        self.read(path, figure)
    }

    /// A figure above zero.
    pub(crate) fn positive(&mut self, path: &str) -> Option<f64> {
        self.figure(path).filter(|figure| *figure > 0.0)
    }

    pub(crate) fn count(&mut self, path: &str) -> Option<u64> {
        self.read(path, count)
    }

    pub(crate) fn small_count(&mut self, path: &str) -> Option<u32> {
        self.read(path, small_count)
    }

    pub(crate) fn name(&mut self, path: &str) -> Option<String> {
        self.read(path, name)
    }

    fn read<T>(&mut self, path: &str, read: fn(&Json) -> Result<T, String>) -> Option<T> {
        let found = self.find(path)?;
        read(found).map_err(|reason| self.note(path, &reason)).ok()
    }

    pub(crate) fn is_set(&mut self, path: &str) -> bool {
        self.find(path) == Some(&Json::Flag(true))
    }

    /// What `read` finds at the first of the paths that has a value.
    pub(crate) fn first<T>(
        &mut self,
        paths: &[&str],
        read: fn(&mut Self, &str) -> Option<T>,
    ) -> Option<T> {
        paths.iter().find_map(|path| read(self, path))
    }

    /// Keeps a text as a note on the result.
    pub(crate) fn describe(&mut self, result: &mut ToolResult, path: &str, key: &str) {
        result.metadata.extend(self.name(path).map(|text| (key.to_owned(), text)));
    }

    /// What a metric's values must be multiplied by to be milliseconds, by the unit that stands beside
    /// them; `None` where the metric is missing.
    pub(crate) fn factor_to_ms(&mut self, path: &str, key: &str) -> Option<f64> {
        self.find(path)?;
        let path = format!("{path}.{key}");
        let unit = self.name(&path)?;
        let to_ms = unit_in_ms(&unit);
        if to_ms.is_none() {
            self.note(&path, "is not a unit of time that is known here");
        }
        to_ms
    }

    /// Notes why the value at a path is not in the result.
    pub(crate) fn note(&mut self, path: &str, reason: &str) {
        // One more than is listed shows that there are more.
        if self.notes.len() <= LISTED_MAX {
            self.notes.push(format!("{} {reason}", self.placed(path)));
        }
    }

    fn placed(&self, path: &str) -> String {
        let place = if self.place.is_empty() { String::new() } else { format!("{}.", self.place) };
        format!("{place}{}", shown(path))
    }

    /// A latency's statistics, or nothing where there were no values. `to_ms` turns its values into
    /// milliseconds, and `rank` returns the rank that a key names, as `99.9`.
    pub(crate) fn latency(
        &mut self,
        path: &str,
        to_ms: f64,
        rank: fn(&str) -> Option<String>,
        mut latency: ResultLatency,
    ) -> Option<ResultLatency> {
        let node = self.find(path)?;
        let ranks = node.get("percentiles").map_or(&[][..], Json::entries);
        let mut is_known = false;
        for (key, value) in node.entries().iter().chain(ranks) {
            let (at, rank) = (format!("{path}.{key}"), rank(key));
            let is_statistic = rank.is_some() || STATISTICS.contains(&key.as_str());
            if !is_statistic || *value == Json::Null {
                continue;
            }
            let Ok(ms) =
                figure(value).map(|figure| figure * to_ms).map_err(|it| self.note(&at, &it))
            else {
                continue;
            };
            match (key.as_str(), rank) {
                ("count", _) => {
                    latency.n = count(value).ok();
                    continue;
                }
                (_, Some(_)) if LISTED_MAX <= latency.percentiles_ms.len() => {
                    let reason = format!("is beyond the {LISTED_MAX} percentiles that are kept");
                    self.note(&at, &reason);
                    continue;
                }
                (_, Some(rank)) => latency.set(&rank, ms),
                ("avg", _) => latency.set("mean", ms),
                (spread, _) if spread.starts_with("std") => latency.set("std", ms),
                (statistic, _) => latency.set(statistic, ms),
            }
            is_known = true;
        }
        if !is_known {
            self.note(path, "has no statistics");
        }
        (is_known && latency.n != Some(0)).then_some(latency)
    }

    /// The result with the list of what was not asked for.
    pub(crate) fn finish(mut self, mut result: ToolResult) -> ToolResult {
        let mut unread = Vec::new();
        self.unread(self.node, "", &mut unread);
        for what in self.notes.drain(..).chain(unread) {
            note(&mut result, what);
        }
        result
    }

    /// Each branch without a path that was asked for, at its highest place.
    fn unread(&self, node: &Json, path: &str, listed: &mut Vec<String>) {
        let items = node.items().iter().enumerate().map(|(index, item)| (index.to_string(), item));
        let entries = node.entries().iter().map(|(key, value)| (key.clone(), value));
        for (key, value) in entries.chain(items) {
            let path = if path.is_empty() { key } else { format!("{path}.{key}") };
            if listed.len() > LISTED_MAX || *value == Json::Null || self.asked.contains(&path) {
                continue;
            }
            let below = format!("{path}.");
            let first = self.asked.range(below.clone()..).next();
            if first.is_some_and(|first| first.starts_with(&below)) {
                self.unread(value, &path, listed);
            } else {
                listed.push(self.placed(&path));
            }
        }
    }
}

const STATISTICS: [&str; 8] = ["mean", "avg", "std", "std_dev", "stddev", "min", "max", "count"];

/// Milliseconds of a unit of time.
pub(crate) fn unit_in_ms(unit: &str) -> Option<f64> {
    match unit.strip_suffix("/token").unwrap_or(unit) {
        "ms" => Some(1.0),
        "s" | "sec" | "seconds" => Some(1e3),
        "us" | "µs" => Some(1e-3),
        "ns" => Some(1e-6),
        _ => None,
    }
}

pub(crate) fn figure_at(json: &Json, path: &str) -> Option<f64> {
    figure(json.at(path)?).ok()
}

pub(crate) fn count_at(json: &Json, path: &str) -> Option<u64> {
    count(json.at(path)?).ok()
}

/// A number that is finite and not negative.
pub(crate) fn figure(node: &Json) -> Result<f64, String> {
    match (node.number(), node.text()) {
        (Some(number), _) if number.is_finite() && number >= 0.0 => Ok(number),
        (Some(number), _) => Err(format!("is {number}, which no figure can be")),
        (None, Some(text)) => Err(format!("is the text “{}”, not a number", shown(text))),
        (None, None) => Err("is not a number".to_owned()),
    }
}

pub(crate) fn count(node: &Json) -> Result<u64, String> {
    let number = figure(node)?;
    if number.fract() != 0.0 || number > COUNT_MAX {
        return Err(format!("is {number}, not a count"));
    }
    Ok(to_u64(number))
}

pub(crate) fn small_count(node: &Json) -> Result<u32, String> {
    u32::try_from(count(node)?).map_err(|_| "is too large".to_owned())
}

pub(crate) fn name(node: &Json) -> Result<String, String> {
    match node.text() {
        Some(text) if text.len() <= NAME_BYTES_MAX => Ok(text.to_owned()),
        Some(text) => Err(format!("is a text of {} bytes, not a name", text.len())),
        None => Err("is not a text".to_owned()),
    }
}

/// `p99.9` as tools mostly write it.
pub(crate) fn plain_rank(key: &str) -> Option<String> {
    let rank = key.strip_prefix('p')?;
    let written = rank.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let known = rank.parse::<f64>().is_ok_and(|rank| (0.0..=100.0).contains(&rank));
    (written && known).then(|| rank.to_owned())
}

/// Above this a float no longer holds every whole number.
const COUNT_MAX: f64 = 9_007_199_254_740_992.0;
/// Limit for the list of what could not be mapped, for a result's metadata, and for a latency's
/// percentiles.
pub(crate) const LISTED_MAX: usize = 256;
const SHOWN_CHARS: usize = 60;

/// At most a line's worth of a foreign text, without control characters.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS).collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

/// Adds to what could not be mapped, up to a bound.
pub(crate) fn note(result: &mut ToolResult, what: String) {
    match result.unmapped.len() {
        len if len < LISTED_MAX => result.unmapped.push(what),
        LISTED_MAX => result.unmapped.push("and more, not listed".to_owned()),
        _ => {}
    }
}

const RANKS: [(f64, &str); 6] =
    [(0.5, "50"), (0.75, "75"), (0.9, "90"), (0.95, "95"), (0.99, "99"), (0.999, "99.9")];

/// With percentiles between neighbouring values, as the tools that write such files have them.
pub(crate) fn sample_latency(values: Vec<f64>, empty: ResultLatency) -> Option<ResultLatency> {
    let sample = Sample::new(values)?;
    let percentiles = RANKS.iter().filter_map(|(share, rank)| {
        Some(((*rank).to_owned(), sample.quantile(Probability::new(*share)?)))
    });
    Some(empty.with_sample(&sample, percentiles))
}

/// One sentence for each thing that a reader must know before a tool's figures are compared with others.
pub fn meaning(tool: Tool) -> Vec<&'static str> {
    let mut tools = include_str!("import/meaning.md").split("## ");
    let own = tools.find_map(|it| it.strip_prefix(tool.key())?.strip_prefix('\n'));
    own.into_iter().flat_map(str::lines).filter_map(|line| line.strip_prefix("- ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_of_a_tool_and_a_field() {
        for (tool, fields) in PATHS.iter() {
            assert!(Tool::ALL.iter().any(|known| known.key() == tool), "{tool}");
            for (key, paths) in fields {
                let is_known = ["known", "name", "version"].contains(&key.as_str());
                assert!(is_known || crate::vllm::field(key).is_some(), "{tool}: {key}");
                assert!(!paths.is_empty(), "{tool}: {key}");
            }
        }
    }
}
