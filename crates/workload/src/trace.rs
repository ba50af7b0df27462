//! Recorded traffic: when requests came, how long they and their answers were, what they shared.
//!
//! To add a dialect: a reader beside these, its name in `TraceKind` and in [`kind_name`], its sign
//! in [`kind_of`], and broken files of it in the tests.

mod decimal;
mod gaps;
mod json;
mod recording;
mod table;
mod ticks;

use std::ops::Range;
use std::path::{Path, PathBuf};

use inferometer_model::observations::FileFacts;
use inferometer_model::spec::{Replay, TraceKind, TraceSpec};

use crate::data_file::{DataFile, DataFileError};
use crate::stream::Stream;
use recording::{Bounds, Recording};
use ticks::Grid;

#[derive(Debug)]
pub(crate) struct Trace {
    /// Their moments never decrease.
    pub(crate) entries: Vec<TraceEntry>,
    /// Names of blocks of text; an entry has a range of them.
    pub(crate) hash_ids: Vec<u64>,
    /// How long a block is.
    pub(crate) block_tokens: u32,
    pub(crate) facts: FileFacts,
    /// What was done to the recording, in words for the reader.
    pub(crate) notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceEntry {
    /// From the beginning of the trace.
    pub(crate) at_ns: u64,
    pub(crate) input_tokens: u32,
    pub(crate) output_tokens: u32,
    /// Its place in `hash_ids`.
    pub(crate) blocks: Range<u32>,
}

#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error(transparent)]
    File(#[from] DataFileError),
    #[error(
        "cannot tell whose trace {path} is ({found}); name its kind: mooncake or bailian (JSON \
         lines), azure or burstgpt (CSV)"
    )]
    UnknownKind { path: PathBuf, found: String },
}

/// Reads it whole. Without a replay its moments stay as they were recorded: they are not used.
pub(crate) fn read(
    spec: &TraceSpec,
    replay: Option<&Replay>,
    seed: u64,
) -> Result<Trace, TraceError> {
    read_within(spec, replay, seed, BOUNDS)
}

/// What fits into memory; the longest public traces have some thirty million requests.
const BOUNDS: Bounds = Bounds { bytes: 64 << 30, entries: 50_000_000, blocks: 1 << 28 };

fn read_within(
    spec: &TraceSpec,
    replay: Option<&Replay>,
    seed: u64,
    bounds: Bounds,
) -> Result<Trace, TraceError> {
    let path = spec.path.as_path();
    let mut file = DataFile::open(path, bounds.bytes)?;
    let kind = match spec.kind {
        Some(kind) => kind,
        None => kind_of(path, file.head())?,
    };
    let mut recording = Recording::new(path, bounds);
    match kind {
        TraceKind::Mooncake => json::read(&mut file, json::MOONCAKE, &mut recording)?,
        TraceKind::Bailian => json::read(&mut file, json::BAILIAN, &mut recording)?,
        TraceKind::Azure => table::read_azure(&mut file, &mut recording)?,
        TraceKind::BurstGpt => table::read_burst_gpt(&mut file, &mut recording)?,
    }
    let name = file.name();
    let sha256 = file.finish()?;
    let block_tokens = block_tokens(kind);
    recording.put_in_order();
    recording.rebase();
    recording.judge_blocks(block_tokens);
    let grid = replay.and_then(|_| Grid::find(&recording.entries));
    recording.thin(spec.keep, seed)?;
    recording.rebase();
    if let Some(replay) = replay {
        let notes = ticks::spread(&mut recording.entries, grid, replay.ticks, seed);
        recording.notes.extend(notes);
        recording.warp(replay.speed);
    }
    let Recording { entries, hash_ids, dropped, notes, .. } = recording;
    let items = entries.len() as u64;
    let facts = FileFacts { name, kind: kind_name(kind).to_owned(), sha256, items, dropped };
    let entries = entries.into_iter().map(Into::into).collect();
    Ok(Trace { entries, hash_ids, block_tokens, facts, notes })
}

const MOONCAKE_BLOCK: u32 = 512;
const BAILIAN_BLOCK: u32 = 16;

fn block_tokens(kind: TraceKind) -> u32 {
    match kind {
        TraceKind::Bailian => BAILIAN_BLOCK,
        // The others name no blocks.
        TraceKind::Mooncake | TraceKind::Azure | TraceKind::BurstGpt => MOONCAKE_BLOCK,
    }
}

/// By the keys of its first line, or by its columns.
fn kind_of(path: &Path, head: &[u8]) -> Result<TraceKind, TraceError> {
    let line = head.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty());
    let Some(line) = line else {
        return Err(DataFileError::Empty { path: path.to_path_buf() }.into());
    };
    let text = String::from_utf8_lossy(line);
    let kind = if text.trim_start().starts_with('{') {
        json::kind_of(&text)
    } else {
        table::kind_of(&text)
    };
    kind.ok_or_else(|| {
        let found =
            format!("it begins with `{}`", text.trim().chars().take(80).collect::<String>());
        TraceError::UnknownKind { path: path.to_path_buf(), found }
    })
}

fn kind_name(kind: TraceKind) -> &'static str {
    match kind {
        TraceKind::Mooncake => "mooncake",
        TraceKind::Azure => "azure",
        TraceKind::BurstGpt => "burstgpt",
        TraceKind::Bailian => "bailian",
    }
}

#[cfg(test)]
mod tests;
