//! From a file of another tool to the sheets in it.

mod detect;
mod vllm;

use inferometer_analysis::sheet::{Sheet, Tool};
use inferometer_model::import::ImportReading;
use serde::{Deserialize, Serialize};

const RESULTS_MAX: usize = 100_000;
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
    pub fn sheets(&self) -> impl Iterator<Item = &Sheet> {
        self.records.iter().filter_map(Imported::result)
    }

    pub fn broken(&self) -> impl Iterator<Item = &BrokenRecord> {
        self.records.iter().filter_map(Imported::broken)
    }
}

/// The results in a file, whichever tool wrote it; `name` is the file's, for the results that have
/// no name of their own.
pub fn read_file(
    name: &str,
    bytes: &[u8],
    _reading: &ImportReading,
) -> Result<Import, ImportError> {
    let text = detect::text(bytes)?;
    let (tool, mut records) = (Tool::Vllm, vllm::read(&text)?);
    for record in &mut records {
        if let Imported::Result(sheet) = record
            && sheet.source.name.is_empty()
        {
            name.clone_into(&mut sheet.source.name);
        }
    }
    Ok(Import { schema: SCHEMA.to_owned(), tool, records })
}

/// All results in a text, whichever tool wrote it.
///
/// Records that cannot be read stand between those that can, with their reasons.
pub fn read_results(text: &str) -> Result<Vec<Imported>, ImportError> {
    vllm::read(text)
}

/// One record of a file, in the file's order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Imported {
    Result(Box<Sheet>),
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

    pub fn result(&self) -> Option<&Sheet> {
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
        "no result found: looked for JSON objects with keys such as `request_throughput` and \
         `mean_ttft_ms`, and for blocks under “Serving Benchmark Result”; {looks_like}"
    )]
    NothingRecognised { looks_like: String },
    #[error("none of the {count} results can be read; the first, in line {line}, {reason}")]
    AllBroken { count: usize, line: u32, reason: String },
    #[error("the file is no text but {what}; {remedy}")]
    NotText { what: &'static str, remedy: &'static str },
    #[error("there are more than {RESULTS_MAX} results; split the file")]
    TooMany,
}
