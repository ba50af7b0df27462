//! Traces of JSON lines with hash ids: blocks of text that requests share.

use inferometer_model::spec::TraceKind;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::decimal::{self, Unit};
use super::recording::Recording;
use super::{BAILIAN_BLOCK, MOONCAKE_BLOCK};
use crate::data_file::{DataFile, DataFileError, reason_of};

/// What differs between the dialects.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dialect {
    unit: Unit,
}

pub(super) const MOONCAKE: Dialect = Dialect { unit: Unit::Milliseconds };
pub(super) const BAILIAN: Dialect = Dialect { unit: Unit::Seconds };

#[derive(Deserialize)]
struct Line<'l> {
    #[serde(borrow)]
    timestamp: &'l RawValue,
    input_length: u32,
    output_length: u32,
    #[serde(default)]
    hash_ids: Vec<u64>,
}

pub(super) fn read(
    file: &mut DataFile,
    dialect: Dialect,
    recording: &mut Recording,
) -> Result<(), DataFileError> {
    let path = file.path().to_path_buf();
    let mut lines = file.lines();
    while let Some((place, line)) = lines.next()? {
        if line.trim().is_empty() {
            continue;
        }
        let wrong = |reason| DataFileError::Wrong { path: path.clone(), place, reason };
        let entry: Line<'_> =
            serde_json::from_str(line).map_err(|error| wrong(reason_of(&error)))?;
        let timestamp = entry.timestamp.get();
        let at = decimal::nanos(timestamp, dialect.unit)
            .ok_or_else(|| wrong(format!("`timestamp` is {timestamp}, not a number of time")))?;
        recording.push(at, (entry.input_length, entry.output_length), &entry.hash_ids)?;
    }
    Ok(())
}

/// What tells the dialects apart.
#[derive(Deserialize)]
struct Signs {
    chat_id: Option<serde::de::IgnoredAny>,
    #[expect(dead_code, reason = "both dialects must have it")]
    timestamp: serde::de::IgnoredAny,
    input_length: u32,
    #[serde(default)]
    hash_ids: Vec<serde::de::IgnoredAny>,
}

/// By the names of chats, which one dialect has, or else by the length of a block.
pub(super) fn kind_of(line: &str) -> Option<TraceKind> {
    let signs: Signs = serde_json::from_str(line).ok()?;
    let blocks_are =
        |tokens: u32| signs.input_length.div_ceil(tokens) as usize == signs.hash_ids.len();
    let is_bailian =
        signs.chat_id.is_some() || (!blocks_are(MOONCAKE_BLOCK) && blocks_are(BAILIAN_BLOCK));
    Some(if is_bailian { TraceKind::Bailian } else { TraceKind::Mooncake })
}
