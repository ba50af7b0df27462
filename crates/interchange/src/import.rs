//! From a file of another tool to the results in it.

mod configuration;
pub(crate) mod mapping;
pub(crate) mod records;
mod tools;

use std::borrow::Cow;

use inferometer_analysis::tool_result::{Form, ResultSource, Tool, ToolResult};
use inferometer_model::import::ImportReading;
use serde::{Deserialize, Serialize};

use crate::vllm::read as vllm;
use crate::{aiperf, llm_d};
pub use mapping::meaning;

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
    configuration::assign(&text, &mut records, reading);
    Ok(Import { schema: SCHEMA.to_owned(), tool, records })
}

/// Which tool wrote the file, by what is in it and never by its name, and the records in it.
fn read_text(text: &str) -> Result<(Tool, Vec<Imported>), ImportError> {
    let begins = |key: &str| key.strip_prefix('\n').is_some_and(|key| text.starts_with(key));
    let fits = |keys: &[&str]| keys.iter().all(|key| begins(key) || text.contains(key));
    let known = FORMATS.iter().find(|(keys, ..)| fits(keys));
    // Anything else may hold results of `vllm bench serve`.
    let (tool, read) =
        known.map_or((Tool::Vllm, vllm::read as Reader), |(_, tool, read)| (*tool, *read));
    Ok((tool, read(&vllm::quote_bare_words(text))?))
}

type Reader = fn(&str) -> Result<Vec<Imported>, ImportError>;

/// All of these keys stand in a file of the tool; the first line that fits is meant. A quoted key
/// cannot be part of a text inside of JSON, where quotes have backslashes. A key behind a line break
/// may begin any line, the first too.
const FORMATS: [(&[&str], Tool, Reader); 12] = [
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
    let mut records = vllm::read(&vllm::quote_bare_words(text))?;
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
         `mean_ttft_ms`, blocks under “Serving Benchmark Result”), SGLang, GuideLLM, AIPerf, llm-d \
         and genai-bench; {looks_like}"
    )]
    NothingRecognised { looks_like: String },
    #[error("none of the {count} results can be read; the first, in line {line}, {reason}")]
    AllBroken { count: usize, line: u32, reason: String },
    #[error("the file is no text but {what}; {remedy}")]
    NotText { what: &'static str, remedy: &'static str },
    #[error("there are more than {RESULTS_MAX} results; split the file")]
    TooMany,
}
