//! Prompts of other people: data sets in the forms that they are passed around in.
//!
//! To add a kind: a reader beside these, its name in `DatasetKind` and in [`kind_name`], its sign
//! in [`kind_of`], and broken files of it in the tests.

mod collect;
mod json;
mod pieces;

use std::path::{Path, PathBuf};

use inferometer_model::Prompt;
use inferometer_model::observations::FileFacts;
use inferometer_model::spec::{DatasetKind, DatasetSpec};
use serde_json::{Map, Value};

use crate::counter::Counter;
use crate::data_file::{DataFile, DataFileError, name_of};
use collect::{Collected, Collector, Limits};

pub(crate) use collect::Shuffle;

/// Prompts with their lengths, and where they came from.
#[derive(Debug)]
pub(crate) struct Dataset {
    pub(crate) items: Vec<Item>,
    pub(crate) facts: FileFacts,
    /// What a reader of the result should know.
    pub(crate) notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    pub(crate) prompt: Prompt,
    pub(crate) input_tokens: u32,
    /// What the data states about the answer, if anything.
    pub(crate) output_tokens: Option<u32>,
    /// Fields of its body alone.
    pub(crate) fields: Map<String, Value>,
}

#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    #[error(transparent)]
    File(#[from] DataFileError),
    #[error(
        "cannot tell what kind of data set {0} is; name the kind: sharegpt, jsonl, csv or text \
         for a file, directory for a folder of texts"
    )]
    UnknownKind(PathBuf),
    #[error("{0} is a folder, and is read as one: its kind is directory")]
    IsFolder(PathBuf),
    #[error("{0} is not a folder; the kind directory is a folder of .txt and .md files")]
    NotAFolder(PathBuf),
    #[error("{0} has no .txt or .md file")]
    NoTexts(PathBuf),
}

/// Reads it whole: every prompt is counted before anything is sent.
pub(crate) fn read(spec: &DatasetSpec, counter: &dyn Counter) -> Result<Dataset, DatasetError> {
    read_within(spec, counter, BOUNDS)
}

/// What fits into memory.
#[derive(Clone, Copy, Debug)]
struct FileBounds {
    bytes: u64,
    items: u64,
}

const BOUNDS: FileBounds = FileBounds { bytes: 8 << 30, items: 10_000_000 };

fn read_within(
    spec: &DatasetSpec,
    counter: &dyn Counter,
    bounds: FileBounds,
) -> Result<Dataset, DatasetError> {
    let path = spec.path.as_path();
    if path.is_dir() {
        return match spec.kind {
            None | Some(DatasetKind::Directory) => {
                pieces::read(path, spec.input.as_ref(), counter, bounds)
            }
            Some(_) => Err(DatasetError::IsFolder(path.to_path_buf())),
        };
    }
    let mut file = DataFile::open(path, bounds.bytes)?;
    let kind = match spec.kind.or_else(|| kind_of(path, file.head())) {
        Some(kind) => kind,
        None if file.head().is_empty() => {
            return Err(DataFileError::Empty { path: path.to_path_buf() }.into());
        }
        None => return Err(DatasetError::UnknownKind(path.to_path_buf())),
    };
    let is_share_gpt = kind == DatasetKind::ShareGpt;
    let limits = if is_share_gpt { Limits::SHARE_GPT } else { Limits::NONE };
    let mut collector = Collector::new(path, counter, limits, bounds.items);
    match kind {
        DatasetKind::ShareGpt => {
            json::read_share_gpt(&mut file, spec.output.as_ref(), &mut collector)?;
        }
        DatasetKind::Jsonl => json::read_lines(&mut file, &mut collector)?,
        DatasetKind::Csv => json::read_table(&mut file, &mut collector)?,
        DatasetKind::Text => json::read_text_table(&mut file, &mut collector)?,
        DatasetKind::Directory => return Err(DatasetError::NotAFolder(path.to_path_buf())),
    }
    let Collected { items, dropped, notes } = collector.finish()?;
    let facts = FileFacts {
        name: name_of(path),
        kind: kind_name(kind).to_owned(),
        sha256: file.finish()?,
        items: items.len() as u64,
        dropped,
    };
    Ok(Dataset { items, facts, notes })
}

/// By its name, or by how it begins.
fn kind_of(path: &Path, head: &[u8]) -> Option<DatasetKind> {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    match extension.to_str() {
        Some("csv") => return Some(DatasetKind::Csv),
        Some("txt" | "md") => return Some(DatasetKind::Text),
        _ => {}
    }
    match head.iter().find(|byte| !byte.is_ascii_whitespace())? {
        b'[' => Some(DatasetKind::ShareGpt),
        b'{' => Some(DatasetKind::Jsonl),
        _ => None,
    }
}

fn kind_name(kind: DatasetKind) -> &'static str {
    match kind {
        DatasetKind::ShareGpt => "sharegpt",
        DatasetKind::Jsonl => "jsonl",
        DatasetKind::Csv => "csv",
        DatasetKind::Text => "text",
        DatasetKind::Directory => "directory",
    }
}

#[cfg(test)]
mod tests;
