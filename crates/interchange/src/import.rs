//! From a file of another tool to the sheets in it.

mod aiperf;
mod configuration;
mod detect;
mod genai_bench;
mod guidellm;
pub(crate) mod llm_d;
mod mapping;
mod records;
mod sglang;
pub(crate) mod vllm;

use inferometer_analysis::tool_result::{Tool, ToolResult};
use inferometer_model::import::ImportReading;
use serde::{Deserialize, Serialize};

use self::detect::Shape;
pub use mapping::meaning;

const RESULTS_MAX: usize = 100_000;
/// What a sheet's metadata call the requests that were on their way when the run ended.
const INCOMPLETE: &str = "incomplete_requests";
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
    pub fn sheets(&self) -> impl Iterator<Item = &ToolResult> {
        self.records.iter().filter_map(Imported::result)
    }

    pub fn broken(&self) -> impl Iterator<Item = &BrokenRecord> {
        self.records.iter().filter_map(Imported::broken)
    }
}

/// The results in a file, whichever tool wrote it; `name` is the file's, for the results that have
/// no name of their own.
pub fn read_file(name: &str, bytes: &[u8], reading: &ImportReading) -> Result<Import, ImportError> {
    let text = detect::text(bytes)?;
    let (tool, mut records) = read_text(&text)?;
    for record in &mut records {
        if let Imported::Result(sheet) = record
            && sheet.source.name.is_empty()
        {
            name.clone_into(&mut sheet.source.name);
        }
    }
    configuration::assign(&text, &mut records, reading);
    Ok(Import { schema: SCHEMA.to_owned(), tool, records })
}

fn read_text(text: &str) -> Result<(Tool, Vec<Imported>), ImportError> {
    let shape = detect::shape(text);
    let text = vllm::quote_bare_words(text);
    match shape {
        Shape::Vllm => Ok((Tool::Vllm, vllm::read(&text)?)),
        Shape::SglangLines => Ok((Tool::Sglang, sglang::read(&text)?)),
        Shape::GuideLlm => Ok((Tool::GuideLlm, guidellm::read(&text)?)),
        Shape::AiPerf => Ok((Tool::AiPerf, aiperf::read(&text)?)),
        Shape::AiPerfRequests => Ok((Tool::AiPerf, aiperf::read_requests(&text)?)),
        Shape::LlmD => Ok((Tool::LlmD, llm_d::read(&text)?)),
        Shape::GenaiBench => Ok((Tool::GenaiBench, genai_bench::read(&text)?)),
        Shape::GenaiBenchExperiment => {
            let looks_like = "the file is genai-bench's description of an experiment; give the \
                              result files beside it"
                .to_owned();
            Err(ImportError::NothingRecognised { looks_like })
        }
    }
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
        match self {
            Self::Result(result) => Some(result),
            Self::Broken(_) => None,
        }
    }

    fn result_mut(&mut self) -> Option<&mut ToolResult> {
        match self {
            Self::Result(result) => Some(result),
            Self::Broken(_) => None,
        }
    }

    pub fn broken(&self) -> Option<&BrokenRecord> {
        match self {
            Self::Result(_) => None,
            Self::Broken(broken) => Some(broken),
        }
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
