//! Traces of JSON lines with hash ids: blocks of text that requests share.

use inferometer_model::spec::TraceKind;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{BAILIAN_BLOCK, MOONCAKE_BLOCK, Recording, Unit};
use crate::data_file::{DataFile, DataFileError, reason_of};

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
    unit: Unit,
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
        let at = super::nanos(timestamp, unit)
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

/// `TIMESTAMP,ContextTokens,GeneratedTokens`, and since 2025 `NumImages`.
pub(super) fn read_azure(
    file: &mut DataFile,
    recording: &mut Recording,
) -> Result<(), DataFileError> {
    let columns = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"];
    let (mut with_images, mut images) = (0_u64, 0_u64);
    let moment = ("a date with a time", super::date_nanos as fn(&str) -> Option<i64>);
    read_rows(file, columns, moment, Some("NumImages"), |at, lengths, pictures| {
        with_images += u64::from(0 < pictures);
        images += u64::from(pictures);
        recording.push(at, lengths, &[])
    })?;
    if 0 < with_images {
        recording.notes.push(format!(
            "{with_images} of the recorded requests had {images} images, which are not sent; \
             their tokens are words here"
        ));
    }
    Ok(())
}

/// Seconds, and failures among the requests: those have no answer.
pub(super) fn read_burst_gpt(
    file: &mut DataFile,
    recording: &mut Recording,
) -> Result<(), DataFileError> {
    let columns = ["Timestamp", "Request tokens", "Response tokens"];
    let moment = ("a number of seconds", |text: &str| super::nanos(text, Unit::Seconds));
    read_rows(file, columns, moment, None, |at, lengths, _| match lengths {
        (_, 0) => {
            recording.leave_out("failed (no response tokens)");
            Ok(())
        }
        lengths => recording.push(at, lengths, &[]),
    })
}

/// Whose columns these are.
pub(super) fn table_kind(header: &str) -> Option<TraceKind> {
    let names = || header.split(',').map(|name| name.trim().trim_matches('"'));
    let has = |name: &str| names().any(|found| found.eq_ignore_ascii_case(name));
    if has("ContextTokens") {
        Some(TraceKind::Azure)
    } else if has("Request tokens") {
        Some(TraceKind::BurstGpt)
    } else {
        None
    }
}

/// Walks the rows of a table with columns for the moment, the input and the output, and perhaps one
/// more number. A moment is `what` it should be, and how it is read.
fn read_rows(
    file: &mut DataFile,
    names: [&'static str; 3],
    (what, moment): (&str, impl Fn(&str) -> Option<i64>),
    extra: Option<&'static str>,
    mut on_row: impl FnMut(i64, (u32, u32), u32) -> Result<(), DataFileError>,
) -> Result<(), DataFileError> {
    let path = file.path().to_path_buf();
    let mut table = file.table()?;
    let mut columns = [0; 3];
    for (column, name) in columns.iter_mut().zip(names) {
        *column = table.needed(name)?;
    }
    let extra = extra.and_then(|name| Some((name, table.column(name)?)));
    while let Some((place, fields)) = table.next()? {
        let field = |column: usize| fields.get(column).unwrap_or_default().trim();
        let wrong = |name: &str, text: &str, what: &str| {
            let reason = format!("`{name}` is `{text}`, not {what}");
            DataFileError::Wrong { path: path.clone(), place, reason }
        };
        let count = |name: &str, column: usize| {
            let text = field(column);
            text.parse::<u32>().map_err(|_| wrong(name, text, "a whole number"))
        };
        let text = field(columns[0]);
        let at = moment(text).ok_or_else(|| wrong(names[0], text, what))?;
        let extra = extra.map_or(Ok(0), |(name, column)| count(name, column))?;
        on_row(at, (count(names[1], columns[1])?, count(names[2], columns[2])?), extra)?;
    }
    Ok(())
}
