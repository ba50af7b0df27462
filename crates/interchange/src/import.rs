//! From a file of another tool to the sheets in it.

mod vllm;

use inferometer_analysis::sheet::Sheet;

const RESULTS_MAX: usize = 100_000;

/// All results in a text, whichever tool wrote it.
///
/// Records that cannot be read stand between those that can, with their reasons.
pub fn read_results(text: &str) -> Result<Vec<Imported>, ImportError> {
    vllm::read(text)
}

/// One record of a file, in the file's order.
#[derive(Clone, Debug, PartialEq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    #[error("there are more than {RESULTS_MAX} results; split the file")]
    TooMany,
}
